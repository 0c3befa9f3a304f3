"""Streaming queries of many trunks that share a machine, as the peers of a network do.

A streaming query needs seconds to start and a Python process of its own, which must answer within ten seconds of its
start.
One that starts alone does; of many that start at once on a busy machine some do not.
So whoever starts several has them start one after the other, and tries again where that was not enough.
Spark forgets the offsets of all but the latest epochs; here they are kept, since whoever begins to read a stream may be
told all of it.
"""

from __future__ import annotations

from time import sleep
from typing import cast

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from anabranch.spark.epoch.trunk import Trunk

_ATTEMPTS = 5
_PATIENCE = 0.05
_BEGINNING = "Initializing"
_TOO_BUSY = "failed to connect back"
_RETAINED = "spark.sql.streaming.minBatchesToRetain"
_ALL = (1 << 31) - 1


class StreamedTrunk:
    """Lets the epochs of a trunk, which must be open, come by themselves."""

    def __init__(self, spark: SparkSession, trunk: Trunk) -> None:
        self._spark = spark
        self._trunk = trunk

    def start(self) -> bool:
        """Begin, and wait until the query is at work; False if the machine is too busy for it."""
        for _ in range(_ATTEMPTS):
            query = self._begin()
            while self._trunk.active and query.status["message"].startswith(_BEGINNING):
                sleep(_PATIENCE)  # Spark tells nobody when a query has begun
            if self._trunk.active or _TOO_BUSY not in str(query.exception()):
                self.check()
                return True
            self._trunk.halt()
        return False

    def _begin(self) -> StreamingQuery:
        known = self._spark.conf.get(_RETAINED)
        assert known is not None, "Spark has a default for it"
        self._spark.conf.set(_RETAINED, _ALL)
        try:
            self._trunk.start(once=False)
        finally:
            self._spark.conf.set(_RETAINED, known)
        assert self._trunk.query is not None, "it was started"
        return cast(StreamingQuery, self._trunk.query)

    def run(self) -> None:
        """Wait until all that is there now has been read."""
        self._trunk.catch_up()

    def check(self) -> None:
        """Raise what has ended the query, if it has ended."""
        if not self._trunk.active:
            self._trunk.raise_failure()

    def stop(self) -> None:
        """Have no epoch come after the one at work."""
        self._trunk.halt()


# --- what a pool costs ------------------------------------------------------------------------------------------------


class PoolUsage:
    """Adds up the stages of one pool; Spark forgets old ones, so it has to be asked now and then."""

    def __init__(self, spark: SparkSession, pool: str) -> None:
        self._spark = spark
        self._pool = pool
        self._seconds: dict[int, float] = {}
        """By stage, for those that are still known."""
        self._before = 0.0

    def seconds(self) -> float:
        """All so far."""
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
