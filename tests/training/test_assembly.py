"""What is refused when the parts of a training do not fit one another."""

import dataclasses

import pytest

from attention_jax.data.builders.parallel import Config as ParallelConfig
from attention_jax.data.config import SubwordsConfig
from attention_jax.errors import ConfigError
from attention_jax.runs.run_directory import RunDirectory
from attention_jax.training.assembly import assemble
from tests.training.tiny import tiny_config


@pytest.mark.parametrize("joint", [True, False])
def test_vocabularies_that_are_just_as_large_share_no_table(tmp_path, monkeypatch, joint):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "text").write_text("".join(f"{each}\t{each}\n" for each in range(40)))
    data = ParallelConfig(
        train_table=str(tmp_path / "text"), subwords=SubwordsConfig(kind="words", joint=joint)
    )
    config = tiny_config()
    model = dataclasses.replace(config.model, tie_embeddings="all")
    config = dataclasses.replace(config, data=data, model=model)
    if joint:
        assemble(config, RunDirectory(tmp_path / "run"))
        return
    message = "config.model.tie_embeddings: expected a joint vocabulary .* found one for each side"
    with pytest.raises(ConfigError, match=message):
        assemble(config, RunDirectory(tmp_path / "run"))


CONTEXT = '''
"""The sources once more, as what stands before them."""
from attention_jax.data.examples import encoded
from attention_jax.data.field import Field

def ids(examples):
    return encoded(examples.source_vocabulary, examples.sources)

FIELD = Field(name="context", axes=("C",), values=ids, mask="context_mask", is_input=True)
'''


def test_a_source_is_a_field_of_the_data(tmp_path, extension):
    """Of the task, or of a file of its own; else it is missed in one line."""
    config = tiny_config()
    sources = {"context": config.model.sources["source"]}
    config = dataclasses.replace(config, model=dataclasses.replace(config.model, sources=sources))
    message = "^config.data.name: expected data with a field 'context', which the model or an"
    with pytest.raises(ConfigError, match=message):
        assemble(config, RunDirectory(tmp_path / "run"))
    extension("data/fields", "context", CONTEXT)
    parts = assemble(config, RunDirectory(tmp_path / "run"))
    batch = next(parts.batches)
    lengths = [batch[name].sum(axis=1).tolist() for name in ("context_mask", "source_mask")]
    assert lengths[0] == lengths[1] and batch["context"].shape[1] % 8 == 0
    assert "context" in parts.task.split("test").input_names
