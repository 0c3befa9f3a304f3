"""Metrics for Prometheus (docs/metrics.md)."""

from __future__ import annotations

from fastapi import APIRouter
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.responses import PlainTextResponse, Response

from anabranch.service.access import Reader
from anabranch.service.context import Context

router = APIRouter(tags=["health"])


@router.get("/metrics", response_class=PlainTextResponse)
def metrics(context: Context, client: Reader) -> Response:
    """The metrics of the run, as Prometheus reads them."""
    return Response(context.metrics.text(), media_type=CONTENT_TYPE_LATEST)
