"""`anabranch run`: a site at work until it is stopped, and `anabranch answer`: what it has answered.

A run watches its site: what changes there takes effect with the next epoch, without a restart.
A new version that is wrong in any way is reported and the old one stays, whole.
SIGTERM and SIGINT let the epoch at work finish; kill -9 costs nothing but its repetition.

Everything that happens is one line of JSON in the log, which is standard error unless the site names a file; on a
terminal a display takes the place of the epochs' lines.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, current_thread, main_thread
from typing import IO, Any, TextIO

from rich.console import Console
from rich.status import Status

from anabranch.engine import Inputs, prepare
from anabranch.engine.checking import Checking
from anabranch.engine.timelines import line
from anabranch.errors import AnabranchError, UsageError
from anabranch.language import print_query
from anabranch.site import Site, read_site
from anabranch.spark.answers import AnswerLog
from anabranch.spark.checkpoint import Checkpoint
from anabranch.spark.epochs import Trunk
from anabranch.spark.plan import Subscription
from anabranch.spark.retention import Keep
from anabranch.spark.session import local_session
from anabranch.spark.sinks import Console as ConsoleSink
from anabranch.spark.sinks import Parquet, Sink
from anabranch.spark.wanted import Epoch, Listener, Settings, Wanted

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, slots=True)
class Outputs:
    """Where things go by the word of whoever started the run; files come before those that the site names."""

    dead_letters: Path | None
    late_items: Path | None
    console: TextIO | None
    """For console sinks; None is standard output as it is when they print."""


def run(
    file: Path,
    *,
    once: bool = False,
    dead_letters: Path | None = None,
    late_items: Path | None = None,
    stop: Event | None = None,
) -> None:
    """Run a site: to the end of what is there (`once`), or until a signal comes or `stop` is set."""
    site = read_site(file)
    # On a terminal the display takes what is printed and stays below it; a file or a pipe must not come its way.
    outputs = Outputs(dead_letters, late_items, None if sys.stdout.isatty() else sys.stdout)
    wanted = _wanted(site, outputs)
    Checkpoint.make(site.checkpoint, site.owner)
    stop = stop or Event()
    with ExitStack() as held:
        log = held.enter_context(_Log.opened(site.log))
        held.enter_context(_signals(stop))
        log.say("starting Spark")
        listener = Listener(log.epoch, lambda message: log.event("warning", message=message))
        settings = Settings(
            site.trigger_ms, Keep.parse(site.keep), shards=site.shards, sharing=site.sharing, accents=site.accents
        )
        trunk = held.enter_context(Trunk(local_session(), site.checkpoint, settings, listener=listener))
        trunk.want(wanted)
        trunk.start(once=once)
        log.event("started", run=trunk.run, epoch=trunk.last + 1, subscriptions=len(site.subscriptions))
        watch = _Watch(file, site)
        while trunk.active and not stop.is_set():
            trunk.wait(lambda: stop.is_set() or watch.touched())
            if not stop.is_set() and watch.touched():
                site = _reload(watch, trunk, site, outputs, log)
        trunk.stop()
        trunk.raise_failure()
        log.event("stopped", epoch=trunk.last)


def committed(file: Path, name: str, *, timeline: bool = False) -> Iterator[str]:
    """The committed answer of one subscription of a site, whole and in order, in pieces.

    With `timeline`, what its display has shown, one line of JSON for each moment that changed it.
    """
    site = read_site(file)
    wanted = site.subscriptions.get(name)
    if (site.checkpoint / "format.json").exists():
        log = AnswerLog(Checkpoint.open(site.checkpoint, site.owner))
        found = log.subscription(name)
        if found is not None:
            answer = log.answer(found)
            if timeline:
                return map(line, log.moments(found))
            if not answer.whole and not found.shows:
                print(f"anabranch: note: the beginning of '{name}' is no longer kept", file=sys.stderr)
            return iter(answer)
    if wanted is None:
        raise UsageError(f"'{file}' has no subscription '{name}', and none has run")
    prepared = prepare(name, wanted.text, _inputs(site), "spark", label=str(wanted.file))
    nobody = Subscription(-1, name, print_query(prepared.checked.query), 0, shows=prepared.updates)
    return iter(() if timeline else AnswerLog(Checkpoint(site.checkpoint)).answer(nobody))


def _inputs(site: Site) -> Inputs:
    return Inputs(tuple(site.streams.values()))


def _wanted(site: Site, outputs: Outputs) -> Wanted:
    """What a site asks of a trunk; raises for a query that is wrong, or cannot be answered without an end."""
    Keep.parse(site.keep)
    checking = Checking(_inputs(site))
    texts: dict[str, str] = {}
    sinks: dict[str, Sink] = {}
    for name, each in site.subscriptions.items():
        table = isinstance(each.sink, Parquet)
        texts[name] = checking.printed(name, each.text, label=str(each.file), table=table)
        if each.sink is not None:
            sinks[name] = ConsoleSink(outputs.console) if isinstance(each.sink, ConsoleSink) else each.sink
    return Wanted(
        site.streams,
        texts,
        sinks,
        outputs.dead_letters or site.dead_letters,
        outputs.late_items or site.late_items,
        site.epoch_bytes,
        site.epoch_files,
        policies={name: each.policy for name, each in site.subscriptions.items()},
    )


# --- changes ----------------------------------------------------------------------------------------------


class _Watch:
    """Sees when a site's files were touched: cheap to ask, and right to the byte once the site is read again."""

    def __init__(self, file: Path, site: Site) -> None:
        self.file = file
        self.follow(site)

    def follow(self, site: Site) -> None:
        """Watch the files of this site, as they are now."""
        self._files = [self.file, *(each.file for each in site.subscriptions.values())]
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


def _reload(watch: _Watch, trunk: Trunk, site: Site, outputs: Outputs, log: _Log) -> Site:
    """Take the new version of a site, or keep the old one and say why; gives the one that holds."""
    watch.follow(site)  # before reading: what is written from here on is another change
    try:
        fresh = read_site(watch.file)
        if fresh == site:
            return site
        trunk.want(_wanted(fresh, outputs))
    except AnabranchError as error:
        log.event("refused", message=str(error))
        return site
    watch.follow(fresh)
    for kind, names in _changes(site.streams, fresh.streams).items():
        for name in names:
            log.event(f"stream {kind}", name=name, epoch=trunk.last + 1)
    for kind, names in _changes(site.subscriptions, fresh.subscriptions).items():
        for name in names:
            log.event(f"subscription {kind}", name=name, epoch=trunk.last + 1)
    fixed = [
        key
        for key in ("checkpoint", "trigger_ms", "shards", "sharing", "accents", "keep", "log")
        if getattr(site, key) != getattr(fresh, key)
    ]
    if fixed:
        log.event("warning", message=f"'{', '.join(fixed)}' takes effect with the next start")
    return fresh


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, list[str]]:
    return {
        "added": [name for name in after if name not in before],
        "changed": [name for name in after if name in before and before[name] != after[name]],
        "removed": [name for name in before if name not in after],
    }


@contextmanager
def _signals(stop: Event) -> Iterator[None]:
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


# --- the log ----------------------------------------------------------------------------------------------


class _Log:
    """Lines of JSON, and on a terminal a display beside them."""

    def __init__(self, lines: IO[str] | None, status: Status | None) -> None:
        self._lines = lines
        self._status = status
        self._items = self._dead = 0

    @staticmethod
    @contextmanager
    def opened(file: Path | None) -> Iterator[_Log]:
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
            yield _Log(lines, status)

    def event(self, kind: str, **fields: Any) -> None:
        """Something that happens now and then."""
        if self._lines is not None:
            print(json.dumps({"event": kind, **fields}, ensure_ascii=False), file=self._lines, flush=True)
        if self._status is not None:
            shown = ", ".join(f"{key} {value}" for key, value in fields.items())
            self._status.console.print(f"{kind}: {shown}", markup=False, highlight=False)

    def epoch(self, epoch: Epoch) -> None:
        """An epoch was committed."""
        metrics = epoch.metrics
        if self._lines is not None:
            print(metrics.to_json(), file=self._lines, flush=True)
        self._items += metrics.items
        self._dead += metrics.dead_letters
        self.say(f"epoch {metrics.epoch}: {self._items:,} items, {self._dead:,} dead letters in this run")

    def say(self, text: str) -> None:
        """Show what is going on, where somebody looks."""
        if self._status is not None:
            self._status.update(text)
