"""Language modelling: continues the beginning of a text; measured by perplexity.

The data is that of any data set, whose sources are not read. A user's text is a prompt, in the
vocabulary of the targets; it may be empty.
"""

from attention_jax.data.config import DataConfig
from attention_jax.data.field import PROMPT
from attention_jax.data.task import Task, prepare


def prepare_prompt(text: str, data_config: DataConfig, *, is_source: bool = True) -> str:
    """Normalisation: brings a prompt into the form of the data set's targets."""
    return prepare(text, data_config, is_source=False)


TASK = Task(
    label="continuation",
    inputs=(PROMPT,),
    input_side="target",
    continues=True,
    prepare=prepare_prompt,
)
