"""Imported once by the fork server, so that workers start with TVM and the verifier loaded.

Never import it elsewhere: it keeps torch out of the process.
"""

from steptp_dagster.verify.worker import quieten_tvm

quieten_tvm()

import steptp_dagster.verify.batch  # noqa: E402, F401
