"""Streams under the fuzzer: bytes cut into items and answered, in columns and by the law, which must not differ."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from zlib import crc32

import numpy as np

from anabranch.branch.intake.entries import FeedOrigin, cuts, pack, unpack
from anabranch.columnar.scan.kernels import ItemColumns
from anabranch.columnar.scan.wanted import FrameLog, WantedColumns
from anabranch.stream.limits import Limits
from anabranch.stream.reading.lines import Cut
from anabranch.stream.reading.split import DocumentSplitter, LineSplitter
from columnar.json_records import HOSTILE
from columnar.looks import look_of
from columnar.near_misses import INSIDE, OUTSIDE, RAW
from columnar.scanned import LONGEST, check_scanned, scan_one, scanned
from columnar.streams import FRONT, NUMBERS, SHAPES, TEXTS, USUAL, Stream, check_by_law, item_queries
from fuzzing.target import Target

_XML = item_queries(
    {
        "more": 'for $p in stream("s")/root/p where $p/z > 2.5 return <hit>{ $p/a/x, $p/z }</hit>',
        "text": 'for $p in stream("s")/root/p where $p/a/y = "abc" return $p',
        "sum": 'for $p in stream("s")/root/p return <n at="{ $p/z }">{ $p/a/x + $p/z }</n>',
        "parts": 'for $p in stream("s")/root/p where $p/@k = "v" or starts-with($p/a/y, "ab") '
        "return <c>{ count($p/a/x) }</c>",
    }
)
_JSON = item_queries(
    {
        "more": 'for $p in stream("s")/root/item where $p/z > 2.5 return <hit>{ $p/a/x, $p/z }</hit>',
        "text": 'for $p in stream("s")/root/item where $p/a/y = "abc" return $p',
        "many": 'for $p in stream("s")/root/item return <n>{ count($p/list), sum($p/list) }</n>',
    }
)
_RECORD = '{"a": {"x": %s, "y": %s}, "z": %s, "list": [1, 2]}\n'
_JSON_FRONT = (_RECORD % ("1.5", '"abc"', "2")).encode() * 3
_LIMITS = Limits(item_bytes=2_000, depth=20, nodes=200, attributes=8)
_ITEM = USUAL.format(x="1", y="abc", z="2").encode()


def _answered(stream: Stream, front: bytes, behind: bytes = b"") -> Callable[[bytes], None]:
    def check(data: bytes) -> None:
        check_by_law(stream, front + data + behind, Random(crc32(data)))

    return check


def _taken_apart(data: bytes) -> None:
    """The scanner of single items against a walk through the item's tree."""
    look = look_of(_ITEM, b"<p k='v'><a><x>1</x><x>2</x><y/></a><z>2</z></p>")
    parts = [number for number, part in enumerate(look.parts) if part.has_text]
    wanted = WantedColumns.of(look, [*parts, *(~part for part in parts)], parts)
    for line in data.split(b"\n"):
        if line:
            item = _first_item(line, wanted)
            check_scanned(item, wanted, scanned(item, wanted, b"", b"<"))


def _first_item(line: bytes, wanted: WantedColumns) -> bytes:
    """What the scanner takes of a line: an item ends at its own tag, whatever follows; all of it if it takes none."""
    columns, log = ItemColumns.room(len(wanted.columns), 1), FrameLog.room(len(wanted.frames), LONGEST)
    end = scan_one(np.frombuffer(line, np.uint8), 0, len(line), LONGEST, wanted.guide, columns, log, 0)
    return line if end < 0 else line[:end]


def _splits(split: Callable[[Limits], DocumentSplitter | LineSplitter]) -> Callable[[bytes], None]:
    """Cuts do not depend on how bytes come, another goes on from a carry, and feeds give back what was packed."""

    def check(data: bytes) -> None:
        whole = split(_LIMITS)
        law = [*whole.feed(data), *whole.finish()]
        random = Random(crc32(data))
        places = sorted(random.randint(0, len(data)) for _ in range(3))
        fed, found = split(_LIMITS), list[Cut]()
        for first, last in zip((0, *places), (*places, len(data)), strict=True):
            found += fed.feed(data[first:last])
        assert [*found, *fed.finish()] == law
        assert fed.carry == whole.carry
        origin = FeedOrigin("s", 0, "f", None)
        assert (origin, law) == _through_a_feed(origin, law)

    return check


def _through_a_feed(origin: FeedOrigin, given: list[Cut]) -> tuple[FeedOrigin, list[Cut]]:
    found, table = unpack(pack(origin, given))
    return found, list(cuts(table))


_XML_SEEDS = [
    *(shape.format(x="4.5", y="abc", z="3").encode() + b"\n" for shape in SHAPES),
    *(USUAL.format(x=number, y="abc", z=number).encode() + b"\n" for number in NUMBERS),
    *(USUAL.format(x="1", y=text, z="2").encode() + b"\n" for text in TEXTS),
]
_XML_WORDS = [*(each.encode() for each in (*INSIDE, *OUTSIDE)), *RAW, _ITEM]
_JSON_SEEDS = [
    *((_RECORD % (number, '"abc"', number)).encode() for number in ("0", "-0", "1.5", "1e3", "12345678901234567890")),
    *((_RECORD % ("1", text, "3")).encode() for text in ('"a\\u0041\\ud83d\\ude00"', '"<&>"', "null", "[]", "{}")),
    b'{"@k": "v", "$at": 5, "z": 3}\n',
    b'{"a": [[{"x": 1}, {}], [[1], []]], "z": [[2]], "list": [[1, 2], []]}\n',
    b'{"a": [{"x": 1, "y": "b"}, {"x": 2}], "z": "7"}\r\n',
]  # fmt: skip
TARGETS = [
    Target("lines of XML", _answered(Stream(_XML, limits=_LIMITS), FRONT.encode()), _XML_SEEDS, _XML_WORDS),
    Target(
        "a document of XML",
        _answered(Stream(_XML, "document", limits=_LIMITS), b"<root>" + FRONT.encode(), b"</root>"),
        _XML_SEEDS,
        [*_XML_WORDS, b"</root>", b"<root>", b"<!DOCTYPE root>", b"<?xml version='1.0'?>"],
    ),
    Target("lines of JSON", _answered(Stream(_JSON, "json", limits=_LIMITS), _JSON_FRONT), _JSON_SEEDS, HOSTILE),
    Target("an item of XML", _taken_apart, _XML_SEEDS, _XML_WORDS),
    Target("split lines", _splits(LineSplitter), _XML_SEEDS, _XML_WORDS),
    Target(
        "a split document",
        _splits(DocumentSplitter),
        [b"<root>" + each + b"</root>" for each in _XML_SEEDS],
        [*_XML_WORDS, b"</root>", b"<root>", b"\xef\xbb\xbf", b"<?xml version='1.0' encoding='latin-1'?>"],
    ),
]
