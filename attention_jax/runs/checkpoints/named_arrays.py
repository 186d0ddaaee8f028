"""Arrays of a checkpoint by name, shape and type, compared with those that a config asks for.

Checkpoints hold nested dicts, whatever classes a state is made of: files and messages then show
plain names, and a state of other classes with the same names can be restored.
"""

from typing import Any

import jax
import numpy as np

from attention_jax.errors import CheckpointError


def leaf_name(path: tuple[Any, ...]) -> tuple[str, ...]:
    """Names a leaf by attributes, keys and positions: ("params", "encoder", "kernel")."""
    # Entries of a path are DictKey (key), GetAttrKey (name) or SequenceKey (idx).
    return tuple(
        str(getattr(key, "key", getattr(key, "name", getattr(key, "idx", key)))) for key in path
    )


def nested_by_name(tree: Any) -> dict[str, Any]:
    """Turns any pytree into nested dicts."""
    nested: dict[str, Any] = {}
    for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
        *groups, last = leaf_name(path)
        group = nested
        for name in groups:
            group = group.setdefault(name, {})
        group[last] = leaf
    return nested


def leaves_by_name(tree: Any) -> dict[tuple[str, ...], Any]:
    """Returns the leaves of any pytree by their names."""
    return {leaf_name(path): leaf for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]}


def require_same_arrays(step: int, *, expected: Any, found: Any) -> None:
    """Compares arrays with those wanted, by name, shape and type.

    Args:
      step: The checkpoint's, for the message.
      expected: Tree of arrays or shapes that the config asks for.
      found: Tree of arrays or shapes in the checkpoint.

    Raises:
      CheckpointError: For the first array that differs.
    """
    expected, found = leaves_by_name(expected), leaves_by_name(found)
    paths = expected.keys() | found.keys()
    # Parameters first: what an optimiser keeps differs whenever they do, and says less.
    for path in sorted(paths, key=lambda path: (path[0] != "params", path)):
        words = []
        for arrays, key_data in ((found, False), (expected, True)):
            array = arrays.get(path)
            # Random keys are stored as their words of uint32.
            if array is not None and key_data and jax.dtypes.issubdtype(
                array.dtype, jax.dtypes.prng_key
            ):
                array = jax.eval_shape(jax.random.key_data, array)
            words.append("absent" if array is None else _describe(array))
        if words[0] != words[1]:
            raise CheckpointError(
                f"checkpoint step {step} is of another {_difference(*words)}: "
                f"{'/'.join(path)} is {words[0]} in the checkpoint, {words[1]} by the config"
            )


def _difference(found: str, expected: str) -> str:
    """Says what is likely to be another where two descriptions of an array differ."""
    (found, *shape), (expected, *other) = found.split("["), expected.split("[")
    if {found, expected} == {"float32", "float64"} and shape == other:
        return "precision, which JAX_ENABLE_X64 chooses"
    return "model, vocabulary or optimizer"


def _describe(array: Any) -> str:
    return f"{np.dtype(array.dtype)}[{','.join(map(str, array.shape))}]"
