"""Trainings on eight devices and on one, by every strategy, and resumed from one on another.

Runs in a process that has the devices; `tests/simulated_devices.py` starts it.
"""

import functools
import itertools
import tempfile
from pathlib import Path

import jax
import numpy as np
import optax

from attention_jax.commands.cli import load_config
from attention_jax.configuration import typed
from attention_jax.devices import build_strategy
from attention_jax.devices.config import ShardingConfig
from attention_jax.devices.memory_per_device import describe_sharding
from attention_jax.devices.placement import placed_shapes
from attention_jax.models import MODELS, build_model
from attention_jax.objectives import add_pairs, build_objective
from attention_jax.runs.checkpoints.checkpoint import Checkpointer
from attention_jax.updates.averaging import MovingAverage
from attention_jax.updates.decays import Constant
from attention_jax.updates.optimizers import Adam, build_optimizer
from attention_jax.updates.schedules import build_schedule
from attention_jax.updates.state import start_state
from attention_jax.updates.step import make_eval_step, make_train_step

VOCABULARY = 40
ROWS = 20  # neither by 8 nor by 16: filler rows are added
STEPS = 2

# A model is added by a line: its config, with every dropout that it has.
NETWORKS = {
    "recurrent": {
        "target_embedding_dim": 32,
        "sources": {
            "source": {
                "input": {"name": "tokens", "embedding_dim": 32},
                "encoder": {"hidden_dim": 16, "recurrent_dropout": 0.2},
            }
        },
        "attention": {
            "name": "multi_head", "num_heads": 2, "head_dim": 8, "dropout": 0.2,
            "score": {"name": "bahdanau", "attention_dim": 16},
        },
        "decoder": {
            "name": "bahdanau", "hidden_dim": 32, "readout_dim": 16, "recurrent_dropout": 0.2,
        },
        "embedding_dropout": 0.2,
        "output_dropout": 0.2,
    },
    "transformer": {
        "target_embedding_dim": 32,
        "sources": {
            "source": {
                "input": {"name": "tokens", "embedding_dim": 32},
                "encoder": {
                    "name": "self_attention", "num_layers": 1, "feed_forward_dim": 32,
                    "dropout": 0.2,
                },
            }
        },
        "attention": {
            "name": "multi_head", "num_heads": 4, "num_memory_heads": 2, "head_dim": 8,
            "dropout": 0.2,
        },
        "decoder": {
            "name": "transformer", "num_layers": 1, "feed_forward_dim": 32, "hidden_dropout": 0.2,
        },
        "tie_embeddings": "all",
    },
}  # fmt: skip
RULES = {
    "recurrent": (("gates", "tensor"), ("features", "fsdp"), ("hidden", None)),
    "transformer": (
        ("heads", "tensor"), ("memory_heads", "tensor"), ("feed_forward", "tensor"),
        ("embed", "fsdp"),
    ),
}
LAYERS = "layers"  # each layer over all devices, as the config of `narrow_gnmt` lays them
CASES = {
    "data": {"data": 8},
    "fsdp": {"data": 1, "fsdp": 8},
    "all": {"data": 2, "fsdp": 2, "tensor": 2},
    "rules": {"fsdp": 4, "data": 1, "tensor": -1},  # with `RULES`
    "shard_map": {"strategy": "shard_map"},
    "pmap": {"strategy": "pmap"},
}  # fmt: skip
PARTS = {"data": (2,), "fsdp": (2,), "all": (2,), "rules": (1,), "shard_map": (1, 2),
         "pmap": (2,)}  # fmt: skip


def _recorder():
    """Keeps the gradient as the optimiser's state, and passes it on."""
    return optax.GradientTransformation(
        optax.tree.zeros_like, lambda gradient, state, params=None: (gradient, gradient)
    )


OPTIMIZER = optax.chain(_recorder(), build_optimizer(Adam(learning_rate=0.01)))
AVERAGING = MovingAverage()


@functools.cache
def network_of(model):
    values = narrow_gnmt() if model == "gnmt" else NETWORKS[model]
    config = typed(MODELS.config(values.get("name", "encoder_decoder")), values)
    return build_model(config, VOCABULARY, VOCABULARY)


def narrow_gnmt():
    """The model of GNMT's config for the paper's size, with three narrow layers a side."""
    model = load_config("configs/gnmt2016.py:paper").model
    source = model.sources.source
    source.input.embedding_dim = model.target_embedding_dim = model.attention.attention_dim = 32
    for side in (source.encoder, model.decoder):
        side.hidden_dim, side.num_layers = 32, 3  # residual connections are from the third one on
    return model.to_dict()


def start_of(model):
    return functools.partial(start_state, network_of(model), OPTIMIZER, averaging=AVERAGING)


@functools.cache
def drawn_state(model):
    """Returns the state from which all cases start, on the host."""
    return jax.device_get(jax.jit(start_of(model))(jax.random.key(0)))


class Trainer:
    """A training of two steps, from its start or from a checkpoint."""

    def __init__(self, model, case, parts):
        alone = case == "one"
        values = {} if alone else {**CASES, LAYERS: {"data": 1, "tensor": 8}}[case]
        if case == "rules":
            values = {**values, "rules": RULES[model]}
        if case == LAYERS:
            rules = load_config("configs/gnmt2016.py:paper").sharding.rules
            values = {**values, "rules": rules}
        self._strategy = build_strategy(
            typed(ShardingConfig, values), jax.devices()[: 1 if alone else 8]
        )
        network = network_of(model)
        self._objective = build_objective({"nll": {"label_smoothing": 0.1}})
        schedule = build_schedule(Constant(), 0.01, steps_per_epoch=1, total_steps=STEPS)
        self.like = placed_shapes(
            start_of(model), self._strategy, network_of(model).parameter_axes()
        )
        shardings = jax.tree.map(lambda leaf: leaf.sharding, self.like)
        self.start = functools.partial(jax.device_put, drawn_state(model), shardings)
        exchange = self._strategy.exchange(shardings)
        step = make_train_step(
            network, self._objective, OPTIMIZER, schedule,
            averaging=AVERAGING, accumulate_steps=parts, exchange=exchange,
        )  # fmt: skip
        self._parts = parts
        self._train_step = self._strategy.compile_train_step(step, shardings)
        self._eval_step = self._strategy.compile_eval_step(
            make_eval_step(network, self._objective, exchange), shardings
        )

    def sharding(self):
        return describe_sharding(self._strategy, self.start())

    def train(self, state, step):
        """Returns (state, loss) after a step, whose gradient is in the state."""
        batch = self._strategy.place(random_batch(step), self._parts)
        state, metrics = self._train_step(state, batch, jax.random.key(7))
        placed = jax.tree.map(lambda leaf, like: leaf.sharding == like.sharding, state, self.like)
        assert self._strategy.name == "pmap" or all(jax.tree.leaves(placed))
        return state, self._objective.summary(add_pairs([metrics]))

    def evaluate(self):
        """Returns the mean loss of a batch without dropout, before training."""
        batch = self._strategy.place(random_batch(9))
        metrics = self._eval_step(self.start().average, batch)
        return self._objective.summary(add_pairs([metrics]))["nll"]


def run_everything(model, resumes):
    """Returns what every case measures: {parts: {case: measured}}, and the bytes on a device."""
    found = {"sharding": {}, "resumed": {}}
    for parts in (1, 2):
        trainers = {"one": Trainer(model, "one", parts)}
        trainers |= {case: Trainer(model, case, parts) for case in CASES if parts in PARTS[case]}
        with tempfile.TemporaryDirectory() as folder:
            runs = {case: _run(trainer, Path(folder) / case) for case, trainer in trainers.items()}
            if parts == 2:  # which all but the rules are tried with
                found["nll"] = {case: trainer.evaluate() for case, trainer in trainers.items()}
                found["sharding"] = {case: trainer.sharding() for case, trainer in trainers.items()}
                found["resumed"] = {
                    f"{old} -> {new}": _resume(trainers[new], Path(folder) / old)
                    for old, new in (changes(trainers) if resumes else ())
                }
        found[str(parts)] = runs
    return found


def changes(cases):
    """Pairs of a strategy that saves and one that goes on: each with itself, `one` and its next."""
    others = [case for case in cases if case != "one"]
    circle = zip(others, [*others[1:], others[0]], strict=True)
    with_one = itertools.chain(*((("one", case), (case, "one")) for case in others))
    return [*((case, case) for case in cases), *with_one, *circle]


def first_step(model, cases):
    """Returns what the first step measures, and the bytes on a device, on one device and others."""
    found = {}
    for case in ("one", *cases):
        trainer = Trainer(model, case, 1)
        state, summary = trainer.train(trainer.start(), 0)
        found[case] = {"loss": summary["loss"], "gradient": _flat(state.optimizer[0]),
                       "sharding": trainer.sharding()}  # fmt: skip
    return found


def sharding_of_config(location, vocabulary):
    """Returns what each of the devices holds of a config's training, its parameters split."""
    config = load_config(location)
    network = build_model(
        typed(MODELS.config(config.model.name), config.model.to_dict()), vocabulary, vocabulary
    )
    start = functools.partial(
        start_state, network, build_optimizer(Adam(learning_rate=0.01)), averaging=AVERAGING
    )
    strategy = build_strategy(typed(ShardingConfig, {"data": 1, "fsdp": -1}), jax.devices())
    state = jax.tree.map(
        lambda leaf: jax.device_put(np.zeros(leaf.shape, leaf.dtype), leaf.sharding),
        placed_shapes(start, strategy, network.parameter_axes()),
    )
    return describe_sharding(strategy, state)


def _run(trainer, folder):
    state, measured = trainer.start(), []
    for step in range(STEPS):
        if step == STEPS - 1:
            with Checkpointer(folder) as checkpointer:
                checkpointer.save(step, state, data={}, config={}, host={})
        state, summary = trainer.train(state, step)
        measured.append(
            {"loss": summary["loss"], "norm": summary["gradient_norm"],
             "gradient": _flat(state.optimizer[0])}
        )  # fmt: skip
    last = {"parameters": _flat(state.params), "average": _flat(state.average)}
    return {"steps": measured, **last}


def _resume(trainer, folder):
    checkpoint = Checkpointer(folder).restore(trainer.like)
    state, summary = trainer.train(checkpoint.state, checkpoint.step)
    return {"loss": summary["loss"], "parameters": _flat(state.params)}


def _flat(tree):
    leaves = [np.asarray(leaf).ravel() for leaf in jax.tree.leaves(tree)]
    return np.concatenate(leaves).astype(np.float64).tolist()


def random_batch(seed):
    """A batch of random lengths; the second one ends with filler, as the last of an epoch does."""
    draw = np.random.default_rng(seed)
    batch, filler = {}, 7 if seed else 0
    for name, size in {"source": 6, "target": 5}.items():
        lengths = draw.integers(1, size + 1, ROWS)
        lengths[ROWS - filler :] = 0
        mask = np.arange(size) < lengths[:, None]
        ids = draw.integers(3, VOCABULARY, (ROWS, size))
        batch[name] = np.where(mask, ids, 0).astype(np.int32)
        batch[f"{name}_mask"] = mask
    index = np.where(np.arange(ROWS) < ROWS - filler, np.arange(ROWS), -1)
    return {**batch, "index": index.astype(np.int32)}
