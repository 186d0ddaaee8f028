"""Runtime type checking: jaxtyping's decorator in a form that costs half, one check a signature.

The import hook decorates every function and every dataclass of the package, and while models are
traced the functions within others are decorated whenever these are called. jaxtyping binds the
arguments of every call by `inspect`, checks them once before the call and once with what it
returns, and makes both checks anew for every function: a seventh of the time of the tests. Here
arguments and what is returned are checked once each, in one memory of the sizes of axes; whatever
does not pass is left to jaxtyping, whose verdict and message are the ones that count.
"""

import dataclasses
import functools
import inspect
from collections.abc import Callable, Hashable
from typing import Any

import beartype
import jaxtyping

_MOST = 5_000
_checks: dict[Hashable, "Checks"] = {}
_jaxtyped = jaxtyping.jaxtyped
_sizes_of_axes = _jaxtyped("context")
typechecker = beartype.beartype(
    conf=beartype.BeartypeConf(
        is_pep484_tower=True,  # an int is accepted where a float is asked for
        warning_cls_on_decorator_exception=RuntimeWarning,
    )
)
_slowly_checked = _jaxtyped(typechecker=typechecker)


def install() -> None:
    """Puts `checked` in the place of jaxtyping's decorator, which its import hook looks up."""
    jaxtyping.jaxtyped = lambda typechecker: checked


def checked(function: Any) -> Any:
    """Returns a function, or a dataclass, whose annotations are checked whenever it is called."""
    if inspect.isfunction(function):
        checks = _checks_of(function)
        return checks.around(function) if checks else function
    if not inspect.isclass(function):
        return _slowly_checked(function)
    if dataclasses.is_dataclass(function) and not _is_checked(function.__init__):
        function.__init__ = checked(function.__init__)
    return function


@dataclasses.dataclass(frozen=True)
class Checks:
    """The checks of a signature."""

    arguments: Callable[..., Any]
    returned: Callable[[Any], Any] | None
    reads_arguments: bool  # an axis is as long as an argument says, such as in "T {size}"

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Returns a function of this signature with its checks."""
        if self.reads_arguments:
            return _slowly_checked(function)
        arguments, returned, config = self.arguments, self.returned, jaxtyping.config

        @functools.wraps(function)
        def call(*args, **kwargs):
            __tracebackhide__ = True
            if config.jaxtyping_disable:
                return function(*args, **kwargs)
            with _sizes_of_axes:
                try:
                    arguments(*args, **kwargs)
                except Exception:
                    return _slowly_checked(function)(*args, **kwargs)
                out = function(*args, **kwargs)
                if returned is None:
                    return out
                try:
                    return returned(out)
                except Exception:
                    answer = functools.wraps(function)(lambda *args, **kwargs: out)
                    return _slowly_checked(answer)(*args, **kwargs)

        return call


def _is_checked(function: Any) -> bool:
    return getattr(function, "__code__", None) is _CALL


def _checks_of(function: Callable[..., Any]) -> Checks | None:
    """Returns the checks of a signature, again where they were made before; None if it has none."""
    if not function.__annotations__:
        return None
    if "<locals>" not in function.__qualname__:
        return _make_checks(function)
    optional = (len(function.__defaults__ or ()), *sorted(function.__kwdefaults__ or ()))
    annotations = [(name, _shape(kind)) for name, kind in function.__annotations__.items()]
    name = (function.__module__, function.__qualname__, function.__code__)
    try:
        checks = _checks.get(key := (*name, optional, *annotations))
    except TypeError:  # an annotation that cannot be hashed
        return _make_checks(function)
    if checks is None:
        if len(_checks) == _MOST:
            _checks.clear()
        checks = _checks[key] = _make_checks(function)
    return checks


def _make_checks(function: Callable[..., Any]) -> Checks:
    """Makes the checks of the signatures that jaxtyping would have checked."""
    asked: list[Callable[..., Any]] = []
    _jaxtyped(function, typechecker=lambda made: asked.append(made) or made)
    whole, arguments = asked  # both do nothing; the second says nothing of what is returned

    def returned(value):
        return value

    kinds = whole.__annotations__
    if "return" in kinds:
        returned.__annotations__["return"] = kinds["return"]
    return Checks(
        arguments=typechecker(arguments),
        returned=typechecker(returned) if "return" in kinds else None,
        reads_arguments=any("{" in str(kind) for kind in kinds.values()),
    )


def _shape(annotation: Any) -> Any:
    """Returns what stands for an annotation; those of arrays are made anew each time."""
    if isinstance(annotation, type) and hasattr(annotation, "dim_str"):
        return annotation.array_type, annotation.dtype, annotation.dim_str
    return annotation


_CALL = Checks(typechecker, None, False).around(_make_checks).__code__
