"""What a query can ever need of its streams, told from its writing."""

from __future__ import annotations

from fractions import Fraction
from textwrap import dedent

import pytest

from anabranch.language import check, parse
from anabranch.sharing.needs import needs_of
from anabranch.sharing.retention import CURRENT, Lookback, Needs, PathNeed, Visibility, beyond_entries, kept, needed
from anabranch.stream.tree import Text


def needs(query: str) -> Needs:
    return needs_of(check(parse(query), query).query)


def written(found: Needs) -> str:
    """The trees, a step in each line."""
    return "\n".join("  " * depth + step(each) for tree in found.streams.values() for depth, each in tree.tree())


def step(need: PathNeed) -> str:
    """A step, and what is retained there."""
    name = f"@{need.label}" if need.axis == "attribute" else need.label
    said = f"{':' if need.reaches else ','} {need.words}" if need.words else ""
    return f"{'//' if need.axis == 'descendant' else ''}{name}{said}"


CASES = {
    "a snapshot keeps one version": (
        'stream("s")/r/i/b',
        """
        stream("s")
          r: current
            i: current
              b: current, whole
        """,
    ),
    "#1 keeps two": (
        'stream("s")/r/i#1',
        """
        stream("s")
          r: current
            i: 2 versions, whole
        """,
    ),
    "a place in its item needs all that is around it": (
        'for $p in stream("s")/r/i return path($p/a)',
        """
        stream("s"), whole
          r: current
            i: current
              a: current
        """,
    ),
    "each step has its own": (
        'stream("s")/r/a#1/b#[2]',
        """
        stream("s")
          r: current
            a: 2 versions
              b: 3 versions, whole
        """,
    ),
    "a minute": (
        'stream("s")/r/i?[60]',
        """
        stream("s")
          r: current
            i: what lived in the last 60 s, whole
        """,
    ),
    "the ticker (query 2) reads names and quotes, and of quotes two": (
        'for $q in stream("t")//ticker where $q/quote >= $q/quote#1 * 1.1 '
        "order by ($q/quote - $q/quote#1) div $q/quote return <quote>{ $q/name, $q/quote }</quote>",
        """
        stream("t")
          //ticker: current
            quote: 2 versions, whole
            name: current, whole
        """,
    ),
    "what is counted is not looked into": (
        'for $x in stream("s")/r/i[a] where exists($x/b) return count($x/c)',
        """
        stream("s")
          r: current
            i: current
              a: current
              b: current
              c: current
        """,
    ),
    "versions and seconds that say different things are both kept": (
        'for $x in stream("s")/r/i return ($x/b#2, $x/b?5, $x/b?3)',
        """
        stream("s")
          r: current
            i: current
              b: what lived in the last 5 s; 3 versions, whole
        """,
    ),
    "the document of then, and a version before it": (
        '(for $x in stream("s")/r/i return $x/b#1)?2.5',
        """
        stream("s")
          r: what lived in the last 2.5 s
            i: what lived in the last 2.5 s
              b: what lived in the last 2.5 s and 1 before, whole: what lived in the last 2.5 s
        """,
    ),
    "a variable's own versions": (
        'for $x in stream("s")/r/i return $x#3',
        """
        stream("s")
          r: current
            i: 4 versions, whole
        """,
    ),
    "through a function": (
        'declare function local:f($x) { $x/a#3 }; for $x in stream("s")/r/i return local:f($x)',
        """
        stream("s")
          r: current
            i: current
              a: 4 versions, whole
        """,
    ),
    "up and down": (
        'stream("s")/r/i/b[@k = 1]/../c#1',
        """
        stream("s")
          r: current
            i: current
              b: current
                @k
              c: 2 versions, whole
        """,
    ),
    "two streams": (
        'for $x in stream("s")/r/i where some $y in stream("t")/r/j?[1] satisfies $y/k = $x/k return <hit/>',
        """
        stream("s")
          r: current
            i: current
              k: current, whole
        stream("t")
          r: current
            j: what lived in the last 1 s
              k: current, whole
        """,
    ),
}


@pytest.mark.parametrize(("query", "expected"), CASES.values(), ids=CASES.keys())
def test_needs(query: str, expected: str) -> None:
    """The tree of a query's paths says how much of which regions it can ever need."""
    assert written(needs(query)) == dedent(expected).strip()


def test_a_need_keeps_what_no_other_covers() -> None:
    """Of several reaches those count that no other one covers."""
    five = Lookback(0, Fraction(5))
    assert needed([CURRENT, Lookback(1), Lookback(2), five, Lookback(1, Fraction(5))]) == {
        Lookback(2),
        Lookback(1, Fraction(5)),
    }
    assert needed([CURRENT, CURRENT]) == {CURRENT}
    assert needed([five, CURRENT]) == {five}


@pytest.mark.parametrize(
    ("reach", "count"),
    [
        (CURRENT, 1),
        (Lookback(1), 2),
        (Lookback(0, Fraction(3)), 2),  # the one before ended at 8, and 10 - 3 is earlier
        (Lookback(0, Fraction(2)), 1),  # an end is the moment at which it does not show any more (LAWS 5.2)
        (Lookback(1, Fraction(3)), 3),
        (Lookback(0, Fraction(60)), 4),
    ],
)
def test_how_many_versions_are_kept(reach: Lookback, count: int) -> None:
    """At 10, of versions that ended at 8, 5 and 1, and the one that lives, those within reach are kept."""
    assert kept(frozenset((reach,)), [None, Fraction(8), Fraction(5), Fraction(1)], Fraction(10)) == count


def test_the_newest_of_what_has_ended_is_kept() -> None:
    """In a version that was replaced long ago the newest that lived in it is what shows (LAWS 5.4)."""
    assert kept(frozenset((CURRENT,)), [Fraction(4), Fraction(2)], Fraction(10)) == 1


def test_the_seconds_after_which_time_alone_may_tell() -> None:
    """They are those of all time qualifiers, added up where one is inside the document of then."""
    query = '(for $x in stream("s")/r/i return $x/b?4)?2, stream("s")/r/i?[1]'
    assert needs(query).seconds("s") == (Fraction(1), Fraction(2), Fraction(6))
    assert needs('stream("s")/r/i#5').seconds("s") == ()


@pytest.mark.parametrize(
    ("path", "is_beyond"),
    [
        ("/r/i", False),
        ("/r", True),
        ("", True),
        ("//i", False),
        ("//r", True),
        ("//*", True),
        ("/*/*", False),
        ("/r/@k", True),
        ("/r/i/@k", False),
        ("/r[@k]/i", True),
        ("/r[i]/i", True),
        ("/r#1/i", True),
        ("/r/i[b/c]#1/b", False),
        ("/r/i/b/..", False),
        ("//b/..", True),
        ("//text()", False),
        ("//@k", True),
        ("/r/self::r/i", False),
    ],
)
def test_looks_beyond_entries(path: str, is_beyond: bool) -> None:
    """A path over a stream whose root is `r` looks beyond its entries where the root or the document counts."""
    assert beyond_entries(needs(f'stream("s"){path}').streams["s"], "r") is is_beyond


def test_sights() -> None:
    """A document is followed down by names, and what the query cannot see is told at every place."""
    root = Visibility.of(needs('for $x in stream("s")/r/i return ($x/b#2, $x//c/d/text())').streams["s"]).into("r")
    item = root.into("i")
    assert root.chains == {CURRENT}
    assert item.seen
    assert item.chains == {Lookback(2)}
    assert root.into("j").blind
    assert not root.into("j").seen
    below = item.into("x")  # perhaps there is a `c` in it
    assert not below.seen
    assert below.chains == {CURRENT}
    assert below.into("c").into("d").finds(Text("1"))
    assert not below.into("c").finds(Text("1"))
    assert item.into("b").into("anything").whole == {CURRENT}


def test_a_long_path() -> None:
    """A query's path may be as long as it likes."""
    steps = "/a" * 5_000
    assert len(written(needs(f'stream("s"){steps}')).splitlines()) == 5_001
