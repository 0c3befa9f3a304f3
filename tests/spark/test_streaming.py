"""Streaming queries on a busy machine: one whose process came too late is started again."""

from __future__ import annotations

from typing import Any, cast

import pytest

from anabranch.errors import AnabranchError
from anabranch.spark.hosts.streamed import StreamedTrunk

LATE = "Python worker failed to connect back."


class Spark:
    """Settings that are remembered."""

    def __init__(self) -> None:
        self.conf = self
        self.retained: Any = "100"

    def get(self, key: str) -> Any:
        return self.retained

    def set(self, key: str, value: Any) -> None:
        self.retained = value


class BusyTrunk:
    """A trunk whose queries end as they begin, each with its own story, but for the last."""

    def __init__(self, spark: Spark, *stories: str) -> None:
        self.query: BusyTrunk | None = None
        self.starts = 0
        self.retained: list[Any] = []
        self._spark = spark
        self._stories = stories

    def start(self, *, once: bool) -> None:
        assert self.query is None, "one at a time"
        self.query = self
        self.starts += 1
        self.retained.append(self._spark.retained)
        self._looks = 0

    def halt(self) -> None:
        self.query = None

    @property
    def active(self) -> bool:
        self._looks += 1
        return self._looks < 2 or self.starts > len(self._stories)

    @property
    def status(self) -> dict[str, str]:
        return {"message": "Initializing sources" if self._looks < 3 else "Waiting for data to arrive"}

    def exception(self) -> str:
        return self._stories[self.starts - 1]

    def raise_failure(self) -> None:
        raise AnabranchError(self.exception())


def test_a_late_process() -> None:
    """The third attempt succeeds, and the settings of the session are as they were."""
    spark = Spark()
    trunk = BusyTrunk(spark, LATE, LATE)
    assert StreamedTrunk(cast(Any, spark), cast(Any, trunk)).start()
    assert trunk.starts == 3
    assert trunk.query is trunk
    assert spark.retained == "100"
    assert trunk.retained == [(1 << 31) - 1] * 3, "no offset is forgotten"


def test_a_machine_that_is_too_busy() -> None:
    """After a few attempts nothing is started, and whoever asked is told so."""
    spark = Spark()
    trunk = BusyTrunk(spark, *[LATE] * 9)
    assert not StreamedTrunk(cast(Any, spark), cast(Any, trunk)).start()
    assert (trunk.starts, trunk.query) == (5, None)


def test_another_failure() -> None:
    """What else goes wrong is raised at once."""
    spark = Spark()
    trunk = BusyTrunk(spark, "something else")
    with pytest.raises(AnabranchError, match="something else"):
        StreamedTrunk(cast(Any, spark), cast(Any, trunk)).start()
    assert trunk.starts == 1
