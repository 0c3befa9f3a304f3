"""The endpoint of a trunk: opened with its first stream that is pushed, closed before the trunk ends.

An address that is taken, or a token that is missing, is told before the trunk gets the stream; and nobody is served
before the trunk has it, so no client is told that there is no such stream: until then its connection waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING
from urllib.parse import quote

from anabranch.endpoint.settings import EndpointSettings
from anabranch.spark.epoch.trunk import Trunk
from anabranch.stream.reading.source import Source

if TYPE_CHECKING:
    from anabranch.endpoint.server import Endpoint


class TrunkEndpoint:
    """Listens for a trunk, as soon as there is something to listen for; only its owner calls it."""

    def __init__(
        self, trunk: Trunk, settings: EndpointSettings, warn: Callable[[str], None], *, listens: bool = True
    ) -> None:
        """Unless it `listens`, streams are only read on from what was pushed before."""
        self._trunk = trunk
        self._settings = settings
        self._warn = warn
        self._listens = listens
        self._endpoint: Endpoint | None = None

    def __enter__(self) -> TrunkEndpoint:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Take no further request; those that wait for their answers get them. Idempotent."""
        if self._endpoint is not None:
            self._endpoint.close()
            self._endpoint = None

    @contextmanager
    def opened(self, streams: Iterable[Source]) -> Iterator[None]:
        """Listen from the end of the block on, in which the trunk gets these streams, if one of them is pushed.

        The record of the run says where.
        """
        if not self._listens or self._endpoint is not None or all(each.http is None for each in streams):
            yield
            return
        from anabranch.endpoint.app import application  # loads Starlette and uvicorn only where they are needed
        from anabranch.endpoint.server import Endpoint

        fresh = Endpoint(application(self._trunk.spools.get, self._settings, self._warn), self._settings)
        try:
            yield
            fresh.start()
        except BaseException:
            fresh.close()
            raise
        self._endpoint = fresh
        self._trunk.announce(fresh.address)

    @property
    def streams(self) -> dict[str, str]:
        """By stream that is pushed: where to send its items; nothing while nobody listens."""
        if self._endpoint is None:
            return {}
        return {name: f"{self._endpoint.address}/streams/{quote(name, safe='')}" for name in self._trunk.spools.names}
