"""Step joins in columns: which way an item takes never shows, whatever comes between those of the usual look."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from random import Random

import pytest

from anabranch.branch import joining
from anabranch.stream.photons import photons
from branch.feeding import Flow, Question, Stream
from papers import SHARING

USUAL = "<p><t>{t}</t><en>{en}</en><m><phc>{phc}</phc><n>{n}</n></m></p>"
ODD = [
    "<p><t>{t}</t><m><phc>{phc}</phc><n>{n}</n></m><en>{en}</en></p>",  # other order
    "<p><t>{t}</t><en>{en}</en><en>{phc}</en><m><phc>{phc}</phc><n>{n}</n></m></p>",
    "<p><t>{t}</t><m><phc>{phc}</phc></m></p>",
    "<p><t>{t}</t><t>{en}</t><en>{en}</en><m><phc>{phc}</phc><n>{n}</n></m></p>",  # two references
    "<p><en>{en}</en><m><phc>{phc}</phc><n>{n}</n></m></p>",  # no reference, no time
    "<p><t>{n}</t><en>{en}</en><m><phc>{phc}</phc><n>{n}</n></m></p>",
    "<p><t>{t}</t><!-- c --><en>{en}</en><m><phc>{phc}</phc><n>{n}</n></m></p>",
    "<p><t>{t}</t><en>many</en><m><phc>{phc}</phc><n>{n}</n></m></p>",
    "<p><t>{t}</t><en>{en}0000000000000000001</en><m><phc>1e1</phc><n>{n}</n></m></p>",
    "<p><t>{t}0000000000000000001</t><en>{en}</en><m><phc>{phc}</phc><n>{n}</n></m></p>",
    "<q><t>{t}</t><en>{en}</en><m><phc>{phc}</phc><n>{n}</n></m></q>",
    '<p xmlns:s="urn:anabranch:stream" s:at="{t}"><t>{en}</t><en>{en}</en><m><phc>{phc}</phc><n>{n}</n></m></p>',
    '<s:punctuation xmlns:s="urn:anabranch:stream" where="t &lt; {t}"/>',
    '<s:punctuation xmlns:s="urn:anabranch:stream" at="{t}"/>',
    "<p><t>{t}</t><en>{en}</en><m><phc>{phc}</phc><n>&nope;</n></m></p>",  # bad
]
CONDITIONS = [
    "", "where $x/en >= $y/en + 0.5", "where $x/en >= $y/en", "where $x/m/phc > $y/m/phc * 2 - $x/en",
    "where $x/m/n = $y/m/n", "where $x/en < 2 and ($y/m/n != 'a' or $x/m/phc <= $y/m/phc)",
    "where not($x/en - $y/en > 0.1) and $x/t <= $y/t", "where $x/en", "where -$x/en < $y/en or $y/en > 1.5",
]  # fmt: skip
RESULTS = [
    "<r>{ $x/en } { $x/t }{ $y/en }{ $y/m/n/text() }</r>",
    "($x, $y/m)",
    "<r a='{ $x/t }:{ $y/t }'>!</r>",
    "$y/none",
]
WINDOWS = ["t diff 10", "t diff 3 step 5", "t diff 7.5 step 0.25", "/r/p/t diff 2 step 3", "t diff 20 step 10"]
PREDICATES = ["", "", "[en > 1]", "[m/n = 'a' or en <= 1.5]"]


def stream(random: Random, name: str, *, timed: bool) -> Stream:
    """Items of the usual look, other ones among them, in about the order of their values."""
    odd = random.choice((0, 0.02, 0.2, 1)) if random.random() < 0.6 else 0
    slack, back = random.choice(((0, 0), (0, 1.5), (2, 3)))
    t = random.randrange(10)
    items: list[str] = []
    for _ in range(random.randrange(60)):
        t += random.choice((0, 0.1, 0.3, 1, 2.25, 4)) if random.random() < 0.97 else 10 ** random.randrange(3, 7)
        shape = random.choice(ODD) if random.random() < odd else USUAL
        value = t - random.random() * back if random.random() < 0.3 else t
        texts = {
            "t": f"{value:.{random.choice((0, 1, 3))}f}",
            "en": f"{random.randrange(25) / 10}",
            "phc": random.randrange(20),
            "n": random.choice(("a", "b", "1.0", "1")),
        }
        items.append(shape.format(**texts))
    return Stream(
        name,
        f"<r>{' '.join(items)}</r>",
        time="t" if timed else None,
        slack=Fraction(slack),
        origin=Fraction(random.choice((0, 0, 2)) if random.random() < 0.3 else 0),
        late=random.random() < 0.1,
    )


def question(random: Random) -> Question:
    sides = [f'stream("{name}")/r/p{random.choice(PREDICATES)}|{random.choice(WINDOWS)}|' for name in "ab"]
    query = f"for $x in {sides[0]} for $y in {sides[1]} {random.choice(CONDITIONS)} return {random.choice(RESULTS)}"
    timed = random.random() < 0.8
    return Question(f"<o>{{ {query} }}</o>", [stream(random, name, timed=timed) for name in "ab"])


def check_against_law(seed: int) -> tuple[int, int]:
    """One case; how many pieces came of columns, and how many bytes they were all."""
    random = Random(f"join {seed}")
    asked = question(random)
    law = asked.law()
    taken = asked.run(random, epochs=random.choice((1, 2, 4)))
    label = f"{seed}: {asked.text}"
    assert asked.answer(taken) == law.text, label
    assert sorted(each.to_json() for each in taken.dead) == sorted(each.to_json() for each in law.dead), label
    assert sorted(map(str, taken.places)) == sorted(map(str, law.late)), label
    return taken.at_once, len(taken.pieces)


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_any_join_gives_the_answer_of_the_law(first: int) -> None:
    """Answers, dead letters and late items, with the inputs cut into feeds and epochs at random."""
    at_once = [check_against_law(seed)[0] for seed in range(first, first + 10)]
    assert sum(each > 0 for each in at_once) > 2
