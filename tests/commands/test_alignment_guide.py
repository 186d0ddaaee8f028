"""The guide to alignment works as it stands there: its commands, and the names in its tables."""

import re
import shlex

import numpy as np
import pytest

from attention_jax.layers.mechanism import MECHANISMS
from attention_jax.objectives.compose import OBJECTIVES

# The sizes of a run of a second or two; all else is as the page says.
TINY = {
    "data.subwords.size": 60,
    "data.batch_size": 16,
    "data.num_buckets": 1,
    "data.validation_pairs": 4,
    "model.sources.source.input.embedding_dim": 8,
    "model.target_embedding_dim": 8,
    "model.sources.source.encoder.hidden_dim": 8,
    "model.attention.attention_dim": 8,
    "model.decoder.hidden_dim": 8,
    "model.decoder.readout_dim": 8,
    "training.num_steps": 2,
    "training.evaluate_every_steps": 2,
    "search.beam_size": 2,
    "search.max_length_constant": 0,
    "evaluation.num_heat_maps": 0,
}
WORDS = {"the": "die", "cat": "Katze", "dog": "Hund", "sees": "sieht", "a": "eine", "tree": "Baum"}
FILES = r"(?<![\w./-])((?:train|test)\.(?:en|de|links|gold)|table\.md|runs/)"


@pytest.fixture(scope="module")
def page(repository):
    """The text of the guide."""
    return (repository / "docs" / "alignment.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def commands(page):
    """The commands of the guide: (program, arguments)."""
    block = re.search(r"## Five commands.*?```sh\n(.*?)```", page, re.DOTALL)[1]
    lines = shlex.split(block.replace("\\\n", " "), comments=True)
    starts = [place for place, word in enumerate(lines) if word == "python"] + [len(lines)]
    found = [lines[start:end] for start, end in zip(starts, starts[1:], strict=False)]
    assert all(command[:2] == ["python", "-m"] for command in found)
    return [(program.removeprefix("launch."), arguments) for _, _, program, *arguments in found]


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """A folder with the files that the guide begins with."""
    folder, draw = tmp_path_factory.mktemp("guide"), np.random.default_rng(0)
    (folder / "runs").mkdir()
    for name, number in (("train", 24), ("test", 4)):
        sentences = [draw.choice([*WORDS], draw.integers(2, 6)) for _ in range(number)]
        translated = [[WORDS[word] for word in sentence] for sentence in sentences]
        for side, lines in (("en", sentences), ("de", translated)):
            text = "".join(f"{' '.join(line)} .\n" for line in lines)
            (folder / f"{name}.{side}").write_text(text)
    links = [" ".join(f"{n}-{n}" for n in range(len(each) + 1)) for each in sentences]
    (folder / "test.gold").write_text("".join(f"{line}\n" for line in links))
    return folder


def test_commands_do_what_the_guide_says(launch, commands, texts):
    programs = []
    for program, arguments in commands:
        own = [re.sub(FILES, rf"{texts}/\1", argument) for argument in arguments]
        if program == "train":
            own += [f"--config.{name}={value}" for name, value in TINY.items()]
        result = launch(program, *own)
        assert result.code == 0, (program, result.err)
        programs.append(program)
    assert programs == ["align", "train", "train", "evaluate", "experiments.compare_runs"]
    assert (texts / "runs" / "taught" / "viewer.test.html").exists()
    table = (texts / "table.md").read_text()
    assert all(name in table for name in ("base", "taught", "BLEU", "AER"))


def test_tables_have_names_that_configs_take(page):
    mechanisms, objectives = (
        set(re.findall(r"^\| `(\w+)` \|", page.split(start)[1].split("\n\n")[1], re.MULTILINE))
        for start in ("`--config.model.attention.name=`:", "`--config.objectives.NAME.weight=`,")
    )
    assert mechanisms and mechanisms <= set(MECHANISMS.names())
    assert objectives and objectives <= set(OBJECTIVES.names())


def test_every_option_belongs_to_a_program(page, launch):
    programs = ("align", "train", "evaluate", "translate", "sweep", "experiments.compare_runs",
                "experiments.coverage_vs_supervised")  # fmt: skip
    helps = "".join(launch(program, "--help").out for program in programs)
    helps += launch("align", "train", "--help").out
    options = set(re.findall(r"(?<![\w-])--([a-z_]+)", page)) - {"config", "search"}
    assert len(options) > 10
    assert not [option for option in options if f"--{option}" not in helps]
