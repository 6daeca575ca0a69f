"""The stage files as a Dagster resource."""

from pathlib import Path
from typing import Any, Self

import dagster as dg
from pydantic import ModelWrapValidatorHandler, model_validator

from steptp_dagster.dataset.storage.address import check
from steptp_dagster.dataset.store import Store, opened


class ParquetStore(dg.ConfigurableResource[Store]):
    """Where stages write: ``<data>/stages``, one Parquet file per table and program.

    With ``storage`` they lie there instead: in another local folder, or at a URL of fsspec's such
    as ``s3://bucket/prefix``. Raises BadStorage: when it is made, of what the text alone gives away
    (a protocol that nobody knows, a package that is missing); when the files are first asked for,
    of a store that does not answer or may not be written to.
    """

    data: str
    storage: str = ""

    @model_validator(mode="wrap")
    @classmethod
    def _sound(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:  # noqa: ANN401
        """Refuse settings that cannot be meant."""
        made = handler(data)
        # What stands for a variable of the environment has no value yet.
        if type(dict(data).get("storage")) is str and made.storage:
            check(made.storage)
        return made

    @property
    def files(self) -> Store:
        """The store itself."""
        return opened(Path(self.data), self.storage)
