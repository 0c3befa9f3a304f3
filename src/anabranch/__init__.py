"""Standing XQuery subscriptions over streams, on Apache Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anabranch.engine.live import Engine

__all__ = ["Engine"]


def __getattr__(name: str) -> Any:
    """`Engine` on first use: importing any part of the package must not load Spark."""
    if name == "Engine":
        from anabranch.engine.live import Engine

        return Engine
    raise AttributeError(f"module 'anabranch' has no attribute '{name}'")
