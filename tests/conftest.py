"""What all tests share: those that start a JVM are marked `spark` and run last, so cheap failures show first.

With two processes (`pytest -n 2 --dist loadgroup`, as in `make test`) each has a Spark of its own: one has the tests of
the trunk and of networks, the other those of commands, the engine and faults, and who is done first does the rest.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TRUNK = ("spark", "peers", "together")


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Move the tests that need Spark, by mark or by fixture, behind the others; otherwise keep the order."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
        if item.get_closest_marker("spark") is not None:
            folder = item.path.relative_to(item.config.rootpath).parts[1]
            item.add_marker(pytest.mark.xdist_group("trunk" if folder in _TRUNK else "around it"))
    items.sort(key=lambda item: item.get_closest_marker("spark") is not None)


def pytest_collection_finish() -> None:
    """Search for garbage less often, and never among what stays: thousands of tests and all that they have imported.

    Else every seventh second of a run would go by in that search.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take from a process that has ended how many generated queries it compared with Saxon."""
    from oracle.compare import compared

    compared.update(getattr(node, "workeroutput", {}).get("compared", ()))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one Spark that all tests share; a start costs seconds."""
    from anabranch.spark.session import local_session  # here, so that other tests do not pay for importing pyspark

    session = local_session(cores=2)
    yield session
    session.stop()
