"""Replacement rules (accents 5.1), the six cases of 5.2, and canonical streams of the paper and the laws."""

from __future__ import annotations

import pytest

from algebra.accents.making import add, alter, closed, drop, item, items, shown
from anabranch.stream.elements import Accent, Item, StreamElement
from models.canonical import canonical
from models.rules import commuted, composed, parts

CELSIUS = "(. - 32) * 5 div 9"


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        pytest.param(drop("x", "a = 1"), item(a=2, x=3), ["a=2 x=3", "drop x where a = 1"], id="not described"),
        pytest.param(add("x", "a = 1"), item(a=1), ["a=1", "add x where a = 1"], id="add, item without it"),
        pytest.param(add("x", "a = 1"), item(a=1, x=2), None, id="add, item with it"),
        pytest.param(drop("x"), item(a=1), ["a=1", "drop x where true()"], id="drop, item without it"),
        pytest.param(
            alter("t", CELSIUS), item(t=25), ["t=77", "alter t by . * 5 div 9 - 160 div 9 where true()"], id="alter"
        ),
        pytest.param(
            item(t=77), alter("t", CELSIUS), ["alter t by . * 5 div 9 - 160 div 9 where true()", "t=25"], id="back"
        ),
        pytest.param(
            drop("x", "a < 1"),
            add("x", "a >= 1"),
            ["add x where a >= 1", "drop x where a < 1"],
            id="disjoint descriptions",
        ),
        pytest.param(
            add("x", "a < 1"), drop("y", "b = 2"), ["drop y where b = 2", "add x where a < 1"], id="other paths"
        ),
        pytest.param(add("x", "a < 1"), drop("y", "x = 2"), None, id="other paths, but one is named"),
        pytest.param(drop("x", "y = 1"), add("y", "b = 2"), None, id="other paths, but the first one's is named"),
        pytest.param(
            alter("x", ". * 2", "a = 1"),
            add("y", "a = 1 and x < 10"),
            ["add y where a = 1 and x < 5", "alter x by . * 2 where a = 1"],
            id="alter with accent: d'' is d' with its constant mapped back",
        ),
        pytest.param(
            alter("x", ". * 2", "a = 1"),
            add("y", "x < 10"),
            [
                "add y where a = 1 and x < 5",
                "add y where not(a = 1) and x < 10",
                "alter x by . * 2 where a = 1",
            ],
            id="alter with accent: divided first where it lies across",
        ),
        pytest.param(drop("x"), add("x"), None, id="drop then add is not annihilated"),
    ],
)
def test_rules_of_5_1(first: Item | Accent, second: Item | Accent, expected: list[str] | None) -> None:
    """Two neighbours change places as the rule says, or not at all."""
    found = commuted(first, second)
    assert (None if found is None else shown(found)) == expected


def test_divide_descriptions() -> None:
    """A description that is no conjunction becomes disjoint conjunctive ones."""
    given = add("x", "a = 1 or b < 2")
    assert shown(parts(given, items("a = 1 or b < 2"))) == ["add x where a = 1", "add x where b < 2 and not(a = 1)"]


def test_composition_and_annihilation() -> None:
    """Unit changes for the same items compose, also if they are described otherwise; inverse ones vanish."""
    first, second = alter("t", ". * 2", "not(a != 1)"), alter("t", ". + 10", "not(a != 1.0)")
    assert shown(composed(first, second) or ()) == ["alter t by . * 2 + 10 where not(a != 1)"]
    assert composed(alter("t", CELSIUS), alter("t", ". * 9 div 5 + 32")) == ()
    assert composed(alter("t", ". * 2"), alter("t", ". * 2", "a = 1")) is None


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        pytest.param([item(a=1), add("x")], ["add x where true()", "a=1"], id="1: tuple before add"),
        pytest.param(
            [alter("t", ". + 1", "a = 1"), item(a=1, t=5), item(a=2, t=5), item(a=1)],
            ["a=1 t=4", "a=2 t=5", "a=1", "alter t by . + 1 where a = 1"],
            id="2: tuple after alter",
        ),
        pytest.param([drop("t"), item(a=1)], ["a=1", "drop t where true()"], id="3: tuple after drop"),
        pytest.param(
            [drop("x", "a = 1"), add("y", "a = 1"), item(a=1, y=2)],
            ["add y where a = 1", "a=1 y=2", "drop x where a = 1"],
            id="4: drop before add",
        ),
        pytest.param(
            [drop("x", "y > 5 and a = 1"), alter("y", ". * 2", "a = 1")],
            ["alter y by . * 2 where a = 1", "drop x where a = 1 and y > 10"],
            id="5: drop before alter, the description mapped",
        ),
        pytest.param(
            [alter("x", ". * 2", "a = 1"), add("y", "x < 10")],
            [
                "add y where a = 1 and x < 5",
                "add y where not(a = 1) and x < 10",
                "alter x by . * 2 where a = 1",
            ],
            id="6: alter before add (the paper writes d' for d)",
        ),
    ],
)
def test_cases_of_5_2(stream: list[Item | Accent], expected: list[str]) -> None:
    """Each pair in the wrong order comes out in canonical order."""
    assert shown(canonical(stream)) == expected


def test_figure_1() -> None:
    """Sensor 2 reports in Celsius from ts 5 on; canonically all is in Fahrenheit, and 25 is 77."""
    stream: list[StreamElement] = [
        item(ts=0, s=2, t=77),
        item(ts=1, s=1, t="68.0"),
        alter("t", CELSIUS, "s = 2"),
        item(ts=5, s=2, t=25),
        item(ts=6, s=1, t="70.0"),
    ]
    assert shown(canonical(stream)) == [
        "ts=0 s=2 t=77",
        "ts=1 s=1 t=68.0",
        "ts=5 s=2 t=77",
        "ts=6 s=1 t=70.0",
        "alter t by . * 5 div 9 - 160 div 9 where s = 2",
    ]


def test_raw_text_is_copied_where_the_net_map_is_the_identity() -> None:
    """There and back again leaves the spelling alone (LAWS 4.3); a word, NaN and INF have no unit."""
    stream: list[StreamElement] = [
        alter("t", ". * 3"),
        item(t="1.50"),
        alter("t", ". div 3"),
        item(t="1.50"),
        item(t="broken"),
    ]
    assert shown(canonical(stream)) == [
        "t=0.5",
        "t=1.50",
        "t=broken",
        "alter t by . * 3 where true()",
        "alter t by . * 1 div 3 where true()",
    ]
    assert shown(canonical([alter("t", ". * 3"), item(t=10)]))[0] == "t=10/3"
    assert shown(canonical([alter("t", ". * 3"), item(t="NaN"), item(t="-INF")]))[:2] == ["t=NaN", "t=-INF"]


def test_a_path_dropped_and_added_again_is_new() -> None:
    """LAWS case 22: the unit change of the first life does not concern the second."""
    stream: list[StreamElement] = [
        add("p"),
        item(p=10),
        alter("p", ". * 2"),
        item(p=20),
        drop("p"),
        add("p"),
        item(p=7),
    ]
    assert shown(canonical(stream))[2:5] == ["p=10", "p=10", "p=7"]


def test_a_description_of_the_second_life_is_not_mapped() -> None:
    """What is said of a path after it was added anew is not told in the units of its first life."""
    stream: list[StreamElement] = [
        alter("p", ". * 2"),
        add("q", "p > 10"),
        drop("p"),
        add("p"),
        add("z", "p > 10"),
        item(p=11, z=1),
    ]
    assert shown(canonical(stream))[:4] == [
        "add q where p > 5",
        "add p where true()",
        "add z where p > 10",
        "p=11 z=1",
    ]


def test_case_24() -> None:
    """Descriptions speak of raw values: 29 of sensor 2 is in Celsius, 31 of sensor 1 is not."""
    stream: list[StreamElement] = [
        alter("t", CELSIUS, "s = 2"),
        add("p", "t > 30"),
        item(s=1, t=31, p=1),
        item(s=2, t=29),
    ]
    assert shown(canonical(stream)) == [
        "add p where s = 2 and t > 86",
        "add p where not(s = 2) and t > 30",
        "s=1 t=31 p=1",
        "s=2 t=84.2",
        "alter t by . * 5 div 9 - 160 div 9 where s = 2",
    ]


def test_punctuations_are_rewritten_like_descriptions() -> None:
    """LAWS 4.8: what no longer comes is told in the units of the start."""
    assert shown(canonical([alter("t", ". * 2"), closed("t <= 10"), item(t=12)]))[:2] == ["closed t <= 5", "t=6"]
