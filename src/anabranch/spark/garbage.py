"""Garbage in the Python processes of Spark.

Behind every task Spark's daemon collects the garbage of the process, and only then does that take another task.
To do so Python walks through all objects there are, and of modules, compiled code and plans there are so many that it
takes a tenth of a second: more than most tasks.
So what has outlived a collection is frozen, which takes no time: nobody walks through it any more, and a collection
costs what the latest task has left.
What was frozen and is garbage by now is only seen when everything is walked through, which is once in many tasks.
"""

from __future__ import annotations

import gc

_RARELY = 100


class Freezer:
    """Says what the collections of one process walk through."""

    def __init__(self) -> None:
        self._tasks = 0

    def begin_task(self) -> None:
        """Freeze what is there, or where it is time for that, have all of it walked through behind this task."""
        self._tasks += 1
        if self._tasks % _RARELY:
            gc.freeze()
        else:
            gc.unfreeze()


here = Freezer()
"""That of this process."""
