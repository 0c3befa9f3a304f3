"""The optimised form: the restructuring query over what is sent answers as the original over the stream itself."""

from __future__ import annotations

from random import Random

import pytest

import papers
from anabranch.language import print_query
from anabranch.sharing.explain.trees import tree_lines
from anabranch.sharing.match import matches, merge, missing, same
from anabranch.sharing.normalize import unwindowed
from anabranch.sharing.render import render, render_join
from anabranch.sharing.tree import PropertyTree
from mass import some
from models.join_restructuring import restructure_join
from models.restructuring import restructure
from reference.asking import ask, stream
from sharing import joining
from sharing.making import answer, checked, items, selection, sent, several, sharp, tree, windowed

ROUNDS = some(range(8))
S, W, G = "\N{GREEK SMALL LETTER SIGMA}", "\N{GREEK SMALL LETTER OMEGA}", "\N{GREEK SMALL LETTER GAMMA}"
LOOP = "for $p in stream('s')/r/i"


def carried(shared: PropertyTree, given: str) -> str:
    """What a tree sends, windows as windows."""
    text = answer(render(shared), given)
    return text if text.startswith("<r") else f"<r>{text}</r>"


@pytest.mark.parametrize("seed", ROUNDS)
def test_selections(seed: int) -> None:
    """Over what the optimised tree sends, also out of a wider stream, the rest of a query gives the whole answer."""
    random = Random(seed)
    text = random.choice((selection, selection, sharp, several))(random)
    found = restructure(checked(text))
    rest = print_query(found.query)
    shared = merge(tree(text), tree(sharp(random)))
    for _ in range(2):
        given = items(random)
        assert answer(rest, carried(found.tree, given)) == answer(text, given), f"{text}\n{rest}"
        assert answer(rest, carried(found.tree, sent(shared, given))) == answer(text, given), f"{text}\n{rest}"


@pytest.mark.parametrize("seed", ROUNDS)
def test_windows(seed: int) -> None:
    """A window query answers out of the generic elements of figure 6, or else out of its items."""
    random = Random(seed)
    text = windowed(random)
    found = restructure(checked(text))
    rest = print_query(found.query)
    for _ in range(2):
        given = items(random)
        assert answer(rest, carried(found.tree, given)) == answer(text, given), f"{text}\n{rest}"


@pytest.mark.parametrize("seed", ROUNDS)
def test_joins(seed: int) -> None:
    """A join answers out of the tuples that its optimised forest sends, which are never more than the plain one's."""
    random = Random(seed)
    made = joining.joining(random)
    found = restructure_join(checked(made.text), "tuples")
    assert found is not None
    inputs = {name: items(random, 8) for name in made.streams}
    tuples = joining.answer(render_join(found.forest), inputs, made.time)
    rest = print_query(found.query)
    assert joining.answer(rest, {"tuples": tuples}, None) == joining.answer(made.text, inputs, made.time), (
        f"{made.text}\n{rest}"
    )
    for plain, optimised in zip(joining.forest(made.text).trees, found.forest.trees, strict=True):
        assert not list(missing(plain, optimised)), made.text


@pytest.mark.parametrize("seed", ROUNDS)
def test_never_larger_than_the_plain_form(seed: int) -> None:
    """All that the optimised form sends, the plain form sends too; what it still asks, it asks of what it gets."""
    random = Random(seed)
    text = random.choice((selection, sharp, windowed))(random)
    found = restructure(checked(text))
    plain = tree(text) if found.tree.window else unwindowed(tree(text))
    assert matches(plain, found.tree), text


GONE = (
    (
        "a where whose paths are not returned",
        f"{LOOP} where $p/a > 1 and $p/b < 5 return $p/k",
        ["r", "  i", "    a", "    b", f"    k •  {S} a > 1 and b < 5"],
        'for $p in stream("s")/r/i return $p/k',
    ),
    (
        "predicates of the loop",
        f"{LOOP}[a > 1][b < 5] return $p/k",
        ["r", "  i", "    a", "    b", f"    k •  {S} a > 1 and b < 5"],
        'for $p in stream("s")/r/i return $p/k',
    ),
    (
        "a hit per item",
        f"{LOOP} where not($p/a > 1) return <hit/>",
        ["r", f"  i ◦  {S} not(a > 1)", "    a"],
        'for $p in stream("s")/r/i return <hit/>',
    ),
    (
        "a branch that vanishes by itself",
        f"{LOOP} return <o>{{ if ($p/a > 1) then $p/b else () }}</o>",
        ["r", "  i ◦", "    a", f"    b •  {S} a > 1"],
        'for $p in stream("s")/r/i return <o>{ $p/b }</o>',
    ),
    (
        "a branch under which more is asked for than vanishes",
        f"{LOOP} return <o>{{ if ($p/a > 1) then $p/b else () }}{{ $p/b }}</o>",
        ["r", "  i", f"    a •  {S} a > 1", "    b •"],
        'for $p in stream("s")/r/i return <o>{ if ($p/a > 1) then $p/b else () }{ $p/b }</o>',
    ),
    (
        "what follows from the where, and what contradicts it",
        f"{LOOP} where $p/a > 5 return (if ($p/a > 1) then $p/b else $p/k, if (not($p/a > 2)) then <no/> else <yes/>)",
        ["r", "  i", "    a", f"    b •  {S} a > 5"],
        'for $p in stream("s")/r/i return ($p/b, <yes/>)',
    ),
    (
        "not what is asked of elements inside (case 4)",
        f"{LOOP} for $c in $p/c where $p/a > 1 and $c/x > 5 return $c/y",
        ["r", "  i", "    a", f"    c  {S} a > 1 and c/x > 5", "      x •", "      y •"],
        'for $p in stream("s")/r/i for $c in $p/c where $c/x > 5 return $c/y',
    ),
    (
        "not what is not understood",
        f"{LOOP} where $p/a > 1 and contains($p/k, 'u') return $p/b",
        ["r", f"  i  {S} a > 1", "    a", "    b •", "    k •"],
        'for $p in stream("s")/r/i where contains($p/k, "u") return $p/b',
    ),
    (
        "not where two loops read the stream",
        f"({LOOP} where $p/a > 1 return $p/b, {LOOP} return $p/k)",
        ["r", "  i", f"    a •  {S} a > 1", f"    b •  {S} a > 1", "    k •"],
        '(for $p in stream("s")/r/i where $p/a > 1 return $p/b, for $p in stream("s")/r/i return $p/k)',
    ),
    (
        "a postselection and a selection of values",
        "for $w in stream('s')/r/i[k = 'u']|t diff 6| let $m := avg($w/a) where $m > 3 and $w/b < 7 return $m",
        [
            "r",
            f"  i  {W} |t diff 6 step 6|, pre-{S} k = 'u', post-{S} b < 7",
            f"    a  {G} avg(a) •, {S} avg(a) > 3",
            "    b",
            "    k",
            "    t",
        ],
        'for $w in stream("s")/r/i let $m := max($w/avg_a/text()) return $m',
    ),
    (
        "a value that is only asked about comes along",
        "for $w in stream('s')/r/i|count 2| where avg($w/a) > 3 return <hit/>",
        ["r", f"  i  {W} |count 2 step 2|", f"    a  {G} avg(a) •, {S} avg(a) > 3"],
        'for $w in stream("s")/r/i return <hit/>',
    ),
    (
        "values beside elements of a window",
        "for $w in stream('s')/r/i|count 2| return <o>{ count($w/c) }{ $w/b[. > 1] }</o>",
        ["r", f"  i  {W} |count 2 step 2|", f"    b •  {S} b > 1", f"    c  {G} count(c) •"],
        'for $w in stream("s")/r/i return <o>{ data($w/count_c) }{ $w/win_i/i/b[. > 1] }</o>',
    ),
    (
        "a count with which one reckons: then the items are sent",
        "for $w in stream('s')/r/i|count 2| return count($w/c) + 1",
        ["r", "  i", "    c ◦"],
        'for $w in stream("s")/r/i|count 2| return count($w/c) + 1',
    ),
)


@pytest.mark.parametrize(("text", "lines", "rest"), [row[1:] for row in GONE], ids=[row[0] for row in GONE])
def test_what_goes(text: str, lines: list[str], rest: str) -> None:
    """The conditions that are gone, and the elements that are not sent any more."""
    found = restructure(checked(text))
    assert tree_lines(found.tree) == lines
    assert print_query(found.query) == rest


def test_example_3_3_what_is_not_returned_is_not_sent() -> None:
    """Without `ra`, `dec` and `en` in its result, q3's stream has only the detection times of its photons."""
    without = papers.Q3.replace("{ $p/coord/cel/ra }", "").replace("{ $p/coord/cel/dec }", "").replace("{ $p/en }", "")
    assert [each.path[-1] for each in restructure(checked(without)).tree.outputs] == ["det_time"]
    assert same(restructure(checked(papers.Q3)).tree, tree(papers.Q3))


def test_of_a_join_the_joined_elements_are_not_sent() -> None:
    """q7 joins by energy and returns it; without that, only the detection times travel."""
    without = papers.SHARING["q7"].replace("{ $x/en }", "").replace("{ $y/en }", "")
    found = restructure_join(checked(without), "tuples")
    assert found is not None
    assert [[each.path[-1] for each in tree.outputs] for tree in found.forest.trees] == [["det_time"], ["det_time"]]
    assert print_query(found.query) == (
        '<photons>{ for $tuple in stream("tuples")/photons_photons/photon_photon for $x in $tuple/photon1 '
        "for $y in $tuple/photon2 return <result>{ $x/det_time }{ $y/det_time }</result> }</photons>"
    )


def test_what_is_no_join_has_no_tuples() -> None:
    """A selection is restructured over items."""
    assert restructure_join(checked(papers.Q3), "tuples") is None


@pytest.mark.parametrize("text", [papers.Q3, papers.Q4, GONE[3][1], GONE[4][1]])
def test_the_abstract_query_is_its_own_optimised_form(text: str) -> None:
    """Deriving by the optimised rules from the rendered query gives the optimised tree again."""
    found = restructure(checked(text)).tree
    again = restructure(checked(render(found))).tree
    assert again.outputs == found.outputs


@pytest.mark.parametrize("function", ["min", "max", "avg", "sum", "count"])
def test_values_come_back_to_the_byte(function: str) -> None:
    """Zeros below zero, infinities, numbers that print with an exponent, no number at all, and errors."""
    odd = (
        "<a>-0</a>",
        "<a>NaN</a>",
        "<a>-INF</a>",
        "<a>0.1</a><a>0.2</a>",
        "<a>1e-7</a>",
        "<a>1500000.25</a>",
        "",
        "<a>x</a>",
    )
    text = f"for $w in stream('s')/r/i|count 1| let $m := {function}($w/a) return <o>{{ $m, 1 }}</o>"
    found = restructure(checked(text))
    assert found.tree.window
    original = ask(text, {"s": stream(*odd)})
    made = ask(render(found.tree), {"s": stream(*odd)})
    assert ask(print_query(found.query), {"s": made.text}).text == original.text
    assert len(made.dead) == len(original.dead) == (function != "count")
