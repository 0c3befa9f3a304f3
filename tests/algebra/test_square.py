"""The commuting square of the accents paper, figure 3: canonical(query(S)) = query(canonical(S)) (LAWS 4.1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import takewhile
from random import Random

import pytest

from algebra.accented import alter, item, show
from algebra.evolving import STATEFUL, Planner, faults, merged, stream
from anabranch.algebra.accents.items import spelled
from anabranch.algebra.accents.sets import fulfils, items_of
from anabranch.algebra.operators.union import Union
from anabranch.algebra.plans.interpret import Apply, Plan, StreamSource
from anabranch.stream.affine import Affine
from anabranch.stream.elements import Accent, Add, Alter, Drop, Item
from anabranch.stream.path import Path
from anabranch.stream.tree import Element as Tree
from mass import Mass, enough, some
from models.canonical import canonical
from models.interpreter import Element, Interpreter, leaving, run
from models.items import altered

OPERATORS = [
    "select",
    "choose",
    "quantify",
    "order",
    "project",
    "construct",
    "union",
    "intersect",
    "join",
    "window",
    "aggregate",
]


class World:
    """Random accented streams in one order, and what they are canonically."""

    def __init__(self, seed: int, *, goes: bool) -> None:
        self.goes = goes
        self.random = random = Random(seed)
        streams = {
            "a": stream(random, ["s", "t", "x"], 5, comes=True, goes=goes),
            "a2": stream(random, ["s", "t", "x"], 5, comes=True, goes=goes),
            "b": stream(random, ["s", "y"], 4, comes=False, goes=False),
        }
        self.order = merged(random, streams)
        plain = {name: iter(items(elements)) for name, elements in streams.items()}
        self.canonical = [(name, next(plain[name])) for name, each in self.order if isinstance(each, Item)]

    def plan(self, operators: Sequence[str] = ()) -> Plan:
        """A plan of these operators, or a random one of up to 5."""
        planner = Planner(self.random, goes=self.goes)
        for number in range(len(operators) or self.random.randint(1, 5)):
            planner.grow(operators[number] if operators else self.random.choice(planner.possible()))
        return planner.plan


def items(elements: list[Element]) -> list[Item]:
    """The items of the canonical stream, in their order."""
    return [each for each in canonical(elements) if isinstance(each, Item)]


def values_of(element: Element) -> str:
    """An item in short, with its paths in order; which comes first in a group depends on when a punctuation comes."""
    return " ".join(sorted(show(element).split(), key=lambda each: each.partition("=")[0]))


def commutes(world: World, plan: Plan) -> int:
    """One case: a plan over the streams of a world, both ways round; how many accents came out.

    What comes out is a valid stream, too, and nothing that goes in is bad.
    """
    query = Interpreter(plan)
    flowing = [each for name, element in world.order for each in query.feed(name, element)]
    out = [leaving(each, 0, spelled) for each in (*flowing, *query.end())]
    assert query.bad == []
    assert faults(out) == [], plan
    across = Counter(map(values_of, items(out)))
    down = Counter(map(values_of, run(plan, world.canonical, spelling=spelled)))
    assert across == down, plan
    return sum(isinstance(each, Accent) for each in out)


@pytest.mark.parametrize("operator", OPERATORS)
def test_each_operator_commutes_with_canonisation(operator: str) -> None:
    """Each operator alone, over 37 random worlds; some accents come out, so the square is not an empty one."""
    worlds = (World(seed, goes=seed % 2 == 0 and operator not in STATEFUL) for seed in some(range(37)))
    assert sum(commutes(world, world.plan([operator])) for world in worlds) > enough(10)


def test_pipelines_commute_with_canonisation(mass: Mass) -> None:
    """1,600 random plans of up to 5 operators, 8 over each of 200 worlds; with those above these are 2,007 cases."""
    accents = 0
    for seed in mass.cases(200):
        world = World(seed, goes=seed % 2 == 0)
        accents += sum(commutes(world, world.plan()) for _ in range(8))
    assert accents > 6 * mass.done or mass.done < mass.total


def gone_through(elements: list[Element], tree: Tree) -> tuple[dict[Path, list[Affine]], bool]:
    """What an item, given in canonical values, goes through: its unit changes by path, and whether it may carry `p`."""
    alters: dict[Path, list[Affine]] = {}
    carries = False
    for element in elements:
        if isinstance(element, Accent) and fulfils(tree, items_of(element.where)):
            match element.evolution:
                case Alter(at, by):
                    alters.setdefault(at, []).append(by)
                    tree = altered(tree, at, by)
                case Add():
                    carries = True
                case Drop():
                    carries = False
    return alters, carries


def test_a_union_lets_out_what_all_inputs_have_in_common() -> None:
    """LAWS 4.2 d, item by item: the common prefix of the unit changes, and `p` as soon as one input may carry it.

    Less comes out where only a description of the altered path itself could say it (accents 3); not in these streams.
    """
    came = 0
    for seed in range(20):
        random = Random(seed)
        elements = stream(random, ["s", "t", "x"], 12, comes=True, goes=False)
        one: list[Element] = [each for each in elements if isinstance(each, Accent)]
        other: list[Element] = []
        for each in (*(each for each in one if random.random() < 0.8), alter("t", ". + 1")):
            other += [each] if faults([*other, each]) == [] else []
        out = run(Apply(Union(), (StreamSource("a"), StreamSource("b"))), merged(random, {"a": one, "b": other}))
        for _ in range(20):
            tree = item(f"s={random.randint(1, 3)} t={random.randint(0, 30)} x={random.randint(0, 30)}").tree
            (mine, p), (theirs, q), (found, r) = (gone_through(each, tree) for each in (one, other, out))
            assert r == (p or q), seed
            for at in {*mine, *found}:
                both = list(zip(mine.get(at, []), theirs.get(at, []), strict=False))
                common = [a for a, _ in takewhile(lambda pair: pair[0] == pair[1], both)]
                assert found.get(at, []) == common, (seed, at)
                came += len(common)
    assert came > 50
