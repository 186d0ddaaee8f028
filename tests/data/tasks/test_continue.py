from attention_jax.data.builders.cmudict import Config as CmudictConfig
from attention_jax.data.builders.multi30k import Config as Multi30kConfig
from attention_jax.data.task import TASKS, find_task
from attention_jax.models import MODELS


def test_a_language_model_continues_whatever_the_data():
    language_model = MODELS.config("language_model")()
    for data_config in (CmudictConfig(), Multi30kConfig()):
        task = find_task(data_config, language_model)
        assert task is TASKS.find("continue").TASK and task.continues
        assert [field.names for field in task.input_fields] == [("prompt", "prompt_mask")]
        assert not find_task(data_config, MODELS.config("encoder_decoder")()).continues


def test_a_prompt_is_in_the_form_of_targets():
    task = TASKS.find("continue").TASK
    assert task.prepare("Ein Mann\n", Multi30kConfig(lowercase=True)) == "ein mann"
    assert task.prepare("K AE1\n", CmudictConfig()) == "K AE1"
    assert task.input_side == "target"
