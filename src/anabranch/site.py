"""SITE.toml: the streams and subscriptions of one running engine, as a user writes them down.

Paths are relative to the file.
What is not understood is refused by name, with the table it stands in: a misspelt key must not be a setting that
silently does nothing.
Two sites are equal when they mean the same, whatever the layout; that is how a run sees whether its file has changed.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

from anabranch.algebra.signature import POLICIES, Policy
from anabranch.errors import UsageError
from anabranch.spark.sinks import Console, Files, Parquet, Sink, path_of
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.schema import Schema
from anabranch.stream.source import Source, domains_of

_Value = TypeVar("_Value")
_LATER = ("retain",)
"""Settings for what is still to come; they are accepted and change nothing yet."""


@dataclass(frozen=True, slots=True)
class SiteSubscription:
    """A query, where it was read from, and where its answer goes besides the answer log."""

    text: str
    file: Path
    sink: Sink | None
    policy: Policy
    """What it does with accents that its answer cannot express."""


@dataclass(frozen=True, slots=True)
class Site:
    """What a SITE.toml says."""

    owner: Path
    """The file, under the name by which its checkpoint knows it; it may have been renamed."""
    checkpoint: Path
    epoch_bytes: int
    epoch_files: int | None
    trigger_ms: int
    shards: int | None
    """How many tasks share the branches; None for as many as there are cores."""
    sharing: bool
    """Whether what subscriptions have in common is done once."""
    accents: bool
    """Whether accents are followed."""
    keep: int | str | None
    log: Path | None
    dead_letters: Path | None
    late_items: Path | None
    streams: Mapping[str, Source]
    subscriptions: Mapping[str, SiteSubscription]


def read_site(path: Path) -> Site:
    """Read a site with all the files it names; `UsageError` says what is wrong and where."""
    try:
        tables = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"'{path}': {_lowered(str(error))}") from None
    top = _Table(path, "the file", tables, path.absolute().parent)
    engine = top.table("engine")
    streams = top.tables("streams")
    subscriptions = top.tables("subscriptions")
    top.done()
    checkpoint = engine.path("checkpoint")
    if checkpoint is None:
        raise UsageError(f"'{path}': [engine] lacks 'checkpoint'", hint='as in checkpoint = "state"')
    policy = _policy(engine, "accumulate")
    site = Site(
        path.absolute().parent / engine.text("name", path.name),
        checkpoint,
        engine.number("epoch_bytes", 16 << 20),
        engine.number("epoch_files", None),
        engine.number("trigger_ms", 200),
        engine.number("shards", None),
        engine.flag("sharing", default=True),
        engine.flag("accents", default=True),
        engine.take("keep", lambda value: isinstance(value, int | str), "a number of epochs or a size", None),
        engine.path("log"),
        engine.path("dead_letters"),
        engine.path("late"),
        {name: _stream(name, table) for name, table in streams.items()},
        {name: _subscription(name, table, policy) for name, table in subscriptions.items()},
    )
    engine.done()
    sinks = [each.sink for each in site.subscriptions.values() if each.sink is not None]
    written = [*map(path_of, sinks), site.dead_letters, site.late_items, site.log]
    for file in written:
        if file is not None and written.count(file) > 1:
            raise UsageError(f"'{path}': '{file}' would be written twice over")
    return site


def _stream(name: str, table: _Table) -> Source:
    source = table.text("source", "files")
    if source != "files":
        raise table.wrong(f"the source '{source}' is unknown", hint="only 'files' can be read yet")
    path, *more = table.paths("path")
    for each in (path, *more):
        if not each.exists():
            raise table.wrong(f"there is no '{each}'", hint="make the directory first")
    if table.flag("updates"):
        raise table.wrong("streams of updates cannot be read yet")
    form = table.text("format", "auto")
    if form not in ("auto", "lines", "document", "json"):
        raise table.wrong(f"the format '{form}' is unknown", hint="use lines, document or json")
    dtd = table.path("dtd")
    time = table.text("time", None)
    found = Source(
        name,
        path,
        form,  # type: ignore[arg-type]  # just checked
        Schema.read_dtd(dtd) if dtd is not None else None,
        table.text("root", None),
        table.text("item", None),
        ItemPath.parse(time) if time is not None else None,
        table.decimal("slack"),
        table.decimal("origin"),
        table.flag("strict"),
        tuple(more),
        _domains(table),
    )
    table.done()
    return found


def _domains(table: _Table) -> tuple[tuple[ItemPath, tuple[str, ...]], ...]:
    given = table.take("domains", lambda value: isinstance(value, dict), "a table of lists, as in { s = [1, 2] }", {})
    try:
        return domains_of(given)
    except UsageError as error:
        raise table.wrong(error.message, hint=error.hint) from None


def _subscription(name: str, table: _Table, policy: Policy) -> SiteSubscription:
    file = table.path("query")
    if file is None:
        raise table.wrong("'query' is missing", hint="it names the file with the query")
    sink = _sink(name, table)
    chosen = _policy(table, policy)
    table.done()
    return SiteSubscription(read_text(file), file, sink, chosen)


def _policy(table: _Table, default: Policy) -> Policy:
    name = table.text("policy", default)
    if name not in POLICIES:
        raise table.wrong(f"the policy '{name}' is unknown", hint=f"use {', '.join(POLICIES)}")
    return name


def _sink(name: str, table: _Table) -> Sink | None:
    kind, path = table.text("sink", None), table.path("path")
    match kind, path:
        case None, None:
            return None
        case "files", Path():
            return Files(path / f"{name}.xml" if path.is_dir() else path)
        case "parquet", Path():
            return Parquet(path)
        case "console", None:
            return Console()
        case "console", _:
            raise table.wrong("the sink 'console' takes no 'path'")
        case ("files" | "parquet") | None, _:
            raise table.wrong("'sink' and 'path' go together")
    raise table.wrong(f"the sink '{kind}' is unknown", hint="use files, parquet or console")


class _Table:
    """A table of the file; what nobody has asked for when it is done is a mistake of the user's."""

    def __init__(self, file: Path, name: str, values: Mapping[str, Any], folder: Path) -> None:
        self._file = file
        self._name = name
        self._values = dict(values)
        self._folder = folder

    def wrong(self, message: str, hint: str | None = None) -> UsageError:
        return UsageError(f"'{self._file}', {self._name}: {message}", hint=hint)

    def take(self, key: str, fits: Callable[[Any], bool], kind: str, default: Any) -> Any:
        """The value of a key, which must fit."""
        if key not in self._values:
            return default
        value = self._values.pop(key)
        if not fits(value) or (isinstance(value, bool) and kind != "true or false"):
            raise self.wrong(f"'{key}' takes {kind}, not '{value}'")
        return value

    def text(self, key: str, default: _Value) -> str | _Value:
        found: str | _Value = self.take(key, lambda value: isinstance(value, str), "text", default)
        return found

    def path(self, key: str) -> Path | None:
        text = self.text(key, None)
        return None if text is None else self._folder / text

    def paths(self, key: str) -> list[Path]:
        """One path or several."""
        value = self.take(key, _are_paths, "a path or a list of paths", [])
        found = [self._folder / each for each in ([value] if isinstance(value, str) else value)]
        if not found:
            raise self.wrong(f"'{key}' is missing")
        return found

    def number(self, key: str, default: _Value) -> int | _Value:
        fits = self.take(key, lambda value: isinstance(value, int) and value > 0, "a positive number", default)
        found: int | _Value = fits
        return found

    def decimal(self, key: str) -> Decimal:
        value = self.take(key, lambda value: isinstance(value, int | float), "a number", 0)
        found = Decimal(str(value))
        if not found.is_finite():
            raise self.wrong(f"'{key}' takes a number, not '{value}'")
        return found

    def flag(self, key: str, *, default: bool = False) -> bool:
        return bool(self.take(key, lambda value: isinstance(value, bool), "true or false", default))

    def table(self, key: str) -> _Table:
        value = self.take(key, lambda value: isinstance(value, dict), "a table", {})
        return _Table(self._file, f"[{key}]", value, self._folder)

    def tables(self, key: str) -> dict[str, _Table]:
        found: dict[str, _Table] = {}
        for name, value in self.take(key, lambda value: isinstance(value, dict), "tables", {}).items():
            if not isinstance(value, dict):
                raise self.wrong(f"'{key}.{name}' takes a table")
            found[name] = _Table(self._file, f"[{key}.{name}]", value, self._folder)
        return found

    def done(self) -> None:
        for key in self._values:
            if key not in _LATER:
                raise self.wrong(f"'{key}' is unknown")


def _are_paths(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(each, str) for each in value))


def read_text(file: Path) -> str:
    """The text of a file that a user named."""
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot read '{file}': {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"'{file}' is not UTF-8: {error.reason} at byte {error.start}") from None


def _lowered(message: str) -> str:
    return message[:1].lower() + message[1:]
