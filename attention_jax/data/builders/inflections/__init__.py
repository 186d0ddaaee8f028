"""inflections: the user's own lemmas, forms and tags."""

import dataclasses

from attention_jax.configuration import setting
from attention_jax.data.config import Corpus
from attention_jax.data.inflection import InflectionConfig, read_inflections
from attention_jax.data.own_tables import OwnTables


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(OwnTables, InflectionConfig):
    """Inflections in tables of `lemma<TAB>form<TAB>TAG;TAG` lines.

    Further fields are those of `data.own_tables.OwnTables` and
    `data.inflection.InflectionConfig`.
    """

    name: str = setting("inflections", choices=("inflections",))

    def load(self) -> Corpus:
        return self.read(read_inflections)
