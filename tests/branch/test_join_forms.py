"""Step joins of all forms in columns: of one stream with itself, of three, with what expressions compile, over JSON."""

from __future__ import annotations

import json
from fractions import Fraction
from random import Random

import pytest

from anabranch.runtime.units import Units
from branch.feeding import Question, Stream
from branch.looks import USUAL, stream
from mass import Mass, some

NAMES = "xyz"
SHAPES = ["ab", "ba", "aa", "aa", "abc", "cab", "aab", "aba", "aaa"]
"""The streams of the `for`s, in their order."""
WINDOWS = [
    *("t diff 6", "t diff 3 step 5", "t diff 5 step 0.5", "t diff 4 step 2"),
    *("count 3", "count 5 step 2", "count 2 step 3"),
]
PREDICATES = ["", "", "", "[en > 1]", "[m/n = 'a' or en * 2 <= 3]", "[starts-with(m/n, '1')]"]
CONDITIONS = [
    "", "", "where ${0}/en >= ${1}/en + 0.5", "where ${0}/m/n = ${1}/m/n", "where ${0}/en > ${1}/m/phc div 4",
    "where contains(${0}/m/n, ${1}/m/n) and ${0}/t <= ${1}/t", "where ${0}/en + ${1}/en > 2 or ${0}/m/phc < 3",
    "where not(${0}/m/n != ${1}/m/n) and ${1}/en < 2", "where concat(${0}/m/n, ${1}/m/n) = 'ab'",
    "let $k := ${0}/en * ${1}/en where $k > 1", "let $k := ${0}/m where $k/phc >= ${1}/m/phc",
    "where string-length(${0}/m/n) < ${1}/m/phc mod 4", "where ${0}/en = ${1}/en + 0", "where ${0}/en < ${1}/en",
    "where (if (${0}/en > 1) then ${1}/en else ${1}/m/phc) > 1", "where exists(${0}/none) or ${0}/m/phc != ${1}/m/phc",
    "where ${0}/en <= ${1}/en and ${0}/m/n = ${1}/m/n",
]  # fmt: skip
RESULTS = [
    "<r>{{ ${0}/en }} {{ ${1}/t }}</r>", "(${1}, ${0}/m)",
    "<r a='{{ ${0}/t }}:{{ ${1}/en * 2 }}'>!{{ ${0}/m/n/text() }}</r>",
    "<r>{{ ${0}/en + ${1}/en }}</r>", "<r><d>{{ ${0}/t - ${1}/t }}</d>{{ ${1}/m/n }}</r>",
    "<r>{{ ${0}/m/n/text(), ${1}/none }}</r>", "<r>{{ if (${0}/en > ${1}/en) then ${0}/m else () }}</r>",
    "if (${0}/en > ${1}/en) then <more>{{ ${0}/en }}</more> else (${1}/t, <less/>)",
    "<r>{{ concat(${0}/m/n, '-', ${1}/m/n), ${1}/t }}</r>", "${0}/none", "<r>{{ (${0}, ${1})/t }}</r>", "<e/>",
]  # fmt: skip


def question(random: Random) -> Question:
    """A join of some streams, over items of the usual look and others."""
    shape = random.choice(SHAPES)
    fors = [
        f'for ${name} in stream("{each}")/r/p{random.choice(PREDICATES)}|{random.choice(WINDOWS)}|'
        for name, each in zip(NAMES, shape, strict=False)
    ]
    names = [random.sample(NAMES[: len(shape)], 2) for _ in range(2)]
    condition, result = random.choice(CONDITIONS).format(*names[0]), random.choice(RESULTS).format(*names[1])
    query = f"{' '.join(fors)} {condition} return {result}"
    timed = random.random() < 0.8
    items = 60 if len(shape) == 2 else 22
    make = json_stream if random.random() < 0.3 else stream
    streams = [make(random, name, timed=timed, items=items) for name in sorted(set(shape))]
    return Question(f"<o>{{ {query} }}</o>", streams)


def json_stream(random: Random, name: str, *, timed: bool, items: int) -> Stream:
    """Lines of JSON, some of them with other keys, types or texts."""
    slack, back = random.choice(((0, 0), (0, 1.5), (2, 3)))
    t = 0.0
    found: list[str] = []
    for _ in range(random.randrange(items)):
        t += random.choice((0, 0.1, 1, 2.25))
        value = round(t - random.random() * back if random.random() < 0.3 else t, 1)
        item: dict[str, object] = {
            "t": value,
            "en": random.randrange(25) / 10,
            "m": {"phc": random.randrange(20), "n": random.choice(("a", "b", "1.0", "<&"))},
        }
        if random.random() < 0.1:
            item = dict(reversed(item.items()))
        if random.random() < 0.1:
            item["en"] = random.choice(("many", None, True, [1, 2], "0.50"))
        if random.random() < 0.05:
            del item[random.choice(("t", "en", "m"))]
        found.append(json.dumps(item) if random.random() < 0.97 else "{no")
    text = "".join(f"{line}\n" for line in found)
    about = Fraction(slack), Fraction(0)
    return Stream(name, text, (), 1, "t" if timed else None, *about, late=random.random() < 0.1, form="json", item="p")


def check_against_law(seed: int) -> tuple[Question, int]:
    """One case; how many pieces came of columns."""
    random = Random(f"join forms {seed}")
    asked = question(random)
    law = asked.law()
    taken = asked.run(random, epochs=random.choice((1, 2, 4)))
    label = f"{seed}: {asked.text}"
    assert asked.answer(taken) == law.text, label
    assert sorted(each.to_json() for each in taken.dead) == sorted(each.to_json() for each in law.dead), label
    assert sorted(map(str, taken.places)) == sorted(map(str, law.late)), label
    return asked, taken.at_once


def test_joins_of_all_forms_give_the_answer_of_the_law(mass: Mass) -> None:
    """Answers, dead letters and late items, with the inputs cut into feeds and epochs at random."""
    at_once = [check_against_law(seed)[1] > 0 for seed in mass.cases(2_000)]
    assert sum(at_once) > len(at_once) / 4 or mass.done < mass.total


@pytest.mark.parametrize("seed", some(range(25)))
def test_some_joins_give_the_answer_of_the_law(seed: int) -> None:
    """The same for a few."""
    check_against_law(seed)


WHOLE = {
    "itself": (
        'for $x in stream("a")/r/p|t diff 2 step 1| for $y in stream("a")/r/p|t diff 4 step 2| '
        "where $x/en > $y/en + 0.5 return <r>{ $x/t }{ $y/t }</r>"
    ),
    "three": (
        'for $x in stream("a")/r/p|t diff 2| for $y in stream("b")/r/p|t diff 2 step 1| '
        'for $z in stream("a")/r/p|t diff 1| '
        "where $x/en = $y/en + 0.1 and $y/m/n = $z/m/n return <r>{ $x/t - $z/t }{ $y/t }</r>"
    ),
    "counts": (
        'for $x in stream("a")/r/p|count 4 step 2| for $y in stream("b")/r/p[en > 1]|t diff 2| '
        "let $sum := $x/en + $y/en where $sum > 3 return <r s='{ $sum }'>{ concat($x/m/n, $y/m/n) }</r>"
    ),
    "functions": (
        'for $x in stream("a")/r/p|t diff 3| for $y in stream("b")/r/p|t diff 3| '
        "where contains($x/m/n, $y/m/n) and string-length($y/m/n) > 0 "
        "return <r>{ if ($x/en > $y/en) then $x/m else <less>{ $y/en - $x/en }</less> }</r>"
    ),
}


@pytest.mark.mass
@pytest.mark.parametrize("name", sorted(WHOLE))
def test_items_of_the_usual_look_are_never_looked_at_one_by_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over several epochs no item is shown to the law, and no tuple."""
    random = Random(name)
    streams = [
        Stream(each, f"<r>{''.join(_usual(random, number) for number in range(90))}</r>", time="t") for each in "ab"
    ]
    asked = Question(WHOLE[name], [each for each in streams if f'"{each.name}"' in WHOLE[name]])
    law = asked.law()
    monkeypatch.delattr(Units, "candidates")
    monkeypatch.delattr(Units, "tuple")
    taken = asked.run(random, epochs=3)
    assert asked.answer(taken) == law.text
    assert taken.at_once == law.text.count("<r>") + law.text.count("<r s") > 50


def _usual(random: Random, number: int) -> str:
    return USUAL.format(
        t=number / 4, en=random.randrange(10, 30) / 10, phc=random.randrange(9), n=random.choice(("a", "ab", "b"))
    )
