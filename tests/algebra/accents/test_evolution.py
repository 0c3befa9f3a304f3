"""The evolution of a partition: states of paths, validity with its consequences, and the same as canonisation finds."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest

from algebra.accents.generate import description, grid
from algebra.accents.making import add, alter, drop, item, path, shown, tree
from anabranch.algebra.accents.boxes import possible
from anabranch.algebra.accents.evolution import Evolution
from anabranch.algebra.accents.index import Box
from anabranch.algebra.accents.items import number, values
from anabranch.algebra.accents.layers import State
from anabranch.algebra.accents.sets import description_of, fulfils, items_of
from anabranch.predicate import Finite
from anabranch.stream import affine
from anabranch.stream.affine import IDENTITY
from anabranch.stream.description import parse
from anabranch.stream.elements import Accent, Alter, Item, StreamElement
from anabranch.stream.path import Path
from mass import some
from models.canonical import canonical
from models.items import altered
from models.rules import commuted, composed

CELSIUS = "(. - 32) * 5 div 9"
UNKNOWN = State(True, None)


def after(*accents: Accent, declares: str | None = None) -> Evolution:
    """The evolution after valid accents, with these paths declared."""
    found = Evolution(None if declares is None else lambda each: str(each) in (declares or "").split())
    for accent in accents:
        refusal = found.apply(accent)
        assert refusal is None, refusal
    return found


def unit(text: str) -> State:
    return State(None, affine.parse(text))


def rows(evolution: Evolution) -> list[str]:
    return [f"{row.path} where {row.where}: {row.state.carried} {row.state.unit}" for row in evolution.schema()]


def test_units_compose_and_cancel() -> None:
    """Sensor 2 goes to Celsius, then all to Kelvin of their unit, then sensor 2 back: one layer each, exact maps."""
    found = after(alter("t", CELSIUS, "s = 2"), alter("t", ". + 273.15"), alter("t", ". * 2", "s = 2"))
    assert found.state(path("t"), tree(s=1, t=1)) == unit(". + 273.15")
    assert found.state(path("t"), tree(s=2, t=1)) == unit("((. - 32) * 5 div 9 + 273.15) * 2")
    assert found.apply(alter("t", ". div 2", "s = 2")) is None
    assert found.apply(alter("t", ". - 273.15")) is None
    assert found.apply(alter("t", ". * 9 div 5 + 32", "s = 2")) is None
    assert rows(found) == ["t where true(): None ."]


def test_overlapping_descriptions() -> None:
    """Where descriptions cross, an item has the maps of all that describe it, in their order."""
    found = after(alter("t", ". * 2", "a = 1"), alter("t", ". + 10", "b = 1"), alter("t", ". * 3", "a = 1"))
    assert found.state(path("t"), tree(a=1, b=1)) == unit("(. * 2 + 10) * 3")
    assert found.state(path("t"), tree(a=1)) == unit(". * 6")
    assert found.state(path("t"), tree(b=1)) == unit(". + 10")


def test_schema_for_people() -> None:
    """The rows of a path are disjoint and say who carries it, in which unit."""
    found = after(add("p", "s = 1"), alter("p", ". * 2", "s = 1"), drop("q"), declares="s q")
    assert rows(found) == [
        "p where s = 1: True . * 2",
        "p where not(s = 1): False .",
        "q where true(): False .",
    ]


@pytest.mark.parametrize(
    ("before", "refused", "reason"),
    [
        pytest.param([], add("t"), "'t' is added where it exists", id="declared"),
        pytest.param([add("p", "s = 1")], add("p", "s <= 1"), "'p' is added where it exists for", id="added"),
        pytest.param([], alter("p", ". * 2"), "'p' is altered where it does not exist", id="unknown path"),
        pytest.param([drop("t", "s = 2")], alter("t", ". * 2"), "'t' is altered where", id="gone"),
        pytest.param([drop("t")], drop("t", "s = 2"), "'t' is dropped where it does not exist", id="dropped twice"),
        pytest.param([], alter("t", ". * 2", "t > 5"), "the description names 't', the path that evolves", id="itself"),
        pytest.param([], drop("t", "z = 5"), "the description names 'z', which no item has", id="unknown description"),
        pytest.param(
            [add("p", "t = '1.0'")], alter("t", ". * 2"), "an earlier description compares 't' as text", id="text"
        ),
    ],
)
def test_refusals(before: list[Accent], refused: Accent, reason: str) -> None:
    """An accent that is not valid is refused with the reason; what it alters or drops is unknown where described."""
    found = after(*before, declares="s t")
    refusal = found.apply(refused)
    assert refusal is not None
    assert refusal.reason.startswith(reason)
    evolution = refused.evolution
    if str(evolution.path) == "t" and not reason.startswith("'t' is added"):
        assert found.state(path("t"), tree(s=2, t=6, z=5)) == UNKNOWN
    else:
        assert found.state(path("t"), tree(s=2, t=6, z=5)) == State(True)


def test_refused_for_a_part_is_unknown_for_that_part() -> None:
    """LAWS 4.5: only the items described are concerned, and a drop makes the path known again."""
    found = after(drop("t", "s = 2"), declares="s t")
    refusal = found.apply(alter("t", ". * 2", "s = 2"))
    assert refusal is not None
    assert str(description_of(refusal.unknown)) == "s = 2"
    assert found.state(path("t"), tree(s=2)) == UNKNOWN
    assert found.state(path("t"), tree(s=1)) == State(True)
    assert found.apply(alter("t", ". * 2")) is None
    assert found.state(path("t"), tree(s=2)) == UNKNOWN
    assert found.apply(drop("t", "s = 2")) is None
    assert found.apply(add("t", "s = 2")) is None
    assert found.state(path("t"), tree(s=2)) == State(True)


def test_without_a_schema() -> None:
    """LAWS 4.5: every path exists until dropped; it can be added once, and once more after a drop (case 22)."""
    after(alter("x", ". * 2"), drop("y"), add("p"), alter("p", ". * 2"), drop("p"), add("p"))
    assert after(add("p")).apply(add("p", "s = 1")) is not None
    assert after(drop("p")).apply(alter("p", ". * 2")) is not None
    again = after(alter("p", ". * 2"), drop("p"), add("p"))
    assert again.state(path("p"), tree(p=1)) == State(True)


def test_items_that_carry_what_was_dropped() -> None:
    """Such an item is bad; one whose path was never announced is not; what is above a path takes it along."""
    found = after(drop("t", "s = 2"), drop("coord"), add("coord/dec"))
    assert found.dropped(tree(s=2, t=1)) == path("t")
    assert found.dropped(tree(s=1, t=1, u=1)) is None
    assert found.state(path("coord/cel/ra"), tree(s=1)).carried is False
    assert found.state(path("coord/dec"), tree(s=1)).carried is True


def test_descriptions_of_a_path_that_comes_again() -> None:
    """What was said of a path's first life does not hold for the second."""
    found = after(add("p", "t > 30"), drop("t"), add("t"))
    assert found.state(path("p"), tree(t=31)).carried is None
    assert after(add("p", "t > 30")).state(path("p"), tree(t=31)).carried is True


def test_declared_domains() -> None:
    """All sensors one by one are all sensors; a domain is no longer believed once its path has evolved."""
    sensors = {path("s"): Finite(frozenset(("1", "2")))}
    found = Evolution(lambda each: str(each) in ("s", "t"), sensors)
    for accent in (drop("t", "s = 1"), drop("t", "s = 2"), add("t")):
        assert found.apply(accent) is None
    other = Evolution(lambda each: str(each) in ("s", "t"), sensors)
    for accent in (drop("t", "s = 1"), alter("s", ". * 2"), drop("t", "s = 4")):
        assert other.apply(accent) is None
    assert other.apply(add("t")) is not None
    assert other.state(path("t"), tree(s=2)).carried is False


def test_unreadable_accents_and_punctuations() -> None:
    """An accent that cannot be read leaves its path unknown; what a punctuation closes is forgotten."""
    found = after(alter("t", ". * 2", "s = 1"), alter("t", ". * 3", "s = 2"))
    found.mistrust(path("t"), parse("s = 3"))
    assert found.state(path("t"), tree(s=3)) == UNKNOWN
    found.close(parse("s <= 1"))
    assert rows(found) == [
        "t where s = 3: True None",
        "t where s = 2: None . * 3",
        "t where not(s = 2) and not(s = 3): None .",
    ]


# --- random ---------------------------------------------------------------------------------------------------

ITEMS = grid()
MAPS = (CELSIUS, ". * 2", ". + 1", ". div 3")


def history(random: Random, length: int) -> list[Accent]:
    """Random accents on t, s and p: alters most of all, since these have to be told anew."""
    made: list[Accent] = []
    for _ in range(length):
        of = random.choice("ttsp")
        where = description(random, 1, "ast".replace(of, ""))
        kind = random.random()
        made.append(
            alter(of, random.choice(MAPS), where) if kind < 0.7 else drop(of, where) if kind < 0.85 else add(of, where)
        )
    return made


@pytest.mark.parametrize("seed", some(range(8)))
def test_units_are_those_of_canonisation(seed: int) -> None:
    """For any item at the end, the layers' map leads to the value that undoing one accent after another gives."""
    random = Random(seed)
    valid: list[Accent] = []
    for accent in history(random, 6):
        if after(*valid).apply(accent) is None:
            valid.append(accent)
    found = after(*valid)
    for raw in random.sample(ITEMS, 60):
        if found.dropped(raw) is not None:
            continue
        last = next(each for each in canonical([*valid, Item(raw, item().place)]) if isinstance(each, Item))
        for of in (path("t"), path("s")):
            net = found.state(of, raw).unit
            assert net is not None
            assert values(altered(raw, of, net.inverse()), of) == values(last.tree, of)


@pytest.mark.parametrize("seed", some(range(8)))
def test_rules_keep_what_the_stream_says(seed: int) -> None:
    """Two accents that change places, or compose, leave every item at the end in the same state."""
    random = Random(seed)
    changed = 0
    while changed < 3:
        first, second = history(random, 2)
        other = commuted(first, second) or composed(first, second)
        begun = Evolution()
        if other is None or begun.apply(first) is not None or begun.apply(second) is not None:
            continue
        changed += 1
        swapped = after(*(each for each in other if isinstance(each, Accent)))
        for raw in ITEMS:
            for of in (path("t"), path("s"), path("p")):
                assert swapped.state(of, raw) == begun.state(of, raw)


@pytest.mark.parametrize("seed", some(range(8)))
def test_canonisation_undoes_what_units_do(seed: int) -> None:
    """Items that were brought forward through random unit changes come back."""
    random = Random(seed)
    changes: list[Accent] = [each for each in history(random, 8) if isinstance(each.evolution, Alter)]
    for start in random.sample(ITEMS, 40):
        now = start
        for accent in changes:
            assert isinstance(accent.evolution, Alter)
            if fulfils(now, items_of(accent.where)):
                now = altered(now, accent.evolution.path, accent.evolution.by)
        back = canonical([*changes, Item(now, item().place)])
        assert numbers(back[0]) == numbers(Item(start, item().place))
        assert shown(back[1:]) == shown(changes)


def numbers(element: StreamElement) -> dict[Path, list[object]]:
    assert isinstance(element, Item)
    return {
        of: [number(text) if isinstance(number(text), Fraction) else text for text in values(element.tree, of)]
        for of in (path("a"), path("s"), path("t"))
    }


def test_the_identity_leaves_no_layer() -> None:
    """What cancels leaves nothing: fifty changes there and back."""
    found = Evolution()
    for sensor in range(50):
        assert found.apply(alter("t", ". * 2", f"s = {sensor}")) is None
    for sensor in range(50):
        assert found.apply(alter("t", ". div 2", f"s = {sensor}")) is None
    assert rows(found) == [f"t where true(): None {IDENTITY}"]


def test_too_many_parts_are_refused() -> None:
    """A description of very many parts is refused in bounded time, and nothing is taken for known."""
    knot = " and ".join(f"(a{n} = 1 or b{n} = 1)" for n in range(40))
    found = Evolution()
    refusal = found.apply(alter("t", ". * 2", knot))
    assert refusal is not None
    assert refusal.reason == "the described items fall into too many parts"
    assert found.state(path("t"), tree(t=1)) == UNKNOWN


def test_the_unit_of_an_element_is_not_that_of_what_is_in_it() -> None:
    """What is told of a path by boxes agrees with what an item is told: changes above it are none of it."""
    found = Evolution()
    assert found.apply(alter("c", ". * 2", "s = 1")) is None
    assert found.apply(alter("c/v", ". * 3", "s = 2")) is None
    three = affine.parse(". * 3")
    assert [by for _, by in found.altered()[path("c/v")] or ()] == [three]
    assert found.state(path("c/v"), tree(s=1)).unit == affine.parse(".")
    assert found.apply(drop("c", "s = 3")) is None
    assert found.altered()[path("c/v")] is None


@pytest.mark.parametrize("where", ["s = {}", "s = {} and r = 'A'", "ts >= {0}0 and ts < {0}9"])
def test_an_accent_meets_its_own_alone(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice the live descriptions are twice the questions, not four times: nothing is quadratic in the usual cases."""
    asked = 0

    def counting(box: Box) -> bool:
        nonlocal asked
        asked += 1
        return possible(box)

    monkeypatch.setattr("anabranch.algebra.accents.boxes.possible", counting)
    monkeypatch.setattr("anabranch.algebra.accents.boxes.possible", counting)
    costs = []
    for size in (20, 40):
        asked, found = 0, Evolution()
        for sensor in range(100, 100 + size):
            assert found.apply(add("p", where.format(sensor))) is None
            assert found.apply(alter("p", ". * 2", where.format(sensor))) is None
        assert found.apply(alter("u", ". * 2")) is None
        assert found.state(path("p"), tree(s=119, r="A", ts=1195)).unit == affine.parse(". * 2")
        costs.append(asked)
    assert costs[1] <= 2 * costs[0]
