"""What a scanner of XML items has to say of one, found out from the item's tree."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

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
from anabranch.stream.tree import Element, Text

LIMITS = Limits()
LONGEST = 1 << 16
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)", re.ASCII)

Row: TypeAlias = tuple[int, int, float | None]
"""Start, end, and the number or None for NaN."""


@dataclass
class Scanned:
    """The rows of an item, and what is logged of it."""

    rows: list[Row]
    opened: list[tuple[int, int]] = field(default_factory=list)
    spans: Counter[tuple[int, int, int, int]] = field(default_factory=Counter)


def scan_one(
    data: Bytes, at: int, stop: int, longest: int, guide: Guide, columns: ItemColumns, log: FrameLog, entry: int
) -> int:
    """Scan the item that begins at a place, as one of many would be; nothing stays of one that is not taken."""
    rows, spans = log.counts[0], log.counts[1]
    stop = min(stop, at + longest)
    behind: int = scan_item(data, at, stop, False, guide, columns, log, entry, scan_memory(guide))
    if behind < 0:
        take_back(log, rows, spans)
    return behind


def scanned(item: bytes, wanted: WantedColumns, before: bytes = b"", behind: bytes = b"") -> Scanned | None:
    """What the scanner says of an item among other bytes."""
    columns, log = ItemColumns.room(len(wanted.columns), 3), FrameLog.room(len(wanted.frames), LONGEST)
    data = np.frombuffer(before + item + behind, np.uint8)
    end = scan_one(data, len(before), len(data), LONGEST, wanted.guide, columns, log, 1)
    if end < 0:
        assert end == -1
        assert not log.counts.any()
        return None
    assert end == len(before) + len(item)
    assert log.counts[0] == log.counts[2:].sum()
    opened, spans = logged(log, len(before))
    return Scanned(row_values(wanted, columns, 1, len(before)), opened, spans)


def row_values(wanted: WantedColumns, columns: ItemColumns, entry: int, begin: int) -> list[Row]:
    """An entry of some columns, its places counted from where it begins."""
    found: list[Row] = []
    for row, is_numeric in enumerate(wanted.numeric):
        start, end, number = (each[row, entry].item() for each in columns[3:])
        has_number = is_numeric and not math.isnan(number)
        found.append((start - begin * (start >= 0), end - begin * (end >= 0), number if has_number else None))
    return found


def logged(log: FrameLog, begin: int = 0) -> tuple[list[tuple[int, int]], Counter[tuple[int, int, int, int]]]:
    """What was logged: opened rows, and spans, their places counted from `begin` on."""
    spans = Counter[tuple[int, int, int, int]]()
    for row, frame_row, start, end in log.spans[: log.counts[1]].tolist():
        spans[row, frame_row, start - begin * (start >= 0), end - begin * (end >= 0)] += 1
    return [(frame, around) for frame, around in log.opened[: log.counts[0]].tolist()], spans


def expected(item: bytes, wanted: WantedColumns, entry: int = 1, rows: Counter[int] | None = None) -> Scanned | None:
    """What a scanner must say of an item, where frames have so many rows before; None where it must refuse it."""
    tree = canonical(item)
    if tree is None:
        return None
    walk = _Walk(wanted, Counter(rows))
    try:
        walk.element(tree, -1, {0: entry})
    except _Refused:
        return None
    assert walk.out.decode() == serialize(tree)
    return walk.found


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
        if frame:
            self.found.spans[row, rows[frame], start, end] += 1
        elif part not in self.unclear:
            number = None
            if self.wanted.numeric[row] and column >= 0 and start >= 0:
                number = simple_number(self.out[start:end].decode())
            self.found.rows[row] = start, end, number

    def text(self, value: str, written: str) -> bool:
        """Write a text as it is written; whether it is plain."""
        self.out += written.encode()
        return all(ord(each) > 127 or bool(PLAIN[ord(each)]) for each in value)

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
            is_plain = self.text(attribute.value, escape_attribute(attribute.value))
            span = (start, len(self.out)) if is_plain else (UNCLEAR, UNCLEAR)
            self.note(number, number, rows, *span)
            self.note(~number, number, rows, *span)
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
        for child in element.children:
            match child:
                case Text():
                    is_text = self.text(child.value, escape_text(child.value)) and is_text
                case Element():
                    self.element(child, part, rows)
                case _:
                    raise _Refused
        if is_text:
            self.note(part, part, rows, start, len(self.out))
        else:
            self.note(part, part, rows, UNCLEAR, UNCLEAR)
        self.out += f"</{element.name.local}>".encode()


def simple_number(text: str) -> float | None:
    """The number that a whole text is, if it is one of few digits."""
    digits = re.sub(r"\D", "", text, flags=re.ASCII)
    if not _NUMBER.fullmatch(text) or len(digits) > 18 or int(digits) >= 10**15:
        return None
    return float(text)
