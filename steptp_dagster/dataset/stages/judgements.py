"""Everything that is judged of one program: its steps, its trajectories, and wrong candidates."""

from dataclasses import replace
from typing import TYPE_CHECKING

from steptp_dagster.dataset.config import Profile
from steptp_dagster.dataset.incremental import Made, Origin, Report
from steptp_dagster.dataset.stages.negatives import update_negatives
from steptp_dagster.dataset.stages.trajectories import update_trajectories
from steptp_dagster.dataset.stages.verdicts import update_verdicts
from steptp_dagster.dataset.store import Store
from steptp_dagster.dataset.versions import code_version
from steptp_dagster.progress import Progress

if TYPE_CHECKING:
    from steptp_dagster.verify.pool import Verifier


def update_judgements(
    store: Store,
    program: str,
    profile: Profile,
    verifier: "Verifier",
    origin: Origin,
    progress: Progress[Made],
) -> Report:
    """Bring all judgements of one program up to date, those of its steps first."""
    report = update_verdicts(store, program, profile, verifier, origin, progress)
    for stage, more in (("trajectories", update_trajectories), ("negatives", update_negatives)):
        own = replace(origin, code_version=code_version(stage))
        report += more(store, program, profile, verifier, own, progress)
    return report
