"""Attention heat maps, attention to pictures and sound, and learning curves, drawn into files."""

import os
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from attention_jax.analysis.matrices import forced_outputs
from attention_jax.data.examples import Split
from attention_jax.data.pictures import Canvas
from attention_jax.data.task import Metric
from attention_jax.data.text.vocabulary import tokens_in_text
from attention_jax.decoding.forced_decoding import forced_attention
from attention_jax.decoding.origins import Origins, origins, written_outputs
from attention_jax.decoding.searcher import Hypothesis
from attention_jax.decoding.source_tokens import source_tokens
from attention_jax.decoding.translate import Translation
from attention_jax.errors import UserError
from attention_jax.plotting.attended_picture import AttendedPicture
from attention_jax.plotting.canvases import attended_canvases
from attention_jax.plotting.curves import learning_curves, read_metrics
from attention_jax.plotting.figure import save_figure
from attention_jax.plotting.heat_map import HeatMap, heat_map_grid, that_fit_a_page
from attention_jax.runs.files import replacing
from attention_jax.runs.load import TrainedRun
from attention_jax.runs.run_directory import RunDirectory

_LONGEST_DRAWN = 40  # tokens on either side
_MOST_DRAWN = 12
_COLUMNS = 2
_MOST_SOUNDS = 6
MOST_FRAMES = 1000  # ten seconds; more would be too narrow to see
_GENERATED = "(generated)"


def draw_attention(
    run: TrainedRun, split: Split, found: Sequence[Sequence[Hypothesis]]
) -> None:
    """Attention heat maps: draws the first outputs and the longest to `plots/`, as PNG and SVG.

    Beside each stands the mean over heads of its attention to every further text. Where sources are
    pictures or sound, it is drawn over pictures, or under spectrograms, for the first outputs. How
    many are drawn is `evaluation.num_heat_maps` of the run's config; of sound at most six.

    Args:
      run: The run, into whose directory they go.
      split: The sources.
      found: The hypotheses for each source, best first.
    """
    number = run.config.evaluation.num_heat_maps
    if run.draws_on_canvas:
        return _draw_on_canvas(run, split, found, number)
    fitting = [
        index
        for index, best in enumerate(found)
        if best and max(best[0].weights.shape) <= _LONGEST_DRAWN
    ]
    longest = sorted(fitting, key=lambda index: -found[index][0].weights.size)
    # One half are the first outputs, the rest the longest that are not among them.
    chosen = list(dict.fromkeys([*fitting[: number // 2], *longest]))[:number]
    maps = _heat_maps(
        run, [(split.source_ids[index], found[index][0], split.sources[index]) for index in chosen]
    )
    if maps and run.directory.writes:
        outputs = [found[index][0] for index in chosen]
        known = split.select(chosen).with_target_ids([each.tokens for each in outputs])
        _write(run, split, _grid(run, _with_further(run, maps, known)))


def draw_translations(
    run: TrainedRun,
    translations: Sequence[Translation],
    path: str | os.PathLike,
    further: Mapping[str, Sequence[str]] = {},  # noqa: B006
) -> str:
    """Attention heat maps: draws the first translations, as many as fit a page.

    Args:
      run: The run that translated.
      translations: Its translations.
      path: Of a PNG, or of an SVG or a PDF if it ends in `.svg` or `.pdf`.
      further: Lines of each further source, by its name, one for each translation.

    Returns:
      A line that says what was drawn.

    Raises:
      UserError: If the file cannot be written.
    """
    is_sound = run.task.word_starts is not None
    numbers = [number for number, one in enumerate(translations) if one.hypotheses]
    drawn = [translations[number] for number in numbers]
    if not drawn:
        return f"{path}: not drawn, for there is no line with an output"
    if is_sound:
        drawn = [one for one in drawn if _can_be_drawn(one.hypotheses[0], is_sound)]
        if not drawn:
            return f"{path}: not drawn, for sound is longer than {MOST_FRAMES:,} frames"
    drawn = drawn[: _MOST_SOUNDS if is_sound else _MOST_DRAWN]
    if run.draws_on_canvas:
        figure = attended_canvases(
            [attended(run, one.canvas, one.hypotheses[0], one.source) for one in drawn]
        )
    else:
        asked = [(one.source_ids, one.hypotheses[0], one.source) for one in drawn]
        maps = _heat_maps(run, asked)
        if _further_texts(run):
            chosen = numbers[: len(drawn)]
            others = {name: [texts[n] for n in chosen] for name, texts in further.items()}
            _, outputs, sources = zip(*asked, strict=True)
            maps = _with_further(run, maps, forced_outputs(run, sources, outputs, others))
        figure = _grid(run, maps)
    try:
        with replacing(path) as temporary:
            save_figure(figure, temporary)
    except OSError as error:
        raise UserError(f"--plot: {path} cannot be written: {error.strerror}") from None
    return f"{path}: the attention of the first lines"


def draw_learning_curves(directory: RunDirectory, metrics: Sequence[Metric] = ()) -> None:
    """Learning curves: draws `metrics.jsonl` of a run to `plots/learning_curves.png` and `.pdf`.

    `metrics` are the task's, drawn beside the losses that every run logs.
    """
    if directory.writes and directory.metrics.exists():
        figure = learning_curves(read_metrics(directory.metrics), directory.path.name, metrics)
        for suffix in ("png", "pdf"):
            with directory.plot(f"learning_curves.{suffix}") as path:
                save_figure(figure, path)


def _draw_on_canvas(
    run: TrainedRun, split: Split, found: Sequence[Sequence[Hypothesis]], number: int
) -> None:
    """Draws where each word of the first outputs has looked, or to what it has listened."""
    is_sound = run.task.word_starts is not None
    fitting = [i for i, best in enumerate(found) if best and _can_be_drawn(best[0], is_sound)]
    drawn = []
    for index in fitting[: min(number, _MOST_SOUNDS) if is_sound else number]:
        canvas = run.task.canvas(split, index, run.config.data)
        drawn.append(attended(run, canvas, found[index][0], canvas_title(split, index, canvas)))
    if drawn and run.directory.writes:
        _write(run, split, attended_canvases(drawn))


def _can_be_drawn(hypothesis: Hypothesis, is_sound: bool) -> bool:
    """Tells whether sound is short enough to be seen, or an output for a picture of each token."""
    tokens, places = hypothesis.weights.shape
    return places <= MOST_FRAMES if is_sound else tokens <= _LONGEST_DRAWN


def _write(run: TrainedRun, split: Split, figure: Figure) -> None:
    for suffix in ("png", "svg"):
        with run.directory.plot(f"attention.{split.name}.{suffix}") as path:
            save_figure(figure, path)


def _grid(run: TrainedRun, maps: Sequence[HeatMap]) -> Figure:
    columns = max(_COLUMNS, 1 + len(_further_texts(run)))
    return heat_map_grid(that_fit_a_page(maps, columns), columns)


def _heat_maps(
    run: TrainedRun, outputs: Sequence[tuple[np.ndarray, Hypothesis, str]]
) -> list[HeatMap]:
    """Draws the attention of outputs; beside it, of a model that copies, what it has copied."""
    maps = [_heat_map(run, *output) for output in outputs]
    if not (run.tells_origins and outputs):
        return maps
    texts, tokens = zip(*((text, best.tokens) for _, best, text in outputs), strict=True)
    found = origins(run, written_outputs(run, texts, tokens))
    return [each for pair in zip(maps, map(_copy_map, maps, found), strict=True) for each in pair]


def _heat_map(
    run: TrainedRun, source_ids: np.ndarray, hypothesis: Hypothesis, source: str
) -> HeatMap:
    return HeatMap(
        run.linking_weights(hypothesis.weights),
        tokens_in_text(run.source_vocabulary, source_ids, source),
        hypothesis.vocabulary(run.target_vocabulary).tokens(hypothesis.tokens),
        source,
    )


def _further_texts(run: TrainedRun) -> list[str]:
    """Returns the names of the further sources that are read as texts."""
    return [name for name in run.further_sources if name not in run.task.beside]


def _with_further(run: TrainedRun, maps: Sequence[HeatMap], known: Split) -> list[HeatMap]:
    """Puts beside the map of each output those of its attention to the further texts.

    `known` has the outputs as its targets: what a search keeps is of the first source.
    """
    if not (names := _further_texts(run)):
        return [*maps]
    beside: list[HeatMap] = []
    for index, (first, forced) in enumerate(zip(maps, forced_attention(run, known), strict=True)):
        beside.append(first)
        for name in names:
            if name not in forced.further:
                continue  # of an ensemble, there is the mean alone
            weights = run.linking_heads(forced.further[name]).mean(0)
            beside.append(HeatMap(weights, source_tokens(known, name, index), first.target, name))
    return beside


def _copy_map(attention: HeatMap, found: Origins) -> HeatMap:
    """Shows where each token was copied from, with a column for those that were generated."""
    shares = np.concatenate([found.copied, found.generated[:, None]], axis=1)
    columns = [*attention.source, _GENERATED]
    return HeatMap(shares.astype(np.float64), columns, attention.target, "copied from")


def attended(
    run: TrainedRun, canvas: Canvas, hypothesis: Hypothesis, title: str
) -> AttendedPicture:
    """Returns what is drawn of an output on what its source looks like."""
    weights = run.linking_weights(hypothesis.weights)
    target = run.target_vocabulary.tokens(hypothesis.tokens)
    return AttendedPicture(canvas, weights, target, title, found_starts(run, target, weights))


def found_starts(run: TrainedRun, tokens: Sequence[str], weights: np.ndarray) -> list[float]:
    """Returns when words begin by the attention that links them, in seconds.

    None of sources without time, and of sound of more frames than are drawn elsewhere, either.
    """
    find = run.task.word_starts
    if find is None or weights.shape[1] > MOST_FRAMES:
        return []
    return find(run.target_vocabulary, tokens, weights).tolist()


def canvas_title(split: Split, index: int, canvas: Canvas) -> str:
    """Returns what is written above a source: its name, or what is said in it where it is sound."""
    return split.targets[index] if canvas.seconds else split.sources[index]
