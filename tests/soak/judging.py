"""What subscriptions are due, recomputed from scratch over what each of them has seen.

The law says what answers are (`law/`), and the reference for streams that evolve says what leaves around accents.
Both take seconds for each query over an hour of items, so twins with the same life are asked for once; and kinds that
look at one item at a time are also judged by plain arithmetic, all of them, which the law judges for a sample.

A stream is read once, into elements; a life is a slice of them.
Which items are late is found here by its definition (LAWS 3.2), since an item may be late because of one that came
before the subscription: windows by time never see it, and it is left out of what they are judged by.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path

from anabranch.algebra.display.replay import Replay
from anabranch.branch import BranchMember, open_branch
from anabranch.branch.family import operator_of
from anabranch.engine.evolved import Answered, NoSpill, fed
from anabranch.engine.finite import answering
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import prepare
from anabranch.engine.reading import Read
from anabranch.language import parse
from anabranch.law import evaluate, stream_input
from anabranch.runtime.standing import standing
from anabranch.spark.answers.log import AnswerFrame
from anabranch.spark.plan.epoch_plan import Registration
from anabranch.stream.elements import DeadLetter, Item, StreamElement
from anabranch.stream.limits import Limits
from anabranch.stream.reading.source import Contents, Source
from anabranch.stream.tree import copy
from soak.crowd import STEP, Kind
from soak.lives import Life, Lives
from soak.streams import CELSIUS, FAHRENHEIT, GrowingStream, energy, price

_NUMBERS = re.compile(r">= ([0-9.]+) ")
_ORDER = re.compile(r"'?\"?S([0-9]+)['\"] (?:and|AND) \S+ > ([0-9]+)")
_CONE = re.compile(r"(ra|dec) [<>]= (-?[0-9]+)")
_PLACE = re.compile(r"<ra>(.*)</ra><dec>(.*)</dec>")


@dataclass(frozen=True, slots=True)
class Seen:
    """The lines of each stream that a subscription has seen: from one up to another."""

    first: Mapping[str, int]
    end: Mapping[str, int]


class Judges:
    """Say what is due, over streams that have come to their end."""

    def __init__(self, streams: Mapping[str, GrowingStream], sources: Mapping[str, Source], lives: Lives) -> None:
        self._streams, self._lives = streams, lives
        self._read = {name: _WholeStream(streams[name], source) for name, source in sources.items()}
        self._known: dict[tuple[str, str], str] = {}

    def read(self) -> None:
        """Read all streams, unless that was done."""
        for each in self._read.values():
            assert each.elements

    def seen(self, life: Life, kind: Kind) -> Seen:
        """What a subscription has seen: from the end of the epoch before its first to the end of its last."""
        return Seen(
            {name: self._streams[name].line_at(*self._lives.end(life.asked.first - 1, name)) for name in kind.streams},
            {name: self._streams[name].line_at(*self._lives.end(life.last, name)) for name in kind.streams},
        )

    def given(self, life: Life, kind: Kind) -> str:
        """What it was answered, as a whole; of a display, what it shows."""
        if kind.judge in ("display", "document"):
            replay = Replay()
            for _ in replay.feed(life.answer):
                pass
            return replay.text
        frame = AnswerFrame.of(life.asked).told(life.answer)
        return f"{frame.opening}{life.answer}{frame.closing}" if life.answer else frame.empty

    def by_arithmetic(self, life: Life, kind: Kind) -> str:
        """What is due to a query that looks at one item at a time."""
        (stream,) = kind.streams
        seen, text = self.seen(life, kind), life.asked.text
        lines = self._streams[stream].lines
        mine = _MATCHES[kind.name](self._read[stream], text)
        results = [_RESULTS[kind.name](number, lines[number]) for number in mine]
        found = [
            each for number, each in zip(mine, results, strict=True) if seen.first[stream] <= number < seen.end[stream]
        ]
        frame = AnswerFrame.of(life.asked)
        return f"{frame.opening}{''.join(found)}{frame.closing}" if found else frame.empty

    def by_law(self, life: Life, kind: Kind) -> str:
        """What is due by the law, or by the reference for streams that evolve."""
        seen = self.seen(life, kind)
        key = (life.asked.text, repr((seen, life.asked.late)))
        if key not in self._known:
            self._known[key] = _JUDGES[kind.judge](self._read, life.asked, seen)
        return self._known[key]


class _WholeStream:
    """A stream that has come to its end, read when it is asked for."""

    def __init__(self, stream: GrowingStream, source: Source) -> None:
        self.stream, self.source = stream, source
        self._sorted: dict[object, list[int]] = {}

    @cached_property
    def elements(self) -> list[StreamElement | DeadLetter]:
        """The element on each line."""
        return self._elements("".join(self.stream.lines))

    def _elements(self, text: str) -> list[StreamElement | DeadLetter]:
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write(text)
            file.flush()
            contents = Contents(replace(self.source, path=Path(file.name)), Limits())
            self.root = contents.root
            (partition,) = contents.partitions
            found = list(partition)
        assert len(found) == text.count("\n"), "each line is an element"
        return found

    @cached_property
    def late(self) -> set[int]:
        """The lines with items that are late (LAWS 3.2)."""
        found, most = set(), Fraction(-(10**9))
        assert self.source.time is not None
        tag = str(self.source.time).rpartition("/")[2]
        for number, (element, line) in enumerate(zip(self.elements, self.stream.lines, strict=True)):
            if isinstance(element, Item):
                time = Fraction(line.partition(f"<{tag}>")[2].partition("<")[0])
                if time < most - self.source.slack:
                    found.add(number)
                most = max(most, time)
        return found

    def slice(self, seen: Seen, *, by_time: bool) -> list[StreamElement | DeadLetter]:
        """The elements of a life; windows by time do not see those that are late."""
        numbers = range(seen.first[self.source.name], seen.end[self.source.name])
        late = self.late if by_time and self.source.time is not None else set()
        return [_fresh(self.elements[number]) for number in numbers if number not in late]

    def accents(self, end: int) -> list[StreamElement | DeadLetter]:
        """The accent that is in force for a part of the items before a line."""
        came = sum(line in (CELSIUS, FAHRENHEIT) for line in self.stream.lines[:end])
        return self._elements(CELSIUS) if came % 2 else []

    def matching(self, key: object, value: Callable[[int], object]) -> list[int]:
        """The lines with good items that have a value, in their order."""
        if not self._sorted:
            for number, element in enumerate(self.elements):
                if isinstance(element, Item):
                    self._sorted.setdefault(value(number), []).append(number)
        return self._sorted.get(key, [])

    @cached_property
    def places(self) -> list[tuple[int, float, float]]:
        """The good photons and where they come from."""
        good = (number for number, element in enumerate(self.elements) if isinstance(element, Item))
        found = ((number, _PLACE.search(self.stream.lines[number])) for number in good)
        return [(number, float(match[1]), float(match[2])) for number, match in found if match]


def _fresh(element: StreamElement | DeadLetter) -> StreamElement | DeadLetter:
    """An element of its own: the law makes its items children of one root."""
    return replace(element, tree=copy(element.tree)) if isinstance(element, Item) else element


# --- arithmetic -------------------------------------------------------------------------------------------------------


def _in_band(stream: _WholeStream, text: str) -> Sequence[int]:
    low = round(float(_NUMBERS.findall(text)[0]) * 1000)
    return stream.matching((low - 100) // STEP, lambda number: (energy(number) - 100) // STEP)


def _in_cone(stream: _WholeStream, text: str) -> Sequence[int]:
    low_ra, high_ra, low_dec, high_dec = (int(value) for _, value in _CONE.findall(text))
    return [number for number, ra, dec in stream.places if low_ra <= ra <= high_ra and low_dec <= dec <= high_dec]


def _in_orders(stream: _WholeStream, text: str) -> Sequence[int]:
    found = _ORDER.search(text)
    assert found is not None, text
    mine = stream.matching(int(found[1]), lambda number: number * 7 % 20)
    return [number for number in mine if price(number) > int(found[2])]


def _hit(number: int, line: str) -> str:
    return f"<hit><n>{number}</n><en>{energy(number) / 1000}</en></hit>"


def _order_line(number: int, line: str) -> str:
    return json.dumps({"id": number, "price": price(number)}) + "\n"


_MATCHES: Mapping[str, Callable[[_WholeStream, str], Sequence[int]]] = {
    "range": _in_band,
    "framed": _in_band,
    "cone": _in_cone,
    "order": _in_orders,
    "sql": _in_orders,
}
_RESULTS: Mapping[str, Callable[[int, str], str]] = {
    "range": _hit,
    "framed": _hit,
    "cone": lambda number, line: line.strip(),
    "order": _order_line,
    "sql": _order_line,
}


# --- the law ----------------------------------------------------------------------------------------------------------


def _law(streams: Mapping[str, _WholeStream], asked: Registration, seen: Seen) -> str:
    """The law over what was seen, as of streams that go on."""
    inputs = {}
    for name in seen.first:
        whole = streams[name]
        source = whole.source
        elements = whole.slice(seen, by_time=" diff " in asked.text or " gap " in asked.text)
        inputs[name], _ = stream_input(
            copy(whole.root),
            [elements],
            time=source.time,
            slack=source.slack,
            origin=source.origin,
            late=name in asked.late,
            endless=not asked.shows,
        )
        if not asked.shows:  # the stream goes on behind the life, so what is open there stays open
            inputs[name] = replace(inputs[name], waiting=frozenset((0,)))
        if source.format == "json":
            inputs[name] = replace(inputs[name], item_name=source.item_name)
    return evaluate(parse(asked.text), inputs, name=asked.name).text


def _evolving(streams: Mapping[str, _WholeStream], asked: Registration, seen: Seen) -> str:
    """The reference for streams that evolve, from the units that held when the subscription began."""
    query, out, feeds = standing(parse(asked.text)), Answered(), {}
    for name, first in seen.first.items():
        whole = streams[name]
        elements = [*whole.accents(first), *whole.slice(seen, by_time=False)]
        feeds[name] = fed(Read(None, [], whole.source, copy(whole.root), [elements]))  # type: ignore[arg-type]
    inputs = {name: replace(each.stream, late=name in asked.late, endless=True) for name, each in feeds.items()}
    operator = operator_of(query, {name: each.source.time for name, each in inputs.items()}, endless=True)
    branch = open_branch(operator, [BranchMember("", asked.name, query, out)], inputs, None, {}, {}, NoSpill())
    for each in feeds.values():
        for feed in each.feeds:
            branch.feed(feed)
    text = "".join(out.pieces)
    return f"{query.opening}{text}{query.closing}" if text else query.empty


def _document(streams: Mapping[str, _WholeStream], asked: Registration, seen: Seen) -> str:
    """What a display of a document as it stands shows, which does not depend on when it began."""
    ((name, end),) = seen.end.items()
    with tempfile.NamedTemporaryFile("w") as file:
        file.write("".join(streams[name].stream.lines[:end]))
        file.flush()
        inputs = Inputs([replace(streams[name].source, path=Path(file.name))], finite=True)
        with answering([prepare(asked.name, asked.text, inputs, "reference")], inputs) as run:
            return "".join(run.answers[asked.name])


_JUDGES: Mapping[str, Callable[[Mapping[str, _WholeStream], Registration, Seen], str]] = {
    "arithmetic": _law,
    "law": _law,
    "display": _law,
    "evolving": _evolving,
    "document": _document,
}
