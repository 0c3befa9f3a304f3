"""How fast everyday queries are: twenty-three forms (`workloads/forms.py`) over items written in three ways.

JSON is asked with paths (`json`) and with dots (`json_dots`), where a form has such a spelling; there it gives objects.

`ratios.FORM.FORMAT`: one subscription of the form, its answers committed, against a streaming query of plain Spark:
`from_xml` or `from_json` with a declared schema, the equivalent expression, and Parquet.
`thousand.FORM.FORMAT`: a thousand subscriptions of the form with different constants against the one; together they
give as many answers.
Both are times of a whole trigger that reads the same file (`harness/live.py`), in three turns ABBA.
Before anything is timed, the values of our answers are compared with those of Spark's, and the answers of the thousand
are counted.

`summary` has the least and the median of the ratios, and `short_of_goal` what is below its goal: 1 for every ratio, 2
for their median, 1.5 for the plain form over JSON, 0.6 for a thousand.
A comparison that takes longer than its time limit is broken off and stands in `not_in_time`, with the limit in seconds;
its ratio is missing.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any
from xml.etree import ElementTree

from anabranch.bench.harness.epochs import workshop
from anabranch.bench.harness.live import LiveSparkQuery, LiveTrunk, NotInTime
from anabranch.bench.harness.timing import Figures, Rounds, Timings, compare
from anabranch.bench.workloads.forms import FORMS, QueryForm
from anabranch.bench.workloads.photons import Spark
from anabranch.bench.workloads.readings import FORMATS, JSON_DOTS, WireFormat, write_readings
from anabranch.errors import UsageError, did_you_mean

RATIO, MEDIAN, PLAIN_JSON, THOUSAND = 1.0, 2.0, 1.5, 0.6
"""The goals of the figures in `short_of_goal`."""


@dataclass(frozen=True, slots=True)
class FormsScale:
    """How much is measured: readings of a file, rounds, and the seconds that a comparison may take."""

    items: int
    rounds: Rounds
    seconds: float
    many: int = 1_000


_FULL = FormsScale(400_000, Rounds(2, 3), 300)
_QUICK = FormsScale(50_000, Rounds(1, 1), 60)


def measure(quick: bool, only: Sequence[str] = ()) -> Figures:
    """Run the bench, or some of it: `only` has forms, and forms with a format, as in `plain.json`."""
    cells = chosen(only)
    with workshop() as (spark, folder):
        bench = FormsBench(spark, folder, _QUICK if quick else _FULL)
        for number, (form, wire) in enumerate(cells, 1):
            print(f"{form.name}.{wire.name}: {number} of {len(cells)}", file=sys.stderr)
            bench.compare(form, wire)
        return bench.figures()


def chosen(only: Sequence[str]) -> list[tuple[QueryForm, WireFormat]]:
    """The forms and formats that are asked for, all of them without any; UsageError where there is none of a name."""
    wires = (*FORMATS, JSON_DOTS)
    cells = {f"{form.name}.{wire.name}": (form, wire) for wire in wires for form in FORMS if form.is_written_for(wire)}
    known = {**{name: [name] for name in cells}, **{form.name: [] for form in FORMS}}
    for name, (form, _) in cells.items():
        known[form.name].append(name)
    for name in only:
        if name not in known:
            hint = did_you_mean(name, known, f"there are {', '.join(form.name for form in FORMS)}")
            raise UsageError(f"there is no form '{name}'", hint=hint)
    wanted = {cell for name in only or known for cell in known[name]}
    return [cell for name, cell in cells.items() if name in wanted]


@dataclass(slots=True)
class FormsBench:
    """The figures of the forms that were compared; `compare` adds to them."""

    spark: Spark
    folder: Path
    scale: FormsScale
    ratios: dict[str, dict[str, float]] = field(default_factory=dict)
    thousand: dict[str, dict[str, float]] = field(default_factory=dict)
    rates: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)
    answers: dict[str, dict[str, float]] = field(default_factory=dict)
    not_in_time: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)
    _runs: count[int] = field(default_factory=count)

    def compare(self, form: QueryForm, wire: WireFormat) -> None:
        """Compare one subscription with plain Spark, and a thousand with the one."""
        file = self._file(form, wire)
        with self._trunk(wire, file, form.one(wire)) as one:
            try:
                self._with_spark(form, wire, file, one)
            except NotInTime:
                self._note_late("ratios", form, wire)
                self._note_late("thousand", form, wire)
                return
            try:
                self._with_thousand(form, wire, file, one)
            except NotInTime:
                self._note_late("thousand", form, wire)

    def _with_spark(self, form: QueryForm, wire: WireFormat, file: Path, one: LiveTrunk) -> None:
        until = perf_counter() + self.scale.seconds
        folder = self.folder / f"spark-{next(self._runs)}"
        with LiveSparkQuery(self.spark, folder, file, partial(form.in_spark, wire)) as theirs:
            one.round(until=until)
            theirs.round(until)
            read = values_of_lines if wire.dots else values_of
            ours, rows = sorted(read(one.texts()["one"])), sorted(map(_comparable, theirs.rows()))
            assert len(ours) == len(rows), f"{form.name}.{wire.name}: {len(ours):,} answers, {len(rows):,} of Spark"
            different = [pair for pair in zip(ours, rows, strict=True) if pair[0] != pair[1]]
            assert not different, f"{form.name}.{wire.name}: {different[0]}"
            label = f"{form.name}.{wire.name} against Spark"
            found = compare(partial(one.round, until=until), partial(theirs.round, until), self.scale.rounds, label)
        self.answers.setdefault(form.name, {})[wire.name] = len(ours)
        self.ratios.setdefault(form.name, {})[wire.name] = found.ratio
        self._note_rates(form, wire, found, "one", "spark")

    def _with_thousand(self, form: QueryForm, wire: WireFormat, file: Path, one: LiveTrunk) -> None:
        until = perf_counter() + self.scale.seconds
        with self._trunk(wire, file, form.many(wire, self.scale.many)) as many:
            many.round(until=until)
            answers = sum(each.count("\n" if wire.dots else "<hit") for each in many.texts().values())
            expected = self.answers[form.name][wire.name]
            assert abs(answers / expected - 1) < 0.05, f"{form.name}.{wire.name}: {answers:,} for {expected:,} answers"
            label = f"{form.name}.{wire.name}, {self.scale.many:,} against one"
            clocks = partial(many.round, until=until), partial(one.round, until=until)
            found = compare(*clocks, self.scale.rounds, label)
        self.thousand.setdefault(form.name, {})[wire.name] = found.ratio
        self._note_rates(form, wire, found, "thousand", "one_beside_thousand")

    def _note_rates(self, form: QueryForm, wire: WireFormat, found: Timings, *sides: str) -> None:
        rates = self.rates.setdefault(form.name, {}).setdefault(wire.name, {})
        for side, seconds in zip(sides, (found.first, found.second), strict=True):
            rates[side] = self.scale.items / median(seconds)
        shown = ", ".join(f"{side} {rates[side]:,.0f} items/s" for side in sides)
        print(f"{form.name}.{wire.name}: ratio {found.ratio:.2f}; {shown}", file=sys.stderr)

    def _note_late(self, kind: str, form: QueryForm, wire: WireFormat) -> None:
        print(f"{form.name}.{wire.name}: {kind} not done in {self.scale.seconds:g} s", file=sys.stderr)
        self.not_in_time.setdefault(kind, {}).setdefault(form.name, {})[wire.name] = self.scale.seconds

    def _trunk(self, wire: WireFormat, file: Path, queries: dict[str, str]) -> LiveTrunk:
        folder = self.folder / f"run-{next(self._runs)}"
        return LiveTrunk(self.spark, folder, queries, file, wire.source(folder))

    def _file(self, form: QueryForm, wire: WireFormat) -> Path:
        """The readings that a form needs; all forms with the same need read the same file."""
        file = self.folder / f"{wire.name}-{form.readings}"
        if not file.exists():
            write_readings(file, wire, self.scale.items, form.readings)
        return file

    def figures(self) -> Figures:
        """All figures, and those that are short of their goal."""
        ratios = {(form, wire): each for form, row in self.ratios.items() for wire, each in row.items()}
        thousand = {(form, wire): each for form, row in self.thousand.items() for wire, each in row.items()}
        short: dict[str, dict[str, float]] = {"ratios": {}, "thousand": {}, "ratio_median": {}}
        summary: dict[str, float] = {}
        if ratios:
            summary = {"ratio_least": min(ratios.values()), "ratio_median": median(ratios.values())}
        if thousand:
            summary["thousand_least"] = min(thousand.values())
        for (form, wire), ratio in ratios.items():
            if ratio < (PLAIN_JSON if (form, wire) == ("plain", "json") else RATIO):
                short["ratios"][f"{form}.{wire}"] = ratio
        short["thousand"] = {f"{form}.{wire}": each for (form, wire), each in thousand.items() if each < THOUSAND}
        if summary.get("ratio_median", MEDIAN) < MEDIAN:
            short["ratio_median"]["all"] = summary["ratio_median"]
        return {
            "items": self.scale.items,
            "ratios": self.ratios,
            "thousand": self.thousand,
            "items_per_second": self.rates,
            "answers": self.answers,
            "summary": summary,
            "short_of_goal": {kind: found for kind, found in short.items() if found},
            "not_in_time": self.not_in_time,
        }


def values_of(answers: str) -> list[tuple[str, ...]]:
    """The values in each answer, those of attributes too, as they can be compared."""
    return [_comparable(_leaves(each)) for each in ElementTree.fromstring(f"<hits>{answers}</hits>")]


def values_of_lines(answers: str) -> list[tuple[str, ...]]:
    """The values in each line of JSON, likewise."""
    return [_comparable(_parts(json.loads(each, parse_float=str, parse_int=str))) for each in answers.splitlines()]


def _parts(value: Any) -> Iterator[str]:
    match value:
        case dict():
            yield from (part for each in value.values() for part in _parts(each))
        case list():
            yield from (part for each in value for part in _parts(each))
        case _:
            yield value


def _leaves(element: ElementTree.Element) -> Iterator[str]:
    yield from element.attrib.values()
    if len(element) == 0 and element.text:
        yield element.text
    for child in element:
        yield from _leaves(child)


def _comparable(values: Iterable[Any]) -> tuple[str, ...]:
    """Texts, numbers in one spelling, to nine digits if they are not whole; a row of Spark may have others in it."""
    found: list[str] = []
    for value in values:
        if isinstance(value, tuple | list):
            found += _comparable(value)
            continue
        try:
            text = str(value)
            found.append(text if text.isdecimal() else f"{float(value):.9g}")
        except ValueError:
            found.append(text)
    return tuple(found)
