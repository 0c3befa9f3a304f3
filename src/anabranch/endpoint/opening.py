"""The endpoint of a trunk: opened when its first stream is pushed, closed before the trunk ends."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING
from urllib.parse import quote

from anabranch.endpoint.settings import EndpointSettings
from anabranch.spark.epoch.trunk import Trunk

if TYPE_CHECKING:
    from anabranch.endpoint.server import Endpoint


class TrunkEndpoint:
    """Listens for a trunk, as soon as there is something to listen for; only its owner calls it."""

    def __init__(self, trunk: Trunk, settings: EndpointSettings, warn: Callable[[str], None]) -> None:
        self._trunk = trunk
        self._settings = settings
        self._warn = warn
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

    def open(self) -> None:
        """Listen, if a stream of the trunk is pushed; the record of the run says where."""
        if self._endpoint is not None or not self._trunk.spools.names:
            return
        from anabranch.endpoint.app import application  # loads Starlette and uvicorn only where they are needed
        from anabranch.endpoint.server import Endpoint

        app = application(self._trunk.spools.get, self._settings, self._warn)
        self._endpoint = Endpoint(app, self._settings)
        self._trunk.announce(self._endpoint.address)

    @property
    def streams(self) -> dict[str, str]:
        """By stream that is pushed: where to send its items; nothing while nobody listens."""
        if self._endpoint is None:
            return {}
        return {name: f"{self._endpoint.address}/streams/{quote(name, safe='')}" for name in self._trunk.spools.names}
