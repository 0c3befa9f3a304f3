"""The workload of a site at work: what its file declares, and what was registered through the service.

Both are subscriptions by name, described by the same tables (`site.py`).
The file is the user's: what it declares changes when it is read again, and is read-only for the service.
What is registered is durable in the checkpoint before anybody is told so (`spark/checkpoint/registry.py`), and is there
again with the next run.

All changes take turns here, whoever makes them, and take effect with the next epoch.
A change is refused as a whole: of a file that is wrong the version before stays, and so does it where a stream is gone
that a registered subscription reads.
Only at a start nobody can be asked: a registered query that the file no longer allows is kept, is told, and waits.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path, PurePath
from threading import RLock
from typing import Any, Literal, TextIO, TypeAlias

from anabranch.endpoint.opening import TrunkEndpoint
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import Checking
from anabranch.engine.replaying import replayed
from anabranch.errors import AnabranchError, DiskFull, StateError, UsageError, did_you_mean
from anabranch.law.calls import ImportedFunction
from anabranch.run_control import Log, Watch, changes
from anabranch.site import SiteDescription, SiteSubscription, printed_of, read_site
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.registry import RegisteredTable, Registry
from anabranch.spark.epoch.trunk import Trunk
from anabranch.spark.plan.wanted import Workload
from anabranch.spark.sinks import Console as ConsoleSink
from anabranch.spark.sinks import Files, Parquet, Sink
from anabranch.storage import Where
from anabranch.stream.files import check_name
from anabranch.stream.reading.source import Source

Functions: TypeAlias = Mapping[str, ImportedFunction]
Origin: TypeAlias = Literal["site", "service"]
RunState: TypeAlias = Literal["starting", "ready", "stopping", "failed"]


class NameTaken(UsageError):
    """A subscription of this name is there already."""


class ReadOnly(UsageError):
    """A subscription of the site file, which only the file changes."""


class NoSubscription(UsageError):
    """There is no subscription of this name."""


class NotReady(StateError):
    """The run has not begun yet, or ends."""


@dataclass(frozen=True, slots=True)
class Outputs:
    """The outputs named on the command line; its files override those of the site."""

    dead_letters: Where | None
    late_items: Where | None
    console: TextIO | None
    """For console sinks; None is standard output at the time of printing."""


@dataclass(frozen=True, slots=True)
class SubscriptionEntry:
    """A subscription of a site at work."""

    name: str
    declared: SiteSubscription
    origin: Origin
    printed: str
    """The query as checked and printed, which the trunk has; empty where it is refused."""
    streams: Mapping[str, Source] = field(default_factory=dict)
    """The streams that it reads by itself, from their beginnings."""
    warnings: tuple[str, ...] = ()
    """What of its state grows."""
    registered: str | None = None
    """When it was registered, where that was through the service."""
    refusal: AnabranchError | None = None
    """Why it waits: the site no longer has what it reads."""


class SiteAtWork:
    """The subscriptions of a run; any thread may ask, and changes take turns."""

    def __init__(self, file: Path, site: SiteDescription, outputs: Outputs, log: Log) -> None:
        """Check all that the file declares."""
        self.file = file
        self.site = site
        """The version of the file that is in force."""
        self.functions: Functions = site.functions
        """Those of the start."""
        self.state: RunState = "starting"
        self.log = log
        self.trunk: Trunk | None = None
        """None before the trunk has begun."""
        self.checkpoint = Checkpoint.at(site.checkpoint)
        self._outputs = outputs
        self._change = RLock()
        self._checking = Checking(self._inputs(site))
        site.check_files(outputs.dead_letters, outputs.late_items)
        self.entries: Mapping[str, SubscriptionEntry] = self._declared(site, self._checking, {})
        """By name: all subscriptions; never changed in place."""
        self._tell_growth(self.entries.values())

    # --- the start ------------------------------------------------------------------------------------------

    def restore(self) -> None:
        """Read what was registered in earlier runs; the trunk keeps others out by now."""
        with self._change:
            self._registry = Registry(self.checkpoint)
            found: dict[str, SubscriptionEntry] = {}
            for name, each in self._registry.tables.items():
                if name in self.entries:
                    message = f"'{name}' was registered through the service, and '{self.file.name}' declares it as well"
                    raise UsageError(message, hint="rename one of them in the file")
                found[name] = entry = self._registered(name, each, self._checking)
                if entry.refusal is not None:
                    self.log.event("warning", message=f"the subscription '{name}' waits: {entry.refusal.message}")
            self.entries = {**self.entries, **found}

    def begin(self, trunk: Trunk, endpoint: TrunkEndpoint) -> None:
        """Give the trunk all of it."""
        with self._change:
            wanted = self._workload(self.site, self.entries)
            with endpoint.opened(wanted.streams.values()):
                trunk.want(wanted)
            self.trunk, self._endpoint = trunk, endpoint

    def _inputs(self, site: SiteDescription) -> Inputs:
        return Inputs(tuple(site.streams.values()), site.documents, self.functions)

    @property
    def inputs(self) -> Inputs:
        """What queries may read."""
        return self._inputs(self.site)

    # --- entries --------------------------------------------------------------------------------------------

    def _declared(
        self, site: SiteDescription, checking: Checking, before: Mapping[str, SubscriptionEntry]
    ) -> dict[str, SubscriptionEntry]:
        """What a file declares; raises for a query that is wrong, or has to wait for the end.

        What was checked `before` against the same inputs is not checked again.
        """
        found: dict[str, SubscriptionEntry] = {}
        for name, each in site.subscriptions.items():
            known = before.get(name)
            same = known is not None and known.origin == "site" and known.declared == each
            found[name] = known if known and same else _checked(name, each, "site", site, checking)
        return found

    def _registered(self, name: str, given: RegisteredTable, checking: Checking) -> SubscriptionEntry:
        """A subscription that was registered, if need be with the reason why it is refused now."""
        try:
            return self._accepted(name, given, self.site, checking)
        except AnabranchError as error:
            text, policy = str(given.table.get("text", "")), self.site.policy
            nothing = SiteSubscription(text, None, None, policy)
            return SubscriptionEntry(name, nothing, "service", "", registered=given.at, refusal=error)

    def _accepted(
        self, name: str, given: RegisteredTable, site: SiteDescription, checking: Checking
    ) -> SubscriptionEntry:
        """What a table declares beside those of a file; its sink writes below the folder of the site."""
        _check_sink(given.table)
        try:
            declared = site.subscription(name, given.table)
        except UsageError as error:
            where = f"'{site.file}', [subscriptions.{name}]: "  # a place that there is not
            raise UsageError(error.message.removeprefix(where), hint=error.hint) from None
        return replace(_checked(name, declared, "service", site, checking), registered=given.at)

    def _tell_growth(self, entries: Iterable[SubscriptionEntry]) -> None:
        for entry in entries:
            for message in entry.warnings:
                self.log.event("warning", message=message)

    def _workload(self, site: SiteDescription, entries: Mapping[str, SubscriptionEntry]) -> Workload:
        going = {name: each for name, each in entries.items() if each.refusal is None}
        streams = dict(site.streams)
        for each in going.values():
            streams |= each.streams
        return Workload(
            streams,
            {name: each.printed for name, each in going.items()},
            {name: self._sink(each.declared.sink) for name, each in going.items() if each.declared.sink is not None},
            self._outputs.dead_letters or site.dead_letters,
            self._outputs.late_items or site.late_items,
            site.settings.epoch_bytes,
            site.settings.epoch_files,
            documents=site.documents,
            policies={name: each.declared.policy for name, each in going.items()},
            caps={name: each.declared.caps for name, each in going.items()},
        )

    def _sink(self, sink: Sink) -> Sink:
        return ConsoleSink(self._outputs.console) if isinstance(sink, ConsoleSink) else sink

    # --- changes through the service ------------------------------------------------------------------------

    def register(self, tables: Mapping[str, Mapping[str, Any]]) -> list[SubscriptionEntry]:
        """Register subscriptions, by their tables, all or none; returns when that is durable."""
        with self._change:
            for name in tables:
                check_name(name, "a subscription")
                if name in self.entries:
                    raise NameTaken(f"there is a subscription '{name}' already", hint="choose another name")
            return self._put(tables)

    def change(self, name: str, table: Mapping[str, Any]) -> SubscriptionEntry:
        """Give a registered subscription another table; another query begins another answer."""
        with self._change:
            self._own(name)
            return self._put({name: table})[0]

    def cancel(self, name: str) -> None:
        """End a registered subscription; its answer so far stays."""
        with self._change:
            former = self._own(name)
            self.ready  # noqa: B018  # raises before the run has begun
            self._registry.change({name: None})
            self._apply({each: entry for each, entry in self.entries.items() if each != name}, [former], [])
            self.log.event("subscription removed", name=name, epoch=self.ready.last + 1)

    def _own(self, name: str) -> SubscriptionEntry:
        """A subscription that the service may change."""
        found = self.entries.get(name)
        if found is None:
            raise NoSubscription(f"there is no subscription '{name}'", hint=did_you_mean(name, self.entries))
        if found.origin == "site":
            raise ReadOnly(f"'{name}' is declared in '{self.file.name}'", hint="change it there")
        return found

    def _put(self, tables: Mapping[str, Mapping[str, Any]]) -> list[SubscriptionEntry]:
        self.ready  # noqa: B018  # raises before the run has begun
        now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        given = {name: RegisteredTable(table, now) for name, table in tables.items()}
        fresh = [self._accepted(name, each, self.site, self._checking) for name, each in given.items()]
        former = [each for name in tables if (each := self.entries.get(name)) is not None]
        entries = {**self.entries, **{each.name: each for each in fresh}}
        if any(map(_needs_pause, fresh)):
            self._try(entries, former, fresh, given)
        else:
            self._registry.change(given)
            self._apply(entries, former, fresh)
        known = {each.name for each in former}
        for each in fresh[:_LOGGED]:
            kind = "changed" if each.name in known else "added"
            self.log.event(f"subscription {kind}", name=each.name, epoch=self.ready.last + 1)
        if len(fresh) > _LOGGED:
            self.log.event("subscriptions added", count=len(fresh), epoch=self.ready.last + 1)
        return fresh

    def _try(
        self,
        entries: Mapping[str, SubscriptionEntry],
        former: Collection[SubscriptionEntry],
        fresh: Collection[SubscriptionEntry],
        given: Mapping[str, RegisteredTable],
    ) -> None:
        """Register subscriptions with sinks or streams of their own, once the trunk has taken these.

        What it cannot take must not be registered: no later run would start.
        """
        self._check_places(fresh)
        before = self.entries
        try:
            self._apply(entries, former, fresh)
        except DiskFull:
            raise
        except StateError as error:  # a sink that somebody else has written
            raise UsageError(error.message, hint=error.hint) from None
        try:
            self._registry.change(given)
        except BaseException:
            self._apply(before, fresh, former)
            raise

    def _check_places(self, entries: Iterable[SubscriptionEntry]) -> None:
        """Refuse sinks that cannot be written, where a run would end, and so would the next; and links elsewhere."""
        folder = self.file.absolute().parent.resolve()
        for entry in entries:
            sink = entry.declared.sink
            path = sink.at.path if isinstance(sink, Files | Parquet) else None
            if path is None:
                continue
            try:
                if not path.resolve().is_relative_to(folder):
                    raise UsageError(f"the sink's path '{path}' leaves the folder of the site")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.exists()
            except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
                reason = getattr(error, "strerror", None) or str(error)
                raise UsageError(f"the sink's path '{path}' cannot be written: {reason}") from None

    def _apply(
        self,
        entries: Mapping[str, SubscriptionEntry],
        former: Collection[SubscriptionEntry],
        fresh: Collection[SubscriptionEntry],
    ) -> None:
        """Have other entries from the next epoch on."""
        if any(map(_needs_pause, (*former, *fresh))):
            self.ready.want(self._workload(self.site, entries))
        else:
            self.ready.want_more(
                {each.name: each.printed for each in fresh},
                policies={each.name: each.declared.policy for each in fresh},
                caps={each.name: each.declared.caps for each in fresh},
                without={each.name for each in former},
            )
        self.entries = entries

    @property
    def ready(self) -> Trunk:
        """The trunk, once it has begun."""
        if self.trunk is None or self.state != "ready":
            raise NotReady(f"the run is {self.state}", hint="try again in some seconds")
        return self.trunk

    @property
    def addresses(self) -> Mapping[str, str]:
        """By stream that is pushed: where programs push it."""
        return {} if self.trunk is None else self._endpoint.streams

    # --- changes of the file --------------------------------------------------------------------------------

    @property
    def files(self) -> list[Where]:
        """The files that are watched."""
        return [self.file, *(each.file for each in self.site.subscriptions.values() if each.file is not None)]

    def reload(self, watch: Watch) -> None:
        """Apply the new version of the file, or keep the old one and say why; functions stay those of the start."""
        watch.follow(self.files)  # before reading: later writes are another change
        with self._change:
            try:
                fresh = read_site(self.file)
                if fresh == self.site:
                    return
                before, addresses = self.site, self._endpoint.streams
                self.take(fresh)
            except AnabranchError as error:
                self.log.event("refused", message=str(error))
                return
            watch.also(self.files)
            self._tell_changes(before, fresh, addresses)

    def take(self, fresh: SiteDescription) -> None:
        """Let another version of the file be in force, if it can."""
        fresh.check_files(self._outputs.dead_letters, self._outputs.late_items)
        assert self.trunk is not None, "files are watched once the trunk has begun"
        same = (self.site.streams, self.site.documents) == (fresh.streams, fresh.documents)
        checking = self._checking if same else Checking(self._inputs(fresh))
        entries = self._declared(fresh, checking, self.entries if same else {})
        for name, entry in self.entries.items():
            if entry.origin == "service":
                if name in entries:
                    raise NameTaken(f"'{name}' was registered through the service", hint="choose another name")
                entries[name] = entry if same else self._kept(entry, fresh, checking)
        wanted = self._workload(fresh, entries)
        with self._endpoint.opened(wanted.streams.values()):
            self.trunk.want(wanted)
        told = {name for name, each in fresh.subscriptions.items() if self.site.subscriptions.get(name) == each}
        self._tell_growth(each for name, each in entries.items() if each.origin == "site" and name not in told)
        self.site, self.entries, self._checking = fresh, entries, checking

    def _kept(self, entry: SubscriptionEntry, fresh: SiteDescription, checking: Checking) -> SubscriptionEntry:
        """A registered subscription over the streams of another version; one that waits may begin with it."""
        try:
            return self._accepted(entry.name, self._registry.tables[entry.name], fresh, checking)
        except AnabranchError as error:
            if entry.refusal is not None:
                return replace(entry, refusal=error)
            hint = "cancel it first, or leave what it reads in the file"
            message = f"'{entry.name}' was registered through the service and would be refused: {error.message}"
            raise UsageError(message, hint=hint) from None

    def _tell_changes(self, before: SiteDescription, fresh: SiteDescription, addresses: Mapping[str, str]) -> None:
        assert self.trunk is not None, "files are watched once the trunk has begun"
        described: list[tuple[str, Callable[[SiteDescription], Mapping[str, Any]]]] = [
            ("stream", lambda site: site.streams),
            ("document", lambda site: site.documents),
            ("subscription", lambda site: site.subscriptions),
        ]
        for what, of in described:
            for kind, names in changes(of(before), of(fresh)).items():
                for name in names:
                    self.log.event(f"{what} {kind}", name=name, epoch=self.trunk.last + 1)
        tell_addresses(self._endpoint, addresses, self.log)
        fixed = changes(_fixed(before), _fixed(fresh))["changed"]
        if fixed:
            self.log.event("warning", message=f"'{', '.join(fixed)}' takes effect with the next start")


_LOGGED = 20
"""So many subscriptions of one request are named in the log."""


def tell_addresses(endpoint: TrunkEndpoint, before: Mapping[str, str], log: Log) -> None:
    """Log where streams are pushed, unless that is as it was before."""
    if endpoint.streams != before:
        log.event("listening", streams=endpoint.streams)


def _checked(
    name: str, declared: SiteSubscription, origin: Origin, site: SiteDescription, checking: Checking
) -> SubscriptionEntry:
    """A subscription whose query is checked; raises for one that is wrong, or has to wait for the end."""
    printed = printed_of(name, declared, checking)
    own: Mapping[str, Source] = {}
    if declared.replays:
        printed, own = replayed(name, printed, site.streams)
    return SubscriptionEntry(name, declared, origin, printed, own, checking.growth.get(name, ()))


def _check_sink(table: Mapping[str, Any]) -> None:
    """Refuse a sink that a client of the service may not have: clients write below the folder of the site only."""
    kind, path = table.get("sink"), table.get("path")
    try:
        json.dumps(dict(table), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise UsageError("a sink's texts have no halves of characters") from None
    if kind == "console":
        raise UsageError("a sink 'console' writes to the terminal of the run", hint="declare it in the site file")
    if path is None:
        return
    if not isinstance(path, str) or "\0" in path:
        raise UsageError("the sink's path is no path", hint="as in 'out/vela.xml', relative to the site file")
    if "://" in path or PurePath(path).is_absolute() or ".." in PurePath(path).parts:
        hint = "as in 'out/vela.xml', relative to the site file"
        raise UsageError(f"the sink's path '{path}' leaves the folder of the site", hint=hint)


def _needs_pause(entry: SubscriptionEntry) -> bool:
    """Whether a change of this subscription waits for the epoch at work: it has a sink, or streams of its own."""
    return entry.declared.sink is not None or bool(entry.streams)


def _fixed(site: SiteDescription) -> dict[str, object]:
    """The settings of a site that take effect only with a start."""
    settings = {
        each: getattr(site.settings, each) for each in ("trigger_ms", "shards", "strands", "sharing", "accents")
    }
    others = {"keep": site.settings.keep, "max_steps": site.settings.limits.steps}
    others |= {"functions": site.functions, "log": site.log, "http": site.endpoint, "traces": site.traces}
    return {"checkpoint": site.checkpoint, **settings, **others}
