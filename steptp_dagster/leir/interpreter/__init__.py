"""The reference interpreter: what a LEIR program means, and what it does wrong while it runs.

It is the oracle of the static checker, the strategies and the lowering, so it shares no code with
them and is deliberately plain: scalar evaluation over nested loops, memory whose cells know
whether they were written. Faults carry the kind names of ``leir.validity``.
"""

from steptp_dagster.leir.interpreter.faults import Fault, InputError, Run
from steptp_dagster.leir.interpreter.run import interpret

__all__ = ["Fault", "InputError", "Run", "interpret"]
