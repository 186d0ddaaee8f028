"""Reports what the configs of this repository reach when they are trained; see `USAGE`."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from absl import flags

from attention_jax.commands import cli
from attention_jax.errors import UserError
from attention_jax.runs.config import changed_fields, from_config_dict, to_plain
from attention_jax.runs.files import write_text
from attention_jax.runs.provenance import short_commit
from attention_jax.runs.run_directory import read_json, writing
from attention_jax.sweeps import archive
from attention_jax.sweeps.archive import Record
from attention_jax.sweeps.records import record_of, require_finished
from attention_jax.sweeps.tables import NOTHING, table
from experiments.kit import templates

USAGE = """
Writes docs/results/configs.md: what the configs of this repository reach on their test sets.

usage: python -m experiments.trained_configs [--run=DIRECTORY,DIRECTORY]

  --run  finished runs of launch.train, whose records replace those of the same configs in
         docs/results/configs/records.zip first
"""
RECORDS = Path("docs/results/configs") / archive.FILE
REPORT = Path("docs/results/configs.md")
# Reported metrics by kind of task; a run is of the first kind whose first metric it has.
KINDS = {
    "Pronunciation of English (%, CMUdict test words)": {
        "per_no_stress": "PER, no stress",
        "wer_no_stress": "WER, no stress",
        "per": "PER",
        "wer": "WER",
    },
    "Translation (test set)": {
        "bleu": "BLEU",
        "chrf": "chrF",
        "perplexity": "perplexity",
        "length_ratio": "length ratio",
    },
    "Language models (test set, perplexity of subwords)": {
        "perplexity": "perplexity",
        "accuracy": "accuracy",
    },
}


def define_flags(argv: list[str]) -> list[str]:
    """Defines the program's flags, when it runs and not when it is imported."""
    flags.DEFINE_list("run", [], "Finished runs.")
    return argv


def main() -> None:
    """Keeps the records of the named runs, and writes the report of all records."""
    for run in map(Path, flags.FLAGS.run):
        keep(run)
    records = archive.load(RECORDS)
    if not records:
        raise UserError(f"{RECORDS}: expected a record, found none; name a finished run by --run")
    write_text(REPORT, report(records.outlines()))
    print(f"Written: {REPORT}")


def keep(run: Path) -> None:
    """Keeps the record of a run, replacing that of the same config.

    Raises:
      UserError: If the run is not finished, or not of a config as it is, or cannot be written.
    """
    name = config_name(run)
    require_finished(run)
    require_plain(run, name)
    record = record_of(run, name, read_json(run / "run.json")["seed"], {})
    with writing(RECORDS):
        archive.update(
            RECORDS,
            lambda known: {key: one for key, one in known.items() if one.cell != name}
            | {record.key: record},
        )


def config_name(run: Path) -> str:
    """Returns the name of the config that a run was made with, its argument included.

    Raises:
      UserError: If the run is not finished, or not of a config of this repository.
    """
    made = read_json(run / "run.json")
    if made is None:
        raise UserError(f"--run: expected a finished run, found no run.json in {run}")
    # `configs/NAME.py:ARGUMENT` becomes NAME-ARGUMENT, the record's cell.
    found = re.search(r"--config=configs/(\w+)\.py(?::(\w+))?", made["command"])
    if found is None:
        raise UserError(f"{run}: expected a run of a file in configs, found {made['command']!r}")
    return "-".join(part for part in found.groups() if part)


def require_plain(run: Path, name: str) -> None:
    """Checks that a run to be kept was made with the config as it is now, but for the seed.

    Records that were kept before may be of an earlier form of their config.

    Args:
      run: The run directory.
      name: The config's name; see `config_name`.

    Raises:
      UserError: If more than the seed has been changed.
    """
    module, _, argument = name.partition("-")
    location = f"configs/{module}.py" + (f":{argument}" if argument else "")
    now = to_plain(from_config_dict(cli.load_config(location)))
    made = to_plain(from_config_dict(read_json(run / "config.json")))
    changed = changed_fields(made, {**now, "seed": made["seed"]})
    if changed:
        differences = (f"{path} {old!r}, there {new!r}" for path, (old, new) in changed.items())
        raise UserError(
            f"{run}: expected a run of {location} as it is, found {'; '.join(differences)}"
        )


def report(records: Sequence[Record]) -> str:
    """Returns the report as Markdown, of records whose cells are the names of their configs."""
    parts = []
    for title, metrics in KINDS.items():
        chosen = [record for record in records if _kind(record) == title]
        if chosen:
            headings = ["config", *metrics.values(), "steps"]
            rows = [_row(record, metrics) for record in chosen]
            parts += [f"## {title}", table(headings, rows), *map(_made, chosen)]
    return templates.fill("configs", tables="\n\n".join(parts)) + "\n"


def _kind(record: Record) -> str:
    """Returns the kind of task: the first heading whose first metric was measured."""
    test = record.results["test"]
    return next(title for title, metrics in KINDS.items() if next(iter(metrics)) in test)


def _row(record: Record, metrics: Mapping[str, str]) -> list[str]:
    scores, (module, *_) = record.results["test"], record.cell.split("-")
    values = [f"{scores[metric]:.2f}" if metric in scores else NOTHING for metric in metrics]
    return [f"[{record.cell}](../../configs/{module}.py)", *values, f"{scores['step']:,}"]


def _made(record: Record) -> str:
    made = record.facts
    signature = made["evaluations"]["test"].get("bleu_signature")
    facts = [
        f"`{made['command']}`",
        f"seed {made['seed']}",
        f"{made['hardware']['cpus']} CPU cores",
        f"jax {made['versions']['jax']}",
        f"commit {short_commit(made['commit'])}",
        *([f"sacrebleu signature `{signature}`"] if signature else []),
    ]
    return f"{record.cell}: {', '.join(facts)}."


if __name__ == "__main__":
    cli.run(main, USAGE, define_flags)
