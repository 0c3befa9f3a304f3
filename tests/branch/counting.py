"""What the tests of panes share: a stream cut into ranges and epochs at random and counted, and the law."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path as FilePath
from random import Random

import numpy as np

from anabranch.branch.panes.group import PaneGroup, Served
from anabranch.branch.panes.opening import windows_of
from anabranch.branch.panes.plan import PaneLaw, PanePlan, pane_plan
from anabranch.branch.panes.state import PaneState, pack, unpack
from anabranch.branch.ports import InputStream
from anabranch.branch.state import BranchState
from anabranch.columnar.items import untemplated as guided
from anabranch.columnar.match.forms import gathered
from anabranch.columnar.match.index import NO_MATCHES, Matcher
from anabranch.columnar.match.rows import with_computed
from anabranch.columnar.panes.counted import CountedRange, Reach
from anabranch.columnar.panes.panes import Member, PaneCounter
from anabranch.columnar.panes.query import CompiledMany, compile_many, relaxed, shared
from anabranch.columnar.scan.look import Look
from anabranch.columnar.scan.shred import Shredded, Shredder
from anabranch.columnar.scan.wanted import WantedColumns
from anabranch.language import check, parse
from anabranch.law import Answer, evaluate
from anabranch.law.inputs import stream_input
from anabranch.runtime.standing import standing
from anabranch.stream.elements import DeadLetter, Item, Place, Punctuation
from anabranch.stream.limits import NO_CAPS, CostCaps, Limits
from anabranch.stream.path import Path
from anabranch.stream.reading.lines import Carry, Cut, LineSplitter
from anabranch.stream.reading.parse import parse_root
from anabranch.stream.reading.reader import ElementReader, Format
from anabranch.stream.reading.source import Source
from anabranch.stream.tree import Element
from branch.feeding import good

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
    most: int = 0
    """The largest number of panes that were remembered between epochs."""
    capped: str | None = None
    """Why the query has ended, where it held too much."""

    def piece(self, text: str) -> None:
        self.pieces.append(text)

    def extend(self, data: bytes, pieces: int, first: int) -> None:
        self.pieces.append(data.decode())
        assert pieces > 0
        assert data[:first].decode().endswith(">"), "a piece is an element"

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
    form: Format = "lines"
    """Records of JSON are items `<i>`."""

    def __post_init__(self) -> None:
        lines = [Cut(0, len(item), item.encode()) for item in self.items]
        self.items = [cut.raw.decode() for cut in good(self.reader(), lines)]

    @property
    def data(self) -> bytes:
        return "".join(f"{item}\n" for item in self.items).encode()

    def reader(self) -> ElementReader:
        return ElementReader("s", self.form, self.limits, parse_root(b"<r>"), item="i")

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
        answer = evaluate(check(parse(query), query).query, {"s": given}, name="q")
        return Answer(answer.values, [*answer.dead, *bad], answer.late)

    def plan(self, query: str) -> PanePlan | None:
        checked = check(parse(query), query).query
        return pane_plan(standing(checked), Fraction(self.slack), Fraction(self.origin))

    def by_panes(
        self, query: str, plan: PanePlan, random: Random, ends: bool = True, caps: CostCaps = NO_CAPS
    ) -> tuple[str, Found]:
        """The answer put together from ranges and epochs of random lengths."""
        ((text, found),) = self.together([plan], random, ends, caps)
        return text, found

    def together(
        self, plans: Sequence[PanePlan], random: Random, ends: bool = True, caps: CostCaps = NO_CAPS
    ) -> list[tuple[str, Found]]:
        """The answers of several queries that are counted together, the last of which may come and go.

        With `caps`, it ends when one of them does.
        """
        found = [Found() for _ in plans]
        state: BranchState | None = None
        ranges = cut(self.items, random)
        while ranges or state is None:
            epoch = [ranges.pop(0) for _ in range(min(len(ranges), random.choice((1, 1, 2, 5))))]
            before: dict[int, PaneState] = {} if state is None else unpack(state, "q")
            group = PaneGroup()
            for number, plan in enumerate(plans):
                given = plan, "q", self.stream, before.get(number), found[number]
                group.add(number, windows_of(plan)(*given, caps=caps))
            for start, data in epoch:
                self._take_range(plans, group, start, data, random, found)
            for number in range(len(plans)):
                if ends and not ranges:
                    group.of(number).end_of(0)
            group.close(range(len(plans)))
            for number, each in enumerate(found):
                each.most = max(each.most, group.of(number).held)
                each.capped = group.of(number).capped
            if any(each.capped for each in found):
                break
            state = BranchState.from_bytes(pack(group.save()).to_bytes())
        texts = ["".join(each.pieces) for each in found]
        frames = [each.standing for each in plans]
        return [
            (f"{frame.opening}{text}{frame.closing}" if text else frame.empty, each)
            for text, frame, each in zip(texts, frames, found, strict=True)
        ]

    def _take_range(
        self,
        plans: Sequence[PanePlan],
        group: PaneGroup,
        start: int,
        data: bytes,
        random: Random,
        found: Sequence[Found],
    ) -> None:
        groups = shared([plan.query for plan in plans])
        if random.random() < 0.3:
            groups = [[number] for number in range(len(plans))]
        once = [Found() for _ in groups]
        whole = self.count([[plans[each] for each in members] for members in groups], start, data, random, once)
        widths = [relaxed([plans[each].query for each in members]).panes.width for members in groups]
        served = [Served(tuple(members), width) for members, width in zip(groups, widths, strict=True)]
        parts = random.choice(([[*range(len(groups))]], [[member] for member in range(len(groups))]))
        void = [each for part in parts for each in group.take(0, whole.part(part), served)]
        for member, numbers in enumerate(groups):
            for number in numbers:
                each = found[number]
                if number not in void:
                    each.dead += once[member].dead
                    each.shown += once[member].shown
                    continue
                each.voids += 1
                again = self.count([[plans[number]]], start, data, random, [each], group.of(number).largest(0))
                alone = Served((number,), plans[number].query.panes.width)
                assert not group.take(0, again, [alone]), "counted from where the stream is, it holds"

    @property
    def stream(self) -> InputStream:
        root = parse_root(b"<r>")
        times = self.path, Fraction(self.slack), Fraction(self.origin)
        return InputStream(Source("s", FilePath("s"), "lines", None, "r", None, *times), root, self.reader, self.late)

    def count(
        self,
        plans: Sequence[Sequence[PanePlan]],
        start: int,
        data: bytes,
        random: Random,
        found: Sequence[Found],
        largest: Reach | None = None,
    ) -> CountedRange:
        """Count one range, fed in pieces of random length; `plans` are by member those that share its count."""
        members = [self._member(served) for served in plans]
        counter = PaneCounter(
            members, lambda member, letter: found[member].bury(letter), file=FILE, largest=lambda _: largest
        )
        learned = ((each.encode(), tree) for each in self.items[:20] if (tree := self._tree(each)))
        look = Look.learn(learned, is_json=self.form == "json")
        compiled = None if look is None else compile_many([each.query for each in members], "r", look)
        wanted = matcher = None
        if compiled is not None and look is not None:
            wanted = WantedColumns.of(look, compiled.columns, compiled.numbers)
            matcher = Matcher(len(compiled.conditions), *gathered(enumerate(compiled.conditions)), wanted)
        reader = self.reader()
        shredder = Shredder(LineSplitter(self.limits, Carry(start)), self.limits)
        size = random.choice((1 << 20, 1 << 20, 1 << 20, 500, 40))
        for at in range(0, len(data), size):
            for shredded in shredder.feed(data[at : at + size], wanted):
                self._take(counter, compiled, shredded, matcher, reader, found)
        for shredded in shredder.finish():
            self._take(counter, None, shredded, None, reader, found)
        return CountedRange.from_bytes(counter.result().to_bytes())

    def _tree(self, item: str) -> Element | None:
        (element,) = self.reader().elements([Cut(0, len(item), item.encode())], FILE)
        return element.tree if isinstance(element, Item) else None

    def _member(self, plans: Sequence[PanePlan]) -> Member:
        query, law = relaxed([each.query for each in plans]), PaneLaw(plans[0], parse_root(b"<r>"), self.path)
        return Member("q", query, law, any(each.tells_firsts for each in plans))

    def _take(
        self,
        counter: PaneCounter,
        compiled: CompiledMany | None,
        shredded: Shredded,
        matcher: Matcher | None,
        reader: ElementReader,
        found: Sequence[Found],
    ) -> None:
        known = shredded.fits | guided.fill(shredded, self.limits)
        shredded = with_computed(shredded)
        matches = matcher.match(shredded) if matcher else NO_MATCHES
        assert matches is not None
        for entry in map(int, np.flatnonzero(counter.judge(compiled, shredded, known, matches))):
            (element,) = reader.elements([shredded.cut(entry)], FILE)
            for each in found:
                each.shown += 1
                if isinstance(element, DeadLetter):
                    each.bury(element)
            if not isinstance(element, DeadLetter):
                assert isinstance(element, Item | Punctuation)
                counter.show(entry, element)
        counter.take()


def one_clock(random: Random) -> Callable[[Fraction], str]:
    """How the times of a stream are written: as plain numbers, as dateTimes near 1970, or as both side by side."""
    kinds = random.choice((("plain",), ("plain",), ("iso",), ("plain", "plain", "iso"), ("iso", "iso", "plain")))

    def written(seconds: Fraction) -> str:
        if random.choice(kinds) == "plain":
            return f"{float(seconds):g}"
        moment = datetime(1970, 1, 1) + timedelta(microseconds=int(seconds * 1_000_000))
        return f"{moment.isoformat()}{random.choice(('Z', 'Z', '', '+00:00'))}"

    return written


def cut(items: Sequence[str], random: Random) -> list[tuple[int, bytes]]:
    """The items in ranges, each with its offset."""
    ranges: list[tuple[int, bytes]] = []
    at = offset = 0
    while at < len(items):
        size = random.choice((1, 2, 3, 7, 20, 50))
        data = "".join(f"{item}\n" for item in items[at : at + size]).encode()
        ranges.append((offset, data))
        at, offset = at + size, offset + len(data)
    return ranges


def check_state(stream: Stream, query: str, *, width: int, most_keys: int, most_growth: int) -> None:
    """However many keys come and go, a branch remembers few, in about as many bytes; ranges are counted in columns.

    Panes are so wide; `most_growth` is how far the sizes of states may lie apart.
    """
    plan = stream.plan(query)
    assert plan is not None
    state: PaneState | None = None
    lines = stream.data.splitlines(keepends=True)
    sizes: list[int] = []
    whole = Found()
    for at in range(0, len(lines), 100):
        group = PaneGroup()
        group.add(7, windows_of(plan)(plan, "q", stream.stream, state, whole))
        counted = stream.count([[plan]], sum(map(len, lines[:at])), b"".join(lines[at : at + 100]), Random(1), [whole])
        assert not group.take(0, counted, [Served((7,), Fraction(width))])
        group.close((7,))
        blob = pack(group.save()).to_bytes()
        state = unpack(BranchState.from_bytes(blob), "q")[7]
        assert 0 < len(state.keys) <= most_keys
        sizes.append(len(blob))
    assert whole.shown <= 2 * len(sizes), "items of the usual look are counted in columns"
    assert max(sizes) - min(sizes) < most_growth
    assert stream.by_law(query).text.startswith("".join(whole.pieces))
