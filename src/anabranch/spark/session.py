"""A Spark with the settings a trunk needs, in this machine or on a cluster.

Each setting is here because Spark's default was measured or seen to be wrong for a trunk: it listens on the network,
ends a query at the first lost task, logs on our terminal, or spends time on optimisations that an epoch of a few rows
cannot repay.
`SETTINGS` is the whole list, with the reasons.

Guarantees of a Spark in this machine: nothing listens outside loopback; Python workers run this very interpreter;
nothing is left in the working directory.
On a cluster the driver listens on one address (`options.py`), and its workers have a Python of their own, to which the
package is sent (`cluster/shipping.py`); everything else is the same.

The JVM and its Python workers have a process group of their own, so Ctrl-C on a terminal and a signal to our process
group reach this process alone, which then ends them in order; they end by themselves when it is killed, because the
pipe to the JVM's standard input breaks.
Signal handlers stay as they are: Spark would replace that of SIGINT.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from socketserver import BaseServer
from subprocess import PIPE
from threading import Event, Thread
from typing import IO, Any, TypeAlias
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.find_spark_home import _find_spark_home
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from anabranch.errors import UsageError
from anabranch.spark import faults
from anabranch.spark.cluster.workers import join_cluster
from anabranch.spark.jvm_errors import worth_telling
from anabranch.spark.options import BIND, SparkOptions
from anabranch.spark.scratch import own_folder

_PYTHON, _JAVA_OPTIONS = "spark.pyspark.python", "spark.driver.extraJavaOptions"
_LONGEST_SOCKET_NAME = 100
"""In bytes; systems allow 103 to 107."""
Session: TypeAlias = SparkSession
"""For modules that pass a session on and know no Spark."""

SETTINGS: Mapping[str, str] = {
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


def start_session(
    options: SparkOptions | None = None,
    *,
    cores: int | None = None,
    memory: str = "1g",
    name: str = "anabranch",
    tell: Callable[[str], None] = lambda message: None,
) -> SparkSession:
    """Start Spark's driver in a JVM of this process, or return the running session.

    Without a master in the options, all of Spark is in that JVM, with so many `cores`, None for all of them.
    Settings in the options take precedence.
    On a cluster it returns when executors are there, and tells if that takes long.
    """
    chosen = options or SparkOptions()
    settings = {**_settings(chosen, cores, memory, name), **chosen.settings}
    settings[_JAVA_OPTIONS] = f"{_java_options()} {chosen.settings.get(_JAVA_OPTIONS, '')}".strip()
    os.environ["PYSPARK_PYTHON"] = _worker_python(chosen)  # the equivalent Spark setting is ignored in local mode
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if BIND in settings:
        os.environ["SPARK_LOCAL_IP"] = settings[BIND]
    os.environ.setdefault("MALLOC_ARENA_MAX", "2")
    try:
        return join_cluster(_on_a_thread(lambda: _started(settings, local=chosen.is_local)), tell)
    except PySparkRuntimeError as error:
        hint = "Spark needs Java 17 or newer: install it, or set JAVA_HOME to it"
        raise UsageError("Spark could not be started", hint=hint) from error
    except Py4JError as error:
        raise faults.translated(error) from error


def _settings(options: SparkOptions, cores: int | None, memory: str, name: str) -> dict[str, str]:
    return {
        **SETTINGS,
        # Spark would listen on all interfaces.
        **options.addresses(),
        # Four attempts for a task; with plain local[*] the first failure ends the query.
        "spark.master": options.master or f"local[{cores or '*'},4]",
        "spark.app.name": name,
        "spark.driver.memory": memory,
        "spark.sql.shuffle.partitions": str(cores or os.cpu_count() or 1),
        "spark.sql.warehouse.dir": os.path.join(tempfile.gettempdir(), "anabranch-warehouse"),
    }


def _java_options() -> str:
    """Options of the driver's JVM.

    A plain streaming query was seen to overflow its thread's stack in a regular expression and to hang without an
    error, in two runs of three; whose expression it is was not found. It was not seen with more room.
    """
    log = Path(str(files("anabranch.spark").joinpath("log4j2.properties"))).as_uri()
    return f"-Xss4m -Dlog4j2.configurationFile={log}"


def _worker_python(options: SparkOptions) -> str:
    """The Python of tasks: on a cluster, the one that the user names, or else one in the same place as this."""
    if options.is_local:
        return sys.executable
    return options.settings.get(_PYTHON) or os.environ.get("PYSPARK_PYTHON") or sys.executable


def _started(settings: Mapping[str, str], *, local: bool) -> SparkSession:
    """The running session, or a new one; a JVM is launched at most once in a process."""
    if SparkContext._active_spark_context is None:
        folder = own_folder()
        sockets = _worker_sockets(folder) if local else {}
        conf = SparkConf().setAll([*settings.items(), *sockets.items()])
        context = SparkContext(conf=conf, gateway=None if SparkContext._gateway else _launched(conf, folder))
        expect_end(context._accumulatorServer)
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def expect_end(accumulators: BaseServer) -> None:
    """Let PySpark's server of accumulators end in silence where the JVM is gone before it.

    The JVM closes its connection a moment before PySpark shuts the server down, which else prints a traceback.
    """
    tell = accumulators.handle_error

    def handle_error(request: Any, address: Any) -> None:
        if not isinstance(sys.exc_info()[1], EOFError | ConnectionError):
            tell(request, address)

    accumulators.handle_error = handle_error  # type: ignore[method-assign, assignment]


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
    """Pass on what the JVM and its Python workers print on standard error, as far as it is of use."""
    for line in worth_telling(line.decode(errors="replace") for line in lines):
        with suppress(OSError, ValueError):  # nobody reads it any more, but the pipe must be drained
            sys.stderr.write(line)
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
