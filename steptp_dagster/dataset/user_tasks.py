"""What users' programs are asked in isolation (``users.zygote``): ``users.tasks``, with evidence.

Loads PyTorch and TVM; the data set's tables, which start threads, stay out.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from steptp_dagster.dataset.evidence import Evidence, gathered
from steptp_dagster.dataset.forms import in_form
from steptp_dagster.translate.reference import Reference
from steptp_dagster.users import tasks
from steptp_dagster.users.tasks import Reply, Request, warm_up
from steptp_dagster.verify import screen

__all__ = ["TASKS", "screen", "warm_up"]


def compare(reference: Reference) -> Reply:
    """What the evidence says, as plain data: figures, and what objects to the translation."""
    found = gathered(reference)
    if isinstance(found, Evidence):
        return {"figures": found.figures, "objection": found.objection()}
    return {"figures": None, "objection": found}


TASKS: Final[dict[str, Callable[[Request], Reply]]] = {
    "inspect": tasks.inspect,
    "sample": tasks.sample,
    "judge": tasks.judge,
    "derive": tasks.derive,
    "translate": partial(tasks.translated, compare=compare, in_form=in_form),
    "screen": tasks.screened,
}
