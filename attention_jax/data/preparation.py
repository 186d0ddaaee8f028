"""Data set preparation by TFDS: built once, then read from the cache by every later run."""

import contextlib
import errno
import io
import os
import shutil
from pathlib import Path
from typing import Any

import tensorflow_datasets as tfds
from absl import logging

from attention_jax.data import storage
from attention_jax.data.builders.blocks import Example, ManySided, from_blocks
from attention_jax.errors import DataError
from attention_jax.paths import plainly_named
from attention_jax.quiet import quiet

# Errors of storage, which users can mend; any other is a mistake of the program.
_OF_STORAGE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.EACCES)
SPLITS = ("train", "validation", "test")


def load_examples(builder_class: type, config: Any = None) -> dict[str, list[Example | ManySided]]:
    """Loads the examples of every split, preparing the data set if it is not yet.

    Of several processes, one prepares and the others wait. If a process dies while preparing, a
    later one does not take the unfinished data for complete.

    Args:
      builder_class: A TFDS builder whose records are blocks of examples.
      config: The builder's config, or the name of one.

    Raises:
      DataError: If the data cannot be obtained, prepared or read.
    """
    root = storage.cache_root() / "datasets"
    with plainly_named(root) as plain:
        with storage.exclusive(root / "locks" / builder_class.name):
            # A builder looks for prepared data when it is made: only with the lock in hand.
            with quiet(logging.ERROR):  # a config of the user's own is no cause to warn
                builder = _builder(builder_class, plain, root, config)
            folder = root / Path(builder.data_dir).relative_to(plain)
            if not folder.exists():
                _prepare(builder, folder)
        return {name: _read(builder, folder, name) for name in SPLITS}


def _prepare(builder: tfds.core.DatasetBuilder, folder: Path) -> None:
    """Writes a data set into its folder."""
    logging.info("Preparing %s in %s", builder.name, folder)
    # Left by processes that died; the lock is held, so nobody is writing them now.
    for unfinished in folder.parent.glob(f"incomplete.*_{folder.name}"):
        shutil.rmtree(unfinished, ignore_errors=True)
    tfds.disable_progress_bar()
    settings = tfds.download.DownloadConfig(compute_stats=tfds.download.ComputeStatsMode.SKIP)
    try:
        # TFDS prints to the standard output too.
        with quiet(logging.WARNING), contextlib.redirect_stdout(io.StringIO()):
            builder.download_and_prepare(
                download_dir=str(storage.cache_root() / "downloads"),
                download_config=settings,
                file_format="array_record",
            )
    except OSError as error:
        reason = error.strerror or error
        raise DataError(f"{folder}: the data set could not be written ({reason})") from None
    except RuntimeError as error:  # the writer of records wraps errors of the system in it
        reason = next((each for each in map(os.strerror, _OF_STORAGE) if each in str(error)), None)
        if reason is None:
            raise
        raise DataError(f"{folder}: the data set could not be written ({reason})") from None


def _builder(
    builder_class: type, plain: Path, root: Path, config: Any
) -> tfds.core.DatasetBuilder:
    """Makes a builder, which reads the description of the data if that is prepared."""
    try:
        return builder_class(data_dir=str(plain), config=config, file_format="array_record")
    except (DataError, OSError):
        raise
    except Exception as error:  # the parser of descriptions raises many kinds
        raise _damaged(root / builder_class.name, error) from None


def _read(builder: tfds.core.DatasetBuilder, folder: Path, split: str) -> list[Example | ManySided]:
    try:
        source = builder.as_data_source(split=split)
        return from_blocks(source.__getitems__(list(range(len(source)))))
    except Exception as error:
        raise _damaged(folder, error) from None


def _damaged(folder: Path, error: Exception) -> DataError:
    """Returns the error for prepared data that cannot be read."""
    reason = " ".join(str(error).split())[:200]
    return DataError(
        f"{folder}: the prepared data is damaged, delete the folder to prepare it anew "
        f"({type(error).__name__}: {reason})"
    )
