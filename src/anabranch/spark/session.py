"""A local Spark with the settings a trunk needs.

Each setting is here because Spark's default was found wrong for a trunk: it listens on the network, ends a query at
the first lost task, logs on our terminal, or spends time on optimisations that an epoch of a few rows cannot repay.
`SETTINGS` is the whole list, with the reasons.

Guarantees: nothing listens outside loopback; Python workers run this very interpreter; nothing is left in the
working directory.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import TypeAlias

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from anabranch.errors import UsageError

LOOPBACK = "127.0.0.1"
Session: TypeAlias = SparkSession
"""For those who hand a session on and know no Spark."""

SETTINGS: Mapping[str, str] = {
    # Spark would listen on all interfaces.
    "spark.driver.host": LOOPBACK,
    "spark.driver.bindAddress": LOOPBACK,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # What Spark remembers of past jobs, for a display we do not show; a trunk runs one job per epoch for weeks.
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "100",
    "spark.sql.ui.retainedExecutions": "10",
    "spark.sql.streaming.numRecentProgressUpdates": "10",
    # Epochs have the same small plan again and again: nothing to adapt, and a task must not run twice at a time.
    "spark.sql.adaptive.enabled": "false",
    "spark.speculation": "false",
    "spark.scheduler.mode": "FAIR",
    # stop() waits for the epoch at work rather than for ever.
    "spark.sql.streaming.stopTimeout": "60s",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Errors of Python code come back with their message, without the JVM's part of the story.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "true",
    # glibc keeps a heap per thread otherwise, and workers grow without need.
    "spark.executorEnv.MALLOC_ARENA_MAX": "2",
}


def local_session(*, cores: int | None = None, memory: str = "1g", name: str = "anabranch") -> SparkSession:
    """Start Spark in this process's own JVM, or return the one that runs; `cores` of None means all."""
    os.environ["PYSPARK_PYTHON"] = sys.executable  # the setting of the same meaning is ignored in local mode
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = LOOPBACK
    os.environ.setdefault("MALLOC_ARENA_MAX", "2")
    scratch = tempfile.gettempdir()
    log = Path(str(files("anabranch.spark").joinpath("log4j2.properties"))).as_uri()
    # Four attempts for a task; with plain local[*] the first failure ends the query.
    builder = SparkSession.builder.master(f"local[{cores or '*'},4]").appName(name)
    settings = {
        **SETTINGS,
        "spark.driver.memory": memory,
        "spark.sql.shuffle.partitions": str(cores or os.cpu_count() or 1),
        "spark.sql.warehouse.dir": os.path.join(scratch, "anabranch-warehouse"),
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={log}",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except PySparkRuntimeError as error:
        hint = "Spark needs Java 17 or newer: install it, or set JAVA_HOME to it"
        raise UsageError("Spark could not be started", hint=hint) from error


def jvm_of(spark: SparkSession) -> int:
    """The process of a session's JVM."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None, "a session that runs has a gateway"
    return int(gateway.jvm.java.lang.ProcessHandle.current().pid())


def check_workers(spark: SparkSession) -> SparkSession:
    """A session that the user brings, if its Python workers can run our code."""
    wanted = spark.sparkContext.pythonExec
    found = shutil.which(wanted)
    here = found is not None and Path(found).parent == Path(sys.executable).parent
    # On a cluster another path may be right; then somebody has said so.
    remote = not (spark.sparkContext.master or "").startswith("local") and "PYSPARK_PYTHON" in os.environ
    if not here and not remote:
        hint = f"set PYSPARK_PYTHON={sys.executable} in the environment before Spark is started"
        raise UsageError(f"Spark's Python workers would run '{wanted}' and not this Python", hint=hint)
    return spark
