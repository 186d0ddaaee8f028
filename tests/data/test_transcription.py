"""Recordings: the user's own in tables, dialled numbers, and strings of spoken digits."""

import io
import tarfile

import numpy as np
import pytest
import soundfile

from attention_jax.data.builders.recordings import Config as Recordings
from attention_jax.data.builders.spoken_digits import Config as SpokenDigits
from attention_jax.data.builders.spoken_digits import archive, strings
from attention_jax.data.builders.tones import Config as Tones
from attention_jax.data.loading import build_task
from attention_jax.data.pipeline import make_eval_batches, make_train_iterator
from attention_jax.data.sound.filter_banks import log_mel, normalized
from attention_jax.data.sound.reading import read_sound
from attention_jax.data.sound.recording import FRAMES, STARTS, Recording
from attention_jax.data.tasks.transcribe import TASK
from attention_jax.data.transcription import word_frames
from attention_jax.errors import DataError

RATE = 16_000


def write(path, seconds, rate=RATE):
    samples = np.random.default_rng(len(path.name)).normal(size=round(seconds * rate))
    soundfile.write(path, 0.1 * samples, rate)


@pytest.fixture
def table(tmp_path):
    (tmp_path / "sounds").mkdir()
    rows = []
    for number in range(12):
        name = f"sounds/{number}.{'flac' if number % 2 else 'wav'}"
        write(tmp_path / name, 0.1 + 0.02 * number, RATE if number else 44_100)
        rows.append(f"{name}\tthe text of {number}\n")
    path = tmp_path / "train.tsv"
    path.write_text("".join(rows))
    return path


def test_a_table_of_recordings(tmp_path, table):
    config = Recordings(train_table=str(table), validation_table=str(table), num_buckets=1)
    task = build_task(config, tmp_path / "vocab")
    train, whole = task.split("train"), task.split("validation")
    assert task.task is TASK and len(train) == 11 and len(task.split("test")) == 1
    assert whole.sources[:2] == ["sounds/0.wav", "sounds/1.flac"]
    assert task.target_vocabulary.kind == "characters"
    assert whole.lengths("S").tolist() == [len(each) for each in whole.columns["source"]]
    (batch,) = make_eval_batches(whole, config)
    row = batch["index"].tolist().index(3)
    expected = normalized(log_mel(read_sound(tmp_path / "sounds/3.flac", RATE), RATE))
    np.testing.assert_array_equal(batch["source"][row, : len(expected)], expected)
    assert batch["source_mask"][row].sum() == len(expected)
    assert not batch["source"][row, len(expected) :].any()
    shape = next(make_train_iterator(task, config, 0))["source"].shape
    assert shape == (64, train.lengths("S").max(), 40)


def test_the_sound_itself_is_hashed(tmp_path, table):
    config = Recordings(train_table=str(table), test_table=str(table))
    before = build_task(config, tmp_path / "vocab").fingerprints
    samples = 0.1 * np.ones(round(0.18 * RATE))  # as many as before
    soundfile.write(tmp_path / "sounds" / "4.wav", samples, RATE)
    after = build_task(config, tmp_path / "vocab").fingerprints
    assert before["test"] != after["test"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("sounds/99.wav\tx", r"train\.tsv:13: .*sounds/99\.wav: expected a sound file, found none"),
        ("train.tsv\tx", r"train\.tsv:13: .*train\.tsv: expected a sound file, such as WAV"),
        ("sounds/1.flac", r"train\.tsv:13: expected 2 columns separated by tabs \(file, text\)"),
        ("sounds/1.flac\t ", r"train\.tsv:13: expected a text in every row, found an empty"),
    ],
)
def test_a_mistake_in_a_table_is_one_line(table, row, message):
    table.write_text(table.read_text() + row + "\n")
    with pytest.raises(DataError, match=message) as caught:
        Recordings(train_table=str(table)).load()
    assert "\n" not in str(caught.value)


def test_frames_are_kept_where_a_table_is_short(tmp_path):
    write(tmp_path / "one.wav", 0.1)
    recording = Recording.of_file(tmp_path / "one.wav", RATE)
    assert np.asarray(recording) is np.asarray(recording)
    assert recording.shape == (len(recording), 40) == np.asarray(recording).shape


def test_a_users_files_are_read_for_a_search(tmp_path, table):
    config = Recordings(train_table=str(table))
    (found,) = TASK.read([str(tmp_path / "sounds" / "2.wav")], config)[FRAMES.name]
    assert found.rate == RATE and len(found) == 12
    with pytest.raises(DataError, match="nowhere.wav: expected a sound file, found none"):
        TASK.read([str(tmp_path / "nowhere.wav")], config)


def test_dialled_numbers():
    corpus = Tones().load()
    sources = {name: {source for source, *_ in part} for name, part in corpus.items()}
    assert [len(part) for part in corpus.values()] == [512, 64, 64]
    assert not sources["train"] & (sources["test"] | sources["validation"])
    again = Tones().load()["test"]
    for (_, (text,), extras), (_, _, same) in zip(corpus["test"], again, strict=True):
        assert len(text.split()) == len(extras[STARTS])
        sound = extras["source"].samples()
        assert len(sound) == extras["source"].num_samples
        np.testing.assert_array_equal(sound, same["source"].samples())
        # Loud from each start on, and not before it.
        for start in np.rint(extras[STARTS] * 8000).astype(int):
            assert np.abs(sound[start : start + 50]).max() > 0.1
            assert not start or np.abs(sound[start - 50 : start]).max() < 0.01


@pytest.fixture
def digits(tmp_path, monkeypatch):
    """An archive of all recordings, each a few samples that its name tells."""
    files, path = {}, tmp_path / archive.ARCHIVE
    for speaker in archive.SPEAKERS:
        for digit in range(10):
            for index in range(50):
                content = io.BytesIO()
                size = 80 + 10 * digit + index
                soundfile.write(content, np.full(size, 0.01 * digit), 8000, format="WAV")
                files[f"{digit}_{speaker}_{index}"] = content.getvalue()
    path.parent.mkdir()
    with tarfile.open(path, "w:gz", compresslevel=1) as packed:
        for name, content in files.items():
            member = tarfile.TarInfo(f"repository-1/recordings/{name}.wav")
            member.size = len(content)
            packed.addfile(member, io.BytesIO(content))
    monkeypatch.setenv("ATTENTION_JAX_DATA", str(tmp_path))
    monkeypatch.setattr(archive, "DIGEST", archive.digest_of(files))
    return path


def test_strings_of_digits(digits):
    corpus = SpokenDigits(train_strings=200, other_strings=60).load()
    assert {name: len(part) for name, part in corpus.items()} == {
        "train": 200, "validation": 60, "test": 60, "new_speaker": 60,
    }  # fmt: skip
    for name, part in corpus.items():
        lengths = set()
        for source, (text,), extras in part:
            names = [each.split("_") for each in source.split()]
            assert len({speaker for _, speaker, _ in names}) == 1
            assert (names[0][1] == "theo") == (name == "new_speaker")
            indices = strings.INDICES.get(name, range(50))
            assert all(int(index) in indices for *_, index in names)
            assert text == " ".join(strings.WORDS[int(digit)] for digit, *_ in names)
            lengths.add(len(names))
            sound = extras["source"].samples()
            starts = np.rint(extras[STARTS] * 8000).astype(int)
            np.testing.assert_allclose(sound[starts], [0.01 * int(n[0]) for n in names], atol=1e-4)
            assert len(sound) == sum(80 + 10 * int(n[0]) + int(n[2]) for n in names)
        assert lengths == set(range(1, 7))
    more = SpokenDigits(train_strings=300, other_strings=60).load()
    assert [source for source, *_ in more["train"][:200]] == [s for s, *_ in corpus["train"]]


@pytest.mark.parametrize("spelling", ["words", "characters"])
def test_words_are_linked_to_the_frames_in_which_they_are_said(digits, tmp_path, spelling):
    config = SpokenDigits(train_strings=40, other_strings=1, spelling=spelling)
    split = build_task(config, tmp_path / "vocab").split("train")
    for text, recording, starts, links in zip(
        split.targets, split.extras["source"], split.extras[STARTS], config.gold_links(split),
        strict=True,
    ):  # fmt: skip
        tokens = text.split() if spelling == "words" else list(text)
        linked = np.zeros((len(tokens), len(recording)), bool)
        linked[tuple(links.T)] = True
        # The word of each token; a space is of none, and is said nowhere.
        of_words = [text[:place].count(" ") for place in range(len(text))]
        owners = range(len(tokens)) if spelling == "words" else of_words
        last = len(recording) - 1
        first = [min(max(round((start - 0.0125) / 0.01), 0), last) for start in starts]
        for token, owner, frames in zip(tokens, owners, linked, strict=True):
            end = [*first, last + 1][owner + 1]
            expected = range(first[owner], max(end, first[owner] + 1))
            assert np.flatnonzero(frames).tolist() == ([] if token == " " else [*expected])


def test_recordings_of_ones_own_have_no_links(tmp_path, table):
    config = Recordings(train_table=str(table))
    split = build_task(config, tmp_path / "vocab").split("train")
    assert config.gold_links(split) is None and not config.brings_links


def test_every_word_has_a_frame():
    """Also one that is shorter, or begins after the middle of the last window."""
    found = word_frames(np.array([0.0, 0.001, 0.052, 0.2]), 6)
    assert [np.flatnonzero(frames).tolist() for frames in found] == [[0], [0, 1, 2, 3], [4], [5]]


def test_an_archive_with_other_recordings_is_one_line(digits, monkeypatch):
    monkeypatch.setattr(archive, "DIGEST", "0" * 64)
    with pytest.raises(DataError, match="expected recordings with the sha256 0000.*found 3000 "):
        SpokenDigits().load()
    digits.write_bytes(digits.read_bytes()[:1000])
    with pytest.raises(DataError, match=r"recordings\.tar\.gz: expected an archive of recordings"):
        SpokenDigits().load()


def test_a_recording_that_is_cut_off_is_one_line(tmp_path):
    path = tmp_path / "cut.mp3"
    write(path, 1.0)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    recording = Recording.of_file(path, RATE)
    with pytest.raises(DataError, match=r"cut\.mp3: expected 1\.00 seconds of sound, .* cut off"):
        np.asarray(recording)
