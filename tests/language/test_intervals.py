from __future__ import annotations

from fractions import Fraction

import pytest

from anabranch.language import ast, parse
from anabranch.language.intervals import bounded, interval_bounds
from anabranch.language.printer import print_path

BOUNDS: tuple[tuple[str, list[tuple[str, str, str]]], ...] = (
    ("$x/t - $y/t <= 10", [("x/t", "y/t", "10")]),
    ("$x/t <= $y/t + 2.5", [("x/t", "y/t", "2.5")]),
    ("$x/t >= $y/t - 10", [("y/t", "x/t", "10")]),
    ("10 > $x/t - $y/t", [("x/t", "y/t", "10")]),
    ("-10 <= $x/t - $y/t", [("y/t", "x/t", "10")]),
    ("0 <= $x/t - $y/t + 3", [("y/t", "x/t", "3")]),
    ("-$x/t + $y/@t >= -1", [("x/t", "y/@t", "1")]),
    ("$x/t + $x/t < 2e0 + $y/t + $y/t", [("x/t", "y/t", "1")]),
    ("$x/t < $y/t and ($y/c/t <= $x/t + 1e1)", [("x/t", "y/t", "0"), ("y/c/t", "x/t", "10")]),
    ("$x/t = $y/t", []),
    ("$x/t <= 10", []),
    ("$x/t <= $x/u", []),
    ("$x/t * 2 <= $y/t", []),
    ("$x/t + $x/t <= $y/t", []),
    ("$x/t <= $y/t or $y/t <= $x/t", []),
    ("$x/t <= $z/t", []),
    ("$x/t <= $y/t + 1e999999999", []),
    ("$x/t <= $y/t + 1e-999999999", [("x/t", "y/t", "0")]),
    ("$x.t - $y.c.t <= 10", [("x/t", "y/c/t", "10")]),
    ("$x.t <= $y.t and $y.t <= $x.t + 5", [("x/t", "y/t", "0"), ("y/t", "x/t", "5")]),
    ("$x.t <= $y.t and $y.t <= $x.t", []),  # they may be strings
    ("$x.'@t' <= $y.t + 1", []),
    (
        "xs:dateTime($x.t) <= xs:dateTime($y.t) + xs:dayTimeDuration('PT1M') and xs:dateTime($x/t) > xs:dateTime($y/t)",
        [("x/t", "y/t", "60"), ("y/t", "x/t", "0")],
    ),
    ("xs:dateTime($x.t) <= $y.t + 1", []),
)


def condition(where: str) -> ast.Expression:
    body = parse(f"for $x in stream('s')/r/i, $y in stream('t')/r/i where {where} return $x").body
    assert isinstance(body, ast.Flwor)
    assert body.where is not None
    return body.where


@pytest.mark.parametrize(("where", "expected"), BOUNDS)
def test_bounds(where: str, expected: list[tuple[str, str, str]]) -> None:
    """What each conjunct says of the distance between two values, in any linear writing."""
    found = interval_bounds(condition(where), ["x", "y"])
    shown = [
        (*(f"{term.variable}/{print_path(term.path)}" for term in (each.left, each.right)), each.most) for each in found
    ]
    assert shown == [(left, right, Fraction(most)) for left, right, most in expected]


def test_bounds_in_one_direction_tie_nothing() -> None:
    """An interval has two ends, and both speak of the same values."""
    assert bounded(condition("$x/t <= $y/t + 1 and $y/t <= $x/t + 1"), ["x", "y"])
    assert not bounded(condition("$x/t <= $y/t + 1"), ["x", "y"])
    assert not bounded(condition("$x/t <= $y/t + 1 and $y/u <= $x/t + 1"), ["x", "y"])
