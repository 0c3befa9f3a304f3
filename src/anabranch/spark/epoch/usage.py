"""What a pool costs: the CPU time that Spark's executors have spent on its stages."""

from __future__ import annotations

from pyspark.sql import SparkSession


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
