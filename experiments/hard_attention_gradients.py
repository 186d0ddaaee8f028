"""Bias and variance of gradient estimators of hard attention, against the exact gradient."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from absl import flags

from attention_jax.commands import cli
from attention_jax.errors import UserError
from attention_jax.objectives import reinforce
from attention_jax.ops.hard_attention import (
    gumbel_softmax,
    log_prob_of_slot,
    most_probable_slot,
    straight_through,
)
from attention_jax.ops.predictions import SoftmaxPredictions
from attention_jax.paths import expanded
from attention_jax.plotting.figure import COLOURS, new_figure, text_style, tidy
from attention_jax.runs.files import write_json, write_text
from attention_jax.runs.provenance import commit, now, short_commit
from attention_jax.runs.run_directory import read_json
from attention_jax.sweeps.tables import table
from attention_jax.types import Array, AttentionOutput, ModelOutput
from experiments.kit import pictures

USAGE = """
Measures how far the gradient estimators of hard attention are from the exact gradient, in the mean
and from sample to sample, on decoders so small that all samples can be listed. Seconds.

usage: python -m experiments.hard_attention_gradients [--out=docs/results] [--tables_only]

  --out=DIRECTORY  where the page is written, and beside it the record and the plot
  --tables_only    measure nothing, make the page of what was measured
"""
NAME = "hard_attention_gradients"
SENTENCES, STEPS, SLOTS, DEPTH, WORDS = 16, 3, 4, 6, 8
SHARPNESS = {"undecided": 1.0, "decided": 4.0}
NUM_DRAWS = 4000
TEMPERATURES = (2.0, 1.0, 0.5, 0.1)
BASELINES = {"none": "no baseline", "moving_average": "moving average", "learnt": "learnt baseline"}
RETURNS = {"sequence": "whole return", "to_go": "reward to go"}

Params = Mapping[str, Array]


def define_flags(argv: list[str]) -> list[str]:
    """Defines the program's flags, when it runs and not when it is imported."""
    flags.DEFINE_string("out", "docs/results", "Where the page is written.")
    flags.DEFINE_boolean("tables_only", False, "Whether the page is made of what is there.")
    return argv


def main() -> None:
    """Measures, writes the record, a page and a plot; or makes the latter of the record."""
    out = expanded(flags.FLAGS.out)
    path = out / NAME / "results.json"
    if flags.FLAGS.tables_only and not path.exists():
        raise UserError(f"--tables_only: expected measurements in {path}, found none")
    if not flags.FLAGS.tables_only:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, measure(SENTENCES, NUM_DRAWS))
    record = read_json(path, object)
    write_text(out / f"{NAME}.md", page(record))
    pictures.save(plot(record), out / NAME / "estimators.png")
    print(page(record))


# ---- Decoders of a few steps ---------------------------------------------------------------------
def sentences(number: int, sharpness: float) -> tuple[Params, Params]:
    """Returns (parameters of the attention, all else) of random decoders, each with a source.

    Every array has a leading axis of `number` sentences.
    """
    rng = np.random.default_rng(0)

    def draw(*shape: int, size: float = 1.0) -> Array:
        values = size * rng.normal(size=(number, *shape)) / np.sqrt(shape[0])
        return jnp.asarray(values, jnp.float32)

    attention = {
        "first": draw(DEPTH, size=sharpness), "query": draw(DEPTH, DEPTH, size=sharpness)
    }  # fmt: skip
    rest = {
        "values": draw(SLOTS, DEPTH, size=np.sqrt(SLOTS)),
        "context": draw(DEPTH, DEPTH, size=2.0),
        "state": draw(DEPTH, DEPTH),
        "output": draw(DEPTH, WORDS, size=3.0),
        "target": jnp.asarray(rng.integers(WORDS, size=(number, STEPS))),
    }
    return attention, rest


def decode(
    attention: Params, rest: Params, draws: Array, read: Callable[[Array, Array], Array]
) -> ModelOutput:
    """Decodes the target of one sentence; `read(weights, draw)` says what each step reads.

    scores_t = values (q + Q h_{t-1});  h_t = tanh(read_t values C + h_{t-1} U);  logits_t = h_t O
    """
    state, outputs = jnp.zeros(DEPTH), []
    for draw in draws:
        query = attention["first"] + state @ attention["query"]
        weights = jax.nn.softmax(rest["values"] @ query)
        context = read(weights, draw) @ rest["values"]
        state = jnp.tanh(context @ rest["context"] + state @ rest["state"])
        outputs.append((state @ rest["output"], weights, log_prob_of_slot(weights, draw)))
    logits, weights, log_probs = (jnp.stack(part)[None] for part in zip(*outputs, strict=True))
    aux = {"sample_log_prob": log_probs, "is_sampled": jnp.ones((1, STEPS), bool)}
    return ModelOutput(SoftmaxPredictions(logits), AttentionOutput(None, weights, None, aux))


def log_likelihood(output: ModelOutput, rest: Params) -> Array:
    """Returns log p(y | what was read)."""
    return output.predictions.log_prob(rest["target"][None]).sum()


def all_samples() -> Array:
    """Lists all samples as one-hot rows: SLOTS^STEPS, STEPS, SLOTS."""
    slots = jnp.stack(jnp.meshgrid(*[jnp.arange(SLOTS)] * STEPS, indexing="ij"), -1)
    return jax.nn.one_hot(slots.reshape(-1, STEPS), SLOTS)


def sampled(weights: Array, draw: Array) -> Array:
    """Reads the sample itself."""
    return draw


def likelihoods(attention: Params, rest: Params) -> tuple[Array, Array]:
    """Returns p(s) and log p(y | s) of all samples of one sentence."""

    def of_one(sample: Array) -> tuple[Array, Array]:
        output = decode(attention, rest, sample, sampled)
        log_prob = output.attention.aux["sample_log_prob"].sum()
        return jnp.exp(log_prob), log_likelihood(output, rest)

    return jax.vmap(of_one)(all_samples())


def expected(attention: Params, rest: Params) -> Array:
    """Returns E_s[log p(y | s)] of one sentence, a sum over all samples."""
    probability, value = likelihoods(attention, rest)
    return jnp.sum(probability * value)


# ---- Estimates -----------------------------------------------------------------------------------
@dataclasses.dataclass(frozen=True)
class Estimator:
    """An estimate of the gradient of -E_s[log p(y | s)] from one sample.

    Attributes:
      label: Of its row.
      group: Of its points in the plot.
      loss: (attention, rest, draw, baseline) -> what is differentiated by the attention.
      is_listed: Whether draws are samples, all of which are listed, and not Gumbel noise.
    """

    label: str
    group: str
    loss: Callable[[Params, Params, Array, Array], Array]
    is_listed: bool = True

    def moments(
        self, attention: Params, rest: Params, baseline: Array, num_draws: int
    ) -> tuple[Array, Array]:
        """Returns mean and variance of the estimate for one sentence, flat."""
        if self.is_listed:
            draws, weights = all_samples(), likelihoods(attention, rest)[0]
        else:
            draws = jax.random.gumbel(jax.random.key(1), (num_draws, STEPS, SLOTS))
            weights = jnp.full(num_draws, 1 / num_draws)
        gradient = jax.vmap(jax.grad(self.loss), (None, None, 0, None))
        found = gradient(attention, rest, draws, baseline)
        each = jnp.concatenate([leaf.reshape(len(draws), -1) for leaf in found.values()], axis=1)
        mean = weights @ each
        return mean, weights @ jnp.square(each - mean)


def of_reinforce(returns: str, baseline: str) -> Estimator:
    """REINFORCE with a return and a baseline, as the objective computes it."""
    term = reinforce.Term(
        returns=returns, baseline="none" if baseline == "none" else "moving_average"
    )

    def loss(attention: Params, rest: Params, draw: Array, level: Array) -> Array:
        target = rest["target"][None]
        batch = {"target": target, "target_mask": jnp.ones(target.shape, bool)}
        return term.total(decode(attention, rest, draw, sampled), batch, level)

    group = f"REINFORCE, {RETURNS[returns]}"
    return Estimator(f"{group}, {BASELINES[baseline]}", group, loss)


def of_reading(
    label: str, group: str, read: Callable[[Array, Array], Array], is_listed: bool
) -> Estimator:
    """The gradient through what is read, where that has one."""

    def loss(attention: Params, rest: Params, draw: Array, level: Array) -> Array:
        return -log_likelihood(decode(attention, rest, draw, read), rest)

    return Estimator(label, group, loss, is_listed)


def of_gumbel(temperature: float, one_hot: bool) -> Estimator:
    """Gumbel-softmax, relaxed or with its largest entry read alone."""

    def read(weights: Array, noise: Array) -> Array:
        relaxed = gumbel_softmax(weights, noise, temperature)
        return straight_through(most_probable_slot(relaxed), relaxed) if one_hot else relaxed

    group = "Gumbel-softmax, one-hot" if one_hot else "Gumbel-softmax"
    return of_reading(f"{group}, temperature {temperature:g}", group, read, False)


def estimators() -> list[Estimator]:
    """Lists what is compared."""
    through = "straight-through"
    return [
        *(of_reinforce(returns, baseline) for returns in RETURNS for baseline in BASELINES),
        of_reading(through, through, lambda weights, draw: straight_through(draw, weights), True),
        *(of_gumbel(each, one_hot) for one_hot in (False, True) for each in TEMPERATURES),
    ]


# ---- The record and its page ---------------------------------------------------------------------
def measure(num_sentences: int, num_draws: int) -> dict[str, Any]:
    """Returns bias and spread of every estimator, relative to the size of the exact gradient."""
    cases = {name: sentences(num_sentences, size) for name, size in SHARPNESS.items()}
    found: dict[str, dict[str, Any]] = {name: {} for name in SHARPNESS}
    value_and_gradient = jax.jit(jax.vmap(jax.value_and_grad(expected)))
    known = {name: value_and_gradient(*case) for name, case in cases.items()}
    for estimator in estimators():  # each compiled once
        moments = jax.jit(
            jax.vmap(functools.partial(estimator.moments, num_draws=num_draws))
        )
        for name, case in cases.items():
            value, gradient = known[name]
            levels = value / STEPS  # where a learnt baseline goes to
            if BASELINES["learnt"] not in estimator.label:  # and a moving average
                levels = jnp.full_like(levels, levels.mean())
            exact = -_flat(gradient)
            mean, variance = map(np.asarray, moments(*case, levels))
            found[name][estimator.label] = {
                "bias": _size(mean - exact) / _size(exact),
                "spread": float(np.sqrt(variance.sum(1).mean())) / _size(exact),
            }
    return {
        "command": f"python -m experiments.{NAME}", "commit": commit(), "time": now(),
        "jax": jax.__version__, "sentences": num_sentences, "draws": num_draws, "found": found,
    }  # fmt: skip


def _flat(tree: Params) -> np.ndarray:
    return np.concatenate([leaf.reshape(len(leaf), -1) for leaf in tree.values()], axis=1)


def _size(rows: np.ndarray) -> float:
    """Returns the root of the mean squared length of rows, one a sentence."""
    return float(np.sqrt(np.square(rows).sum(1).mean()))


def page(record: Mapping[str, Any]) -> str:
    """Returns the record as Markdown."""
    found, number = record["found"], record["draws"]
    headings = ["estimator", *(f"{what}, {name}" for name in found for what in ("bias", "spread"))]
    rows = [
        [each.label, *(
            f"{found[name][each.label][what]:.2f}" for name in found for what in ("bias", "spread")
        )]
        for each in estimators()
    ]  # fmt: skip
    return f"""\
# Gradients of hard attention

Generated by `{record["command"]}` at {short_commit(record["commit"])}, {record["time"]}, jax
{record["jax"]}; the record is `{NAME}/results.json`.

{record["sentences"]} random decoders of {STEPS} steps over {SLOTS} slots, whose {SLOTS**STEPS}
samples can be listed: the exact gradient of the expected log-likelihood, by the parameters of the
attention, is a sum over all of them, and so are mean and variance of REINFORCE and of
straight-through estimates. Those of Gumbel-softmax are of {number:,} draws a sentence, which leave
of no bias at all {1 / number**0.5:.3f} times the spread. Bias is the distance of the mean from the
exact gradient, spread the standard deviation of the estimate from one sample, both relative to the
exact gradient (root mean squares over the sentences). Decided attention has four times the scores
of undecided. The moving average is taken where it rests, at the mean over the sentences, and a
learnt baseline at each sentence's own.

{table(headings, rows)}

![Spread against bias of each estimator]({NAME}/estimators.png)
"""


def plot(record: Mapping[str, Any]) -> Any:
    """Draws the spread of each estimator against its bias; lines join baselines, temperatures."""
    figure = new_figure(8.0, 4.2)
    panels = figure.subplots(1, len(record["found"]), sharey=True)
    groups = dict.fromkeys(each.group for each in estimators())
    for axes, (name, found) in zip(panels, record["found"].items(), strict=True):
        for colour, group in zip(COLOURS, groups, strict=False):
            points = [found[each.label] for each in estimators() if each.group == group]
            axes.plot(
                [point["bias"] for point in points], [point["spread"] for point in points],
                color=colour, marker="o", markersize=4, linewidth=1, label=group,
            )  # fmt: skip
        tidy(axes)
        axes.set_xlabel("bias", **text_style(9))
        axes.set_yscale("log")
        axes.set_title(f"Attention {name}", loc="left", **text_style(10, fontweight="bold"))
    panels[0].set_ylabel("spread of one sample", **text_style(9))
    panels[0].legend(frameon=False, fontsize=7)
    figure.tight_layout()
    return figure


if __name__ == "__main__":
    cli.run(main, USAGE, define_flags)
