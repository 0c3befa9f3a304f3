"""The inference rules one by one, what has no rule, and the cases of the laws that sharing must keep."""

from __future__ import annotations

import pytest

from anabranch.errors import Unsupported
from anabranch.predicate import EVERYTHING
from anabranch.sharing.explain.trees import tree_lines
from anabranch.sharing.match import matches, merge, merge_all, same
from anabranch.sharing.render import generic_names, render
from anabranch.sharing.rules.derive import derive
from anabranch.stream.schema import Schema
from reference.asking import stream
from sharing.making import answer, checked, sent, tree

S = "\N{GREEK SMALL LETTER SIGMA}"
G = "\N{GREEK SMALL LETTER GAMMA}"
W = "\N{GREEK SMALL LETTER OMEGA}"

LOOP = "for $p in stream('s')/r/i"
RULES = (
    ("a returned path", f"{LOOP} return $p/a", ["r", "  i", "    a •"]),
    ("a path alone", "stream('s')/r/i/a", ["r", "  i", "    a •"]),
    ("a path with a predicate", "stream('s')/r/i[b > 1]/a", ["r", f"  i  {S} b > 1", "    a •", "    b •"]),
    ("a returned variable", f"{LOOP} return $p", ["r", "  i •"]),
    ("a sequence", f"{LOOP} return ($p/a, $p/b)", ["r", "  i", "    a •", "    b •"]),
    ("a constructor", f"{LOOP} return <o>{{ $p/a }}</o>", ["r", "  i", "    a •"]),
    ("no path at all: the item itself", f"{LOOP} return <hit/>", ["r", "  i ◦"]),
    (
        "a hit per item under a condition",
        f"{LOOP} where $p/a > 1 return <hit/>",
        ["r", "  i", f"    a •  {S} a > 1"],
    ),
    (
        "an element that is only sometimes there does not decide about the item",
        f"{LOOP} return <o>{{ $p/a[. > 5] }}</o>",
        ["r", "  i ◦", f"    a •  {S} a > 5"],
    ),
    (
        "conditions on the way are joined by and",
        f"{LOOP}[b > 1] where $p/c > 2 return if ($p/d > 3) then $p/a else ()",
        [
            "r",
            "  i",
            f"    a •  {S} b > 1 and c > 2 and d > 3",
            f"    b •  {S} b > 1",
            f"    c •  {S} b > 1 and c > 2",
            f"    d •  {S} b > 1 and c > 2 and d > 3",
        ],
    ),
    (
        "occurrences are joined by or",
        f"({LOOP} where $p/a > 5 return $p/a, {LOOP} where $p/a < 2 return $p/a)",
        ["r", "  i", f"    a •  {S} a > 5 or a < 2"],
    ),
    (
        "the branches of an if do not contradict each other, and its condition is seen by both",
        f"{LOOP} return if ($p/a > 1) then $p/b else $p/c",
        ["r", "  i", "    a •", f"    b •  {S} a > 1", f"    c •  {S} not(a > 1)"],
    ),
    (
        "a not must see what it denies",
        f"{LOOP} where $p/b > 1 and not($p/a > 1) return $p/c",
        ["r", "  i", f"    a •  {S} b > 1", f"    b •  {S} b > 1", f"    c •  {S} b > 1 and not(a > 1)"],
    ),
    (
        "a name for a path says nothing by itself",
        f"{LOOP} let $x := $p/c where $x/a > 1 return $p/b",
        ["r", f"  i  {S} c/a > 1", "    b •", "    c", "      a •"],
    ),
    (
        "a round is counted though nothing of its element is returned",
        f"{LOOP} for $c in $p/c return $p/a",
        ["r", "  i", "    a •", "    c ◦"],
    ),
    (
        "sums and distances are compared",
        f"{LOOP} where $p/a >= $p/b + 0.5 and 3 > $p/a - $p/c return $p/d",
        ["r", f"  i  {S} a >= b + 0.5 and a - c < 3", "    a •", "    b •", "    c •", "    d •"],
    ),
    (
        "conditions on elements inside an item hold for the item only as far as they can",
        f"{LOOP} for $c in $p/c where $c/x > 1 and not($c/y > 2) return $c/z",
        ["r", "  i", f"    c  {S} c/x > 1", "      x •", "      y •", "      z •"],
    ),
    (
        "a time window",
        "for $w in stream('s')/r/i|t diff 4| return sum($w/a)",
        ["r", f"  i  {W} |t diff 4 step 4|", f"    a  {G} sum(a) •", "    t"],
    ),
    (
        "a count window with conditions before and behind it",
        "for $w in stream('s')/r/i[k = 'u']|count 4 step 2| let $a := max($w/a) where $a > 3 and $w/b > 1 return $a",
        [
            "r",
            f"  i  {W} |count 4 step 2|, pre-{S} k = 'u', post-{S} b > 1",
            f"    a  {G} max(a) •, {S} max(a) > 3",
            "    b •",
            "    k",
        ],
    ),
    (
        "a window without aggregates",
        "for $w in stream('s')/r/i|count 2| return <o>{ $w/a }</o>",
        ["r", f"  i  {W} |count 2 step 2|", "    a •"],
    ),
    (
        "an aggregate with a condition of its own",
        "for $w in stream('s')/r/i|count 2| return avg($w/c[x > 1]/y)",
        ["r", f"  i  {W} |count 2 step 2|", "    c", "      x", f"      y  {G} avg(c[x > 1]/y) •"],
    ),
    (
        "an aggregate per item is one of a window of one item",
        f"{LOOP} return sum($p/a)",
        ["r", f"  i  {W} |count 1 step 1|", f"    a  {G} sum(a) •"],
    ),
    (
        "an aggregate of the whole stream has no window",
        "<o>{ avg(stream('s')/r/i/a) }</o>",
        ["r", "  i", f"    a  {G} avg(a) •"],
    ),
)


@pytest.mark.parametrize(("text", "expected"), [row[1:] for row in RULES], ids=[row[0] for row in RULES])
def test_rules(text: str, expected: list[str]) -> None:
    """Each construct with a rule adds what the rule says, and the tree comes back from its abstract query."""
    found = tree(text)
    assert tree_lines(found) == expected
    assert same(tree(render(found)), found)


WITHOUT = (
    ("a step to descendants", f"{LOOP} where $p//a > 1 return $p/b", ["r", "  i •"]),
    ("a step to anything", f"{LOOP} return $p/c/*", ["r", "  i", "    c •"]),
    ("an attribute", f"{LOOP} return $p/c/@id", ["r", "  i", "    c •"]),
    ("text", f"{LOOP} return $p/a/text()", ["r", "  i", "    a •"]),
    (
        "a quantifier",
        f"{LOOP} where some $c in $p/c satisfies $c/x > 1 return $p/a",
        ["r", "  i", "    a •", "    c •"],
    ),
    (
        "a function",
        f"{LOOP} where contains($p/k, 'u') and $p/b > 1 return $p/a",
        ["r", f"  i  {S} b > 1", "    a •", "    b •", "    k •"],
    ),
    (
        "a condition of which a part is unknown",
        f"{LOOP} where $p/b > 1 or $p/k return $p/a",
        ["r", "  i", "    a •", "    b •", "    k •"],
    ),
    ("a product", f"{LOOP} where $p/a * 2 > 5 return $p/b", ["r", "  i", "    a •", "    b •"]),
    ("a sum of three", f"{LOOP} where $p/a > $p/b + 1 + 2 return $p/b", ["r", "  i", "    a •", "    b •"]),
    ("an order", f"{LOOP} order by $p/b return $p/a", ["r", "  i", "    a •", "    b •"]),
    ("a step upwards", f"{LOOP} return $p/a/..", ["everything •"]),
    ("a stream's descendants", "stream('s')//a", ["everything •"]),
    ("the root itself", "stream('s')/r", ["r •"]),
    ("roots of two names", "(stream('s')/r, stream('s')/q/i/a)", ["q", "  i", "    a •", "r •"]),
    ("items of two names", "(stream('s')/r/i/a, stream('s')/r/j/a)", ["r", "  i", "    a •", "  j", "    a •"]),
    ("a namespace around", f"<o xmlns='u'>{{ {LOOP} return $p/a }}</o>", ["everything •"]),
    ("a version of the past", f"{LOOP} where $p/b > 1 return $p/a#1", ["everything •"]),
    (
        "a window beside a look at the stream",
        "(for $w in stream('s')/r/i[b > 1]|count 2| return sum($w/a), stream('s')/r/i/a)",
        ["r", "  i", "    a •", f"    b •  {S} b > 1"],
    ),
    ("values that are filtered come by themselves", f"{LOOP} return (1, 2)[. > 1]", ["r", "  i ◦"]),
    ("names in a namespace", f"declare default element namespace 'u'; {LOOP} return $p/a", ["everything •"]),
    (
        "a second window",
        "(for $w in stream('s')/r/i|count 2| return sum($w/a), for $v in stream('s')/r/i|count 3| return $v/b)",
        ["r", "  i", "    a •", "    b •"],
    ),
    (
        "a window over elements inside items",
        "for $w in stream('s')/r/i/c|count 2| return sum($w/a)",
        ["r", "  i", "    c", "      a •"],
    ),
    (
        "a preselection that is not understood",
        "for $w in stream('s')/r/i[contains(k, 'u') and b > 1]|t diff 4| return count($w)",
        ["r", f"  i  {S} b > 1", "    b •", "    k •", "    t •"],
    ),
)


@pytest.mark.parametrize(("text", "expected"), [row[1:] for row in WITHOUT], ids=[row[0] for row in WITHOUT])
def test_constructs_without_a_rule(text: str, expected: list[str]) -> None:
    """They add every path they may touch, and no condition; these trees come back too."""
    found = tree(text)
    assert tree_lines(found) == expected
    assert same(tree(render(found)), found)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "for $x in stream('s')/r/i|count 2| for $y in stream('u')/r/i|count 2| return $x/a",
            "several inputs has a property forest",
        ),
        (
            "for $x in stream('s')/r/i|count 2| for $y in stream('s')/r/i|count 2| return $x/a",
            "several inputs has a property forest",
        ),
        ("(stream('s')/r/i/a, stream('u')/r/i/a)", "several inputs has a property forest"),
        ("<o/>", "no stream"),
    ],
)
def test_queries_without_a_tree(text: str, message: str) -> None:
    """A join has a forest, and what reads no stream has neither; both are said."""
    with pytest.raises(Unsupported, match=message):
        tree(text)


def test_a_query_that_needs_nothing() -> None:
    """A loop that returns nothing asks for nothing."""
    found = tree(f"{LOOP} return ()")
    assert tree_lines(found) == ["nothing"]
    assert answer(render(found), stream("<a>1</a>")) == ""


def test_order_of_the_schema() -> None:
    """With a DTD, elements stand as it declares them, and what it does not know stands behind, by name."""
    schema = Schema.from_dtd("<!ELEMENT r (i*)> <!ELEMENT i (b, a)> <!ELEMENT a (#PCDATA)> <!ELEMENT b (#PCDATA)>")
    found = derive(checked(f"{LOOP} return ($p/a, $p/z, $p/b, $p/y)"), schema)
    assert [each.path[-1] for each in found.outputs] == ["b", "a", "y", "z"]


# --- the cases of the laws ----------------------------------------------------------------------------------

CASES = (
    (
        "case 1",
        stream("<en>1</en><en>5</en>"),
        f"{LOOP} where $p/en >= 4 and $p/en <= 2 return $p/en",
        "<en>1</en><en>5</en>",
    ),
    ("case 2", stream("<phc>7</phc>"), f"{LOOP} return if ($p/en > 1.3) then <hi/> else $p/phc", "<phc>7</phc>"),
    ("case 3", stream("<en>NaN</en>"), f"{LOOP} where not($p/en < 5) return $p/en", "<en>NaN</en>"),
    (
        "case 4",
        stream("<c><ra>1</ra><dec>9</dec></c><c><ra>9</ra><dec>1</dec></c>"),
        f"{LOOP} where some $c in $p/c satisfies $c/ra > 5 and $c/dec > 5 return $p/c",
        "",
    ),
    (
        "case 11",
        stream("<en>1</en>", "<en>2</en>", "<en>3</en>"),
        f"{LOOP} where $p/en >= 2 return <hit/>",
        "<hit/><hit/>",
    ),
)


@pytest.mark.parametrize(("given", "text", "expected"), [row[1:] for row in CASES], ids=[row[0] for row in CASES])
def test_cases_of_the_laws(given: str, text: str, expected: str) -> None:
    """By itself, and shared with others, a query answers as the laws say."""
    others = (f"{LOOP} where $p/c/ra > 3 return $p/c/ra", f"{LOOP} where $p/en > 100 return $p/phc")
    merged = merge_all([tree(each) for each in (text, *others)])
    assert answer(text, given) == expected
    assert answer(text, sent(tree(text), given)) == expected
    assert answer(text, sent(merged, given)) == expected


def test_what_a_not_looks_at_is_there() -> None:
    """An item that comes for another query must still show why this one does not want it."""
    hits = f"{LOOP} where not($p/a > 1) return <hit/>"
    given = stream("<a>5</a><b>7</b>", "<a>0</a><b>7</b>", "<b>7</b>", "<b>1</b>")
    merged = merge(tree(hits), tree(f"{LOOP} where $p/b > 5 return $p/k"))
    assert answer(hits, sent(merged, given)) == answer(hits, given) == "<hit/><hit/><hit/>"


def _average(size: int, condition: str = "") -> str:
    return f"for $w in stream('s')/r/i|t diff {size}| let $a := avg($w/en) {condition} return <a>{{ $a }}</a>"


def test_case_7_parts_of_a_window_are_not_filtered() -> None:
    """Two averages of at least 2 over 10 and 20: the shared windows keep those below, which the larger one needs."""
    small, large = tree(_average(10, "where $a >= 2")), tree(_average(20, "where $a >= 2"))
    assert not matches(small, large)
    merged = merge(small, large)
    assert [each.selection for each in merged.aggregates] == [EVERYTHING]
    given = stream("<t>1</t><en>1</en>", "<t>11</t><en>5</en>")
    assert answer(render(merged), given).count("<avg_en>") == 2


def test_windows_of_one_size_share_their_selection() -> None:
    """Where sizes agree, the weaker of two selections serves both."""
    weak, strong = tree(_average(10, "where $a >= 2")), tree(_average(10, "where $a >= 3"))
    assert matches(weak, strong)
    assert not matches(strong, weak)
    assert same(merge(strong, weak), weak)


def test_a_window_serves_its_equal() -> None:
    """Windows of 10 every 3 are those of another query of 10 every 3, though 3 does not divide 10."""
    text = "for $w in stream('s')/r/i|t diff 10 step 3| return avg($w/en)"
    assert matches(tree(text), tree(text))


def test_case_10_generic_names_do_not_collide() -> None:
    """Two averages of one element, with and without a condition, have names of their own in one stream."""
    plain = "for $w in stream('s')/r/i|count 2| return avg($w/en)"
    merged = merge(tree(plain), tree(plain.replace("$w/en", "$w/en[. > 1]")))
    assert generic_names(merged.aggregates) == ["avg_en", "avg_en_2"]
    given = stream("<en>1</en>", "<en>3</en>")
    assert answer(render(merged), given) == "<r><i><avg_en>2</avg_en><avg_en_2>3</avg_en_2></i></r>"


def test_values_of_different_items_are_different() -> None:
    """Two averages over all of a stream, of elements of one name in items of two, keep their conditions apart."""
    text = "let $a := avg(stream('s')/r/i/x) let $b := avg(stream('s')/r/j/x) where $a > 2 return <o>{ $b }</o>"
    found = tree(text)
    assert len(found.aggregates) == 2
    assert same(tree(render(found)), found)
    given = "<r><i><x>3</x></i><j><x>1</x></j></r>"
    assert answer(render(found), given) == "<r><i><avg_x>3</avg_x><avg_x_2>1</avg_x_2></i></r>"


def test_equal_preselections_however_written() -> None:
    """Aggregates are the same if their conditions mean the same."""
    first = "for $w in stream('s')/r/i|count 2| return avg($w/en[. > 1 and . < 5])"
    second = "for $w in stream('s')/r/i|count 2| return avg($w/en[5 > . and 1 < .])"
    assert same(tree(first), tree(second))


def test_different_preselections_share_items() -> None:
    """Windows over different items are no windows of each other; what both need is sent."""
    text = "for $w in stream('s')/r/i[a > 1]|t diff 4| return sum($w/b)"
    merged = merge(tree(text), tree(text.replace("a > 1", "a > 5")))
    assert merged.window is None
    assert tree_lines(merged) == ["r", f"  i  {S} a > 1", "    a •", "    b •", "    t •"]
