"""Previews: the answer of a query over the newest items of its streams, before it is registered.

A query is tried out in a process of its own (`preview_process.py`): it shares no state with the run, takes no time of
its epochs, and one that does not end is ended.
Two may be tried at a time; a process is kept for the next one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from select import select
from tempfile import TemporaryDirectory
from threading import BoundedSemaphore, Lock
from time import monotonic
from typing import Any

from anabranch.errors import Span, Unsupported
from anabranch.language import ast
from anabranch.service.evolving.courses import StreamEvolutions
from anabranch.service.queries.checking import CheckedQuery
from anabranch.service.queries.newest import NewestStream, newest_stream
from anabranch.service.queries.preview_process import LENGTH_BYTES, PreviewJob, frame
from anabranch.service.refusals import TooMany
from anabranch.site_work import SiteAtWork
from anabranch.sql import Language
from anabranch.stream.plain import to_plain

DEFAULT_ITEMS, MOST_ITEMS = 200, 2_000
_AT_ONCE = 2
_START_SECONDS = 60.0
"""A fresh process has so long to load what it needs."""
_SECONDS = 10.0
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Preview:
    """What a query answers over the newest items."""

    answers: list[str]
    more: bool
    items: dict[str, int]
    dead_letters: list[dict[str, Any]]
    notes: list[str]
    ms: int


class Previews:
    """Tries queries out; any thread may ask."""

    def __init__(self, work: SiteAtWork, evolutions: StreamEvolutions) -> None:
        self._work = work
        self._evolutions = evolutions
        self._turns = BoundedSemaphore(_AT_ONCE)
        self._lock = Lock()
        self._idle: list[_PreviewProcess] = []
        self._warmed = self._closed = False

    def warm(self) -> None:
        """Start a process for a query that is likely to be tried soon."""
        with self._lock:
            if not self._warmed and not self._closed:
                self._warmed = True
                self._idle.append(_PreviewProcess())

    def close(self) -> None:
        """End the processes that wait."""
        with self._lock:
            idle, self._idle, self._closed = self._idle, [], True
        for each in idle:
            each.end()

    @contextmanager
    def _process(self) -> Iterator[_PreviewProcess]:
        """A process that is ready for a job; one that fails is ended."""
        with self._lock:
            self._warmed = True
            found = next((each for each in self._idle if each.is_alive), None)
            self._idle = [each for each in self._idle if each is not found and each.is_alive]
        process = found or _PreviewProcess()
        try:
            yield process
        except BaseException:
            process.end()
            raise
        with self._lock:
            if not self._closed:
                self._idle.append(process)
                return
        process.end()

    def preview(self, checked: CheckedQuery, language: Language | None, items: int) -> Preview:
        """Answer a query over the newest items; `Unsupported` where that cannot be done, or takes too long."""
        if not self._turns.acquire(blocking=False):
            raise TooMany("two queries are being tried already", hint="try again in some seconds")
        try:
            with TemporaryDirectory(prefix="anabranch-preview-") as folder:
                return self._preview(checked, language, items, Path(folder))
        finally:
            self._turns.release()

    def _preview(self, checked: CheckedQuery, language: Language | None, items: int, folder: Path) -> Preview:
        begun, site = monotonic(), self._work.site
        streams = [
            newest_stream(self._evolutions.course(site.streams[name]), items, folder / str(number))
            for number, name in enumerate(checked.query.streams)
        ]
        sources = tuple(each.source for each in streams)
        functions, limits = dict(self._work.functions), site.settings.limits
        documents = {name: (str(each.at), each.root, each.item) for name, each in site.documents.items()}
        job = PreviewJob(checked.text, language, sources, documents, functions, limits, site.policy)
        with self._process() as process:
            found = process.ask(json.dumps(to_plain(job)).encode())
        if found is None:
            raise _refused(
                checked, f"the query has not been answered after {_SECONDS:g} seconds", "ask for fewer items"
            )
        if "refused" in found:
            raise _refused(checked, found["refused"], found["hint"], found["code"])
        cut = [{"stream": each.stream, "reason": each.reason, "code": None, "raw": each.raw} for each in _bad(streams)]
        return Preview(
            found["answers"],
            found["more"],
            found["items"],
            [*cut, *found["dead_letters"]],
            [*_notes(checked, found), *(note for each in streams for note in each.notes)],
            round((monotonic() - begun) * 1_000),
        )


def _bad(streams: list[NewestStream]) -> Iterator[Any]:
    return (letter for each in streams for letter in each.letters)


def _notes(checked: CheckedQuery, found: dict[str, Any]) -> Iterator[str]:
    if found["ended"]:
        yield f"it ended there: {found['ended']}"
    standing = checked.query.standing
    windows = [each.window for each in standing.fors] if standing and standing.kind in ("windows", "step join") else []
    if any(isinstance(each, ast.TimeWindow | ast.SessionWindow) for each in windows):
        yield "the last windows were closed at the end of these items, and a run waits until the stream is beyond them"
    if any(isinstance(each, ast.CountWindow) for each in windows):
        yield "items at the end that do not fill a window are left out, as a run would wait for more"
    if checked.answer == "display":
        yield "this is what it shows behind the last of these items"


def _refused(checked: CheckedQuery, message: str, hint: str | None, code: str | None = None) -> Unsupported:
    return Unsupported(message, text=checked.text, span=Span(0, len(checked.text)), hint=hint, code=code)


class _PreviewProcess:
    """A process that tries queries out, one at a time."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "anabranch.service.queries.preview_process"]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
        self._is_fresh = True

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, job: bytes) -> dict[str, Any] | None:
        """The answer to a job; None where it did not come in time, and then the process is ended."""
        assert self._process.stdin is not None
        try:
            if self._is_fresh:
                self._message(_START_SECONDS)
                self._is_fresh = False
            self._process.stdin.write(frame(job))
            self._process.stdin.flush()
            found: dict[str, Any] = json.loads(self._message(_SECONDS))
            return found
        except (EOFError, BrokenPipeError):
            self.end()
            return {"refused": "the process that tried the query has ended", "hint": "try it again", "code": None}
        except (OSError, TimeoutError):
            self.end()
            return None

    def _message(self, seconds: float) -> bytes:
        """What the process says next, within some seconds."""
        until = monotonic() + seconds
        return self._read(int.from_bytes(self._read(LENGTH_BYTES, until), "big"), until)

    def _read(self, count: int, until: float) -> bytes:
        assert self._process.stdout is not None
        descriptor, found = self._process.stdout.fileno(), b""
        while len(found) < count:
            ready, _, _ = select([descriptor], [], [], max(0.0, until - monotonic()))
            if not ready:
                raise TimeoutError
            data = os.read(descriptor, min(_CHUNK, count - len(found)))
            if not data:
                raise EOFError
            found += data
        return found

    def end(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._process.wait()
        for each in (self._process.stdin, self._process.stdout):
            if each is not None:
                each.close()
