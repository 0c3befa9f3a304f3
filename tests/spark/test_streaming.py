"""Streaming queries on a busy machine: one whose process came too late is started again."""

from __future__ import annotations

from typing import Any, cast

import pytest

from anabranch.errors import AnabranchError
from anabranch.spark.hosts.streamed import StreamedTrunk

LATE = "Python worker failed to connect back."


class BusyTrunk:
    """A trunk whose queries end as they begin, each with its own story, but for the last."""

    def __init__(self, *stories: str) -> None:
        self.query: BusyTrunk | None = None
        self.starts = 0
        self._stories = stories

    def start(self, *, once: bool) -> None:
        assert self.query is None, "one at a time"
        self.query = self
        self.starts += 1
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
    """The third attempt succeeds."""
    trunk = BusyTrunk(LATE, LATE)
    assert StreamedTrunk(cast(Any, trunk)).start()
    assert trunk.starts == 3
    assert trunk.query is trunk


def test_a_machine_that_is_too_busy() -> None:
    """After a few attempts nothing is started, and whoever asked is told so."""
    trunk = BusyTrunk(*[LATE] * 9)
    assert not StreamedTrunk(cast(Any, trunk)).start()
    assert (trunk.starts, trunk.query) == (5, None)


def test_another_failure() -> None:
    """What else goes wrong is raised at once."""
    trunk = BusyTrunk("something else")
    with pytest.raises(AnabranchError, match="something else"):
        StreamedTrunk(cast(Any, trunk)).start()
    assert trunk.starts == 1
