"""Results of a measuring program: a JSON file, and the Markdown page generated from it.

Results are lists by workload, of one result for each kind of processor that it was measured on.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attention_jax.errors import RunDirectoryError
from attention_jax.runs.provenance import short_commit
from experiments.kit import templates

_KINDS = ("cpu", "gpu", "tpu")  # what names the hardware of a result, as far as it has them


def load(path: Path) -> Any:
    """Returns the results so far as JSON holds them, an empty dict if there is no file yet."""
    if not path.exists():
        return {}
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise RunDirectoryError(f"{path}: expected results as JSON, found something else") from None
    except OSError as error:
        raise RunDirectoryError(f"{path}: expected to read results, found {error}") from None


def write(path: Path, results: Any, markdown: str) -> None:
    """Writes results as JSON and, beside it, as Markdown.

    Raises:
      RunDirectoryError: If the files cannot be written.
    """
    write_text(path, json.dumps(results, indent=1) + "\n")
    write_text(path.with_suffix(".md"), markdown)


def write_text(path: Path, text: str) -> None:
    """Writes a file of results; raises as `write`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RunDirectoryError(f"{path}: expected to write results, found {error}") from None


def load_results(path: Path) -> dict[str, Any]:
    """Returns the results so far; raises as `load`, also for a file without lists of results."""
    results = load(path)
    is_by_workload = isinstance(results, Mapping)
    if not is_by_workload or not all(isinstance(each, list) for each in results.values()):
        raise RunDirectoryError(
            f"{path}: expected lists of results by workload, found results of an older program"
        )
    return results


def of_machine(
    results: Sequence[Mapping[str, Any]], hardware: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    """Returns the result of a kind of processor, GPU or TPU; None if there is none."""

    def kind(hardware: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(map(hardware.get, _KINDS))

    kinds = ((each, kind(each.get("hardware", {}))) for each in results)  # older ones have none
    return next((each for each, known in kinds if known == kind(hardware)), None)


def appended(
    results: Sequence[Mapping[str, Any]], new: Mapping[str, Any]
) -> list[Mapping[str, Any]]:
    """Adds a result; it takes the place of an earlier one of the same kind of processor."""
    old = of_machine(results, new["hardware"])
    return [new if each is old else each for each in results] + ([new] if old is None else [])


def load_measured(path: Path) -> list[Mapping[str, Any]]:
    """Returns the results of a program with a single one for each processor; raises as `load`."""
    return several(load(path))


def several(found: Any) -> list[Mapping[str, Any]]:
    """Returns results as a list; a single one is from before there were several."""
    return [found] if isinstance(found, Mapping) and found else list(found)


def beside(
    page: Callable[[Mapping[str, Any]], str], results: Sequence[Mapping[str, Any]]
) -> str:
    """Returns a program's page of its first result, and below it those of other processors.

    Args:
      page: Makes the page of one result.
      results: One for each processor.
    """
    first, *others = results
    sections = [page(first)]
    for each in others:
        _, *lines = page(each).split("\n")  # without its title
        deeper = (f"#{line}" if line.startswith("#") else line for line in lines)
        sections.append("\n".join([f"## On {each['hardware']['cpu']}", *deeper]))
    return "\n".join(sections)


def write_beside(
    path: Path, page: Callable[[Mapping[str, Any]], str], new: Mapping[str, Any]
) -> list[Mapping[str, Any]]:
    """Adds a result to those of other processors, writes all as `write` does, and returns them."""
    results = appended(load_measured(path), new)
    write(path, results, beside(page, results))
    return results


def page(
    title: str,
    results: Mapping[str, Sequence[Mapping[str, Any]]],
    template: str = "speed",
    table_of: Callable[[Mapping[str, Any]], str] | None = None,
) -> str:
    """Returns the Markdown page of a program.

    Args:
      title: Of the page.
      results: Lists by workload.
      template: Says what the tables show.
      table_of: Makes the table of a workload; `table` if None.
    """
    workloads = []
    for measured in results.values():
        tables = ([(table_of or table)(result), "", *_notes(result)] for result in measured)
        texts = ("\n".join(lines) for lines in tables)
        workloads.append("\n\n".join([f"## {measured[0]['title']}", *texts]))
    return templates.fill(template, title=title, workloads="\n\n".join(workloads)) + "\n"


def table(result: Mapping[str, Any]) -> str:
    """Returns the table of a workload.

    Speeds are medians over rounds; the ratio is the median, and in brackets the range, of the
    rounds' own ratios.
    """
    contenders = result["contenders"]
    first = next(iter(contenders))
    units = [name for name in contenders[first]["rates"] if name != "calls"]
    with_temporaries = any("temporaries_mib" in each for each in contenders.values())
    headings = ["contender", "ms", *(f"{name}/s" for name in units), f"{first} against it"]
    headings += ["temporaries MiB", "rise of memory MiB"] if with_temporaries else []
    with_device = any("device_mib" in each for each in contenders.values())
    with_steady = any("steady_rss_mib" in each for each in contenders.values())
    headings += ["device memory MiB"] if with_device else ["peak memory MiB"]
    headings += ["steady memory MiB"] if with_steady else []
    headings += ["other load"]
    lines = [_row(headings), _row(["---"] + ["---:"] * (len(headings) - 1))]
    for name, each in contenders.items():
        cells = [name, f"{each['milliseconds']['median']:.1f}"]
        cells += [f"{each['rates'][unit]['median']:.0f}" for unit in units]
        cells.append("1" if name == first else with_range(each["first_against_it"]))
        if with_temporaries:
            temporaries = each.get("temporaries_mib")
            cells.append("" if temporaries is None else f"{temporaries:.1f}")
            cells.append(f"{each['rise_mib']:.0f}")
        cells.append(f"{peak_memory(each):.0f}")
        if with_steady:
            cells.append(f"{each['steady_rss_mib']:.0f}" if "steady_rss_mib" in each else "")
        cells.append(f"{each['other_load']:.2f}")
        lines.append(_row(cells))
    for name, reason in result["failures"].items():
        lines.append(_row([name, f"not measured: {reason}"] + [""] * (len(headings) - 2)))
    return "\n".join(lines)


def peak_memory(contender: Mapping[str, Any]) -> float:
    """Returns the peak of a contender (MiB): of its GPU's memory where it used one."""
    return contender.get("device_mib", contender["peak_rss_mib"])


def _notes(result: Mapping[str, Any]) -> list[str]:
    description = result["description"]
    versions = sorted({each["version"] for each in result["contenders"].values()})
    memory = "kept by the processes" if description["keep_memory"] else "as the system has it"
    lines = [
        f"`{result['command']}` at {short_commit(result['commit'])}, {result['time']}; "
        f"{', '.join(versions)}; {processor(result)}, "
        f"{description['conditions']['rounds']} rounds; freed memory {memory}."
    ]
    if result["agreement"]:
        differences = ", ".join(f"{name} {by:.1e}" for name, by in result["agreement"].items())
        share = result.get("near_ties", 0.0)
        tied = f", but for up to {100 * share:.1f} % of the values, of near ties in a beam"
        but = tied if share else ""
        lines += ["", f"Relative difference of what equal weights computed{but}: {differences}."]
    return lines


def processor(result: Mapping[str, Any]) -> str:
    """Names what a result was measured on."""
    first = next(iter(result["contenders"].values()))
    threads = f"{result['hardware']['cpu']}, {result['description']['threads']} threads"
    return f"{first['device']} beside {threads}" if "device" in first else threads


def with_range(values: Mapping[str, float]) -> str:
    """Writes a median with its range in brackets."""
    return f"{values['median']:.2f} ({values['min']:.2f}–{values['max']:.2f})"


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
