"""The project's side of the comparison: its model, its training step, its search, its attention."""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attention_jax.configuration import typed
from attention_jax.decoding.searcher import Searcher
from attention_jax.devices import Strategy, build_strategy
from attention_jax.devices.config import ShardingConfig
from attention_jax.models import MODELS, build_model
from attention_jax.objectives import build_objective
from attention_jax.ops.attend import AttentionSpec, attend
from attention_jax.ops.fused_dot import fused_dot_context
from attention_jax.ops.scores import additive_scores
from attention_jax.search import Hypotheses, SearchConfig
from attention_jax.types import Array, Memory, Model, Params
from attention_jax.updates.averaging import NoAveraging
from attention_jax.updates.decays import Constant
from attention_jax.updates.optimizers import Adam, build_optimizer
from attention_jax.updates.schedules import build_schedule
from attention_jax.updates.state import TrainState, start_state
from attention_jax.updates.step import EvalStep, TrainStep, make_eval_step, make_train_step
from experiments.benchmarks.speed.workloads import BOS, EOS, PAD, Sentences, Sizes, TransformerSizes


def model_of(sizes: Sizes | TransformerSizes) -> Model:
    """Builds the model of the comparison."""
    config = typed(MODELS.config("encoder_decoder"), model_fields(sizes), "config.model")
    return build_model(config, sizes.vocabulary, sizes.vocabulary)


def model_fields(sizes: Sizes | TransformerSizes) -> dict[str, Any]:
    """Returns the model's config."""
    return _transformer(sizes) if isinstance(sizes, TransformerSizes) else _recurrent(sizes)


def _transformer(sizes: TransformerSizes) -> dict[str, Any]:
    stack = {"num_layers": sizes.layers, "feed_forward_dim": sizes.width}
    return {
        "target_embedding_dim": sizes.depth,
        "sources": {
            "source": {
                "input": {"name": "tokens", "embedding_dim": sizes.depth},
                "encoder": {"name": "self_attention", **stack},
            }
        },
        "attention": {
            "name": "multi_head",
            "num_heads": sizes.heads,
            "head_dim": sizes.depth // sizes.heads,
            "use_bias": True,
        },
        "decoder": {"name": "transformer", **stack},
        "initialization": {"name": "xavier"},
    }


def _recurrent(sizes: Sizes) -> dict[str, Any]:
    hidden = sizes.hidden
    return {
        "target_embedding_dim": sizes.embedding,
        "sources": {
            "source": {
                "input": {"name": "tokens", "embedding_dim": sizes.embedding},
                "encoder": {"cell": "gru", "hidden_dim": hidden},
            }
        },
        "attention": {"name": "bahdanau", "attention_dim": hidden},
        "decoder": {
            "name": "luong",
            "cell": "gru",
            "hidden_dim": hidden,
            "attentional_dim": hidden,
            "bridge": "last",
        },
    }


def draw_parameters(model: Model, seed: int = 0, end_bias: float = 0.0) -> Params:
    """Draws parameters, none of them zero: exchanged weights that are mixed up then show.

    Args:
      model: What they are for.
      seed: Of the drawing.
      end_bias: Added to the logit of EOS: enough of it ends outputs where they first may end, and
        less than nothing leaves no probability to an end that may not be yet. With either, as in
        a trained model, none is left to PAD and BOS: what a search forbids before it normalises,
        as CTranslate2's does, it then forbids as ours.
    """
    # Biases start at zero: noise makes them differ, so that a swapped pair is noticed.
    leaves, structure = jax.tree.flatten(jax.jit(model.init)(jax.random.key(seed)))
    rng = np.random.default_rng(seed)
    noisy = (leaf + 0.01 * rng.standard_normal(leaf.shape, np.float32) for leaf in leaves)
    params = structure.unflatten([jnp.asarray(leaf) for leaf in noisy])
    if end_bias:
        bias = params["output_bias"].at[EOS].add(end_bias)
        params = {**params, "output_bias": bias.at[jnp.array([PAD, BOS])].add(-abs(end_bias))}
    return params


def batch_of(sentences: Sentences) -> dict[str, np.ndarray]:
    """Turns sentences into a batch of the project."""
    return {
        "source": sentences.source,
        "source_mask": sentences.source != PAD,
        "target": sentences.target,
        "target_mask": sentences.target != PAD,
        "index": np.arange(len(sentences), dtype=np.int32),
    }


@dataclasses.dataclass
class Trainer:
    """Trains the project's model as its training loop does.

    Attributes:
      model: What is trained.
      state: The present state.
    """

    model: Model
    state: TrainState
    _strategy: Strategy
    _train_step: TrainStep
    _eval_step: EvalStep
    _rng: Array = dataclasses.field(default_factory=lambda: jax.random.key(1))
    _pending: Any = None

    @classmethod
    def create(cls, sizes: Sizes | TransformerSizes) -> "Trainer":
        """Starts the model of the comparison on all devices."""
        return cls.of(model_of(sizes))

    @classmethod
    def of(cls, model: Model, devices: Sequence[jax.Device] | None = None) -> "Trainer":
        """Starts with drawn parameters and Adam, without clipping or smoothing."""
        averaging, strategy = NoAveraging(), build_strategy(ShardingConfig(), devices)
        optimizer_config = Adam(learning_rate=1e-4, clip_norm=0.0)
        optimizer, objective = build_optimizer(optimizer_config), build_objective({"nll": {}})
        schedule = build_schedule(
            Constant(), optimizer_config.learning_rate, steps_per_epoch=1000, total_steps=1000
        )
        # Compiled, as trainings start: operation by operation it leaves a quarter of a gigabyte.
        start = jax.jit(functools.partial(start_state, model, optimizer, averaging=averaging))
        state = dataclasses.replace(start(jax.random.key(0)), params=draw_parameters(model))
        shardings = strategy.shardings(state, model.parameter_axes())
        train_step = make_train_step(model, objective, optimizer, schedule, averaging=averaging)
        eval_step = make_eval_step(model, objective)
        return cls(
            model,
            jax.device_put(state, shardings),
            strategy,
            strategy.compile_train_step(train_step, shardings),
            strategy.compile_eval_step(eval_step, shardings),
        )

    def loss(self, batch: Mapping[str, np.ndarray]) -> float:
        """Returns the loss of a batch."""
        return _mean_loss(self._eval_step(self.state.params, self._strategy.place(batch)))

    def train(self, batch: Mapping[str, np.ndarray]) -> None:
        """Starts a step, and waits for the one before, as the training loop does."""
        batch = self._strategy.place(batch)
        self.state, metrics = self._train_step(self.state, batch, self._rng)
        self.finish()
        self._pending = metrics

    def finish(self) -> None:
        """Waits for the last step and reads what it measured."""
        jax.device_get(self._pending)


def make_beam_search(
    model: Model,
    width: int,
    shortest: int,
    longest: int,
    source_length: int,
    shortlist: np.ndarray | None = None,
    dtype: str = "float32",
) -> Callable[[Params, Mapping[str, Any]], Hypotheses]:
    """Returns the search of a batch, as evaluation does it.

    Args:
      model: What searches.
      width: Of the beam.
      shortest: The fewest tokens of an output, EOS included.
      longest: The most.
      source_length: Of the shortest source.
      shortlist: Ids that outputs are made of; None for all.
      dtype: Of products with weight matrices.
    """
    config = SearchConfig(
        method="beam",
        beam_size=width,
        num_hypotheses=width,
        max_length_factor=0.0,
        max_length_constant=longest,
        min_length_ratio=(shortest - 0.5) / source_length,
        dtype=dtype,
    )
    decoder, rng = Searcher(model, config), jax.random.key(0)

    def decode(params: Params, batch: Mapping[str, Any]) -> Hypotheses:
        sources = {name: batch[name] for name in ("source", "source_mask")}
        return decoder.search(params, sources, rng, shortlist)

    return decode


def make_attention_gradient(is_naive: bool) -> Callable[..., tuple[Array, ...]]:
    """Returns the gradients of summed contexts of additive attention by all of its arrays.

    Args:
      is_naive: Whether to write the equation down as it stands instead of calling the project.
    """

    def score(params: Params, query: Array, memory: Memory, *unused: Any) -> Array:
        return additive_scores(query, memory.keys, params["vector"])

    spec = AttentionSpec(score)

    def project(query: Array, keys: Array, values: Array, vector: Array) -> Array:
        memory = Memory(keys, values, jnp.ones(keys.shape[:-1], bool))
        return attend(spec, {"vector": vector}, query, memory)[0].context.sum()

    def naive(query: Array, keys: Array, values: Array, vector: Array) -> Array:
        hidden = jnp.tanh(query[:, :, None] + keys[:, None])
        return (jax.nn.softmax(hidden @ vector) @ values).sum()

    return jax.jit(jax.grad(naive if is_naive else project, argnums=(0, 1, 2, 3)))


def make_dot_gradient(is_library: bool) -> Callable[..., tuple[Array, ...]]:
    """Returns the gradients of summed contexts of dot-product attention, of arrays `B H S D`.

    Args:
      is_library: Whether `jax.nn.dot_product_attention` computes them.
    """

    def library(query: Array, keys: Array, values: Array) -> Array:
        swapped = (jnp.swapaxes(array, 1, 2) for array in (query, keys, values))
        return jnp.square(jax.nn.dot_product_attention(*swapped)).sum()

    def project(query: Array, keys: Array, values: Array) -> Array:
        mask = jnp.ones((*query.shape[:-2], 1, keys.shape[-2]), bool)
        return jnp.square(fused_dot_context(query, keys, values, mask)).sum()

    return jax.jit(jax.grad(library if is_library else project, argnums=(0, 1, 2)))


def _mean_loss(metrics: Mapping[str, Any]) -> float:
    total, count = metrics["loss/nll"]
    return float(total) / float(count)
