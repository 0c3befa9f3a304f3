"""Items of every kind, and the law to compare with: each parsed by itself and shown to each query by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from random import Random

from anabranch.columnar.items.answering import Answers, ReadEntry, Rows, StreamAnswers
from anabranch.columnar.items.coverage import ReadCounts
from anabranch.columnar.items.programs import ItemQueries
from anabranch.columnar.items.programs import ItemQuery as Asked
from anabranch.columnar.scan.shred import Shredder
from anabranch.columnar.tables.table_columns import DocumentTables
from anabranch.errors import DynamicError
from anabranch.language import ast, check, parse
from anabranch.law import document_input
from anabranch.runtime.standing import Standing, standing
from anabranch.runtime.tables import as_table
from anabranch.runtime.units import Units
from anabranch.stream.elements import DeadLetter, Item
from anabranch.stream.limits import Limits
from anabranch.stream.reading.json_items import item_text
from anabranch.stream.reading.lines import Cut
from anabranch.stream.reading.parse import parse_document, parse_root
from anabranch.stream.reading.reader import ElementReader, Format
from anabranch.stream.reading.split import Carry, DocumentSplitter, LineSplitter
from anabranch.stream.schema import Schema
from anabranch.stream.tree import Element

NUMBERS = [
    "5", "+5", ".5", "5.", "-0", "-0.25", "1e1", "INF", "NaN", " 5 ", "", "abc", "--1", "1.2.3", "+", ".", "٣",
    "0.1000000000000000055511151231257827", "6.9999999999999999", "3.0000000000000001",
    "123456789012345678901234567890", "5.000000000000000000000001",
    "&#53;", "1<!--c-->2", "<![CDATA[5]]>", "5<i/>",
]  # fmt: skip
TEXTS = [
    "abc", "abd", "ab", "b", "a b", " ", "", "'", "&lt;", "&amp;amp;", "é", "a>b", 'say "a"', "a\tb", "a\rb",
    "<![CDATA[<]]>", "<b>c</b>d", "<!-- c -->", "]]>", "&#x1;", "\x7f",
]  # fmt: skip
USUAL = "<p><a><x>{x}</x><y>{y}</y></a><z>{z}</z></p>"
SHAPES = [
    "<p><z>{z}</z><a><x>{x}</x><y>{y}</y></a></p>",  # other order
    "<p><a><x>{x}</x><x>{z}</x><y>{y}</y></a><z>{z}</z><z>{x}</z></p>",  # repeated
    "<p><a><x>{x}</x><y>{y}</y></a></p>",  # missing
    "<p><a><x>{x}</x></a><a><x>{z}</x><y>{y}</y></a><opt>{x}</opt><z>{z}</z></p>",
    "<p><a><x>{x}</x><y>{y}</y></a><z>{z}</z><opt>{x}</opt></p>",
    "<p k='v'><a><x>{x}</x><y>{y}</y></a><z>{z}</z></p>",
    "<p k='v'><a><x>{x}</x><y>{y}</y></a><z>{z}</z><opt>{x}</opt></p>",
    "<p><a><x >{x}</x><y l=\"{y}\">{y}</y></a><z>{z}</z></p>",
    "<p><!-- <z> --><a><x>{x}</x><y>{y}</y></a>{y}<z>{z}</z></p>",  # mixed content
    "<p> <a> <x>{x}</x><y>{y}</y></a><z>{z}</z></p>",
    "<p><a><x>{x}</x><y/></a><z>{z}</z><opt/></p>",
    "<p xmlns='u'><a><x>{x}</x><y>{y}</y></a><z>{z}</z></p>",
    "<p xmlns:n='u'><a><x>{x}</x><n:y>{y}</n:y></a><z>{z}</z></p>",
    "<n:p><a><x>{x}</x><y>{y}</y></a><z>{z}</z></n:p>",  # undeclared prefix
    "<q><a><x>{x}</x><y>{y}</y></a><z>{z}</z></q>",
    "<?i?><p><a><x>{x}</x><y>{y}</y></a><z>{z}</z></p><!-- c -->",
    " <p><a><x>{x}</x><y>{y}</y></a><z>{z}</z></p> ",
    "<p><a><x>{x}</x><y>{y}</a></y><z>{z}</z></p>",  # broken from here on
    "<p><a><x>{x}</x><y>{y}</y></a><z>{z}</p>",
    "<p><a><x>{x}</x><y>&nope;</y></a><z>{z}</z></p>",
    "<p><a><x>{x}</x><y>{y}</y></a><z>{z}</z></p><p/>",
    "<p><a><x>{x}</x><y>{y}</y></a><z>{z}</z></p>text",
    "<p><!--",
    "--><z>{z}</z></p>",
    "<!DOCTYPE p><p><z>{z}</z></p>",
    "",
    "{y}",
    "<p><a><x>{x}</x><y>\x01</y></a><z>{z}</z></p>",
]  # fmt: skip
FRONT = (USUAL.format(x="1.5", y="abc", z="2") + "\n") * 3
"""What the streams begin with, so that there is something to learn from."""


@dataclass
class Answered:
    """What came of a stream: the text and the number of answers by query, dead letters, items, and the carry."""

    texts: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    dead: list[DeadLetter] = field(default_factory=list)
    items: int = 0
    carry: Carry | None = None


@dataclass(frozen=True)
class ItemQuery:
    """A query that answers one item at a time."""

    expanded_hole: ast.Expression
    units: Units
    namespaces: Mapping[str, str] = field(default_factory=dict)
    tables: Mapping[str, DocumentTables] = field(default_factory=dict)
    at_top: bool = True

    def answer(self, root: Element, item: Element) -> str:
        return self.units.item(root, item).text


def item_queries(texts: Mapping[str, str], documents: Mapping[str, bytes] | None = None) -> dict[str, ItemQuery]:
    inputs = {name: as_table(document_input(parse_document(each), name)) for name, each in (documents or {}).items()}
    names = {"s": None, **dict.fromkeys(inputs)} if inputs else None
    found = {name: standing(check(parse(text), text, inputs=names).query) for name, text in texts.items()}
    assert all(each.kind == "items" and each.separate for each in found.values())
    tables = {name: DocumentTables(partial(getattr, each, "document")) for name, each in inputs.items()}
    return {
        name: ItemQuery(_hole(each), Units(each, {}, inputs), each.scope, tables, each.at_top)
        for name, each in found.items()
    }


def _hole(query: Standing) -> ast.Expression:
    assert query.expanded_hole is not None
    return query.expanded_hole


class Stream:
    """One way in which a stream is written, with the queries on it."""

    def __init__(
        self,
        queries: dict[str, ItemQuery],
        form: Format = "lines",
        *,
        root: str = "<root>",
        limits: Limits | None = None,
        schema: Schema | None = None,
    ) -> None:
        self.queries = queries
        self.limits = limits or Limits()
        self.form = form
        self.root = parse_root(root.encode())
        self.schema = schema
        self.left_to_law = 0
        """How often columns have left an item and a query to the law."""

    def reader(self) -> ElementReader:
        return ElementReader("s", self.form, self.limits, self.root, schema=self.schema)

    def splitter(self) -> DocumentSplitter | LineSplitter:
        return DocumentSplitter(self.limits) if self.form == "document" else LineSplitter(self.limits)

    def by_law(self, data: bytes) -> Answered:
        """Answer item by item."""
        found = Answered(dict.fromkeys(self.queries, ""), dict.fromkeys(self.queries, 0))
        splitter = self.splitter()
        cuts = [*splitter.feed(data), *splitter.finish()]
        found.carry = splitter.carry
        for element in self.reader().elements(cuts, "f"):
            if isinstance(element, DeadLetter):
                found.dead.append(element)
                continue
            assert isinstance(element, Item)
            found.items += 1
            for name, query in self.queries.items():
                try:
                    piece = query.answer(self.root, element.tree)
                except DynamicError as error:
                    raw = item_text(element.tree)
                    found.dead.append(DeadLetter(element.place, error.message, raw, error.code, name))
                else:
                    found.texts[name] += piece
                    found.counts[name] += bool(piece)
        return found

    def answers(self) -> StreamAnswers:
        queries = [
            ItemQueries(
                query.expanded_hole,
                (),
                [Asked(((number, name),), (), partial(self._answer_slowly, query))],
                query.namespaces,
                query.tables,
                query.at_top,
            )
            for number, (name, query) in enumerate(self.queries.items())
        ]
        return StreamAnswers(queries, self.form, self.root, self.limits, self.schema)

    def _answer_slowly(self, query: ItemQuery, item: Element) -> str:
        self.left_to_law += 1
        return query.answer(self.root, item)

    def by_columns(self, pieces: Iterable[bytes], answers: StreamAnswers | None = None) -> tuple[Answered, int]:
        """Answer piece by piece; also says how many items the parser had to read."""
        answers = answers or self.answers()
        out = _Out([*self.queries])
        reader = self.reader()
        read = 0

        def read_one(cut: Cut) -> Item | None:
            nonlocal read
            read += 1
            (element,) = reader.elements([cut], "f")
            if isinstance(element, Item):
                return element
            assert isinstance(element, DeadLetter)
            out.bury(element)
            return None

        shredder = Shredder(self.splitter(), self.limits)
        for piece in (*pieces, None):
            out.found.items += answer_piece(answers, shredder, piece, read_one, out).items
        out.found.carry = shredder.carry
        return out.found, read


def answer_piece(
    answers: StreamAnswers, shredder: Shredder, piece: bytes | None, read: Callable[[Cut], Item | None], out: Answers
) -> ReadCounts:
    """Answer what ends in the next piece, None for the end of input, as a task does with a range."""
    counts = ReadCounts()
    for batch in answers.batches(shredder, piece):
        counts += batch.counts
        for stretch in batch.entries.between_accents():
            for matched in answers.matched(stretch):
                elements = (ReadEntry(entry, read(cut)) for entry, cut in matched.unread())
                counts += matched.answer(elements, out)
    return counts


def check_by_law(stream: Stream, data: bytes, random: Random) -> tuple[StreamAnswers, int]:
    """Answers, dead letters, their order and counts are those of the law; gives who answered, and the number of items.

    All is fed twice, since more may be known of the look of items the second time, and then cut into pieces anywhere;
    what is left to the law is counted the second time.
    """
    law = stream.by_law(data)
    answers = stream.answers()
    assert stream.by_columns([data], answers)[0] == law
    stream.left_to_law = 0
    cuts = sorted(random.randrange(len(data)) for _ in range(random.choice([0, 0, 1, 5])))
    pieces = [data[first:last] for first, last in pairwise((0, *cuts, len(data)))]
    assert stream.by_columns(pieces, answers)[0] == law
    return answers, law.items


class _Out:
    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.found = Answered(dict.fromkeys(names, ""), dict.fromkeys(names, 0))

    def lay(self, data: memoryview, rows: Rows) -> None:
        for number, offset, length, entries, first, _ in rows.tolist():
            assert 0 < first <= length
            self.found.texts[self.names[number]] += bytes(data[offset : offset + length]).decode()
            self.found.counts[self.names[number]] += entries

    def bury(self, letter: DeadLetter) -> None:
        self.found.dead.append(letter)
