"""Random accented streams and random plans over them.

Streams are valid: an item has a path only while it may carry it, and values are written in the unit of the place.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from random import Random
from typing import Literal

from algebra.accented import add, alter, closed, drop, item, path
from anabranch.aggregates import AGGREGATES
from anabranch.aggregates.function import FunctionName
from anabranch.algebra.accents.evolution import Evolution
from anabranch.algebra.accents.sets import fulfils, items_of
from anabranch.algebra.operators.construct import Constant, Construct, Copy, Linear, Value
from anabranch.algebra.operators.grouped import Aggregate
from anabranch.algebra.operators.intersect import Intersect
from anabranch.algebra.operators.join import Join
from anabranch.algebra.operators.operator import Operator
from anabranch.algebra.operators.order import Key, Order
from anabranch.algebra.operators.project import Project
from anabranch.algebra.operators.quantify import Quantify
from anabranch.algebra.operators.select import Select
from anabranch.algebra.operators.union import Union
from anabranch.algebra.operators.windowed import WID, Window
from anabranch.algebra.plans.builder import DerivedStream
from anabranch.algebra.plans.interpret import Apply, Plan, StreamSource
from anabranch.algebra.reactions.readings import without
from anabranch.algebra.window import Extent
from anabranch.predicate import Integers
from anabranch.stream.affine import IDENTITY
from anabranch.stream.description import parse
from anabranch.stream.elements import Accent, Add, Alter, Drop, Item, StreamElement
from models.interpreter import Element
from models.items import altered

MAPS = (". * 2", ". + 10", ". * 3 div 2 - 1", "(. - 32) * 5 div 9", ". div 2")
FUNCTIONS: tuple[FunctionName, ...] = tuple(AGGREGATES)


def description(random: Random, paths: list[str]) -> str:
    """Some of the items: mostly by the sensor, which is what descriptions are about in practice; sometimes all."""
    many = random.choice((0, 0, 1, 1, 1, 1, 1, 1, 1, 2))
    by_sensor = many == 1 and "s" in paths and random.random() < 0.5
    chosen = ["s"] if by_sensor else random.sample(paths, min(many, len(paths)))
    parts = []
    for each in chosen:
        op = random.choice(("=", "=", "<", ">=") if each == "s" else ("=", "<", "<=", ">", ">=", "!="))
        part = f"{each} {op} {random.randint(1, 3) if each == 's' else random.choice((10, 20))}"
        parts.append(part if random.random() < 0.8 else f"not({part})")
    return random.choice((" and ", " and ", " or ")).join(parts)


def stream(random: Random, names: list[str], length: int, *, comes: bool, goes: bool) -> list[Element]:
    """A valid accented stream of items with these paths, and `p`, if it `comes`; also more than once, if it `goes`.

    Some have elements `c`, some of these more than one, with a `v`, which descriptions cannot name.

    In every other stream sensors are closed by punctuations; there they keep their numbers.
    """
    log: list[Accent] = []
    elements: list[Element] = []
    sensors, closes = [1, 2, 3], random.random() < 0.5
    for _ in range(length):
        kind = random.random()
        if kind < 0.1 and closes and len(sensors) > 1:
            elements.append(closed(f"s = {sensors.pop(random.randrange(len(sensors)))}"))
        elif kind < 0.5 and len(log) <= length // 4:
            accent = _accent(random, names, comes, goes)
            if faults([*log, accent]) == [] and not (closes and accent.evolution.path == path("s")):
                log.append(accent)
                elements.append(accent)
        else:
            values = {name: random.randint(0, 30) for name in (*names, "p") if random.random() < 0.9}
            values["s"] = random.choice(sensors)
            repeated = [f"c/v={random.randint(0, 30)}" for _ in range(random.choice((0, 0, 1, 2)) if comes else 0)]
            canonical = item(" ".join([*(f"{name}={value}" for name, value in values.items()), *repeated]))
            elements.append(_written(canonical, log))
    return elements


def faults(elements: Iterable[StreamElement], evolution: Evolution | None = None) -> list[str]:
    """What is not valid about a stream; without an evolution to begin with, all paths but `p` are there from the start.

    Windows are numbered then.
    """
    evolution = evolution or Evolution(lambda at: at != path("p"), {WID: Integers(Fraction(0))})
    found: list[str] = []
    for each in elements:
        match each:
            case Accent():
                refused = evolution.apply(each)
                found += [] if refused is None else [refused.reason]
            case Item(tree):
                gone = evolution.dropped(tree)
                found += [] if gone is None else [f"{gone} was dropped"]
    return found


def _accent(random: Random, names: list[str], comes: bool, goes: bool) -> Accent:
    kind = random.random()
    if kind < 0.7 or not comes:
        at = random.choice([*names[1:], *names, "c/v", "p"] if comes else names)
        return alter(at, random.choice(MAPS), description(random, [each for each in names if each != at]))
    where = description(random, names)
    return drop("p", where) if goes and kind < 0.85 else add("p", where)


def _written(canonical: Item, log: list[Accent]) -> Item:
    """An item as it is written after these accents."""
    tree, may, by = canonical.tree, False, IDENTITY
    for accent in log:
        if fulfils(tree, items_of(accent.where)):
            match accent.evolution:
                case Alter(at, change) if at == path("p"):
                    by = by.then(change)
                case Alter(at, change):
                    tree = altered(tree, at, change)
                case Add():
                    may, by = True, IDENTITY
                case Drop():
                    may = False
    return Item(altered(tree, path("p"), by) if may else without(tree, path("p")), canonical.place)


STATEFUL = {"join", "order", "aggregate"}
"""The operators that remember items or values: a drop purges them (LAWS 4.2 c, g), and there the square is no claim."""


class Planner:
    """One random plan, from the sources up: `a` and `a2` have the same paths, `b` shares only the key `s`."""

    def __init__(self, random: Random, *, goes: bool) -> None:
        self.random = random
        self.goes = goes
        """Whether paths go in the streams."""
        self.paths = ["s", "t", "x"]
        self.plan: Plan = StreamSource("a")
        self.used: set[str] = set()

    def grow(self, operator: str) -> None:
        """Put one operator on top."""
        self.used.add(operator)
        found, others = getattr(self, f"_{operator}")()
        self.plan = Apply(found, (self.plan, *others))

    def possible(self) -> list[str]:
        """The operators that can go on top."""
        found = ["select", "choose", "order", "quantify", "project"] if self.paths else ["select"]
        if self.paths and "construct" not in self.used:
            found.append("construct")
        if self.paths == ["s", "t", "x"]:
            found += ["union", "intersect"]
        if "s" in self.paths and not self.used & {"join", "aggregate"}:
            found.append("join")
        if "t" in self.paths and not self.used & {"window", "aggregate"}:
            found.append("window")
        if self.paths and "aggregate" not in self.used:
            found.append("aggregate")
        return [each for each in found if not (self.goes and each in STATEFUL)]

    def _select(self) -> tuple[Operator, tuple[Plan, ...]]:
        return Select(parse(description(self.random, self.paths))), ()

    def _choose(self) -> tuple[Operator, tuple[Plan, ...]]:
        """One way for some of the items, another for the others, which may pass a selection more."""
        more, condition = (description(self.random, self.paths) for _ in range(2))
        whole = (
            DerivedStream(self.plan)
            .choose(
                condition,
                lambda way: way,
                lambda way: way.select(more) if self.random.random() < 0.5 else way,
            )
            .plan
        )
        assert isinstance(whole, Apply)
        self.plan = whole.inputs[0]
        return whole.operator, whole.inputs[1:]

    def _order(self) -> tuple[Operator, tuple[Plan, ...]]:
        return Order((Key(path(self.random.choice(self.paths)), self.random.random() < 0.5),)), ()

    def _quantify(self) -> tuple[Operator, tuple[Plan, ...]]:
        quantifier: Literal["some", "every"] = "some" if self.random.random() < 0.5 else "every"
        return Quantify(quantifier, path("c"), parse(description(self.random, ["v"]))), ()

    def _project(self) -> tuple[Operator, tuple[Plan, ...]]:
        self.paths = self.random.sample(self.paths, self.random.randint(1, len(self.paths)))
        more = ["p"] if self.random.random() < 0.5 else []
        return Project(frozenset(map(path, [*self.paths, *more]))), ()

    def _construct(self) -> tuple[Operator, tuple[Plan, ...]]:
        """Some paths copied, `x` perhaps under another name, a linear field of one and one of two, and a constant."""
        kept = self.random.sample(self.paths, self.random.randint(1, len(self.paths)))
        names = {each: "q" if each == "x" and self.random.random() < 0.5 else each for each in kept}
        factor = Fraction(self.random.choice((-2, -1, 1, 3)), self.random.choice((1, 2)))
        one, other = (path(self.random.choice(self.paths)) for _ in range(2))
        fields: dict[str, Value] = {name: Copy(path(each)) for each, name in names.items()}
        fields |= {"p": Copy(path("p")), "c": Copy(path("c")), "k": Constant("k")}
        fields["z"] = Linear(((factor, one),), Fraction(self.random.randint(-5, 5)))
        if one != other:
            fields["u"] = Linear(((Fraction(1), one), (Fraction(1), other)))
        self.paths = [*names.values(), "z"]
        return Construct("o", tuple((path(at), value) for at, value in fields.items())), ()

    def _union(self) -> tuple[Operator, tuple[Plan, ...]]:
        return Union(), (StreamSource("a2"),)

    def _intersect(self) -> tuple[Operator, tuple[Plan, ...]]:
        return Intersect(), (StreamSource("a2"),)

    def _join(self) -> tuple[Operator, tuple[Plan, ...]]:
        self.paths = [*self.paths, "y"]
        return Join(((path("s"), path("s")),)), (StreamSource("b"),)

    def _window(self) -> tuple[Operator, tuple[Plan, ...]]:
        self.paths = [*self.paths, "wid"]
        step = self.random.choice((Fraction(10), Fraction(5), Fraction(7)))
        return Window(path("t"), Extent(Fraction(10), step)), ()

    def _aggregate(self) -> tuple[Operator, tuple[Plan, ...]]:
        by = self.random.sample(self.paths, self.random.randint(0, min(2, len(self.paths))))
        left = [each for each in self.paths if each not in by]
        exclude = self.random.sample(left, min(1, max(0, len(self.paths) - 1), len(left)))
        self.paths = [each for each in self.paths if each not in exclude]
        function = self.random.choice(FUNCTIONS)
        return Aggregate(function, tuple(map(path, by)), frozenset(map(path, exclude))), ()


def merged(random: Random, streams: dict[str, list[Element]]) -> list[tuple[str, Element]]:
    """The elements of several streams in one order, each stream keeping its own."""
    left = {name: list(elements) for name, elements in streams.items()}
    found: list[tuple[str, Element]] = []
    while any(left.values()):
        name = random.choice([each for each in left if left[each]])
        found.append((name, left[name].pop(0)))
    return found
