"""What a subscription that starts late is told of a stream's evolution (LAWS 3.6)."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest

from algebra.accents.generate import description, grid
from algebra.accents.making import PLACE, add, alter, drop, items, path, tree
from anabranch.algebra.accents.boxes import boxes, left_over
from anabranch.algebra.accents.evolution import Evolution
from anabranch.algebra.accents.index import Box
from anabranch.algebra.accents.layers import State
from anabranch.algebra.accents.sets import below, description_of, items_of, lacking, names, rewritten
from anabranch.predicate import EVERYTHING, NOTHING, Finite, and_
from anabranch.runtime.evolution.views import PartitionView, views
from anabranch.stream import affine
from anabranch.stream.affine import IDENTITY, Affine
from anabranch.stream.elements import Accent, Add, Alter, Doubt, Drop
from anabranch.stream.path import Path
from anabranch.stream.tree import Element
from mass import some

MAPS = (". * 2", ". + 3", ". * 5 div 7 - 1", ". div 2", ". - 3")


def evolved(*accents: Accent, start: Evolution | None = None) -> Evolution:
    evolution = start or Evolution()
    for accent in accents:
        assert evolution.apply(accent) is None
    return evolution


def view(*accents: Accent, start: Evolution | None = None) -> PartitionView:
    """The view of one partition behind these accents."""
    (found,) = views([evolved(*accents, start=start)], [PLACE])
    return found


def told(shown: PartitionView) -> list[str]:
    """What is shown, as short text."""
    return [_told(each) for each in shown.accents]


def _told(each: Accent | Doubt) -> str:
    if isinstance(each, Doubt):
        return f"doubt {each.path} where {each.where}"
    by = f" by {each.evolution.by}" if isinstance(each.evolution, Alter) else ""
    return f"{type(each.evolution).__name__.lower()} {each.evolution.path}{by} where {each.where}"


def unit(shown: PartitionView, of: str, item: Element) -> Affine | None:
    return shown.evolution.state(path(of), item).unit


# --- one partition ------------------------------------------------------------------------------------------------


def test_for_all() -> None:
    """What is in force for all items is simply the subscription's units."""
    late = view(alter("t", "(. - 32) * 5 div 9"), drop("h"), add("p"))
    assert told(late) == []
    assert unit(late, "t", tree(t=25)) == IDENTITY
    assert late.evolution.state(path("h"), tree(t=1)).carried is False
    assert late.evolution.state(path("p"), tree(t=1)).carried is True


def test_for_a_part() -> None:
    """What is in force for a part of the items is shown."""
    late = view(alter("t", ". * 2", "s = 2"), drop("h", "s = 3"), add("p", "s = 1"))
    assert told(late) == ["alter t by . * 2 where s = 2", "drop h where s = 3", "add p where s = 1"]


def test_a_part_then_all() -> None:
    """A change for a part is told in the unit that all have got since: 30 is 10 doubled, then both raised by 10."""
    late = view(alter("t", ". * 2", "s = 2"), alter("t", ". + 10"))
    assert told(late) == ["alter t by . * 2 - 10 where s = 2"]
    found = unit(late, "t", tree(s=2, t=30))
    assert found is not None
    assert found.inverse()(Fraction(30)) == 20  # 10 before the accents, and 20 in the units of the start of the view


def test_undone() -> None:
    """What was undone for the part is not in force any more, and what was dropped and added again is simply there."""
    start = Evolution(lambda each: each.steps in (("s",), ("t",)))
    gone = (alter("t", ". * 2", "s = 2"), alter("t", ". div 2", "s = 2"), drop("t", "s = 2"), add("t", "s = 2"))
    assert told(view(*gone, start=start)) == []


def test_added_again_under_others() -> None:
    """Something added again for a part shows where others have changed since."""
    start = Evolution(lambda each: each.steps in (("s",), ("t",)))
    late = view(alter("t", ". * 2", "s < 5"), drop("t", "s = 2"), add("t", "s = 2"), start=start)
    assert told(late) == ["alter t by . * 2 where s < 5", "add t where s = 2"]
    assert unit(late, "t", tree(s=2, t=1)) == IDENTITY


def test_steps_are_kept() -> None:
    """Unit changes of a part stay apart, so that Union can find what its inputs have in common (LAWS 4.2 d)."""
    late = view(alter("t", ". * 2", "s = 2"), alter("t", ". + 10", "s = 2"))
    assert told(late) == ["alter t by . * 2 where s = 2", "alter t by . + 10 where s = 2"]


def test_covering_by_a_domain() -> None:
    """Both sensors have changed, and there are no others: that is for all."""
    declared = {path("s"): Finite(frozenset(("1", "2")))}
    late = view(alter("t", ". * 2", "s = 1"), alter("t", ". * 2", "s = 2"), start=Evolution(domains=declared))
    assert told(late) == []
    assert unit(late, "t", tree(s=1, t=4)) == IDENTITY
    other = view(alter("t", ". * 2", "s = 1"), alter("t", ". * 3", "s = 2"), start=Evolution(domains=declared))
    assert len(told(other)) == 2


def test_covering_by_intervals() -> None:
    """A description and its denial are all items."""
    assert told(view(drop("t", "s <= 5"), drop("t", "not(s <= 5)"))) == []


def test_descriptions_on_altered_paths() -> None:
    """A description names the values of its place: it is told by the values that the start of the view has there."""
    late = view(add("p", "t > 30"), alter("t", ". * 2"))
    assert told(late) == ["add p where t > 60"]
    late = view(add("p", "t > 30"), alter("t", ". * 2", "s = 2"))
    assert told(late) == ["add p where t > 30", "alter t by . * 2 where s = 2"]
    assert late.evolution.state(path("p"), tree(s=2, t=50)).carried is None
    assert late.evolution.state(path("p"), tree(s=2, t=70)).carried is True


def test_entangled_descriptions() -> None:
    """Each of two accents is described by the path that the other alters."""
    late = view(alter("t", ". * 2", "u > 5"), alter("u", ". + 1", "t > 3"))
    assert told(late) == ["alter t by . * 2 where u > 5", "alter u by . + 1 where t > 3"]


def test_unknown_for_a_part() -> None:
    """What is unknown for a part is shown as such; what is unknown for all is the unit that it is."""
    evolution = evolved(drop("t", "s = 2"))
    assert evolution.apply(alter("t", ". * 2", "s = 2")) is not None
    assert told(views([evolution], [PLACE])[0]) == ["doubt t where s = 2"]
    evolution.mistrust(path("t"), EVERYTHING)
    (late,) = views([evolution], [PLACE])
    assert told(late) == []
    assert unit(late, "t", tree(t=1)) == IDENTITY
    assert [told(each) for each in views([evolution, evolution], [PLACE, PLACE])] == [["doubt t where true()"]] * 2


def test_type_is_kept() -> None:
    """An addition is shown with its type."""
    accent = Accent(description_of(items("s = 1")), Add(path("p"), "decimal"), PLACE)
    assert view(accent).accents == (accent,)


# --- several partitions -------------------------------------------------------------------------------------------


def test_partitions_in_common() -> None:
    """What all partitions have gone through for all their items is the unit; what one did beyond is shown there."""
    celsius, kelvin = alter("t", "(. - 32) * 5 div 9"), alter("t", ". + 273.15")
    first, second = views([evolved(celsius, kelvin), evolved(celsius)], [PLACE, PLACE])
    assert told(first) == ["alter t by . + 5463 div 20 where true()"]
    assert told(second) == []


def test_partitions_apart() -> None:
    """What one partition alone has gone through is for a part of the stream's items."""
    first, second = views([evolved(alter("t", ". * 2"), drop("h")), evolved()], [PLACE, PLACE])
    assert told(first) == ["alter t by . * 2 where true()", "drop h where true()"]
    assert told(second) == []


def test_partitions_in_different_order() -> None:
    """LAWS case 21: the same two changes in different order have no prefix in common."""
    first, second = views(
        [evolved(alter("t", ". * 2"), alter("t", ". + 10")), evolved(alter("t", ". + 10"), alter("t", ". * 2"))],
        [PLACE, PLACE],
    )
    assert len(told(first)) == len(told(second)) == 2


@pytest.mark.parametrize("seed", some(range(40)))
def test_partitions_have_one_start(seed: int) -> None:
    """Behind the common prefix all partitions count from the same unit, whatever each has done for parts."""
    random = Random(seed)
    courses = [[random.choice(MAPS[:2]) for _ in range(random.randint(0, 4))] for _ in range(random.randint(2, 3))]
    partitions = []
    for course in courses:
        evolution = Evolution()
        for by in course:
            for _ in range(random.randint(0, 2)):
                evolution.apply(alter("t", random.choice(MAPS), f"s = {random.randint(1, 3)}"))
            evolution.apply(alter("t", by))
        partitions.append(evolution)
    start = IDENTITY
    for steps in zip(*courses, strict=False):
        if len(set(steps)) > 1:
            break
        start = start.then(affine.parse(steps[0]))
    for evolution, late in zip(partitions, views(partitions, [PLACE] * len(partitions)), strict=True):
        shown = evolved(*(each for each in late.accents if isinstance(each, Accent)))
        for s in range(5):
            here, there = evolution.state(path("t"), tree(s=s)).unit, unit(late, "t", tree(s=s))
            assert here is not None
            assert there is not None
            assert start.then(there) == here
            assert shown.state(path("t"), tree(s=s)).unit == there


# --- the law ------------------------------------------------------------------------------------------------------


def reckoned(log: list[tuple[Accent, bool]]) -> Evolution | None:
    """The same from the whole history: the accents for all items walk to the front, and are left out.

    An accent that a change for all passes is told by the values behind it (accents 5.1); `True` marks a refused one.
    None where something has become unknown for all.
    """
    units: dict[Path, Affine] = {}
    renewed: list[Path] = []
    gone: list[Accent] = []
    shown: list[tuple[Accent, bool]] = []
    for accent, refused in reversed(log):
        where, of = items_of(accent.where), accent.evolution.path
        for new in renewed:
            where = lacking(where, new)
        for each, by in units.items():
            found = rewritten(where, each, EVERYTHING, by)
            assert found is not None
            where = found
        if any(below(of, each) for each in renewed) or where == NOTHING:
            continue
        if where == EVERYTHING:
            if refused:
                return None
            match accent.evolution:
                case Alter(_, by):
                    units[of] = by.then(units.get(of, IDENTITY))
                case other:
                    renewed.append(of)
                    gone += [accent] if isinstance(other, Drop) else []
            continue
        evolution = accent.evolution
        if isinstance(evolution, Alter) and not refused:
            unit = units.get(of, IDENTITY)
            evolution = Alter(of, unit.inverse().then(evolution.by).then(unit))
        shown.append((Accent(description_of(where), evolution, PLACE), refused))
    late = evolved(*(Accent(EVERYTHING, each.evolution, PLACE) for each in gone))
    for accent, refused in reversed(shown):
        if refused:
            late.mistrust(accent.evolution.path, accent.where)
        else:
            assert late.apply(accent) is None
    return late


def random_accent(random: Random) -> Accent:
    of = random.choice(("s", "t", "t", "p"))
    where = "" if random.random() < 0.35 else description(random, 1, "ast".replace(of, ""))
    kind = random.random()
    if kind < 0.6:
        return alter(of, random.choice(MAPS), where)
    return drop(of, where) if kind < 0.8 else add(of, where)


def history(random: Random, length: int) -> tuple[Evolution, list[tuple[Accent, bool]]]:
    """A random evolution and what has led to it."""
    evolution = Evolution()
    log: list[tuple[Accent, bool]] = []
    while len(log) < length:
        accent = random_accent(random)
        parts = boxes(items_of(accent.where))
        if parts != [()] and left_over((), parts) is None:
            continue  # all items in disguise, which the history below takes for a part
        refusal = evolution.apply(accent)
        if refusal is None or not isinstance(accent.evolution, Add):
            where = accent.where if refusal is None else description_of(refusal.unknown)
            log.append((Accent(where, accent.evolution, PLACE), refusal is not None))
    return evolution, log


def in_disguise(evolution: Evolution) -> bool:
    """Whether one accent has come to concern all items, in several parts: the history takes it for one of a part."""
    parts: dict[int, list[Box]] = {}
    for _, layer in evolution.live():
        parts.setdefault(layer.number, []).append(layer.box)
    return any(len(each) > 1 and left_over((), each) is None for each in parts.values())


def same(one: State, other: State) -> bool:
    """Nobody asks for the unit of what is not there, nor who said that a path is there."""
    if one.carried is False or other.carried is False:
        return one.carried == other.carried
    return one.unit == other.unit


@pytest.mark.parametrize("seed", some(range(40)))
def test_views_are_the_evolution_without_what_is_common(seed: int) -> None:
    """A view says of every item what the history without the changes for all says, and so do its accents, applied."""
    random = Random(seed)
    evolution, log = history(random, random.randint(1, 7))
    law = reckoned(log)
    if law is None or in_disguise(evolution):
        return
    (late,) = views([evolution], [PLACE])
    turning = any(names(and_(*layer.box), of) for of, layer in evolution.live())  # no accent may say so of itself
    turning |= any(refused for _, refused in log)
    shown = Evolution()
    for path_, is_there in late.carried.items():
        if not is_there:
            shown.apply(Accent(EVERYTHING, Drop(path_), PLACE))
    for accent in late.accents:
        if isinstance(accent, Doubt):
            shown.mistrust(accent.path, accent.where)
        else:
            shown.apply(accent)
    for more in range(3):
        for item in random.sample(grid(), 30):
            if evolution.dropped(item) is None:
                for name in ("s", "t", "p"):
                    expected = law.state(path(name), item)
                    assert same(late.evolution.state(path(name), item), expected), (name, log, more)
                    assert turning or same(shown.state(path(name), item), expected), (name, log, late.accents)
        accent = random_accent(random)
        if evolution.copy().apply(accent) is None:  # what is valid in the partition is so in the view
            assert not any(each.apply(accent) for each in (evolution, law, late.evolution)), (accent, log)
            turning = True
