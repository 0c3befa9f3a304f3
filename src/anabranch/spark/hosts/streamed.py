"""Streaming queries of many trunks that share a machine, as the peers of a network do.

A streaming query takes seconds to start, with a Python process that must connect back within ten seconds.
A single query does; of many that start at once on a busy machine some do not.
So queries are started one after the other, with retries.
"""

from __future__ import annotations

from time import sleep
from typing import cast

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from anabranch.spark.epoch.trunk import Trunk

_ATTEMPTS = 5
_POLL_SECONDS = 0.05
_INITIALIZING = "Initializing"
_TOO_BUSY = "failed to connect back"


class StreamedTrunk:
    """Has Spark trigger the epochs of an open trunk."""

    def __init__(self, trunk: Trunk) -> None:
        self._trunk = trunk

    def start(self) -> bool:
        """Start, and wait until the query runs; False if the machine is too busy."""
        for _ in range(_ATTEMPTS):
            query = self._begin()
            while self._trunk.active and query.status["message"].startswith(_INITIALIZING):
                sleep(_POLL_SECONDS)  # Spark has no event for the start of a query
            if self._trunk.active or _TOO_BUSY not in str(query.exception()):
                self.check()
                return True
            self._trunk.halt()
        return False

    def _begin(self) -> StreamingQuery:
        self._trunk.start(once=False)
        assert self._trunk.query is not None, "it was started"
        return cast(StreamingQuery, self._trunk.query)

    def run(self) -> None:
        """Wait until the present input has been read."""
        self._trunk.catch_up()

    def check(self) -> None:
        """Raise the error that has ended the query, if it has ended."""
        if not self._trunk.active:
            self._trunk.raise_failure()

    def stop(self) -> None:
        """Stop after the epoch at work."""
        self._trunk.halt()


# --- the processor time of a pool -------------------------------------------------------------------------------------


class PoolUsage:
    """Sums the stages of one pool; Spark forgets old stages, so it must be polled now and then."""

    def __init__(self, spark: SparkSession, pool: str) -> None:
        self._spark = spark
        self._pool = pool
        self._seconds: dict[int, float] = {}
        """By stage, for those that Spark still knows."""
        self._before = 0.0

    def seconds(self) -> float:
        """The total so far."""
        context = self._spark.sparkContext
        jvm = context._jvm
        assert jvm is not None, "a session that runs has a JVM"
        store = context._jsc.sc().statusStore()
        none = context._gateway.new_array(jvm.double, 0)  # type: ignore[union-attr]
        stages = store.stageList(None, False, False, none, jvm.java.util.ArrayList())
        found: dict[int, float] = {}
        for number in range(stages.size()):
            stage = stages.apply(number)
            if stage.schedulingPool() == self._pool:
                found[int(stage.stageId())] = stage.executorCpuTime() / 1e9
        self._before += sum(value for stage, value in self._seconds.items() if stage not in found)
        self._seconds = found
        return self._before + sum(found.values())
