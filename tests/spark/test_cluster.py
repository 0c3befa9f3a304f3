"""A trunk on a cluster: what works only in local mode does not work."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic, sleep

import pyspark
import pytest

from anabranch.engine.finite import answering
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import prepare
from anabranch.stream.photons import photons
from anabranch.stream.reading.source import Source
from papers import Q4
from sockets import listening_addresses, own_processes

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
LOOPBACK = "127.0.0.1"
PATIENCE = 60.0


@contextmanager
def service(arguments: Sequence[str], log: Path) -> Iterator[None]:
    """One of Spark's own services, on loopback, from here to the end."""
    environment = {
        **os.environ,
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_LOCAL_DIRS": str(log.parent),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": os.environ["SPARK_SUBMIT_OPTS"],
        "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",  # a second way in, at a fixed port
    }
    with log.open("wb") as out:
        process = subprocess.Popen([SPARK_CLASS, *arguments], env=environment, stdout=out, stderr=out)
    try:
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE)


def said(log: Path, pattern: str, times: int = 1) -> str:
    """Wait until a service has said something; gives what it said last."""
    patience = monotonic() + PATIENCE
    while len(found := re.findall(pattern, log.read_text())) < times:
        assert monotonic() < patience, log.read_text()
        sleep(0.05)
    return str(found[-1])


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """A master and two workers of one core each; gives the master's address."""
    with ExitStack() as held:
        log = folder / "master.log"
        here = ["--host", LOOPBACK, "--port", "0", "--webui-port", "0"]
        held.enter_context(service(["org.apache.spark.deploy.master.Master", *here], log))
        master = said(log, rf"Starting Spark master at (spark://{LOOPBACK}:\d+)")
        size = ["--cores", "1", "--memory", "1g", "--work-dir", str(folder / "work")]
        for number in range(2):
            worker = ["org.apache.spark.deploy.worker.Worker", master, *here, *size]
            held.enter_context(service(worker, folder / f"worker-{number}.log"))
        said(log, "Registering worker", times=2)
        yield master


@contextmanager
def engine_on(master: str, log: Path, *arguments: Path) -> Iterator[dict[str, object]]:
    """What `on_cluster.py` found; it is still there until the end."""
    script = Path(__file__).with_name("on_cluster.py")
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            [sys.executable, script, master, *arguments],
            env={**os.environ, "SPARK_LOCAL_IP": LOOPBACK},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
        ) as process,
    ):
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, log.read_text()
            yield json.loads(line)
            process.communicate(timeout=PATIENCE)
            assert process.returncode == 0, log.read_text()
        finally:
            process.kill()


@pytest.mark.spark
def test_a_cluster_of_two_workers_answers_like_the_reference(tmp_path: Path) -> None:
    """Three epochs over lines, in tasks on two executors; nobody listens outside loopback, and nobody stays behind."""
    stream = tmp_path / "photons"
    lines = [photon.strip() + " " * 1_000 for photon in photons(3_000, seed=3)]  # few items that fill several ranges
    lines[1_000] = "<photon><en>1.5</photon>"
    stream.write_text("".join(line + "\n" for line in lines))
    query = tmp_path / "vela.xq"
    query.write_text(Q4)
    inputs = Inputs([Source("photons", stream, root="photons")])
    with answering([prepare("vela", Q4, inputs, "reference")], inputs) as run:
        expected = "".join(run.answers["vela"])

    before = own_processes(below=False)
    log, state = tmp_path / "engine.log", tmp_path / "state"
    with cluster(tmp_path) as master, engine_on(master, log, stream, query, state) as found:
        assert found["answer"] == expected
        assert found["executors"] == 2
        metrics = found["metrics"]
        assert isinstance(metrics, list)
        assert [(each["epoch"], each["dead_letters"]) for each in metrics] == [(0, 1), (1, 0), (2, 0)]
        assert all(address.is_loopback for address in listening_addresses())
    assert own_processes(below=False) <= before, "nothing that was started for the cluster is left"
