"""Every operation is had from `attention_jax.ops` itself, whichever file it is in."""

import importlib
import inspect
import pkgutil

from attention_jax import ops


def test_every_public_operation_is_exported():
    found = {}
    for info in pkgutil.iter_modules(ops.__path__, f"{ops.__name__}."):
        module = importlib.import_module(info.name)
        for name, value in vars(module).items():
            is_ours = getattr(value, "__module__", None) == info.name
            is_operation = inspect.isfunction(value) or inspect.isclass(value)
            if is_ours and is_operation and not name.startswith("_"):
                assert name not in found, f"{name} is in {found[name].__module__} and {info.name}"
                found[name] = value
    assert {"attend", "additive_scores", "deferred_scan", "sparsemax", "Tracker"} <= set(found)
    for name, value in found.items():
        assert name in ops.__all__, f"{name}: to be imported and listed in {ops.__file__}"
        assert getattr(ops, name) is value


def test_exports_are_sorted_and_unique():
    assert ops.__all__ == sorted(set(ops.__all__))


def test_a_name_that_a_module_shares_is_the_operation():
    # `attend` and `deferred_scan` are files, too; importing these does not take the name back.
    importlib.import_module("attention_jax.ops.attend")
    from attention_jax.ops import attend, deferred_scan

    assert inspect.isfunction(attend) and inspect.isfunction(deferred_scan)
