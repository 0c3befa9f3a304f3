"""What all tests share: those that start a JVM are marked `spark` and run last, so cheap failures show first.

With two processes (`pytest -n 2 --dist worksteal`, as in `make test`) each has a Spark of its own; who is done first
takes half of what the other has left, from its end.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from oracle.counting import compared

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

settings.register_profile("patient", deadline=None)  # a busy machine is no fault of the code
settings.load_profile("patient")


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Move the tests that need Spark, by mark or by fixture, behind the others; otherwise keep the order."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
    items.sort(key=lambda item: item.get_closest_marker("spark") is not None)


def pytest_collection_finish() -> None:
    """Search for garbage less often, and never among what stays: thousands of tests and all that they have imported.

    Else every seventh second of a run would go by in that search.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 50)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where tests run in several processes, tell the one that reports which queries were compared with Saxon."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["compared"] = sorted(compared)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """... which takes it from each that has ended."""
    compared.update(getattr(node, "workeroutput", {}).get("compared", ()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line behind the test results, if any were compared."""
    if compared:
        terminalreporter.write_line(f"oracle: {len(compared)} different generated queries compared with SaxonC-HE")


@pytest.fixture(scope="session", autouse=True)
def hurried() -> Iterator[None]:
    """Files are not waited for, since no test pulls the plug, and a JVM does not polish code that soon ends.

    The one is a fifth of the time of the tests without Spark, the other a third of the work of those with it.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", os.fstat)  # which minds a handle that is none, too
        patch.setenv("SPARK_SUBMIT_OPTS", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1")
        yield


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one Spark that all tests share; a start costs seconds."""
    from anabranch.spark.session import local_session  # here, so that other tests do not pay for importing pyspark

    session = local_session(cores=2)
    yield session
    session.stop()
