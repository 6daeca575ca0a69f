"""Known-wrong and known-right pairs that the verifier is tested on: ``run(seed) -> Report``."""

from steptp_dagster.verify.zoo.run import Entry, Report, run

__all__ = ["Entry", "Report", "run"]
