"""What displays over streams that only grow keep, and what an item costs: what it changes, not what came before."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random
from types import FrameType

import pytest

from anabranch.branch.growing.split import growth_of
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import prepare
from anabranch.engine.reports.timelines import timelines
from anabranch.stream.affine import Affine
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.documents import DocumentSource
from anabranch.stream.reading.parse import parse_document
from anabranch.stream.reading.source import Source
from anabranch.stream.serialize import serialize
from anabranch.stream.tree import Element, Measure
from anabranch.values.atomic import Measured, Rounded, Untyped, literal
from anabranch.values.sequences import Values
from anabranch.values.times import DateTime
from anabranch.values.written import read_value, write_value
from growing.moments import Shown, query_of
from mass import some
from spark.bare import BareTrunk

BY_KEY = "for $o in stream('s')/r/o group by $k := $o/k let $s := sum($o/n)"
BEST = f"({BY_KEY} order by $s descending return <g k='{{ $k }}'>{{ $s }}</g>)[position() <= 3]"
GREATEST = "(for $o in stream('s')/r/o order by $o/n descending return $o/k)[position() <= 3]"
GROUPS = "one row per group of 's'"


def items(count: int, seed: int = 1) -> list[str]:
    """Items with one of five keys, and a number."""
    random = Random(seed)
    return [f"<o><k>k{random.randrange(5)}</k><n>{random.randrange(1000)}</n></o>" for _ in range(count)]


@pytest.mark.parametrize(
    ("text", "kept", "grows"),
    some(
        [
            (BEST, 5, [GROUPS]),
            (f"{BY_KEY} return <g>{{ $k, $s, max($o/n), count($o) }}</g>", 5, [GROUPS]),
            (f"{BY_KEY} order by $s count $c where $c <= 2 return ($c, $k)", 5 + 2, [GROUPS]),
            (f"max({BY_KEY} return $s)", 5, [GROUPS]),
            (
                f"{BY_KEY} return if ($o/n > 900) then $k else ()",
                5,
                [GROUPS, "all different values that are asked for of a group"],
            ),
            (f"{BY_KEY} return median($o/n)", 5, [GROUPS, "all values that are asked for of a group"]),
            (f"{BY_KEY} return $o[1]/n", 5 + 200, [GROUPS, "every item of 's'"]),
            ("distinct-values(stream('s')/r/o/k)", 5, ["one row per different value"]),
            ("count(distinct-values(stream('s')/r/o/k))", 5, ["one row per different value"]),
            (GREATEST, 3, []),
            ("head(for $o in stream('s')/r/o order by $o/n return $o)", 1, []),
            ("subsequence(for $o in stream('s')/r/o return ($o/k, $o/n), 2, 3)", 2, []),
            ("(for $o in stream('s')/r/o return $o/n)[last()]", 1, []),
            ("(for $o in stream('s')/r/o order by $o/n return $o/n)[position() > last() - 4]", 4, []),
            ("sum((for $o in stream('s')/r/o order by $o/n return $o/n)[position() <= 4])", 4, []),
            (
                "tail(for $o in stream('s')/r/o order by $o/n return $o/n)",
                200,
                ["one row per item of 's' that adds to its answer"],
            ),
        ]
    ),
)
def test_what_is_kept(text: str, kept: int, grows: list[str]) -> None:
    """As many rows as can be asked for again; what grows is named, what is bounded is not.

    What was written down goes on as it stood, also if some of it was forgotten since.
    """
    shown = Shown(text)
    several = items(200)
    shown.show(several[:100])
    layers = [json.loads(json.dumps(shown.display.encode()))]
    shown.display.settled()
    shown.show(several[100:])
    layers.append(json.loads(json.dumps(shown.display.encode(whole=False))))
    assert (shown.display.held, [each.what for each in growth_of(query_of(text), {})]) == (kept, grows)
    fresh = shown.fresh()
    fresh.decode(*layers)
    assert (fresh.text, fresh.held) == (shown.display.text, kept)
    assert fresh.text != ""


def calls(work: Callable[[], None]) -> int:
    """How many functions are called."""
    found = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal found
        found += event == "call"

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.mass
@pytest.mark.parametrize(
    "text",
    some(
        [
            BEST,
            GREATEST,
            f"{BY_KEY} where $s > 3 order by $k return <g>{{ $k, $s, count($o) }}</g>",
            f"{BY_KEY} order by $s descending count $c where $c <= 2 return ($c, $k)",
            f"sum({BY_KEY} return $s)",
            "<a n='{ count(distinct-values(stream('s')/r/o/k)) }'/>",
            "distinct-values(stream('s')/r/o/n)",
            "(for $o in stream('s')/r/o order by $o/n return $o/n)[last()]",
            "tail(for $o in stream('s')/r/o order by $o/n return $o/n)",
        ]
    ),
)
def test_an_item_costs_what_it_changes(text: str) -> None:
    """Behind three hundred items the next twenty take as many evaluations as at first, and hardly more calls."""
    shown = Shown(text)
    several = items(330)
    counts = []
    for start, end in ((0, 40), (40, 60), (60, 300), (300, 320)):
        before = shown.display.evaluated
        done = calls(lambda now=several[start:end]: shown.show(now))  # type: ignore[misc]
        counts.append((shown.display.evaluated - before, done))
    (_, (few, at_first), _, (as_few, later)) = counts
    assert as_few <= few
    assert later < 1.4 * at_first


def timeline(tmp_path: Path, text: str, lines: list[str]) -> list[str]:
    """What a run shows of a query, moment by moment, in short epochs."""
    (tmp_path / "s").write_text("".join(f"{each}\n" for each in lines))
    source = Source("s", tmp_path / "s", "lines", root="r")
    trunk = BareTrunk(tmp_path / "state", [source], Random(1), finite=False)
    trunk.run({"q": text}, [20], [1, 2])
    subscription = trunk.log.subscription("q")
    assert subscription is not None
    return [each.text for each in trunk.log.answer(subscription).moments()]


def test_the_first_of_groups(tmp_path: Path) -> None:
    """LAWS, case 63: whoever has most."""
    text = (
        "(for $o in stream('s')/r/o group by $c := $o/c let $n := sum($o/n) order by $n descending "
        "return <g c='{ $c }'>{ $n }</g>)[1]"
    )
    lines = [f"<o><c>{c}</c><n>{n}</n></o>" for c, n in (("a", 1), ("b", 2), ("a", 3))]
    assert timeline(tmp_path, text, lines) == ['<g c="a">1</g>', '<g c="b">2</g>', '<g c="a">4</g>']


def test_the_last_of_windows(tmp_path: Path) -> None:
    """LAWS, case 64: the result of the window that has closed last."""
    text = "(for $w in stream('s')/r/i|count 2| return sum($w/v))[last()]"
    assert timeline(tmp_path, text, [f"<i><v>{v}</v></i>" for v in (1, 5, 3, 4)]) == ["6", "7"]


def test_a_group_that_fails_is_mended(tmp_path: Path) -> None:
    """An error behind a `group by` is one of the whole, as long as it is there (LAWS 2.4)."""
    text = "for $o in stream('s')/r/o group by $k := $o/k return <g>{ $k, 6 div (count($o) - 1) }</g>"
    lines = [f"<o><k>{k}</k></o>" for k in "aabb"]
    assert timeline(tmp_path, text, lines) == ["<g>a 6</g>", "", "<g>a 6</g><g>b 6</g>"]


def test_groups_look_at_a_document_that_has_changed(tmp_path: Path) -> None:
    """All groups are looked at again with the next element, also those that it is not in (LAWS 3.12)."""
    text = (
        "for $o in stream('s')/r/o group by $k := $o/k "
        "return <g n='{ count($o) }'>{ string(doc('d')/d/k[@is = $o/k]) }</g>"
    )
    source = Source("s", tmp_path / "s", "lines", root="r", time=ItemPath.parse("t"))
    (tmp_path / "s").write_text("<o><k>a</k></o>\n<o><k>b</k></o>\n")
    (tmp_path / "d.xml").write_text("<d><k is='a'>one</k><k is='b'>two</k></d>")
    trunk = BareTrunk(tmp_path / "state", [source], Random(1), finite=False)
    trunk.documents = {"d": DocumentSource(tmp_path / "d.xml")}
    trunk.run({"q": text}, [1000], [1])
    assert trunk.answer("q") == '<g n="1">one</g><g n="1">two</g>'
    (tmp_path / "d.xml").write_text("<d><k is='a'>1</k><k is='b'>2</k></d>")
    with (tmp_path / "s").open("a") as file:
        file.write("<o><k>b</k></o>\n")
    trunk.run({"q": text}, [1000], [1])
    assert trunk.answer("q") == '<g n="1">1</g><g n="2">2</g>'


@pytest.mark.parametrize(
    "text",
    [
        "for $w in stream('s')/r/i|count 2| order by sum($w/v) return $w/v",
        "(for $w in stream('s')/r/i|count 2| return $w/v)[position() <= 3]",
        "distinct-values(for $w in stream('s')/r/i|count 2| return $w/v)",
        "for $x in (for $w in stream('s')/r/i|count 2| return <w>{ sum($w/v) }</w>) group by $s := $x mod 2 "
        "return count($x)",
        "let $r := (for $w in stream('s')/r/i|count 2| return <w>{ $w/v }</w>) return ($r/v[1], count($r))",
    ],
)
def test_what_is_made_of_windows(tmp_path: Path, text: str) -> None:
    """Orders, positions, different values, groups and `let` of the results of closed windows, as the law shows them."""
    found = timeline(tmp_path, text, [f"<i><v>{v}</v></i>" for v in (1, 5, 3, 4, 2, 2)])
    inputs = Inputs([Source("s", tmp_path / "s", "lines", root="r")])
    with timelines([prepare("q", text, inputs, "reference")], inputs) as law:
        assert found == [json.loads(each)["answer"] for each in "".join(law.answers["q"]).splitlines()]
    assert len(found) > 1


def test_values_are_read_back_as_they_were() -> None:
    """Of a value that a display keeps nothing is lost, be it rounded, measured or a node."""
    measure = Measure("3", Affine(Fraction(1, 3), Fraction(1)), Fraction(2))
    atoms: Values = [Untyped("x"), Measured("2", measure), Rounded(0.5, Fraction(1, 2)), literal("1.30e0"), 7, True]
    moment = DateTime.read("2026-11-17T12:00:00Z")
    assert moment is not None
    for atom in (*atoms, "text", Decimal("1.50"), -0.0, moment):
        found = read_value(json.loads(json.dumps(write_value(atom))))
        assert (type(found), str(found)) == (type(atom), str(atom))
        assert getattr(found, "exact", None) == getattr(atom, "exact", None)
        assert getattr(found, "measure", None) == getattr(atom, "measure", None)
    root = parse_document(b"<a xmlns='u' xmlns:p='q'><p:b c='1' p:d='2'>text<!--c--><?i j?></p:b></a>").children[0]
    read = read_value(json.loads(json.dumps(write_value(root))))
    assert isinstance(read, Element)
    assert serialize(read) == serialize(root)
