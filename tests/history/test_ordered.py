"""The sequence under all of it: a list with sums that is edited anywhere."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import accumulate

import pytest

from anabranch.algebra.display.ordered import Ordered
from mass import some


@pytest.mark.parametrize("seed", some(range(2)))
def test_it_is_a_list_with_sums(seed: int) -> None:
    """After any edits everything that can be asked is what a plain list says; it grows over several levels and back."""
    chance = random.Random(seed)
    ours: Ordered[int, int] = Ordered(0)
    plain: list[int] = []
    values: dict[int, int] = {}
    grows = True
    for number in range(4_000):
        grows = not plain or (grows and len(plain) < 900)
        anchor = chance.choice(plain) if plain else None
        if anchor is None or chance.random() < (0.8 if grows else 0.2):
            values[number] = value = chance.randrange(5)
            match chance.randrange(4):
                case 0:
                    ours.append(number, value)
                    plain.append(number)
                case 1:
                    ours.prepend(number, value)
                    plain.insert(0, number)
                case 2 if anchor is not None:
                    ours.insert_before(anchor, number, value)
                    plain.insert(plain.index(anchor), number)
                case _ if anchor is not None:
                    ours.insert_after(anchor, number, value)
                    plain.insert(plain.index(anchor) + 1, number)
                case _:
                    ours.append(number, value)
                    plain.append(number)
        elif chance.random() < 0.3:
            values[anchor] = chance.randrange(5)
            ours.set(anchor, values[anchor])
        else:
            ours.remove(anchor)
            plain.remove(anchor)
        if plain and number % 40 == 0:
            _compare(ours, plain, values, chance)
        if number % 200 == 0:
            assert list(ours) == plain


def _compare(ours: Ordered[int, int], plain: list[int], values: dict[int, int], chance: random.Random) -> None:
    one, other = chance.choice(plain), chance.choice(plain)
    at = plain.index(one)
    assert (len(ours), ours.first, ours.last) == (len(plain), plain[0], plain[-1])
    assert ours.total == sum(values[each] for each in plain)
    assert ours.before(one) == sum(values[each] for each in plain[:at])
    assert ours[one] == values[one]
    assert ours.precedes(one, other) == (at < plain.index(other))
    assert ours.next(one) == (plain[at + 1] if at + 1 < len(plain) else None)
    assert ours.previous(one) == (plain[at - 1] if at else None)
    bound = chance.randrange(ours.total + 2)
    ends = list(zip(plain, accumulate((values[each] for each in plain), initial=0), strict=False))
    assert ours.reaching(bound) == next((pair for pair in ends if pair[1] + values[pair[0]] >= bound), None)
    place = {each: number for number, each in enumerate(plain)}
    wanted = chance.randrange(len(plain) + 1)
    assert ours.search(lambda each: place[each] >= wanted) == (plain[wanted] if wanted < len(plain) else None)
    half = wanted // 2  # each key stands twice, and the first counts
    assert ours.bisect(lambda each: place[each] // 2, half) == (plain[2 * half] if 2 * half < len(plain) else None)


def test_values_are_of_any_group() -> None:
    """Fractions are summed exactly."""
    ours: Ordered[str, Fraction] = Ordered(Fraction(0), [("a", Fraction(1, 3)), ("b", Fraction(1, 6))])
    ours.prepend("c", Fraction(1, 2))
    assert ours.before("b") == Fraction(5, 6)
    assert (list(ours), ours.total) == (["c", "a", "b"], Fraction(1))


def test_the_last_one_goes() -> None:
    """An empty sequence has no first, no last, and a total of zero; it can be filled again."""
    ours: Ordered[int, int] = Ordered(0, ((each, 1) for each in range(300)))
    for each in range(300):
        ours.remove(each)
    assert (ours.first, ours.last, ours.total, ours.reaching(1)) == (None, None, 0, None)
    ours.append(1, 7)
    assert (list(ours), ours.total) == ([1], 7)
