"""Numbers cut out by the kernel are those that Python reads."""

from __future__ import annotations

import math
import struct

from hypothesis import given
from hypothesis import strategies as st

from anabranch.columnar.scan.shred import Shredder
from anabranch.columnar.scan.wanted import WantedColumns
from anabranch.stream.limits import Limits
from anabranch.stream.reading.lines import Carry, LineSplitter
from columnar.looks import look_of

ITEM = b"<p><n>1</n></p>"
BEHIND = Carry(1_000)
"""A place behind the first line of a file, which a splitter reads itself."""
digits = st.text("0123456789", max_size=20)
plain = st.builds(lambda sign, whole, point, rest: sign + whole + point + rest, st.sampled_from(["", "+", "-"]), digits,
                  st.sampled_from(["", "."]), digits)  # fmt: skip


def wanted() -> WantedColumns:
    leaf = next(number for number, part in enumerate(look_of(ITEM).parts) if part.has_text)
    return WantedColumns.of(look_of(ITEM), [leaf], [leaf])


def numbers(texts: list[str]) -> list[float | None]:
    """What the kernel reads in items with these texts, None for an item that does not fit."""
    data = b"".join(f"<p><n>{text}</n></p>\n".encode() for text in texts)
    found = Shredder(LineSplitter(Limits(), BEHIND), Limits()).feed(data, wanted())
    return [
        float(value) if fits else None for each in found for value, fits in zip(each.values[0], each.fits, strict=True)
    ]


@given(st.lists(plain, min_size=1))
def test_a_number_is_pythons_to_the_bit_or_left_open(texts: list[str]) -> None:
    """Every number that is read has the bits of `float()`, and up to 15 digits every number is read."""
    for text, value in zip(texts, numbers(texts), strict=True):
        if text == "":
            assert value is not None
            assert math.isnan(value)
        elif sum(character.isdigit() for character in text) in range(1, 16):
            assert struct.pack("d", value) == struct.pack("d", float(text))
        else:
            assert value is not None
            assert math.isnan(value) or struct.pack("d", value) == struct.pack("d", float(text))


@given(st.text(st.characters(codec="utf-8"), max_size=8))
def test_other_text_is_no_number(text: str) -> None:
    """What Python reads and XQuery does not ('1_0', 'inf', ' 1 ') is left open, as is all that is no plain decimal."""
    text = text.replace("\n", "")
    for value in numbers([text]):
        if value is not None and not math.isnan(value):
            assert set(text) <= set("0123456789+-.")
            assert value == float(text)


def test_what_python_reads_as_a_number_and_xquery_does_not() -> None:
    """Underscores, words and white space fit as text and are no numbers."""
    for value in numbers(["1_0", "inf", "nan", " 1", "1 ", "1e3", "0x1", "-", "+.", "."]):
        assert value is not None
        assert math.isnan(value)
