"""Translation: decodes lines of text with a trained model, and formats n-best lists."""

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from attention_jax.data.examples import Inputs
from attention_jax.data.pictures import Canvas
from attention_jax.data.task import further_fields
from attention_jax.data.text.vocabulary import tokens_in_text
from attention_jax.decoding.alignments import pharaoh_line
from attention_jax.decoding.origins import Origins, check_copying, origins, written_outputs
from attention_jax.decoding.output_text import OutputWriter
from attention_jax.decoding.prefixes import check_prefixable, with_prefixes
from attention_jax.decoding.searcher import Hypothesis, Searcher
from attention_jax.errors import ConfigError, DataError, UserError
from attention_jax.runs.divergence import said_of
from attention_jax.runs.load import TrainedRun
from attention_jax.runs.progress import Counter
from attention_jax.search import SearchConfig
from attention_jax.types import SpecialIds

SEPARATOR = " ||| "


@dataclasses.dataclass(frozen=True)
class Translation:
    """A line of text and its outputs.

    Attributes:
      source: The line as the model was given it.
      source_ids: Its ids, ending in EOS.
      hypotheses: The outputs, best first; none for an empty line.
      make_canvas: Makes what attention to its source is drawn on, where that is not its tokens.
    """

    source: str
    source_ids: np.ndarray
    hypotheses: Sequence[Hypothesis]
    make_canvas: Callable[[], Canvas] | None = None

    @property
    def canvas(self) -> Canvas | None:
        """What attention to its source is drawn on, made anew; None where that is its tokens."""
        return self.make_canvas and self.make_canvas()


class Translator:
    """Translation of lines of text by a trained run."""

    def __init__(self, run: TrainedRun, *, nbest: int = 0):
        """Checks the search; nothing is compiled before the first line.

        Args:
          run: A trained run; its config says how to search.
          nbest: Length of the n-best lists; 0 for the best output alone, without its scores.

        Raises:
          ConfigError: If the search cannot return as many outputs, or does not fit the model or
            its vocabularies.
          DataError: If the dictionary of unknown words cannot be read.
        """
        search = run.config.search
        check_nbest(search, nbest)
        if nbest:
            search = dataclasses.replace(search, num_hypotheses=nbest)
        self._run = run
        self._nbest = nbest
        self._decode = Searcher(run.model, search, seed=run.config.seed)
        self._text_of = OutputWriter(
            search, run.source_vocabulary, run.target_vocabulary,
            run.alignment_shift, run.config.data.lowercase,
        )  # fmt: skip

    def translate(
        self,
        lines: Sequence[str],
        further: Mapping[str, Sequence[str]] = {},  # noqa: B006
        prefixes: Sequence[str] | None = None,
        *,
        counted: bool = False,
    ) -> list[Translation]:
        """Translates lines in order; a blank line has no output.

        A language model continues each line instead, also a blank one.

        Args:
          lines: The lines of the first source.
          further: Those of each further source that the model reads, by its name.
          prefixes: What the output of each line begins with, blank where it is free; see
            `decoding.prefixes`.
          counted: Whether a terminal is shown how many are done.

        Raises:
          DataError: If a line is too long, no output can begin with it or its prefix, or what it
            names cannot be read, or there are other lines of a further source, or of prefixes, than
            of the first; all lines are checked before any is translated.
          UserError: If outputs of the run cannot be given prefixes.
          DivergenceError: If the model's numbers are not finite.
        """
        run, task = self._run, self._run.task
        texts = self._all_prepared(lines, "input")
        others = self._further_lines(len(lines), further)
        begun = None if prefixes is None else self._prepared_prefixes(texts, prefixes)
        # Blank lines are left out of the search, and put back in their places after it.
        full = [number for number, text in enumerate(texts) if text.strip() or task.continues]
        vocabulary = getattr(run, f"{task.input_side}_vocabulary")
        fields = (*task.input_fields, *further_fields(task, run.model.fields))
        fields = tuple(field for field in fields if field.name not in run.unread_sources)
        known = [texts[number] for number in full]
        extras = {
            name: self._values(name, [part[number] for number in full])
            for name, part in others.items()
        }
        extras |= task.read(known, run.config.data) if task.read else {}
        inputs = Inputs(known, vocabulary, fields, extras, run.resources, run.target_vocabulary)
        if task.continues:
            self._check_prompts(inputs)
        told: Sequence[tuple] = [()] * len(full)
        if begun is not None:
            numbers = [number + 1 for number in full]
            inputs, told = with_prefixes(run, inputs, [begun[number] for number in full], numbers)
        counter = Counter("translating", len(full))
        count = counter.update if counted else lambda done: None
        decode = functools.partial(self._decode, progress=count)
        with said_of(run.place), contextlib.closing(counter):
            count(0)
            found = decode(run.params, inputs, run.config.data) if full else []
        nothing = np.zeros(0, np.int32)
        translations = [Translation(text, nothing, ()) for text in texts]
        for place, (number, hypotheses) in enumerate(zip(full, found, strict=True)):
            data = run.config.data
            make = task.canvas and functools.partial(task.canvas, inputs, place, data)
            ids = inputs.source_ids[place]
            if told[place]:
                hypotheses = [dataclasses.replace(each, told=told[place]) for each in hypotheses]
            translations[number] = Translation(texts[number], ids, hypotheses, make)
        return translations

    def _prepared_prefixes(self, sources: Sequence[str], prefixes: Sequence[str]) -> list[str]:
        """Brings prefixes of the outputs of sources into the form of the data's targets."""
        check_prefixable(self._run)
        if len(prefixes) != len(sources):
            raise DataError(
                f"--prefix: expected {len(sources)} lines, as in the input, found {len(prefixes)}"
            )
        found = self._all_prepared(prefixes, "--prefix", is_source=self._run.is_reverse)
        for number, (source, prefix) in enumerate(zip(sources, found, strict=True), start=1):
            if prefix.strip() and not source.strip():
                raise DataError(
                    f"--prefix line {number}: expected none beside an empty line of the input, "
                    f"found {prefix!r:.80}"
                )
        return found

    def _all_prepared(
        self, lines: Sequence[str], where: str, *, is_source: bool | None = None
    ) -> list[str]:
        """Brings lines into the form of the data; raises `DataError` at the first that cannot be.

        All are checked for their length first.
        """
        most = self._run.task.longest_text
        for number, line in enumerate(lines, start=1):
            if len(line) > most:
                raise DataError(
                    f"{where} line {number}: expected at most {most} characters, found {len(line)}"
                )
        side = not self._run.is_reverse if is_source is None else is_source
        return [
            self._prepared(line, f"{where} line {number}", side)
            for number, line in enumerate(lines, start=1)
        ]

    def _prepared(self, line: str, where: str, is_source: bool) -> str:
        try:
            return self._run.task.prepare(line, self._run.config.data, is_source=is_source)
        except DataError as error:
            raise DataError(f"{where}: {error}") from None

    def _values(self, name: str, lines: Sequence[str]) -> Sequence[Any]:
        """Returns the texts of a further source, or what its lines name.

        Raises:
          DataError: If that cannot be read.
        """
        try:
            return self._run.task.named_by(name, lines, self._run.config.data)
        except DataError as error:
            raise DataError(f"--source={name}: {error}") from None

    def _further_lines(
        self, count: int, given: Mapping[str, Sequence[str]]
    ) -> dict[str, list[str]]:
        """Returns the lines of the further sources that the model reads, `count` of each.

        Raises:
          DataError: If one is missing, is not read, or has another number of lines.
        """
        run = self._run
        read = run.further_sources
        for name in given:
            if name not in read:
                known = ", ".join(read) or "none, as the model reads one source"
                raise DataError(f"--source: expected further sources ({known}), found {name!r}")
        found = {}
        for name in read:
            if name not in given:
                raise DataError(
                    f"--source: expected {name}=FILE, with a line for each of the input, found none"
                )
            if len(given[name]) != count:
                raise DataError(
                    f"--source={name}: expected {count} lines as in the input, found "
                    f"{len(given[name])}"
                )
            is_text = name not in run.task.beside
            found[name] = (
                self._all_prepared(given[name], f"--source={name}") if is_text else [*given[name]]
            )
        return found

    def _check_prompts(self, prompts: Inputs) -> None:
        """Raises `DataError` at the first line with which no output of the search can begin."""
        for number, ids in enumerate(prompts.source_ids, start=1):
            room = self._run.config.search.longest(len(ids))
            if room < len(ids):
                raise DataError(
                    f"input line {number}: expected at most {room} tokens with its end, by "
                    f"search.max_length_factor and search.max_length_constant, found {len(ids)}"
                )
            if SpecialIds.UNK in ids:
                tokens = tokens_in_text(prompts.source_vocabulary, ids, prompts.sources[number - 1])
                unknown = tokens[list(ids).index(SpecialIds.UNK)]
                raise DataError(
                    f"input line {number}: expected words of the vocabulary, found {unknown!r}"
                )

    def format(
        self,
        translations: Sequence[Translation],
        *,
        alignments: bool = False,
        explain: bool = False,
    ) -> Iterator[str]:
        """Yields the lines to print, fields separated by ` ||| ` as Moses writes n-best lists.

        Args:
          translations: The results of `translate`.
          alignments: Whether a line ends with its word alignment.
          explain: Whether a line ends with what of it was generated, and what copied.

        Raises:
          UserError: If alignments are requested of a model without attention to the source, or
            explanations of one that does not copy.
        """
        check_aligning(self._run, *(["alignments"] if alignments else []))
        explained = self._origins(translations) if explain else iter(())
        for number, translation in enumerate(translations):
            hypotheses = self._shown(translation)
            if not hypotheses and not self._nbest:
                yield ""  # one line of output for one of input; an n-best list is numbered instead
            for hypothesis in hypotheses:
                fields = [self._text_of(hypothesis, translation.source)]
                if self._nbest:
                    scores = f"{hypothesis.log_prob:.4f} {hypothesis.score:.4f}"
                    fields = [str(number), *fields, scores]
                if alignments:
                    fields.append(self._alignment(translation, hypothesis))
                if explain:
                    fields.append(str(next(explained)))
                yield SEPARATOR.join(fields)

    def shown(self, translations: Sequence[Translation]) -> list[tuple[int, Hypothesis]]:
        """Returns what `format` prints: the number of a line, from 0, and an output of it."""
        return [(n, best) for n, each in enumerate(translations) for best in self._shown(each)]

    def _shown(self, translation: Translation) -> Sequence[Hypothesis]:
        return translation.hypotheses[: max(self._nbest, 1)]

    def _origins(self, translations: Sequence[Translation]) -> Iterator[Origins]:
        """Tells the origins of all outputs that are shown, in their order."""
        check_copying(self._run, "explain")
        shown = [(one.source, best.tokens) for one in translations for best in self._shown(one)]
        return iter(origins(self._run, written_outputs(self._run, *zip(*shown, strict=True)))
                    if shown else ())  # fmt: skip

    def _alignment(self, translation: Translation, hypothesis: Hypothesis) -> str:
        run = self._run
        vocabularies = run.source_vocabulary, run.target_vocabulary
        source = translation.source_ids, translation.source
        return pharaoh_line(hypothesis, *source, *vocabularies, run.alignment_shift)


def check_nbest(search: SearchConfig, nbest: int) -> None:
    """Raises `ConfigError` if a search does not return as many outputs."""
    if search.method == "beam" and nbest > search.beam_size:
        raise ConfigError(
            f"--nbest: expected at most search.beam_size ({search.beam_size}), found {nbest}; "
            f"--search.beam_size={nbest} gives as many"
        )
    if search.method == "greedy" and nbest > 1:
        raise ConfigError(f"--nbest: expected at most 1 with greedy search, found {nbest}")


def check_aligning(run: TrainedRun, *flags: str) -> None:
    """Raises `UserError`, naming the first flag for which a run's model attends to nothing."""
    for flag in flags:
        if not (run.links_tokens or flag == "plot" and run.draws_on_canvas):
            raise UserError(
                f"--{flag}: expected a model that attends to tokens of its source, found none"
            )
