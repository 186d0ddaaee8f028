"""Language modelling: goes on from how a text begins; what is measured is perplexity.

Examples are those of any data set, of whose sources nothing is read. A text of the user is a
prompt, in the vocabulary of the targets; an empty one begins with nothing.
"""

from attention_jax.data.config import DataConfig
from attention_jax.data.field import PROMPT
from attention_jax.data.task import Task, prepare


def prepare_prompt(text: str, data_config: DataConfig, *, is_source: bool = True) -> str:
    """Brings the beginning of a text into the form of the data set's targets."""
    return prepare(text, data_config, is_source=False)


TASK = Task(
    label="continuation",
    inputs=(PROMPT,),
    input_side="target",
    continues=True,
    prepare=prepare_prompt,
)
