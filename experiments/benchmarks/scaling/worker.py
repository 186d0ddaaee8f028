"""Measures one number: `python -m experiments.benchmarks.scaling.worker TASK`, TASK as JSON.

Fields: `subject`, the fields of a `Subject`, and `devices`, how many of those there are to use.
"""

import jax

from attention_jax.training.reporting.memory import memory_in_use
from experiments.benchmarks.flops import training_flops
from experiments.benchmarks.scaling.subjects import Subject
from experiments.benchmarks.speed import serve
from experiments.benchmarks.speed.project_model import Trainer


def main() -> None:
    """Trains on one batch again and again, when it is asked to."""
    channel, task = serve.open_channel(), serve.read_task()
    devices = jax.devices()[: task["devices"]]
    if len(devices) < task["devices"]:
        raise SystemExit(f"expected {task['devices']} devices, found {len(devices)}")
    subject = Subject(**task["subject"])
    model, batch = subject.build(), subject.make_batch()
    trainer = Trainer.of(model, devices)
    trainer.train(batch)
    trainer.finish()

    serve.serve(
        channel,
        lambda: trainer.train(batch),
        trainer.finish,
        units={"target tokens": int(batch["target_mask"].sum())},
        flops=training_flops(model, batch),
        memory=memory_in_use(devices),
        device=devices[0].device_kind,
        version=f"jax {jax.__version__}",
    )


if __name__ == "__main__":
    main()
