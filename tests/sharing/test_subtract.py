"""Tree subtraction: a stream and the remainder together have what a query needs; and narrowing, which uses it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

import pytest

import papers
from anabranch.predicate import EVERYTHING, NOTHING, and_, compare, implies, not_, or_
from anabranch.sharing.explain.trees import tree_lines
from anabranch.sharing.match import matches, merge, merge_all, same
from anabranch.sharing.normalize import unwindowed
from anabranch.sharing.render import render
from anabranch.sharing.subtract import remaining, subtract
from anabranch.sharing.tree import PropertyTree, item_term
from mass import some
from reference.asking import leaves
from sharing.making import answer, items, query, selection, sent, sharp, tree, windowed

ROUNDS = some(range(7))
S, W, G = "\N{GREEK SMALL LETTER SIGMA}", "\N{GREEK SMALL LETTER OMEGA}", "\N{GREEK SMALL LETTER GAMMA}"
_WINDOW = r"/i(\[[^|]*\])?\|[^|]*\|"
LOOP = "for $p in stream('s')/r/i"
A = item_term(("r", "i", "a"))
B = item_term(("r", "i", "b"))


def lines(found: PropertyTree | None) -> list[str]:
    return [] if found is None else tree_lines(found)


@pytest.mark.parametrize("seed", ROUNDS)
def test_nothing_is_missing(seed: int) -> None:
    """Every element that a query needs of an item is in the stream or in the remainder, and the answer with it."""
    random = Random(seed)
    text = selection(random)
    needed, stream = unwindowed(tree(text)), tree(random.choice((selection, sharp))(random))
    remainder = subtract(needed, stream)
    assert (remainder is None) == matches(stream, needed)
    if remainder is None:
        return
    assert matches(needed, remainder), "the remainder is a part of the query"
    assert matches(merge(stream, remainder), needed)
    for _ in range(3):
        given = items(random, 1)
        for output in needed.outputs:
            path = f"stream('s')/{'/'.join(output.path) or 'r'}"
            asked = f"<o>{{ {path if output.whole else f'count({path})[. > 0]'} }}</o>"
            wanted, *found = (answer(asked, sent(each, given)) for each in (needed, stream, remainder))
            assert wanted in ("<o/>", *found), f"{path} of {given}\n{text}"


@pytest.mark.parametrize("seed", ROUNDS)
def test_the_least_widening(seed: int) -> None:
    """Any kind of query answers over the stream that was widened by the remainder alone."""
    random = Random(seed)
    text = query(random)
    stream = tree(selection(random))
    remainder = subtract(tree(text), stream)
    widened = merge(stream, remainder) if remainder else stream
    given = items(random)
    assert answer(text, sent(widened, given)) == answer(text, given), text


@pytest.mark.parametrize("seed", ROUNDS)
def test_windows(seed: int) -> None:
    """Of two queries over the same windows, what one lacks of the other is a part of it, and makes it whole."""
    random = Random(seed)
    first, second = windowed(random), windowed(random)
    needed, stream = tree(first), tree(re.sub(_WINDOW, re.search(_WINDOW, first)[0], second))  # type: ignore[index]
    remainder = subtract(needed, stream)
    assert (remainder is None) == matches(stream, needed)
    if remainder is not None:
        assert matches(merge(stream, remainder), needed)
        assert matches(needed, remainder)
        answer(render(remainder), items(random))


@pytest.mark.parametrize("seed", ROUNDS)
def test_single_numbers_are_sent_once(seed: int) -> None:
    """Where the conditions are about one element that occurs once, no item is in the stream and in the remainder."""
    random = Random(seed)

    def within() -> str:
        low = random.randrange(8)
        return random.choice((f"$p/a >= {low}", f"$p/a >= {low} and $p/a < {low + 3}", f"$p/a < {low} or $p/a = 8"))

    needed, stream = (tree(f"{LOOP} where {within()} return $p/a") for _ in range(2))
    given = leaves("a", *range(10))
    remainder = subtract(needed, stream)
    wanted, there, beside = (
        set(answer("string-join(stream('s')/r/i/a, '')", sent(each, given))) if each else set()
        for each in (needed, stream, remainder)
    )
    assert beside == wanted - there


DIFFERENCES = (
    (
        "numbers of one element",
        f"{LOOP} where $p/a > 5 return $p/k",
        f"{LOOP} where $p/a > 7 return $p/k",
        ["r", f"  i  {S} a > 5 and a <= 7", "    a •", "    k •"],
    ),
    (
        "the middle of an interval",
        f"{LOOP} where $p/a >= 2 and $p/a <= 9 return $p/a",
        f"{LOOP} where $p/a > 4 and $p/a < 6 return $p/a",
        ["r", "  i", f"    a •  {S} a >= 2 and a <= 4 or a <= 9 and a >= 6"],
    ),
    ("texts", f"{LOOP} return $p", f"{LOOP} where $p/k = 'v' return $p", ["r", f"  i •  {S} not(k = 'v')", "    k"]),
    (
        "a path more",
        f"{LOOP} where $p/a > 1 return ($p/k, $p/b)",
        f"{LOOP} where $p/a > 1 return $p/k",
        ["r", "  i", "    a", f"    b •  {S} a > 1"],
    ),
    (
        "numbers of another element, of which the stream may raise: all of it",
        f"{LOOP} where $p/a > 1 return $p/k",
        f"{LOOP} where $p/b > 1 return $p/k",
        ["r", f"  i  {S} a > 1", "    a •", "    k •"],
    ),
    (
        "a value more, under the condition that another one has",
        "for $w in stream('s')/r/i|count 2| let $m := avg($w/a) where $m > 1 return ($m, max($w/b))",
        "for $w in stream('s')/r/i|count 2| let $m := avg($w/a) where $m > 2 return $m",
        [
            "r",
            f"  i  {W} |count 2 step 2|",
            f"    a  {G} avg(a) •, {S} avg(a) > 1 and not(avg(a) > 2)",
            f"    b  {G} max(b) •, {S} avg(a) > 1",
        ],
    ),
    (
        "windows of another size: the whole query",
        "for $w in stream('s')/r/i|count 2| return sum($w/a)",
        "for $w in stream('s')/r/i|count 3| return sum($w/a)",
        ["r", f"  i  {W} |count 2 step 2|", f"    a  {G} sum(a) •"],
    ),
)


@pytest.mark.parametrize(("text", "stream", "expected"), [r[1:] for r in DIFFERENCES], ids=[r[0] for r in DIFFERENCES])
def test_differences(text: str, stream: str, expected: list[str]) -> None:
    """What is left of a query beside a stream."""
    assert lines(subtract(tree(text), tree(stream))) == expected


def test_the_paper_s_queries() -> None:
    """What matches leaves nothing (4.4: q1 in q2, q3 in q4); beside q1's averages q3 needs all its photons."""
    q1, q2, q3, q4 = (tree(papers.SHARING[name]) for name in ("q1", "q2", "q3", "q4"))
    assert subtract(q1, q2) is subtract(q3, q4) is None
    remainder = subtract(q3, q1)
    assert remainder is not None
    assert same(remainder, q3)


def test_what_raises_is_not_lost() -> None:
    """`a > 5` beside `b > 1`: for an item whose `b` is a word the stream raises, and so would `not(b > 1)`."""
    needed, given = compare(A, ">", 5), compare(B, ">", 1)
    assert not implies(needed, or_(given, and_(needed, not_(given))))
    assert remaining(needed, given) == needed
    assert remaining(needed, or_(needed, given)) == NOTHING
    assert remaining(EVERYTHING, compare(A, "=", "x")) == not_(compare(A, "=", "x"))


# --- narrowing ----------------------------------------------------------------------------------------------


def narrowed(wide: PropertyTree, remaining: Sequence[PropertyTree]) -> tuple[PropertyTree, PropertyTree | None]:
    """The stream for those who remain, and what need not be sent any more; the wide stream where nothing is freed."""
    needed = merge_all(remaining) if remaining else PropertyTree(wide.stream, schema=wide.schema)
    freed = subtract(wide, needed) if matches(wide, needed) else None
    return (wide, None) if freed is None else (needed, freed)


@pytest.mark.parametrize("seed", ROUNDS)
def test_narrowing(seed: int) -> None:
    """When one leaves, the others answer out of the narrowed stream; with what was freed it is the old one again."""
    random = Random(seed)
    texts = [selection(random), *(sharp(random) for _ in range(3))]
    trees = [tree(text) for text in texts]
    wide = merge_all(trees)
    rest, freed = narrowed(wide, trees[1:])
    assert matches(wide, rest)
    assert freed is None or matches(merge(rest, freed), wide)
    given = items(random)
    carried = sent(rest, given)
    for text in texts[1:]:
        assert answer(text, carried) == answer(text, given), text


def test_what_narrowing_frees() -> None:
    """The items and elements that only the one who left needed; nothing where another needs them too."""
    low, high, more = (
        tree(f"{LOOP} where $p/a < 3 return $p/a"),
        tree(f"{LOOP} where $p/a > 6 return $p/a"),
        tree(f"{LOOP} where $p/a > 6 return ($p/a, $p/b)"),
    )
    wide = merge_all([low, high, more])
    rest, freed = narrowed(wide, [low, high])
    assert lines(freed) == ["r", "  i", "    a", f"    b •  {S} a > 6"]
    assert same(rest, merge(low, high))
    _, freed = narrowed(wide, [high, more])
    assert lines(freed) == ["r", "  i", f"    a •  {S} a < 3"]
    rest, freed = narrowed(wide, [low, more])
    assert freed is None
    assert rest is wide


def test_the_last_one_leaves() -> None:
    """A stream without readers sends nothing."""
    alone = tree(f"{LOOP} where $p/a < 3 return $p/a")
    rest, freed = narrowed(alone, [])
    assert tree_lines(rest) == ["nothing"]
    assert freed is not None
    assert same(freed, alone)


def test_windows_come_back() -> None:
    """q3 made a stream of averages one of photons; when it leaves, the averages are sent again instead of photons."""
    q1, q3 = tree(papers.SHARING["q1"]), tree(papers.SHARING["q3"])
    wide = merge(q1, q3)
    assert wide.window is None
    rest, freed = narrowed(wide, [q1])
    assert same(rest, q1)
    assert freed is wide
