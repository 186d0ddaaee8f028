"""Log-mel features: the energy of sound in bands as wide as the ear's, every 10 ms.

The window is 25 ms long (Hann), as usual in speech recognition; bands are triangles that overlap by
half, of equal width on the mel scale. Each band is brought to mean zero and variance one over the
recording, so that loudness and microphone matter less.

These are a few lines of NumPy, since the library that is kept best, librosa, needs numba, LLVM and
scikit-learn beside it, and torchaudio needs PyTorch.
"""

import functools

import numpy as np
from jaxtyping import Float, Int

WINDOW_SECONDS, HOP_SECONDS = 0.025, 0.010
BANDS = 40
_SILENCE = 1e-10  # energy below which nothing is heard; the square of half a step of 16 bits
_LEAST_DEVIATION = 1e-3  # of a band, so that silence stays silence


def frame_count(num_samples: int, rate: int) -> int:
    """Returns how many frames there are: as many as have a whole window, but at least one."""
    window, hop = _sizes(rate)
    return 1 + max(num_samples - window, 0) // hop


def log_mel(samples: Float[np.ndarray, " N"], rate: int) -> Float[np.ndarray, "T 40"]:
    """Log-mel spectrogram: the logarithm of the energy in each band of each frame.

    features[t, b] = log(max(sum_f M[b, f] |DFT(window * samples[t hop : t hop + W])[f]|^2, floor))

    Args:
      samples: In [-1, 1]; fewer than a window has are filled up with silence.
      rate: Samples of a second, in Hz.

    Returns:
      Frames, 10 ms from one to the next.

    Source:
      Davis and Mermelstein (1980), "Comparison of parametric representations", section II, on the
      bands; Chan et al. (2016), section 4: 40 of them, 10 ms.
    """
    window, hop = _sizes(rate)
    samples = np.pad(samples, (0, max(window - len(samples), 0)))
    # T W: windows overlap, and share their memory.
    pieces = np.lib.stride_tricks.sliding_window_view(samples, window)[::hop]
    size = _transform_size(window)
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(window) / window)
    spectrum = np.fft.rfft(pieces * hann, size, axis=-1)  # T F
    power = np.square(spectrum.real) + np.square(spectrum.imag)
    # No matrix product: for one as small as this, a library's threads cost six times its work.
    energies = np.einsum("tf,bf->tb", power, mel_filters(BANDS, size, rate))
    return np.log(np.maximum(energies, _SILENCE)).astype(np.float32)


def normalized(features: Float[np.ndarray, "T D"]) -> Float[np.ndarray, "T D"]:
    """Cepstral mean and variance normalisation, of bands: each has mean zero and variance one."""
    deviation = np.maximum(features.std(axis=0), _LEAST_DEVIATION)
    return ((features - features.mean(axis=0)) / deviation).astype(np.float32)


@functools.cache
def mel_filters(bands: int, size: int, rate: int) -> Float[np.ndarray, "bands F"]:
    """Mel filter bank: triangles, each from its neighbours' centres, on the mel scale.

    Args:
      bands: How many there are, from 0 Hz to half the rate.
      size: Samples of the Fourier transform, of which F = size / 2 + 1 frequencies are kept.
      rate: Samples of a second, in Hz.
    """
    mels = to_mel(np.arange(size // 2 + 1) * rate / size)
    edges = np.linspace(0.0, mels[-1], bands + 2)
    below, centre, above = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    rising, falling = (mels - below) / (centre - below), (above - mels) / (above - centre)
    return np.maximum(np.minimum(rising, falling), 0.0)


def to_mel(hertz: Float[np.ndarray, "*B"]) -> Float[np.ndarray, "*B"]:
    """Mel scale: returns the pitch that is heard, 1000 mel at 1000 Hz (O'Shaughnessy 1987)."""
    return 2595.0 * np.log10(1.0 + hertz / 700.0)


def frames_at(seconds: Float[np.ndarray, " N"]) -> Int[np.ndarray, " N"]:
    """Returns the frames whose windows have their middle nearest to each time."""
    places = (np.asarray(seconds) - WINDOW_SECONDS / 2) / HOP_SECONDS
    return np.maximum(np.rint(places), 0).astype(np.int64)


def seconds_at(frames: Int[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    """Returns the times at which frames have the middle of their windows."""
    return np.asarray(frames) * HOP_SECONDS + WINDOW_SECONDS / 2


def seconds_before(frames: Int[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    """Returns the times between frames and those before them; of the first, the beginning."""
    frames = np.asarray(frames)
    return np.where(frames > 0, seconds_at(frames) - HOP_SECONDS / 2, 0.0)


def _sizes(rate: int) -> tuple[int, int]:
    """Returns the samples of a window and of a hop."""
    return round(WINDOW_SECONDS * rate), round(HOP_SECONDS * rate)


def _transform_size(window: int) -> int:
    # Twice the window at least: the lowest bands are narrower than the window's own resolution.
    return 2 ** int(np.ceil(np.log2(2 * window)))
