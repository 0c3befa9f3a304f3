"""A local Spark with the settings a trunk needs.

Each setting is here because Spark's default was measured or seen to be wrong for a trunk: it listens on the network,
ends a query at the first lost task, logs on our terminal, or spends time on optimisations that an epoch of a few rows
cannot repay.
`SETTINGS` is the whole list, with the reasons.

Guarantees: nothing listens outside loopback; Python workers run this very interpreter; nothing is left in the
working directory.
The JVM and its Python workers have a process group of their own, so Ctrl-C on a terminal and a signal to our process
group reach this process alone, which then ends them in order; they end by themselves when it is killed, because the
pipe to the JVM's standard input breaks.
Signal handlers stay as they are: Spark would replace that of SIGINT.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from subprocess import PIPE
from threading import Event, Thread
from typing import IO, Any, TypeAlias
from uuid import uuid4

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.find_spark_home import _find_spark_home
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from anabranch.errors import UsageError

LOOPBACK = "127.0.0.1"
_JAVA_NOTICE = b"Using incubator modules"
_LONGEST_SOCKET_NAME = 100
"""In bytes; systems allow 103 to 107."""
Session: TypeAlias = SparkSession
"""For modules that pass a session on and know no Spark."""

SETTINGS: Mapping[str, str] = {
    # Spark would listen on all interfaces.
    "spark.driver.host": LOOPBACK,
    "spark.driver.bindAddress": LOOPBACK,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Finished jobs are kept for a web page that we do not show; a trunk runs one job per epoch for weeks.
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "100",
    "spark.sql.ui.retainedExecutions": "10",
    "spark.sql.streaming.numRecentProgressUpdates": "10",
    # Epochs have the same small plan again and again: nothing to adapt, and a task must not run twice at a time.
    "spark.sql.adaptive.enabled": "false",
    "spark.speculation": "false",
    "spark.scheduler.mode": "FAIR",
    # The default starts two programs for every file in Spark's checkpoint, to set its permissions.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    # stop() waits for the epoch at work rather than for ever.
    "spark.sql.streaming.stopTimeout": "60s",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Errors of Python code come back with their message, without the JVM's stack trace.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "true",
    # glibc keeps a heap per thread otherwise, and workers grow without need.
    "spark.executorEnv.MALLOC_ARENA_MAX": "2",
}


def local_session(*, cores: int | None = None, memory: str = "1g", name: str = "anabranch") -> SparkSession:
    """Start Spark in this process's own JVM, or return the running one; `cores` of None means all."""
    os.environ["PYSPARK_PYTHON"] = sys.executable  # the equivalent Spark setting is ignored in local mode
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = LOOPBACK
    os.environ.setdefault("MALLOC_ARENA_MAX", "2")
    scratch = tempfile.gettempdir()
    log = Path(str(files("anabranch.spark").joinpath("log4j2.properties"))).as_uri()
    settings = {
        **SETTINGS,
        # Four attempts for a task; with plain local[*] the first failure ends the query.
        "spark.master": f"local[{cores or '*'},4]",
        "spark.app.name": name,
        "spark.driver.memory": memory,
        "spark.sql.shuffle.partitions": str(cores or os.cpu_count() or 1),
        "spark.sql.warehouse.dir": os.path.join(scratch, "anabranch-warehouse"),
        # A plain streaming query was seen to overflow its thread's stack in a regular expression and to hang without an
        # error, in two runs of three; whose expression it is was not found. It was not seen with more room.
        "spark.driver.extraJavaOptions": f"-Xss4m -Dlog4j2.configurationFile={log}",
    }
    try:
        return _on_a_thread(lambda: _started(settings))
    except PySparkRuntimeError as error:
        hint = "Spark needs Java 17 or newer: install it, or set JAVA_HOME to it"
        raise UsageError("Spark could not be started", hint=hint) from error


def _started(settings: Mapping[str, str]) -> SparkSession:
    """The running session, or a new one; a JVM is launched at most once in a process."""
    if SparkContext._active_spark_context is None:
        folder = Path(tempfile.mkdtemp(prefix="anabranch-spark-"))  # for this user only
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        conf = SparkConf().setAll([*settings.items(), *_worker_sockets(folder).items()])
        SparkContext(conf=conf, gateway=None if SparkContext._gateway else _launched(conf, folder))
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _worker_sockets(folder: Path) -> Mapping[str, str]:
    """Let the JVM and its Python workers talk over sockets in a folder of this user's own, where their names fit.

    Over TCP the second of two small messages waits until the first is acknowledged, which takes 40 ms: most of the time
    of a small epoch's task.
    Sockets in a folder are not protected by a secret, so nobody else may look into it.
    """
    if len(os.fsencode(folder / f".{uuid4()}.sock")) > _LONGEST_SOCKET_NAME:
        return {}
    return {
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.unix.domain.socket.dir": str(folder),
    }


def _launched(conf: SparkConf, folder: Path) -> Any:
    """The gateway to a new JVM, in a process group of its own."""
    before = os.environ.get("SPARK_HOME")
    os.environ["SPARK_HOME"] = str(_home_without_zip(folder))
    try:
        gateway = launch_gateway(conf, {"start_new_session": True, "stderr": PIPE})  # type: ignore[no-untyped-call]
    finally:
        del os.environ["SPARK_HOME"]
        if before is not None:
            os.environ["SPARK_HOME"] = before
    Thread(target=_pass_on, args=(gateway.proc.stderr,), name="errors of the JVM", daemon=True).start()
    return gateway


def _home_without_zip(folder: Path) -> Path:
    """A home for Spark's programs like the installed one, but without the zip of PySpark.

    The JVM puts that zip in front of the path of all its Python processes, of which a trunk starts ten, and Python
    compiles what it imports from a zip at every start: half a second each.
    Without the zip they import the installed package, as this process does.
    """
    installed, home = Path(_find_spark_home()), folder / "spark"
    home.mkdir()
    for each in ("bin", "jars", "conf", "RELEASE"):
        if (installed / each).exists():
            (home / each).symlink_to(installed / each)
    return home


def _pass_on(lines: IO[bytes]) -> None:
    """Pass on what the JVM and its Python workers print on standard error, except for Java's first line."""
    for line in lines:
        if _JAVA_NOTICE not in line:
            with suppress(OSError, ValueError):  # nobody reads it any more, but the pipe must be drained
                sys.stderr.write(line.decode(errors="replace"))
                sys.stderr.flush()


def _on_a_thread(start: Callable[[], SparkSession]) -> SparkSession:
    """Start Spark on a thread of its own; an interrupted caller need not wait for it.

    On the main thread Spark would replace the handler of SIGINT, and a signal might break its talk with the JVM.
    """
    found: list[SparkSession | BaseException] = []
    done = Event()

    def work() -> None:
        try:
            found.append(start())
        except BaseException as error:
            found.append(error)
        finally:
            done.set()

    Thread(target=work, name="start of Spark", daemon=True).start()
    done.wait()
    (result,) = found
    if isinstance(result, BaseException):
        raise result
    return result


def jvm_of(spark: SparkSession) -> int:
    """The process of a session's JVM."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None, "a session that runs has a gateway"
    return int(gateway.jvm.java.lang.ProcessHandle.current().pid())


def check_workers(spark: SparkSession) -> SparkSession:
    """A session of the user, if its Python workers can run our code."""
    wanted = spark.sparkContext.pythonExec
    found = shutil.which(wanted)
    here = found is not None and Path(found).parent == Path(sys.executable).parent
    # On a cluster another path may be right; then the user has set it.
    remote = not (spark.sparkContext.master or "").startswith("local") and "PYSPARK_PYTHON" in os.environ
    if not here and not remote:
        hint = f"set PYSPARK_PYTHON={sys.executable} in the environment before Spark is started"
        raise UsageError(f"Spark's Python workers would run '{wanted}' and not this Python", hint=hint)
    return spark
