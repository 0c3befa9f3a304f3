"""The local Spark and its settings."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from socket import create_connection

import pytest
from pyspark.accumulators import AccumulatorTCPServer, UpdateRequestHandler
from pyspark.sql import SparkSession

from anabranch.spark.session import expect_end
from sockets import listening_addresses


def test_nothing_listens_outside_loopback(spark: SparkSession) -> None:
    """Every listening socket of this process, the JVM and the Python workers is bound to loopback."""
    spark.range(4).rdd.map(lambda row: row).count()  # so that Python workers run too
    addresses = listening_addresses()
    assert addresses
    assert all(address.is_loopback for address in addresses)


def test_nobody_else_can_talk_to_the_workers(spark: SparkSession) -> None:
    """The sockets between the JVM and its Python workers lie in a folder that only this user may enter."""
    assert spark.sparkContext.parallelize([0], 1).map(lambda each: each + 1).first() == 1
    folder = Path(spark.sparkContext.getConf().get("spark.python.unix.domain.socket.dir", ""))
    assert stat.filemode(folder.stat().st_mode) == "drwx------"
    assert folder.stat().st_uid == os.getuid()
    assert any(each.is_socket() for each in folder.iterdir())


def test_a_jvm_that_is_gone_first_leaves_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    """PySpark's server of accumulators would print one; of anything else that goes wrong it does."""
    for token, is_told in ("token", False), ("other", True):
        with AccumulatorTCPServer(("localhost", 0), UpdateRequestHandler, "token") as server:
            expect_end(server)
            with create_connection(server.server_address) as jvm:  # type: ignore[arg-type]
                jvm.sendall(token.encode())
            server.handle_request()
        assert ("Traceback" in capsys.readouterr().err) == is_told


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
