"""The mechanisms that the battery runs over: all that exist, in small.

Each is built where a rule is tried on it, so that one that cannot be is said to break that rule.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.config_values import check_limits
from attention_jax.errors import ConfigError
from attention_jax.layers import hard_attention
from attention_jax.layers.attention import OneSource, build_mechanism
from attention_jax.layers.encoder import sequence
from attention_jax.layers.inner_score import check_inner_score
from attention_jax.layers.mechanism import MECHANISMS
from attention_jax.layers.refinement import REFINEMENTS
from attention_jax.ops.step_pointer import STEP
from attention_jax.types import AttentionOutput, SpecialIds

B, T, S, D, Dv = 3, 4, 5, 8, 6
LENGTHS = (5, 3, 4)
SIZES = {"source_vocabulary_size": 7, "word_dim": 3, "place": "self"}
_SMALL = 8
_HALF_WIDTH = 2
_VARIANTS = ((1, "softmax"), (1, "sparsemax"), (2, "entmax15"))
REFINEMENT_FIELDS = {
    "alibi": [{}, {"steepness": 1.0}],
    "attention_sink": [{}, {"is_learned": False}],
    "qk_norm": [{}, {"norm": "l2"}],
    "relative_buckets": [{"num_buckets": 4, "max_distance": 3}],
    "relative_positions": [{"max_distance": 2}, {"max_distance": 2, "adds_values": False}],
    "rope": [{}, {"layout": "halves"}],
    "sliding_window": [{"size": 2}, {"size": 2, "num_first": 1}],
    "soft_cap": [{"cap": 0.5}],
    "talking_heads": [{}, {"mixes_scores": False}, {"mixes_weights": False}],
}
# Other choices of groups of fields that are chosen by name; what is read at test time is a case.
GROUPS = {
    "estimator": [hard_attention.StraightThrough(), hard_attention.GumbelSoftmax()],
    "at_test": [hard_attention.Argmax(), hard_attention.Sample()],
}
MONOTONIC = ("monotonic", "mocha")


def needs_of(name):
    """Returns what a mechanism needs of its model, also if its config cannot be made."""
    config = MECHANISMS.config(name)
    try:
        return config().needs
    except Exception:  # whatever it is, `test_it_is_built` tells it
        return config.needs if isinstance(config.needs, tuple) else ()


# Those that ask one source; the others have tests/layers/test_several_sources.py.
ONE_SOURCE = [name for name in MECHANISMS.names() if "sources" not in needs_of(name)]
# Which of their fields make mechanisms carry nothing from query to query, as scores must.
_CARRYING_NOTHING = {"structural_bias": {"markov": False, "fertility": False}}


def fields_of(name):
    """Returns the fields of a mechanism's config by their names."""
    return {field.name: field for field in dataclasses.fields(MECHANISMS.config(name))}


def small_config(name, **fields):
    """Returns a mechanism's config with all sizes small and the window narrow."""
    if name == "multi_head":
        fields = {"num_heads": 2, "head_dim": 4, "score": small_config("scaled_dot"), **fields}
    for field in fields_of(name).values():
        if field.name in ("score", "chunk_score") and "named" in field.metadata:
            fields.setdefault(field.name, small_score("luong_general"))
        elif isinstance(field.default, int):
            size = _HALF_WIDTH if field.name == "half_width" else _SMALL
            fields.setdefault(field.name, small(field, size))
    return MECHANISMS.config(name)(**fields)


def small(field, size):
    """Returns the default of a field or, if that is less, the first from `size` on it allows."""
    if field.default <= size or "choices" in field.metadata:
        return field.default
    least = math.ceil(field.metadata.get("at_least", size))
    above = math.floor(field.metadata.get("above", size - 1))
    return min(field.default, max(size, least, above + 1))


def allows(field, value):
    """Returns whether a field takes a number or text."""
    try:
        check_limits(value, field.metadata, field.name)
    except ConfigError:
        return False
    return True


def another(field, value):
    """Returns another number that a field allows, if there is one.

    Of a float two more, or halfway to where it ends; of an int the one before or after.
    """
    if isinstance(value, int):
        found = [value - 1, value + 1]
    else:
        ends = [field.metadata[name] for name in ("below", "at_most", "above", "at_least")
                if name in field.metadata]  # fmt: skip
        found = [value + 2, *((value + end) / 2 for end in ends), value - 2]
    return next((other for other in found if other != value and allows(field, other)), None)


def small_score(name, **fields):
    """Returns the config of a score for a small window, or None if it cannot score one."""
    has = fields_of(name)
    fields = {**_CARRYING_NOTHING.get(name, {}), **fields}
    if "normalizer" not in has:
        return None
    if "num_heads" in has:
        fields.setdefault("num_heads", 1)
    try:
        case = build_case(small_config(name, **fields))
        if case.refusal or case.carries:
            return None
        check_inner_score(case.config)
    except Exception:  # whatever it is, `test_it_is_built` tells it
        return None
    if "max_positions" in has:
        fields["max_positions"] = 2 * _HALF_WIDTH + 1
    return small_config(name, **fields)


def configs_of(name) -> Iterator:
    """Yields a mechanism with heads, normalizers, inner scores and other choices."""
    if name in ("multi_head", *MONOTONIC):
        yield from multi_head_configs() if name == "multi_head" else monotonic_configs(name)
        return
    fields, plain = fields_of(name), small_config(name)
    if "normalizer" in fields:
        for heads, normalizer in _VARIANTS:
            values = {"num_heads": heads, "normalizer": normalizer}
            values = {key: value for key, value in values.items() if key in fields}
            if all(allows(fields[key], value) for key, value in values.items()):
                yield small_config(name, **values)
        if name in _CARRYING_NOTHING:
            yield small_config(name, **_CARRYING_NOTHING[name])
    elif {"half_width", "score"} <= set(fields):
        for score in filter(None, map(small_score, MECHANISMS.names())):
            yield small_config(name, score=score)
        score = small_score("luong_general", normalizer="sparsemax")
        yield small_config(name, score=score, num_heads=2)
    elif "score" in fields:  # whose weights are those of any other
        yield plain
        yield small_config(name, score=small_score("bahdanau", normalizer="sparsemax"))
        for way in GROUPS["at_test"] if "at_test" in fields else ():
            yield small_config(name, at_test=way)
    for field in fields.values():
        default = getattr(plain, field.name)
        if isinstance(default, bool):
            yield small_config(name, **{field.name: not default})
        elif isinstance(default, float) and another(field, default) is not None:
            yield small_config(name, **{field.name: another(field, default)})
        for choice in field.metadata.get("choices", ()):
            if field.name != "normalizer" and choice != default:
                yield small_config(name, **{field.name: choice})
    if not {"normalizer", "score"} & set(fields):
        yield plain


def multi_head_configs() -> Iterator:
    """Yields heads of several layouts, over several scores, with every refinement."""
    small = functools.partial(small_config, "multi_head")
    yield small()
    yield small(num_heads=4, num_memory_heads=2, head_value_dim=3, use_bias=True)
    yield small(score=small_config("bahdanau"), num_memory_heads=1, use_key_bias=True)
    yield small(score=small_score("structural_bias"))
    for name in ("linguistic_coverage", "neural_coverage", "coverage_vector"):
        yield small(score=small_config(name), head_dim=3)
    yield small(score=small_config("local_m"))
    yield small(score=small_config("local_p"))
    yield small(score=small_config("local_p"), refinements={"attention_sink": {}})
    for name in REFINEMENTS.names():
        for fields in REFINEMENT_FIELDS[name]:
            yield small(refinements={name: fields})
    yield small(
        num_heads=4,
        num_memory_heads=2,
        refinements={
            name: choices[0] for name, choices in REFINEMENT_FIELDS.items()
            if name != "rope"  # which cannot stand beside relative positions
        },
    )
    yield small(score=next(monotonic_configs("monotonic")))


def monotonic_configs(name) -> Iterator:
    """Yields attention that stops while it reads, in expectation and by decisions."""
    yield small_config(name, evaluation="expected", score=small_config("normed_bahdanau"))
    yield small_config(name)
    if name == "mocha":
        yield small_config(name, evaluation="expected", num_heads=2, window=None)


def sources_of(keys, values, mask, ids=None):
    """Returns one source with the ids of its tokens."""
    aux = {"source_ids": source_ids(mask) if ids is None else ids}
    return sequence(keys, mask, values=values, aux=aux)


def source_ids(mask):
    """Returns a word type for each slot, the same in all rows; two slots may share one."""
    return jnp.broadcast_to(jnp.arange(mask.shape[-1]) * 3 % 4, mask.shape)


def written_words(query):
    """Returns the word before each query, embedded and as its id, the same in all rows."""
    length, depth = query.shape[-2], SIZES["word_dim"]
    words = np.random.default_rng(2).normal(size=(T, depth))
    ids = jnp.asarray([[SpecialIds.BOS], [STEP], [STEP + 1], [STEP]])
    rows = query.shape[:-1]
    return {
        "written_word": jnp.broadcast_to(words[:length], (*rows, depth)).astype(query.dtype),
        "written_id": jnp.broadcast_to(ids[:length], (*rows, 1)),
    }


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """One mechanism, with its parameters and what has been compiled for it.

    Attributes:
      name: What tells it from others.
      config: Its config; None if that cannot be made.
      build: Builds it, or raises why it cannot be.
    """

    name: str
    config: object
    build: Callable[[], OneSource]

    @functools.cached_property
    def mechanism(self):
        return self.build()

    @functools.cached_property
    def refusal(self):
        """What is raised where it is built and called; None if nothing is."""
        try:
            jax.eval_shape(self.attend, self.params, *inputs())
        except Exception as error:  # of a part that anybody may have written
            return error
        return None

    @property
    def part(self):
        """The mechanism's name."""
        return self.name.split("-")[0]

    @property
    def starts(self):
        """What its parameters start from, those that start from one number."""
        parameters = self.mechanism.parameters
        found = {name: getattr(parameters[name], "start", None) for name in parameters}
        return {name: start for name, start in found.items() if start is not None}

    @property
    def carries(self):
        """Whether something is carried from query to query."""
        return bool(self.mechanism.carries)

    @property
    def has_heads(self):
        return self.refusal is None and self.mechanism.num_heads > 1

    @property
    def has_window(self):
        parts = None if self.refusal else getattr(self.mechanism, "parts", None)
        return parts is not None and parts.spec.pattern is not None

    @property
    def is_distribution(self):
        """Whether the weights of a query are at least zero and sum to one."""
        refinements = getattr(self.config, "refinements", {})
        may_lose = self.has_window or "attention_sink" in refinements
        return not may_lose and self.evaluation is None

    @property
    def evaluation(self):
        """What is done once training is over by attention that stops; None for any other."""
        score = getattr(self.config, "score", None)
        return getattr(self.config, "evaluation", getattr(score, "evaluation", None))

    @functools.cached_property
    def params(self):
        rng = np.random.default_rng(1)
        return {
            name: jnp.asarray(0.4 * rng.normal(size=parameter.shape), jnp.float32)
            for name, parameter in sorted(self.mechanism.parameters.items())
        }

    def memory(self, params, keys, values, mask):
        return self.mechanism.make_memory(params, sources_of(keys, values, mask))

    def attend(self, params, query, keys, values, mask, **call) -> AttentionOutput:
        memory, observed = self.memory(params, keys, values, mask), written_words(query)
        return self.mechanism.attend(params, query, memory, observed=observed, **call)[0]

    def stepwise(self, params, query, keys, values, mask) -> AttentionOutput:
        memory = self.memory(params, keys, values, mask)

        def step(state, inputs):
            query, observed, position = inputs
            if self.mechanism.observes:
                state = self.mechanism.observe(params, memory, state, observed)
            output, state = self.mechanism.attend(
                params, query[:, None], memory, state, positions=position[None]
            )
            return state, jax.tree.map(lambda part: part[:, 0], output)

        by_time = jax.tree.map(lambda part: jnp.swapaxes(part, 0, 1), (query, written_words(query)))
        steps = (*by_time, jnp.arange(query.shape[1]))
        _, outputs = jax.lax.scan(step, self.mechanism.init_state(params, memory), steps)
        return jax.tree.map(lambda part: jnp.swapaxes(part, 0, 1), outputs)

    @functools.cached_property
    def run(self):
        """Compiled: arguments of `attend` -> (output, gradients of params, query, keys, values)."""

        def loss(floats, mask):
            output = self.attend(*floats, mask)
            upstream = jnp.cos(jnp.arange(output.context.size)).reshape(output.context.shape)
            return (output.context * upstream).sum(), output

        def run(*arguments):
            gradients, output = jax.grad(loss, has_aux=True)(arguments[:-1], arguments[-1])
            return output, gradients

        return jax.jit(run)


def _label(config):
    values = []
    for field in sorted(dataclasses.fields(config), key=lambda field: field.name != "name"):
        value = getattr(config, field.name)
        if isinstance(value, str):
            values.append(value)
        elif isinstance(value, dict):
            values.extend(f"{key}{_label(part)}" for key, part in value.items())
        elif (value is None) != (field.default is None):
            values.append(f"{field.name}={value}")
        elif dataclasses.is_dataclass(value):
            values.append(_label(value))
        elif field.name == "num_heads" and value > 1:
            values.append(f"{value}heads")
        elif isinstance(value, bool | float) and value != field.default:
            values.append(f"{field.name}={value}")
        elif isinstance(value, int) and value != field.default:
            if field.default <= _SMALL or "choices" in field.metadata:  # not made small
                values.append(f"{field.name}={value}")
    return "-".join(values)


def build_case(config) -> Case:
    """Builds a case from a mechanism's config."""
    mechanism = built(config)
    return Case(_label(config), config, lambda: mechanism)


def built(config):
    return build_mechanism(config, D, D, Dv, **SIZES)


def cases_of(name) -> list[Case]:
    """Lists the cases of a mechanism; one that is refused if there is no making their configs."""
    try:
        found = [*configs_of(name)] or [small_config(name)]
        return [Case(_label(each), each, functools.partial(built, each)) for each in found]
    except Exception as error:  # of a part that anybody may have written
        return [Case(name, None, functools.partial(_refuse, error))]


def _refuse(error):
    raise error


def all_cases() -> list[Case]:
    """Lists every case."""
    return [case for name in ONE_SOURCE for case in cases_of(name)]


def inputs(size=S):
    """Returns (query, keys, values, mask); the mask's lengths do not depend on `size`."""
    rng = np.random.default_rng(0)
    draw = lambda *shape: jnp.asarray(rng.normal(size=shape), jnp.float32)  # noqa: E731
    query, keys, values = draw(B, T, D), draw(B, S, D), draw(B, S, Dv)
    widths = ((0, 0), (0, size - S), (0, 0))
    mask = jnp.arange(size) < jnp.asarray(LENGTHS)[:, None]
    return query, jnp.pad(keys, widths), jnp.pad(values, widths), mask


def each_of(names):
    """Tries a test on some of the cases."""
    return pytest.mark.parametrize("case", [CASES[name] for name in names], ids=names)


CASES = {case.name: case for case in all_cases()}
every_case = each_of(list(CASES))
# What the way of calling must not change is tried on one case of each mechanism, and on heads.
FIRST = {case.part: name for name, case in reversed(CASES.items())}
HEADS = {case.part: name for name, case in CASES.items() if "2heads" in name}
WITH_HEADS = ("bahdanau", "coverage_embedding", "local_p", "mocha", "neural_coverage")
DECIDING = {name for name, case in CASES.items() if case.evaluation == "hard"}
FEW = {*FIRST.values(), *(HEADS[name] for name in WITH_HEADS), *DECIDING}
FEW = [name for name in CASES if name in FEW]
LONGER = [name for name in CASES if name in FEW or name.startswith("multi_head")]
one_case_each = each_of(FEW)


@functools.cache
def reference(case):
    """What the others are compared with: all queries at once, compiled."""
    return jax.tree.map(np.asarray, case.run(case.params, *inputs()))


def close(found, expected, rtol=1e-4, atol=1e-5):
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=rtol, atol=atol)
