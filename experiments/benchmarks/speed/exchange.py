"""The parameters of the comparison's model as named arrays that any framework can read.

  source_embedding, target_embedding   V E
  CELL_input, CELL_recurrent           rows of inputs or of hidden states, gates r z n side by side
  CELL_bias, CELL_candidate_bias       3H added to the projected input, H inside the reset
                                       for CELL in forward, backward, decoder; the decoder's input
                                       is the embedding, then the attentional state that is fed
  bridge, bridge_bias                  2H H, from both final states to the decoder's first
  query, key, energy                   H A, 2H A, A
  attentional                          3H H, rows of the hidden state, then of the context
  output, output_bias                  V H, V
"""

from pathlib import Path

import numpy as np

from attention_jax.runs.checkpoints.weights import named_leaves
from attention_jax.types import Params


def exchanged(params: Params) -> dict[str, np.ndarray]:
    """Returns the project's parameters under the names above; a Transformer's under its own."""
    if "bridge" not in params["decoder"]:
        return {name: np.asarray(leaf) for name, leaf in named_leaves(params).items()}
    decoder, encoder = params["decoder"], params["encoder"]
    attention, bridge = decoder["attention"], decoder["bridge"]["layer_0_hidden"]
    layer = dict(decoder["layer_0"])
    layer["input"] = np.concatenate([layer["input"], layer.pop("feed")])
    arrays = {name: params[name] for name in ("source_embedding", "target_embedding")}
    arrays |= {name: params[name] for name in ("output", "output_bias")}
    arrays |= {"bridge": bridge["kernel"], "bridge_bias": bridge["bias"]}
    arrays |= {
        "query": attention["query_kernel"],
        "key": attention["key_kernel"],
        "energy": attention["vector"],
        "attentional": np.concatenate([decoder["combine"]["state"], decoder["combine"]["context"]]),
    }
    cells = {
        "forward": encoder["layer_0_forward"],
        "backward": encoder["layer_0_backward"],
        "decoder": layer,
    }
    arrays |= {
        f"{cell}_{name}": array for cell, tree in cells.items() for name, array in tree.items()
    }
    return {name: np.asarray(array) for name, array in arrays.items()}


def save_parameters(params: Params, path: Path) -> None:
    """Writes the project's parameters where the other contenders read them."""
    np.savez(path, **exchanged(params))
