"""Many accents: the work is that of the accent, not that of all before it.

What is counted are the questions asked of boxes of items, and the items held against them.
By hand, once: two inputs on which 10,000 sensors change their units one by one, through Union, Select, Window and
Aggregate; the last accents cost what the first did, below 1 ms each.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from algebra.accented import add, alter, closed, drop, item, path, show
from anabranch.algebra.accents.boxes import possible
from anabranch.algebra.accents.index import Box
from anabranch.algebra.accents.sets import fulfils
from anabranch.algebra.operators.join import Join
from anabranch.algebra.plans.builder import DerivedStream, stream
from anabranch.algebra.plans.interpret import Apply
from anabranch.algebra.reactions.course import Course
from anabranch.errors import Aborted
from anabranch.predicate import Domain, Finite, Predicate
from anabranch.stream.path import Path
from anabranch.stream.tree import Element as Tree
from mass import some
from models.interpreter import Element, Interpreter, leaving

A, B = stream("a"), stream("b")
PIPELINES: dict[str, DerivedStream] = {
    "select": A.select("t > 5"),
    "project": A.project("s", "ts", "t", "p"),
    "project, hidden": A.project("t", "p"),
    "window": A.window("t", size=10),
    "union": A.union(B),
    "union of unions": A.union(B).union(A.union(B)),
    "join": A.join(B, on="s"),
    "aggregate": A.aggregate(by=["s"], all="avg"),
    "aggregate, hidden": A.aggregate(by=["l"], all="avg"),
    "pipeline": A.union(B).select("t > 5").window("t", size=10).aggregate(by=["s", "wid"], all="avg"),
}
PATTERNS: dict[str, Callable[[int], list[Element]]] = {
    "alter": lambda k: [alter("t", ". * 2", f"s = {k}")],
    "there and back": lambda k: [alter("t", ". * 2", f"s = {k}"), alter("t", ". div 2", f"s = {k}")],
    "a life": lambda k: [add("p", f"s = {k}"), alter("p", ". * 2", f"s = {k}"), drop("p", f"s = {k}")],
    "names": lambda k: [alter("t", ". * 2", f"s = 'sensor {k}' and r = 'A'")],
    "stretches": lambda k: [alter("t", ". * 2", f"ts >= {k}0 and ts < {k}9")],
    "closed sensors": lambda k: [alter("t", ". * 2", f"s = {k}"), closed(f"s = {k}")],
}


def work(query: DerivedStream, pattern: str, many: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many questions it takes to let so many accents, and an item for each, through a query."""
    asked = 0

    def counting(box: Box) -> bool:
        nonlocal asked
        asked += 1
        return possible(box)

    def holding(tree: Tree, items: Predicate) -> bool:
        nonlocal asked
        asked += 1
        return fulfils(tree, items)

    monkeypatch.setattr("anabranch.algebra.accents.boxes.possible", counting)
    monkeypatch.setattr("anabranch.algebra.accents.boxes.possible", counting)
    monkeypatch.setattr("anabranch.algebra.accents.index.fulfils", holding)
    sensors: dict[Path, Domain] = {path("s"): Finite(frozenset(map(str, range(10, 10 + 2 * many))))}
    running = Interpreter(query.plan, domains=sensors if pattern == "alter" else {})
    sources = ("a",) if isinstance(query.plan, Apply) and isinstance(query.plan.operator, Join) else ("a", "b")
    for k in range(10, 10 + many):
        for each in PATTERNS[pattern](k):
            for source in sources:
                list(running.feed(source, each))
        list(running.feed("a", item(f"s={k + many} ts={k}5 t=8 l=1 r=A")))
    assert running.bad == []
    return asked


KNOWN = {("join", "closed sensors"), ("project, hidden", "a life"), ("aggregate, hidden", "a life")}
"""A join goes through the items that it remembers at every punctuation.

An add or drop that comes out for all items has to ask for all that was said of parts of them.
"""


@pytest.mark.parametrize(
    ("pipeline", "pattern"), some([pair for pair in product(PIPELINES, PATTERNS) if pair not in KNOWN])
)
def test_twice_the_accents_are_twice_the_work(pipeline: str, pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not four times: neither accents nor items meet all that is live."""
    small, large = (work(PIPELINES[pipeline], pattern, many, monkeypatch) for many in (8, 16))
    assert large <= 2.2 * small + 20


def test_a_thousand_times_to_and_fro() -> None:
    """What a sensor's unit changes come to is all that has to be kept where they pass, and its text is copied."""
    running = Interpreter(A.select("t > 5").project("s", "t").plan)
    for _ in range(500):
        for by in (". * 2 + 1", "(. - 1) div 2"):
            assert len(list(running.feed("a", alter("t", by, "s = 1")))) == 1
    assert all(len(each) == 1 for each in courses(running))
    [found] = running.feed("a", item("s=1 t=6.0"))
    assert show(leaving(found, 0, str)) == "s=1 t=6.0"
    list(running.feed("a", alter("x", ". * 2", "t > 5")))
    list(running.feed("a", alter("t", ". * 2", "s = 1")))
    list(running.feed("a", alter("t", ". * 2", "s = 1")))
    assert [len(each) for each in courses(running)][:2] == [3, 3]


def courses(query: Interpreter) -> list[Course]:
    """What the operators of a query know of their inputs and outputs."""
    return [
        course
        for operation in query._operations.values()
        for course in (*operation.reaction.inputs, operation.reaction.output)
    ]


def test_what_falls_into_too_many_parts_aborts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unit changes by paths that have nothing to do with each other make twice as many units each; there is an end."""
    monkeypatch.setattr("anabranch.algebra.reactions.tiling.MOST_TILES", 100)
    running = Interpreter(A.union(B).plan)
    crossing = [alter("t", f". + {number + 1}", f"x{number} = 1") for number in range(40)]
    with pytest.raises(Aborted, match="Union cannot follow this evolution: the described items fall into too many"):
        [each for accent in crossing for each in running.feed("a", accent)]
