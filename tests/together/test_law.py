"""LAWS 3.7: sharing changes nothing but the cost.

Crowds of queries come and go on one trunk.
What each is given is what a trunk gives it that has nobody else, to the byte, and what a trunk gives that shares
nothing; the reference and Saxon say the same, wherever they can say it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

from anabranch.language import parse
from anabranch.runtime.standing import standing
from mass import Mass
from oracle.saxon import canonical, judge
from spark.law import law_of
from together.crowds import Crowd, Life, Run

CROWDS = [(True, 4, 40), (False, 3, 20), (False, 4, 30)]
"""Whether their streams end, a seed, and how many there are."""


def test_sharing_shows_in_no_answer(tmp_path: Path, mass: Mass) -> None:
    """Answers, dead letters and late items of a crowd are those that its members would have had alone."""
    for case in mass.cases(len(CROWDS)):
        finite, number, size = CROWDS[case]
        differences, judged = compare(tmp_path / str(case), Crowd.of(number, finite=finite, size=size), number)
        assert not differences, f"{len(differences)} differences, the shortest:\n{min(differences, key=len)}"
        assert judged


def compare(folder: Path, crowd: Crowd, seed: int) -> tuple[list[str], int]:
    """All that differs, and how many answers were judged by others than trunks."""
    shared = crowd.run(folder / "shared", crowd.lives, Random(seed))
    apart = crowd.run(folder / "apart", crowd.lives, Random(seed + 1), sharing=False)
    known: dict[tuple[str, int, int], Run] = {}
    differences: list[str] = []
    judged = 0
    for number, life in enumerate(crowd.lives):
        key = life.text, life.first, life.last
        if key not in known:
            known[key] = crowd.run(folder / f"alone-{number}", [life])
            for judge, verdict in verdicts(folder / f"law-{number}", crowd, life, known[key]):
                judged += 1
                differences += [] if verdict else [f"the {judge} says otherwise: {life}, {crowd.look}"]
        (alone,) = known[key].given.values()
        for name, run in (("shared", shared), ("apart", apart)):
            if run.given[life] != alone:
                differences.append(f"{name}: {life}, {crowd.look}\n{name}: {run.given[life]}\nalone: {alone}")
    late = {place for run in known.values() for place in run.late}
    bad = {letter for run in known.values() for letter in run.bad}
    for name, run in (("shared", shared), ("apart", apart)):
        if run.late != late or run.bad.keys() != bad:
            differences.append(f"late or bad items, {name}: {run.late ^ late}, {run.bad.keys() ^ bad}")
    return differences, judged


def verdicts(folder: Path, crowd: Crowd, life: Life, run: Run) -> Iterator[tuple[str, bool]]:
    """Whether those judges agree that have a say, by name."""
    look, (given,) = crowd.look, run.given.values()
    kind, streams = standing(life.query).kind, standing(life.query).streams
    to_the_end = life.last == look.phases - 1
    # what came at several moments and has no time is not in the order of the whole
    in_order = look.timed or life.first == life.last or look.partitions == len(streams) == 1
    if given.answer is None:
        return
    if to_the_end and in_order:
        folder.mkdir()
        seen = [each.seen(folder, life.first) for each in crowd.streams]
        late = {each.name for each in crowd.streams if each.begun(life.first)}
        law = law_of(life.query, seen, endless=not look.finite, late=late)
        dead = Counter(replace(each, subscription=None) for each in law.dead.elements() if each.subscription)
        yield "reference", (law.text, dead, law.late) == (given.answer, given.dead, run.late)
    # the last windows close by punctuations here and by an end there, which may come to another order in joins
    by_slice = look.finite or kind == "items" or (kind == "windows" and (" diff " not in life.text or life.first == 0))
    by_prefix = look.partitions == 1 and " diff " not in life.text
    if look.plain and in_order and by_slice and (to_the_end or by_prefix):
        documents: dict[str, str] = {}
        for stream in crowd.streams:
            documents |= stream.documents(life.first, life.last)
        times = dict.fromkeys(documents, "t") if look.timed else None
        yield "Saxon", judge(parse(life.text), documents, times) == canonical(given.answer)
