"""Whoever calls an item good without parsing it alone must call good what a parser would accept alone, and no more."""

from __future__ import annotations

from random import Random
from xml.parsers import expat

import pytest

from anabranch.columnar.items import untemplated
from anabranch.columnar.scan.shred import Shredder
from anabranch.columnar.scan.wanted import WantedColumns
from anabranch.stream.limits import Limits
from anabranch.stream.reading.lines import Carry, LineSplitter
from anabranch.stream.reading.reader import Format
from columnar.looks import look_of
from columnar.near_misses import INSIDE, OUTSIDE, RAW, near_miss
from columnar.streams import FRONT, USUAL, Stream, item_queries
from mass import Mass

LIMITS = Limits()
AT_A_TIME = 2_500
ITEM = USUAL.format(x="1", y="abc", z="2").encode()
QUERIES = item_queries(
    {
        "some": 'for $p in stream("s")/root/p where $p/z > 50 return <hit>{ $p/a/x }</hit>',
        "none": 'for $p in stream("s")/root/p where $p/a/x > 1000000 return $p',
    }
)


def accepted(line: bytes) -> bool:
    """Whether expat takes a line for one element, alone; a document type is not allowed (`stream/reading/parse.py`)."""

    def refuse(*_: object) -> None:
        raise ValueError

    parser = expat.ParserCreate("utf-8")
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(line, True)
    except (expat.ExpatError, ValueError):
        return False
    return b"\0" not in line  # which expat takes for UTF-16


def called_good(lines: list[bytes]) -> list[bool]:
    """What the compiled path says of lines that are judged together."""
    look = look_of(ITEM)
    first, _, third, *_ = (number for number, part in enumerate(look.parts) if part.has_text)
    wanted = WantedColumns.of(look, [first, third], [first, third])
    data = b"".join(line + b"\n" for line in lines)
    found: list[bool] = []
    for shredded in Shredder(LineSplitter(LIMITS, Carry(100)), LIMITS).feed(data, wanted):
        found += (shredded.fits | untemplated.fill(shredded, LIMITS)).tolist()
    return found


def difference(line: bytes, good: bool) -> bool:
    """Whether the judge is wrong; where namespaces or byte order marks may be at work it may leave a line to others."""
    if good:
        return not accepted(line)
    left_alone = any(sign in line for sign in (b":", b"mln", b"\xef\xbb\xbf"))
    return not left_alone and accepted(line)


def differences(lines: list[bytes]) -> list[bytes]:
    lines = [line for line in lines if line.strip()]  # a blank line is no entry
    return [line for line, good in zip(lines, called_good(lines), strict=True) if difference(line, good)]


@pytest.mark.mass
def test_what_may_stand_before_inside_and_behind_an_item() -> None:
    """Each construct at each place of an item, among good items: called good where expat accepts that line alone."""
    places = [at for at in range(len(ITEM) + 1) if at in (0, len(ITEM)) or ITEM[at : at + 1] == b"<" or at % 7 == 0]
    pieces = [*(each.encode() for each in INSIDE), *RAW]
    lines = [ITEM[:at] + piece + ITEM[at:] for piece in pieces for at in places]
    lines += [each.encode() + ITEM + other.encode() for each in OUTSIDE for other in OUTSIDE]
    for first in range(0, len(lines), 50):
        # few together, so that most are judged with others and not one by one behind a fault
        assert differences(lines[first : first + 50]) == []
    good = [line for line in lines if accepted(line)]
    assert len(good) > 500
    assert differences(good) == []
    for line in (line for line in lines if line.strip() and not accepted(line)):
        assert called_good([good[0], line, good[0]]) == [True, False, True]


def test_the_judge_against_expat_item_by_item(mass: Mass) -> None:
    """No line is called good that expat refuses alone, nor the other way round, whatever lines are judged with it.

    100,000 lines, 2,500 of them a case.
    """
    good = between = lines_seen = 0
    for number in mass.cases(100_000 // AT_A_TIME):
        random = Random(f"{mass.seed} {number}")
        lines = [near_miss(random) for _ in range(AT_A_TIME)]
        lines_seen += AT_A_TIME
        fine = [line for line in lines if accepted(line)]
        good += len(fine)
        wrong = differences(lines)
        # Of so many some are bad whatever is around them, and all are judged one by one; so those that a parser accepts
        # between others are also judged with fine ones only.
        hidden = [line for line in lines if not accepted(line) and accepted(b"<all>%s%s</all>" % (ITEM, line))]
        wrong += [line for line in hidden if line.strip() and called_good([fine[0], line])[1]]
        between += len(hidden)
        assert not wrong, f"{min(wrong, key=len)!r}, one of {len(wrong)}"
    assert lines_seen // 10 < good < lines_seen * 9 // 10
    assert between > lines_seen // 100


@pytest.mark.parametrize("form", ["lines", "document", "json"])
def test_near_misses_are_answered_as_by_law(form: Format, mass: Mass) -> None:
    """Answers, dead letters, items and counts of streams of near misses are the law's, in every format."""
    for number in mass.cases(8):
        random = Random(f"{mass.seed} {number}")
        lines = b"".join(near_miss(random) + b"\n" + FRONT.encode() * (random.random() < 0.1) for _ in range(300))
        data = FRONT.encode() + lines
        data = b"<root>" + data + b"</root>" if form == "document" else data
        data = b'{"a": 1}\n' + data if form == "json" else data
        stream = Stream(QUERIES, form)
        found, _ = stream.by_columns([data[:9_000], data[9_000:]])
        assert found == stream.by_law(data)
