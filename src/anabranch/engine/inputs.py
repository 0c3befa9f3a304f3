"""The inputs that queries may read, and the check of queries against them; no engine is loaded for that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from anabranch.errors import AnabranchError
from anabranch.language import Checked, check
from anabranch.language.checks.check import ItemNames
from anabranch.language.checks.outputs import outputs_of
from anabranch.law.calls import PythonFunction
from anabranch.sql import Language, read_query
from anabranch.stream.reading.documents import DocumentSource
from anabranch.stream.reading.names import first_names
from anabranch.stream.reading.reader import Format
from anabranch.stream.reading.source import Source, first_format
from anabranch.stream.schema import Schema


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs that queries may read: streams, and documents by name."""

    streams: Sequence[Source] = ()
    documents: Mapping[str, DocumentSource] | None = None
    functions: Mapping[str, PythonFunction] | None = None
    finite: bool = False
    """Whether all streams end, and are read to their end."""
    _names: dict[str, ItemNames] = field(default_factory=dict, init=False, repr=False, compare=False)
    """By stream, once they are asked for and known."""
    _formats: dict[str, Format] = field(default_factory=dict, init=False, repr=False, compare=False)
    """By input, likewise."""

    @property
    def edited(self) -> frozenset[str]:
        """The streams of updates."""
        return frozenset(source.name for source in self.streams if source.updates)

    @property
    def size(self) -> int:
        """The bytes of all streams."""
        return sum(source.size for source in self.streams)

    def schemas(self) -> dict[str, Schema | None]:
        """The known inputs; a document has no schema."""
        documents: dict[str, Schema | None] = dict.fromkeys(self.documents or {})
        return {source.name: source.schema for source in self.streams} | documents

    def names(self) -> Mapping[str, ItemNames]:
        """What the roots and items of the streams are called, as far as their first bytes tell."""
        for source in self.streams:
            if source.name not in self._names and (found := first_names(source)) is not None:
                self._names[source.name] = ItemNames(*found)
        return self._names

    def json_items(self) -> Mapping[str, str]:
        """The inputs of JSON, as far as their first bytes tell, each with the name of its items."""
        for source in self.streams:
            if source.name not in self._formats and (format := first_format(source)) is not None:
                self._formats[source.name] = format
        for name, document in (self.documents or {}).items():
            if name not in self._formats:
                self._formats[name] = "json" if _is_json(document) else "document"
        found = {each.name: each.item_name for each in self.streams} | {
            name: each.item for name, each in (self.documents or {}).items()
        }
        return {name: item for name, item in found.items() if self._formats.get(name) == "json"}

    def gives_json(self, checked: Checked) -> bool:
        """Whether a query answers in JSON (LAWS 7.3); items as they are do so where their stream is one of JSON."""
        return outputs_of(checked.query).form(self.json_items()) == "json"

    def check(self, text: str, label: str, language: Language | None = None) -> Checked:
        """Parse and check a query; `label` is its name in errors, such as a file name."""
        return check(
            read_query(text, label, language=language, documents=tuple(self.documents or ())),
            text,
            inputs=self.schemas(),
            functions=tuple(self.functions or ()),
            name=label,
            edited=self.edited,
            finite=self.finite,
            names=self.names(),
            json=self.json_items(),
            documents=tuple(self.documents or ()),
        )


def _is_json(document: DocumentSource) -> bool:
    """Whether a document is JSON by its first bytes."""
    try:
        return document.is_json()
    except (AnabranchError, OSError):
        return False
