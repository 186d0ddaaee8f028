"""The measured series: training steps that differ in one size."""

import dataclasses
import itertools
import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.benchmarks.scaling.subjects import RECURRENT, TRANSFORMER, Subject
from experiments.benchmarks.speed.harness import KEEP_MEMORY, Contender

CPU, GPU, TPU = "cpu", "gpu", "tpu"
MECHANISMS = ("none", "bahdanau", "local_m", "local_p")
_JAX_NAMES = {CPU: "cpu", GPU: "cuda", TPU: "tpu"}
_MOST_SIMULATED, _MOST_SIMULATED_SMOKE = 8, 2


@dataclasses.dataclass(frozen=True)
class SeriesPoint:
    """A point of a series: one number to measure.

    Attributes:
      line: Name of its curve within the series.
      x: Position on the series' axis.
      subject: The training step that is measured.
      devices: Number of devices.
    """

    line: str
    x: int
    subject: Subject
    devices: int = 1

    @property
    def name(self) -> str:
        """What it is called among the contenders of its series."""
        return f"{self.line} {self.x}"

    def contender(self, platform: str) -> Contender:
        """Returns the process that measures it; a CPU is divided into devices for it."""
        task = {"subject": dataclasses.asdict(self.subject), "devices": self.devices}
        environment = {"JAX_PLATFORMS": _JAX_NAMES[platform]}
        if platform == CPU:
            # XLA reads it when the process starts, so it has to be in the environment.
            simulated = f"--xla_force_host_platform_device_count={self.devices}"
            flags = [os.environ.get("XLA_FLAGS", ""), simulated]
            environment |= {"XLA_FLAGS": " ".join(filter(None, flags)), **KEEP_MEMORY}
        command = (sys.executable, "-m", "experiments.benchmarks.scaling.worker", json.dumps(task))
        return Contender(self.name, command, environment)


@dataclasses.dataclass(frozen=True)
class Series:
    """Points along one axis.

    Attributes:
      name: Its key in the results.
      title: What it shows.
      axis: What changes along it.
      points: The numbers.
    """

    name: str
    title: str
    axis: str
    points: Sequence[SeriesPoint]

    def groups(self, platform: str) -> list[list[SeriesPoint]]:
        """Groups the points that are measured in turns.

        On a CPU, the points of a curve; on accelerators each point alone, since a process keeps
        its devices to itself.
        """
        if platform != CPU:
            return [[point] for point in self.points]
        lines: dict[str, list[SeriesPoint]] = {}
        for point in self.points:
            lines.setdefault(point.line, []).append(point)
        return list(lines.values())

    def describe(self) -> list[dict[str, Any]]:
        """Returns everything that decides what is measured, but for code and machine."""
        return [dataclasses.asdict(point) for point in self.points]


@dataclasses.dataclass(frozen=True)
class SeriesPlan:
    """The sizes of all series.

    Attributes:
      base: What all but one size is taken from.
      batches: Sentences in a batch.
      lengths: Tokens of source and target.
      hidden: Depths of hidden layers.
      source_lengths: Tokens of the source alone, for the mechanisms.
      mechanism_base: What those points are based on.
      per_device: Sentences for each device where the batch grows with their number.
      models: What is trained, a curve for each with each type.
      dtypes: Of activations.
    """

    base: Subject
    batches: Sequence[int]
    lengths: Sequence[int]
    hidden: Sequence[int]
    source_lengths: Sequence[int]
    mechanism_base: Subject
    per_device: int
    models: Sequence[str] = (RECURRENT,)
    dtypes: Sequence[str] = ("float32",)


SMOKE = SeriesPlan(
    base=Subject(batch=8, source_length=5, target_length=5, hidden=8, vocabulary=16),
    batches=(8, 16),
    lengths=(5, 10),
    hidden=(8, 16),
    source_lengths=(24, 48),
    mechanism_base=Subject(batch=2, source_length=0, target_length=3, hidden=8, vocabulary=16),
    per_device=4,
)
ON_CPU = SeriesPlan(
    base=Subject(batch=32, source_length=20, target_length=20, hidden=256, vocabulary=4000),
    batches=(8, 16, 32, 64),
    lengths=(10, 20, 40, 80),
    hidden=(64, 128, 256, 512),
    source_lengths=(64, 128, 256, 512),
    mechanism_base=Subject(batch=8, source_length=0, target_length=16, hidden=256, vocabulary=500),
    per_device=4,
)
ON_ACCELERATOR = SeriesPlan(
    base=Subject(batch=256, source_length=50, target_length=50, hidden=1024, vocabulary=32000),
    batches=(32, 128, 512),
    lengths=(25, 50, 100),
    hidden=(512, 1024, 2048),
    source_lengths=(128, 512, 2048, 4096),
    mechanism_base=Subject(
        batch=64, source_length=0, target_length=32, hidden=1024, vocabulary=1000
    ),
    per_device=256,
    models=(RECURRENT, TRANSFORMER),
    dtypes=("float32", "bfloat16"),
)


def all_series(platform: str, device_count: int, *, smoke: bool = False) -> list[Series]:
    """Returns what is measured.

    Args:
      platform: `cpu`, `gpu` or `tpu`.
      device_count: Devices that there are; a CPU is divided into more.
      smoke: Whether everything is tiny.
    """
    plan = SMOKE if smoke else ON_CPU if platform == CPU else ON_ACCELERATOR
    most = device_count
    if platform == CPU:
        most = _MOST_SIMULATED_SMOKE if smoke else _MOST_SIMULATED
    counts = [2**power for power in range(most.bit_length())]
    return [
        _along(plan, "batch", "Batch size", "sentences", {"batch": plan.batches}),
        _along(
            plan,
            "length",
            "Length of the sentences",
            "tokens of source and of target",
            {"source_length": plan.lengths, "target_length": plan.lengths},
        ),
        _along(plan, "hidden", "Depth", "hidden depth", {"hidden": plan.hidden}),
        _mechanisms(plan),
        _devices(plan, "strong", "More devices for the same batch", counts, grows=False),
        _devices(plan, "weak", "More devices, each with the same batch", counts, grows=True),
    ]


def _along(
    plan: SeriesPlan, name: str, title: str, axis: str, fields: Mapping[str, Sequence[int]]
) -> Series:
    points = []
    for model, dtype in itertools.product(plan.models, plan.dtypes):
        for values in zip(*fields.values(), strict=True):
            changes = dict(zip(fields, values, strict=True))
            subject = dataclasses.replace(plan.base, model=model, dtype=dtype, **changes)
            points.append(SeriesPoint(f"{model} {dtype}", values[0], subject))
    return Series(name, title, axis, points)


def _mechanisms(plan: SeriesPlan) -> Series:
    points = [
        SeriesPoint(
            mechanism,
            length,
            dataclasses.replace(plan.mechanism_base, source_length=length, attention=mechanism),
        )
        for mechanism in MECHANISMS
        for length in plan.source_lengths
    ]
    return Series("attention", "Global and local attention", "tokens of the source", points)


def _devices(
    plan: SeriesPlan, name: str, title: str, counts: Sequence[int], *, grows: bool
) -> Series:
    points = []
    for count in counts:
        batch = plan.per_device * count if grows else plan.base.batch
        subject = dataclasses.replace(plan.base, batch=batch)
        points.append(SeriesPoint(f"{subject.model} {subject.dtype}", count, subject, count))
    return Series(name, title, "devices", points)
