"""The commuting square of the accents paper, figure 3: canonical(query(S)) = query(canonical(S)) (LAWS 4.1)."""

from __future__ import annotations

from collections import Counter
from itertools import takewhile
from random import Random

import pytest

from algebra.accented import alter, item, show
from algebra.evolving import Planner, faults, keeps_state, merged, stream
from anabranch.algebra.accents.canonical import canonical
from anabranch.algebra.accents.items import altered, spelled
from anabranch.algebra.accents.sets import fulfils, items_of
from anabranch.algebra.interpret import Apply, Element, Source, run
from anabranch.algebra.union import Union
from anabranch.stream.affine import Affine
from anabranch.stream.elements import Accent, Add, Alter, Drop, Item
from anabranch.stream.path import Path
from anabranch.stream.tree import Element as Tree


def items(elements: list[Element]) -> list[Item]:
    """The items of the canonical stream, in their order."""
    return [each for each in canonical(elements) if isinstance(each, Item)]


def square(seed: int, operators: list[str] | None = None, length: int = 9) -> tuple[Counter[str], Counter[str], int]:
    """Both ways round for one random plan over random streams; the items, and how many accents came out.

    What comes out is a valid stream, too.
    """
    random = Random(seed)
    planner = Planner(random)
    for _ in range(random.randint(1, 5)) if operators is None else range(len(operators)):
        planner.grow(random.choice(planner.possible()) if operators is None else operators.pop(0))
    goes = not keeps_state(planner)
    streams = {
        "a": stream(random, ["s", "t", "x"], length, comes=True, goes=goes),
        "a2": stream(random, ["s", "t", "x"], length, comes=True, goes=goes),
        "b": stream(random, ["s", "y"], 8, comes=False, goes=False),
    }
    order = merged(random, streams)
    out = run(planner.plan, order, spelling=spelled)
    assert faults(out) == [], seed
    across = Counter(map(show, items(out)))
    plain = {name: iter(items(elements)) for name, elements in streams.items()}
    fed = [(name, next(plain[name])) for name, each in order if isinstance(each, Item)]
    down = Counter(map(show, run(planner.plan, fed, spelling=spelled)))
    return across, down, sum(isinstance(each, Accent) for each in out)


@pytest.mark.parametrize("operator", ["select", "project", "union", "intersect", "join", "window", "aggregate"])
def test_each_operator_commutes_with_canonisation(operator: str) -> None:
    """Each operator alone, over random accented streams; some accents come out, so the square is not an empty one."""
    accents = 0
    for seed in range(16):
        across, down, came = square(seed, [operator])
        assert across == down, seed
        accents += came
    assert accents > 10


def test_pipelines_commute_with_canonisation() -> None:
    """Random plans of up to 5 operators."""
    for seed in range(60):
        across, down, _ = square(seed)
        assert across == down, seed


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
        other: list[Element] = [*(each for each in one if random.random() < 0.8), alter("t", ". + 1")]
        out = run(Apply(Union(), (Source("a"), Source("b"))), merged(random, {"a": one, "b": other}))
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
