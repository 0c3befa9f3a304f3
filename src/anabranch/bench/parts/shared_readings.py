"""The cost of one among many subscriptions over readings: parts of `anabranch bench sharing`.

A mixture of all forms (`workloads/forms.py`) is fed as one subscription of the plain form is, which selects as many
readings as the mixture has answers.
Conjunctions of two ranges (`workloads/ranges.py`) are fed over JSON as over XML elements, one match per reading.

Before anything is timed, the answers of the mixture are compared with those of the law over a few readings, and those
of the conjunctions are counted one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from anabranch.bench.forms import values_of
from anabranch.bench.harness.live import LiveTrunk
from anabranch.bench.harness.timing import Rounds, Timings, compare
from anabranch.bench.workloads.forms import FORMS, MIXED, FormShare, mixture
from anabranch.bench.workloads.photons import Spark
from anabranch.bench.workloads.ranges import Rectangle, rectangles, selected
from anabranch.bench.workloads.readings import ELEMENTS, JSON_LINES, ReadingKind, WireFormat, readings, write_readings
from anabranch.engine.reading import read_stream
from anabranch.language import check, parse
from anabranch.law import evaluate
from anabranch.stream.limits import Limits

_CHECKED = 300
"""The readings for the comparison with the law, which is slow."""
_ANSWERS = 0.9
"""Answers per reading: below 1, so that one subscription can give as many, also where the mixture gives a few more."""


@dataclass(slots=True)
class SharedReadings:
    """Trunks over readings, in a folder, compared with each other."""

    spark: Spark
    folder: Path
    items: int
    _runs: count[int] = field(default_factory=count)

    def compare_mixture(self, number: int, wire: WireFormat, rounds: Rounds) -> Timings:
        """Compare this many subscriptions of all forms with one that gives as many answers."""
        file, parts = self._file(wire, self.items, "repeated"), mixture(number, _ANSWERS)
        queries = {name: text for part in parts for name, text in part.queries(wire).items()}
        assert len(queries) == number
        with self.trunk(wire, file, queries) as many:
            self.check_mixture(many, parts, wire)
            many.round()
            answers = sum(each.count("<hit>") for each in many.texts().values())
            assert abs(answers / self.items / _ANSWERS - 1) < 0.1, f"{answers:,} answers"
            with self.trunk(wire, file, {"one": self._selecting(answers, wire)}) as one:
                one.round()
                alone = one.texts()["one"].count("<hit>")
                assert abs(answers / alone - 1) < 0.01, f"{answers:,} answers for {alone:,}"
                return compare(many.round, one.round, rounds, f"{number:,} of all forms, {wire.name}")

    def check_mixture(self, many: LiveTrunk, parts: Sequence[FormShare], wire: WireFormat) -> None:
        """Fail where the answers of subscriptions over a few readings are not those of the law."""
        file = self._file(wire, _CHECKED, "repeated")
        many.feed(file)
        found: dict[str, list[tuple[str, ...]]] = {form.name: [] for form in MIXED}
        for name, text in many.texts().items():
            found[name.rpartition("-")[0]] += values_of(text)
        given = {"readings": read_stream(wire.source(file), Limits()).input}
        codes = {str(dict(each.leaves)["code"]) for each in readings(_CHECKED, "repeated")}
        for part in parts:
            expected: list[tuple[str, ...]] = []
            for query in part.summary(wire, codes):
                answer = evaluate(check(parse(query), query).query, given).text
                expected += values_of(answer.removeprefix("<hits>").removesuffix("</hits>").replace("<hits/>", ""))
            assert sorted(found[part.form.name]) == sorted(expected), f"{part.form.name} over {wire.name}"

    @contextmanager
    def ranges(self, number: int, wire: WireFormat) -> Iterator[LiveTrunk]:
        """A trunk with this many conjunctions of two ranges, whose answers were counted."""
        wanted = rectangles(number)
        queries = queries_of(wanted, wire)
        with self.trunk(wire, self._file(wire, self.items, "plain"), queries) as trunk:
            trunk.round()
            texts = trunk.texts()
            found = [texts[name].count("<hit>") for name in queries]
            assert found == selected(wanted, readings(self.items)), f"{number:,} conjunctions over {wire.name}"
            yield trunk

    def compare_ranges(self, number: int, rounds: Rounds) -> Timings:
        """Compare this many conjunctions over JSON with the same over elements."""
        with self.ranges(number, JSON_LINES) as ours, self.ranges(number, ELEMENTS) as others:
            return compare(ours.round, others.round, rounds, f"{number:,} conjunctions over JSON and elements")

    def trunk(self, wire: WireFormat, file: Path, queries: Mapping[str, str]) -> LiveTrunk:
        """A trunk with some queries over a file."""
        folder = self.folder / f"readings-run-{next(self._runs)}"
        return LiveTrunk(self.spark, folder, queries, file, wire.source(folder))

    def _selecting(self, answers: int, wire: WireFormat) -> str:
        """A subscription that selects `answers` readings."""
        values = sorted(dict(each.measurement)["t"] for each in readings(self.items, "repeated"))
        return FORMS[0].query(wire, {"low": "0", "high": f"{values[answers]}"})

    def _file(self, wire: WireFormat, items: int, kind: ReadingKind) -> Path:
        file = self.folder / f"{wire.name}-{items}-{kind}"
        if not file.exists():
            write_readings(file, wire, items, kind)
        return file


def queries_of(wanted: Sequence[Rectangle], wire: WireFormat) -> dict[str, str]:
    """Conjunctions as queries, by name, in their order."""
    return {f"q{number}": each.query(wire) for number, each in enumerate(wanted)}
