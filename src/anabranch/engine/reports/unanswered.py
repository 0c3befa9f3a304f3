"""Queries without an answer while items were set aside, so that silence is not taken for an answer.

A query has no answer where its answer equals that over streams without items.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from anabranch.engine.finite import FiniteRun
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import Prepared
from anabranch.engine.reading import read_documents
from anabranch.errors import AnabranchError
from anabranch.law import evaluate, stream_input
from anabranch.law.history.document import EditedDocument
from anabranch.law.history.timeline import answer
from anabranch.stream.elements import DeadLetter, Item
from anabranch.stream.limits import Limits
from anabranch.stream.reading.source import Contents, read
from anabranch.visible import visible

_KEPT_CHARACTERS = 1 << 16
"""The number of characters of an answer that are kept."""


class Watched:
    """An answer in pieces that is read once; it records its beginning and its length."""

    def __init__(self, pieces: Iterable[str]) -> None:
        self._pieces = iter(pieces)
        self._head = ""
        self._length = 0

    def __iter__(self) -> Iterator[str]:
        for piece in self._pieces:
            self._head += piece[: _KEPT_CHARACTERS - len(self._head)]
            self._length += len(piece)
            yield piece

    @cached_property
    def has_text(self) -> bool:
        """Whether it has any text; called before it is read."""
        first = next((piece for piece in self._pieces if piece), None)
        self._pieces = chain(() if first is None else (first,), self._pieces)
        return first is not None

    def was(self, text: str) -> bool:
        """Whether it was this text; called after it was read."""
        return self._length == len(text) and self._head == text[:_KEPT_CHARACTERS]


@dataclass(frozen=True, slots=True)
class Unanswered:
    """The dead letters of a query without an answer."""

    name: str
    items: int
    """The number of items set aside for it."""
    total: int
    """The number of items in its streams."""
    example: DeadLetter
    """The first of the most frequent kind."""
    alike: int
    """The number of its dead letters of that kind."""

    @property
    def is_all(self) -> bool:
        return self.items >= self.total

    def __str__(self) -> str:
        items = f"all {self.total:,} items were" if self.is_all else f"{self.items:,} of {self.total:,} items were"
        code = f" [{self.example.code}]" if self.example.code else ""
        most = f"most often ({self.alike:,} times) as here: {visible(self.example.reason)}{code}"
        return f"the query '{self.name}' answers nothing: {items} set aside, {most}"


def unanswered(
    query: Prepared, answered: Watched, run: FiniteRun, dead: Sequence[DeadLetter], inputs: Inputs, limits: Limits
) -> Unanswered | None:
    """The dead letters of a query without an answer that has not ended early; `answered` was read."""
    streams = query.checked.streams
    bad = [each for each in dead if each.subscription is None and each.place.stream in streams]
    failed = [each for each in dead if each.subscription == query.name]
    if not (bad or failed) or query.name in run.aborted:
        return None
    if not answered.was("") and not answered.was(_over_nothing(query, inputs, limits)):
        return None
    ((kind, alike),) = Counter(map(_kind, (*bad, *failed))).most_common(1)
    example = next(each for each in (*bad, *failed) if _kind(each) == kind)
    places = {each.place for each in bad}
    total = _items(query, run, inputs, limits) + len(places)
    places |= {place for each in failed for place in (each.place, *(place for place, _ in each.others))}
    unnamed = sum(each.values - 1 - len(each.others) for each in failed if each.values)
    return Unanswered(query.name, min(len(places) + unnamed, total), total, example, alike)


def _kind(letter: DeadLetter) -> str:
    """The common part of dead letters that differ only in texts and places."""
    return letter.code or letter.reason.partition(":")[0]


def _items(query: Prepared, run: FiniteRun, inputs: Inputs, limits: Limits) -> int:
    """The number of good items in the streams of a query."""
    given = {source.name: source for source in inputs.streams}
    if set(given) == set(query.checked.streams):
        return run.items
    return sum(isinstance(each, Item) for name in query.checked.streams for each in read(given[name], limits))


def _over_nothing(query: Prepared, inputs: Inputs, limits: Limits) -> str:
    """The answer of a query over its streams without their items."""
    sources = [each for each in inputs.streams if each.name in query.checked.streams]
    roots = {each.name: Contents(each, limits).root for each in sources}
    paths = {name: path for name, path in (inputs.documents or {}).items() if name in query.checked.documents}
    law, functions = query.checked.query, inputs.functions
    try:
        documents = read_documents(paths)
        if query.updates:
            nothing = {name: EditedDocument(root) for name, root in roots.items()}
            return answer(law, nothing, functions=functions, inputs=documents, text=query.text).text
        empty = {name: stream_input(root, [()])[0] for name, root in roots.items()}
        return evaluate(law, {**documents, **empty}, functions=functions).text
    except AnabranchError:
        return ""  # it has no answer then
