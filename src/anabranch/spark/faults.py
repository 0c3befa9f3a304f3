"""Translates Spark's exceptions into our errors; the one place that does.

Tasks report foreseen errors (an unreadable file, a refused stream) as values, and the driver raises them; only
unforeseen ones arrive here, wrapped in layers of Java and Python stack traces.
Of these the innermost Python error, or else Spark's own first line, is what a user can act upon.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from anabranch import errors
from anabranch.errors import AnabranchError

_PYTHON_ERROR = re.compile(r"^(?:[A-Za-z_]\w*\.)*([A-Z]\w*(?:Error|Exception|Interrupt|Exit)): (.+)$", re.MULTILINE)
_CONDITION = re.compile(r"\[[A-Z][A-Z_.]+\] *")
_FULL = "No space left on device"
_OURS = {
    "SourceUnavailable": errors.SourceUnavailable,
    "StateError": errors.StateError,
    "StreamError": errors.StreamError,
    "UsageError": errors.UsageError,
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One of our errors on its way from a task to the driver."""

    kind: str
    message: str
    code: str | None
    hint: str | None

    @staticmethod
    def of(error: AnabranchError) -> Fault:
        return Fault(type(error).__name__, error.message, error.code, error.hint)

    def error(self) -> AnabranchError:
        return _OURS.get(self.kind, AnabranchError)(self.message, code=self.code, hint=self.hint)


def translated(error: BaseException) -> AnabranchError:
    """Our error for an exception of Spark."""
    # Imported here, so that Spark is not loaded where it is not used.
    from py4j.protocol import Py4JNetworkError

    if isinstance(error, ConnectionError | Py4JNetworkError):
        return AnabranchError("Spark's JVM has ended", hint="start again: it goes on where it was")
    text = str(error)
    if _FULL in text:
        return errors.StateError("the disk is full", hint="make room and start again: it goes on where it was")
    innermost = _PYTHON_ERROR.findall(text)
    if innermost:
        kind, message = innermost[-1]
        if kind in _OURS:
            return _OURS[kind](message)
        return AnabranchError(f"the trunk failed on Spark: {kind}: {message}")
    first = _CONDITION.sub("", text.strip().split("\n", 1)[0]) or type(error).__name__
    return AnabranchError(f"the trunk failed on Spark: {first}")
