"""The local Spark and its settings."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession

from sockets import listening_addresses


def test_nothing_listens_outside_loopback(spark: SparkSession) -> None:
    """Every listening socket of this process, the JVM and the Python workers is bound to loopback."""
    spark.range(4).rdd.map(lambda row: row).count()  # so that Python workers run too
    addresses = listening_addresses()
    assert addresses
    assert all(address.is_loopback for address in addresses)


def test_workers_run_this_interpreter(spark: SparkSession) -> None:
    """Python in tasks is the Python of the driver, with the same packages."""
    found = spark.sparkContext.parallelize([0], 1).map(lambda _: sys.executable).first()
    assert found == sys.executable


def test_a_lost_task_is_tried_again(spark: SparkSession, tmp_path: Path) -> None:
    """A task that fails once does not end a query."""
    mark = tmp_path / "tried"

    def fail_once(_: int) -> str:
        if not mark.exists():
            mark.touch()
            raise RuntimeError("lost")
        return "done"

    assert spark.sparkContext.parallelize([0], 1).map(fail_once).first() == "done"
