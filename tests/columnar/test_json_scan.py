"""Records that the compiled scanner takes are the items of the law, to the byte, and it takes all that are plain."""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

import numpy as np
import pytest

from anabranch.columnar.scan import json_scan
from anabranch.columnar.scan.decoded import CANONICAL, WITH_SIGNS, DecodedTexts
from anabranch.columnar.scan.json_record import ITEM_ROOM, LONGEST_ITEM, NO_ROOM, REFUSED, new_state
from anabranch.columnar.scan.kernels import ABSENT, MOST_DIGITS, UNCLEAR, Bytes, ItemColumns
from anabranch.columnar.scan.look import Look, PartColumn
from anabranch.columnar.scan.wanted import FrameLog, WantedColumns
from anabranch.errors import BadItem
from anabranch.stream.elements import Item, Place
from anabranch.stream.limits import Limits
from anabranch.stream.reading import json_items
from anabranch.stream.reading.json_names import step_of_key
from anabranch.stream.serialize import escape_attribute, escape_text, serialize
from anabranch.stream.tree import Element, string_value
from columnar.json_records import HOSTILE, Writer, edited, random_shape
from columnar.scanned import SIGNS, is_plain, room_for_texts, span_of, with_signs
from mass import Mass, some

LIMITS = Limits()
PLACE = Place("s", "p", 0)
_KEYS = re.compile(r'"(?:[^"\\]|\\.)*"(?=[ \t\r]*:)')
_SIMPLE = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)\Z")


# --- the law ----------------------------------------------------------------------------------------------------


def by_law(line: bytes) -> Element | None:
    """The item in a line; None where there is none."""
    try:
        found = json_items.parse_line(line, PLACE, LIMITS, "item")
    except BadItem:
        return None
    return found.tree if isinstance(found, Item) and found.at is None else None


class Pairs(list[tuple[str, object]]):
    """An object of JSON, its keys in order."""


class Bare(str):
    """A number or a truth value."""


@dataclass
class Judge:
    """Says which of the lines that are items by law have to be taken."""

    look: Look
    parts: dict[tuple[int, str], int] = field(init=False)

    def __post_init__(self) -> None:
        self.parts = {(part.parent, part.name): number for number, part in enumerate(self.look.parts)}

    def takes(self, line: bytes) -> bool:
        text = line.decode()
        try:
            if any(key != json.dumps(json.loads(key), ensure_ascii=False) for key in _KEYS.findall(text)):
                return False
        except ValueError:
            return False  # what looked like a key lies between two strings
        return self._takes(json.loads(text, object_pairs_hook=Pairs, parse_int=Bare, parse_float=Bare), 0)

    def _takes(self, value: object, part: int) -> bool:
        if isinstance(value, Pairs):
            return self._takes_object(value, part)
        if isinstance(value, list):
            inner = self.parts.get((part, "member"))
            if inner is None or (len(value) > 1 and not self.look.parts[inner].repeated):
                return not value
            return all(self._takes(each, inner) for each in value)
        text = value if isinstance(value, str) else "" if value is None else "true"
        found = self.look.parts[part]
        return (not text or (found.has_text and found.json_type != "null")) and "\r" not in text

    def _takes_object(self, pairs: Pairs, around: int) -> bool:
        only_attributes = True
        for key, value in pairs:
            part = self.parts.get((around, step_of_key(key)))
            if part is None:
                return False
            if key.startswith("@"):
                if not only_attributes or not self._takes(value, part):
                    return False
                continue
            values = value if isinstance(value, list) and not isinstance(value, Pairs) else [value]
            only_attributes = only_attributes and not values
            if len(values) > 1 and not self.look.parts[part].repeated:
                return False
            if not all(self._takes(each, part) for each in values):
                return False
        return True


def number_in(text: str) -> float:
    """The number that columns hold for a text."""
    digits = re.sub(r"[^0-9]", "", text)
    small = len(digits) <= 18 and len(digits.lstrip("0")) <= MOST_DIGITS
    return float(text) if _SIMPLE.match(text) and small else math.nan


@dataclass
class Expected:
    """What has to be known of an item: by column the spans, and the rows of frames with the spans in them."""

    wanted: WantedColumns
    entry: int
    written: bytearray = field(default_factory=bytearray)
    columns: dict[PartColumn, tuple[int, int]] = field(default_factory=dict)
    opened: Counter[tuple[int, int, int]] = field(default_factory=Counter)
    """Frame, row, row around."""
    spans: dict[tuple[int, int, PartColumn], tuple[int, int]] = field(default_factory=dict)
    """By frame, row and column."""

    def take(self, element: Element, part: int, row: int, counts: Counter[int]) -> None:
        """Write an element as `serialize` does, and note where everything is."""
        look = self.wanted.look
        numbers = {look.parts[each].name: each for each in look.children(part)}
        begin = len(self.written)
        self.written += f"<{element.name.local}".encode()
        for attribute in element.attributes:
            self.written += f' {attribute.name.local}="'.encode()
            start = len(self.written)
            self.written += escape_attribute(attribute.value).encode()
            number, span = numbers[f"@{attribute.name.local}"], (start, len(self.written))
            self._note(number, row, span if is_plain(attribute.value) else with_signs(attribute.value.encode()))
            self._note(~number, row, span)
            self.written += b'"'
        self.written += b">" if element.children else b"/>"
        start = len(self.written)
        children = [each for each in element.children if isinstance(each, Element)]
        for child in children:
            number = numbers[child.name.local]
            inner = row
            if look.parts[number].repeated:
                frame = self.wanted.frames.index(number) + 1
                inner = counts[frame]
                counts[frame] += 1
                self.opened[frame, inner, row] += 1
            self.take(child, number, inner, counts)
        text = string_value(element)
        if element.children and not children:
            self.written += escape_text(text).encode()
        span = (start, len(self.written)) if is_plain(text) else with_signs(text.encode())
        self._note(part, row, (UNCLEAR, UNCLEAR) if children else span)
        if element.children:
            self.written += f"</{element.name.local}>".encode()
        self._note(~part, row, (begin, len(self.written)))

    def _note(self, column: PartColumn, row: int, span: tuple[int, int]) -> None:
        if column not in self.wanted.rows:
            return
        frame = self.wanted.look.frames[column if column >= 0 else ~column]
        if frame < 0:
            self.columns[column] = span
        else:
            self.spans[self.wanted.frames.index(frame) + 1, row, column] = span


# --- the scanner ------------------------------------------------------------------------------------------------


@dataclass
class Scan:
    """What a scanner made of some lines."""

    wanted: WantedColumns
    data: bytes
    columns: ItemColumns
    log: FrameLog
    out: bytes
    decoded: DecodedTexts

    def line(self, entry: int) -> bytes:
        return self.data[self.columns.begins[entry] : self.columns.finishes[entry]]


def scanned(
    wanted: WantedColumns, data: bytes, *, longest: int = LONGEST_ITEM, log: int = 1 << 16, most: int = 1 << 12
) -> Iterator[Scan]:
    """Scan all lines, in as many steps as that takes."""
    given, at = np.frombuffer(data, np.uint8), 0
    while at < len(data):
        columns = ItemColumns.room(len(wanted.columns), most)
        frame_log = FrameLog.room(len(wanted.frames), log)
        out = np.zeros(ITEM_ROOM + 2 * len(data), np.uint8)
        decoded = room_for_texts(len(data), most)._replace(base=len(out))
        before = at
        count, at, end = json_scan.cut_lines(
            given, at, len(data), wanted.guide, longest, columns, frame_log, decoded, 0, most, out, 0
        )
        assert at > before, "it always goes on"
        yield Scan(wanted, data, columns.first(count), frame_log, out[:end].tobytes(), decoded)


def check(scan: Scan) -> None:
    """All that was taken is as it should be."""
    columns, log, wanted = scan.columns, scan.log, scan.wanted
    opened: Counter[tuple[int, int, int]] = Counter()
    spans: dict[tuple[int, int, PartColumn], tuple[int, int]] = {}
    counts: Counter[int] = Counter()
    out_at = 0
    for entry in np.flatnonzero(columns.fits).tolist():
        line = scan.line(entry)
        tree = by_law(line)
        assert tree is not None, line
        expected = Expected(wanted, entry)
        expected.written += scan.out[:out_at]  # so that places are those in all of it
        expected.take(tree, 0, entry, counts)
        item = bytes(expected.written[out_at:])
        assert item == serialize(tree).encode(), line
        assert scan.out[out_at : out_at + len(item)] == item, line
        out_at += len(item)
        opened += expected.opened
        spans |= expected.spans
        for row, column in enumerate(wanted.columns):
            found = span_of(int(columns.starts[row, entry]), int(columns.ends[row, entry]), 0, scan.decoded)
            span = expected.columns.get(column, (ABSENT, ABSENT))
            assert same_span(found, span), (line, column)
            if wanted.numeric[row]:
                number = number_in(scan.out[slice(*found)].decode()) if found[0] >= 0 else math.nan
                assert repr(float(columns.values[row, entry])) == repr(number), (line, column)
        has_signs = any(start == SIGNS for start, _ in (*expected.columns.values(), *expected.spans.values()))
        assert scan.decoded.marks[entry] == (WITH_SIGNS if has_signs else CANONICAL), line
    assert out_at == len(scan.out)
    check_log(wanted, log, scan.decoded, opened, spans)


def check_log(
    wanted: WantedColumns,
    log: FrameLog,
    decoded: DecodedTexts,
    opened: Counter[tuple[int, int, int]],
    spans: dict[tuple[int, int, PartColumn], tuple[int, int]],
) -> None:
    rows: Counter[int] = Counter()
    found: Counter[tuple[int, int, int]] = Counter()
    for frame, around in log.opened[: log.counts[0]].tolist():
        found[frame, rows[frame], around] += 1
        rows[frame] += 1
    assert found == opened
    assert log.counts[2:].tolist() == [rows[frame] for frame in range(1, len(wanted.frames) + 1)]
    logged: dict[tuple[int, int, PartColumn], list[tuple[int, int]]] = defaultdict(list)
    for row, frame_row, start, end in log.spans[: log.counts[1]].tolist():
        column = wanted.columns[row]
        frame = int(wanted.guide.frames[column if column >= 0 else ~column])
        logged[frame, frame_row, column].append(span_of(start, end, 0, decoded))
    assert logged.keys() == spans.keys()
    for key, [span] in logged.items():
        assert same_span(span, spans[key])


def same_span(found: tuple[int, int], expected: tuple[int, int]) -> bool:
    """An empty text may stand anywhere."""
    is_empty = found[0] == found[1] >= 0 and expected[0] == expected[1] >= 0
    return is_empty or found == expected


def steps_of(look: Look) -> list[int]:
    """The parts that are no typed parts."""
    return [number for number, part in enumerate(look.parts) if not part.is_typed]


def everything(look: Look) -> WantedColumns:
    parts = steps_of(look)
    return WantedColumns.of(look, [*parts, *(~part for part in parts)], parts)


def some_of(look: Look, random: Random) -> WantedColumns:
    parts = [part for part in steps_of(look) if random.random() < 0.5]
    return WantedColumns.of(look, [part if random.random() < 0.5 else ~part for part in parts], parts[:3])


def learned(lines: list[bytes]) -> Look:
    look = Look.learn([(line, tree) for line in lines if (tree := by_law(line)) is not None], is_json=True)
    assert look is not None
    return look


def check_lines(lines: list[bytes], look: Look, wanted: WantedColumns) -> tuple[int, int]:
    """Compare lines with the law; how many there were, and how many were taken."""
    judge = Judge(look)
    seen = taken = 0
    for scan in scanned(wanted, b"".join(line + b"\n" for line in lines)):
        check(scan)
        seen += len(scan.columns.fits)
        taken += int(scan.columns.fits.sum())
        for entry in np.flatnonzero(~scan.columns.fits).tolist():
            line = scan.line(entry)
            line = line.removesuffix(b"\r")
            may_be_left = line.endswith(b"\r") or by_law(line) is None
            assert may_be_left or not judge.takes(line), line
    assert seen == sum(not line.isspace() for line in lines if line)
    return seen, taken


def check_stream(random: Random, count: int, *, edits: bool) -> tuple[int, int]:
    shape = random_shape(random)
    plain = [Writer(random, loose=random.random() < 0.5).record(shape) for _ in range(count)]
    look = learned(plain)
    lines = plain
    if edits:
        odd = [Writer(random, 0.1, loose=random.random() < 0.5).record(shape) for _ in range(count // 4)]
        lines = odd + [edited(line, random) if random.random() < 0.9 else line for line in plain]
        random.shuffle(lines)
    lines = [line + b"\r" if random.random() < 0.1 else line for line in lines]
    wanted = everything(look) if random.random() < 0.7 else some_of(look, random)
    return check_lines(lines, look, wanted)


def transcoded(
    wanted: WantedColumns, data: Bytes, stop: int, columns: ItemColumns, log: FrameLog, out: Bytes, out_at: int
) -> int:
    """Where the item ends that is made of the first bytes."""
    state = new_state(wanted.guide)
    decoded = room_for_texts(len(data), 1)._replace(base=len(out))
    return json_scan.transcode(data, 0, stop, wanted.guide, columns, log, decoded, 0, out, out_at, state)


# --- tests ------------------------------------------------------------------------------------------------------


def scan_one(line: bytes, look: Look) -> bytes | None:
    """The item that is made of one line, None where it is left to the law."""
    [scan] = scanned(everything(look), line + b"\n")
    check(scan)
    return scan.out if scan.columns.fits[0] else None


INNER = b'{"@k": 1, "x": 1, "l": [{"y": 1, "z": [1, 2]}, {"@q": 1}]}'
LOOK = learned([b'{"@id": 1, "a": 1, "b": [1, 2], "o": %s, "e": {"@m": 1}}' % INNER])


@pytest.mark.parametrize(
    ("line", "item"),
    [
        ('{"a": 1.50}', "<item><a>1.50</a></item>"),
        ("{}", "<item/>"),
        (' {\t"a" :\r1 } ', "<item><a>1</a></item>"),
        ('{"a": null, "@id": 1}', None),
        ('{"@id": null, "a": null}', '<item id=""><a/></item>'),
        ('{"a": ""}', "<item><a/></item>"),
        ('{"a": true, "b": false}', "<item><a>true</a><b>false</b></item>"),
        ('{"b": []}', "<item/>"),
        ('{"b": [1, "x", null]}', "<item><b>1</b><b>x</b><b/></item>"),
        ('{"b": 1}', "<item><b>1</b></item>"),
        ('{"a": [1]}', "<item><a>1</a></item>"),
        ('{"a": []}', "<item/>"),
        ('{"a": [1, 2]}', None),
        ('{"b": [[1]]}', None),
        ('{"b": [1,]}', None),
        ('{"b": [,1]}', None),
        ('{"b": [1}', None),
        ('{"a": 1]', None),
        ('{"a": 1,}', None),
        ('{"a" 1}', None),
        ('{"a": }', None),
        ('{"a": 1} x', None),
        ('{"a": 1}{}', None),
        ("[]", None),
        ("1", None),
        ('{"a": 1, "a": 1}', None),
        ('{"a": [], "a": 1}', None),
        ('{"zz": 1}', None),
        ('{"\\u0061": 1}', None),
        ('{"$at": 1}', None),
        ('{"@id": [1]}', None),
        ('{"@id": {}}', None),
        ('{"a": {}}', "<item><a/></item>"),
        ('{"a": {"x": 1}}', None),
        ('{"e": {"@m": "y"}}', '<item><e m="y"/></item>'),
        ('{"e": "y"}', "<item><e>y</e></item>"),
        ('{"o": 1}', None),
        ('{"o": null}', "<item><o/></item>"),
        ('{"o": {"x": 1, "@k": 2}}', None),
        ('{"o": {"l": [], "@k": 2}}', '<item><o k="2"/></item>'),
        ('{"o": {"l": [{"y": 1}, {"z": 2}, {}]}}', "<item><o><l><y>1</y></l><l><z>2</z></l><l/></o></item>"),
        ('{"a": "\\u00e4\\/\\\\\\ud83d\\ude00"}', "<item><a>ä/\\😀</a></item>"),
        ('{"a": "\\ud83d"}', None),
        ('{"a": "\\ude00\\ud83d"}', None),
        ('{"a": "\\n"}', "<item><a>\n</a></item>"),
        ('{"a": "\\""}', '<item><a>"</a></item>'),
        ('{"a": "\\u003c&"}', "<item><a>&lt;&amp;</a></item>"),
        ('{"@id": "a\\"<>&\\t"}', '<item id="a&quot;&lt;>&amp;&#x9;"/>'),
        ('{"a": "\\r"}', None),
        ('{"a": "\\b"}', None),
        ('{"a": "x', None),
        ('{"a": "\\', None),
        ('{"a": 01}', None),
        ('{"a": 1.}', None),
        ('{"a": .5}', None),
        ('{"a": +1}', None),
        ('{"a": -}', None),
        ('{"a": 1e}', None),
        ('{"a": NaN}', None),
        ('{"a": nul}', None),
        ('{"a": -1.5E-07}', "<item><a>-1.5E-07</a></item>"),
        ("", None),
    ],
)
def test_corners(line: str, item: str | None) -> None:
    """What is taken and what is left to the law, case by case."""
    if not line:
        assert list(scanned(everything(LOOK), b"")) == []
        return
    found = scan_one(line.encode(), LOOK)
    assert found == (None if item is None else item.encode())


NESTED = learned([b'{"n": [[[1, 2], []], []], "m": [[{"x": 1}]], "k": [[3, 4], [5]], "t": ["x", [["y"]], "z"]}'])


@pytest.mark.parametrize(
    ("line", "item"),
    [
        ('{"k": [[7]]}', "<item><k><member>7</member></k></item>"),
        ('{"k": [[ 7 ,8] , [ ] ]}', "<item><k><member>7</member><member>8</member></k><k/></item>"),
        ('{"k": [[null, "<"]]}', "<item><k><member/><member>&lt;</member></k></item>"),
        ('{"k": {"member": [7]}}', "<item><k><member>7</member></k></item>"),
        ('{"k": [{"member": 7}, [7]]}', "<item><k><member>7</member></k><k><member>7</member></k></item>"),
        ('{"k": [[7], null]}', "<item><k><member>7</member></k><k/></item>"),
        ('{"n": [[[7]], [[], []]], "k": []}', "<item><n><member><member>7</member></member></n>"
         "<n><member/><member/></n></item>"),
        ('{"m": [[{"x": 7}, {}], []]}', "<item><m><member><x>7</x></member><member/></m><m/></item>"),
        ('{"t": [[], "y"]}', "<item><t/><t>y</t></item>"),
        ('{"t": [["y"]]}', None),  # texts are usual there
        ('{"k": [7]}', None),
        ('{"k": [[[7]]]}', None),
        ('{"k": [[{}, []]]}', "<item><k><member/><member/></k></item>"),
        ('{"m": [[{"y": 7}]]}', None),
        ('{"k": [[7,]]}', None),
        ('{"k": [[,7]]}', None),
        ('{"k": [[7 8]]}', None),
        ('{"k": [[7}]}', None),
        ('{"k": [[7]}', None),
        ('{"k": [[7]]', None),
        ('{"k": [[7]]]}', None),
        ('{"k": [["member": 7]]}', None),
        ('{"k": [{"member": [7]]}', None),
        ('{"k": [{"member": 7, [7]}]}', None),
        ('{"k": [[', None),
        ('{"k": [[]', None),
    ],
)  # fmt: skip
def test_arrays_in_arrays(line: str, item: str | None) -> None:
    """They are written as objects with a key `member` would be, which is what the law makes of them."""
    assert scan_one(line.encode(), NESTED) == (None if item is None else item.encode())


def test_every_front_of_a_record_is_left_to_the_law() -> None:
    """Whatever follows in memory: a record ends where it is said to end."""
    line = b'{"@id": "\xc3\xa4", "a": -1.5e+7, "b": [true, null, "\\ud83d\\ude00x"], "o": {"l": [{"y": "eight888"}]}}'
    wanted = everything(LOOK)
    columns, log = ItemColumns.room(len(wanted.columns), 1), FrameLog.room(len(wanted.frames), 100)
    out = np.zeros(ITEM_ROOM, np.uint8)
    for stop in range(len(line) + 1):
        for data in (line, line[:stop], line[:stop] + b'"' * 9, line[:stop] + b"x}" * 9):
            given = np.frombuffer(data, np.uint8)
            end = transcoded(wanted, given, stop, columns, log, out, 0)
            assert (end > 0) == (stop == len(line))
            assert end > 0 or log.counts.tolist() == [0] * len(log.counts)


def test_nothing_is_written_behind_the_room() -> None:
    """A record that has no room is left to the law, and no byte behind the room changes."""
    line = b'{"@id": "abcdefghijk", "a": "\\u00e4\\u00e4", "b": ["eight888", 1], "o": {"l": [{"y": "x"}], "x": null}}'
    wanted = everything(LOOK)
    tree = by_law(line)
    assert tree is not None
    item = serialize(tree).encode()
    given = np.frombuffer(line, np.uint8)
    for size in range(len(item) + 20):
        columns, log = ItemColumns.room(len(wanted.columns), 1), FrameLog.room(len(wanted.frames), 100)
        room = np.full(len(item) + 100, 7, np.uint8)
        end = transcoded(wanted, given, len(line), columns, log, room[: size + 3], 3)
        assert (room[:3] == 7).all()
        assert (room[size + 3 :] == 7).all()
        assert end == (len(item) + 3 if size >= len(item) + 8 else REFUSED)


def test_items_of_more_bytes_than_allowed_are_left_to_the_law() -> None:
    """Names may make an item much longer than its record."""
    look = learned([b'{"abcdefghijklmnopqrstuvwxyz": [1, 2]}'])
    around = len("<item></item>")
    each = len("<abcdefghijklmnopqrstuvwxyz>1</abcdefghijklmnopqrstuvwxyz>")
    most = (LONGEST_ITEM - around) // each
    for count in (most - 1, most, most + 1):
        line = b'{"abcdefghijklmnopqrstuvwxyz": [%s]}' % b",".join([b"1"] * count)
        assert (scan_one(line, look) is not None) == (count <= most)


def test_a_full_log_ends_a_step() -> None:
    """What has no room in the log comes with the next; what an empty log cannot hold is left to the law."""
    lines = [b'{"b": [%s]}' % b",".join([b"1"] * count) for count in (1, 2, 3, 4, 5, 6, 20, 1, 0, 7)]
    wanted = everything(LOOK)
    fits: list[bool] = []
    steps = 0
    for scan in scanned(wanted, b"\n".join(lines) + b"\n", log=14):
        check(scan)
        fits += scan.columns.fits.tolist()
        steps += 1
    assert fits == [True] * 6 + [False] + [True] * 3
    assert 3 < steps < len(lines)
    log = FrameLog.room(len(wanted.frames), 10)
    columns, out = ItemColumns.room(len(wanted.columns), 1), np.zeros(ITEM_ROOM, np.uint8)
    given = np.frombuffer(lines[6], np.uint8)
    assert transcoded(wanted, given, len(given), columns, log, out, 0) == NO_ROOM
    assert not log.counts.any()


def test_lines() -> None:
    """Blank lines are nothing, a CR before the LF belongs to it, and long lines are left to the law."""
    blank = [b"", b"\r", b" \t\x0b\x0c\r"]
    lines = [b'{"a": 1}', *blank, b'{"a": 2}\r', b'{"a": 3}\r\r', b"\x1c", b'{"a": 333333}', *blank, b"{}"]
    [scan] = scanned(everything(LOOK), b"\n".join(lines) + b"\n", longest=10)
    check(scan)
    assert [scan.line(entry) for entry in range(len(scan.columns.fits))] == [
        b'{"a": 1}', b'{"a": 2}', b'{"a": 3}\r\r', b"\x1c", b'{"a": 333333}', b"{}"
    ]  # fmt: skip
    assert scan.columns.fits.tolist() == [True, True, False, False, False, True]


def test_few_entries_and_little_room_at_a_time() -> None:
    """The steps together give what one step gives."""
    lines = [b'{"a": %d, "b": [%d, 2]}' % (number, number) for number in range(40)]
    scans = list(scanned(everything(LOOK), b"\n".join(lines) + b"\n", most=7))
    for scan in scans:
        check(scan)
    assert [len(scan.columns.fits) for scan in scans] == [7, 7, 7, 7, 7, 5]
    [whole] = scanned(everything(LOOK), b"\n".join(lines) + b"\n")
    assert b"".join(scan.out for scan in scans) == whole.out
    wanted = everything(LOOK)
    columns, log = ItemColumns.room(len(wanted.columns), 100), FrameLog.room(len(wanted.frames), 1_000)
    out, given = np.zeros(ITEM_ROOM + 60, np.uint8), np.frombuffer(whole.data, np.uint8)
    decoded = room_for_texts(len(given), 100)._replace(base=len(out))
    count, at, end = json_scan.cut_lines(given, 0, len(given), wanted.guide, 100, columns, log, decoded, 0, 100, out, 0)
    assert (count, at, end) == (2, len(lines[0]) + len(lines[1]) + 2, whole.out.index(b"<item><a>2<"))
    again = json_scan.cut_lines(given, at, len(given), wanted.guide, 100, columns, log, decoded, 2, 100, out, end)
    assert again == (2, at, end)


def test_records_one_behind_the_other() -> None:
    """Records without line ends are taken as lines are; what has no room does not fit."""
    lines = [b'{"a": 1, "b": [1, 2]}', b"{}", b'{"zz": 1}', b'{"b": [1, 2, 3]}', b'{"a": 22222222222}', b'{"o": null}']
    wanted = everything(LOOK)
    ends = np.cumsum([len(line) for line in lines])
    given = np.frombuffer(b"".join(lines), np.uint8)
    columns, out = ItemColumns.room(len(wanted.columns), len(lines)), np.zeros(2 * ITEM_ROOM, np.uint8)
    log = FrameLog.room(len(wanted.frames), 4)
    decoded = room_for_texts(len(given), len(ends))._replace(base=len(out))
    end = json_scan.transcode_entries(given, ends, wanted.guide, 17, columns, log, decoded, out)
    assert columns.fits.tolist() == [False, True, False, False, False, True]
    log = FrameLog.room(len(wanted.frames), 8)
    end = json_scan.transcode_entries(given, ends, wanted.guide, 30, columns, log, decoded, out)
    assert columns.fits.tolist() == [True, True, False, False, True, True]
    check(Scan(wanted, given.tobytes(), columns, log, out[:end].tobytes(), decoded))


def test_limits() -> None:
    """No record that goes beyond a limit is taken, since one that is long enough to do so is too long."""
    assert json_scan.longest_line(LOOK, LIMITS) == LONGEST_ITEM
    assert json_scan.longest_line(LOOK, Limits(nodes=50)) == 50
    assert json_scan.longest_line(LOOK, Limits(item_bytes=70)) == 70
    assert json_scan.longest_line(LOOK, Limits(depth=4)) == LONGEST_ITEM
    assert json_scan.longest_line(LOOK, Limits(depth=3)) == 0
    wide = learned([b'{"@a": 1, "@b": 2}'])
    assert json_scan.longest_line(wide, Limits(attributes=2)) == LONGEST_ITEM
    assert json_scan.longest_line(wide, Limits(attributes=1)) == 0
    for count in range(1, 60):
        line = b'{"b":[%s]}' % b",".join([b"1"] * count)
        limits = Limits(nodes=len(line))
        assert isinstance(json_items.parse_line(line, PLACE, limits, "item"), Item)


def test_many_keys_in_every_order() -> None:
    """Keys are found wherever they stand, also those that begin like others."""
    random = Random(5)
    names = [f"key{number:03}" for number in range(300)] + ["key", "key0", "key00", "ke", "k"]
    lines = []
    for _ in some(range(50)):
        random.shuffle(names)
        entries = [f'"{name}": {random.randint(0, 9)}' for name in names if random.random() < 0.7]
        lines.append(("{" + ", ".join(entries) + "}").encode())
    look = learned(lines)
    assert check_lines(lines, look, everything(look)) == (len(lines), len(lines))


@pytest.mark.parametrize("seed", some(range(15)))
def test_plain_records_are_taken(seed: int) -> None:
    """All records of the look are taken, in whatever order and spelling; what is made of them is the law's."""
    seen, taken = check_stream(Random(seed), 40, edits=False)
    assert seen == 40
    assert taken > 0


@pytest.mark.parametrize("seed", some(range(15)))
def test_near_misses(seed: int) -> None:
    """What is taken is right, and what is left cannot be taken."""
    check_stream(Random(seed), 60, edits=True)


@pytest.mark.mass
def test_hostile_bytes_at_every_place() -> None:
    """Each of many pieces at each place of a record."""
    line = b'{"@id": 7, "a": "x\xc3\xa4y", "b": [1.5, null], "o": {"@k": true, "x": "eight888"}}'
    lines = [line[:at] + piece + line[at:] for piece in HOSTILE for at in range(len(line) + 1)]
    lines += [line[:at] + piece + line[at + 1 :] for piece in HOSTILE for at in range(len(line))]
    seen, taken = check_lines(lines, LOOK, everything(LOOK))
    assert seen // 20 < taken < seen // 2


def test_records_by_law(mass: Mass) -> None:
    """400 streams of 500 records each: plain ones are all taken, and rightly.

    Where texts and arrays in arrays stand under one key, only the usual of these are.
    """
    for number in mass.cases(400):
        seen, taken = check_stream(Random(f"{mass.seed} {number}"), 500, edits=False)
        assert taken > seen // 10


def test_edited_records_by_law(mass: Mass) -> None:
    """200,000 lines, 500 of them a case: bad JSON is never taken, and what is taken is right."""
    taken = seen = 0
    for number in mass.cases(400):
        some, fine = check_stream(Random(f"{mass.seed} {number}"), 500, edits=True)
        seen, taken = seen + some, taken + fine
    assert taken > seen // 50


def test_edits_of_one_record_against_json(mass: Mass) -> None:
    """100,000 edits of small records: what Python's own json refuses is never taken."""
    for number in mass.cases(40):
        random = Random(f"{mass.seed} {number}")
        good = [Writer(random, loose=random.random() < 0.3).record(random_shape(random)) for _ in range(3)]
        for line in good:
            look = learned([line])
            lines = [each for each in (edited(line, random) for _ in range(850)) if each.strip()]
            for scan in scanned(everything(look), b"".join(each + b"\n" for each in lines)):
                for entry in np.flatnonzero(scan.columns.fits).tolist():
                    record = json.loads(scan.line(entry).decode())
                    assert isinstance(record, dict)
