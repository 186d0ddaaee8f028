"""The parameters of recurrent cells, for encoders and decoders."""

from attention_jax.layers.parameters import Parameter
from attention_jax.ops.recurrent import CELLS


def cell_parameters(name: str, input_dim: int, depth: int) -> dict[str, Parameter]:
    """Recurrent cell: returns its parameters, the input kernel and what its step reads."""
    width = CELLS[name].num_gates * depth
    parameters = {
        "input": Parameter.of("kernel", input=input_dim, gates=width),
        "recurrent": Parameter.of("recurrent", hidden=depth, gates=width),
        # One bias for all gates; an LSTM's has a role of its own, which may open the forget gate.
        "bias": Parameter.of("forget_bias" if name == "lstm" else "bias", gates=width),
    }
    if name == "gru":
        # It stands inside the product with the reset gate, where the other bias does not reach.
        parameters["candidate_bias"] = Parameter.of("bias", hidden=depth)
    return parameters
