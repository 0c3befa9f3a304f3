"""Numbers in other units stand where the exact results stand, among all constants they are compared with."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.columnar.items.units import mapped
from anabranch.spark.evolution.following import RangeFollowing
from anabranch.stream.affine import Affine
from anabranch.stream.elements import Item
from anabranch.stream.reading.source import Source
from spark.bare import BareTrunk

decimals = st.builds(
    lambda digits, places: float(Decimal(digits).scaleb(-places)),
    st.integers(-(10**6), 10**6) | st.integers(-(10**15) + 1, 10**15 - 1),
    st.integers(0, 12),
)
maps = st.builds(
    lambda a, b, c, d: Affine(Fraction(a, b), Fraction(c, d)),
    st.integers(1, 1000),
    st.integers(1, 1000),
    st.integers(-(10**6), 10**6),
    st.integers(1, 1000),
)


def exact(value: float) -> Fraction:
    return Fraction(Decimal(repr(value)))


@given(st.lists(decimals, min_size=1, max_size=20), maps, st.lists(decimals, max_size=10), st.data())
def test_mapped_numbers_are_on_the_right_side(
    values: list[float], by: Affine, others: list[float], data: st.DataObject
) -> None:
    """Also where a constant is what a value becomes, or the next double to it."""
    chosen = data.draw(st.lists(st.sampled_from(values), max_size=5))
    hit = [float(by(exact(value))) for value in chosen]
    beside = [float(np.nextafter(value, np.inf)) for value in hit]
    constants = sorted({*others, *(each for each in (*hit, *beside) if len(repr(each)) < 16)})
    found = mapped(np.array(values), by, np.array(constants, np.float64))
    for value, now in zip(values, found.tolist(), strict=True):
        for constant in constants:
            there = by(exact(value)), exact(constant)
            assert (now < constant, now == constant) == (there[0] < there[1], there[0] == there[1])


def test_what_is_not_known_stays_so() -> None:
    """NaN is a text that the law has to look at."""
    found = mapped(np.array([np.nan, 1.0]), Affine(Fraction(2), Fraction(0)), np.array([2.0]))
    assert np.isnan(found[0])
    assert found[1] == 2.0


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The queries that the law was asked about."""
    found: list[int] = []
    piece = RangeFollowing.piece

    def counted(self: RangeFollowing, number: int, item: Item) -> str:
        found.append(number)
        return piece(self, number, item)

    monkeypatch.setattr(RangeFollowing, "piece", counted)
    return found


def answers(folder: Path, lines: list[str], queries: dict[str, str]) -> dict[str, str]:
    """What a trunk answers."""
    (folder / "in").mkdir()
    (folder / "in" / "a").write_text("".join(f"{line}\n" for line in lines))
    trunk = BareTrunk(folder / "state", [Source("s", folder / "in")], Random(1), finite=True)
    trunk.run(queries, (1 << 20,), (1,))
    return {name: trunk.answer(name) for name in queries}


ALTER = '<s:accent xmlns:s="urn:anabranch:stream"{}><s:alter path="t" by="{}"/></s:accent>'
QUERY = 'for $i in stream("s")/root/i where $i/t >= {} return <o>{{$i/s}}{{$i/t}}</o>'


def test_columns_answer_where_all_have_changed(tmp_path: Path, asked: list[int]) -> None:
    """An accent for all that the answer follows leaves everything to columns."""
    items = [f"<i><s>{number % 3}</s><t>{number / 10}</t></i>" for number in range(2_000)]
    lines = [*items, ALTER.format("", "(. - 32) * 5 div 9"), *items]
    found = answers(tmp_path, lines, {f"q{least}": QUERY.format(least) for least in range(40, 300)})
    assert found["q68"].count("<o>") == (2_000 - 680) + (2_000 - 200)
    assert found["q68"].count("<t>20.0</t>") == 1
    assert not asked


def test_columns_answer_where_a_part_has_changed(tmp_path: Path, asked: list[int]) -> None:
    """One sensor at a time: whom it concerns is found in columns, and answers that tell it leave as written."""
    items = [f"<i><s>{number % 3}</s><t>{number % 100 / 10}</t></i>" for number in range(600)]
    alter = [ALTER.format(f' where="s = {sensor}"', ". * 2") for sensor in range(3)]
    lines = [*items, alter[1], *items, alter[2], *items, alter[1], *items]
    found = answers(tmp_path, lines, {f"q{least}": QUERY.format(least) for least in range(1, 9)})
    assert not asked
    for least in range(1, 9):
        expected, factors = "", [1, 1, 1]
        for line in lines:
            if line in alter:
                factors[alter.index(line)] *= 2
                expected += line
            else:
                sensor, value = line[6], line.split("<t>")[1].split("<")[0]
                if Fraction(value) >= least * factors[int(sensor)]:
                    expected += f"<o><s>{sensor}</s><t>{value}</t></o>"
        assert found[f"q{least}"] == expected
