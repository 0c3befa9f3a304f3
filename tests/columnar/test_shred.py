"""A shredder gives what the splitter behind it would give alone, wherever the bytes are cut."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from anabranch.columnar.scan import cutter, xml_scan
from anabranch.columnar.scan.shred import Shredded, Shredder
from anabranch.columnar.scan.wanted import WantedColumns
from anabranch.stream.limits import Limits
from anabranch.stream.reading.lines import START, Carry, Cut
from anabranch.stream.reading.reader import Format
from anabranch.stream.reading.split import DocumentSplitter, LineSplitter
from columnar.looks import look_of
from columnar.streams import FRONT, NUMBERS, SHAPES, TEXTS, USUAL
from mass import some

LIMITS = Limits(item_bytes=300)
ITEMS = [
    *(shape.format(x="4.5", y="abc", z="3") for shape in SHAPES),
    *(USUAL.format(x=each, y="abd", z="3") for each in NUMBERS),
    *(USUAL.format(x="4.5", y=each, z="3") for each in TEXTS),
    USUAL.format(x="1", y="long" * 100, z="2"),
    "<p><a><p>" + USUAL.format(x="1", y="abc", z="2"),  # an item inside one that does not end
]


def wanted(item: str = USUAL.format(x="1", y="a", z="2")) -> WantedColumns:
    look = look_of(item.encode())
    first, _, third = (number for number, part in enumerate(look.parts) if part.has_text)
    return WantedColumns.of(look, [first, third], [first])


def shredder(form: Format, carry: Carry = START) -> Shredder:
    split = DocumentSplitter if form == "document" else LineSplitter
    return Shredder(split(LIMITS, carry), LIMITS)


def cuts(found: list[Shredded]) -> list[Cut]:
    return [shredded.cut(entry) for shredded in found for entry in range(len(shredded.fits))]


def stream(form: Format) -> bytes:
    items = "".join(f"{item}\n{FRONT}" for item in ITEMS)
    return (f"<?xml version='1.0'?>\n<root>{items}</root>" if form == "document" else items).encode()


@pytest.mark.mass
@pytest.mark.parametrize("form", ["lines", "document"])
@pytest.mark.parametrize("size", some([7, 100, 1_001, 1 << 20]))
def test_pieces_of_any_size(form: Format, size: int) -> None:
    """The cuts, in their order, and the carry at the end."""
    data = stream(form)
    plain, fast = shredder(form), shredder(form)
    law = cuts([*plain.feed(data, None), *plain.finish()])
    pieces = [data[begin : begin + size] for begin in range(0, len(data), size)]
    assert cuts([each for piece in pieces for each in fast.feed(piece, wanted())] + [*fast.finish()]) == law
    assert fast.carry == plain.carry


@pytest.mark.parametrize("form", ["lines", "document"])
def test_another_goes_on_from_the_carry(form: Format) -> None:
    """A stream that is read by one shredder after the other, each from the carry of the one before."""
    data = stream(form)
    plain = shredder(form)
    law = cuts([*plain.feed(data, None), *plain.finish()])
    found: list[Shredded] = []
    at = shredder(form)
    for _, end in pairwise(range(0, len(data) + 997, 997)):
        begin = at.carry.position
        at = shredder(form, at.carry)
        found += at.feed(data[begin:end], wanted())
    assert cuts([*found, *at.finish()]) == law


def test_most_of_a_document_is_left_to_the_kernel() -> None:
    """In a document of usual items the splitter sees the front and the end only."""
    data = f"<root>\n{FRONT * 1_000}</root>".encode()
    found = [*shredder("document").feed(data, wanted())]
    assert sum(len(each.cuts) for each in found) < 100
    assert sum(int(each.fits.sum()) for each in found) > 2_900


def test_an_item_without_end_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel never begins twice at one place, so a long text without an end costs linear time."""
    begun: list[int] = []
    cut_items = xml_scan.cut_items

    def counted(data: Any, at: int, *rest: Any) -> tuple[int, int, bool]:
        begun.append(at)
        return cut_items(data, at, *rest)

    monkeypatch.setattr(cutter, "cut_items", counted)
    data = f"<root>{FRONT}<p><a><x>{'1' * 100_000}".encode()
    limits = Limits()
    list(Shredder(DocumentSplitter(limits), limits).feed(data, wanted()))
    assert 0 < len(begun) == len(set(begun)) < 10


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("more", [-1, 0, 1])
def test_how_long_a_line_may_be(end: str, more: int) -> None:
    """A line of the usual look is as long as any other, its CR counted."""
    usual = USUAL.format(x="1", y="", z="2")
    line = USUAL.format(x="1", y="y" * (LIMITS.item_bytes - len(usual) + more), z="2")
    data = f"{FRONT}{line}{end}{FRONT}".encode()
    plain, fast = shredder("lines"), shredder("lines")
    assert cuts([*fast.feed(data, wanted())]) == cuts([*plain.feed(data, None)])
