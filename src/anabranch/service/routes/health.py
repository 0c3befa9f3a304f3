"""Health and readiness, for those who start and stop services; neither needs a token."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from anabranch.service.context import Context

router = APIRouter(tags=["health"])


@router.get("/healthz")
async def healthy() -> dict[str, str]:
    """Whether the process answers."""
    return {"status": "ok"}


@router.get("/readyz", response_model=None)
async def ready(context: Context) -> dict[str, Any] | Response:
    """Whether the run is at work: 200, or 503 with its state."""
    state = context.work.state
    if state == "ready":
        return {"status": state, "epoch": context.last}
    return JSONResponse({"status": state, "message": f"the run is {state}"}, 503, {"Retry-After": "1"})
