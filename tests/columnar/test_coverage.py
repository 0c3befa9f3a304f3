"""What columns answer is counted: how items were read, which queries were left to the law, and by which construct."""

from __future__ import annotations

from anabranch.columnar.items.coverage import Coverage, ReadCounts
from anabranch.columnar.scan.shred import Shredder
from anabranch.stream.elements import Item
from anabranch.stream.reading.lines import Cut
from columnar.streams import Stream, _Out, answer_piece, item_queries

ASKED = {
    "usual": 'for $p in stream("s")/root/p where $p/v > 2 return <a>{ $p/v }</a>',
    "other": 'for $p in stream("s")/root/p where $p/w > 2 return <a>{ $p/w }</a>',
    "parent": 'for $p in stream("s")/root/p return $p/v/following-sibling::w',
    "again": 'for $p in stream("s")/root/p where exists($p/w/following-sibling::x) return $p/v',
    "spaced": 'declare namespace n = "u"; for $p in stream("s")/root/p return $p/n:v',
}


def _counts(stream: Stream, *pieces: bytes) -> tuple[ReadCounts, Coverage]:
    answers, out = stream.answers(), _Out([*stream.queries])
    reader, shredder = stream.reader(), Shredder(stream.splitter(), stream.limits)

    def read(cut: Cut) -> Item | None:
        (element,) = reader.elements([cut], "f")
        return element if isinstance(element, Item) else None

    found = (answer_piece(answers, shredder, piece, read, out) for piece in (*pieces, None))
    return sum(found, ReadCounts()), answers.coverage


def test_items_are_counted_by_the_way_they_were_read() -> None:
    """By template, by the scanner, and by the parser; what is bad is no item."""
    usual = b"".join(b"<p><v>%d</v></p>\n" % number for number in range(10))
    others = b"<p> <v>3</v></p>\n<p><v>3</v><unknown/></p>\nbad\n<p><v>1</v><!-- c --></p>\n"
    counts, _ = _counts(Stream(item_queries({"usual": ASKED["usual"]})), usual, others)
    assert (counts.items, counts.by_template, counts.by_scanner, counts.by_parser) == (13, 10, 1, 2)


def test_blank_pieces_do_not_delay_what_is_learned_of_items() -> None:
    """A process that was given nothing in many epochs reads the first items that come by their look."""
    usual = b"".join(b"<p><v>%d</v></p>\n" % number for number in range(10))
    counts, _ = _counts(Stream(item_queries({"usual": ASKED["usual"]})), *[b"\n"] * 9, usual)
    assert (counts.by_template, counts.by_parser) == (10, 0)


def test_pairs_that_columns_cannot_settle_are_counted() -> None:
    """A text that is no number makes a comparison fail: the law has to say so, to each query that asks."""
    queries = item_queries({str(each): ASKED["usual"].replace("2", str(each)) for each in range(3)})
    usual = b"".join(b"<p><v>%d</v></p>\n" % number for number in range(10))
    assert _counts(Stream(queries), usual)[0].unclear == 0
    assert _counts(Stream(queries), usual, b"<p><v>n/a</v></p>\n")[0].unclear == 3


def test_subscriptions_that_the_law_answers_are_counted_by_their_reasons() -> None:
    """Those in columns, and the constructs that are to blame for the others."""
    _, coverage = _counts(Stream(item_queries(ASKED)), b"<p><v>1</v><w>2</w></p>\n" * 5)
    assert coverage.in_columns == 3
    assert coverage.by_law == 2
    assert coverage.reasons == {"a step along the following-sibling axis": 2}


def test_without_items_nothing_is_known() -> None:
    """Before the first item all is the law's."""
    _, coverage = _counts(Stream(item_queries(ASKED)))
    assert (coverage.in_columns, coverage.by_law) == (0, 5)
