"""The parameters of recurrent cells, for encoders and decoders."""

from attention_jax.layers.parameters import Parameter
from attention_jax.ops.recurrent import CELLS


def cell_parameters(name: str, input_dim: int, depth: int) -> dict[str, Parameter]:
    """Returns the parameters of a cell: its input kernel and what its step reads."""
    width = CELLS[name].num_gates * depth
    parameters = {
        "input": Parameter((input_dim, width)),
        "recurrent": Parameter((depth, width), "recurrent"),
        "bias": Parameter((width,), "forget_bias" if name == "lstm" else "bias"),
    }
    if name == "gru":
        parameters["candidate_bias"] = Parameter((depth,), "bias")
    return parameters
