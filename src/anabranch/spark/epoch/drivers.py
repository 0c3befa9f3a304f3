"""Who lets the epochs of a trunk come where many trunks share a machine, as the peers of a network do.

A streaming query (`StreamedTrunk`) needs seconds to start and a Python process of its own, which must answer within ten
seconds of its start.
One that starts alone does; of many that start at once on a busy machine some do not.
So whoever starts several has them start one after the other, and tries again where that was not enough.
Spark forgets the offsets of all but the latest epochs; here they are kept, since whoever begins to read a stream may be
told all of it.

For what comes to an end soon, to start a query would be most of the work: there a trunk is driven by hand
(`SteppedTrunk`).
The survey is made in the driver, and an epoch is one plain job over its ranges.
What Spark would write down before an epoch is written down in its place and in its form, so all the rest of a trunk
works as ever: an epoch that was begun and not committed is run again with the same ranges, in either way.
"""

from __future__ import annotations

import json
from time import sleep
from uuid import uuid4

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Manifests
from anabranch.spark.epoch.trunk import Trunk, pool_of
from anabranch.spark.intake.order_logs import end_of, offset_file, write_end
from anabranch.spark.intake.survey import Survey


class SteppedTrunk:
    """Runs the epochs of a trunk, which must be open and not started; it is of no use behind others' epochs."""

    def __init__(self, spark: SparkSession, trunk: Trunk) -> None:
        self._spark = spark
        self._trunk = trunk
        self._survey = Survey(trunk.checkpoint)
        offset_file(self._checkpoint, 0).parent.mkdir(parents=True, exist_ok=True)
        named = self._checkpoint.spark / "metadata"
        if not named.exists():  # without it Spark would not go on from offsets
            durable.replace(named, json.dumps({"id": str(uuid4())}).encode())

    @property
    def _checkpoint(self) -> Checkpoint:
        return self._trunk.checkpoint

    def run(self) -> None:
        """Read to the end of what is there now."""
        self._survey.freeze()
        while self._step():
            pass
        self._trunk.finish()
        self._trunk.raise_failure()

    def _step(self) -> bool:
        """Run one epoch, if there is something to read."""
        epochs = Manifests(self._checkpoint.manifests).epochs()
        number = epochs.stop if epochs else 0
        start = end_of(self._checkpoint, number - 1)
        if not offset_file(self._checkpoint, number).exists():
            end = self._survey.latest(start)
            if end == start:
                return False
            write_end(self._checkpoint, number, end)
        self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", pool_of(self._checkpoint))
        self._trunk.epoch(number)
        return True


# --- epochs that come by themselves -----------------------------------------------------------------------------------

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
        return self._trunk.query

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
