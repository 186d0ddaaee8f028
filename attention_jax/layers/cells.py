"""The parameters of recurrent cells, for encoders and decoders."""

from attention_jax.layers.parameters import Parameter
from attention_jax.ops.recurrent import CELLS


def cell_parameters(name: str, input_dim: int, depth: int) -> dict[str, Parameter]:
    """Returns the parameters of a cell: its input kernel and what its step reads."""
    width = CELLS[name].num_gates * depth
    parameters = {
        "input": Parameter.of("kernel", input=input_dim, gates=width),
        "recurrent": Parameter.of("recurrent", hidden=depth, gates=width),
        "bias": Parameter.of("forget_bias" if name == "lstm" else "bias", gates=width),
    }
    if name == "gru":
        parameters["candidate_bias"] = Parameter.of("bias", hidden=depth)
    return parameters
