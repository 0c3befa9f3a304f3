"""The service of a network at work: its map, whether it is ready, and the page with the view of the network.

It only answers questions; peers, links and subscriptions are changed in the network's file.
Who may ask, and how much, is as with a site (`access.py`).
"""

from __future__ import annotations

from importlib.metadata import version
from types import TracebackType
from typing import Any

from fastapi import APIRouter, Depends, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp

from anabranch.endpoint.server import Endpoint
from anabranch.errors import AnabranchError
from anabranch.run_control import Log
from anabranch.service.access import Guard, Reader, bearer, needs
from anabranch.service.network_map import NetworkView
from anabranch.service.refusals import RESPONSES, invalid, not_found, refusal, refused
from anabranch.service.routes import page
from anabranch.service.routes.network import NetworkAnswer, network_answer
from anabranch.service.routes.site import SiteAnswer
from anabranch.service.settings import ServiceSettings
from anabranch.spark.checkpoint import durable
from anabranch.storage import Location
from anabranch.visible import tell


class NetworkService:
    """Serves a network at work, as a context."""

    def __init__(self, view: NetworkView, settings: ServiceSettings, log: Log) -> None:
        self._view = view
        self._log = log
        self._server = Endpoint(network_application(view, settings, log), settings.server)

    def __enter__(self) -> NetworkService:
        try:
            self._server.start()
        except BaseException:
            self._server.close()
            raise
        address, folder = self._server.address, self._view.network.checkpoint
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            durable.replace(Location.of(folder / "service.json"), durable.sealed({"address": address}))
        self._log.event("serving", address=address)
        if self._view.network.log is not None:  # else the log is on standard error
            tell(f"serving at {address}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._view.state = "stopping" if error is None else "failed"
        self._server.close()


def network_application(view: NetworkView, settings: ServiceSettings, log: Log) -> ASGIApp:
    """The whole service of a network."""
    app = FastAPI(
        title="Anabranch network",
        version=version("anabranch"),
        description="The map of a network at work; docs/service.md explains it.",
        docs_url=None,
        redoc_url=None,
    )
    app.router.redirect_slashes = False

    @app.get("/", include_in_schema=False)
    async def first() -> Response:
        return RedirectResponse("/page/index.html#/network")

    app.include_router(_health(view), responses=RESPONSES)
    app.include_router(_asked(view), dependencies=[Depends(bearer)], responses=RESPONSES)
    page.mount(app)
    app.add_exception_handler(AnabranchError, refused)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, not_found)

    def failed(request: Request, error: Exception) -> Response:
        log.event("warning", message=f"the service failed: {type(error).__name__}: {error}")
        return refusal(500, "something has gone wrong here", "the log of the run says what")

    app.add_exception_handler(Exception, failed)
    return Guard(app, settings, log)


def _health(view: NetworkView) -> APIRouter:
    router = APIRouter(tags=["health"])

    @router.get("/healthz")
    async def healthy() -> dict[str, str]:
        """Whether the process answers."""
        return {"status": "ok"}

    @router.get("/readyz", response_model=None)
    async def ready() -> dict[str, Any] | Response:
        """Whether the network is at work: 200, or 503 with its state."""
        if view.state == "ready":
            return {"status": view.state, "epoch": view.newest}
        message = f"the network is {view.state}"
        return JSONResponse({"status": view.state, "message": message}, 503, {"Retry-After": "1"})

    return router


def _asked(view: NetworkView) -> APIRouter:
    router = APIRouter(prefix="/api", tags=["network"], dependencies=[needs("read")])

    @router.get("")
    async def site(client: Reader) -> SiteAnswer:
        """The network at work, and who asks."""
        return SiteAnswer(
            site=view.file.name,
            version=version("anabranch"),
            role=client.role,
            client=client.name,
            run=None,
            epoch=view.newest,
            started=view.started.isoformat(timespec="seconds").replace("+00:00", "Z"),
            state=view.state,
            streams=len(view.network.streams),
            subscriptions=len(view.network.subscriptions),
            network=True,
        )

    @router.get("/network")
    def network() -> NetworkAnswer:
        """The map of the network."""
        return network_answer(view.map())

    return router
