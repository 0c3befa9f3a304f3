"""Crowds of queries over one stream of updates: in families, beside each of them alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any
from unittest import mock

from anabranch.algebra.display.publishing import Published, ReaderState
from anabranch.branch import cache
from anabranch.branch.display.continuous import ContinuousQuery
from anabranch.branch.display.families.machine import AskedDisplay, DisplayFamily
from anabranch.branch.display.publishing import wire_time
from anabranch.branch.display.shown import DisplayChange
from anabranch.branch.display.strands import spreads
from anabranch.branch.document.layers import Resumed, read_layers, shown
from anabranch.branch.document.projection import LateStart
from anabranch.errors import AnabranchError, DynamicError
from anabranch.language import ast, check, parse
from anabranch.law.history.document import EditedDocument
from anabranch.law.history.timeline import Arriving, answer, arrivals
from anabranch.sharing.histories import entries_seen
from anabranch.stream.reading.parse import implied_root
from history.asking import elements
from history.following import Asking

ROOTS = {"s": implied_root("root")}


def asked(text: str) -> ast.Query | None:
    """A query over the stream `s`; None where it is refused, or is none that can be of a family."""
    try:
        query = check(parse(text), text, inputs={"s": None}).query
        machine = ContinuousQuery(query, ROOTS)
    except AnabranchError:
        return None
    return query if "s" in machine.needs.streams and spreads(machine.part) else None


class Bounding(Asking):
    """Writes queries that compare versions of paths with constants, and such as do not."""

    def bounded(self) -> str:
        """A query with conditions over constants."""
        source = self.one("/root/a", "/root/a", "/root/a", "/root/b", "//a", "/root/a#1", "/root/*")
        tests = " and ".join(self.test() for _ in range(self.random.choice((1, 1, 2, 3))))
        order = f" order by count($x{self.qualifier()}) {self.one('', 'descending')}" if self.likely(0.2) else ""
        result = self.one(
            "$x", "<r>{ $x/b }</r>", "<r>{ $x/a#1, $x/@k }</r>", "string($x)", "$x/b?1", "<r>{ $x/b + 1 }</r>"
        )
        loop = f'for $x in stream("s"){source} where {tests}{order} return {result}'
        return self.one(loop, loop, loop, f"<all>{{ {loop} }}</all>", f"count({loop})", f"({loop}, 1)")

    def test(self) -> str:
        value = f"$x{self.one('/a', '/b', '/b', '/@k', '//b', '')}{self.qualifier()}"
        match self.one("number", "number", "number", "text", "ratio", "difference", "any", "left"):
            case "number":
                return f"{value} {self.operator()} {self.constant()}"
            case "text":
                return f"{value} = {self.one(self.word(), self.word(), chr(34) + chr(34))}"
            case "ratio":
                return f"{value} {self.operator()} $x/b * {self.constant()}"
            case "difference":
                return f"{value} {self.operator()} $x/b {self.one('+', '-')} {self.constant()}"
            case "left":
                return f"{self.constant()} {self.operator()} {value}"
            case _:
                return self.condition(value)

    def operator(self) -> str:
        return self.one("=", "!=", "<", "<=", ">", ">=")

    def constant(self) -> str:
        return self.one("0", "1", "1.5", "2", "2e0", "3", "11", "12", "1e300")


def crowd(random: Random, count: int) -> dict[str, ast.Query]:
    """Queries that see the same entries, by their keys: the largest family among some random ones, if there is any."""
    families: dict[str, list[ast.Query]] = {}
    for _ in range(count):
        writer = Bounding(random)
        query = asked(writer.bounded() if random.random() < 0.7 else writer.any_query("s"))
        if query is not None:
            needs = ContinuousQuery(query, ROOTS).needs
            families.setdefault(repr(entries_seen(needs.streams["s"], "root")), []).append(query)
    largest = max(families.values(), key=len, default=[])
    return {f"q{number}": query for number, query in enumerate(largest)}


def alone(key: str, query: ast.Query) -> ContinuousQuery:
    return ContinuousQuery(query, ROOTS, display=Published, name=key)


def family(queries: dict[str, ast.Query]) -> DisplayFamily:
    return DisplayFamily({key: AskedDisplay(each, Published, {"name": key}) for key, each in queries.items()}, ROOTS)


Told = tuple[list[str], list[tuple[Any, ...]]]


def told(machine: ContinuousQuery, change: DisplayChange) -> Told:
    """What a moment says on the wire, and its dead letters."""
    assert isinstance(machine.display, Published)
    wire = machine.display.wire(wire_time(change.at), hidden=machine.failure is not None)
    return wire, [(each.place, each.reason, each.raw, each.code, each.subscription) for each in change.dead]


class Crowd:
    """Queries in a family, whose state is put away and taken up by several processes, and each of them alone."""

    def __init__(self, queries: dict[str, ast.Query], random: Random) -> None:
        self.queries, self.random = queries, random
        self.alone = {key: alone(key, query) for key, query in queries.items()}
        self.blobs: list[bytes] = []
        self.kept: Any = None
        self.readers: dict[str, ReaderState] = {}
        self.texts: dict[str, str] = {}
        self.processes = [cache.ProcessCache() for _ in range(3)]
        self.moments = 0

    def write(self, data: bytes) -> str:
        self.blobs.append(data)
        return str(len(self.blobs) - 1)

    def read(self, ref: str) -> bytes:
        return self.blobs[int(ref)]

    def run(self, streams: Sequence[str], leaving: float = 0.0) -> int:
        """Take all elements; gives how many changes were told of."""
        law = {"s": EditedDocument(implied_root("root"))}
        epoch: list[Arriving] = []
        for each in arrivals(law, {"s": [elements(each, "s") for each in streams]}):
            list(law["s"].take(each.element, each.at, each.partition))
            epoch.append(each)
            if self.random.random() < 0.6:
                self.end(epoch, law, leaving)
                epoch = []
        self.end(epoch, law, leaving)
        return self.moments

    def end(self, epoch: Sequence[Arriving], law: dict[str, EditedDocument], leaving: float) -> None:
        """Run an epoch, before which a query may leave, and compare."""
        if epoch:
            if len(self.queries) > 1 and self.random.random() < leaving:
                self.leave(self.random.choice(list(self.queries)))
            self.epoch(epoch)
            self.compare(law)

    def leave(self, key: str) -> None:
        del self.queries[key], self.alone[key]

    def compare(self, law: dict[str, EditedDocument]) -> None:
        for key, query in self.queries.items():
            try:
                expected = answer(query, law).text
            except DynamicError:
                expected = ""
            assert self.alone[key].text == expected, key
            assert self.texts[key] == expected, key

    def epoch(self, epoch: Sequence[Arriving], late: LateStart | None = None) -> None:
        """Some elements, at which the state is put away; sometimes that is tried twice."""
        expected = [*self.by_each(epoch, late)]
        for _ in range(self.random.choice((1, 1, 2))):
            found, kept, readers = self.attempt(epoch, late)
        assert found == expected
        self.kept, self.readers = kept, readers
        layers = read_layers(self.kept, self.read)
        for key in self.queries:
            assert shown(layers, key) == self.alone[key].text

    def by_each(self, epoch: Sequence[Arriving], late: LateStart | None) -> list[dict[str, Told]]:
        found: list[dict[str, Told]] = [{}] if late is not None else []
        for key, machine in self.alone.items() if late is not None else ():
            for change in machine.begin({"s": late}) if late is not None else ():
                found[0][key] = told(machine, change)
        for each in epoch:
            moments: list[dict[str, Told]] = []
            for key, machine in self.alone.items():
                for number, change in enumerate(machine.take(each.stream, each.element, each.at, each.partition)):
                    moments += [{}] * (number >= len(moments))
                    moments[number] = {**moments[number], key: told(machine, change)}
            found += moments
        return [_told_only(each) for each in found if _told_only(each)]

    def attempt(
        self, epoch: Sequence[Arriving], late: LateStart | None
    ) -> tuple[list[dict[str, Told]], Any, dict[str, ReaderState]]:
        here, whole = self.random.choice(self.processes), not self.kept or self.random.random() < 0.1
        found: list[dict[str, Told]] = []
        edits: dict[str, list[Any]] = {}
        with mock.patch.object(cache, "here", here), mock.patch.object(Resumed, "_wants_all", return_value=whole):
            resumed = Resumed(lambda: family(self.queries), list(self.queries), self.kept, self)
            machine = resumed.machine
            for key, query in machine.queries.items():
                assert isinstance(query.display, Published)
                query.display.resume(self.readers.get(key, ReaderState()))
            for news in self.moments_of(machine, epoch, late):
                moment: dict[str, Told] = {}
                for key, change in news:
                    moment[key] = told(machine.queries[key], change)
                    edits.setdefault(key, []).extend(change.edits)
                found += [_told_only(moment)] if _told_only(moment) else []
            self.moments += len(found)
            self.texts = {key: query.text for key, query in machine.queries.items()}
            readers = {
                key: query.display.told
                for key, query in machine.queries.items()
                if isinstance(query.display, Published)
            }
            texts = self.texts
            kept = resumed.save(1, edits, lambda: texts)
        return found, json.loads(json.dumps(kept)), readers

    def moments_of(
        self, machine: DisplayFamily, epoch: Sequence[Arriving], late: LateStart | None
    ) -> Iterator[Iterator[tuple[str, DisplayChange]]]:
        """The news of each moment."""
        if late is not None:
            yield machine.begin({"s": late})
        for each in epoch:
            for _ in machine.document.take(each.element, each.at, each.partition):
                yield machine._moment(each.element.place)


def _told_only(moment: dict[str, Told]) -> dict[str, Told]:
    return {key: each for key, each in moment.items() if each != ([], [])}
