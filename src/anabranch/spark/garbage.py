"""Garbage collection in the Python processes of Spark.

After every task Spark's daemon collects the garbage of the process, before it gives it another task.
Python then visits all objects, and modules, compiled code and plans are so many that it takes a tenth of a second: more
than most tasks.
So objects that have survived a collection are frozen, which takes no time: they are not visited any more, and a
collection costs what the latest task has left.
Frozen garbage is only found when everything is visited, which is once in many tasks.
"""

from __future__ import annotations

import gc

_FULL_COLLECTION_EVERY = 100


class Freezer:
    """Decides what the collections of one process visit."""

    def __init__(self) -> None:
        self._tasks = 0

    def begin_task(self) -> None:
        """Freeze the present objects, or now and then unfreeze them, so that all are visited after this task."""
        self._tasks += 1
        if self._tasks % _FULL_COLLECTION_EVERY:
            gc.freeze()
        else:
            gc.unfreeze()


here = Freezer()
"""The freezer of this process."""
