"""Evaluation of a trained run: perplexity, decoded outputs, their scores, alignments and plots."""

import contextlib
import dataclasses
import sys
from collections.abc import Mapping, Sequence

from attention_jax.analysis.resamples import write_resamples
from attention_jax.configuration import plain
from attention_jax.data.decoded import DecodedSplit, Gathered, Scores
from attention_jax.data.examples import Split
from attention_jax.data.loading import TaskData
from attention_jax.data.task import Statistics
from attention_jax.decoding.alignments import pharaoh_line
from attention_jax.decoding.forced_decoding import gather_outputs
from attention_jax.decoding.output_statistics import output_statistics
from attention_jax.decoding.output_text import OutputWriter
from attention_jax.decoding.searcher import Hypothesis, Searcher
from attention_jax.decoding.teacher_forcing import TeacherForcing, batches_of_process
from attention_jax.devices import processes
from attention_jax.discovery import Parts
from attention_jax.evaluation.latency import latency_scores
from attention_jax.evaluation.unknown import UNKNOWN, readable
from attention_jax.objectives import Objective
from attention_jax.runs import provenance
from attention_jax.runs.diagnoses import diagnosed
from attention_jax.runs.divergence import said_of
from attention_jax.runs.load import TrainedRun
from attention_jax.runs.progress import Counter

PAGES = Parts("attention_jax.analysis.pages", defines="write_page")


@dataclasses.dataclass(frozen=True, eq=False)
class Outputs:
    """Outputs of a run for a split.

    Attributes:
      split: The split.
      found: The hypotheses for each source, best first.
      texts: The best hypothesis for each source, in the form that is scored; see
        `evaluation.unknown`.
    """

    split: Split
    found: Sequence[Sequence[Hypothesis]]
    texts: Sequence[str]

    @property
    def readable(self) -> list[str]:
        """The best hypothesis for each source, in the form that people read."""
        return readable(self.texts)


class Evaluation:
    """Evaluation: decodes and scores splits of a run's task, and writes results into its directory.

    The run's config says how to search. Nothing is compiled before the first split.
    """

    def __init__(self, run: TrainedRun, task: TaskData):
        self._run = run
        self._data = task
        self._decode = Searcher(run.model, run.config.search, seed=run.config.seed)
        self._text_of = OutputWriter(
            run.config.search, run.source_vocabulary, run.target_vocabulary,
            run.alignment_shift, run.config.data.lowercase,
        )  # fmt: skip
        self._measure = TeacherForcing(
            run.model, Objective(run.config.objectives), run.strategy, run.shardings
        )

    def evaluate(self, name: str) -> dict[str, float]:
        """Decodes a split, scores the outputs, writes all files, and returns the metrics."""
        if self._run.task.continues:
            return self.measure(name)
        outputs = self.decode(name)
        metrics = self.write(outputs)
        if self.is_shown and processes.is_first():
            # Imported here because Matplotlib takes a second, for which no start should wait.
            from attention_jax.analysis.viewing import DecodedRun, write_run_viewer

            name = self._run.directory.path.name
            write_run_viewer(
                DecodedRun(name, self._run, outputs.split, outputs.found, outputs.readable)
            )
        return metrics

    @property
    def is_aligning(self) -> bool:
        """Whether the model's attention links target tokens to source tokens."""
        return self._run.links_tokens

    @property
    def is_shown(self) -> bool:
        """Whether the model's attention can be drawn: between tokens, to pictures or sound."""
        return self.is_aligning or self._run.draws_on_canvas

    def measure(self, name: str) -> dict[str, float]:
        """Teacher forcing: measures loss and perplexity of a split's targets, and writes them."""
        split = self._data.split(name)
        batches = batches_of_process(split, self._run.config, self._run.strategy)
        with said_of(f"{self._run.place}: {name}"):
            metrics = self._measure(self._run.params, batches)
        self._run.directory.add_results(name, {"step": self._run.step, **metrics})
        self._record(split, {}, is_searched=False)
        return metrics

    def decode(self, name: str) -> Outputs:
        """Decodes a split as the config's search says; writes nothing."""
        run, split = self._run, self._data.split(name)
        counter = Counter(f"decoding {name}", len(split))
        with said_of(f"{run.place}: {name}"), contextlib.closing(counter):
            found = self._decode(run.params, split, run.config.data, progress=counter.update)
        return Outputs(split, found, self._text_of.best(found, split.sources))

    def write(
        self,
        outputs: Outputs,
        more: Mapping[str, float] | None = None,
        statistics: Statistics | None = None,
    ) -> dict[str, float]:
        """Scores outputs and writes all files of the split except the viewer.

        These are `predictions.SPLIT.txt` and `.tsv`, `alignments.SPLIT.txt`, `resamples.SPLIT.npz`,
        `plots/attention.SPLIT.png` and `.svg`, the task's page, and the split's metrics in
        `results.json`. What is wrong with the outputs is said on the standard error.

        Args:
          outputs: The outputs for the split.
          more: Further metrics of the split, to be written with the others.
          statistics: Sufficient statistics beside the task's, by which runs can be compared.

        Returns:
          The metrics. Of several processes only the first scores and writes; the others return the
          loss and what else teacher forcing measures.

        Raises:
          DivergenceError: If the loss is not finite; nothing is written then.
        """
        run, split = self._run, outputs.split
        batches = batches_of_process(split, run.config, run.strategy)
        with said_of(f"{run.place}: {split.name}"):
            # Before the early return, for every process takes part in it.
            measured = self._measure(run.params, batches)
        if not processes.is_first():
            return measured
        gathered = self._gathered(split)
        decoded = self._decoded(outputs, gathered)
        scores = self._scores(decoded)
        self._write_outputs(outputs)
        known = dict(statistics or {})
        if run.task.statistics is not None:
            known |= run.task.statistics(split, outputs.texts, run.config.data)
        if run.task.detail_statistics is not None:
            known |= run.task.detail_statistics(decoded)
        if known:
            write_resamples(run.directory, split.name, known)
        signatures = {name: text for name, text in scores.items() if isinstance(text, str)}
        metrics = {**measured, **{k: v for k, v in scores.items() if k not in signatures}}
        metrics |= more or {}
        run.directory.add_results(split.name, {"step": run.step, **metrics})
        self._record(split, signatures)
        self._diagnose(outputs)
        if gathered and run.task.page:
            PAGES.find(run.task.page).write_page(run, split, outputs.readable, gathered)
        if self.is_shown:
            # Imported here because Matplotlib takes a second, for which no error should wait.
            from attention_jax.analysis import pictures

            pictures.draw_attention(run, split, outputs.found)
        return metrics

    def _diagnose(self, outputs: Outputs) -> None:
        """Says on the standard error what is wrong with outputs, if anything is."""
        search = self._run.config.search
        told = output_statistics(outputs.split, outputs.found, outputs.texts, search)
        for _, line in diagnosed(told):
            print(f"{outputs.split.name}: {line}", file=sys.stderr, flush=True)

    def _gathered(self, split: Split) -> Gathered:
        """Gathers the outputs of the model that the task names."""
        if not self._run.task.gathers:
            return {}
        return gather_outputs(self._run, split, self._run.task.gathers)

    def _decoded(self, outputs: Outputs, gathered: Gathered) -> DecodedSplit:
        return DecodedSplit(
            outputs.split, self._run.config.data, outputs.texts, self._lists(outputs),
            outputs.found, self._run.attends, self._run.alignment_shift, gathered,
        )  # fmt: skip

    def _scores(self, decoded: DecodedSplit) -> Scores:
        """Computes all scores that the task defines: those of training, and in detail."""
        task, scores = self._run.task, {}
        if task.scores is not None:
            scores |= task.scores(decoded.split, decoded.texts, decoded.data_config)
        for details in task.details:
            scores |= details(decoded)
        if self.is_aligning and "online" in self._run.model.provides:
            scores |= latency_scores(one[0].weights for one in decoded.hypotheses if one)
        return scores

    def _lists(self, outputs: Outputs) -> list[list[str]]:
        """Returns the texts of all hypotheses of each example, best first."""
        pairs = zip(outputs.found, outputs.split.sources, strict=True)
        return [[self._text_of(one, source, UNKNOWN) for one in found] for found, source in pairs]

    def _write_outputs(self, outputs: Outputs) -> None:
        """Writes predictions as text and as a table, and the alignments in Pharaoh format."""
        run, directory, split = self._run, self._run.directory, outputs.split
        texts = outputs.readable
        directory.write_lines(directory.predictions(split.name), texts)
        rows = zip(split.sources, texts, split.references, strict=True)
        table = [("source", "output", "reference")]
        table += [(source, text, references[0]) for source, text, references in rows]
        directory.write_table(directory.prediction_table(split.name), table)
        if not self.is_aligning:
            return
        vocabularies = run.source_vocabulary, run.target_vocabulary
        # A source without an output gets an empty line: line numbers are those of the split.
        lines = [
            pharaoh_line(best[0], ids, text, *vocabularies, run.alignment_shift) if best else ""
            for best, ids, text in zip(outputs.found, split.source_ids, split.sources, strict=True)
        ]
        directory.write_lines(directory.alignments(split.name), lines)

    def _record(self, split: Split, signatures: Scores, is_searched: bool = True) -> None:
        """Records how a split's results were made: time, command, search, metric signatures."""
        how = {
            "at": provenance.now(),
            "command": provenance.command_line(),
            **({"search": plain(self._run.config.search)} if is_searched else {}),
            "text": split.fingerprint,
            **signatures,
        }
        self._run.directory.record_evaluation(split.name, how)
