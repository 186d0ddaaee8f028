"""The guide to alignment works as it stands there: its commands, and the names in its tables."""

import re
import shlex

import numpy as np
import pytest

# The sizes of a run of a second or two; all else is as the page says.
TINY = {
    "data.subwords.size": 60,
    "data.batch_size": 16,
    "data.num_buckets": 1,
    "data.validation_pairs": 4,
    "model.source_embedding_dim": 8,
    "model.target_embedding_dim": 8,
    "model.encoder.hidden_dim": 8,
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
    block = re.search(r"## Five commands.*?```\n(.*?)```", page, re.DOTALL)[1]
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
    # ... TODO
