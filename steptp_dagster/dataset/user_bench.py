"""Where users' files are looked into for the data set."""

from steptp_dagster.users.isolation import Limits, shared
from steptp_dagster.users.programs import Workbench

#: The module that the isolated processes load.
TASKS = "steptp_dagster.dataset.user_tasks"


def bench(limits: Limits, seed: int = 0, *, echo: bool = False) -> Workbench:
    """A workbench over the isolation of this process; ``echo`` shows what files print."""
    return Workbench(shared(TASKS), limits, seed, echo)
