"""Small LEIR programs written by hand: valid ones that are tricky, and invalid ones by rule."""

from tests.support.cases import Case, long_form
from tests.support.corpus_invalid import INVALID
from tests.support.corpus_valid import VALID

BY_NAME: dict[str, Case] = {case.name: case for case in (*VALID, *INVALID)}

__all__ = ["BY_NAME", "INVALID", "VALID", "Case", "long_form"]
