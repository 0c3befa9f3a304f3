"""The service of a run: it listens from before Spark has started until the run ends.

Where it listens is told on standard error, in the log, and in the checkpoint.
"""

from __future__ import annotations

from types import TracebackType

from anabranch.endpoint.server import Endpoint
from anabranch.service.app import application
from anabranch.service.context import ServiceContext
from anabranch.service.settings import ServiceSettings
from anabranch.site_work import SiteAtWork
from anabranch.spark.checkpoint import durable
from anabranch.spark.plan.wanted import Epoch
from anabranch.visible import tell


class Service:
    """Serves a site at work, as a context."""

    def __init__(self, work: SiteAtWork, settings: ServiceSettings) -> None:
        self._context = ServiceContext(work, settings)
        self._server = Endpoint(application(self._context), settings.server)

    def __enter__(self) -> Service:
        try:
            self._server.start()
        except BaseException:
            self._server.close()
            raise
        self._context.watch.start()
        work, address = self._context.work, self._server.address
        durable.replace(work.checkpoint.service, durable.sealed({"address": address}))
        work.log.event("serving", address=address)
        if work.site.log is not None:  # else the log is on standard error
            tell(f"serving at {address}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._context.work.state = "stopping" if error is None else "failed"
        self._context.watch.close()
        self._server.close()
        self._context.queries.close()

    def epoch(self, epoch: Epoch) -> None:
        """Take note of a committed epoch."""
        self._context.epoch(epoch)
