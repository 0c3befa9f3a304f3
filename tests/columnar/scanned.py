"""What a scanner of XML items has to say of one, found out from the item's tree."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TypeAlias
from zlib import crc32

import numpy as np

from anabranch.columnar.scan.decoded import CANONICAL, NOT_CANONICAL, WITH_SIGNS, DecodedTexts
from anabranch.columnar.scan.kernels import ABSENT, UNCLEAR, Bytes, ItemColumns
from anabranch.columnar.scan.look import Look
from anabranch.columnar.scan.scan_memory import scan_memory, take_back
from anabranch.columnar.scan.template import PLAIN
from anabranch.columnar.scan.wanted import FrameLog, Guide, WantedColumns
from anabranch.columnar.scan.xml_scan import scan_item
from anabranch.errors import BadItem
from anabranch.stream.limits import Limits
from anabranch.stream.reading.parse import parse_item
from anabranch.stream.serialize import escape_attribute, escape_text, serialize
from anabranch.stream.tree import Element, Text, string_value

LIMITS = Limits()
LONGEST = 1 << 16
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)", re.ASCII)
SIGNS = -100
"""In the place of the start of a span: its text was decoded, and the end is the checksum of that."""

Row: TypeAlias = tuple[int, int, float | None]
"""Start, end, and the number or None for NaN."""


@dataclass
class Scanned:
    """The rows of an item, what is logged of it, and its mark."""

    rows: list[Row]
    opened: list[tuple[int, int]] = field(default_factory=list)
    spans: Counter[tuple[int, int, int, int]] = field(default_factory=Counter)
    mark: int = CANONICAL

    def contents(self, item: bytes, wanted: WantedColumns) -> Counter[tuple[int, int, object]]:
        """The same by what stands at the spans, as it would be serialised, and not by their places."""
        found = Counter[tuple[int, int, object]]()
        whole = ((row, -1, start, end) for row, (start, end, _) in enumerate(self.rows))
        for row, frame_row, start, end in (*whole, *self.spans.elements()):
            content: object = (start, end)
            if start >= 0:
                content = crc32(item[start:end])
                if wanted.columns[row] < 0:
                    name = wanted.look.parts[~wanted.columns[row]].name
                    is_attribute = name.startswith("@")
                    content = None if is_attribute else serialize(parse_item(item[start:end], LIMITS))
            elif start == SIGNS:
                content = end
            found[row, frame_row, content] += 1
        return found


def room_for_texts(size: int, entries: int) -> DecodedTexts:
    """Room for the decoded texts of so many bytes."""
    return DecodedTexts(np.empty(size, np.uint8), np.zeros(1, np.int64), size, np.zeros(entries, np.uint8))


def with_signs(text: bytes) -> tuple[int, int]:
    """What stands in the place of a span for a text that is decoded."""
    return SIGNS, crc32(text)


def span_of(start: int, end: int, begin: int, decoded: DecodedTexts | None) -> tuple[int, int]:
    """A span, counted from `begin` on."""
    if decoded is not None and decoded.base <= start < end:
        return with_signs(decoded.data[start - decoded.base : end - decoded.base].tobytes())
    return start - begin * (start >= 0), end - begin * (end >= 0)


def scan_one(
    data: Bytes,
    at: int,
    stop: int,
    longest: int,
    guide: Guide,
    columns: ItemColumns,
    log: FrameLog,
    entry: int,
    decoded: DecodedTexts | None = None,
) -> int:
    """Scan the item that begins at a place, as one of many would be; nothing stays of one that is not taken."""
    rows, spans = log.counts[0], log.counts[1]
    stop = min(stop, at + longest)
    decoded = decoded or room_for_texts(len(data), entry + 1)
    behind: int = scan_item(data, at, stop, False, guide, columns, log, decoded, entry, scan_memory(guide))
    if behind < 0:
        take_back(log, rows, spans)
    return behind


def scanned(item: bytes, wanted: WantedColumns, before: bytes = b"", behind: bytes = b"") -> Scanned | None:
    """What the scanner says of an item among other bytes."""
    columns, log = ItemColumns.room(len(wanted.columns), 3), FrameLog.room(len(wanted.frames), LONGEST)
    data = np.frombuffer(before + item + behind, np.uint8)
    decoded = room_for_texts(len(data), 3)
    end = scan_one(data, len(before), len(data), LONGEST, wanted.guide, columns, log, 1, decoded)
    if end < 0:
        assert end == -1
        assert not log.counts.any()
        return None
    assert end == len(before) + len(item)
    assert log.counts[0] == log.counts[2:].sum()
    opened, spans = logged(log, len(before), decoded)
    return Scanned(row_values(wanted, columns, 1, len(before), decoded), opened, spans, int(decoded.marks[1]))


def row_values(
    wanted: WantedColumns, columns: ItemColumns, entry: int, begin: int, decoded: DecodedTexts | None = None
) -> list[Row]:
    """An entry of some columns, its places counted from where it begins."""
    found: list[Row] = []
    for row, is_numeric in enumerate(wanted.numeric):
        start, end, number = (each[row, entry].item() for each in columns[3:])
        has_number = is_numeric and not math.isnan(number)
        found.append((*span_of(start, end, begin, decoded), number if has_number else None))
    return found


def logged(
    log: FrameLog, begin: int = 0, decoded: DecodedTexts | None = None
) -> tuple[list[tuple[int, int]], Counter[tuple[int, int, int, int]]]:
    """What was logged: opened rows, and spans, their places counted from `begin` on."""
    spans = Counter[tuple[int, int, int, int]]()
    for row, frame_row, start, end in log.spans[: log.counts[1]].tolist():
        spans[row, frame_row, *span_of(start, end, begin, decoded)] += 1
    return [(frame, around) for frame, around in log.opened[: log.counts[0]].tolist()], spans


def expected(item: bytes, wanted: WantedColumns, entry: int = 1, rows: Counter[int] | None = None) -> Scanned | None:
    """What a scanner must say of a canonical item, where frames have so many rows before.

    None where the item is not canonical, or must be refused.
    """
    tree = canonical(item)
    found = None if tree is None else _walked(tree, wanted, entry, rows)
    return None if found is None else found[0]


def _walked(
    tree: Element, wanted: WantedColumns, entry: int, rows: Counter[int] | None
) -> tuple[Scanned, bytes] | None:
    walk = _Walk(wanted, Counter(rows))
    try:
        walk.element(tree, -1, {0: entry})
    except _Refused:
        return None
    assert walk.out.decode() == serialize(tree)
    return walk.found, bytes(walk.out)


def check_scanned(item: bytes, wanted: WantedColumns, found: Scanned | None) -> Scanned | None:
    """Compare what a scanner says of an item with what it must or may say; gives what it must."""
    should = expected(item, wanted)
    if should is not None or found is None:
        assert found == should, item
        return should
    assert found.mark == NOT_CANONICAL, item
    assert canonical(item) is None, item
    walked = _walked(parse_item(item, LIMITS), wanted, 1, None)
    assert walked is not None, item
    model, written = walked
    assert found.opened == model.opened, item
    assert found.contents(item, wanted) == model.contents(written, wanted), item
    numbers = [number for _, _, number in found.rows]
    assert numbers == [number for _, _, number in model.rows], item
    return None


def canonical(item: bytes) -> Element | None:
    """The tree of an item, if its bytes are those that are written for it."""
    try:
        tree = parse_item(item, LIMITS)
    except BadItem:
        return None
    return tree if serialize(tree).encode() == item else None


class _Refused(Exception):
    pass


class _Walk:
    """Writes a tree out, and notes where its parts come to stand."""

    def __init__(self, wanted: WantedColumns, counts: Counter[int]) -> None:
        self.wanted = wanted
        self.look: Look = wanted.look
        self.out = bytearray()
        self.found = Scanned([(ABSENT, ABSENT, None)] * len(wanted.columns))
        self.parts = {(each.parent, each.name): number for number, each in enumerate(self.look.parts)}
        self.unclear: set[int] = set()
        self.seen: set[tuple[int, int]] = set()
        self.counts = counts

    def part(self, name: str, parent: int) -> int:
        if (parent, name) not in self.parts:
            raise _Refused
        return self.parts[parent, name]

    def frame(self, part: int) -> int:
        around = self.look.frames[part] if part >= 0 else -1
        return 0 if around < 0 else 1 + self.wanted.frames.index(around)

    def note(self, column: int, part: int, rows: dict[int, int], start: int, end: int) -> None:
        row, frame = self.wanted.rows.get(column), self.frame(part)
        if row is None:
            return
        if start == SIGNS:
            self.found.mark = WITH_SIGNS
        if frame:
            self.found.spans[row, rows[frame], start, end] += 1
        elif part not in self.unclear:
            number = None
            if self.wanted.numeric[row] and column >= 0 and start >= 0:
                number = simple_number(self.out[start:end].decode())
            self.found.rows[row] = start, end, number

    def text(self, value: str, written: str) -> None:
        if "\r" in value:
            raise _Refused
        self.out += written.encode()

    def element(self, element: Element, parent: int, rows: dict[int, int]) -> None:
        if element.namespaces or element.name.uri:
            raise _Refused
        part = self.part(element.name.local, parent)
        frame = self.frame(part)
        if self.look.parts[part].repeated:
            self.found.opened.append((frame, rows[self.frame(parent)]))
            rows = {**rows, frame: self.counts[frame]}
            self.counts[frame] += 1
        elif (part, rows[frame]) in self.seen:
            inside = [part, *self.look.descendants(part)]
            if frame or any(self.look.parts[each].repeated for each in inside):
                raise _Refused
            self.unclear.update(inside)
            for each in inside:
                for column in (each, ~each):
                    if column in self.wanted.rows:
                        self.found.rows[self.wanted.rows[column]] = UNCLEAR, UNCLEAR, None
        self.seen.add((part, rows[frame]))
        begin = len(self.out)
        self.out += f"<{element.name.local}".encode()
        for attribute in element.attributes:
            number = self.part(f"@{attribute.name.local}", part)
            self.out += f' {attribute.name.local}="'.encode()
            start = len(self.out)
            self.text(attribute.value, escape_attribute(attribute.value))
            span = (start, len(self.out)) if is_plain(attribute.value) else with_signs(attribute.value.encode())
            self.note(number, number, rows, *span)
            self.note(~number, number, rows, start, len(self.out))
            self.out += b'"'
        self.content(element, part, rows)
        self.note(~part, part, rows, begin, len(self.out))

    def content(self, element: Element, part: int, rows: dict[int, int]) -> None:
        start = len(self.out)
        if not element.children:
            self.note(part, part, rows, start, start)
            self.out += b"/>"
            return
        self.out += b">"
        start += 1
        is_text = len(element.children) == 1 and isinstance(element.children[0], Text)
        has_signs = False
        for child in element.children:
            match child:
                case Text():
                    self.text(child.value, escape_text(child.value))
                    has_signs = not is_plain(child.value)
                case Element():
                    self.element(child, part, rows)
                case _:
                    raise _Refused
        if is_text and has_signs and self.look.parts[part].has_text:
            self.note(part, part, rows, *with_signs(string_value(element).encode()))
        elif is_text and not has_signs:
            self.note(part, part, rows, start, len(self.out))
        else:
            self.note(part, part, rows, UNCLEAR, UNCLEAR)
        self.out += f"</{element.name.local}>".encode()


def is_plain(text: str) -> bool:
    """Whether a text is written as itself wherever it stands."""
    return all(ord(each) > 127 or PLAIN[ord(each)] for each in text)


def simple_number(text: str) -> float | None:
    """The number that a whole text is, if it is one of few digits."""
    digits = re.sub(r"\D", "", text, flags=re.ASCII)
    if not _NUMBER.fullmatch(text) or len(digits) > 18 or int(digits) >= 10**15:
        return None
    return float(text)
