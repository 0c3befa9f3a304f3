"""A continuous query beside the law: both take the same elements, and must show the same after every moment."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from fractions import Fraction
from random import Random
from typing import Any
from unittest import mock

from anabranch.aggregates import AGGREGATES
from anabranch.algebra.display.display import Edit
from anabranch.branch import cache
from anabranch.branch.display.continuous import ContinuousQuery
from anabranch.branch.document.layers import Resumed, read_layers, shown
from anabranch.branch.document.projection import KeptDocument
from anabranch.errors import DynamicError
from anabranch.language import check, parse
from anabranch.law.history.display_units import DisplayUnits
from anabranch.law.history.document import EditedDocument
from anabranch.law.history.timeline import Arriving, answer, arrivals
from anabranch.stream.elements import Alter
from anabranch.stream.reading.parse import implied_root
from history.asking import elements
from history.editing import apply
from history.writing import Writer


class Followed:
    """A query over streams whose roots are called `root`, each given as one text or one for each partition."""

    def __init__(self, query: str, retain: Fraction | None = None, /, **streams: str | list[str]) -> None:
        self.query = check(parse(query), query, inputs=dict.fromkeys(streams), edited=tuple(streams)).query
        self._retain = retain
        self.machine = self.fresh()
        self.given = {
            name: [elements(text, name) for text in ([given] if isinstance(given, str) else given)]
            for name, given in streams.items()
            if name in self.machine.kept
        }
        self.law = {name: EditedDocument(implied_root("root")) for name in self.given}
        self.shown = ""
        """What the edits have made of nothing."""
        self.alters: dict[int, list[Alter]] = {}
        """By number of an element: changes of the display's units with it."""
        self._units = DisplayUnits()

    def fresh(self) -> ContinuousQuery:
        """The query at its beginning."""
        roots = {part: implied_root("root") for part in ("s", "t", "u")}
        return ContinuousQuery(self.query, roots, retain=self._retain)

    def run(self, *, put_away: bool = False) -> Iterator[tuple[Fraction, str]]:
        """Go through all moments and compare; with `put_away`, between any two elements the state is put away."""
        away = _Away(self)
        for number, each in enumerate(arrivals(self.law, self.given)):
            epoch: AbstractContextManager[list[Edit]] = away.epoch(each) if put_away else nullcontext([])
            with epoch as edits:
                self._units.alter(self.alters.get(number, ()))
                self.machine.alter(self.alters.get(number, ()))
                moments = self.law[each.stream].take(each.element, each.at, each.partition)
                for change in self.machine.take(each.stream, each.element, each.at, each.partition):
                    next(moments)
                    self.shown = apply(change.edits, self.shown)
                    edits += change.edits
                    assert self.machine.text == self.by_law()
                    assert self.shown == self.machine.text
                    yield change.at, self.shown
                assert next(moments, None) is None
                assert ids_of(self.machine.kept[each.stream]) == ids_of(self.law[each.stream])

    def by_law(self) -> str:
        """What the law shows now."""
        try:
            return answer(self.query, self.law, self._units, retain=self._retain).text
        except DynamicError:
            return ""

    def end(self) -> str:
        """What is on display at the end."""
        return [text for _, text in self.run()][-1]


def ids_of(document: EditedDocument | KeptDocument) -> dict[int, tuple[dict[str, tuple[int, bool]], list[str]]]:
    """What is known in each partition: by their ids the numbers of regions, and the past ids in their order."""
    found = document.admission.register
    return {
        partition: (
            {name: (found.known[each.chain].number, each.mutable) for name, each in names.items()},
            list(found.past.get(partition, ())),
        )
        for partition, names in found.names.items()
        if names
    }


class _Away:
    """A state that is put away in layers, however small it is, and taken up again by one of three processes."""

    def __init__(self, followed: Followed) -> None:
        self._followed = followed
        self._blobs: list[bytes] = []
        self._processes = [cache.ProcessCache() for _ in range(3)]
        self._random = Random(repr(followed.query))
        self._kept: Any = None

    def write(self, data: bytes) -> str:
        self._blobs.append(data)
        return str(len(self._blobs) - 1)

    def read(self, ref: str) -> bytes:
        return self._blobs[int(ref)]

    @contextmanager
    def epoch(self, each: Arriving) -> Iterator[list[Edit]]:
        """An epoch, whose edits are to be told; sometimes it is tried twice, and the first try does not count."""
        for _ in range(self._random.choice((0, 0, 0, 1))):
            with self._attempt() as edits:
                for change in self._followed.machine.take(each.stream, each.element, each.at, each.partition):
                    edits += change.edits
        with self._attempt() as edits:
            yield edits
            text = self._followed.machine.text
        self._kept = json.loads(json.dumps(self._saved))
        assert shown(read_layers(self._kept, self.read)) == text

    @contextmanager
    def _attempt(self) -> Iterator[list[Edit]]:
        here, whole = self._random.choice(self._processes), not self._kept or self._random.random() < 0.1
        edits: list[Edit] = []
        with mock.patch.object(cache, "here", here), mock.patch.object(Resumed, "_wants_all", return_value=whole):
            resumed = Resumed(self._followed.fresh, "", self._kept, self)
            self._followed.machine = resumed.machine
            yield edits
            self._saved = resumed.save(1, {"": edits}, lambda: {"": resumed.machine.text})


class Asking(Writer):
    """Writes queries of all shapes that split: parts beside one another and inside, aggregates, orders, errors."""

    def any_query(self, *streams: str) -> str:
        """A query of the law's own tests, or one of more parts."""
        return self.query(*streams) if self.likely(0.4) else self.part(*streams)

    def part(self, *streams: str) -> str:
        """A query, or a part of one."""
        path, qualifier = self.path(self.one(*streams)), self.qualifier()
        match self.one(
            "fold", "order", "built", "sequence", "own", "inner", "computed", "let", "name", "some", "error"
        ):
            case "fold":
                function = self.one(*AGGREGATES, "exists", "empty")
                return f"{function}({path}{self.one('', '', '/@k')})"
            case "order":
                direction, other = self.one("", "descending"), self.one("", "descending")
                result = self.one("$x", "<r>{ $x/a }</r>", "string($x)", "count($x//*)")
                return f"for $x in {path} order by count($x/*) {direction}, string($x) {other} return {result}"
            case "built":
                inside = f"{{ {self.part(*streams)} }}<in>{{ {path} }}</in>"
                return f'<o x="1">t{inside}{{ count({self.path(self.one(*streams))}) }}{{ 1, {path} }}</o>'
            case "sequence":
                return f"({path}, {self.part(*streams)}, 7, count({path}))"
            case "own":
                return f"for $x in {path} return ($x{qualifier}, name($x))"
            case "inner":
                return f"for $x in {path}, $y in $x/a{qualifier} where {self.condition('$y')} return <p>{{ $y }}</p>"
            case "computed":
                return f'let $n := count({path}) return if ($n > 2) then <many n="{{ $n }}"/> else ($n, $n + 1)'
            case "let":
                return (
                    f"let $c := 2 for $x in {path} let $d := $x{qualifier} where count($d) < $c return <d>{{ $d }}</d>"
                )
            case "name":
                plain = f'stream("{self.one(*streams)}")//{self.one("a", "b[@k]", "a[b + 1 > 1]")}'
                result = self.one("count($a), $a/b", "<n>{ max($a//b) }</n>", "$a[b]", "for $x in $a return $x/a")
                return f"let $a := {plain} return ({result}, 1)"
            case "some":
                asked = f"{self.one('some', 'every')} $x in {path} satisfies {self.one('$x + 1 > 4', '$x/a', '$x = 5')}"
                return self.one(f"({asked})", f"if ({asked}) then <yes/> else count({path})")
            case _:
                return f"for $x in {path} return <v>{{ $x + 1 }}</v>"


def random_case(number: int, lengths: Sequence[int] = (3, 3, 4, 4, 5, 8)) -> Followed:
    """A query and its streams, as a function of a number; the first stream has one of these lengths."""
    random = Random(number)
    streams: dict[str, str | list[str]] = {"s": Writer(random).stream(random.choice(lengths))}
    if random.random() < 0.2:
        streams["s"] = [Writer(random).stream(random.choice((2, 4))) for _ in range(2)]
    if random.random() < 0.3:
        streams["t"] = Writer(random).stream(random.choice((2, 4)))
    return Followed(Asking(random).any_query(*streams), **streams)


def items(count: int) -> str:
    """Items with a region each, whose ids and values are their numbers."""
    return "".join(f'<i k="{each}"><s:mutable id="{each}"><v>{each}</v></s:mutable></i>' for each in range(count))


def replaced(id: int, value: object, at: str = "") -> str:
    """A replacement of a region."""
    return f'<s:replace target="{id}"{at}><v>{value}</v></s:replace>'


TICKER = """
for $q in stream("s")/root/i where $q/v >= $q/v#1 * 1.1
order by ($q/v - $q/v#1) div $q/v descending return <up>{ $q/@k, $q/v }</up>
"""
"""Query 2 of the history paper: what has risen by a tenth since last time, here the largest rise first."""
