"""Patterns that are looked for together are found as each of them alone."""

from __future__ import annotations

from random import Random
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.columnar.expressions.texts import TextColumn
from anabranch.columnar.match import patterns as module
from anabranch.columnar.match.patterns import ROOM, PatternIndex
from mass import Mass

FEW = st.binary(max_size=6).map(lambda bytes_: bytes(b"aab\xff"[byte % 4] for byte in bytes_))
"""Texts of few different bytes, in which patterns stand often."""


def check(texts: list[bytes], patterns: list[bytes], room: int = ROOM) -> int:
    """Each pair once, rows in order; gives how many there are."""
    rows, numbers = PatternIndex.of(patterns, room).find(TextColumn.of(*texts))
    found = [*zip(rows.tolist(), numbers.tolist(), strict=True)]
    expected = {(row, at) for row, text in enumerate(texts) for at, each in enumerate(patterns) if each in text}
    assert rows.tolist() == sorted(rows.tolist())
    assert len(found) == len(expected)
    assert {*found} == expected
    return len(found)


ROOMS = pytest.mark.parametrize("room", [ROOM, 0, 20])
"""All states, none but the empty beginning, or some of them know all their next states."""


@ROOMS
@given(texts=st.lists(st.one_of(FEW, st.binary(max_size=6))), patterns=st.sets(st.one_of(FEW, st.binary(max_size=3))))
def test_patterns_are_found(room: int, texts: list[bytes], patterns: set[bytes]) -> None:
    """Of any bytes, the empty pattern among them; a text before another never adds to it."""
    check(texts, [*patterns], room)


@ROOMS
def test_patterns_within_patterns(room: int) -> None:
    """The classic example, patterns that end in others, and ones that lead far before they fail."""
    check([b"ushers", b"she", b"", b"hers his"], [b"he", b"she", b"his", b"hers"], room)
    check([b"aaaa" * 10, b"ba"], [b"a" * length for length in range(30)], room)
    check([b"abcabcabd", b"bcabcabcab", b"cabd"], [b"abcabd", b"bcabc", b"cab", b"d", b"abcabcabcabc"], room)
    check([b"x"], [], room)
    check([], [b"x"], room)


def test_room_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is none for all that one text contains, that text is searched again, and nothing is found twice."""
    monkeypatch.setattr(module, "_FIRST_ROOM", 1)
    texts = [*[b"abcde"] * 5, b"x", *[b"edcba"] * 3]
    assert check(texts, [b"", b"a", b"b", b"c", b"d", b"e", b"ab", b"cd"]) == 5 * 8 + 1 + 3 * 6


def test_what_is_found_often_costs_once() -> None:
    """Patterns that end in one another are reported once a text, and not walked through again at each byte."""
    patterns = [b"a" * length for length in range(1, 2_001)]
    index, texts = PatternIndex.of(patterns), TextColumn.of(*[b"a" * 500_000] * 4)
    began = perf_counter()
    rows, _ = index.find(texts)
    assert perf_counter() - began < 3  # four thousand million steps otherwise
    assert len(rows) == 4 * len(patterns)


@pytest.mark.mass
def test_ten_thousand_patterns() -> None:
    """They are made in well below a second, and memory stays within bounds; all are found."""
    random = Random(1)
    patterns = [*{"".join(random.choices("abcdefghijklmnopqrstuvwxyz/-", k=20)).encode() for _ in range(10_000)}]
    PatternIndex.of(patterns[:2])  # compiled
    began = perf_counter()
    index = PatternIndex.of(patterns)
    assert perf_counter() - began < 2  # 0.1 on a quiet machine
    assert sum(each.nbytes for each in index.automaton) < 32 << 20
    _, numbers = index.find(TextColumn.of(*(b"xx" + pattern + b"y" for pattern in patterns)))
    assert numbers.tolist() == [*range(len(patterns))]


def random_text(random: Random, letters: str, longest: int) -> bytes:
    return "".join(random.choices(letters, k=random.randrange(longest))).encode()


def test_many_patterns(mass: Mass) -> None:
    """At random, of few letters and of many."""
    for case in mass.cases(2_000):
        random = Random(case)
        letters, longest = random.choice(["ab", "abc", "abcdefghij\u00e4"]), random.choice([4, 12, 40])
        patterns = {random_text(random, letters, longest) for _ in range(random.randrange(100))}
        texts = [random_text(random, letters, 3 * longest) for _ in range(30)]
        check(texts, [*patterns], random.choice([ROOM, 0, 100]))
