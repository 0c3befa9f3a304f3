"""Windows and groups over what lookups find: panes answer as the law does (LAWS 3.8, 7)."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest

from anabranch.branch.panes.plan import PanePlan, pane_plan
from anabranch.columnar.panes.query import compile_panes
from anabranch.columnar.scan.look import Look
from anabranch.engine.finite import answering
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import EngineName, prepare
from anabranch.language import check, parse
from anabranch.runtime.standing import standing
from anabranch.stream.elements import Item, Place
from anabranch.stream.limits import Limits
from anabranch.stream.reading.json_items import parse_line
from anabranch.stream.reading.json_names import step_of_key
from anabranch.stream.reading.source import Source
from mass import Mass, some
from odd_keys import quoted

WINDOW = 'for $w in stream("s")/root/item|t diff 10| '
SLIDING = 'for $w in stream("s")/root/item|t diff 20 step 5| '
COUNTED = 'for $w in stream("s")/root/item|count 7| '
BY = "for $o in $w group by $k := $o.k "
PANED = {
    "sums": WINDOW + 'return { "n": count($w), "s": sum($w.v), "a": avg($w.v), "c": count($w.v) }',
    "non-null": SLIDING + 'return { "n": count(non-null($w.v)), "m": count($w.k), "deep": sum($w.d.v) }',
    "bounds": WINDOW + 'return { "from": window-start($w), "to": window-end($w), "n": count($w.v) }',
    "nested": WINDOW + 'return { "a": { "s": sum($w.v), "l": [avg($w.d.v), 5, "x", ()] } }',
    "elements": WINDOW + "return <w n='{ count($w.v) }'>{ sum($w.v) }</w>",
    "rounds": WINDOW + 'return { "s": sum(for $i in $w where $i.v > 3 return $i.v * $i.d.v), "n": count($w) }',
    "groups": WINDOW + BY + 'return { "k": $k, "n": count($o), "s": sum($o.v) }',
    "two keys": WINDOW + 'for $o in $w group by $k := $o.k, $j := $o.d.j return { "k": $k, "j": $j, "n": count($o) }',
    "sorted": SLIDING + BY + 'let $s := sum($o.v) where $s > 1 order by $k descending return { "k": $k, "s": $s }',
    "in elements": WINDOW + BY + "return <g k='{ $k }'>{ $k, count($o) }</g>",
    "chosen": WINDOW + "for $o in $w where $o.v > 2 and $o.ok group by $k := $o.k return [$k, sum($o.v)]",
    "counted": COUNTED + BY + 'return { "k": $k, "n": count($o), "c": count($o.v) }',
    "of text": WINDOW + 'for $o in $w group by $k := upper-case($o.name) return { "k": $k, "n": count($o) }',
    "of paths": WINDOW + 'for $o in $w group by $k := $o/name return { "k": $k, "n": count($o), "s": sum($o/v) }',
    "of conditions": WINDOW + 'for $o in $w group by $k := $o.v > 5 return { "k": $k, "n": count($o) }',
    "as in SQL": WINDOW + "return for $o in $w group by $k := non-null($o.k) "
    'return { "k": $k, "s": if (exists(avg($o.v))) then sum($o.v) else (), "a": avg($o.v) }',
    "top": WINDOW + BY + 'order by count($o) descending count $c where $c <= 2 return { "k": $k, "c": $c }',
    "bounds of groups": WINDOW + BY + 'return { "k": $k, "window_start": window-start($w), "avg": avg($o.v) }',
    "extremes": WINDOW + 'return { "a": min($w.v), "b": max($w.v), "s": sum($w.v), "d": max(non-null($w.d.v)) }',
    "extremes in elements": SLIDING + "return <w a='{ min($w.v) }'>{ max($w.d.v), avg($w.v) }</w>",
    "extremes in a test": SLIDING + "where max($w.v) > 5 return [min($w.v), count($w.v)]",
    "extremes of groups": SLIDING + BY + 'return { "k": $k, "a": min($o.v), "b": max($o.v), "n": count($o.v) }',
    "sorted by extremes": WINDOW + BY + 'let $m := max($o.v) order by $m descending, $k return { "k": $k, "m": $m }',
    "extremes of count windows": COUNTED + BY + "return <g k='{ $k }'>{ min($o.v), max($o.d.v) }</g>",
}
TEXTS = {
    "of any type": WINDOW + 'return { "a": min($w.v), "b": max($w.k), "c": max($w.name), "d": min($w.ok) }',
    "texts": SLIDING + 'return { "a": min($w.name), "b": max(non-null($w.name)), "s": sum($w.v) }',
    "booleans": WINDOW + "return <w>{ min($w.ok), max($w.ok) }</w>",
    "texts of groups": WINDOW + BY + 'return { "k": $k, "a": min($o.v), "b": max($o.name) }',
    "sorted by texts": SLIDING + BY + 'order by max($o.name), $k return { "k": $k, "c": min($o.name), "d": max($o.k) }',
    "of arrays and objects": WINDOW + "return [max($w.d), min($w.k)]",
    "counted texts": COUNTED + 'return { "a": min($w.name), "b": max($w.k) }',
}
OTHERS = {
    "arrays": WINDOW + 'return { "a": array { $w.v } }',
    "sessions": 'for $w in stream("s")/root/item|t gap 3| return { "n": count($w), "s": sum($w.v) }',
}


def lines(random: Random, odd: int) -> str:
    """Records with times that rise; of a hundred values so many are odd."""

    def some(usual: str) -> str:
        others = ["null", "null", '"x"', "1.0", "1", "1e0", "true", '{"v": 1}', "[1]", "[]", '"1"', "1e400"]
        others += ["[[1, 2.0], [3]]", "[[[1]], []]", "[[]]", '[["x"], {"v": 2}]']
        return random.choice(others) if random.randrange(100) < odd else usual

    found: list[str] = []
    at = 0
    for _ in range(60):
        at += random.choice([0, 1, 1, 2, 9])
        keys = random.choice([["1", "2", "1.0"], ['"a"', '"b"', '"é \\" \\u0041"'], ["true", "false", "null"]])
        values = {
            "k": some(random.choice(keys)),
            "v": some(random.choice(["1", "2.5", "7", "1e1", "0.1"])),
            "ok": some("true"),
            "name": some(random.choice(['"x"', '"Y"', '"<&>"'])),
            "d": some(f'{{"v": {some("2")}, "j": {some(random.choice(["1", "2"]))}}}'),
        }
        there = [f'"{key}": {value}' for key, value in values.items() if random.randrange(100) >= odd // 2]
        found.append("{" + ", ".join([f'"t": {at}', *there]) + "}\n")
    return "".join(found)


def answer(folder: Path, query: str, text: str, engine: EngineName) -> tuple[str, list[tuple[str, str]]]:
    """The answer, and the codes and messages of dead letters.

    Panes name the items whose values raised (LAWS 2.4); the reference does not know of what was looked up whose it is,
    and names all items of the group, or the first of the window.
    """
    (folder / "s").write_text(text)
    inputs = Inputs([Source("s", folder / "s", format="json")], finite=True)
    with answering([prepare("q", query, inputs, engine)], inputs) as run:
        found = "".join(run.answers["q"])
        return found, sorted({(each.code or "", each.reason) for each in run.dead})


def check_case(number: int, folder: Path) -> None:
    """One query over one stream is answered by panes as by the law."""
    random = Random(number)
    query = random.choice([*(PANED | TEXTS | OTHERS).values()])
    text = lines(random, random.choice([0, 4, 15]))
    assert answer(folder, query, text, "local") == answer(folder, query, text, "reference"), query


def test_random_windows_are_answered_as_by_law(mass: Mass, tmp_path: Path) -> None:
    """Types that hold always, mostly or seldom; equal numbers that are spelled otherwise; nulls and what is missing."""
    for number in mass.cases(5_000):
        check_case(number, tmp_path)


@pytest.mark.parametrize("name", [*PANED, *TEXTS, *OTHERS])
@pytest.mark.parametrize("odd", some([10, 0]))
def test_each_form_is_answered_as_by_law(name: str, odd: int, tmp_path: Path) -> None:
    """Each of the forms over two streams."""
    for seed in some(range(2)):
        text = lines(Random(seed), odd)
        query = (PANED | TEXTS | OTHERS)[name]
        assert answer(tmp_path, query, text, "local") == answer(tmp_path, query, text, "reference")


KEYS = {"t": "event time", "k": "2026", "v": "a/b", "ok": "", "name": "$name", "d": "#number", "j": '"\\'}
_LOOKED_UP = re.compile(r"\.([a-z]+)\b|\|(t) |\$o/([a-z]+)|(\"(?:t|k|v|ok|name|d|j)\"): ")


def with_odd_keys(text: str) -> str:
    """A query, or lines, with odd keys in the place of the plain ones."""

    def other(found: re.Match[str]) -> str:
        match found.groups():
            case [str(key), None, None, None]:
                return f".{quoted(KEYS.get(key, key))}"
            case [None, str(key), None, None]:
                return f"|{step_of_key(KEYS[key])} "
            case [None, None, str(key), None]:
                return f"$o/{step_of_key(KEYS[key])}"
            case _:
                return f"{json.dumps(KEYS[found[4][1:-1]])}: " if text.startswith("{") else found[0]

    return _LOOKED_UP.sub(other, text)


@pytest.mark.parametrize("name", [*PANED, *TEXTS, *OTHERS])
@pytest.mark.parametrize("odd", some([10, 0]))
def test_each_form_is_answered_with_odd_keys(name: str, odd: int, tmp_path: Path) -> None:
    """Odd keys make no difference to panes, nor to the law (LAWS 7.1)."""
    text, query = lines(Random(1), odd), (PANED | TEXTS | OTHERS)[name]
    found = answer(tmp_path, with_odd_keys(query), with_odd_keys(text), "local")
    assert found == answer(tmp_path, with_odd_keys(query), with_odd_keys(text), "reference")
    if not odd:  # else an object among the odd values may be shown, with its key
        assert found == answer(tmp_path, query, text, "reference")
    assert (plan_of(query) is None) == (plan_of(with_odd_keys(query)) is None)


def plan_of(text: str) -> PanePlan | None:
    """How a query is counted."""
    return pane_plan(standing(check(parse(text), text).query), Fraction(0), Fraction(0))


@pytest.mark.parametrize("name", [*PANED, "texts", "texts of groups", "sorted by texts", "counted texts"])
def test_windows_seen_through_aggregates_are_counted_in_columns(name: str) -> None:
    """Neither are items held, nor is the law asked where types are as usual."""
    plan = plan_of((PANED | TEXTS)[name])
    assert plan is not None
    assert plan.result is not None
    usual = b'{"t": 1, "k": "a", "v": 1, "ok": true, "name": "x", "d": {"v": 2, "j": 1}}'
    element = parse_line(usual, Place("", "", 0), Limits(), "item")
    assert isinstance(element, Item)
    look = Look.learn([(usual, element.tree)] * 3, is_json=True)
    assert look is not None
    assert compile_panes(plan.query, "root", look) is not None


@pytest.mark.parametrize("name", TEXTS)
def test_extremes_of_texts_hold_no_items(name: str) -> None:
    """Panes have room for strings and booleans, too."""
    assert plan_of(TEXTS[name]) is not None


def test_what_gives_its_items_holds_them() -> None:
    """An array of what a lookup finds is none of panes."""
    assert plan_of(OTHERS["arrays"]) is None
