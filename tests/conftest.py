"""What all tests share: those that start a JVM are marked `spark` and run last, so that cheap failures show first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Move the tests that need Spark, by mark or by fixture, behind the others; otherwise keep the order."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
    items.sort(key=lambda item: item.get_closest_marker("spark") is not None)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one Spark that all tests share; a start costs seconds."""
    from anabranch.spark.session import local_session  # here, so that other tests do not pay for importing pyspark

    session = local_session(cores=2)
    yield session
    session.stop()
