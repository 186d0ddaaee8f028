"""Runtime type checking: beartype as jaxtyping's hook asks for it, one check for a signature."""

from collections.abc import Callable, Hashable
from typing import Any

import beartype

_MOST = 5_000
_checks: dict[Hashable, Callable] = {}
_make = beartype.beartype(
    conf=beartype.BeartypeConf(
        is_pep484_tower=True,  # an int is accepted where a float is asked for
        warning_cls_on_decorator_exception=RuntimeWarning,
    )
)


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the check of a signature, again where it was made before.

    The hook asks with a function that has the signature of the one to be checked, and does nothing.
    For functions within others it asks whenever these are called: while mechanisms are traced, a
    tenth of the time would go into making the same checks by the hundred.
    """
    if "<locals>" not in function.__qualname__:
        return _make(function)
    optional = (len(function.__defaults__ or ()), *sorted(function.__kwdefaults__ or ()))
    annotations = [(name, _shape(kind)) for name, kind in function.__annotations__.items()]
    name = (function.__module__, function.__qualname__, function.__code__)
    try:
        check = _checks.get(key := (*name, optional, *annotations))
    except TypeError:  # an annotation that cannot be hashed
        return _make(function)
    if check is None:
        if len(_checks) == _MOST:
            _checks.clear()
        check = _checks[key] = _make(function)
    return check


def _shape(annotation: Any) -> Any:
    """Returns what stands for an annotation; those of arrays are made anew each time."""
    if isinstance(annotation, type) and hasattr(annotation, "dim_str"):
        return annotation.array_type, annotation.dtype, annotation.dim_str
    return annotation
