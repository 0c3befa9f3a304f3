"""A trunk on a cluster of processes on loopback: what works only in local mode does not work.

That machines may share no disk is tried by `make cluster` (`tests/cluster/`).
"""

from __future__ import annotations

import faulthandler
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

import anabranch
from anabranch.engine.finite import answering
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import prepare
from anabranch.running import committed
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Manifests
from anabranch.stream.photons import photons
from anabranch.stream.reading.source import Source
from papers import Q4
from sockets import listening_addresses, own_processes

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
LOOPBACK = "127.0.0.1"
OTHER_LOOPBACK = "127.0.0.2"
"""Spark begins no task a second time on the machine that has it, and knows machines by their addresses."""
PATIENCE = 60.0


@contextmanager
def service(arguments: Sequence[str], log: Path) -> Iterator[None]:
    """One of Spark's own services, on loopback, from here to the end."""
    environment = {
        **os.environ,
        "SPARK_LOCAL_IP": arguments[arguments.index("--host") + 1],
        "SPARK_LOCAL_DIRS": str(log.parent),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": os.environ["SPARK_SUBMIT_OPTS"],
        "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",  # a second way in, at a fixed port
        "XDG_CACHE_HOME": str(log.parent / "cache"),
        "NUMBA_CACHE_DIR": str(Path(anabranch.__file__).parent / "columnar" / "__pycache__"),  # most is compiled there
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


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A master and two workers of one core each, which have addresses of their own; gives the master's."""
    folder = tmp_path_factory.mktemp("cluster")
    with ExitStack() as held:
        log = folder / "master.log"
        ports = ["--port", "0", "--webui-port", "0"]
        held.enter_context(service(["org.apache.spark.deploy.master.Master", "--host", LOOPBACK, *ports], log))
        master = said(log, rf"Starting Spark master at (spark://{LOOPBACK}:\d+)")
        size = ["--cores", "1", "--memory", "1g", "--work-dir", str(folder / "work")]
        for number, host in enumerate((LOOPBACK, OTHER_LOOPBACK)):
            worker = ["org.apache.spark.deploy.worker.Worker", master, "--host", host, *ports, *size]
            held.enter_context(service(worker, folder / f"worker-{number}.log"))
        said(log, "Registering worker", times=2)
        yield master


@contextmanager
def engine_on(master: str, log: Path, *arguments: Path | str) -> Iterator[dict[str, object]]:
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
def test_a_cluster_of_two_workers_answers_like_the_reference(tmp_path: Path, master: str) -> None:
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
    with engine_on(master, log, stream, query, state) as found:
        assert found["answer"] == expected
        assert found["executors"] == 2
        metrics = found["metrics"]
        assert isinstance(metrics, list)
        assert [(each["epoch"], each["dead_letters"]) for each in metrics] == [(0, 1), (1, 0), (2, 0)]
        assert all(address.is_loopback for address in listening_addresses())
    assert own_processes(below=False) <= before, "nothing that was started for the engine is left"


@pytest.mark.kills
@pytest.mark.spark
def test_an_executor_that_is_lost_in_the_middle_shows_in_no_answer(tmp_path: Path, master: str) -> None:
    """Killed by a task that has just done its work: others do what was lost, and the answer is the law's."""
    faulthandler.cancel_dump_traceback_later()
    stream, query, note = tmp_path / "photons", tmp_path / "vela.xq", tmp_path / "executor"
    stream.write_text("".join(photon.strip() + " " * 1_000 + "\n" for photon in photons(3_000, seed=3)))
    query.write_text(Q4)
    inputs = Inputs([Source("photons", stream, root="photons")])
    with answering([prepare("vela", Q4, inputs, "reference")], inputs) as run:
        expected = "".join(run.answers["vela"])
    with engine_on(master, tmp_path / "engine.log", stream, query, tmp_path / "state", note, "lost") as found:
        assert found["answer"] == expected
        assert not Path(f"/proc/{note.read_text()}").exists(), "the executor is gone"


@pytest.mark.kills
@pytest.mark.spark
def test_a_task_that_is_speculated_counts_once(tmp_path: Path, master: str) -> None:
    """Spark begins a slow task again on the other executor, which does it first; the slow one does it, too.

    The answer is the law's, so nothing is doubled, and what the slow attempt has written is not in the checkpoint.
    """
    faulthandler.cancel_dump_traceback_later()
    stream, query, note = tmp_path / "photons", tmp_path / "vela.xq", tmp_path / "task"
    stream.write_text("".join(photon.strip() + " " * 1_000 + "\n" for photon in photons(3_000, seed=3)))
    query.write_text(Q4)
    inputs = Inputs([Source("photons", stream, root="photons")])
    with answering([prepare("vela", Q4, inputs, "reference")], inputs) as run:
        expected = "".join(run.answers["vela"])
    with engine_on(master, tmp_path / "engine.log", stream, query, tmp_path / "state", note, "slow") as found:
        assert found["answer"] == expected
        assert Path(f"{note}.twin").read_text() == note.read_text()
    manifests = Manifests(Checkpoint.open(tmp_path / "state").manifests)
    named = {each.name for manifest in manifests.since(0) for each in manifest.segments}
    assert named, "there are answers"
    folder = tmp_path / "state" / "segments"
    assert {str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file()} == named


MODULE = """\
import anabranch
import {helper}


def package(value):
    return anabranch.__file__


def module(value):
    return {helper}.__file__
"""


@pytest.mark.spark
def test_a_site_on_a_cluster_sends_what_its_tasks_import(tmp_path: Path, master: str) -> None:
    """`anabranch run --master`: workers import the package and the modules of functions as the driver has sent them."""
    (tmp_path / "in").write_text("<p><n>1</n></p>\n")
    (tmp_path / "beside.py").write_text(MODULE.format(helper="helper"))
    (tmp_path / "helper.py").touch()
    (tmp_path / "where.xq").write_text('for $p in stream("in")/root/p return (package($p/n), module($p/n))')
    (tmp_path / "site.toml").write_text(
        '[engine]\ncheckpoint = "state"\n[streams.in]\npath = "in"\nformat = "lines"\nroot = "root"\n'
        '[subscriptions.where]\nquery = "where.xq"\n'
        '[functions]\npackage = "beside:package"\nmodule = "beside:module"\n'
    )
    memory = ["--conf", "spark.executor.memory=512m", "--conf", "spark.driver.memory=512m"]
    program = Path(sys.executable).with_name("anabranch")
    command: list[str | Path] = [program, "run", tmp_path / "site.toml", "--once", "--master", master, *memory]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    package, module = "".join(committed(tmp_path / "site.toml", "where")).split()
    assert re.search(r"/cache/anabranch/packages/anabranch-[0-9a-f]{32}/anabranch/__init__.py$", package)
    assert re.search(r"/anabranch-functions-[0-9a-f]{32}.zip/helper.py$", module)
    assert not re.search("ERROR|WARN", done.stderr), done.stderr
