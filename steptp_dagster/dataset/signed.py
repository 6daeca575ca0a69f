"""Programs of rows that have a header and a text; the way back is in ``programs``."""

from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.signature import SignedProgram


def file_form(signature: str, text: str) -> str:
    """The ``.leir`` text of a row's two columns."""
    return f"{signature.rstrip()}\n{text}\n"


def signed_of(signature: str, text: str) -> SignedProgram:
    """The program of a row's two columns."""
    return read(file_form(signature, text)).signed
