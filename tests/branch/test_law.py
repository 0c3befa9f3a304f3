"""Branches against the law: however the inputs are cut into feeds and epochs, nothing shows (LAWS 1.2)."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest

from branch.feeding import Question, Stream, spiced
from mass import some
from oracle.generate import case


def question(family: str, number: int, random: Random) -> Question:
    """A generated query; streams with a declared time have up to three partitions."""
    generated = case(family, number)
    timed = generated.timed if family == "joins" else random.random() < 0.5
    endless = number % 2 == 0
    streams = []
    for name, text in generated.inputs.items():
        partitions = random.choice((1, 1, 2, 3)) if timed else 1
        streams.append(
            Stream(
                name,
                spiced(random, text),
                [random.randrange(partitions) for _ in range(40)],
                partitions,
                time="t" if timed else None,
                slack=Fraction(random.choice((0, 0, 0, 3))),
                origin=Fraction(random.choice((0, 0, 2))),
                late=random.random() < 0.15,
                endless=endless,
            )
        )
    documents = {"d": generated.inputs["d"]} if family == "items" else {}
    return Question(generated.query, [each for each in streams if each.name not in documents], documents)


@pytest.mark.parametrize(("family", "first", "last"), [("items", 0, 25), ("windows", 0, 30), ("joins", 0, 30)])
def test_any_cut_gives_the_answer_of_the_law(family: str, first: int, last: int) -> None:
    """Answers, dead letters and late items are those of the reference, with a state written and read between epochs."""
    kinds = set()
    for number in some(range(first, last)):
        random = Random(f"{family} {number}")
        asked = question(family, number, random)
        if not asked.standing.streams:
            continue  # it reads a document only, and no branch is opened for it
        kinds.add(asked.standing.kind)
        law = asked.law()
        taken = asked.run(random, epochs=random.choice((1, 2, 4)))
        label = f"{family} {number}: {asked.text}"
        assert asked.answer(taken) == law.text, label
        assert sorted(each.to_json() for each in taken.dead) == sorted(each.to_json() for each in law.dead), label
        assert sorted(map(str, taken.places)) == sorted(map(str, law.late)), label
    assert kinds >= {"items": {"items"}, "windows": {"windows"}, "joins": {"step join", "interval join"}}[family]
