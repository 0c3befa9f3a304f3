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

_PYTHON_ERROR = re.compile(
    r"^(?:[A-Za-z_]\w*\.)*([A-Z]\w*(?:Error|Exception|Interrupt|Exit)|DiskFull|SourceUnavailable): (.+)$", re.MULTILINE
)
_JAVA_ERROR = re.compile(r"^(?:: |Caused by: )(?:[a-z]\w*\.)+([A-Z]\w*): (.+)$", re.MULTILINE)
_CALL = "An error occurred while calling "
_CONDITION = re.compile(r"\[[A-Z][A-Z_.]+\] *")
_NO_PYTHON = re.compile(r'Cannot run program "([^"]+)"')
_OTHER_PYTHON = re.compile(r"\[PYTHON_VERSION_MISMATCH\].*?: (\S+) than that in driver: ([\d.]+)")
_NO_MEMORY = re.compile(r"^(?:[A-Za-z_]\w*\.)*(?:_?[A-Z]\w*)?MemoryError\b|java\.lang\.OutOfMemoryError", re.MULTILINE)
_DIED = "Python worker exited unexpectedly"
_MORE_MEMORY = (
    "give the machine or its workers more, or make 'epoch_bytes' smaller or 'shards' more, and start again: "
    "it goes on where it was"
)
_SEE = "see docs/cluster.md for the Python of workers"
_FULL = "No space left on device"
_OURS = {
    "DiskFull": errors.DiskFull,
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
    if _NO_MEMORY.search(text):
        return AnabranchError("a worker of Spark has no memory left", hint=_MORE_MEMORY)
    if _DIED in text:
        hint = f"where the system has ended it for want of memory, {_MORE_MEMORY}"
        return AnabranchError("a worker of Spark has died at each attempt to run a task", hint=hint)
    if found := _NO_PYTHON.search(text):
        return errors.UsageError(f"a worker of Spark has no program '{found[1]}'", hint=_SEE)
    if found := _OTHER_PYTHON.search(text):
        return errors.UsageError(f"workers of Spark have Python {found[1]}, and the driver {found[2]}", hint=_SEE)
    innermost = _PYTHON_ERROR.findall(text)
    if innermost:
        kind, message = innermost[-1]
        if kind in _OURS:
            return _OURS[kind](message)
        if kind == "ModuleNotFoundError":
            return errors.UsageError(f"the Python of Spark's workers lacks a module: {message}", hint=_SEE)
        return AnabranchError(f"the trunk failed on Spark: {kind}: {message}")
    causes = _JAVA_ERROR.findall(text) if text.startswith(_CALL) else []
    if causes:
        return AnabranchError(f"the trunk failed on Spark: {': '.join(causes[-1])}")
    first = _CONDITION.sub("", text.strip().split("\n", 1)[0]) or type(error).__name__
    return AnabranchError(f"the trunk failed on Spark: {first}")
