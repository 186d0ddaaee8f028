"""Compilation in the background: programs for several batch shapes, while the first already runs.

A compiler works without Python's lock, so that threads of this process do it. They make the same
programs as calls of the function would, and no number depends on when one was ready. (A GPU's
compiler chooses among kernels by timing them, with or without threads.)
"""

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Self

import jax

Shapes = tuple[tuple[int, ...], ...]


class BackgroundCompilation:
    """A compiled step, of which a call waits for the program of its own batch's shape only.

    Programs are begun in the order of the batches, so that the one that is needed first is ready
    first.
    """

    def __init__(
        self,
        step: Callable,
        state: Any,
        batches: Iterable[Any],
        *rest: Any,
        threads: int = 1,
    ):
        """Begins to compile.

        Args:
          step: From `Strategy.compile_train_step`. One without `lower`, such as `pmap` over
            several processes, is compiled where it is called.
          state: Its first argument, or the shapes of it with their placements.
          batches: Placed batches, one of each shape that will be needed.
          rest: Its other arguments.
          threads: How many programs are compiled at a time.
        """
        self._step = step
        self._threads = ThreadPoolExecutor(threads, "compiler")
        self._programs: dict[Shapes, Future] = {}
        for batch in batches if _can_be_compiled_before(step) else ():
            # The shapes alone: a batch that waits for its program need not take a device's memory.
            like = jax.tree.map(_shape_of, batch)
            self._programs[shapes_of(batch)] = self._threads.submit(
                lambda like=like: step.lower(state, like, *rest).compile()
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __call__(self, state: Any, batch: Any, *rest: Any) -> Any:
        """Calls the step, once the program for this batch is ready.

        Raises:
          Exception: What its compilation raised.
        """
        program = self._programs.get(shapes_of(batch))
        if program is None:
            return self._step(state, batch, *rest)
        try:
            compiled = program.result()
        except BaseException:  # of the compiler, or a signal
            self.close()
            raise
        return compiled(state, batch, *rest)

    def is_ready(self, batch: Any) -> bool:
        """Returns whether a call with such a batch is known to wait for no compiler."""
        program = self._programs.get(shapes_of(batch))
        return program is not None and program.done()

    def close(self) -> None:
        """Begins no further program, and waits for those that are being compiled.

        A process that ended meanwhile would take away what the compiler stands on.
        """
        self._threads.shutdown(cancel_futures=True)


def shapes_of(batch: Any) -> Shapes:
    """Returns the shapes of a batch's arrays, by which programs are told apart."""
    return tuple(leaf.shape for leaf in jax.tree.leaves(batch))


def _can_be_compiled_before(step: Callable) -> bool:
    # JAX's debuggers go through the operations of a call, of which a program knows nothing more.
    is_debugged = jax.config.jax_debug_nans or jax.config.jax_debug_infs
    return hasattr(step, "lower") and not (is_debugged or jax.config.jax_disable_jit)


def _shape_of(array: Any) -> jax.ShapeDtypeStruct:
    # Arrays of the host, as `pmap` takes them, have no placement yet.
    placement = getattr(array, "sharding", None)
    return jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=placement)
