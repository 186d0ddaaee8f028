"""Evaluating a trained run: perplexity, outputs, their scores, alignments and pictures."""

from collections.abc import Sequence

from attention_jax.configuration import plain
from attention_jax.data.tasks import Split, Task
from attention_jax.objectives import Objective
from attention_jax.training import provenance
from attention_jax.training.alignments import pharaoh_line
from attention_jax.training.decode import Decoder, Hypothesis
from attention_jax.training.outputs import OutputWriter
from attention_jax.training.progress import Counter
from attention_jax.training.run_directory import RunDirectory, read_json
from attention_jax.training.scoring import Scores, score_by_length, score_outputs
from attention_jax.training.trained import TrainedRun
from attention_jax.training.validation import Measurement, batches_of_process

# The metrics that are worth a look, in the order in which they are shown.
_SHOWN = ("per", "wer", "per_no_stress", "wer_no_stress", "bleu", "chrf", "length_ratio",
          "aer", "match", "perplexity", "accuracy")  # fmt: skip


class Evaluation:
    """Evaluates the splits of a run's task and writes what it finds into its directory."""

    def __init__(self, run: TrainedRun, task: Task):
        """Compiles nothing yet.

        Args:
          run: A trained run; its config says how to search.
          task: The run's task.
        """
        self._run = run
        self._task = task
        self._decode = Decoder(run.model, run.config.search, seed=run.config.seed)
        self._text_of = OutputWriter(
            run.config.search, run.source_vocabulary, run.target_vocabulary
        )
        self._measure = Measurement(
            run.model, Objective(run.config.objectives), run.mesh, run.shardings
        )

    def evaluate(self, name: str) -> dict[str, float]:
        """Evaluates a split.

        Writes `predictions.NAME.txt`, `alignments.NAME.txt`, `plots/attention.NAME.png` and the
        split's metrics in `results.json`.

        Args:
          name: The split.

        Returns:
          The metrics.
        """
        run, split = self._run, self._task.split(name)
        counter = Counter(f"decoding {name}", len(split))
        measured = self._measure(run.params, batches_of_process(split, run.config))
        found = self._decode(run.params, split, run.config.data, progress=counter.update)
        counter.close()
        outputs = self._text_of.best(found, split.sources)
        scores = score_outputs(self._task.kind, split, outputs)
        scores |= score_by_length(self._task.kind, split, outputs)
        self._write(split, outputs, found)
        signatures = {name: text for name, text in scores.items() if isinstance(text, str)}
        metrics = {**measured, **{k: v for k, v in scores.items() if k not in signatures}}
        run.directory.add_results(name, {"step": run.step, **metrics})
        self._record(name, signatures)
        return metrics

    def _write(
        self, split: Split, outputs: Sequence[str], found: Sequence[Sequence[Hypothesis]]
    ) -> None:
        run, directory = self._run, self._run.directory
        directory.write_lines(directory.predictions(split.name), outputs)
        if not getattr(run.model, "is_aligning", True):
            return
        lines = [
            pharaoh_line(best[0], ids, run.source_vocabulary, run.target_vocabulary) if best else ""
            for best, ids in zip(found, split.source_ids, strict=True)
        ]
        directory.write_lines(directory.alignments(split.name), lines)
        # Matplotlib takes a second to import, which no start should wait for.
        from attention_jax.training import pictures, viewing

        pictures.draw_attention(run, split, found)
        viewing.write_run_viewer(run, split, found, outputs)

    def _record(self, name: str, signatures: Scores) -> None:
        """Notes how the results of a split came about."""
        directory = self._run.directory
        evaluations = (read_json(directory.run) or {}).get("evaluations", {})
        evaluations[name] = {
            "at": provenance.now(),
            "command": provenance.command_line(),
            "search": plain(self._run.config.search),
            **signatures,
        }
        directory.add_to_run(evaluations=evaluations)


def format_results(directory: RunDirectory) -> str:
    """Returns the results of a run as a few lines for the screen."""
    lines = []
    for split, metrics in (read_json(directory.results) or {}).items():
        shown = [f"{name} {metrics[name]:.2f}" for name in _SHOWN if name in metrics]
        lines.append(f"{split:<12}{'  '.join(shown)}")
    return "\n".join([*lines, f"Everything is in {directory.path}"])
