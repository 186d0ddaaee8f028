"""Pure jax.numpy functions: the mathematics of attention and recurrence, with no modules."""

from attention_jax.ops.attend import (
    AttentionSpec,
    Tracker,
    attend,
    init_state,
    keep_memory,
    keep_query,
    make_memory,
    observe,
)
from attention_jax.ops.bands import (
    Band,
    Blocks,
    has_blocks,
    in_blocks,
    join,
    reach,
    rows_of_blocks,
    split_memory,
    split_queries,
    within_band,
)
from attention_jax.ops.convolutions import average_window, convolve, gated_linear_unit
from attention_jax.ops.cross_entropy import cross_entropy, smoothed_target
from attention_jax.ops.custom_gradients import with_backward
from attention_jax.ops.deferred_scan import deferred_scan
from attention_jax.ops.dropout import dropout_factors, scale
from attention_jax.ops.fused_dot import fused_dot_attention, fused_dot_context
from attention_jax.ops.largest import largest, log_normalizer
from attention_jax.ops.lookup import look_up, take_slots
from attention_jax.ops.lstmn import run_lstmn
from attention_jax.ops.masks import masked_mean, shift_right, time_major, zero_padding
from attention_jax.ops.normalization import layer_norm, rms_norm
from attention_jax.ops.normalizers import (
    NORMALIZERS,
    Normalizer,
    entmax15,
    entmax15_normalizer,
    gaussian_window,
    masked_softmax,
    softmax_normalizer,
    sparsemax,
    sparsemax_normalizer,
)
from attention_jax.ops.pattern import AttentionPattern, Queries
from attention_jax.ops.positions import (
    alibi_slopes,
    at_indices,
    first_position,
    positions_of_slots,
    rotate,
    sinusoidal_positions,
    slot_offsets,
    slots_at,
)
from attention_jax.ops.predictions import Predictions, SoftmaxPredictions
from attention_jax.ops.products import add_bias, average_values, multiply_rows
from attention_jax.ops.recurrent import (
    CELLS,
    Cell,
    gru_reset_before_step,
    gru_step,
    lstm_step,
    run_cell,
)
from attention_jax.ops.scores import (
    additive_scores,
    concat_scores,
    dot_scores,
    general_scores,
    location_scores,
    product_scale,
    project_general_keys,
    scaled_dot_scores,
    score_dot,
    score_scaled_dot,
)
from attention_jax.ops.sharded_attention import attend_sharded, sharded_softmax
from attention_jax.ops.spans import any_in_spans, to_positions
from attention_jax.ops.step_program import Operation, Program
from attention_jax.ops.structural_biases import neighbourhood, query_position, slot_positions
from attention_jax.ops.summation import accumulation_dtype, upcast
from attention_jax.ops.trackers import (
    coverage,
    coverage_embedding,
    neural_coverage,
    previous_weights,
)
from attention_jax.ops.windows import (
    LocalWindow,
    Window,
    gather_from_rows,
    gather_window,
    scatter_window,
    window_around,
    window_indices,
)

__all__ = [
    "AttentionPattern",
    "AttentionSpec",
    "Band",
    "Blocks",
    "CELLS",
    "Cell",
    "LocalWindow",
    "NORMALIZERS",
    "Normalizer",
    "Operation",
    "Predictions",
    "Program",
    "Queries",
    "SoftmaxPredictions",
    "Tracker",
    "Window",
    "accumulation_dtype",
    "add_bias",
    "additive_scores",
    "alibi_slopes",
    "any_in_spans",
    "at_indices",
    "attend",
    "attend_sharded",
    "average_values",
    "average_window",
    "concat_scores",
    "convolve",
    "coverage",
    "coverage_embedding",
    "cross_entropy",
    "deferred_scan",
    "dot_scores",
    "dropout_factors",
    "entmax15",
    "entmax15_normalizer",
    "first_position",
    "fused_dot_attention",
    "fused_dot_context",
    "gated_linear_unit",
    "gather_from_rows",
    "gather_window",
    "gaussian_window",
    "general_scores",
    "gru_reset_before_step",
    "gru_step",
    "has_blocks",
    "in_blocks",
    "init_state",
    "join",
    "keep_memory",
    "keep_query",
    "largest",
    "layer_norm",
    "location_scores",
    "log_normalizer",
    "look_up",
    "lstm_step",
    "make_memory",
    "masked_mean",
    "masked_softmax",
    "multiply_rows",
    "neighbourhood",
    "neural_coverage",
    "observe",
    "positions_of_slots",
    "previous_weights",
    "product_scale",
    "project_general_keys",
    "query_position",
    "reach",
    "rms_norm",
    "rotate",
    "rows_of_blocks",
    "run_cell",
    "run_lstmn",
    "scale",
    "scaled_dot_scores",
    "scatter_window",
    "score_dot",
    "score_scaled_dot",
    "sharded_softmax",
    "shift_right",
    "sinusoidal_positions",
    "slot_offsets",
    "slot_positions",
    "slots_at",
    "smoothed_target",
    "softmax_normalizer",
    "sparsemax",
    "sparsemax_normalizer",
    "split_memory",
    "split_queries",
    "take_slots",
    "time_major",
    "to_positions",
    "upcast",
    "window_around",
    "window_indices",
    "with_backward",
    "within_band",
    "zero_padding",
]
