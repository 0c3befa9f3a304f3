"""Named points at which a run can be killed, so that tests can show recovery from each of them.

`ANABRANCH_CRASH=manifest-published:3` ends the process with SIGKILL at that point of epoch 3; without the variable a
point costs one test of a string.
At the points of tasks, the task's process is killed.
Those of a spool belong to no epoch: `ANABRANCH_CRASH=spool-written` ends the process there at the first request.
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
"""In the order of an epoch; 'epoch-begun' of the next epoch follows Spark's commit of this one."""
TASK_POINTS = ("states-written",)
"""When the branches of a shard have answered, before the report is sent."""
TOPIC_POINTS = ("topics-begun", "topics-written")
"""Around a transaction with the answers of an epoch for topics, where there are any."""
SPOOL_POINTS = ("spool-begun", "spool-written")
"""Around the write that makes requests to a pushed stream durable; nobody has been answered yet."""


def point(name: str, epoch: int) -> None:
    """Kill the process here, if the environment says so."""
    assert name in POINTS + TASK_POINTS + TOPIC_POINTS
    if os.environ.get("ANABRANCH_CRASH") == f"{name}:{epoch}":
        os.kill(os.getpid(), signal.SIGKILL)


def spool_point(name: str) -> None:
    """Kill the process here, if the environment says so."""
    assert name in SPOOL_POINTS
    if os.environ.get("ANABRANCH_CRASH") == name:
        os.kill(os.getpid(), signal.SIGKILL)
