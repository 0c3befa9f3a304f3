"""Property forests: the rules for joins, what has none, and that nothing is lost on the way through them."""

from __future__ import annotations

from random import Random

import pytest

from anabranch.sharing.explain.trees import forest_lines, tree_lines
from anabranch.sharing.forest import PropertyForest, labels
from anabranch.sharing.match_joins import join_matches, merge_inputs, merge_joins, same_join
from anabranch.sharing.normalize import unjoined
from anabranch.sharing.render import render_join
from mass import some
from sharing.joining import Joining, answer, forest, joining, reduced, sent
from sharing.making import items

S, W, J = "\N{GREEK SMALL LETTER SIGMA}", "\N{GREEK SMALL LETTER OMEGA}", "\N{BOWTIE}"
LOOPS = "for $x in stream('s')/r/i|count 2| for $y in stream('u')/r/i|count 3|"
X, Y = f"{W} |count 2 step 2|", f"{W} |count 3 step 3|"

RULES = (
    (
        "a returned path; of the other item only that it is there",
        f"{LOOPS} return $x/a",
        [["s", "  r", f"    i  {X}", "      a •"], ["u", "  r", f"    i ◦  {Y}"]],
    ),
    (
        "a condition on one input is a selection of it, and for the other a part of the join",
        f"{LOOPS} where $x/a > 1 return ($x/b, $y/b)",
        [
            ["s", "  r", f"    i  {S} a > 1, {X}", "      a •", "      b •"],
            ["u", "  r", f"    i  {Y}", f"      b •  {J} s/a > 1"],
        ],
    ),
    (
        "the branches of an if have annotations of their own",
        f"{LOOPS} return if ($x/a = $y/a) then $x/b else $y/b",
        [
            ["s", "  r", f"    i  {X}", "      a •", f"      b •  {J} s/a = u/a"],
            ["u", "  r", f"    i  {Y}", "      a •", f"      b •  {J} not(s/a = u/a)"],
        ],
    ),
    (
        "a preselection belongs to the window",
        "for $x in stream('s')/r/i[a > 1]|count 2| for $y in stream('u')/r/i|count 3| return $y/b",
        [["s", "  r", f"    i ◦  {X}, pre-{S} a > 1", "      a"], ["u", "  r", f"    i  {Y}", "      b •"]],
    ),
    (
        "and in an interval join to what joins",
        "for $x in stream('s')/r/i[a > 1] for $y in stream('u')/r/i where $x/t - $y/t <= 2 and $y/t - $x/t <= 2 "
        "return $y/b",
        [
            ["s", "  r", f"    i  {S} a > 1, {J} s/t - u/t <= 2 and u/t - s/t <= 2", "      a •", "      t •"],
            ["u", "  r", f"    i  {J} s/a > 1 and s/t - u/t <= 2 and u/t - s/t <= 2", "      b •", "      t •"],
        ],
    ),
    (
        "a self-join has a tree for each of its loops",
        "for $x in stream('s')/r/i|count 2| for $y in stream('s')/r/i|count 3| where $x/a > $y/b return <o/>",
        [
            ["s", "  r", f"    i  {X}", f"      a •  {J} s/a > s_2/b"],
            ["s_2", "  r", f"    i  {Y}", f"      b •  {J} s/a > s_2/b"],
        ],
    ),
    (
        "what has no rule is touched in the tree it belongs to",
        f"{LOOPS} where contains($x/k, $y/k) and $y//b > 1 return $x/a",
        [["s", "  r", f"    i  {X}", "      a •", "      k •"], ["u", "  r", f"    i •  {Y}"]],
    ),
    (
        "three inputs",
        f"{LOOPS} for $z in stream('v')/r/i|count 1| where $x/a = $z/a return $y/b",
        [
            ["s", "  r", f"    i  {X}", f"      a •  {J} s/a = v/a"],
            ["u", "  r", f"    i  {Y}", f"      b •  {J} s/a = v/a"],
            ["v", "  r", f"    i  {W} |count 1 step 1|", f"      a •  {J} s/a = v/a"],
        ],
    ),
)


@pytest.mark.parametrize(("text", "expected"), [row[1:] for row in RULES], ids=[row[0] for row in RULES])
def test_rules(text: str, expected: list[list[str]]) -> None:
    """Each construct adds what rules (11) to (20) say, and the forest comes back from its abstract query."""
    found = forest(text)
    assert forest_lines(found) == [line for tree in expected for line in tree]
    assert same_join(forest(render_join(found)), found)


APART = (
    (
        "a preselection that is not understood",
        "for $x in stream('s')/r/i[contains(k, 'u')]|count 2| for $y in stream('u')/r/i|count 2| return $x/a",
        [["r", "  i", "    a •", "    k •"], ["r", "  i ◦"]],
    ),
    (
        "a window over elements inside items",
        "for $x in stream('s')/r/i/c|count 2| for $y in stream('u')/r/i|count 2| return $x/a",
        [["r", "  i", "    c", "      a •"], ["r", "  i ◦"]],
    ),
    (
        "a join beside a look at one of its streams",
        f"({LOOPS} return $x/a, stream('s')/r/i[b > 1]/b)",
        [["r", "  i", "    a •", f"    b •  {S} b > 1"], ["r", "  i ◦"]],
    ),
    (
        "streams that do not meet",
        "(for $x in stream('s')/r/i where $x/b > 1 return $x/a, stream('u')/r/i/k)",
        [["r", f"  i  {S} b > 1", "    a •", "    b •"], ["r", "  i", "    k •"]],
    ),
    (
        "an interval that is not understood",
        "for $x in stream('s')/r/i for $y in stream('u')/r/i where $x/t - $y/t + 1 <= 2 and $y/t - $x/t + 1 <= 2 "
        "return $x/a",
        [["r", "  i", "    a •", "    t •"], ["r", "  i", "    t •"]],
    ),
    (
        "keys",
        "for $x in stream('s')/r/i[a > 1], $y in stream('u')/r/i where $x/k = $y/l and not($y/b > 2) return $x/c",
        [
            ["r", f"  i  {S} a > 1", "    a •", "    c •", "    k •"],
            ["r", "  i", "    b •", f"    l •  {S} not(b > 2)"],
        ],
    ),
    (
        "keys that may raise",
        "for $x in stream('s')/r/i, $y in stream('u')/r/i[a > 1] where $x/k[. > 2] = $y/l and $x/b > 2 return $y/c",
        [
            ["r", "  i", f"    b •  {S} b > 2", "    k •"],
            ["r", f"  i  {S} a > 1", "    a •", "    c •", "    l •"],
        ],
    ),
    (
        "a join of a stream with itself",
        "for $x in stream('s')/r/i[a > 1], $y in stream('s')/r/i where $x/k = $y/k and $y/b = 'u' return <o/>",
        [["r", f"  i  {S} a > 1 or b = 'u'", "    a •", "    b •", "    k •"]],
    ),
    (
        "windows of durations, which all items move",
        "for $x in stream('s')/r/i[a > 1]|t diff PT1M| for $y in stream('u')/r/i|t diff PT1M| where $y/b > 1 "
        "return $x/c",
        [
            ["r", "  i", f"    a •  {S} a > 1", f"    c •  {S} a > 1", "    t •"],
            ["r", "  i", "    b •", "    t •"],
        ],
    ),
    (
        "several streams as one",
        "for $x in stream('s')/r/i[a > 1] union stream('u')/r/i except stream('s')/r/i[b = 'u'] where $x/k > 2 "
        "return $x/c",
        [
            [
                "r",
                "  i",
                *(f"    {path} •  {S} a > 1 or b = 'u'" for path in "ab"),
                *(f"    {path} •  {S} a > 1 and k > 2 or b = 'u' and k > 2" for path in "ck"),
            ],
            ["r", f"  i  {S} k > 2", "    c •", "    k •"],
        ],
    ),
    (
        "windows over a join",
        "for $w in (for $x in stream('s')/r/i[a > 1], $y in stream('u')/r/i where $x/k = $y/k return <m>{ $x/t }</m>)"
        "|t diff 4| return <o>{ sum($w/t) }</o>",
        [["r", f"  i  {S} a > 1", "    a •", "    k •", "    t •"], ["r", "  i", "    k •"]],
    ),
    ("a step out of the item", f"{LOOPS} return $x/a/..", [["everything •"], ["everything •"]]),
    ("a join that returns nothing", f"{LOOPS} return ()", [["nothing"], ["nothing"]]),
)


@pytest.mark.parametrize(("text", "expected"), [row[1:] for row in APART], ids=[row[0] for row in APART])
def test_inputs_that_are_apart(text: str, expected: list[list[str]]) -> None:
    """A join without a rule says nothing of how its inputs meet, and sends of each all that it may touch."""
    found = forest(text)
    assert found.kind == "apart"
    assert [tree_lines(each) for each in found.trees] == expected


def test_names_do_not_collide() -> None:
    """Inputs are told apart whatever their streams are called, and their names are names of elements."""
    text = " ".join(f"for $v{n} in stream('{name}')/r/i|count 1|" for n, name in enumerate(("s", "s", "s_2", "7 up")))
    found = forest(f"{text} return ($v0/a, $v1/a, $v2/a, $v3/a)")
    assert labels(found.trees) == ("s", "s_2", "s_2_2", "_7_up")
    assert forest(render_join(found)) == found


def test_all_items_that_move_a_window_are_sent() -> None:
    """An item that is not selected moves its window on (LAWS 3.2), and what the others meet then is not the same."""
    join = Joining(("s", "u"), ("[a > 1]", ""), ("|t diff 5|", "|t diff 5|"), "", "<o>{ $x/a }{ $y/a }</o>")
    given = {
        "s": "<r><i><a>2</a><t>1</t></i><i><a>0</a><t>11</t></i><i><a>3</a><t>12</t></i></r>",
        "u": "<r><i><a>7</a><t>2</t></i><i><a>8</a><t>9</t></i><i><a>9</a><t>11.5</t></i></r>",
    }
    found = sent(forest(join.text), given)
    assert "<t>11</t>" in found["s"]
    assert "<a>0</a>" not in found["s"]
    assert answer(join.text, found, "t") == answer(join.text, given, "t")
    without = {**found, "s": found["s"].replace("<i><t>11</t></i>", "")}
    assert answer(join.text, without, "t") != answer(join.text, given, "t")


ROUNDS = some(range(10))


def _inputs(random: Random, join: Joining) -> dict[str, str]:
    return {name: items(random, 8) for name in dict.fromkeys(join.streams)}


@pytest.mark.parametrize("seed", ROUNDS)
def test_inputs_lose_nothing(seed: int) -> None:
    """A join over its inputs, each reduced to what its tree sends, answers as over the streams themselves."""
    random = Random(seed)
    join = joining(random)
    given = _inputs(random, join)
    assert answer(join.text, sent(forest(join.text), given), join.time) == answer(join.text, given, join.time), (
        join.text
    )


@pytest.mark.parametrize("seed", ROUNDS)
def test_tuples_lose_nothing(seed: int) -> None:
    """A query over the tuples that its forest sends answers as the join itself; and the abstract query's forest is
    the one it was rendered from."""
    random = Random(seed)
    join = joining(random)
    found = forest(join.text)
    abstract = render_join(found)
    assert same_join(forest(abstract), found), f"{join.text}\n{abstract}"
    given = _inputs(random, join)
    tuples = answer(abstract, given, join.time)
    assert answer(join.over_tuples(found), {"j": tuples}, None) == answer(join.text, given, join.time), join.text


@pytest.mark.parametrize("seed", ROUNDS)
def test_shared_joins_lose_nothing(seed: int) -> None:
    """Two joins that share their tuples each find their own in them; else both find their inputs."""
    random = Random(seed)
    first, other = joining(random), joining(random)
    where = first.where if other.windows[0] and not first.windows[0] else other.where  # only intervals bound intervals
    second = Joining(first.streams, first.preselections, first.windows, where, other.returned)
    given = _inputs(random, first)
    merged = merge_joins(forest(first.text), forest(second.text))
    if isinstance(merged, PropertyForest):
        tuples = answer(render_join(merged), given, first.time)
        for join in (first, second):
            assert join_matches(merged, forest(join.text))
            assert answer(join.over_tuples(merged), {"j": tuples}, None) == answer(join.text, given, first.time)
    inputs = merge_inputs((*unjoined(forest(first.text)), *unjoined(forest(second.text))))
    carried = {tree.stream: reduced(tree, given[tree.stream]) for tree in inputs}
    for join in (first, second):
        assert answer(join.text, carried, first.time) == answer(join.text, given, first.time)
