"""Attention viewer of a run: one HTML file for each split, with views of outputs and references.

A run by itself is shown token by token. Together with gold links or with another run, attention is
shown between words and without EOS, for words are what they have in common; the attention of forced
decoding of the references is then shown too.
"""

from collections.abc import Sequence

from attention_jax.analysis.attributed_words import AttributedWords
from attention_jax.analysis.gold_links import GoldComparison
from attention_jax.analysis.heads import HeadReport
from attention_jax.analysis.pictures import MOST_FRAMES, found_starts
from attention_jax.analysis.views import (
    DecodedRun,
    ForcedView,
    Views,
    entropy_score,
    output_tokens,
    output_words,
    references_name,
)
from attention_jax.data.text.vocabulary import tokens_in_text
from attention_jax.decoding.word_units import SplitWords, forced_words, split_words
from attention_jax.models.ensemble import Ensemble
from attention_jax.plotting.viewer import ViewedAttention, ViewerSentence, write_viewer
from attention_jax.runs.load import TrainedRun
from attention_jax.runs.run_directory import writing

MOST_SHOWN = 1000
MOST_SOUNDS = 200


def write_run_viewer(
    shown: DecodedRun,
    *,
    gold: GoldComparison | None = None,
    attributed: AttributedWords | None = None,
    reverse_name: str = "",
    against: Sequence[DecodedRun] = (),
    heads: Sequence[HeadReport] = (),
) -> None:
    """Attention viewer: writes `viewer.SPLIT.html` of a run into its directory.

    At most `MOST_SHOWN` pairs are shown, those with gold links before others; of recordings at most
    `MOST_SOUNDS`, longer ones than ten seconds left out.

    Args:
      shown: The run and its outputs; its model has attention.
      gold: Forced attention of the references and their gold links.
      attributed: Attributions of the references that have gold links; only these are shown then.
      reverse_name: Name of the run of the opposite direction in `gold`.
      against: Other runs on the same sources; those without attention are left out, and all of them
        where sources are pictures or sound.
      heads: Statistics of the run's heads over the split, shown beside their views.
    """
    if shown.run.draws_on_canvas:
        return _write_canvas_viewer(shown)
    others = [one for one in against if one.run.links_tokens]
    runs = [shown, *others]
    chosen = _chosen(runs, gold)
    if attributed:
        chosen = [index for index in chosen if index in attributed.golds]
    directory, split = shown.run.directory, shown.split
    if not chosen or not directory.writes:
        return
    if gold is None and not others:
        words, views = None, output_tokens(shown, chosen)
    else:
        words = split_words(split) if gold is None else gold.words
        views = _between_words(runs, words, chosen, gold, reverse_name)
    if attributed:
        views |= _of_attributions(shown.name, attributed, chosen)
    sentences = [_sentence(shown, index, words, gold) for index in chosen]
    title = f"{shown.name}, {split.name}"
    # A head's numbers stand beside its view of outputs and its view of references alike.
    about = {
        f"{name}, {head.name}": head.values
        for head in heads
        for name in (shown.name, references_name(shown.name))
        if head.is_cross and f"{name}, {head.name}" in views
    }
    with writing(path := directory.viewer(split.name)):
        write_viewer(path, title, sentences, views, about)


def _write_canvas_viewer(shown: DecodedRun) -> None:
    """Writes the viewer of a run that attends to pictures or sound: its outputs, token by token."""
    run, split = shown.run, shown.split
    chosen = _fit_to_be_shown(shown)
    if not chosen or not run.directory.writes:
        return
    sentences, attentions = [], []
    for index in chosen:
        best, canvas = shown.found[index][0], run.task.canvas(split, index, run.config.data)
        sentences.append(
            ViewerSentence(
                canvas.places,
                key=str(index),
                reference=(split.references[index] or [""])[0],
                text=split.sources[index],
                canvas=canvas,
            )
        )
        target = run.target_vocabulary.tokens(best.tokens)
        weights = run.linking_weights(best.weights)
        starts = found_starts(run, target, weights)
        attentions.append(
            ViewedAttention(weights, target, shown.texts[index], entropy_score(weights), starts)
        )
    title = f"{shown.name}, {split.name}"
    with writing(path := run.directory.viewer(split.name)):
        write_viewer(path, title, sentences, {shown.name: attentions})


def _fit_to_be_shown(shown: DecodedRun) -> list[int]:
    """Chooses the examples with an output, of sound fewer and those that are short enough."""
    chosen = [index for index, found in enumerate(shown.found) if found]
    if shown.run.task.word_starts is None:
        return chosen[:MOST_SHOWN]
    lengths = {index: shown.found[index][0].weights.shape[1] for index in chosen}
    return [index for index in chosen if lengths[index] <= MOST_FRAMES][:MOST_SOUNDS]


def distinct_names(*runs: TrainedRun) -> list[str]:
    """Names runs by the shortest ends of their paths that tell them apart.

    Equal paths get the step of the checkpoint; if these are equal too, runs are numbered.
    """
    paths = [_parts(run) for run in runs]
    if len(set(paths)) < len(paths):
        paths = [
            (*parts[:-1], f"{parts[-1]}, step {run.step}")
            for parts, run in zip(paths, runs, strict=True)
        ]
    for length in range(1, max(map(len, paths)) + 1):
        names = ["/".join(parts[-length:]) for parts in paths]
        if len(set(names)) == len(names):
            return names
    return [f"{parts[-1]} ({number})" for number, parts in enumerate(paths, start=1)]


def _parts(run: TrainedRun) -> tuple[str, ...]:
    """Splits a run's path; reverse models and ensembles are told from the run alone."""
    *folders, name = run.directory.path.parts
    if isinstance(run.model, Ensemble):
        name = f"{name} and {len(run.model.members) - 1} more"
    return (*folders, f"{name}, reverse" if run.is_reverse else name)


def _chosen(runs: Sequence[DecodedRun], gold: GoldComparison | None) -> list[int]:
    """Chooses the pairs to show, in order: those of which every run has an output, gold first."""
    usable = [i for i in range(len(runs[0].split)) if all(one.found[i] for one in runs)]
    if gold is not None:
        # A stable sort: pairs with gold links come first, else the order stays.
        usable.sort(key=lambda index: index not in gold.links)
    return sorted(usable[:MOST_SHOWN])


def _between_words(
    runs: Sequence[DecodedRun],
    words: SplitWords,
    chosen: Sequence[int],
    gold: GoldComparison | None,
    reverse_name: str,
) -> Views:
    """Returns views between words: the outputs of all runs, then their references."""
    golds = {} if gold is None else gold.links
    outputs, references = {}, {}
    for number, one in enumerate(runs):
        known = gold is not None and number == 0  # the comparison has computed it already
        if known:
            attention = gold.forward
        else:
            attention = forced_words(one.run, one.split, words, one.run.alignment_shift)
        forced = ForcedView.forward(references_name(one.name), attention, one.run.params)
        outputs[one.name] = [
            # Outputs get the AER of their references, so that they can be sorted by it as well.
            output_words(one, words, index, forced[0].aer(index, golds))
            for index in chosen
        ]
        references |= {view.name: view.attentions(chosen, golds) for view in forced}
    if gold is not None and gold.reverse is not None:
        name = reverse_name or runs[0].name  # of a two-way aligner
        view = ForcedView.reverse(f"{name}, reversed", gold.reverse)
        references[view.name] = view.attentions(chosen, golds)
    return {**outputs, **references}


def _of_attributions(name: str, attributed: AttributedWords, chosen: Sequence[int]) -> Views:
    """Returns a view between words for each attribution method, of a run's references."""
    views = {}
    for method, label in attributed.labels.items():
        words = dict(zip(attributed.golds, attributed.words[method], strict=True))
        view = ForcedView(
            f"{references_name(name)}, {label}",
            {number: each.weights for number, each in words.items()},
            {number: each.links() for number, each in words.items()},
        )
        views[view.name] = view.attentions(chosen, attributed.golds)
    return views


def _sentence(
    shown: DecodedRun, index: int, words: SplitWords | None, gold: GoldComparison | None
) -> ViewerSentence:
    """Returns what all views of a pair share."""
    split = shown.split
    links = None if gold is None else gold.links.get(index)
    if words is None:
        ids, text = split.source_ids[index], split.sources[index]
        source, target = tokens_in_text(shown.run.source_vocabulary, ids, text), ()
    else:
        source, target = words.sources[index], words.targets[index]
    return ViewerSentence(
        source,
        target,
        str(index),
        (split.references[index] or [""])[0],
        sure=() if links is None else links.sure,
        possible=() if links is None else links.possible,
        text=split.sources[index],
    )
