"""The flags that manifests of a training and of a sweep share."""

from absl import flags

_TEXTS = (
    "name", "image", "topology", "bucket", "claim", "data", "extensions", "service_account", "out"
)  # fmt: skip


def define_flags() -> None:
    """Flags of the command line: which nodes, and where runs and data are."""
    for name in _TEXTS:
        flags.DEFINE_string(name, None, "See above.")
    flags.DEFINE_multi_string("env", [], "Variables of the training, as NAME=VALUE.")
    flags.DEFINE_integer("slices", 1, "TPU slices.", lower_bound=1)
    flags.DEFINE_integer("per_node", 0, "Devices of a node.", lower_bound=0)
    flags.DEFINE_integer("max_restarts", 100, "How often it starts again.", lower_bound=0)
    flags.DEFINE_boolean("spot", False, "Whether on spot nodes.")
