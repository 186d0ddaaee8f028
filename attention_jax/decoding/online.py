"""Online translation: an output is written while its line is still being read.

Greedy search as in `search.rollout`, one step at a time. A step is asked of what has been read so
far; where its attention does not stop there, or the rest of the line could make a difference, it is
forgotten, one more token is read, and the step is asked again. Every output is therefore that of a
search which has the whole line.

It waits for no more than it needs, and computes more than it had to: at each token that is read all
of them are encoded anew, S (S + 1) / 2 annotations for a line of S, and each of the at most S + T
steps scores all that has been read.
"""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attention_jax.data.incoming import incoming_lines, incoming_tokens
from attention_jax.decoding.searcher import usual_length
from attention_jax.errors import DivergenceError, UserError
from attention_jax.evaluation.latency import STOPPED
from attention_jax.models.ensemble import Ensemble
from attention_jax.models.online import why_it_waits
from attention_jax.runs.divergence import said_of
from attention_jax.runs.load import TrainedRun
from attention_jax.search.config import SearchConfig
from attention_jax.search.lengths import length_limits
from attention_jax.search.method import enlarged
from attention_jax.search.vocabulary import mask_logits, searched_scores
from attention_jax.types import Params, SpecialIds, arrays_of

_SEPARATOR = " ||| "
_LEAST_ROOM = 16  # tokens of the source that a program is first compiled for


def check_online(run: TrainedRun) -> None:
    """Raises `UserError` for a run that cannot write before it has read its whole source."""
    search, model = run.config.search, run.model
    # What no option mends comes first.
    if isinstance(model, Ensemble):
        raise UserError(f"--online: expected one run, found an ensemble of {len(model.members)}")
    if not run.links_tokens:
        raise UserError(
            "--online: expected a model that attends to tokens of its source, found none"
        )
    reason = why_it_waits(model)
    if reason is not None:
        raise UserError(f"--online: {reason}")
    source = model.begins_from
    # Tags and the like would have to be known before their line has been read.
    further = set(model.fields) - set(arrays_of(source))
    if further:
        raise UserError(
            f"--online: expected a model that reads nothing but {source!r}, found "
            f"{', '.join(sorted(further))}"
        )
    if search.method != "greedy":
        raise UserError(
            f"--online: expected --search.method=greedy, for what is written stays, found "
            f"{search.method!r}"
        )
    if search.replace_unknown:
        raise UserError("--online: expected a search without replace_unknown, found it")
    if search.shortlist:
        raise UserError(
            "--online: expected --search.shortlist=0, for the source is not yet known, found "
            f"{search.shortlist}"
        )
    if search.dtype != "float32":
        raise UserError(
            f"--online: expected --search.dtype=float32, found {search.dtype!r}: a word at a time "
            "gains nothing from less"
        )


class _Source:
    """The tokens of a line, as far as they have been read."""

    def __init__(self, tokens: Iterator[int]):
        self._tokens = tokens
        self.ids: list[int] = []
        self.has_ended = False

    def read(self) -> None:
        """Reads one more token, which is EOS where the line has ended."""
        token = next(self._tokens, None)
        self.has_ended = token is None
        self.ids.append(SpecialIds.EOS if token is None else token)

    @property
    def count(self) -> int:
        """How many tokens have been read, EOS left aside."""
        return len(self.ids) - self.has_ended


class OnlineTranslator:
    """Translates lines while they are read."""

    def __init__(self, run: TrainedRun):
        """Compiles nothing yet.

        Raises:
          UserError: If the run's model or search is not for that.
        """
        check_online(run)
        self._run = run
        # On one device: a batch of one line is nothing to divide among several.
        self._params = jax.device_put(jax.device_get(run.params))
        self._start = jax.jit(run.model.start, static_argnames="max_length")
        # One program for each power of two of source and output, see `_power_of_two`.
        self._step = jax.jit(self._ask)

    def translate(self, characters: Iterator[str], place: str = "input line") -> Iterator[str]:
        """Translates a line.

        Args:
          characters: Of the line, as they come.
          place: Which line it is, for messages.

        Yields:
          Parts of the output as soon as they are known, and at last, for each of its tokens, how
          many tokens of the line had been read when it was written; nothing for a blank line.
        """
        run, printed = self._run, ""
        tokens = incoming_tokens(characters, run.source_vocabulary, self._prepare, place)
        written: list[int] = []
        counts: list[int] = []
        with said_of(run.place):
            for token, count in self.search(tokens):
                written.append(token)
                counts.append(count)
                text = run.target_vocabulary.decode(written)
                # A decoded text grows at its end only: what has been printed is never taken back.
                yield text.removeprefix(printed)
                printed = text
        if counts:
            yield _SEPARATOR + " ".join(map(str, counts))

    def search(self, tokens: Iterator[int]) -> Iterator[tuple[int, int]]:
        """Yields each token of the output, without EOS, and how much had been read by then.

        Args:
          tokens: The source's, as they come, without EOS; none for no output.
        """
        source, state, written = _Source(tokens), None, []
        source.read()
        # A blank line has no output, as in a search that has all of it.
        if source.has_ended:
            return
        while True:
            room = _power_of_two(usual_length(len(source.ids)), len(written) + 1)
            memory, first = self._start(self._params, self._batch(source.ids), max_length=room)
            # What has been written is kept, in arrays that have room for more.
            state = first if state is None else enlarged(state, first)
            while len(written) < room:
                token, after = self._next(memory, state, written, source, room)
                # Asked too early: the state after it is dropped, and more is read before asking
                # again.
                if token is None:
                    source.read()
                    break
                if token == SpecialIds.EOS:
                    return
                state = after
                written.append(token)
                yield token, source.count

    def _next(
        self, memory: Any, state: Any, written: list[int], source: _Source, room: int
    ) -> tuple[int | None, Any]:
        """Returns the next token and the state after it; None where more has to be read first."""
        search, place, length = self._run.config.search, len(written), len(source.ids)
        before = np.zeros(room, np.int32)
        before[:place] = written
        # As long as the line goes on, its length sets no limit: two more tokens are always allowed.
        limits = _limits(search, length) if source.has_ended else (0, place + 2)
        token, has_stopped, is_finite, after = self._step(
            self._params, memory, state, before, np.int32(place), *map(np.int32, limits)
        )
        if not is_finite:
            raise DivergenceError("the probabilities of an output are nan")
        token = int(token)
        # EOS may come too early for a line that turns out longer.
        may_end = token != SpecialIds.EOS or search.min_length_ratio == 0.0
        goes_on = place + 1 < search.longest(length + 1)  # EOS is to come, at least
        # Attention that has stopped will not look at what is read later: the token stays what it
        # is.
        is_settled = source.has_ended or (bool(has_stopped) and may_end and goes_on)
        return (token if is_settled else None), after

    def _ask(
        self,
        params: Params,
        memory: Any,
        state: Any,
        written: jax.Array,
        place: jax.Array,
        shortest: jax.Array,
        longest: jax.Array,
    ) -> tuple[jax.Array, jax.Array, jax.Array, Any]:
        """Takes one step.

        Returns:
          (token, whether all attention has stopped, whether there is a best token, state).
        """
        # Traced, not branched on: at the first place the last entry is read, and thrown away.
        last = jnp.where(place > 0, written[place - 1], SpecialIds.BOS)
        # A batch of one line, with one hypothesis: tokens are 1 1, weights 1 1 S.
        predictions, weights, state = self._run.model.step(params, memory, state, last[None, None])
        search = self._run.config.search
        logits, normalizer = searched_scores(predictions, search)
        allowed = mask_logits(
            logits, written[:, None, None], search, place, shortest[None], longest[None]
        )
        is_finite = jnp.isfinite(normalizer).all()
        return jnp.argmax(allowed), weights.sum() > STOPPED, is_finite, state

    def _prepare(self, text: str) -> str:
        run = self._run
        return run.task.prepare(text, run.config.data, is_source=not run.is_reverse)

    def _batch(self, ids: list[int]) -> dict[str, np.ndarray]:
        # EOS is among the ids only once the line has ended; until then nothing tells where it will.
        size, name = _power_of_two(len(ids), _LEAST_ROOM), self._run.model.begins_from
        padded = np.full((1, size), SpecialIds.PAD, np.int32)
        padded[0, : len(ids)] = ids
        is_real = np.arange(size)[None] < len(ids)
        return dict(zip(arrays_of(name), (padded, is_real), strict=True))


def translate_standard_input(run: TrainedRun, *others: str) -> Iterator[str]:
    """Translates each line of the standard input as it comes, and yields what is to be printed.

    Args:
      run: A trained run.
      others: Names of flags that were given and do not go with it.

    Raises:
      UserError: If there are such, or the run's model or search is not for that.
    """
    if others:
        raise UserError(f"--online: expected no --{others[0]} beside it, found both")
    translator = OnlineTranslator(run)
    for number, line in enumerate(incoming_lines(), start=1):
        yield from translator.translate(line, f"input line {number}")
        yield "\n"


def _limits(search: SearchConfig, length: int) -> tuple[int, int]:
    """Returns the fewest and the most tokens of the output of a source of known length."""
    limits = length_limits(search, jnp.asarray([length]), search.longest(length))
    return tuple(int(limit[0]) for limit in limits)


def _power_of_two(*sizes: int) -> int:
    """Returns the power of two that is as large as all sizes, so that few programs are compiled."""
    return 1 << (max(sizes) - 1).bit_length()
