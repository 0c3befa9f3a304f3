"""What the tests of panes share: a stream cut into ranges and epochs at random and counted, and the law."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from random import Random

import numpy as np

from anabranch.branch.panes import PaneLaw, PanePlan, PaneWindows, pane_plan
from anabranch.branch.ports import InputStream
from anabranch.branch.state import State
from anabranch.columnar import guided
from anabranch.columnar.counted import Counted, Reach
from anabranch.columnar.pane_query import CompiledPanes, compile_panes
from anabranch.columnar.panes import PaneCounter
from anabranch.columnar.shred import Shredded, Shredder, Wanted
from anabranch.columnar.template import Template
from anabranch.errors import BadItem
from anabranch.language import check, parse
from anabranch.reference import Answer, evaluate
from anabranch.reference.inputs import stream_input
from anabranch.reference.standing import standing
from anabranch.stream.elements import DeadLetter, Item, Place, Punctuation
from anabranch.stream.limits import Limits
from anabranch.stream.lines import Carry, LineSplitter
from anabranch.stream.parse import parse_item, parse_root
from anabranch.stream.path import Path
from anabranch.stream.reader import ElementReader

FILE = "f"


@dataclass
class Found:
    """What came of a query."""

    pieces: list[str] = field(default_factory=list)
    dead: list[DeadLetter] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    voids: int = 0
    """How many ranges had to be counted again."""
    shown: int = 0
    """How many entries were shown one by one."""

    def piece(self, text: str) -> None:
        self.pieces.append(text)

    def extend(self, data: bytes, pieces: int, first: int) -> None:
        raise AssertionError("windows give their pieces one by one")

    def bury(self, letter: DeadLetter) -> None:
        self.dead.append(letter)

    def late(self, place: Place) -> None:
        self.places.append(place)


@dataclass
class Stream:
    """The stream `s` below the root `<r>`, its items one to a line."""

    items: Sequence[str]
    slack: str = "0"
    origin: str = "0"
    time: str | None = None
    late: bool = False
    limits: Limits = field(default_factory=Limits)

    @property
    def data(self) -> bytes:
        return "".join(f"{item}\n" for item in self.items).encode()

    def reader(self) -> ElementReader:
        return ElementReader("s", "lines", self.limits, parse_root(b"<r>"))

    @property
    def path(self) -> Path | None:
        return None if self.time is None else Path.parse(self.time)

    def by_law(self, query: str) -> Answer:
        """The answer of the reference, over all of the stream."""
        splitter = LineSplitter(self.limits)
        cuts = [*splitter.feed(self.data), *splitter.finish()]
        given, bad = stream_input(
            parse_root(b"<r>"),
            [self.reader().elements(cuts, FILE)],
            time=self.path,
            slack=Decimal(self.slack),
            origin=Decimal(self.origin),
            late=self.late,
        )
        answer = evaluate(check(parse(query), query).query, {"s": given}, name="q", text=query)
        return Answer(answer.values, [*answer.dead, *bad], answer.late)

    def plan(self, query: str) -> PanePlan | None:
        checked = check(parse(query), query).query
        return pane_plan(standing(checked), Fraction(self.slack), Fraction(self.origin))

    def by_panes(self, query: str, plan: PanePlan, random: Random, ends: bool = True) -> tuple[str, Found]:
        """The answer put together from ranges and epochs of random lengths."""
        found = Found()
        state: State | None = None
        ranges = _cut(self.items, random)
        while ranges or state is None:
            epoch = [ranges.pop(0) for _ in range(min(len(ranges), random.choice((1, 1, 2, 5))))]
            branch = PaneWindows(plan, "q", self.stream, state, found)
            for start, data in epoch:
                counted = self.count(plan, start, data, random, found)
                if not branch.take(0, counted):
                    found.voids += 1
                    again = self.count(plan, start, data, random, Found(), branch.largest(0))
                    assert branch.take(0, again), "counted from where the stream is, it holds"
            if ends and not ranges:
                branch.end_of(0)
            branch.close()
            state = State.from_bytes(branch.save().to_bytes())
        text = "".join(found.pieces)
        frame = plan.standing
        return f"{frame.opening}{text}{frame.closing}" if text else frame.empty, found

    @property
    def stream(self) -> InputStream:
        root = parse_root(b"<r>")
        return InputStream("s", 1, root, self.reader, self.path, Fraction(self.slack), Fraction(self.origin), self.late)

    def count(
        self, plan: PanePlan, start: int, data: bytes, random: Random, found: Found, largest: Reach | None = None
    ) -> Counted:
        """Count one range, fed in pieces of random length."""
        law = PaneLaw(plan, parse_root(b"<r>"), self.path)
        counter = PaneCounter(plan.query, law, found.bury, name="q", file=FILE, largest=largest)
        template = Template.learn((each.encode(), tree) for each in self.items[:20] if (tree := _tree(each)))
        compiled = None if template is None else compile_panes(plan.query, "r", template)
        wanted = None
        if compiled is not None and template is not None:
            leaves = tuple(sorted(compiled.leaves))
            wanted = Wanted(template, leaves, tuple(leaf in compiled.numbers for leaf in leaves))
        reader = self.reader()
        shredder = Shredder(LineSplitter(self.limits, Carry(start)), self.limits)
        size = random.choice((1 << 20, 1 << 20, 1 << 20, 500, 40))
        for at in range(0, len(data), size):
            for shredded in shredder.feed(data[at : at + size], wanted):
                self._take(counter, compiled, shredded, reader, found)
        for shredded in shredder.finish():
            self._take(counter, None, shredded, reader, found)
        return Counted.from_bytes(counter.result().to_bytes())

    def _take(
        self,
        counter: PaneCounter,
        compiled: CompiledPanes | None,
        shredded: Shredded,
        reader: ElementReader,
        found: Found,
    ) -> None:
        known = shredded.fits | guided.fill(shredded, self.limits)
        for entry in map(int, np.flatnonzero(counter.judge(compiled, shredded, known))):
            found.shown += 1
            (element,) = reader.elements([shredded.cut(entry)], FILE)
            match element:
                case DeadLetter():
                    found.bury(element)
                case Item() | Punctuation():
                    counter.show(entry, element)
                case _:
                    raise AssertionError(element)
        counter.take()


def _tree(item: str):  # type: ignore[no-untyped-def]
    try:
        return parse_item(item.encode(), Limits())
    except BadItem:
        return None


def _cut(items: Sequence[str], random: Random) -> list[tuple[int, bytes]]:
    """The items in ranges, each with its offset."""
    ranges: list[tuple[int, bytes]] = []
    at = offset = 0
    while at < len(items):
        size = random.choice((1, 2, 3, 7, 20, 50))
        data = "".join(f"{item}\n" for item in items[at : at + size]).encode()
        ranges.append((offset, data))
        at, offset = at + size, offset + len(data)
    return ranges
