"""The answer of a subscription as a stream of the same site (LAWS 3.12).

Each epoch that adds to the answer adds a document to a folder in the checkpoint, under the epoch's number, by an
exclusive create: a document delivered again after a crash exists already, so every result is in the stream once.
The stream reads the folder like any other, and documents that were read in a committed epoch are removed.

Its items are the results that are elements; text and comments between them are ignored, as in any document.
Where a query gives only numbers and booleans, each is an item, in an element of its own.
The stream's root is the element directly around the results in the answer, or `answer` where there is none.
A display is a stream of updates already, and an answer in JSON a stream of JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from anabranch.algebra.display.replay import CLOSING, OPENING
from anabranch.errors import UsageError
from anabranch.law.calls import PythonFunction
from anabranch.spark.answers.log import AnswerFrame
from anabranch.spark.checkpoint import durable
from anabranch.spark.plan.epoch_plan import Plan, Registration
from anabranch.spark.sinks.pieces import lines_in, results_in
from anabranch.storage import Location
from anabranch.stream.elements import Place
from anabranch.stream.limits import DOCUMENT
from anabranch.stream.reading.json_items import parse_line, parse_records
from anabranch.stream.reading.parse import parse_item
from anabranch.stream.reading.source import Source
from anabranch.stream.reading.wire import write
from anabranch.stream.serialize import serialize
from anabranch.stream.tree import Element, Instruction, Name, descendants, namespaces_in_scope

_RETAINED = 4
"""The number of newest documents that stay: the last name gives the position of the stream."""
_HOLE = "anabranch-hole"
_ROOT = "answer"


class AnswerStream:
    """Delivers an answer to its stream."""

    def __init__(self, source: Source, functions: Mapping[str, PythonFunction]) -> None:
        self._source = source
        self._functions = functions
        self._folder = source.partitions[0]
        self._folder.sweep()
        names = _names(self._folder)
        self.next = int(names[-1].removesuffix(".xml")) + 1 if names else 0
        """The next epoch to deliver."""
        self.written = 0
        """The number of documents written."""

    def take(self, subscription: Registration, epoch: int, texts: Iterable[str]) -> None:
        """Write the document of an epoch."""
        document = "".join(self._document(subscription, texts)).encode()
        self.written += durable.create(self._folder / f"{epoch:010}.xml", document)

    def _document(self, subscription: Registration, texts: Iterable[str]) -> Iterator[str]:
        if self._source.format == "json":  # the stream keeps the types of values
            yield from texts
            return
        frame = AnswerFrame.of(subscription, self._functions)
        if subscription.shows:
            yield OPENING
            for text in texts:
                yield from map(self._as_xml, lines_in(text)) if frame.is_json(text) else (text,)
            yield CLOSING
            return
        root = around(frame)
        yield serialize(root).removesuffix("/>") + ">"
        for text in texts:
            if frame.is_json(text):  # of items as they are, it is only known now that they are JSON
                records = parse_records(text.encode(), DOCUMENT, self._source.item_name)
                yield from map(serialize, records)
                continue
            for result in map(str.strip, results_in(text, values=frame.plain)):
                if frame.plain:
                    yield f"<{self._source.item_name}>{result}</{self._source.item_name}>"
                elif result.startswith("<") and not result.startswith(("<!", "<?")):
                    yield result
        yield f"</{root.name}>"

    def _as_xml(self, line: str) -> str:
        """An element of a display in JSON as XML: of items as they are, it is only known now that they are JSON."""
        return write(parse_line(line.encode(), Place("", "", 0), DOCUMENT, self._source.item_name))

    def forget(self, read: str) -> None:
        """Remove the documents before the one to be read next, except the newest of all."""
        durable.delete(self._folder, [name for name in _names(self._folder)[:-_RETAINED] if name < read])


def _names(folder: Location) -> list[str]:
    return [name for name in durable.names(folder) if name[:1].isdecimal() and name.endswith(".xml")]


def around(frame: AnswerFrame) -> Element:
    """The element directly around the results of an answer, without content; `answer` where there is none."""
    text = f"<{_ROOT}>{frame.opening}<?{_HOLE}?>{frame.closing}</{_ROOT}>"
    top = parse_item(text.encode(), DOCUMENT)
    hole = next(each for each in descendants(top) if isinstance(each, Instruction) and each.target == _HOLE)
    found = hole.parent
    assert isinstance(found, Element), "there is one around all"
    declared = {prefix: uri for prefix, uri in namespaces_in_scope(found).items() if prefix != "xml"}
    root = Element(Name(_ROOT) if found is top else found.name, declared)
    for each in found.attributes:
        root.set(each.name, each.value)
    return root


def check_answers(streams: Mapping[str, Source], known: Mapping[str, Registration], last: Plan | None) -> None:
    """Refuse streams that cannot be the answers they are declared to be, of subscriptions known by name.

    `last` is the plan before: under one name, two displays one after the other would be two documents in one stream.
    """
    for name, source in streams.items():
        asked = known.get(source.answer)
        if not source.answer or asked is None:
            continue
        frame = AnswerFrame.of(asked)
        if source.format != "json" if frame.json else source.format == "json" and not frame.items:
            raise UsageError(
                f"the answer of '{asked.name}' is {'JSON' if frame.json else 'XML'}, and the stream '{name}' is not"
            )
        if asked.shows is not source.updates:
            kinds = ("updates", "items") if asked.shows else ("items", "updates")
            raise UsageError(f"the answer of '{asked.name}' is a stream of {kinds[0]}, and '{name}' one of {kinds[1]}")
        if frame.spaced and not frame.plain:
            raise UsageError(
                f"the answer of '{asked.name}' cannot be the stream '{name}': its results may be texts, "
                "and where one ends cannot be told",
                hint="put each result into an element",
            )
        before = last.by_name.get(asked.name) if last and any(each.name == name for each in last.streams) else None
        if asked.shows and before is not None and before.text != asked.text:
            raise UsageError(
                f"the stream '{name}' is the display of '{asked.name}', whose query has changed",
                hint="give the stream another name",
            )
