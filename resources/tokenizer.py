"""The tokenizer as a Dagster resource."""

import dagster as dg

from steptp_dagster.dataset import tokens


class Tokenizer(dg.ConfigurableResource[str]):
    """Counts tokens with the Qwen vocabulary that the package dashscope ships."""

    @property
    def name(self) -> str:
        """Under which name counts are published."""
        return tokens.NAME

    def count(self, text: str) -> int:
        """Number of tokens of a text. Raises NoVocabulary where the package lacks it."""
        return tokens.count(text)
