"""Accents in streams of updates: canonical(query(S)) = query(canonical(S)), moment by moment (LAWS 4.5, 5).

The judge is the law over the canonical stream, which has no accents (`evolving.py`); displays that change their units
are in `test_display_units.py`, and those here, under `absorb`, stay in the units of their start.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import TypeAlias

import pytest

from anabranch.algebra.reactions.signature import Policy
from anabranch.engine.finite import answering
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import prepare
from anabranch.engine.reading import Updating, read_written
from anabranch.language import check, parse
from anabranch.stream.limits import Limits
from anabranch.stream.reading.source import Source, domains_of
from history.evolving import PATHS, QUERIES, Pair, S, World, rendered, stream
from history.hosting import replayed
from history.undoing import in_fractions, undone
from mass import Mass
from spark.bare import BareTrunk

Show: TypeAlias = Callable[..., tuple[list[str], str | None, int]]


def by_law(
    text: str, source: Source, policy: Policy = "accumulate"
) -> tuple[list[tuple[Fraction, str]], str | None, int]:
    """What is on display, since when; why it ended; and how many elements were bad."""
    query = check(parse(text), text, inputs={"u": None}, edited={"u"}).query
    read = read_written(source, Limits())
    asked = Updating(query, {"u": read}, {}, functions=None, name="q", text=text, limits=Limits(), policy=policy)
    shown = [(each.at, each.text) for each in asked]
    bad = [each for each in (*read.dead, *asked.dead) if each.subscription is None]
    return shown, asked.aborted, len(bad)


def pair(folder: Path, number: int) -> Pair:
    """A stream as a function of its number."""
    random = Random(number)
    worlds = [World(random, f"p{each}", drops=number % 3 == 0) for each in range(random.choice((1, 1, 2)))]
    for each in worlds:
        each.write(random.choice((6, 12, 20)))
    return Pair.of(folder, f"u{number}", worlds)


def renamed(source: Source) -> Source:
    return replace(source, name="u")


def test_the_square_with_history(tmp_path: Path, mass: Mass) -> None:
    """The law over an accented stream shows what it shows over the canonical one, in the units of the start.

    Paths are altered, dropped and added, also again: what comes at such a path then has a unit of its own.
    """
    for number in mass.cases(2_000):
        given = pair(tmp_path, number)
        text = QUERIES[number % len(QUERIES)]
        shown, aborted, bad = by_law(text, renamed(given.accented), "absorb")
        due, _, none = by_law(text, renamed(given.canonical))
        assert bad == none == 0, number
        assert shown == (due if aborted is None else due[: len(shown)]), (number, text)


@pytest.mark.mass
@pytest.mark.parametrize("seed", range(4))
def test_trunks_show_the_same(tmp_path: Path, seed: int) -> None:
    """Whatever the epochs, shards and strands, whoever has ended and why; the accents of a display lead back."""
    numbers = range(1_000 + seed * 13, 1_013 + seed * 13)
    pairs = {number: pair(tmp_path, number) for number in numbers}
    texts = {number: QUERIES[number % len(QUERIES)] for number in numbers}
    trunk = BareTrunk(tmp_path / "state", [each.accented for each in pairs.values()], Random(seed), finite=True)
    trunk.strands = 2 * (seed % 2)
    trunk.run({f"q{number}": over(text, number) for number, text in texts.items()}, (100, 300, 1_000), (1, 2, 3))
    ended = ended_on(trunk)
    for number, each in pairs.items():
        due, _, _ = by_law(texts[number], renamed(each.canonical))
        shown, why, _ = by_law(texts[number], renamed(each.accented))
        assert replayed(trunk.log, f"q{number}") == shown, (number, texts[number])
        assert ended.get(f"q{number}") == why
        found, meant = undone(trunk.log, f"q{number}"), in_fractions(due)
        assert found == (meant if why is None else meant[: len(found)]), (number, texts[number])


@pytest.mark.mass
def test_policies(tmp_path: Path) -> None:
    """Displays stay in the units of their start with `absorb`, and `abort` ends some (LAWS 4.9 e)."""
    numbers = range(20_000, 20_000 + 2 * len(QUERIES))
    pairs = {number: pair(tmp_path, number) for number in numbers}
    texts = {number: QUERIES[number % len(QUERIES)] for number in numbers}
    policies: dict[str, Policy] = {f"q{number}": "abort" if number % 3 else "absorb" for number in numbers}
    sources = [each.accented for each in pairs.values()]
    trunk = BareTrunk(tmp_path / "state", sources, Random(1), finite=True, policies=policies)
    trunk.run({f"q{number}": over(text, number) for number, text in texts.items()}, (100, 500), (1, 2))
    ended = ended_on(trunk)
    assert 1 < len(ended) < len(numbers)
    for number, each in pairs.items():
        shown, why, _ = by_law(texts[number], renamed(each.accented), policies[f"q{number}"])
        due, _, _ = by_law(texts[number], renamed(each.canonical))
        assert replayed(trunk.log, f"q{number}") == shown
        assert policies[f"q{number}"] == "abort" or shown == due[: len(shown)]
        found, meant = undone(trunk.log, f"q{number}"), in_fractions(due)
        assert found == meant[: len(found)]
        assert ended.get(f"q{number}") == why
        assert why is not None or len(found) == len(meant)


def over(text: str, number: int) -> str:
    """A query about the stream of a number."""
    return text.replace('"u"', f'"u{number}"')


def ended_on(trunk: BareTrunk) -> dict[str, str]:
    """Why subscriptions have ended."""
    assert trunk.plan is not None
    aborted = list(trunk.log.manifests.since(0))[-1].aborted
    return {each.name: aborted[each.id] for each in trunk.plan.subscriptions if each.id in aborted}


@pytest.mark.mass
@pytest.mark.parametrize("seed", range(6))
def test_who_comes_late_has_the_units_of_its_start(tmp_path: Path, seed: int) -> None:
    """It shows what it would show had the whole stream been written in these units (LAWS 3.6, 4.9 f)."""
    random = Random(seed)
    several = seed % 3 == 0  # the union of partitions has no unit that one of them has not (LAWS 1.4)
    worlds = [World(random, "a", only_all=True), *([World(random, "b", quiet=True)] if several else [])]
    for each in worlds:
        each.write(12)
    units = {} if several else {path: worlds[0].unit("1", path) for path in PATHS}
    before = [len(each.accented) for each in worlds]
    for each in worlds:
        each.only_all = each.quiet = False
        each.write(10)
    asked = {f"q{number}": text for number, text in enumerate(QUERIES)}
    found = []
    for accents in (True, False):
        folder = tmp_path / f"{accents}"
        folder.mkdir()
        paths = [folder / f"in{number}" for number in range(len(worlds))]
        for path in paths:
            path.mkdir()
        source = stream("u", paths)
        trunk = BareTrunk(folder / "state", [source], Random(seed), finite=False)
        for late in (False, True):
            for each, path, first in zip(worlds, paths, before, strict=True):
                lines = each.accented if accents else [rendered(line, units) for line in each.canonical]
                part = lines[first:] if late else lines[:first]
                (path / f"{late:d}").write_text("".join(f"{line}\n" for line in part))
            trunk.run(asked if late else {}, (100, 300), (1, 2))
        found.append({name: undone(trunk.log, name) for name in asked})
        assert ended_on(trunk) == {}
    assert found[0] == found[1]
    assert any(len(each) > 1 for each in found[0].values())


MIXED = (
    'for $i in stream("i")/r/e return <x>{ $i/t, sum(stream("u")/r/e/t), stream("u")/r/e/t#1 }</x>',
    'for $i in stream("i")/r/e where $i/t > 10 return <x>{ $i/@v, stream("u")/r/e[t > $i/p/q]/s }</x>',
    '<o>{ stream("i")/r/e/t#[2], for $e in stream("u")/r/e where $e/t > 9 return $e/t }</o>',
    '<o>{ for $e in stream("u")/r/e, $i in stream("i")/r/e?[3] where $e/s = $i/s return <x>{ $e/t, $i/t }</x> }</o>',
    '<o>{ sum(stream("i")/r/e/t?[4]), count(stream("u")/r/e[t > 9]) }</o>',
)


@pytest.mark.mass
@pytest.mark.parametrize("seed", range(4))
def test_items_beside_updates(tmp_path: Path, seed: int) -> None:
    """Both may evolve; a trunk shows what the law shows over the canonical streams (LAWS 4.9 h)."""
    random = Random(seed)
    edited, items = World(random, "u"), World(random, "i")
    edited.write(14)
    items.items(12)
    pairs = [Pair.of(tmp_path, "u", [edited]), Pair.of(tmp_path, "i", [items], updates=False)]
    trunk = BareTrunk(tmp_path / "state", [each.accented for each in pairs], Random(seed), finite=True)
    queries = {f"q{number}": text for number, text in enumerate(MIXED)}
    trunk.run(queries, (100, 300, 1_000), (1, 2, 3))
    assert ended_on(trunk) == {}
    accented, canonical = (Inputs([getattr(each, form) for each in pairs]) for form in ("accented", "canonical"))
    for inputs in (canonical, accented):
        with answering([prepare(*each, inputs, "reference") for each in queries.items()], inputs) as law:
            assert dict(law.aborted) == {}
            for name in queries:
                assert trunk.answer(name) == "".join(law.answers[name]), queries[name]


# --- cases of LAWS 6 -------------------------------------------------------------------------------------------------

CELSIUS = '<s:alter path="t" by="(. - 32) * 5 div 9"/>'


def element(s: str, t: str, id: str) -> str:
    return f'<e><s:mutable {S} id="s{id}"><s>{s}</s></s:mutable><t><s:mutable {S} id="{id}">{t}</s:mutable></t></e>'


def set_to(target: str, content: str, at: int) -> str:
    return f'<s:replace {S} target="{target}" at="{at}">{content}</s:replace>'


def accent(change: str, where: str = "") -> str:
    told = f' where="{where}"' if where else ""
    return f"<s:accent {S}{told}>{change}</s:accent>"


@pytest.fixture(params=["law", "trunk", "strands"])
def show(tmp_path: Path, request: pytest.FixtureRequest) -> Show:
    """What a query shows over some lines, why it has ended, and how many elements were bad: by the law or a trunk."""

    def shows(
        query: str, *lines: str, domain: bool = True, policy: Policy = "accumulate"
    ) -> tuple[list[str], str | None, int]:
        (tmp_path / "in").write_text("".join(f"{each}\n" for each in lines))
        source = Source("u", tmp_path / "in", "lines", root="r", updates=True)
        source = replace(source, domains=domains_of({"s": [1, 2]})) if domain else source
        if request.param == "law":
            shown, why, bad = by_law(query, source, policy)
            return [text for _, text in shown], why, bad
        state = tmp_path / f"state{len(list(tmp_path.iterdir()))}"
        trunk = BareTrunk(state, [source], Random(1), finite=True, policies={"q": policy})
        trunk.strands = 3 if request.param == "strands" else 0
        trunk.run({"q": query}, (60, 200), (1, 2))
        bad = len([each for each in trunk.log.dead_letters() if each.subscription is None])
        return [text for _, text in replayed(trunk.log, "q")], ended_on(trunk).get("q"), bad

    return shows


def test_versions_of_two_units(show: Show) -> None:
    """Case 106: a value keeps its unit, is compared in that of the start, and shown in that of the display."""
    query = 'for $e in stream("u")/r/e where $e/t > 60 return ($e/t, for $v in $e/t/text()#1 return <t>{ $v }</t>)'
    lines = element("1", "68", "1"), element("2", "50", "2"), accent(CELSIUS), set_to("1", "25", 2)
    assert show(query, *lines) == (["<t>68</t>", "<t>20</t>", "<t>25</t><t>20</t>"], None, 0)
    assert show(query, *lines, policy="absorb") == (["<t>68</t>", "<t>77</t><t>68</t>"], None, 0)


def test_what_describes_an_item(show: Show) -> None:
    """Case 107: what it had at the paths of declared domains when it came, whatever becomes of that."""
    alter = accent('<s:alter path="t" by=". * 2"/>', "s = 1")
    lines = [element("1", "10", "1"), element("2", "10", "2"), alter, set_to("1", "30", 2), set_to("2", "30", 2)]
    lines += [set_to("s1", "<s>2</s>", 3), set_to("1", "40", 4), set_to("2", "40", 4)]
    assert show('sum(stream("u")/r/e/t)', *lines) == (["10", "20", "25", "45", "50", "60"], None, 0)


def test_a_description_without_a_domain(show: Show) -> None:
    """Case 108: nobody knows whether it holds for an update inside an item; items that come whole tell themselves."""
    alter = accent('<s:alter path="t" by=". * 2"/>', "s = 1")
    lines = [element("1", "10", "1"), element("2", "10", "2"), alter, set_to("1", "30", 2), set_to("2", "30", 2)]
    shown = show('sum(stream("u")/r/e/t)', *lines, element("1", "30", "3"), domain=False)
    assert shown == (["10", "20", "35"], None, 2)


def test_a_dropped_path(show: Show) -> None:
    """Case 109: what is there stays, and nothing comes; a condition on the path ends the query, by name."""
    lines = element("1", "1", "1"), accent('<s:drop path="t"/>'), set_to("1", "2", 2), "<e><s>2</s></e>"
    assert show('stream("u")/r/e/t', *lines) == (["<t>1</t>"], None, 1)


def test_a_dropped_foundation(show: Show) -> None:
    """Case 109, the other query: accent, operator and path are named (LAWS 4.6)."""
    lines = element("1", "1", "1"), accent('<s:drop path="t"/>'), set_to("1", "2", 2)
    shown, why, _ = show('for $e in stream("u")/r/e where $e/t > 0 return $e/t', *lines)
    assert shown == ["<t>1</t>"]
    assert why == "'where' cannot do without 't': the accent on 't' where true() drops it"


def test_a_path_that_is_added_again(show: Show) -> None:
    """It is a new one, with a unit of its own (LAWS 4.2 f): what was there stays, and what comes counts as it is."""
    query = '<o>{ for $e in stream("u")/r/e return <x>{ data($e/t), data($e/t/text()#1) }</x> }</o>'
    lines = [element("1", "10", "1"), accent('<s:alter path="t" by=". * 2"/>'), set_to("1", "30", 2)]
    lines += [accent('<s:drop path="t"/>'), set_to("1", "40", 3), accent('<s:add path="t" type="decimal"/>')]
    shown, why, bad = show(query, *lines, set_to("1", "50", 4), accent('<s:alter path="t" by=". * 5"/>'))
    assert (shown, why, bad) == (
        ["<o><x>10</x></o>", "<o><x>15 10</x></o>", "<o><x>50 15</x></o>"],
        None,
        1,
    )


def test_a_late_start_between_units(tmp_path: Path) -> None:
    """Case 110: who comes late has the units of its start, for values from before as well."""
    (tmp_path / "in").mkdir()
    trunk = BareTrunk(
        tmp_path / "state", [Source("u", tmp_path / "in", "lines", updates=True)], Random(1), finite=False
    )
    query = 'stream("u")/root/e/t'
    (tmp_path / "in/1").write_text(f"{element('1', '68', '1')}\n{accent(CELSIUS)}\n")
    trunk.run({"a": query}, (60,), (1,))
    (tmp_path / "in/2").write_text(f"{set_to('1', '25', 9_999_999_999)}\n")
    trunk.run({"a": query, "b": query}, (10, 60), (1, 2))
    assert [text for _, text in replayed(trunk.log, "a")] == ["<t>68</t>", "<t>20</t>", "<t>25</t>"]
    assert [text for _, text in replayed(trunk.log, "b")] == ["<t>20</t>", "<t>25</t>"]


def token(local: str, content: str = "") -> str:
    return f"<s:{local} {S}>{content}</s:{local}>"


def test_values_that_come_in_tokens(show: Show) -> None:
    """Case 127: a value in a unit that has changed comes with its element, and never in pieces."""
    lines = [token("open", "<e/>"), token("append", "<t>68</t>"), accent(CELSIUS), token("open", "<t/>")]
    lines += [token("append", "25"), token("close"), token("append", "<t>25</t>"), token("open", "<t>25</t>")]
    assert show('stream("u")/r/e/t[text()]', *lines) == (["<t>68</t>", "<t>20</t>", "<t>20</t><t>25</t>"], None, 2)


def test_a_token_is_described_by_its_item(show: Show) -> None:
    """What it brings has the unit of the item that is open, by what that held when it was opened."""
    lines = [token("open", "<e><s>1</s></e>"), accent('<s:alter path="t" by=". * 2"/>', "s = 1")]
    lines += [
        token("append", "<t>30</t>"),
        token("close"),
        token("open", "<e><s>2</s></e>"),
        token("append", "<t>30</t>"),
    ]
    assert show('sum(stream("u")/r/e/t)', *lines) == (["0", "15", "45"], None, 0)


def test_a_late_start_between_units_beside_what_is_open(tmp_path: Path) -> None:
    """The text of an open element, which came in two tokens, is one value for who comes behind the accent."""
    (tmp_path / "in").mkdir()
    trunk = BareTrunk(
        tmp_path / "state", [Source("u", tmp_path / "in", "lines", updates=True)], Random(1), finite=False
    )
    query = 'stream("u")/root/e/t'
    lines = [token("open", "<e/>"), token("open", "<t/>"), token("append", "6"), token("append", "8"), accent(CELSIUS)]
    (tmp_path / "in/1").write_text("".join(f"{each}\n" for each in lines))
    trunk.run({"a": query}, (60,), (1,))
    (tmp_path / "in/2").write_text(f"{token('close')}\n{token('append', '<t>25</t>')}\n")
    trunk.run({"a": query, "b": query}, (10, 60), (1, 2))
    assert [text for _, text in replayed(trunk.log, "a")][-3:] == ["<t>68</t>", "<t>20</t>", "<t>20</t><t>25</t>"]
    assert [text for _, text in replayed(trunk.log, "b")] == ["<t>20</t>", "<t>20</t><t>25</t>"]


def test_a_bad_accent_leaves_its_path_unknown(show: Show) -> None:
    """Who reads it ends; the paths of domains do not evolve (LAWS 4.9 c)."""
    lines = element("1", "1", "1"), accent('<s:alter path="s" by=". * 2"/>'), set_to("1", "2", 2)
    shown, why, bad = show('stream("u")/r/e/s', *lines)
    assert (shown, bad) == (["<s>1</s>"], 1)
    assert why is not None
    assert "'s' does not evolve in a stream of updates" in why
    assert show('stream("u")/r/e/t', *lines)[:2] == (["<t>1</t>", "<t>2</t>"], None)


def test_a_number_meets_texts_that_spell_it(tmp_path: Path, show: Show) -> None:
    """In a join by equality, too: a change of unit makes a number, which meets `77.0` (LAWS 2.3)."""
    query = '<o>{ for $e in stream("u")/r/e, $f in stream("u")/r/f where $e/t = $f/t return <x>{ $f/t }</x> }</o>'
    lines = element("1", "68", "1"), "<f><t>77.0</t></f>", accent(CELSIUS, "s = 1"), set_to("1", "25", 2)
    assert show(query, *lines)[0][-1] == "<o><x><t>77.0</t></x></o>"


def test_upserts_are_described_by_themselves(show: Show) -> None:
    """An item that comes whole tells its own values, with a declared domain or without (LAWS 4.9 b)."""
    upserts = [
        f'<s:upsert {S} id="{key}" at="{at}"><e><s>{key}</s><t>{t}</t></e></s:upsert>'
        for at, key, t in ((1, 1, 68), (1, 2, 50), (2, 1, 25), (2, 2, 51))
    ]
    lines = [*upserts[:2], accent(CELSIUS, "s = 1"), *upserts[2:]]
    shown, why, bad = show('stream("u")/r/e/t', *lines, domain=False)
    assert (shown[-1], why, bad) == ("<t>77</t><t>51</t>", None, 0)


def test_json_that_is_edited(tmp_path: Path) -> None:
    """A value in a region is a number before and behind an accent (LAWS 7.5)."""
    (tmp_path / "u.jsonl").write_text(
        '{"t": {"$mutable": {"id": "1", "content": 68}}}\n'
        '{"$accent": {"alter": {"path": "t", "by": "(. - 32) * 5 div 9"}}}\n'
        '{"$replace": {"target": "1", "at": 5, "content": 25}}\n{"t": 10}\n'
    )
    source = Source("u", tmp_path / "u.jsonl", "json", updates=True)
    query = 'for $o in stream("u") return { "t": $o.t, "warm": $o.t > 60 }'
    trunk = BareTrunk(tmp_path / "state", [source], Random(1), finite=True)
    trunk.run({"q": query}, (60,), (1, 2))
    due = '{"t": 77, "warm": true}\n{"t": 50, "warm": false}\n'
    assert trunk.answer("q") == due
    assert by_law(query, source)[0][-1][1] == due
