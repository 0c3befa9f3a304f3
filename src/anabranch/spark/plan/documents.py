"""The documents behind `doc()`: copied when they change, so that an epoch that is run again sees the same (LAWS 3.12).

A document is a file of the user's, which may change at any moment.
When an epoch begins, the driver checks whether it has (`DocumentCopies.look`); its content is copied beside the plans,
under the digest of its bytes, and the plan names that.
Tasks and shards read copies only, each process once (`DocumentFile.load`).
A file that cannot be read, because it is missing, half written or malformed, leaves the last good content in force,
with a warning; a document without any good content is an error.

A copy is needed while an epoch may be run with it: that of the newest plan.
Epochs before it are committed, and are not evaluated again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from anabranch.errors import AnabranchError, StateError
from anabranch.law import Input, document_input
from anabranch.runtime.tables import as_table
from anabranch.spark.checkpoint import durable
from anabranch.spark.plan.epoch_plan import Plan, PlannedDocument
from anabranch.spark.plan.files import PlanFile
from anabranch.spark.plan.kinds.display import may_read
from anabranch.storage import Location, Stat
from anabranch.stream.reading.documents import DocumentSource

_SETTLED = 2.0
"""Seconds after which unchanged times of a file mean unchanged content: file systems round them."""
_MOST_LOADED = 16
"""The number of documents that a process caches."""


@dataclass(frozen=True, slots=True)
class DocumentFile:
    """A copy of a document; equal values hold equal documents."""

    document: PlannedDocument
    path: Location

    @staticmethod
    def of(document: PlannedDocument, folder: Location) -> DocumentFile:
        """A document of a plan whose files are in a folder."""
        return DocumentFile(document, folder / f"{document.digest[:32]}.document")

    @property
    def version(self) -> str:
        """Identifies its content."""
        return " ".join((self.document.digest, self.document.root, self.document.item))

    def load(self) -> Input:
        """The document, cached by this process; of one that has changed, the version last asked for is kept."""
        place = self.path.parent, self.document.name
        known = _loaded.get(place)
        if known is None or known[0] != self:
            if len(_loaded) >= _MOST_LOADED:
                _loaded.clear()
            known = _loaded[place] = self, _load(self)
        return known[1]


_loaded: dict[tuple[Location, str], tuple[DocumentFile, Input]] = {}
"""By folder and name."""


def _load(file: DocumentFile) -> Input:
    data = durable.read(file.path)
    if durable.digest(data) != file.document.digest:
        raise StateError(f"the document '{file.path}' is damaged")
    source = DocumentSource(file.path, file.document.root, file.document.item)
    return as_table(document_input(source.parse(data), file.document.name))


def documents_in(file: PlanFile) -> tuple[DocumentFile, ...]:
    """The documents of a plan, as values that can be compared."""
    return tuple(DocumentFile.of(each, file.path.parent) for each in file.load().documents)


def load_all(files: tuple[DocumentFile, ...]) -> dict[str, Input]:
    """Documents by name."""
    return {each.document.name: each.load() for each in files}


def documents_for(file: PlanFile, texts: Collection[str]) -> tuple[DocumentFile, ...]:
    """The documents of a plan that queries, given by their texts, may read."""
    found = documents_in(file)
    return tuple(each for each in found if any(may_read(text, (each.document.name,)) for text in texts))


def documents_of(file: PlanFile, texts: Collection[str]) -> dict[str, Input]:
    """The documents of a plan by name that queries may read."""
    return load_all(documents_for(file, texts))


@dataclass(slots=True)
class _ReadDocument:
    """A document as last read."""

    source: DocumentSource
    good: PlannedDocument
    stamp: Stat | None
    """The stamp of its file then; None where the content may have changed since under the same stamp."""


class DocumentCopies:
    """The copies in a folder of plans; used by the driver's epoch, and while the workload is set."""

    def __init__(self, folder: Location, last: PlanFile | None, warn: Callable[[str], None]) -> None:
        self._folder = folder
        self._warn = warn
        self._before = {each.document.name: each for each in documents_in(last)} if last else {}
        """The documents of an earlier run's plan."""
        self._held: dict[str, _ReadDocument] = {}
        self._refused: dict[str, tuple[Stat | None, str]] = {}
        """By file: the version for which a warning was given."""
        self._swept: frozenset[PlannedDocument] | None = None
        """The documents at the last sweep."""

    def look(self, sources: Mapping[str, DocumentSource]) -> tuple[PlannedDocument, ...]:
        """The present documents; raises for a document that has no good content, and never had."""
        self._held = {name: each for name, each in self._held.items() if name in sources}
        return tuple(self._look(name, source) for name, source in sources.items())

    def _look(self, name: str, source: DocumentSource) -> PlannedDocument:
        held, now = self._held.get(name), _stamp(source.at)
        if held is not None and held.source == source and held.stamp is not None and held.stamp == now:
            return held.good
        try:
            found = self._copied(name, source)
        except AnabranchError as error:
            return self._last_good(name, source, error, now)
        self._refused.pop(name, None)
        settled = now is not None and (now.changed is None or time.time() - now.changed > _SETTLED)
        self._held[name] = _ReadDocument(source, found, now if settled else None)
        return found

    def _copied(self, name: str, source: DocumentSource) -> PlannedDocument:
        data = source.read()
        found = PlannedDocument(name, durable.digest(data), source.root, source.item)
        file = DocumentFile.of(found, self._folder)
        if not durable.exists(file.path):
            source.parse(data)
            durable.replace(file.path, data)
        return found

    def _last_good(self, name: str, source: DocumentSource, error: AnabranchError, now: Stat | None) -> PlannedDocument:
        held, before = self._held.get(name), self._before.get(name)
        if held is not None:
            good = held.good if held.source == source else None
        else:
            good = self._copied_again(before) if before and _is_named_so(before.document, source) else None
        if good is None:
            raise error
        if self._refused.get(name) != (now, error.message):
            self._refused[name] = now, error.message
            self._warn(f"the document '{name}' stays as it was: {error.message}")
        return good

    def _copied_again(self, before: DocumentFile) -> PlannedDocument:
        """The document of an earlier run's plan, copied to where this run has its plans."""
        file = DocumentFile.of(before.document, self._folder)
        if not durable.exists(file.path):
            durable.replace(file.path, durable.read(before.path))
        return before.document

    def sweep(self, plan: Plan) -> None:
        """Remove the copies that neither the newest plan names nor the next one will; first those of earlier runs."""
        needed = frozenset((*plan.documents, *(each.good for each in self._held.values())))
        if self._swept is None:
            plans, own = self._folder.parent, int(self._folder.name)
            there = (name for name in durable.names(plans, below=True) if name.endswith(".document"))
            durable.delete(plans, [name for name in there if int(name.partition("/")[0]) < own])
        if needed != self._swept:
            named = {DocumentFile.of(each, self._folder).path.name for each in needed}
            there = (name for name in durable.names(self._folder) if name.endswith(".document"))
            durable.delete(self._folder, [name for name in there if name not in named])
            self._swept = needed


def _is_named_so(document: PlannedDocument, source: DocumentSource) -> bool:
    return (document.root, document.item) == (source.root, source.item)


def _stamp(at: Location) -> Stat | None:
    """What changes with the content of a file; None where there is no file."""
    try:
        return at.stat()
    except OSError:
        return None
