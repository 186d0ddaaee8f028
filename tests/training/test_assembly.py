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
