"""Programs in the languages that records may show instead of LEIR, for comparison.

``tir``: TVM's script of the program as plain loops; ``cuda``: the kernels of ``lowering.cuda``.
"""

from itertools import dropwhile

from steptp_dagster.dataset.signed import signed_of


def rendering(signature: str, leir: str, language: str) -> str | None:
    """The text of a valid program in a language; None where that language refuses it.

    Loads TVM. Raises ValueError for a language that there is not.
    """
    if language not in ("tir", "cuda"):
        raise ValueError(f"no language {language!r}; one of tir, cuda")
    from steptp_dagster.lowering.cuda.lower import lower
    from steptp_dagster.lowering.plain import loops_function, script

    signed = signed_of(signature, leir)
    try:
        if language == "tir":
            lines = script(loops_function(signed)).strip().splitlines()
            # TVM begins with comments on what to import.
            return "\n".join(dropwhile(lambda line: line.startswith("#") or not line, lines))
        return "".join(lower(signed).texts).strip()
    except (RuntimeError, ValueError, TypeError, ArithmeticError, LookupError):
        # TVM's errors are of all these kinds.
        return None
