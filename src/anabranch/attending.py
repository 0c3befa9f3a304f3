"""What runs of sites and of networks have in common: files that are watched, signals, and the log.

Everything that happens is one line of JSON in the log, which is standard error unless a file is named; on a terminal a
display takes the place of the epochs' lines.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event, current_thread, main_thread
from typing import IO, Any

from rich.console import Console
from rich.status import Status
from rich.text import Text

from anabranch.errors import UsageError
from anabranch.spark.wanted import Epoch
from anabranch.visible import visible, visible_json

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Watch:
    """Sees when files were touched: cheap to ask, and right to the byte once they are read again."""

    def __init__(self, files: Iterable[Path]) -> None:
        self.follow(files)

    def follow(self, files: Iterable[Path]) -> None:
        """Watch these, as they are now."""
        self._files = list(files)
        self._looks = self._look()

    def touched(self) -> bool:
        return self._look() != self._looks

    def _look(self) -> list[tuple[int, int, int] | None]:
        return [_look(file) for file in self._files]


def _look(file: Path) -> tuple[int, int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size, found.st_ino)


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, list[str]]:
    """The names of what was added, changed and removed."""
    return {
        "added": [name for name in after if name not in before],
        "changed": [name for name in after if name in before and before[name] != after[name]],
        "removed": [name for name in before if name not in after],
    }


@contextmanager
def signals(stop: Event) -> Iterator[None]:
    """Let signals stop the run at the end of its epoch; only the main thread can listen to them."""
    if current_thread() is not main_thread():
        yield
        return
    before = {each: signal.signal(each, lambda *_: stop.set()) for each in _SIGNALS}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


class Log:
    """Lines of JSON, and on a terminal a display beside them."""

    def __init__(self, lines: IO[str] | None, status: Status | None) -> None:
        self._lines = lines
        self._status = status
        self._items = self._dead = 0

    @staticmethod
    @contextmanager
    def opened(file: Path | None) -> Iterator[Log]:
        """A log into a file, or on standard error."""
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
            yield Log(lines, status)

    def event(self, kind: str, **fields: Any) -> None:
        """Something that happens now and then."""
        if self._lines is not None:
            print(visible_json({"event": kind, **fields}), file=self._lines, flush=True)
        if self._status is not None:
            shown = ", ".join(f"{key} {value}" for key, value in fields.items())
            self._status.console.print(visible(f"{kind}: {shown}"), markup=False, highlight=False)

    def epoch(self, epoch: Epoch, peer: str | None = None) -> None:
        """An epoch was committed, in a network by a peer."""
        metrics = epoch.metrics
        if self._lines is not None:
            print(metrics.to_json(peer), file=self._lines, flush=True)
        self._items += metrics.items
        self._dead += metrics.dead_letters
        whose = "" if peer is None else f" of {peer}"
        self.say(f"epoch {metrics.epoch}{whose}: {self._items:,} items, {self._dead:,} dead letters in this run")

    def say(self, text: str) -> None:
        """Show what is going on, where somebody looks."""
        if self._status is not None:
            self._status.update(Text(visible(text)))
