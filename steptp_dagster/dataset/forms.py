"""The forms in which a program becomes a source (``schemas.FORMS``)."""

from collections.abc import Callable
from dataclasses import replace

from steptp_dagster.dataset.injectors import INJECTORS
from steptp_dagster.leir.canonical import structural_hash
from steptp_dagster.translate.translate import Translation, TranslationRefusal

#: Translates a program; the argument: whether in the naive form, a nest for every view and step.
Translate = Callable[[bool], Translation | TranslationRefusal]


def in_form(translate: Translate, form: str) -> Translation | TranslationRefusal:
    """A program in one form; what is put in depends on the program."""
    found = translate(form == "naive")
    if form not in INJECTORS or isinstance(found, TranslationRefusal):
        return found
    changed = INJECTORS[form](found.signed, int(structural_hash(found.signed), 16))
    if changed is None:
        message = "no tensor of the program is made and used in a way that allows it"
        return TranslationRefusal("nothing-to-inject", form, message, "")
    return replace(found, signed=changed, origins=())
