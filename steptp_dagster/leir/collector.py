"""How often Python looks for cycles of garbage in a process that surveys programs.

Trees, analyses and candidates refer downwards only, so that counting references frees them.
Looking for cycles every 700 objects finds next to nothing and takes a sixth of the time, most of it
in looks at all that was ever imported.
"""

import gc
from typing import Final

#: New objects between two looks at the youngest; Python's own number is 700.
YOUNG: Final = 20_000


def collect_rarely() -> None:
    """Look for cycles rarely, and never again at what this process has imported so far.

    To be called when the imports are done. Changes nothing but times; what cycles there are still
    goes, a few megabytes later. A process that has chosen a larger number, or none, keeps it.
    """
    threshold, *older = gc.get_threshold()
    if 0 < threshold < YOUNG:
        gc.freeze()
        gc.set_threshold(YOUNG, *older)
