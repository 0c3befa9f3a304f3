"""The workers of a session of Spark: whether they can run our tasks, what they are sent, and what they can see.

In a local Spark they are processes of this machine, with this Python, and there is nothing to do.
Those of a cluster share nothing with the driver: they get the package, and the modules of functions that lie beside a
site (`shipping.py`), and before a trunk begins a small job asks all of them whether they see its checkpoint
(`shared.py`).
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable
from functools import cache, partial
from pathlib import Path
from time import monotonic, sleep

from pyspark import SparkContext
from pyspark.sql import SparkSession

from anabranch.errors import StateError, UsageError
from anabranch.law.calls import ImportedFunction
from anabranch.spark.cluster.loader import KERNELS
from anabranch.spark.cluster.shared import HINT, SharedRecord
from anabranch.spark.cluster.shipping import functions_archive, kernels_archive, package_archive
from anabranch.spark.options import connect_refused, is_local
from anabranch.spark.scratch import own_folder

_POLL_SECONDS = 0.1
_SETTLED_SECONDS = 1.0
"""Executors of a cluster that is there come within this time of each other."""
_PATIENCE_SECONDS = 10.0


def check_workers(spark: SparkSession) -> SparkSession:
    """A session of the user, if its Python workers can run our code."""
    if not isinstance(spark, SparkSession):
        raise connect_refused()
    wanted = spark.sparkContext.pythonExec
    found = shutil.which(wanted)
    here = found is not None and Path(found).parent == Path(sys.executable).parent
    # On a cluster another path may be right; then the user has set it.
    if not here and not (is_remote(spark) and "PYSPARK_PYTHON" in os.environ):
        hint = f"set PYSPARK_PYTHON={sys.executable} in the environment before Spark is started"
        raise UsageError(f"Spark's Python workers would run '{wanted}' and not this Python", hint=hint)
    return spark


def is_remote(spark: SparkSession) -> bool:
    """Whether tasks run on other machines than the driver, or may do so."""
    return not is_local(spark.sparkContext.master)


def join_cluster(spark: SparkSession, tell: Callable[[str], None] = lambda message: None) -> SparkSession:
    """The same session, where it is that of a cluster with the package sent and workers there.

    Waits for the first executors, as long as it takes; `tell` hears of it.
    """
    if is_remote(spark):
        _ship_kernels(spark.sparkContext)
        _ship(spark.sparkContext, package_archive)
        _await_executors(spark.sparkContext, tell)
    return spark


def ship_functions(spark: SparkSession, functions: Iterable[object]) -> None:
    """Send the modules of functions that lie beside a site; functions of other kinds travel with each job."""
    imported = [each for each in functions if isinstance(each, ImportedFunction)]
    if imported and is_remote(spark):
        _ship(spark.sparkContext, lambda folder: functions_archive(imported, folder))


def check_shared(spark: SparkSession, record: SharedRecord) -> None:
    """Refuse a checkpoint that a worker does not see, by the worker's name."""
    context = spark.sparkContext
    tasks = context.defaultParallelism
    found = context.parallelize(range(tasks), tasks).map(partial(_look, record)).collect()
    for difference in sorted(each for each in found if each is not None):
        raise StateError(difference, hint=HINT)


def _look(record: SharedRecord, _: int) -> str | None:
    return record.difference()


def _ship_kernels(context: SparkContext) -> None:
    """Send the compiled loops, once in a session; they are a cache, so those that come later are not missed."""
    if not any(Path(each).name.startswith(KERNELS) for each in context.listFiles):
        made = kernels_archive(_archives())
        if made is not None:
            context.addFile(str(made))


def _ship(context: SparkContext, make: Callable[[Path], Path | None]) -> None:
    """Send an archive to all Python workers, unless they have it."""
    made = make(_archives())  # Spark hands it out whenever a worker comes, so it has to stay
    if made is not None and made.name not in (context._python_includes or ()):
        context.addPyFile(str(made))
        sys.path[:] = [each for each in sys.path if not each.endswith(made.name)]  # it is for the workers only


@cache
def _archives() -> Path:
    """The folder of the archives that this process has sent."""
    return own_folder()


def _await_executors(context: SparkContext, tell: Callable[[str], None]) -> None:
    """Wait until executors are there and no more come; Spark itself would wait in silence, with the first job."""
    begun = changed = monotonic()
    told, known = False, 0
    while known == 0 or monotonic() - changed < _SETTLED_SECONDS:
        found = _executors(context)
        if found != known:
            changed, known = monotonic(), found
        if known == 0 and not told and monotonic() - begun > _PATIENCE_SECONDS:
            told = True
            tell(f"no executor has come yet: has '{context.master}' workers with the memory that is asked for?")
        sleep(_POLL_SECONDS)


def _executors(context: SparkContext) -> int:
    """How many executors there are, without the driver."""
    assert context._jsc is not None, "a session that runs has a context"
    return len(context._jsc.sc().statusTracker().getExecutorInfos()) - 1
