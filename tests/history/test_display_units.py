"""Displays over edited streams that change their units as a whole, at one moment (LAWS 4.9 e).

Judges are the law over the canonical stream, with the accents of the display undone in its text (`undoing.py`), and the
alters that a generator knows to have come for all sensors.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest

from anabranch.stream.affine import IDENTITY
from anabranch.stream.affine import parse as parse_map
from anabranch.stream.elements import Alter
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source, domains_of
from history.evolving import ALTERS, SENSORS, Pair, World
from history.following import Followed, items, replaced
from history.hosting import replayed
from history.test_updates_evolving import CELSIUS, Show, accent, by_law, element, ended_on, set_to, show
from history.undoing import in_fractions, moments, undone
from mass import Mass
from spark.bare import BareTrunk

__all__ = ("show",)

UNCHANGED = Fraction(1), Fraction(0)

QUERIES: dict[str, tuple[str, dict[str, str]]] = {
    "copied": (
        '<o>{ for $e in stream("u")/r/e where $e/t > 10 return <x>{ $e/s, $e/t, $e/t#1 }</x> }</o>',
        {"x/t": "t"},
    ),
    "entries": ('<o>{ stream("u")/r/e }</o>', {"e/t": "t", "e/p/q": "p/q", "e/@v": "@v", "e/x": "x"}),
    "at the top": ('for $e in stream("u")/r/e return <x v="{ $e/@v }">{ $e/p/q }</x>', {"@v": "@v", "q": "p/q"}),
    "sorted": (
        '<o><in>{ for $e in stream("u")/r/e order by $e/@v return <x>{ $e/@v, $e/t }</x> }</in></o>',
        {"in/x/@v": "@v", "in/x/t": "t"},
    ),
    "folded": (
        '<o><m>{ max(stream("u")/r/e/@v) }</m><n>{ min(stream("u")/r/e/p/q), 1 }</n></o>',
        {"m": "@v"},
    ),
    "in rounds": ('<o>{ for $e in stream("u")/r/e return $e/@v * 2, stream("u")/r/e/t/text() }</o>', {}),
    "windows": (
        '<o>{ for $w in stream("u")/r/e|@v diff 10| return <w>{ count($w) }<q>{ max($w/p/q) }</q></w> }</o>',
        {"w/q": "p/q"},
    ),
    "a window's items": (
        '<o>{ for $w in stream("u")/r/e|@v diff 10| return <w>{ $w/t, <all>{ data($w/@v) }</all> }</w> }</o>',
        {"w/t": "t"},
    ),
    "joined": (
        '<o>{ for $e in stream("u")/r/e, $f in stream("u")/r/e where $e/t = $f/p/q return <b>{ $e/t }</b> }</o>',
        {"b/t": "t"},
    ),
    "whole": (
        '<o>{ for $e in (for $f in stream("u")/r/e order by $f/@v return $f)[2] return <x>{ $e/@v }</x> }</o>',
        {"x/@v": "@v"},
    ),
    "let": ('let $m := max(stream("u")/r/e/@v) return <o>{ $m }</o>', {".": "@v"}),
    "past values": (
        '<o><m>{ (max(stream("u")/r/e/@v))#1 }</m><k>{ (max(stream("u")/r/e/@v))#[2] }</k></o>',
        {"m": "@v"},
    ),
    "grouped": (
        '<o>{ for $e in stream("u")/r/e group by $s := $e/s return <x>{ $s, <t>{ max($e/@v) }</t> }</x> }</o>',
        {"x/t": "@v"},
    ),
    "the first": (
        '<o>{ (for $e in stream("u")/r/e order by $e/@v return <x>{ $e/t, $e/@v/string() }</x>)[position() <= 2] }</o>',
        {"x/t": "t"},
    ),
    "two origins": ('<o>{ for $e in stream("u")/r/e return <x><y>{ $e/t[1]/text() }</y><y>{ 1 }</y></x> }</o>', {}),
    "affine": (
        '<o>{ for $e in stream("u")/r/e return <x>{ $e/@v * 2 + 1 }</x> }</o>',
        {"x": "@v"},
    ),
}
"""By name: a query about the stream `u`, and by path of its display the path of the stream that it follows."""


def written(folder: Path, number: int) -> tuple[Pair, list[World]]:
    """A stream with many accents, as a function of its number; one at least is about all items."""
    random = Random(f"display {number}")
    worlds = [World(random, f"p{each}", only_all=True) for each in range(random.choice((1, 1, 1, 2)))]
    for each in worlds:
        while not any(path != "x" for _, path in each.alters):
            each.write(6)
        each.only_all = number % 2 == 0
        each.write(random.choice((6, 14)))
    return Pair.of(folder, f"u{number}", worlds), worlds


def renamed(source: Source) -> Source:
    return replace(source, name="u")


def told_by(worlds: list[World], path: str) -> tuple[Fraction, Fraction]:
    """The unit of a path as the alters make it that have come for all sensors of all partitions, one by one."""
    several = [each.alters.get((sensor, path), []) for each in worlds for sensor in SENSORS]
    unit = IDENTITY
    for alters in zip(*several, strict=False):
        if len(set(alters)) > 1:
            break
        unit = unit.then(alters[0])
    return unit.a, unit.b


def test_accents_lead_back(tmp_path: Path, mass: Mass) -> None:
    """What a trunk shows is what the law shows, and with its accents undone what the canonical stream shows.

    Queries over one stream share a history; some are answered in strands.
    """
    for number in mass.cases(300):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        given, worlds = written(folder, number)
        trunk = BareTrunk(folder / "state", [renamed(given.accented)], Random(number), finite=True)
        trunk.strands = 2 * (number % 2)
        trunk.run({name: text for name, (text, _) in QUERIES.items()}, (100, 300, 1_000), (1, 2, 3))
        changed = 0
        for name, (text, follows) in QUERIES.items():
            shown, why, _ = by_law(text, renamed(given.accented))
            assert why is None, (number, name)
            assert replayed(trunk.log, name) == shown, (number, name)
            due, _, _ = by_law(text, renamed(given.canonical))
            assert undone(trunk.log, name) == in_fractions(due), (number, name)
            units = _last_units(trunk, name)
            for path, origin in follows.items():
                a, b = told_by(worlds, origin)
                if name == "affine":  # twice the value and 1
                    b = 2 * b + 1 - a
                assert units.pop(path, UNCHANGED) == (a, b), (number, name, path)
                changed += (a, b) != UNCHANGED
            assert units == {}, (number, name)
        assert changed or len(worlds) > 1


def _last_units(trunk: BareTrunk, name: str) -> dict[str, tuple[Fraction, Fraction]]:
    """The units that the update stream of a display has told in all."""
    found = moments(trunk.log, name)
    return {path: each for path, each in found[-1][2].items() if each != UNCHANGED} if found else {}


def test_an_answer_is_still_a_stream(tmp_path: Path, mass: Mass) -> None:
    """Q(XML(T(S))) = XML(T(R(S))), in the units of the display, and in those of its start (LAWS 5.7)."""
    for number in mass.cases(100):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        given, _ = written(folder, number)
        trunk = BareTrunk(folder / "state", [renamed(given.accented)], Random(number), finite=True)
        trunk.run({name: text for name, (text, _) in QUERIES.items()}, (100, 1_000), (1,))
        for name, (text, _) in QUERIES.items():
            told = "".join(_told(trunk, name))
            (folder / f"{name}.xml").write_text(f"<answer>{told}</answer>")
            source = Source("u", folder / f"{name}.xml", updates=True)
            shown, why, bad = by_law('stream("u")/answer/*', source)
            assert (why, bad) == (None, 0)
            assert shown[-1:] == replayed(trunk.log, name)[-1:], (number, name)
            start, _, _ = by_law('stream("u")/answer/*', source, "absorb")
            due, _, _ = by_law(text, renamed(given.canonical))
            assert in_fractions(start)[-1:] == in_fractions(due)[-1:], (number, name)


KEPT = {
    '<o>{ for $x in stream("s")/root/i order by $x/v descending return <x>{ $x/v }</x> }</o>': ("x/v",),
    '<o>{ for $w in stream("s")/root/i|v diff 3| return <w>{ $w/v }<m>{ avg($w/v) }</m></w> }</o>': ("w/v", "w/m"),
    '<o>{ for $w in stream("s")/root/i|v diff 3| return <w>{ max($w/v) }</w> }</o>': ("w",),
    '<o><m>{ max(stream("s")/root/i/v) }</m>{ stream("s")/root/i/v }</o>': ("m", "v"),
    'for $x in stream("s")/root/i return <x>{ $x/v, $x/v#1 }</x>': ("v",),
    '<o>{ for $x in stream("s")/root/i, $y in stream("t")/root/i where $x/v = $y/v return $y/v }</o>': ("v",),
}
"""Queries, each with paths of its display."""


@pytest.mark.parametrize("query", KEPT)
def test_units_are_part_of_the_state(query: str) -> None:
    """Between any two elements a state is put away, and taken up by a process that has an earlier one, or none."""
    random = Random(query)
    updates = [replaced(random.randrange(6), random.randrange(9), f' at="{each}"') for each in range(1, 25)]
    followed = Followed(query, s=items(6) + "".join(updates), t=items(3))
    for number in random.sample(range(5, 30), 6):
        by = parse_map(random.choice(ALTERS))
        followed.alters[number] = [Alter(ItemPath.parse(path), by) for path in KEPT[query]]
    assert len({text for _, text in followed.run(put_away=True)}) > 10


def _told(trunk: BareTrunk, name: str) -> list[str]:
    """The update stream of a display."""
    subscription = trunk.log.subscription(name)
    assert subscription is not None
    return [
        trunk.log.text(chunk)
        for manifest in trunk.log.manifests.since(subscription.first)
        for chunk in trunk.log.chunks(manifest, subscription.id)
    ]


# --- cases of LAWS 6 -------------------------------------------------------------------------------------------------

LINES = (
    element("1", "68", "1"),
    element("2", "50", "2"),
    accent(CELSIUS, "s = 1"),
    set_to("1", "25.0", 2),
    accent(CELSIUS, "s = 2"),
    set_to("2", "1", 3),
)
SEEN = '<o>{ for $e in stream("u")/r/e return <x>{ $e/s, $e/t }</x> }</o>'


def _seen(*values: str) -> str:
    rows = "".join(f"<x><s>{number}</s><t>{each}</t></x>" for number, each in enumerate(values, 1))
    return f"<o>{rows}</o>"


def test_all_of_it_at_one_moment(show: Show) -> None:
    """Case 116: a display waits until accents are about all items, whatever its results show of them."""
    shown, why, bad = show(SEEN, *LINES)
    texts = [_seen("68"), _seen("68", "50"), _seen("77", "50"), _seen("25.0", "10"), _seen("25.0", "1")]
    assert (shown, why, bad) == (texts, None, 0)


@pytest.mark.mass
def test_aggregates_and_values_side_by_side(show: Show) -> None:
    """Case 117: an average has a unit, a sum none but that of the start, and nor have values of several rounds."""
    query = '<o><a>{ avg(stream("u")/r/e/t) }</a><n>{ sum(stream("u")/r/e/t) }</n></o>'
    pairs = (("68", "68"), ("59", "118"), ("63.5", "127"), ("17.5", "127"), ("13", "110.8"))
    assert show(query, *LINES)[0] == [f"<o><a>{a}</a><n>{n}</n></o>" for a, n in pairs]
    rounds = '<o>{ for $e in stream("u")/r/e return $e/t + 0 }</o>'
    texts = ["<o>68</o>", "<o>68 50</o>", "<o>77 50</o>", "<o>77 33.8</o>"]
    assert show(rounds, *LINES)[0] == texts


def test_abort_ends_at_a_part_of_the_items(show: Show) -> None:
    """Case 119: a display cannot tell an accent on some items; one on all of them it can."""
    shown, why, _ = show(SEEN, *LINES, policy="abort")
    assert shown == [_seen("68"), _seen("68", "50")]
    assert why is not None
    assert "'s' tells apart what a display shows in one unit" in why
    shown, why, _ = show(SEEN, *LINES[:2], accent(CELSIUS), *LINES[5:], policy="abort")
    assert (shown[-1], why) == (_seen("20", "1"), None)


def test_a_display_as_a_stream(tmp_path: Path) -> None:
    """Case 118: the accent of a display is on the path below its outermost element, and leads back and forth."""
    (tmp_path / "in").write_text("".join(f"{each}\n" for each in LINES))
    source = Source("u", tmp_path / "in", "lines", root="r", updates=True, domains=domains_of({"s": [1, 2]}))
    trunk = BareTrunk(tmp_path / "state", [source], Random(1), finite=True)
    trunk.run({"q": SEEN}, (60,), (1,))
    told = "".join(_told(trunk, "q"))
    assert '<s:alter path="x/t" by=". * 5 div 9 - 160 div 9"/>' in told
    assert told.count("s:accent ") == 1
    (tmp_path / "d.xml").write_text(f"<answer>{told}</answer>")
    display = Source("u", tmp_path / "d.xml", updates=True)
    assert by_law('stream("u")/answer/o', display)[0][-1][1] == _seen("25.0", "1")
    assert by_law('stream("u")/answer/o', display, "absorb")[0][-1][1] == _seen("77", "33.8")


def test_a_display_in_json(tmp_path: Path) -> None:
    """Accents are lines among its lines (LAWS 7.4), and a reader of the answer passes over them."""
    (tmp_path / "u.jsonl").write_text(
        '{"t": {"$mutable": {"id": "1", "content": 68}}}\n'
        '{"$accent": {"alter": {"path": "t", "by": "(. - 32) * 5 div 9"}}}\n'
        '{"$replace": {"target": "1", "at": 5, "content": 25}}\n{"t": 10}\n'
    )
    source = Source("u", tmp_path / "u.jsonl", "json", updates=True)
    query = 'for $o in stream("u") return $o'
    trunk = BareTrunk(tmp_path / "state", [source], Random(1), finite=True)
    trunk.run({"q": query}, (60,), (1, 2))
    due = ['{"t": 68}\n', '{"t": 20}\n', '{"t": 25}\n', '{"t": 25}\n{"t": 10}\n']
    assert [text for _, text in replayed(trunk.log, "q")] == due
    assert [text for _, text in by_law(query, source)[0]] == due
    told = "".join(_told(trunk, "q"))
    assert '"alter": {"path": "t", "by": ". * 5 div 9 - 160 div 9"}' in told
    (tmp_path / "d.jsonl").write_text(told)
    display = Source("u", tmp_path / "d.jsonl", "json", updates=True)
    assert by_law(query, display)[0][-1][1] == due[-1]
    assert by_law(query, display, "absorb")[0][-1][1] == '{"t": 77}\n{"t": 50}\n'


def test_nobody_is_ended(tmp_path: Path) -> None:
    """A display that fails as a whole when its units change shows the new ones when it is corrected."""
    lines = [
        element("1", "68", "1"),
        element("2", "50", "2"),
        set_to("2", "x", 2),
        accent(CELSIUS),
        set_to("2", "1", 3),
    ]
    (tmp_path / "in").write_text("".join(f"{each}\n" for each in lines))
    source = Source("u", tmp_path / "in", "lines", root="r", updates=True)
    query = '<o><a>{ avg(stream("u")/r/e/t) }</a></o>'
    trunk = BareTrunk(tmp_path / "state", [source], Random(1), finite=True)
    trunk.run({"q": query}, (60,), (1, 2))
    due = ["<o><a>68</a></o>", "<o><a>59</a></o>", "", "<o><a>10.5</a></o>"]
    assert [text for _, text in replayed(trunk.log, "q")] == due
    assert [text for _, text in by_law(query, source)[0]] == due
    assert ended_on(trunk) == {}
