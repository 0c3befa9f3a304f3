"""LAWS 2.9 in a trunk, without Spark: who takes too much ends at a definite element, and nobody else notices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random

import pytest

from anabranch import Engine
from anabranch.spark.checkpoint.manifest import Manifests
from anabranch.spark.epoch.metrics import Metrics
from anabranch.stream import limits
from anabranch.stream.limits import CostCaps, Limits
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source
from mass import sized
from reference.few_steps import allowing
from spark.bare import BareTrunk

STEPS = 2_000
ITEMS = 130
HEAVY_ITEMS = range(7, ITEMS, 50)
CAPS = CostCaps(held=50, overruns=3)
COSTLY = {
    "items": 'for $p in stream("s")/r/p return '
    '<h t="{ $p/t }">{ some $a in $p/x, $b in $p/x satisfies $a + $b = -1 }</h>',
    "windows": 'for $w in stream("s")/r/p |t diff 10| return '
    '<h t="{ $w/t[1] }">{ some $a in $w/x, $b in $w/x, $c in $w/x satisfies $a + $b = -1 }</h>',
    "selected": 'for $w in stream("s")/r/p[not(some $a in x, $b in x satisfies $a + $b = -1)] |t diff 10| '
    "return <w>{ $w/t }</w>",
    "all": 'for $w in stream("s")/r/p |t diff 100000| return <w>{ $w/v }</w>',
    "wide": 'for $w in stream("s")/r/p |t diff 60 step 20| return <w>{ $w/t }</w>',
    "session": 'for $w in stream("s")/r/p |t gap 2| return <w>{ $w/t }</w>',
    "join": 'for $a in stream("s")/r/p |t diff 20|, $b in stream("s")/r/p |t diff 20| return <j>{ $a/t, $b/t }</j>',
    "interval": 'for $a in stream("s")/r/p, $b in stream("o")/r/p where $b/t > $a/t and $b/t <= $a/t + 30 '
    "and $a/v = $b/v return <j>{ $a/t, $b/t }</j>",
}
USUAL = {
    "plain": 'for $p in stream("s")/r/p where $p/v > 9 return <n>{ $p/t }</n>',
    "narrow": 'for $w in stream("s")/r/p |t diff 20 step 10| return <w>{ $w/t }</w>',
    "sums": 'for $w in stream("s")/r/p |t diff 20| return <w>{ sum($w/v) }</w>',
    "pairs": 'for $a in stream("s")/r/p |t diff 8|, $b in stream("s")/r/p |t diff 8| where $a/v = $b/v '
    "return <j>{ $a/t, $b/t }</j>",
}


@pytest.fixture(autouse=True)
def few_steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """So few steps as no user can have; tasks set what their plan says."""
    monkeypatch.setattr(limits, "LEAST_STEPS", STEPS)
    with allowing(STEPS):
        yield


def streams(folder: Path) -> list[Source]:
    """Streams of an item a moment, some of which take many steps."""
    lines = []
    for number in range(ITEMS):
        parts = "".join(f"<x>{part}</x>" for part in range(60 if number in HEAVY_ITEMS else 3))
        lines.append(f"<p><t>{number}</t><v>{number % 11}</v>{parts}</p>\n")
    for name in ("s", "o"):
        (folder / name).write_text("".join(lines))
    return [Source(name, folder / name, "lines", root="r", time=ItemPath(("t",))) for name in ("s", "o")]


def run(folder: Path, queries: Mapping[str, str], epoch_bytes: int, seed: int, caps: CostCaps = CAPS) -> BareTrunk:
    folder.mkdir()
    trunk = BareTrunk(folder / "state", streams(folder), Random(seed), finite=False)
    trunk.limits, trunk.caps = Limits(steps=STEPS), dict.fromkeys(queries, caps)
    trunk.run(queries, (epoch_bytes,), (1, 2))
    return trunk


def ended(trunk: BareTrunk) -> dict[str, str]:
    """Why subscriptions have ended, by their names."""
    assert trunk.plan is not None
    return {trunk.plan.by_id[number].name: reason for number, reason in trunk.aborted.items()}


HELD = "it holds more than 50 nodes of its streams; 'max_held' allows more"
OVERRUNS = "3 of its evaluations have taken too many steps; 'max_overruns' allows more"


@pytest.mark.mass
def test_the_end_is_at_a_definite_element(tmp_path: Path) -> None:
    """It is the same in one epoch and in many, with all in one task or not, and what was answered before it stays."""
    free = run(tmp_path / "free", COSTLY | USUAL, 1 << 20, 0, CostCaps())
    assert not ended(free)
    found: list[tuple[dict[str, str], dict[str, str]]] = []
    for number, size in enumerate((1 << 20, 2_500)):
        trunk = run(tmp_path / str(number), COSTLY | USUAL, size, number)
        found.append((ended(trunk), {name: trunk.answer(name) for name in COSTLY | USUAL}))
        letters = Counter(each.subscription for each in trunk.log.dead_letters() if each.code == "XPDY0130")
        assert letters == {"items": 3, "windows": 3, "selected": 3}
    assert found[0] == found[1]
    why, answers = found[0]
    assert why == dict.fromkeys(("items", "windows", "selected"), OVERRUNS) | dict.fromkeys(
        ("all", "wide", "session", "join", "interval"), HELD
    )
    for name, answer in answers.items():
        assert free.answer(name).startswith(answer)
        assert name in why or answer == free.answer(name) != ""
    assert all(answers[name] for name in ("items", "join"))


def test_items_are_answered_up_to_the_last_overrun(tmp_path: Path) -> None:
    """LAWS case 170: all before the third item that takes too many steps are, and none behind it."""
    trunk = run(tmp_path / "run", {"items": COSTLY["items"]}, sized(4_000, fast=9_000), 3)
    answered = [number for number in range(HEAVY_ITEMS[2]) if number not in HEAVY_ITEMS]
    assert trunk.answer("items") == "".join(f'<h t="{number}">false</h>' for number in answered)
    assert ended(trunk) == {"items": OVERRUNS}


@pytest.mark.mass
def test_windows_are_answered_as_long_as_they_hold_no_more(tmp_path: Path) -> None:
    """LAWS case 171: a window that ends before the element with which the open ones hold too much, and no later one."""
    query = COSTLY["wide"].replace("/r/p", "/r/p[v > 5 or t > 60]")
    trunk = run(tmp_path / "run", {"wide": query}, sized(4_000, fast=9_000), 4, CostCaps(held=40))
    chosen = [number for number in range(ITEMS) if number % 11 > 5 or number > 60]

    def held(now: int) -> int:
        return sum(node // 20 * 20 + 60 > now for node in chosen if node <= now)

    over = next(now for now in range(ITEMS) if held(now) > 40)
    windows = [range(start, start + 60) for start in range(0, ITEMS, 20) if start + 60 <= over]
    assert (len(windows), over) == (2, 92)
    texts = ("".join(f"<t>{number}</t>" for number in chosen if number in each) for each in windows)
    assert trunk.answer("wide") == "".join(f"<w>{text}</w>" for text in texts)
    assert ended(trunk) == {"wide": HELD.replace("50", "40")}


def test_windows_are_answered_in_front_of_one_that_holds_too_many_panes(tmp_path: Path) -> None:
    """LAWS cases 172 and 173: neither epochs nor shards nor tasks show in where it ends."""
    queries = {
        "groups": 'for $w in stream("s")/r/p |t diff 10| for $o in $w group by $k := $o/k '
        'return <g k="{ $k }">{ count($o) }</g>',
        "sessions": 'for $w in stream("s")/r/p |t gap 10 by k| return <s k="{ $w[1]/k }">{ count($w) }</s>',
        "stretches": 'for $w in stream("s")/r/p |t diff 60 step 7| return <n>{ count($w) }</n>',
        "few": 'for $w in stream("s")/r/p |t diff 10| for $o in $w group by $k := $o/v '
        'return <g k="{ $k }">{ count($o) }</g>',
    }
    sources = streams(tmp_path)
    keys = [number // 10 if number < 30 else number // 2 for number in range(sized(ITEMS, fast=60))]
    (tmp_path / "s").write_text("".join(f"<p><t>{t}</t><k>{k}</k><v>{t % 2}</v></p>\n" for t, k in enumerate(keys)))
    found: list[tuple[dict[str, str], dict[str, str]]] = []
    for seed, size in enumerate((1 << 20, sized(300, fast=700))):
        trunk = BareTrunk(tmp_path / str(seed), sources, Random(seed), finite=False)
        trunk.caps = dict.fromkeys(queries, CostCaps(held=4))
        trunk.run(queries, (size,), (1, 2))
        found.append((ended(trunk), {name: trunk.answer(name) for name in queries}))
    assert all(each == found[0] for each in found)
    why, answers = found[0]
    assert why == dict.fromkeys(
        ("groups", "sessions", "stretches"), "it holds more than 4 panes of its windows; 'max_held' allows more"
    )
    assert answers["groups"] == '<g k="0">10</g><g k="1">10</g><g k="2">10</g>'
    assert answers["sessions"] == '<s k="0">10</s><s k="1">10</s>'
    assert answers["stretches"] == ""
    assert answers["few"] == '<g k="0">5</g><g k="1">5</g>' * (len(keys) // 10 - 1)


@pytest.mark.mass
def test_others_do_not_notice(tmp_path: Path) -> None:
    """A hundred beside one that costs much are answered as without it, and nothing is left of it."""
    others = {f"{name} {number}": text for number in range(25) for name, text in USUAL.items()}
    others |= {"twin": COSTLY["items"].replace("some $a in $p/x, $b in $p/x satisfies $a + $b = -1", "count($p/x)")}
    costly = {name: COSTLY[name] for name in ("items", "all", "join")}
    beside, alone = (
        run(tmp_path / name, queries, 6_000, 5) for name, queries in (("beside", others | costly), ("alone", others))
    )
    assert ended(beside).keys() == costly.keys()
    assert not ended(alone)
    assert {name: beside.answer(name) for name in others} == {name: alone.answer(name) for name in others}
    last = [Manifests(each.checkpoint.manifests).newest() for each in (beside, alone)]
    held = [sum(state.held for state in manifest.states.values()) if manifest else -1 for manifest in last]
    assert held[0] == held[1], "nothing is held for those that have ended"


@pytest.mark.mass
def test_a_later_twin_has_a_count_of_its_own(tmp_path: Path) -> None:
    """It sees fewer items that take too many steps, and goes on where the earlier one ends."""
    folder = tmp_path / "run"
    folder.mkdir()
    sources = streams(folder)
    whole = (folder / "s").read_text().splitlines(keepends=True)
    trunk = BareTrunk(folder / "state", sources, Random(6), finite=False)
    trunk.limits, trunk.caps = Limits(steps=STEPS), {"first": CAPS, "second": CAPS}
    (folder / "s").write_text("".join(whole[:60]))
    trunk.run({"first": COSTLY["items"]}, (50_000,), (1,))
    (folder / "s").write_text("".join(whole))
    trunk.run({"first": COSTLY["items"], "second": COSTLY["items"]}, (50_000,), (1,))
    assert ended(trunk) == {"first": OVERRUNS}
    assert trunk.answer("second") == "".join(
        f'<h t="{number}">false</h>' for number in range(60, ITEMS) if number not in HEAVY_ITEMS
    )


@pytest.mark.mass
def test_what_subscriptions_cost_is_named(tmp_path: Path) -> None:
    """Those that the law answers and those with a branch have processor time of their own, and others have none."""
    folder = tmp_path / "run"
    folder.mkdir()
    found: list[Metrics] = []
    with Engine(local=True, once=True, on_epoch=found.append) as engine:
        streams(folder)
        engine.stream("s", folder / "s", format="lines", root="r", time="t")
        for name in ("plain", "narrow"):
            engine.subscribe(USUAL[name], name)
        engine.subscribe(COSTLY["items"], "items")
        engine.wait()
    named = {name: cost for metrics in found for name, cost in metrics.costs_ms.items()}
    assert named.keys() == {"narrow", "items"}
    assert all(cost > 0 for cost in named.values())
