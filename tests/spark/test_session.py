"""The local Spark and its settings."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path

from pyspark.sql import SparkSession

LISTENING = "0A"


def own_processes() -> set[int]:
    """This process and all below it."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # ended in the meantime
            continue
        parents[int(stat.parent.name)] = int(fields[1])
    found = {os.getpid()}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def sockets_of(process: int) -> Iterator[str]:
    """The numbers of the sockets that a process holds."""
    try:
        handles = list(Path(f"/proc/{process}/fd").iterdir())
        targets = [os.readlink(handle) for handle in handles]
    except OSError:
        return
    for target in targets:
        if target.startswith("socket:["):
            yield target[len("socket:[") : -1]


def listening() -> Iterator[tuple[str, str]]:
    """(number, address) of every TCP socket of this machine that listens."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENING:
                packed = bytes.fromhex(fields[1].partition(":")[0])
                words = [packed[at : at + 4][::-1] for at in range(0, len(packed), 4)]  # the kernel's byte order
                address = ip_address(b"".join(words))
                yield fields[9], str(getattr(address, "ipv4_mapped", None) or address)


def test_nothing_listens_outside_loopback(spark: SparkSession) -> None:
    """Every listening socket of this process, the JVM and the Python workers is bound to loopback."""
    spark.range(4).rdd.map(lambda row: row).count()  # so that Python workers run too
    ours = {socket for process in own_processes() for socket in sockets_of(process)}
    addresses = {address for number, address in listening() if number in ours}
    assert addresses
    assert all(ip_address(address).is_loopback for address in addresses)


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
