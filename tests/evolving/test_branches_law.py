"""Branches over random accented streams: canonical(answer) = query(canonical(input)), and no split shows (LAWS 4.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest

from algebra import evolving as algebra_evolving
from algebra.accented import HERE
from algebra.evolving import stream
from anabranch.algebra.accents.events import judged
from anabranch.algebra.accents.evolution import Evolution
from anabranch.branch.ports import Start
from anabranch.runtime.evolution.views import views
from anabranch.stream.elements import Accent, Item, Punctuation, StreamElement
from anabranch.stream.reading.wire import write
from branch.feeding import Stream
from evolving.branching import At, Together, run
from evolving.judging import across, law
from evolving.outlets import Asked
from evolving.questions import OF_WINDOWS, Kind, question, timed
from evolving.square import EXACT
from mass import some


def mixed(random: Random, streams: Sequence[Sequence[tuple[str, StreamElement, int]]]) -> list[At]:
    """What inputs bring, in any order between them."""
    left = [list(each) for each in streams]
    found: list[At] = []
    while rest := [each for each in left if each]:
        stream_, element, partition = random.choice(rest).pop(0)
        found.append((stream_, write(element), partition))
    return found


def accents(asked: Together) -> list[str]:
    return [each for each in asked.takens[0].pieces if each.startswith("<s:accent")]


CASES: dict[Kind, range] = {
    "items": range(7, 10), "windows": range(20, 24), "groups": range(12),
    "joins": range(2), "interval": range(15, 17), "keyed": range(8), "sets": range(10), "whole": range(3),
}  # fmt: skip
"""Some of which accents come out; more of them were tried by hand."""


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.mass
def test_the_square(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random queries over random streams of one or two partitions, with epochs that end anywhere."""
    monkeypatch.setattr(algebra_evolving, "MAPS", EXACT)
    came = sum(case(seed, kind) for seed in CASES[kind])
    assert (came > 0) == (kind != "whole")


def case(seed: int, kind: Kind) -> int:
    """One query, both ways round; how many accents came out."""
    random = Random(f"{kind} {seed}")
    query = question(random, kind)
    partitions = random.choice((1, 1, 2))
    names = [each for each in ("a", "b") if f'stream("{each}")' in query]
    inputs = {
        name: [
            timed(random, stream(random, ["s", "t", "x"], 10, comes=True, goes=kind in ("items", "sets")))
            for _ in range(partitions)
        ]
        for name in names
    }
    sequences = [[(name, each, number) for each in part] for name in names for number, part in enumerate(inputs[name])]
    given = mixed(random, sequences)
    is_timed = partitions > 1 or len(names) > 1
    time = "ts" if is_timed else None
    endless = kind in ("interval", "keyed")
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
    found = across("".join(one.takens[0].pieces))
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
    assert sum(late_case(seed) for seed in some(range(5))) > 0


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
    inputs = {"a": replace(Stream("a").for_branch(), starts=lambda: [begun])}
    rest: list[At] = [write(each) for each in elements[middle:]]
    found = [run([query], rest, inputs=inputs, cuts=cuts) for cuts in ((), range(len(rest)))]
    found.append(run([query], [*accents_shown, *rest]))
    one, *others = ("".join(each.takens[0].pieces) for each in found)
    assert others == [one, one], (seed, query)
    return len(accents_shown)
