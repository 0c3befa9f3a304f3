"""What runs of sites and of networks have in common: watched files, signals, and the log.

Every event is one line of JSON with its time in the log, which is standard error unless a file is named; on a terminal
a display replaces the lines of epochs.
The log says how a run ended: `stopped`, with the reason, or `failed`, with the error that it ended with.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, current_thread, main_thread
from time import monotonic
from typing import IO, Any

from rich.console import Console
from rich.status import Status
from rich.text import Text

from anabranch.errors import AnabranchError, UsageError
from anabranch.spark.epoch.waits import Wait
from anabranch.spark.plan.wanted import Epoch
from anabranch.storage import Location, Stat, Where
from anabranch.visible import visible, visible_json

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_CHECK_SECONDS = 1.0
SETTLED_SECONDS = 0.3
"""For how long a file that has changed must stay as it is before it is read."""
_ASKING_SECONDS = 5.0
"""How often an object store is asked whether a file has changed."""
_LASTING_SECONDS = 2.0
"""Seconds between two checks of what a run waits for, and after which a wait is reported."""


class Watch:
    """Detects changes of files: cheap to ask, and exact once they are read again.

    A change is one when it has been there for a moment: a file that is being written may be a good one that lacks its
    end, and whatever that would have declared would be taken for removed.
    Files are watched from before they are read, so that nothing is missed that is written meanwhile.
    """

    def __init__(self, files: Iterable[Where]) -> None:
        self.follow(files)

    def follow(self, files: Iterable[Where]) -> None:
        """Watch these files, as they are now."""
        self._files = [Location.of(file) for file in files]
        self._asked, self._objects = 0.0, dict[Location, Stat | None]()
        self._looks = self._seen = self._look()
        self._since = monotonic()

    def also(self, files: Iterable[Where]) -> None:
        """Watch these files, which were found by reading those that are watched; these stay as they were before."""
        before = dict(zip(self._files, zip(self._looks, self._seen, strict=True), strict=True))
        self._files, self._asked = [Location.of(file) for file in files], 0.0
        looks = [(before.get(file), look) for file, look in zip(self._files, self._look(), strict=True)]
        self._looks = [known[0] if known else look for known, look in looks]
        self._seen = [known[1] if known else look for known, look in looks]

    def touched(self) -> bool:
        """Whether something has changed, and nothing has since then for a moment."""
        found = self._look()
        if found != self._seen:
            self._seen, self._since = found, monotonic()
        return found != self._looks and monotonic() - self._since >= SETTLED_SECONDS

    def _look(self) -> list[Stat | None]:
        if monotonic() - self._asked > _ASKING_SECONDS:
            self._asked = monotonic()
            self._objects = {file: _look(file) for file in self._files if file.path is None}
        return [self._objects[file] if file.path is None else _look(file) for file in self._files]


def _look(file: Location) -> Stat | None:
    try:
        return file.stat()
    except OSError:
        return None


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, list[str]]:
    """The names that were added, changed and removed."""
    return {
        "added": [name for name in after if name not in before],
        "changed": [name for name in after if name in before and before[name] != after[name]],
        "removed": [name for name in before if name not in after],
    }


class Signals(list[str]):
    """The names of the received signals, in order."""

    @property
    def hurry(self) -> bool:
        """Whether a second signal asks not to wait for the epoch at work."""
        return len(self) > 1


@contextmanager
def signals(stop: Event) -> Iterator[Signals]:
    """Let signals stop the run at the end of its epoch; only the main thread receives them."""
    come = Signals()
    if current_thread() is not main_thread():
        yield come
        return

    def take(number: int, _: object) -> None:
        come.append(signal.Signals(number).name)
        stop.set()

    before = {each: signal.signal(each, take) for each in _SIGNALS}
    try:
        yield come
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def reason_of(come: Signals, stop: Event) -> str:
    """Why a run has stopped: the first signal, a request, or the end of the input."""
    return come[0] if come else "asked" if stop.is_set() else "end"


class Waits:
    """Logs what a run waits for: each wait once, when it has lasted for a while.

    A writer may be within a line at any time, so a first check reports nothing.
    """

    def __init__(self, log: Log, look: Callable[[], Iterable[Wait]]) -> None:
        self._log = log
        self._look = look
        self._since: dict[Wait, float] = {}
        self._told: set[Wait] = set()
        self._next = monotonic()

    def due(self) -> bool:
        """Whether it is time for another check."""
        return monotonic() >= self._next

    def tell(self, *, at_once: bool = False) -> None:
        """Check, and log the waits that have lasted, or `at_once` all of them."""
        now = monotonic()
        self._next = now + _CHECK_SECONDS
        self._since = {each: self._since.get(each, now) for each in self._look()}
        for each, since in self._since.items():
            if each not in self._told and (at_once or now - since >= _LASTING_SECONDS):
                self._told.add(each)
                self._log.event("waiting", stream=each.stream, message=each.message, hint=each.hint)


class Log:
    """Lines of JSON, and on a terminal a display beside them."""

    def __init__(self, lines: IO[str] | None, status: Status | None) -> None:
        self._lines = lines
        self._status = status
        self._items = self._dead = 0
        self.followers: list[Callable[[Mapping[str, Any]], None]] = []
        """Who else hears of events, with their times, besides epochs; they are called on any thread."""

    @staticmethod
    @contextmanager
    def opened(file: Path | None) -> Iterator[Log]:
        """A log to a file, or to standard error."""
        console = Console(stderr=True)
        with ExitStack() as held:
            status = held.enter_context(console.status("starting")) if console.is_terminal else None
            if file is not None:
                try:
                    lines: IO[str] | None = held.enter_context(file.open("a", encoding="utf-8", buffering=1))
                except OSError as error:
                    raise UsageError(f"cannot write '{file}': {error.strerror}") from None
            else:
                lines = None if status else sys.stderr
            log = Log(lines, status)
            with log._ending():
                yield log

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """Log the end of a run: an error, which is raised on, or a signal that comes before the run is at work."""
        try:
            yield
        except KeyboardInterrupt as error:
            self.event("stopped", reason=str(error) or "SIGINT")
        except AnabranchError as error:
            self.event("failed", message=error.message, code=error.code, hint=error.hint)
            raise
        except Exception as error:
            self.event("failed", message=f"{type(error).__name__}: {error}", code=None, hint=None)
            raise

    def _write(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        timed = {"time": now, **fields}
        if self._lines is not None:
            print(visible_json(timed) + "\n", end="", file=self._lines, flush=True)  # flushed: other threads write, too
        return timed

    def event(self, kind: str, **fields: Any) -> None:
        """Log an event."""
        written = self._write({"event": kind, **fields})
        for follower in self.followers:
            follower(written)
        if self._status is not None:
            shown = ", ".join(f"{key} {value}" for key, value in fields.items())
            self._status.console.print(visible(f"{kind}: {shown}"), markup=False, highlight=False)

    def request(self, **fields: Any) -> None:
        """Log a request to the service, which no display shows."""
        self._write({"event": "request", **fields})

    def epoch(self, epoch: Epoch, peer: str | None = None) -> None:
        """Log a committed epoch, in a network with its peer."""
        metrics = epoch.metrics
        self._write({"event": "epoch", **({} if peer is None else {"peer": peer}), **asdict(metrics)})
        self._items += metrics.items
        self._dead += metrics.dead_letters
        whose = "" if peer is None else f" of {peer}"
        self.say(f"epoch {metrics.epoch}{whose}: {self._items:,} items, {self._dead:,} dead letters in this run")

    def say(self, text: str) -> None:
        """Show a message on the display, if there is one."""
        if self._status is not None:
            self._status.update(Text(visible(text)))
