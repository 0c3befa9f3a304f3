"""The application of a service: its routes, its errors, and the rules around them.

`routes` needs no site at work, and gives the OpenAPI document without one.
The documents that FastAPI would show in a browser fetch their programs from elsewhere, so they are turned off; docs/
has the same.
"""

from __future__ import annotations

from importlib.metadata import version

from fastapi import Depends, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from anabranch.errors import AnabranchError
from anabranch.service.access import Guard, bearer
from anabranch.service.context import ServiceContext
from anabranch.service.refusals import RESPONSES, invalid, not_found, refusal, refused
from anabranch.service.routes import ROUTERS, page


def application(context: ServiceContext) -> ASGIApp:
    """The whole service of a run."""
    inner = routes()
    inner.state.context = context

    def failed(request: Request, error: Exception) -> Response:
        context.work.log.event("warning", message=f"the service failed: {type(error).__name__}: {error}")
        return refusal(500, "something has gone wrong here", "the log of the run says what")

    inner.add_exception_handler(Exception, failed)
    return Guard(inner, context.settings, context.work.log, context.watch.answered)


def routes() -> FastAPI:
    """The routes alone."""
    app = FastAPI(
        title="Anabranch",
        version=version("anabranch"),
        description="Streams, subscriptions and answers of a site at work; docs/service.md explains them.",
        docs_url=None,
        redoc_url=None,
    )
    app.router.redirect_slashes = False
    for router in ROUTERS:
        app.include_router(router, dependencies=[Depends(bearer)], responses=RESPONSES)
    page.mount(app)
    app.add_exception_handler(AnabranchError, refused)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, not_found)
    return app
