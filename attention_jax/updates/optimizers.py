"""Optimizers by name (Adam, AdamW, Adadelta, SGD); the learning rate is passed at every step."""

import dataclasses

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from attention_jax.configuration import setting
from attention_jax.types import Leaf, Params


@dataclasses.dataclass(frozen=True)
class Adam:
    """Adam (Kingma & Ba 2015, algorithm 1). The Transformer has beta2 0.98 and epsilon 1e-9.

    Attributes:
      learning_rate: Step size, which the schedule scales.
      beta1: Decay of the first moment.
      beta2: Decay of the second moment.
      epsilon: Added to the root of the second moment.
      clip_norm: Largest global norm of the gradient, which is scaled down to it; 0 is no limit.
    """

    name: str = setting("adam", choices=("adam",))
    learning_rate: float = setting(1e-3, at_least=0.0)
    beta1: float = setting(0.9, at_least=0.0, below=1.0)
    beta2: float = setting(0.999, at_least=0.0, below=1.0)
    epsilon: float = setting(1e-8, above=0.0)
    clip_norm: float = setting(1.0, at_least=0.0)

    def rule(self) -> optax.GradientTransformation:
        """Returns the update rule without clipping and learning rate."""
        return optax.scale_by_adam(self.beta1, self.beta2, self.epsilon)


@dataclasses.dataclass(frozen=True)
class AdamW:
    """AdamW: Adam with decoupled weight decay (Loshchilov & Hutter 2019, algorithm 2).

    Deviations: the decay is scaled by the learning rate, as in every library; vectors (biases,
    gains, the last vector of additive scores) are not decayed, also where heads stack them into a
    matrix.

    Attributes:
      learning_rate: Step size, which the schedule scales.
      beta1: Decay of the first moment.
      beta2: Decay of the second moment.
      epsilon: Added to the root of the second moment.
      weight_decay: Share of each matrix, times the learning rate, taken off at every step.
      clip_norm: Largest global norm of the gradient, which is scaled down to it; 0 is no limit.
    """

    name: str = setting("adamw", choices=("adamw",))
    learning_rate: float = setting(1e-3, at_least=0.0)
    beta1: float = setting(0.9, at_least=0.0, below=1.0)
    beta2: float = setting(0.999, at_least=0.0, below=1.0)
    epsilon: float = setting(1e-8, above=0.0)
    weight_decay: float = setting(1e-2, at_least=0.0)
    clip_norm: float = setting(1.0, at_least=0.0)

    def rule(self) -> optax.GradientTransformation:
        """Returns the update rule without clipping and learning rate."""
        return optax.chain(
            optax.scale_by_adam(self.beta1, self.beta2, self.epsilon),
            optax.add_decayed_weights(self.weight_decay, mask=_matrices),
        )


@dataclasses.dataclass(frozen=True)
class Adadelta:
    """Adadelta (Zeiler 2012, algorithm 1), with the constants of Bahdanau et al. 2015.

    Attributes:
      learning_rate: Factor of the update, 1 in the paper.
      rho: Decay of the two running averages.
      epsilon: Added to both averages under their roots.
      clip_norm: Largest global norm of the gradient, which is scaled down to it; 0 is no limit.
    """

    name: str = setting("adadelta", choices=("adadelta",))
    learning_rate: float = setting(1.0, at_least=0.0)
    rho: float = setting(0.95, at_least=0.0, below=1.0)
    epsilon: float = setting(1e-6, above=0.0)
    clip_norm: float = setting(1.0, at_least=0.0)

    def rule(self) -> optax.GradientTransformation:
        """Returns the update rule without clipping and learning rate."""
        return optax.scale_by_adadelta(self.rho, self.epsilon)


@dataclasses.dataclass(frozen=True)
class SGD:
    """Stochastic gradient descent, with optional momentum.

    Attributes:
      learning_rate: Step size, which the schedule scales; 1 in Luong et al. 2015.
      momentum: Share of the previous update that is kept; 0 is none.
      clip_norm: Largest global norm of the gradient, which is scaled down to it; 0 is no limit.
        Sutskever et al. 2014 and Luong et al. 2015 have 5, of a gradient per sentence.
    """

    name: str = setting("sgd", choices=("sgd",))
    learning_rate: float = setting(1.0, at_least=0.0)
    momentum: float = setting(0.0, at_least=0.0, below=1.0)
    clip_norm: float = setting(5.0, at_least=0.0)

    def rule(self) -> optax.GradientTransformation:
        """Returns the update rule without clipping and learning rate."""
        return optax.trace(self.momentum) if self.momentum else optax.identity()


Optimizer = Adam | AdamW | Adadelta | SGD

_VECTORS = ("bias", "scale", "vector")  # how the names of vectors end

_OPTIMIZERS = {cls.name: cls for cls in (Adam, AdamW, Adadelta, SGD)}


def lookup(name: str) -> type[Optimizer]:
    """Finds the config class of an optimiser by its name, for `setting(named=lookup)`.

    Raises:
      KeyError: With the list of names, if there is no such optimiser.
    """
    if name not in _OPTIMIZERS:
        raise KeyError(sorted(_OPTIMIZERS))
    return _OPTIMIZERS[name]


def build_optimizer(config: Optimizer) -> optax.GradientTransformationExtraArgs:
    """Chains gradient clipping, the update rule and the learning rate, in this order.

    The learning rate is an argument of `update`, so that a schedule, a validation score or a
    checkpoint can set it without touching the optimiser's state:
    `updates, state = optimizer.update(gradient, state, params, learning_rate=0.1)`.
    """
    clip = [optax.clip_by_global_norm(config.clip_norm)] if config.clip_norm else []
    return optax.chain(*clip, config.rule(), _scale_by_given_learning_rate())


def _scale_by_given_learning_rate() -> optax.GradientTransformationExtraArgs:
    def update(
        updates: Params,
        state: optax.EmptyState,
        params: Params | None = None,
        *,
        learning_rate: Float[Array, ""] | float,
        **unused: object,
    ) -> tuple[Params, optax.EmptyState]:
        del params, unused
        # Negative: `optax.apply_updates` adds, and a loss is to fall.
        return jax.tree.map(lambda leaf: -learning_rate * leaf, updates), state

    return optax.GradientTransformationExtraArgs(lambda params: optax.EmptyState(), update)


def _matrices(params: Params) -> Params:
    """Marks matrices, which weight decay applies to.

    The vectors of several heads are stacked into a matrix: they are recognised by their names.
    """

    def is_matrix(path: tuple, leaf: Leaf) -> bool:
        name = str(getattr(path[-1], "key", "")) if path else ""
        return jnp.ndim(leaf) > 1 and not name.endswith(_VECTORS)

    return jax.tree_util.tree_map_with_path(is_matrix, params)
