"""The page: its files, which need no token; what they show does.

The policy for its content lets a browser load nothing from anywhere else, and run nothing that stands in the page
itself but the map of its modules, whatever data is shown.
"""

from __future__ import annotations

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles

FILES = Path(__file__).parent.parent / "page"
_MODULES = re.compile(rb'<script type="importmap">(.*?)</script>', re.DOTALL)


@cache
def _headers() -> dict[str, str]:
    """The headers of every file of the page."""
    modules = _MODULES.search((FILES / "index.html").read_bytes())
    digest = f" 'sha256-{b64encode(sha256(modules[1]).digest()).decode()}'" if modules else ""
    policy = {
        "default-src": "'none'",
        "script-src": f"'self'{digest}",
        "style-src": "'self' 'unsafe-inline'",
        "img-src": "'self' data:",
        "font-src": "'self'",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    return {
        "Content-Security-Policy": "; ".join(f"{key} {value}" for key, value in policy.items()),
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-cache",
    }


class PageFiles(StaticFiles):
    """The files of the page, with its headers."""

    def file_response(self, *args: Any, **options: Any) -> Response:
        found = super().file_response(*args, **options)
        found.headers.update(_headers())
        return found


def mount(app: FastAPI) -> None:
    """Serve the page: its first file at the root, the others below `/page/`."""

    @app.get("/", include_in_schema=False)
    async def first() -> Response:
        return FileResponse(FILES / "index.html", headers=_headers())

    app.mount("/page", PageFiles(directory=FILES), name="page")
