"""Many queries that compare times and long numbers: in columns, and each answered as by the law alone."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from random import Random
from unittest import mock

import pytest

from anabranch.columnar.items import learned_program
from anabranch.language import check, parse
from anabranch.spark.epoch import task
from anabranch.spark.epoch.job import Job, Outbox, Report
from anabranch.spark.intake.ranges import Range
from anabranch.stream.reading.source import Source
from columnar.test_crowds import _nothing_compiles, answered
from mass import Mass, some
from spark.bare import BareTrunk
from spark.law import law_of

_CLAUSES = [
    'where $p/ts >= xs:dateTime("{a}") and $p/ts < xs:dateTime("{b}")',
    'where xs:dateTime($p/ts) = xs:dateTime("{a}") or $p/n < 3',
    'where not(xs:dateTime("{a}") <= $p/ts)',
    'where $p/ts >= "{a}" and $p/ts < "{b}"',
    "where $p/ts < $p/until and $p/n >= {k}",
    "where not($p/until <= $p/ts) or $p/n = {k}",
    'where some $r in $p/r satisfies ($r/at >= xs:dateTime("{a}") and $r/at != xs:dateTime("{b}"))',
    "where some $r in $p/r satisfies $r/at > $p/ts",
    "where $p/big >= {x} and $p/big < {y}",
    "where $p/big = {x} or $p/n > {k}",
    "where $p/big != {x} and not($p/n > {k})",
    "where some $r in $p/r satisfies $r/big <= {x}",
    "where $p/big - {x} > {k}",
    "where $p/r[1]/big > {x} or $p/r[last()]/n = {k}",
    "where $p/r[position() <= 2]/n >= {k}",
    "where $p/r[2]/n < {k}",
    "where not($p/r[n > 2]/n < {k}) and (some $r in $p/r[position() > 1] satisfies ($r/n >= {k} and $r/n < 4))",
]
_TIMES = ["2026-03-01T10:00:00Z", "2026-03-01T11:00:00+01:00", "2026-03-01T10:00:00", "2026-03-01T09:59:59.999999999Z"]
_ODD = ["2026-03-01", "2026-03-01T24:00:00Z", " 2026-03-01T10:00:00Z ", "x", "12", "12026-03-01T10:00:00Z", "NaN", ""]
_BIG = 1_772_323_200_000_000_000


def _time(random: Random, odd: float) -> str:
    if random.random() < odd:
        return random.choice(_ODD)
    return random.choice([*_TIMES, f"2026-03-01T{random.randrange(24):02}:00:00.{random.randrange(1, 1_000)}Z"])


def _number(random: Random, odd: float) -> str:
    """A long integer, near to others; or a shorter one, or none."""
    if random.random() < odd:
        return random.choice(["1.5e18", "1772323200", "1e400", "none", "1772323200000000000.5", "-3"])
    exact = _BIG + random.choice([0, 0, 256, 1 << 40]) + random.randrange(-2, 3)
    return str(exact // random.choice([1, 1, 1_000, 10**6]))


def _queries(random: Random, count: int) -> dict[str, str]:
    clauses = random.sample(_CLAUSES, random.choice([1, 3, 5]))
    found: dict[str, str] = {}
    for number in range(count):
        constants = {name: _time(random, 0.05) for name in "ab"} | {name: _number(random, 0) for name in "xy"}
        clause = random.choice(clauses).format(**constants, k=random.randrange(5))
        found[f"q{number}"] = f'for $p in stream("s")/root/p {clause} return <a>{{ $p/id }}{{ $p/big }}</a>'
    return found


def _item(random: Random, number: int, odd: float) -> str:
    leaves = [("id", str(number)), ("ts", _time(random, odd)), ("until", _time(random, odd)), ("n", "3")]
    leaves += [("big", _number(random, odd))]
    rows = [
        f"<r><at>{_time(random, odd)}</at><big>{_number(random, odd)}</big><n>{random.randrange(5)}</n></r>"
        for _ in range(random.randrange(1, 4))
    ]
    kept = [each for each in leaves if random.random() > odd / 2]
    return f"<p>{''.join(f'<{name}>{value}</{name}>' for name, value in kept)}{''.join(rows)}</p>"


def check_times(number: int, folder: Path) -> None:
    """A few dozen queries over a few dozen items, in epochs of any size; of some, the numbers change their unit."""
    random = Random(number)
    odd = random.choice([0, 0.02, 0.3])
    lines = [_item(random, each, odd) for each in range(40)]
    changes = random.choice([0, 0, 1])
    for _ in range(changes):
        by = random.choice([". * 1000", ". + 1", ". div 1000", ". * 1000000"])
        alter = f'<s:alter path="{random.choice(["big", "n"])}" by="{by}"/>'
        lines.insert(random.randrange(5, 40), f'<s:accent xmlns:s="urn:anabranch:stream">{alter}</s:accent>')
    (folder / "in").mkdir()
    (folder / "in" / "a").write_text("".join(f"{line}\n" for line in lines))
    queries, source = _queries(random, random.choice([5, 30])), Source("s", folder / "in", "lines")
    found = answered(folder / "columns", source, queries, random)
    if changes:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(learned_program, "compiled_queries", _nothing_compiles)
            assert found == answered(folder / "law", source, queries, random), number
        return
    for name, text in queries.items():
        law = law_of(check(parse(text), text, inputs={"s": None}).query, [source], endless=False, name=name)
        assert found.texts[name] == law.text, (number, text)
        dead = Counter(each for each in found.dead.elements() if each.subscription in (None, name))
        assert dead == law.dead, (number, text)


def test_some_times() -> None:
    """The same each time."""
    for number in some(range(8)):
        with tempfile.TemporaryDirectory() as folder:
            check_times(number, Path(folder))


def test_times(mass: Mass) -> None:
    """Clauses, constants, odd values, changes of units and sizes of epochs at random."""
    for number in mass.cases(2_000):
        with tempfile.TemporaryDirectory() as folder:
            check_times(1_000 + number, Path(folder))


@pytest.mark.parametrize("clause", _CLAUSES)
def test_times_and_long_numbers_are_compared_in_columns(clause: str, tmp_path: Path) -> None:
    """Nothing is left to the law where items are as usual."""
    random = Random(1)
    constants = {
        "a": "2026-03-01T08:30:00Z",
        "b": "2026-03-01T12:30:00Z",
        "x": str(_BIG + 10**9),
        "y": str(_BIG + 10**15),
    }
    query = f'for $p in stream("s")/root/p {clause.format(**constants, k=2)} return <a>{{ $p/id }}</a>'
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_text("".join(f"{_item(random, each, 0)}\n" for each in range(60)))
    reports: list[Report] = []
    work = task.work

    def noted(job: Job, found: list[Range], outbox: Outbox) -> Report:
        reports.append(work(job, found, outbox))
        return reports[-1]

    with mock.patch.object(task, "work", noted):
        run = BareTrunk(tmp_path / "run", [Source("s", tmp_path / "in", "lines")], Random(1), finite=True)
        run.run({"q": query}, (1 << 20,), (1,))
    read = [each for each in reports if each.read]
    assert (read[-1].coverage["s"].in_columns, read[-1].coverage["s"].by_law) == (1, 0)
    assert sum(each.read["s"].unclear for each in read) == 0
    assert sum(each.read["s"].by_template + each.read["s"].by_scanner for each in read) > 0
