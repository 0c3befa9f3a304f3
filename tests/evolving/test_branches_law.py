"""Branches over random accented streams: canonical(answer) = query(canonical(input)), and no split shows (LAWS 4.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest

from algebra import evolving as algebra_evolving
from algebra.accented import HERE, alter
from algebra.evolving import faults, stream
from anabranch.algebra.accents.canonical import canonical
from anabranch.algebra.accents.evolution import Evolution
from anabranch.algebra.accents.items import number
from anabranch.algebra.accents.passing import judged
from anabranch.branch.ports import Start
from anabranch.reference import Input, evaluate
from anabranch.reference.evolving.views import views
from anabranch.reference.inputs import stream_input
from anabranch.reference.sequences import Value, atomize
from anabranch.reference.values import spell
from anabranch.stream.affine import IDENTITY
from anabranch.stream.affine import parse as parse_map
from anabranch.stream.elements import Accent, Item, Punctuation, StreamElement
from anabranch.stream.limits import Limits
from anabranch.stream.parse import parse_item, parse_root
from anabranch.stream.path import Path
from anabranch.stream.serialize import serialize
from anabranch.stream.tree import Attribute, Element, Name, Text, copy, descendants, renumber
from anabranch.stream.wire import element_of, write
from branch.feeding import Stream
from evolving.branching import At, Together, run
from evolving.outlets import Asked, checked
from evolving.square import EXACT, item_query

TIME = Path.parse("ts")
WINDOWS = ("ts diff 7", "ts diff 10 step 5", "ts diff 4 step 6", "count 3", "count 2 step 1", "t diff 12")
OF_WINDOWS = (
    "<w>{$w/t}</w>", "<w><a>{avg($w/t)}</a><m>{max($w/x)}</m></w>", "<w>{sum($w/x)}</w>", "<w>{count($w)}</w>",
    "<w>{for $i in $w where $i/t > 10 return $i/x}</w>", "$w", "for $i in $w return <o>{$i/t}{$i/s}</o>",
    "<w n='{min($w/t)}'>{$w/c}</w>", "<w>{$w[s = 1]/p}</w>", "avg($w/t)", "if (avg($w/t) > 12) then $w/x else <no/>",
    "for $i in $w order by $i/t return <o>{$i/t * 2 - 1}</o>",
)  # fmt: skip
OF_TUPLES = (
    "<o>{$x/t}{$y/x}</o>", "<o>{$x}</o>", "<o><d>{$x/t - $y/t}</d>{$y/s}</o>", "($x/t, $y/t)",
    "<o a='{$x/s}'><f>{$y/x * 3}</f></o>",
)  # fmt: skip
ON = ("$x/s = $y/s", "$x/t <= $y/t", "$x/x > 10 and $x/s = $y/s", "$x/t = $y/x or $x/s != $y/s")
WHOLE = (
    'for $p in stream("a")/r/i order by $p/t, $p/x return <o>{$p/t}</o>', '<n>{sum(stream("a")/r/i/t)}</n>',
    'for $w in stream("a")/r/i |ts diff 7| order by avg($w/x) descending return <w>{$w/t}</w>',
)  # fmt: skip


def question(random: Random, kind: str) -> str:
    """A random query."""
    match kind:
        case "items":
            return item_query(random)
        case "windows":
            where = random.choice(("", "", "where avg($w/x) > 8 ", "where count($w) > 1 "))
            return f'for $w in stream("a")/r/i |{random.choice(WINDOWS)}| {where}return {random.choice(OF_WINDOWS)}'
        case "joins":
            x, y = random.sample(WINDOWS[:5], 2)
            other = random.choice(("b", "b", "a"))
            fors = f'for $x in stream("a")/r/i |{x}| for $y in stream("{other}")/r/i |{y}| '
            return f"{fors}where {random.choice(ON)} return {random.choice(OF_TUPLES)}"
        case "interval":
            apart = "$x/ts >= $y/ts - 3 and $x/ts <= $y/ts + 2"
            where = random.choice(("", f"({random.choice(ON)}) and "))
            fors = 'for $x in stream("a")/r/i for $y in stream("b")/r/i '
            return f"{fors}where {where}{apart} return {random.choice(OF_TUPLES)}"
        case _:
            return random.choice(WHOLE)


def timed(random: Random, elements: Sequence[StreamElement]) -> list[StreamElement]:
    """The stream with times that rise, and now and then change their unit."""
    now, by = random.randint(0, 3), IDENTITY
    found: list[StreamElement] = []
    for each in elements:
        if random.random() < 0.05:
            change = random.choice((". * 2", ". + 10"))
            found.append(alter("ts", change))
            by = by.then(parse_map(change))
        if isinstance(each, Item):
            now += random.choice((0, 1, 2, 5))
            tree = copy(each.tree)
            assert isinstance(tree, Element)
            inner = Element(Name("ts"))
            inner.append(Text(str(by(Fraction(now)))))
            tree.append(inner)
            each = replace(each, tree=tree)
        found.append(each)
    return found


def mixed(random: Random, streams: Sequence[Sequence[tuple[str, StreamElement, int]]]) -> list[At]:
    """What inputs bring, in any order between them."""
    left = [list(each) for each in streams]
    found: list[At] = []
    while rest := [each for each in left if each]:
        stream_, element, partition = random.choice(rest).pop(0)
        found.append((stream_, write(element), partition))
    return found


# --- comparing --------------------------------------------------------------------------------------------


def plain(value: Value) -> str:
    """A value or an output item, with numbers written in one way; what a piece rounds is not held against it."""
    if not isinstance(value, Element | Text):
        return _number(str(value))
    fresh = copy(value)
    for each in (fresh, *(descendants(fresh) if isinstance(fresh, Element) else ())):
        for leaf in each.attributes if isinstance(each, Element) else (each,):
            if isinstance(leaf, Text | Attribute):
                leaf.value = _number(leaf.value)
    return serialize(fresh)


def _together(texts: Sequence[str]) -> list[str]:
    """Texts outside of elements; where one ends and the next begins cannot be seen."""
    return ["".join(texts).replace(" ", "")]


def _number(text: str) -> str:
    known = number(text)
    return text if known is None else f"{float(known):.9g}"


def law(query: str, inputs: dict[str, list[list[StreamElement]]], *, is_timed: bool, endless: bool) -> list[str]:
    """What the query answers over the canonical items, which are found by walking (`accents/canonical.py`)."""
    given: dict[str, Input] = {}
    for name, partitions in inputs.items():
        elements = [[each for each in canonical(part) if not isinstance(each, Accent)] for part in partitions]
        for each in (each for part in elements for each in part if isinstance(each, Item)):
            renumber(each.tree)  # those that have walked are copies
        time = TIME if is_timed else None
        given[name] = stream_input(parse_root(b"<r>"), elements, time=time, endless=endless)[0]
    values = evaluate(checked(query), given).values
    others = atomize([each for each in values if not isinstance(each, Element)])
    return [*(plain(each) for each in values if isinstance(each, Element)), *_together(list(map(spell, others)))]


def across(asked: Together) -> list[str]:
    """The canonical form of an answer, which is a valid stream."""
    elements: list[StreamElement] = []
    marks: list[str] = []
    for piece in asked.takens[0].pieces:
        for child in parse_item(f"<all>{piece}</all>".encode(), Limits()).children:
            if isinstance(child, Text):
                marks.append(child.value)
                continue
            tree = copy(child)
            assert isinstance(tree, Element)
            elements.append(element_of(tree, HERE))
    assert faults(elements, Evolution()) == []
    return [plain(each.tree) for each in canonical(elements) if isinstance(each, Item)] + _together(marks)


def accents(asked: Together) -> list[str]:
    return [each for each in asked.takens[0].pieces if each.startswith("<s:accent")]


CASES = {
    "items": range(7, 12), "windows": range(20, 27), "joins": range(3), "interval": range(15, 17), "whole": range(6),
}  # fmt: skip
"""Some of which accents come out; more of them were tried by hand."""


@pytest.mark.parametrize("kind", CASES)
def test_the_square(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random queries over random streams of one or two partitions, with epochs that end anywhere."""
    monkeypatch.setattr(algebra_evolving, "MAPS", EXACT)
    came = sum(case(seed, kind) for seed in CASES[kind])
    assert (came > 0) == (kind != "whole")


def case(seed: int, kind: str) -> int:
    """One query, both ways round; how many accents came out."""
    random = Random(f"{kind} {seed}")
    query = question(random, kind)
    partitions = random.choice((1, 1, 2))
    names = [each for each in ("a", "b") if f'stream("{each}")' in query]
    inputs = {
        name: [
            timed(random, stream(random, ["s", "t", "x"], 10, comes=True, goes=kind == "items"))
            for _ in range(partitions)
        ]
        for name in names
    }
    sequences = [[(name, each, number) for each in part] for name in names for number, part in enumerate(inputs[name])]
    given = mixed(random, sequences)
    is_timed = partitions > 1 or len(names) > 1
    time = "ts" if is_timed else None
    endless = kind == "interval"
    splits = [(), range(len(given)), sorted(random.sample(range(len(given)), len(given) // 3))]
    one, *others = (
        run([query], given, cuts=each, partitions=partitions, time=time, endless=endless) for each in splits
    )
    label = seed, query
    for other in others:
        assert "".join(other.takens[0].pieces) == "".join(one.takens[0].pieces), label
        assert other.ended == one.ended, label
    if one.ended:
        return 0
    expected = law(query, inputs, is_timed=is_timed, endless=endless)
    found = across(one)
    assert sorted(found) == sorted(expected), label
    if len(sequences) == 1:
        beside = Asked(query)
        for element in inputs["a"][0]:
            assert isinstance(element, Item | Accent | Punctuation)
            beside.feed("a", element)
        assert accents(one) == [write(each) for each in beside.answer if isinstance(each, Accent)], label
    return len(accents(one))


def test_late_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """LAWS 3.6: who comes late answers as if the stream began there, with the accents in force for a part in front."""
    monkeypatch.setattr(algebra_evolving, "MAPS", EXACT)
    assert sum(late_case(seed) for seed in range(5)) > 0


def late_case(seed: int) -> int:
    """One query that begins in the middle of a stream; how many accents it was shown."""
    random = Random(f"late {seed}")
    query = f'for $w in stream("a")/r/i |count {random.randint(1, 3)}| return {random.choice(OF_WINDOWS)}'
    elements = timed(random, stream(random, ["s", "t", "x"], 16, comes=True, goes=False))
    middle = random.randrange(3, len(elements))
    evolution = Evolution()
    for each in elements[:middle]:
        judged(each, evolution)
    (view,) = views([evolution], [HERE])
    accents_shown = [each for each in view.accents if isinstance(each, Accent)]
    begun = Start(view.evolution, tuple(accents_shown))
    inputs = {"a": replace(Stream("a").for_branch(), starts=lambda: [replace(begun, evolution=begun.evolution.copy())])}
    rest: list[At] = [write(each) for each in elements[middle:]]
    found = [run([query], rest, inputs=inputs, cuts=cuts) for cuts in ((), range(len(rest)))]
    found.append(run([query], [*accents_shown, *rest]))
    one, *others = ("".join(each.takens[0].pieces) for each in found)
    assert others == [one, one], (seed, query)
    return len(accents_shown)
