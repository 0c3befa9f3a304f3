"""Families of queries over updates on a trunk: who comes and goes shows in no other answer, to the byte (LAWS 3.7)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random

import pytest

from anabranch.spark.answers.log import AnswerLog
from anabranch.stream.reading.source import Source
from anabranch.stream.tree import STREAM_NAMESPACE
from history.crowds import Bounding, asked
from history.hosting import replayed
from history.writing import Writer
from mass import Mass, some
from spark.bare import BareTrunk

S = f'xmlns:s="{STREAM_NAMESPACE}"'


def queries(random: Random, count: int) -> list[str]:
    """Queries over the stream `s`, most of them with constants."""
    found: list[str] = []
    while len(found) < count:
        writer = Bounding(random)
        text = writer.bounded() if random.random() < 0.8 else writer.any_query("s")
        found += [text] if asked(text) is not None else []
    return found


class Dated(Writer):
    """Writes elements with times of their own: that of their arrival is not the same twice."""

    def at(self, name: str, probability: float = 1) -> str:
        return super().at(name, 1)


class Crowded:
    """A stream that grows while queries over it come and go; with or without sharing."""

    def __init__(self, folder: Path, seed: int, *, sharing: bool) -> None:
        self.folder = folder / "in"
        self.folder.mkdir(parents=True)
        source = Source("s", self.folder, "lines", root="root", updates=True)
        self.trunk = BareTrunk(folder / "state", [source], Random(seed), finite=False, sharing=sharing)
        self.served: list[tuple[int, int]] = []
        """After each file: how many queries there are, and how many branches."""

    def add(self, number: int, lines: list[str], wanted: Mapping[str, str]) -> None:
        (self.folder / f"{number:03}").write_text("".join(f"{each}\n" for each in lines))
        self.trunk.run(wanted, (1_000_000,), (1, 2, 3))
        assert self.trunk.plan is not None
        alive = [each for each in self.trunk.plan.subscriptions if not each.aborted]
        self.served.append((len(alive), len({each.branch for each in alive})))


def answers(log: AnswerLog, names: list[str]) -> dict[str, str]:
    """All that was told to each subscription."""
    found = {name: log.subscription(name) for name in names}
    return {name: "".join(log.answer(each).pieces()) for name, each in found.items() if each is not None}


def check_coming_and_going(seed: int, folder: Path) -> int:
    """Queries come in crowds, some late, and some leave; gives how many shared a branch."""
    random = Random(seed)
    writer = Dated(random)
    files = [[_line(writer.between()) for _ in range(random.choice((3, 6)))] for _ in range(6)]
    texts = queries(random, 24)
    plans: list[dict[str, str]] = []
    known = {f"q{each}": text for each, text in enumerate(texts[:12])}
    for number in range(len(files)):
        if number in (2, 4):
            come = texts[6 * number : 6 * number + 6]
            known = {**known, **{f"q{number}-{each}": text for each, text in enumerate(come)}}
        known = {name: text for name, text in known.items() if not number or random.random() < 0.9}
        plans.append(known)
    together, apart = (Crowded(folder / str(each), seed, sharing=each) for each in (True, False))
    for each in (together, apart):
        for number, (lines, wanted) in enumerate(zip(files, plans, strict=True)):
            each.add(number, [line for line in lines if line], wanted)
            if each is together:
                for name in wanted:
                    moments = replayed(each.trunk.log, name)
                    assert each.trunk.answer(name) == (moments[-1][1] if moments else "")
    names = list(known)
    assert answers(together.trunk.log, names) == answers(apart.trunk.log, names)
    return sum(count - branches for count, branches in together.served)


def _line(element: str) -> str:
    """An element of a stream as a line of its own."""
    head, sep, rest = element.partition(">")
    empty = head.endswith("/")
    return f"{head.removesuffix('/')} {S}{'/' if empty else ''}{sep}{rest}" if element else ""


@pytest.mark.mass
@pytest.mark.parametrize("seed", some(range(10)))
def test_queries_come_and_go(seed: int, tmp_path: Path) -> None:
    """Whether histories are shared shows in no byte of an answer."""
    assert check_coming_and_going(seed, tmp_path) > 0


def test_very_many_come_and_go(mass: Mass, tmp_path: Path) -> None:
    """The same, very often."""
    for number in mass.cases(300):
        check_coming_and_going(1_000 + number, tmp_path / str(number))


def test_who_begins_late_has_no_earlier_version(tmp_path: Path) -> None:
    """Though others have it: their history is longer, and was there before (LAWS 3.6)."""
    stream = Crowded(tmp_path, 1, sharing=True)
    region = f'<a {S} s:at="1"><s:mutable id="1"><b>1</b></s:mutable></a>'
    changes = [f'<s:replace {S} target="1" at="{at}"><b>{at}</b></s:replace>' for at in range(2, 9)]
    loop = 'for $x in stream("s")/root/a where $x/b{} >= 0 return <r>{{ $x/b{} }}</r>'
    early = {f"early{each}": loop.format(f"#{each}", f"#{each}") for each in range(1, 4)}
    late = {f"late{each}": loop.format(f"#{each}", f"#{each}") for each in range(1, 4)}
    stream.add(1, [region, *changes[:4]], early)
    stream.add(2, [], {**early, **late})
    stream.add(3, changes[4:6], {**early, **late})
    assert [stream.trunk.answer(f"early{each}") for each in range(1, 4)] == [
        f"<r><b>{7 - n}</b></r>" for n in range(1, 4)
    ]
    assert [stream.trunk.answer(f"late{each}") for each in range(1, 4)] == ["<r><b>6</b></r>", "<r><b>5</b></r>", ""]
    assert stream.served[-1] == (6, 2)
