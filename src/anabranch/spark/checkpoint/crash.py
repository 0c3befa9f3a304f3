"""Named points at which a run can be told to die, so that tests can show that no moment is a bad one.

`ANABRANCH_CRASH=manifest-published:3` ends the process with SIGKILL at that point of epoch 3; without the variable a
point costs one look at a string.
At the points of tasks it is the task's process that ends.
"""

from __future__ import annotations

import os
import signal

POINTS = (
    "epoch-begun",
    "plan-written",
    "job-done",
    "changes-logged",
    "manifest-published",
    "states-swept",
    "sinks-moved",
)
"""In the order of an epoch; 'epoch-begun' of the next one comes after Spark's commit log was written."""
TASK_POINTS = ("states-written",)
"""When the branches of a shard have answered, and nobody has heard of it yet."""


def point(name: str, epoch: int) -> None:
    """Die here, if the environment says so."""
    assert name in POINTS or name in TASK_POINTS
    if os.environ.get("ANABRANCH_CRASH") == f"{name}:{epoch}":
        os.kill(os.getpid(), signal.SIGKILL)
