"""The battery's rules: a part that breaks one is told so in one line, with a part that keeps it.

`pytest --tb=line tests/conformance -k NAME` prints these lines and nothing else.
"""

import pytest

from attention_jax.errors import UserError
from attention_jax.layers.mechanism import MECHANISMS
from attention_jax.objectives.compose import OBJECTIVES

_M, _O = "layers/mechanisms", "objectives"
# What a test holds parts to, and the file, below the package, of one that shows how.
RULES = {
    "test_it_is_built": (
        "it is built from the defaults of its `Config`, which has one for every field, and from "
        "other values that its fields allow, and answers queries", f"{_M}/luong_general"),
    "test_shapes_and_dtypes": (
        "contexts are `B T D`, weights and scores `B T S` in float32", f"{_M}/luong_general"),
    "test_weights_are_at_least_zero_and_sum_to_one_or_less": (
        "weights are at least zero, add up to one or less, and are zero where the mask is",
        f"{_M}/bahdanau"),
    "test_one_query_at_a_time_equals_all_at_once": (
        "one query at a time equals all at once: what it needs of those before is in a tracker",
        f"{_M}/coverage_vector"),
    "test_what_padding_holds_changes_nothing": (
        "what padding holds changes nothing, NaN included: mask before slots are added up",
        f"{_M}/location_aware"),
    "test_longer_padding_changes_nothing": (
        "longer padding changes nothing: read the mask, not the number of slots",
        f"{_M}/location_aware"),
    "test_gradients_of_bfloat16_are_summed_in_float32": (
        "gradients of bfloat16 are summed in float32: `upcast` a parameter before it meets rows",
        f"{_M}/normed_bahdanau"),
    "test_rows_without_slots_give_zeros_and_finite_gradients": (
        "rows without slots give zeros and finite gradients", f"{_M}/bahdanau"),
    "test_order_of_slots_matters_only_to_positional_mechanisms": (
        "slots are told apart by what they hold or where they stand, not by their order",
        f"{_M}/luong_location"),
    "test_every_parameter_learns": (
        "every parameter learns, in every head", f"{_M}/luong_general"),
    "test_jit_equals_eager": ("compiled or not, it gives the same", f"{_M}/luong_general"),
    "test_vmap_equals_batch": ("rows do not know of one another", f"{_M}/luong_general"),
    "test_beams_share_a_memory": (
        "hypotheses share a memory: its leading axes broadcast", f"{_M}/luong_general"),
    "test_rows_share_a_memory_without_axes_of_its_own": (
        "rows share a memory without axes of its own: count axes from the end",
        f"{_M}/luong_general"),
    "test_a_memory_may_have_no_slots_yet": (
        "a memory may have no slots yet", f"{_M}/coverage_vector"),
    "test_bfloat16_is_close_with_float32_weights": (
        "bfloat16 is close, with weights and scores in float32", f"{_M}/luong_general"),
    "test_it_and_its_gradients_can_be_lowered_for_gpus_and_tpus": (
        "it and its gradients can be lowered for GPUs and TPUs", f"{_M}/luong_general"),
    "test_second_call_compiles_nothing": (
        "a second call compiles nothing: decide by `jnp.where`, not by what arrays hold",
        f"{_M}/local_p"),
    "test_every_field_changes_something": (
        "every field changes the output, or what a parameter starts from", f"{_M}/luong_general"),
    "test_attention_layer_declares_what_the_mechanism_needs": (
        "its parameters can be declared and drawn, a scalar as `Parameter.of('scale')`",
        f"{_M}/normed_bahdanau"),
    "test_depths_that_heads_cannot_share_are_rejected": (
        "depths that heads cannot share are refused", f"{_M}/luong_general"),
    "test_queries_and_keys_of_two_depths_are_compared_or_refused": (
        "queries and keys of two depths are compared, or `build` refuses them with ValueError",
        f"{_M}/luong_dot"),
    "test_arrays_that_do_not_fit_are_rejected": (
        "arrays that do not fit are refused", f"{_M}/luong_general"),
    "test_what_a_mechanism_needs_is_asked_for": (
        "what it `needs` is asked for in one line", f"{_M}/coverage_embedding"),
    "test_float64_is_computed_in_float64": (
        "float64 is computed in float64: no type is written down", f"{_M}/bahdanau"),
    "test_slots_are_known_by_their_positions_and_not_by_their_order": (
        "slots are known by the positions that are given, not by their order",
        f"{_M}/luong_location"),
    "test_queries_and_slots_further_on_have_the_same_distances": (
        "queries and slots further on have the same distances", f"{_M}/local_p"),
    "test_nothing_may_be_given": ("no rows, queries or slots may be given", f"{_M}/bahdanau"),
    "test_no_slots_give_zeros": ("no slots give zeros", f"{_M}/bahdanau"),
    "test_calls_can_be_exported_for_any_sizes": (
        "it can be exported for any number of rows and slots", f"{_M}/bahdanau"),
    "test_equal_configs_give_equal_mechanisms_that_are_compiled_once": (
        "equal configs give equal mechanisms, which are compiled once", f"{_M}/luong_general"),
    "test_mechanism": (
        "a row alone equals the same row in a padded batch", f"{_M}/location_aware"),
    "test_objective_is_built": (
        "it is built from the defaults of its `Term`, which has one for every field, and computes "
        "`count` and `total`", f"{_O}/coverage_loss"),
    "test_objective": (
        "a row counts as much alone as in a padded batch: sum over real slots and tokens only",
        f"{_O}/coverage_loss"),
    "test_zero_weights_give_finite_gradients": (
        "loss and gradients are finite where attention has no weight: no logarithm of zero, not "
        "even in the branch that is not taken", f"{_O}/attention_entropy"),
    "test_padding_adds_nothing_and_gives_finite_gradients": (
        "padding adds nothing to the loss and learns nothing: take it out before anything is "
        "computed with it", f"{_O}/coverage_loss"),
    "test_it_is_a_sum_over_what_it_counts": (
        "`total` is a sum over what `count` counts, divided by nothing: those of rows add up to "
        "that of the batch", f"{_O}/nll"),
    "test_every_objective_is_measured_over_slots_or_refused": (
        "it sums over the memory's slots, of which some encoders make fewer than there are source "
        "tokens: `slots_mask` of `objectives/real_attention.py` tells the real ones",
        f"{_O}/supervised_alignment"),
}  # fmt: skip
_OF_OBJECTIVES = {test for test, (_, kept_by) in RULES.items() if kept_by.startswith(_O)}
_OF_OBJECTIVES -= {"test_objective_is_built"}


def pytest_configure():
    """Says once which file of a user's own is no part; nothing is collected then."""
    try:
        for parts in (MECHANISMS, OBJECTIVES):
            parts.names()
    except UserError as error:
        raise pytest.UsageError(str(error)) from None


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    """Ends a test that fails, whatever it ended in, with the line of its rule.

    One rule at a time: what cannot be built breaks that one alone, and for one cause only once.
    """
    case = pyfuncitem.funcargs.get("case")
    if getattr(case, "refusal", None):
        first = refused_alike(case)
        if pyfuncitem.originalname != "test_it_is_built" or first is not case:
            pytest.skip(f"is not built, as test_it_is_built[{first.name}] says")
    elif case is None and (first := refused_by_name(part_of(pyfuncitem.funcargs))):
        pytest.skip(f"is not built, as test_it_is_built[{first.name}] says")
    if pyfuncitem.originalname in _OF_OBJECTIVES and not_built(pyfuncitem.funcargs["name"]):
        pytest.skip("is not built, as test_objective_is_built says")
    try:
        return (yield)
    except Exception as error:
        if pyfuncitem.originalname not in RULES:
            raise
        line = broken(pyfuncitem.originalname, pyfuncitem.callspec.id, error)
        # Below the line, only who asks for more is told where it came from.
        is_line = pyfuncitem.config.getoption("tbstyle") == "line"
        raise AssertionError(line) from (None if is_line else error)


def refused_alike(case):
    """Returns the first case of a mechanism that is refused for the same cause as another."""
    from tests.conformance.battery import CASES

    of_part = [each for each in CASES.values() if each.part == case.part]
    alike = [each for each in of_part if each.refusal and told(each.refusal) == told(case.refusal)]
    return (alike or [case])[0]  # one that a test has made is in no list


def part_of(arguments):
    """Returns the name of the part that a test without a case is about."""
    return arguments.get("name", getattr(arguments.get("config"), "name", None))


def refused_by_name(name):
    """Returns the first case of a mechanism that is refused; None of what is no mechanism."""
    from tests.conformance.battery import CASES

    of_part = [each for each in CASES.values() if each.part == name]
    return next((each for each in of_part if each.refusal), None)


def not_built(name):
    """Returns whether an objective is not built, or does not compute what it has to."""
    from tests.conformance.test_objectives import computed

    try:
        computed(name)
    except Exception:  # whatever it is, `test_objective_is_built` tells it
        return True
    return False


def broken(test, part, error):
    """Returns the line: which part breaks which rule, where it is kept, and what was found."""
    says, kept_by = RULES[test]
    return f"{part}: {says}, as in attention_jax/{kept_by}.py ({told(error)})"


def told(error):
    """Returns the first line of an error, with its type; of numbers also how far they are off."""
    found, *rest = str(error).strip().split("\n")
    off = [line.strip(" :") for line in rest if line.startswith(("nan location", "Max absolute"))]
    found = ", ".join([found, *off[:1]])
    return f"{type(error).__name__}: {found}" if found else type(error).__name__
