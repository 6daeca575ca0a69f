"""Rows of ``leir_programs`` and ``translations``: a program with its measures."""

from steptp_dagster.dataset.schemas import Row
from steptp_dagster.dataset.tokens import count
from steptp_dagster.leir.canonical import leir_id, structural_hash
from steptp_dagster.leir.cost import cost
from steptp_dagster.leir.fileform import header_text
from steptp_dagster.leir.printer import to_text
from steptp_dagster.leir.signature import SignedProgram


def row_of(signed: SignedProgram) -> Row:
    """The row of a program, without ``unit``."""
    measures = cost(signed)
    text = to_text(signed.program)
    both = {
        scope: measures.bytes_read[scope] + measures.bytes_written[scope]
        for scope in ("g", "s", "l")
    }
    return {
        "leir_id": leir_id(signed),
        "text": text,
        "signature": header_text(signed.signature),
        "structural_hash": structural_hash(signed),
        "nests": measures.nests,
        "loops": measures.loops,
        "equations": measures.equations,
        "loop_depth": measures.loop_depth,
        "flops": measures.flops,
        "bytes": both["g"],
        "bytes_shared": both["s"],
        "bytes_local": both["l"],
        "iterations": measures.iterations,
        "tokens": count(text),
    }


def translation_row(source: Row, **known: object) -> Row:
    """The row of ``translations`` of a source, without ``unit``; what is not known is empty."""
    nothing: Row = dict.fromkeys(("leir_id", "refusal", "message", "fidelity", "interpreted"))
    lists: Row = {"comparisons": [], "roundings": [], "screens": [], "siblings": []}
    return {"source_id": source["source_id"], **nothing, **lists, **known}
