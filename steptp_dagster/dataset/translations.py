"""One source as LEIR: translated, checked, compared with PyTorch, screened.

Loads PyTorch and TVM, so stages import it in their workers only.
"""

import json
from dataclasses import dataclass
from math import prod
from typing import Any

from steptp_dagster.dataset.evidence import Evidence, gathered
from steptp_dagster.dataset.forms import in_form
from steptp_dagster.dataset.ids import canonical_json
from steptp_dagster.dataset.programs import row_of, translation_row
from steptp_dagster.dataset.schemas import Row
from steptp_dagster.dataset.small_shapes import sibling_shapes
from steptp_dagster.dataset.stages.sources import source_of
from steptp_dagster.dataset.structure import NEEDED, structure
from steptp_dagster.leir.limits import check_limits
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.validity import check
from steptp_dagster.sources.base import Built, Shape, Source
from steptp_dagster.translate.reference import Reference
from steptp_dagster.translate.translate import (
    SAME_AS_COMPOSED,
    Translation,
    TranslationRefusal,
    translate,
)
from steptp_dagster.verify.budget import MOST_BYTES, too_large
from steptp_dagster.verify.screen import screen


@dataclass(frozen=True, slots=True)
class Subject:
    """A source row's module with example inputs: of the sample itself or of a small sibling."""

    built: Built
    inputs: tuple[Any, ...]

    def translated(self, form: str) -> Translation | TranslationRefusal:
        """Its translation in a form (``forms``)."""
        built = self.built
        return in_form(
            lambda naive: translate(built.module, self.inputs, ranges=built.ranges, naive=naive),
            form,
        )


def subject(source: Row, *, small: bool = False) -> Subject:
    """What a row of ``source_programs`` describes, or a small sibling of it.

    Raises SourceError or UnknownProgram for a row that the library has nothing for.
    """
    library, shape = source_of(source["program"]), json.loads(source["shapes"])
    return _built(library, library.least(shape) if small else shape, source)


def _built(library: Source, shape: Shape, source: Row) -> Subject:
    built = library.build(shape, source["dtype"], source["seed"])
    elements = sum(prod(spec.shape) for spec in built.inputs)
    # What is larger is never run: then inputs need only have their shapes.
    return Subject(built, built.blank() if elements > MOST_BYTES else built.example(source["seed"]))


def rows_of(source: Row, twin: bool) -> dict[str, list[Row]]:
    """Rows of ``translations`` and ``leir_programs`` that a source makes.

    ``twin``: the composed form of the same sample is a source of its own.
    """
    own, form = subject(source), source["form"]
    found = own.translated(form)
    if isinstance(found, TranslationRefusal):
        return _refused(source, found.operator, str(found))
    if twin and own.translated("composed") == found:
        return _refused(source, SAME_AS_COMPOSED.operator, SAME_AS_COMPOSED.message)
    if objection := _objection(found.signed):
        return _refused(source, *objection)
    row = row_of(found.signed)
    if too_large(found.signed):
        return _large(source, found, row)

    def sibling() -> Reference | None:
        least = subject(source, small=True)
        made = least.translated(form)
        if not isinstance(made, Translation):
            return None
        return Reference(least.built.module, least.inputs, made)

    evidence = gathered(Reference(own.built.module, own.inputs, found), sibling)
    if not isinstance(evidence, Evidence):
        return _refused(source, *evidence)
    figures = evidence.figures
    if objection := evidence.objection():
        return _refused(source, *objection, **figures)
    screens = list(screen(_screened(own, found, form)))
    known = translation_row(source, leir_id=row["leir_id"], screens=screens, **figures)
    return {"translations": [known], "leir_programs": [row]}


def _large(source: Row, found: Translation, row: Row) -> dict[str, list[Row]]:
    """Rows of a source that is too large to run: compared and screened on its siblings.

    Those whose translation is equal but for numbers take part. Without any, no step is taken.
    """
    library, shape = source_of(source["program"]), json.loads(source["shapes"])
    form, siblings = source["form"], []
    for small in sibling_shapes(library, shape):
        other = _built(library, small, source)
        made = other.translated(form)
        if (
            isinstance(made, Translation)
            and structure(made.signed)[0] == structure(found.signed)[0]
        ):
            siblings.append((small, other, made))
    if len(siblings) < NEEDED:
        known = translation_row(source, leir_id=row["leir_id"], screens=["too-large"])
        return {"translations": [known], "leir_programs": [row]}
    own, made = siblings[0][1:]
    evidence = gathered(Reference(own.built.module, own.inputs, made))
    if not isinstance(evidence, Evidence):
        return _refused(source, *evidence)
    figures = {**evidence.figures, "interpreted": "sibling"}
    if objection := evidence.objection():
        return _refused(source, *objection, **figures)
    small_rows = [row_of(translation.signed) for _, _, translation in siblings]
    known = translation_row(
        source,
        leir_id=row["leir_id"],
        screens=list(screen(_screened(own, made, form))),
        siblings=[
            {"shapes": canonical_json(small), "leir_id": small_row["leir_id"]}
            for (small, _, _), small_row in zip(siblings, small_rows, strict=True)
        ],
        **figures,
    )
    distinct = {each["leir_id"]: each for each in (row, *small_rows)}
    return {"translations": [known], "leir_programs": list(distinct.values())}


def _screened(own: Subject, found: Translation, form: str) -> SignedProgram:
    """What the screens look at: the composed form.

    The others say the same, with code in it that steps are to find: dead, repeated, or step by step
    what composing leaves out (the mean of a batch norm may be 0).
    """
    composed = own.translated("composed") if form != "composed" else found
    return composed.signed if isinstance(composed, Translation) else found.signed


def _objection(signed: SignedProgram) -> tuple[str, str] | None:
    for violation in check(signed):
        return "result-invalid", f"{violation.kind}: {violation.message}"
    for violation in check_limits(signed):
        return "result-over-limits", f"{violation.kind}: {violation.message}"
    return None


def _refused(source: Row, what: str, message: str, **known: object) -> dict[str, list[Row]]:
    return {"translations": [translation_row(source, refusal=what, message=message, **known)]}
