"""Queries that differ in constants only: known by their shape, and never taken for one another."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.language import ast, check, parse, print_query
from anabranch.language.rewrite import rebuild
from anabranch.runtime.shapes import _LITERAL, CheckedTexts, Constant, Shapes
from anabranch.runtime.standing import standing
from mass import enough, some

_TEMPLATES = (
    'for $p in stream("s")/root/p where $p/a >= {} and $p/b < -{} return <hit n="{}">{{ $p/a }}</hit>',
    '<f>{{ for $p in stream("s")/root/p[a = {}]/q where not({} <= $p/c) or $p/d != {} return ($p/c, {}) }}</f>',
    "for $p in stream(\"s\")/root/p (: {} :) where $p/a > {} return <t>it is {} o'clock, isn't it {{ $p/b }}</t>",
    'stream("s")/root/p[some $x in a satisfies $x = {} and $x > {}]/b',
    'for $w in stream("s")/root/p[a > {}] |count {} step 2| let $a := avg($w/b) where $a >= {} return $a',
    'for $p in stream("s")/root/p where $p/x5 > {} and $p/a-{} = {} return $p',
)
_LITERALS = ("0", "1", "17", "2.5", "1.30", ".5", "123456789012345678", '"x"', "'y'", '"it is"', "'a&lt;b'", '"say \'"')
_INPUTS = {"s": None}


def _good(random: Random, literals: Sequence[str] = _LITERALS) -> str:
    """A text that passes the checks."""
    while True:
        template = random.choice(_TEMPLATES)
        text = template.format(*(random.choice(literals) for _ in range(template.count("{}"))))
        try:
            check(parse(text), text, inputs=_INPUTS)
        except Exception:  # a name or a size of a window that is none
            continue
        return text


def _with_constants(hole: Any, values: dict[Constant, Constant]) -> Any:
    def visit(node: Any) -> Any:
        match node:
            case ast.Number(text) if float(text) in values:
                return replace(node, text=str(values[float(text)]))
            case ast.String(value) if value.encode() in values:
                found = values[value.encode()]
                assert isinstance(found, bytes)
                return replace(node, value=found.decode())
            case _:
                return rebuild(node, visit)

    return visit(hole)


def _as_numbers(hole: Any) -> Any:
    """Numbers spelled alike, for comparison."""

    def visit(node: Any) -> Any:
        return replace(node, text=str(float(node.text))) if isinstance(node, ast.Number) else rebuild(node, visit)

    return visit(hole)


@pytest.mark.parametrize("seed", some(range(3)))
def test_a_shape_with_its_constants_is_the_query(seed: int) -> None:
    """Marks replaced by constants, the hole of the shape is that of the text, whichever text was met first."""
    random = Random(seed)
    shapes = Shapes()
    seen = set()
    for _ in some(range(90)):
        text = print_query(check(parse(given := _good(random)), given, inputs=_INPUTS).query)
        shaped = shapes.of(text)
        seen.add(id(shaped.shape))
        own = standing(parse(text))
        values = dict(zip(shaped.shape.marks, shaped.constants, strict=True))
        found = _with_constants(shaped.shape.standing.hole, values)
        assert _as_numbers(found) == _as_numbers(own.hole), text
        assert shaped.shape.standing.kind == own.kind
    assert len(seen) < 150


@pytest.mark.parametrize("seed", some(range(3)))
def test_a_text_of_a_known_shape_is_printed_as_if_it_were_checked(seed: int) -> None:
    """What is known is what checking and printing gives, to the character."""
    random = Random(seed)
    texts = CheckedTexts()
    known = 0
    for _ in some(range(90)):
        text = _good(random, random.choice([_LITERALS[:3], _LITERALS[3:5], _LITERALS]))
        query = check(parse(text), text, inputs=_INPUTS).query
        found = texts.printed(text)
        known += found is not None
        assert found in (None, print_query(query)), text
        assert texts.learn(text, query) == print_query(query)
    assert known > enough(10)


def test_a_mark_that_somebody_writes_is_none() -> None:
    """7e8 is no literal that counts, and it is the first mark: the query is then known by its text alone."""
    text = 'for $p in stream("s")/root/p where $p/a > 7e8 and $p/b > {} return $p'
    shapes = Shapes()
    one, two = (shapes.of(text.format(each)) for each in ("5", "6"))
    assert (one.shape.marks, one.constants) == ((), ())
    assert one.shape.standing.hole == standing(parse(text.format("5"))).hole
    assert two.shape.standing.hole == standing(parse(text.format("6"))).hole


def test_numbers_of_one_shape() -> None:
    """Two queries that differ in numbers have one shape; an integer and a decimal do not."""
    shapes = Shapes()
    text = 'for $p in stream("s")/root/p where $p/a >= {} return $p'
    one, two, three = (shapes.of(text.format(each)) for each in ("1.5", "27.25", "3"))
    assert one.shape is two.shape
    assert (one.constants, two.constants) == ((1.5,), (27.25,))
    assert three.shape is not one.shape


_LITERALS_BY_ASSERTIONS = re.compile(
    r"""((?<![\w.$])(?<![\w.]-)(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?![\w.])|"[^"]*"|'[^']*')"""
)


@given(st.text(alphabet="01.-$a \"'5x_,\u0663", max_size=14))
def test_literals_are_found_where_they_stand(text: str) -> None:
    """The fast pattern finds what one finds that says first what must not stand before a number."""
    assert "".join(part for part in _LITERAL.split(text)) == text
    assert _LITERAL.split(text) == _LITERALS_BY_ASSERTIONS.split(text)
