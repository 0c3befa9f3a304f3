"""The inputs that queries may read, and the check of queries against them; no engine is loaded for that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from anabranch.language import Checked, check, parse
from anabranch.law.calls import PythonFunction
from anabranch.stream.reading.documents import DocumentSource
from anabranch.stream.reading.source import Source
from anabranch.stream.schema import Schema


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs that queries may read: streams, and documents by name."""

    streams: Sequence[Source] = ()
    documents: Mapping[str, DocumentSource] | None = None
    functions: Mapping[str, PythonFunction] | None = None
    finite: bool = False
    """Whether all streams end, and are read to their end."""

    @property
    def edited(self) -> frozenset[str]:
        """The streams of updates."""
        return frozenset(source.name for source in self.streams if source.updates)

    @property
    def size(self) -> int:
        """The bytes of all streams."""
        return sum(path.stat().st_size for source in self.streams for path in source.files)

    def schemas(self) -> dict[str, Schema | None]:
        """The known inputs; a document has no schema."""
        documents: dict[str, Schema | None] = dict.fromkeys(self.documents or {})
        return {source.name: source.schema for source in self.streams} | documents

    def check(self, text: str, label: str) -> Checked:
        """Parse and check a query; `label` is its name in errors, such as a file name."""
        return check(
            parse(text, label),
            text,
            inputs=self.schemas(),
            functions=tuple(self.functions or ()),
            name=label,
            edited=self.edited,
            finite=self.finite,
        )
