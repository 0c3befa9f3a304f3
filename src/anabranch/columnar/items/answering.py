"""The subscriptions of one stream, answered a few thousand items at a time.

A range passes `bytes -> batches -> stretches -> matches -> answers`, a loop in `spark/epoch/passage.py`.
The conditions of queries that compile are matched together (`columnar/match/index.py`), and their answers laid out,
without a step of Python for any single item or query.
*Takers* see the same items in the same pass: they gather what the branches of windows and joins need.
Where the stream evolves (`evolution.py`), a batch is answered in stretches in which nothing changes.
The rest is read by the parser and answered by the reference evaluator, one by one and in order: items of another look,
items whose condition is unclear, and every item for a query that does not compile.
So the way that an item takes never shows in an answer.

Answers are handed out in one buffer, those to each query together, with rows that say to which subscription each
belongs; answers from columns and pieces from the law are merged in the order of the items.

Queries that differ in constants only are compiled together, and answers to equal queries are in the buffer once.
The look of items is learned from the stream, and grows where items do not fit it (`growing_look.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from time import thread_time
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.items import untemplated
from anabranch.columnar.items.coverage import Coverage, ReadCounts
from anabranch.columnar.items.evolution import (
    NO_UNITS,
    Followed,
    Follows,
    PartitionCourse,
    StretchUnits,
    changes,
    suspects,
    units_of,
)
from anabranch.columnar.items.kernels import Fragments, MadeTexts, OwnedTexts
from anabranch.columnar.items.layout import NO_FRAGMENTS, NO_TEXTS, Dealt, Scratch, computed_texts, dealt
from anabranch.columnar.items.learned_program import LearnedProgram, PieceSample
from anabranch.columnar.items.programs import Compile, ItemQueries, ItemQuery, Program
from anabranch.columnar.items.stretch import Stretch
from anabranch.columnar.match.index import NO_MATCHES, Matches
from anabranch.columnar.match.rows import with_computed
from anabranch.columnar.messages import Messages
from anabranch.columnar.scan.decoded import CANONICAL, is_left_to_law
from anabranch.columnar.scan.kernels import Flags, Indices, Places
from anabranch.columnar.scan.shred import Shredded, Shredder
from anabranch.errors import DynamicError
from anabranch.law.steps import Exhausted
from anabranch.stream.elements import Accent, DeadLetter, Item, Punctuation, Region, StreamToken, Update
from anabranch.stream.limits import Limits
from anabranch.stream.reading.json_items import item_text
from anabranch.stream.reading.lines import Cut
from anabranch.stream.reading.reader import Format
from anabranch.stream.schema import Schema
from anabranch.stream.tree import Element

ROW = np.dtype(
    [(name, "<i8") for name in ("subscription", "offset", "length", "entries", "first")] + [("check", "<u4")]
)
"""`entries` answers to one subscription at `offset`, of which the first is `first` bytes long; and their checksum."""
Rows: TypeAlias = NDArray[Any]
_NONE = np.empty(0, np.int64)
_NOBODY: frozenset[int] = frozenset()


class Answers(Protocol):
    """The output of answers and dead letters."""

    def lay(self, data: memoryview, rows: Rows) -> None:
        """Take answers, whose buffer is reused afterwards; the rows have no checksums yet."""

    def bury(self, letter: DeadLetter) -> None:
        """Write a dead letter."""


class QueryAnswer(NamedTuple):
    """The answer of the law to a query for an entry."""

    query: int
    entry: int
    data: bytes


class Delivery:
    """The subscribers of the queries of a stream, to which answers are delivered."""

    def __init__(self, queries: Sequence[ItemQueries]) -> None:
        asked = [[number for number, _ in each.subscribers] for group in queries for each in group.members]
        self.count = len(asked)
        self.scratch = Scratch()
        self._bounds = np.cumsum([0, *map(len, asked)])
        self._numbers = np.array([number for each in asked for number in each], np.int64)

    def of(self, shredded: Shredded, program: Program | None, matches: Matches, made: MadeTexts) -> AnswerBatch:
        """The answers of columns to the entries of one batch; `made` are the computed texts of the matches."""
        if program is None or not self.count:  # then all matches are those of takers
            none = NO_MATCHES.conditions, NO_MATCHES.pairs, _NONE
            return AnswerBatch(self, shredded, NO_TEXTS, NO_FRAGMENTS, _NONE, *none)
        given = program.sets[matches.conditions]
        gives = program.gives[given]  # some queries match and give nothing, and takers are no queries
        pairs = given, matches.conditions, matches.pairs, np.arange(len(given))
        if not gives.all():
            pairs = given[gives], matches.conditions[gives], matches.pairs[gives], np.flatnonzero(gives)
        return AnswerBatch(self, shredded, made, program.fragments, *pairs)

    def rows(self, found: Dealt) -> Rows:
        """One row for each subscriber and query with answers."""
        answered = np.flatnonzero(found.counts)
        counts = self._bounds[answered + 1] - self._bounds[answered]
        query = np.repeat(answered, counts)
        within = np.arange(len(query)) - np.repeat(np.cumsum(counts) - counts, counts)
        rows = np.zeros(len(query), ROW)
        rows["subscription"] = self._numbers[self._bounds[query] + within]
        rows["offset"] = found.begins[query]
        rows["length"] = found.sizes[query]
        rows["entries"] = found.counts[query]
        rows["first"] = found.firsts[query]
        return rows


@dataclass(frozen=True, slots=True)
class AnswerBatch:
    """Answers to the entries of a batch, in the order of the entries."""

    delivery: Delivery
    shredded: Shredded
    made: MadeTexts
    fragments: Fragments
    given: Indices
    """By answer: the set of fragments that it is made of."""
    queries: Places
    """By answer: its query."""
    entries: Places
    places: Indices
    """By answer: the place of its computed texts."""

    def deliver(self, entries: range, pieces: Sequence[QueryAnswer], out: Answers) -> None:
        """Hand out the answers to some entries, merged with the pieces of the law for them."""
        given, queries, at, places = self.given, self.queries, self.entries, self.places
        if entries.start or entries.stop <= at.max(initial=-1):
            mine = (at >= entries.start) & (at < entries.stop)
            given, queries, at, places = given[mine], queries[mine], at[mine], places[mine]
        if pieces:
            at = np.concatenate([at, np.array([piece.entry for piece in pieces], np.int32)])
            order = np.argsort(at, kind="stable")
            at = at[order]
            given = np.concatenate([given, ~np.arange(len(pieces))])[order]
            queries = np.concatenate([queries, np.array([piece.query for piece in pieces], np.int32)])[order]
            places = np.concatenate([places, np.zeros(len(pieces), np.int64)])[order]
        if len(queries):
            ready = [piece.data for piece in pieces]
            texts, scratch = OwnedTexts(given, at, queries, places), self.delivery.scratch
            found = dealt(self.shredded, self.made, self.fragments, texts, self.delivery.count, ready, scratch)
            out.lay(found.data.data, self.delivery.rows(found))


class SingleItemAnswers:
    """Answers single items by the law, and holds the pieces."""

    def __init__(self, members: Sequence[ItemQuery], out: Answers, course: PartitionCourse | None) -> None:
        self._members = members
        self._out = out
        self._course = course
        self._pieces: list[QueryAnswer] = []
        self.held = 0

    def answer(self, entry: int, item: Item, queries: Iterable[int]) -> None:
        """Answer the queries that columns have left open for an entry."""
        overruns = self._course.overruns if self._course else None
        for number in queries:
            if overruns is not None and number in overruns.silent:
                continue
            member, began = self._members[number], thread_time()
            try:
                follows = self._course.follows if self._course else None
                piece = follows.piece(number, item) if follows else member.slow(item.tree)
            except DynamicError as error:  # LAWS 2.4: it concerns this query and this item only
                raw = item_text(item.tree)
                for _, name in member.subscribers:
                    self._out.bury(DeadLetter(item.place, error.message, raw, error.code, name))
                if overruns is not None and isinstance(error, Exhausted):
                    overruns.note(number, item.place.offset)
            else:
                self.add(number, entry, piece)
            if overruns is not None:
                overruns.cost(number, thread_time() - began)

    def add(self, number: int, entry: int, text: str) -> None:
        """Hold a piece of the answer to a query."""
        if text:
            self._pieces.append(QueryAnswer(number, entry, text.encode()))
            self.held += len(text)

    def take(self) -> list[QueryAnswer]:
        """Take out the held pieces."""
        pieces, self._pieces, self.held = self._pieces, [], 0
        return pieces


_HELD = 4 << 20
"""How many bytes of slow answers are held before they are handed out."""

Shown: TypeAlias = Item | Punctuation | Accent | Region | Update | StreamToken | DeadLetter
"""The elements that takers see; of dead letters only those that leave paths in doubt (LAWS 4.5)."""


class ReadEntry(NamedTuple):
    """An entry that was parsed and judged."""

    entry: int
    element: Shown | None
    """None for a bad element that leaves nothing in doubt."""
    added: Sequence[tuple[int, str]] = ()
    """By query: what the entry adds to its answer though it is no item, as an accent does."""


class Taker(Protocol):
    """Gathers what branches need of the items of one range, batch by batch: `judge`, `show`, `take`."""

    def judge(self, compiled: Any, shredded: Shredded, known: Flags, matches: Matches) -> Flags:
        """Begin a batch; returns the entries that must be shown.

        `known` are those that are good items for certain, `matches` those of its conditions: none where `compiled` is
        None.
        """

    def show(self, entry: int, element: Shown) -> None:
        """See one of these entries; a bad one is not shown."""

    def take(self) -> None:
        """End the batch."""


class Batch(NamedTuple):
    """A few thousand entries in columns, and how they were read."""

    entries: Stretch
    counts: ReadCounts


@dataclass(frozen=True, slots=True)
class MatchedStretch:
    """A stretch with the answers of columns to it, and the entries that are still to be parsed."""

    stretch: Stretch
    answers: AnswerBatch
    members: Sequence[ItemQuery]
    open_entries: Indices
    """The good entries that the law must answer."""
    asked: Callable[[int], Sequence[int]]
    """The queries that the law must answer for an entry."""
    takers: Sequence[Taker]
    shown: Sequence[Flags]
    """By taker: the entries that it must be shown."""
    unclear: int
    course: PartitionCourse | None

    def unread(self) -> Iterator[tuple[int, Cut]]:
        """The entries to be parsed, in order."""
        unread = ~self.stretch.known
        unread[self.open_entries] = True
        for flags in self.shown:
            unread |= flags
        return ((entry, self.stretch.shredded.cut(entry)) for entry in map(int, np.flatnonzero(unread)))

    def answer(self, elements: Iterable[ReadEntry], out: Answers) -> ReadCounts:
        """Hand out the answers to all entries, given those of `unread` as elements; returns the number of items."""
        known = self.stretch.known
        items = int(np.count_nonzero(known))
        slow = SingleItemAnswers(self.members, out, self.course)
        begin = 0
        for entry, element, added in elements:
            for number, text in added:
                slow.add(number, entry, text)
            if element is None:
                continue
            for taker, flags in zip(self.takers, self.shown, strict=True):
                if flags[entry]:
                    taker.show(entry, element)
            if not isinstance(element, Item):
                continue
            items += not known[entry]
            slow.answer(entry, element, self.asked(entry))
            if slow.held > _HELD:
                self.answers.deliver(range(begin, entry + 1), slow.take(), out)
                begin = entry + 1
        self.answers.deliver(range(begin, len(known)), slow.take(), out)
        for taker in self.takers:
            taker.take()
        return ReadCounts(items, unclear=self.unclear)


class StreamAnswers:
    """Answers the items of one stream; the look that it learns affects its speed only."""

    def __init__(
        self,
        queries: Sequence[ItemQueries],
        form: Format,
        root: Element,
        limits: Limits,
        schema: Schema | None = None,
        compiles: Sequence[Compile] = (),
        *,
        item: str = "item",
        together: bool = True,
    ) -> None:
        """`schema` is given where the stream is strict, `compiles` where there will be takers: one for each.

        Records of JSON are called `item`.
        Queries are matched by an index if `together`, else each by itself.
        """
        self._members = [member for group in queries for member in group.members]
        self._delivery = Delivery(queries)
        self._limits = limits
        self._schema = schema
        self._learned = LearnedProgram(queries, compiles, form, root, limits, schema, item=item, together=together)
        self._settled: tuple[Program, Sequence[Followed], StretchUnits] | None = None
        """The units of the last stretch, with the program and the groups that they are for."""

    def batches(
        self, shredder: Shredder, piece: bytes | Messages | None, course: PartitionCourse | None = None
    ) -> Iterator[Batch]:
        """The entries that end in the next piece of a range (None for the end of input), in columns.

        Each batch must be answered before the next is taken; `course` is None where a stream has no accents.
        """
        if piece is None:
            for shredded in shredder.finish():
                yield Batch(self._entries(shredded, course), ReadCounts())
            return
        self._learned.begin(shredder, piece)
        wanted = self._program.wanted if self._program else None
        sample = PieceSample()
        for shredded in shredder.feed(piece, wanted):
            entries = self._entries(shredded, course)
            fitting = int(np.count_nonzero(shredded.fits))
            yield Batch(entries, ReadCounts(by_template=shredded.templated, by_scanner=fitting - shredded.templated))
            sample.take(shredded)
        self._learned.grow(sample)

    @property
    def coverage(self) -> Coverage:
        """Which subscriptions are answered in columns, for the look that is known."""
        return self._learned.coverage

    @property
    def _program(self) -> Program | None:
        return self._learned.program

    def _entries(self, shredded: Shredded, course: PartitionCourse | None) -> Stretch:
        known = shredded.fits if self._schema else shredded.fits | untemplated.fill(shredded, self._limits)
        shredded = with_computed(shredded)
        return Stretch(shredded, known, changes(course, shredded, ~known) if course else {})

    def matched(
        self, stretch: Stretch, takers: Sequence[Taker] = (), course: PartitionCourse | None = None
    ) -> Iterator[MatchedStretch]:
        """A stretch with its matches, in parts where these are too many; each part must be answered before the next."""
        doubtful = suspects(course, stretch.shredded, stretch.known, stretch.controls) if course else None
        if doubtful is not None:
            stretch = stretch.without(doubtful)
        shredded, known = stretch.shredded, stretch.known
        program = self._program if shredded.wanted and not stretch.has_no_item else None
        follows, silent = (course.follows, course.silent) if course else (None, _NOBODY)
        units = self._units(program, follows)
        found = self._matches(program, shredded, silent, units)
        if found is None:
            middle = len(known) // 2
            for half in (stretch.part(0, middle), stretch.part(middle, len(known))):
                yield from self.matched(half, takers, course)
            return
        matches, taken = found
        matches, made = self._computed(program, shredded, _without_marked(program, shredded, matches))
        open_entries, asked = self._asked(program, matches, known, silent, units)
        shown = self._judged(program, shredded, known, taken, takers)
        answers = self._delivery.of(shredded, program, matches, made)
        mine = matches.open_entries[matches.open_conditions < len(self._members)]
        unclear = int(np.count_nonzero(shredded.fits[mine]))
        yield MatchedStretch(stretch, answers, self._members, open_entries, asked, takers, shown, unclear, course)

    def _units(self, program: Program | None, follows: Follows | None) -> StretchUnits:
        """The units in which queries are answered in a stretch; cached as long as nothing changes."""
        if program is None or follows is None:
            return NO_UNITS
        held, groups = self._settled, follows.groups
        if held is None or held[0] is not program or held[1] is not groups:
            held = self._settled = program, groups, units_of(program, program.wanted.look, groups)
        return held[2]

    def _matches(
        self, program: Program | None, shredded: Shredded, silent: frozenset[int], units: StretchUnits
    ) -> tuple[Matches, Matches] | None:
        """The matches of queries, and those of takers, in the units of the place; None if they are too many."""
        if program is None:
            return NO_MATCHES, NO_MATCHES
        there = units.applied(shredded, program)
        found = program.matcher.match(there)
        if found is None or not (silent or units.by_law or there is not shredded):
            return None if found is None else (found, found)
        gone = np.zeros(found.count, np.bool_)
        gone[[*silent, *units.by_law]] = True
        mine = found.without(gone)
        taken = found if there is shredded else program.matcher.match(shredded)
        return None if taken is None else (mine, taken)

    def _computed(self, program: Program | None, shredded: Shredded, matches: Matches) -> tuple[Matches, MadeTexts]:
        """The computed texts of the matches; matches of which a text is unclear are left to the law."""
        if program is None or not any(program.made):
            return matches, NO_TEXTS
        given = program.sets[matches.conditions]
        asked = matches.pairs, matches.conditions, program.constants
        made, unclear = computed_texts(shredded, program.made, given, *asked)
        if not unclear.any():
            return matches, made
        kept = np.flatnonzero(~unclear)
        return matches.opened(unclear), made._replace(starts=made.starts[:, kept], ends=made.ends[:, kept])

    def _asked(
        self, program: Program | None, matches: Matches, known: Flags, silent: frozenset[int], units: StretchUnits
    ) -> tuple[Indices, Callable[[int], Sequence[int]]]:
        """The good entries that the law must answer, and for each of them which queries."""
        others: Sequence[int] = range(len(self._members)) if program is None else program.others
        if silent or units.by_law:
            others = sorted({*others, *units.by_law} - silent)
        if program is None:
            return np.flatnonzero(known) if others else _NONE, lambda entry: others
        mine = matches.open_conditions < len(self._members)
        queries, entries = matches.open_conditions[mine], matches.open_entries[mine]

        def asked(entry: int) -> Sequence[int]:
            first, last = np.searchsorted(entries, [entry, entry + 1])
            found: list[int] = queries[first:last].tolist()
            return sorted([*found, *others])

        return np.flatnonzero(known) if others else entries[known[entries]], asked

    def _judged(
        self, program: Program | None, shredded: Shredded, known: Flags, matches: Matches, takers: Sequence[Taker]
    ) -> list[Flags]:
        """Which entries each taker must be shown; items with marks do not fit for takers."""
        marked = shredded.marks != CANONICAL
        if marked.any():
            shredded, matches = shredded.unfit(marked), matches.opened(marked[matches.pairs])
        if program is None:
            return [taker.judge(None, shredded, known, NO_MATCHES) for taker in takers]
        taken = zip(takers, program.taken, program.shares, strict=True)
        return [taker.judge(compiled, shredded, known, matches.part(*share)) for taker, compiled, share in taken]


def _without_marked(program: Program | None, shredded: Shredded, matches: Matches) -> Matches:
    """The matches; those whose answers cannot be copied out of their items are left to the law."""
    if program is None or not shredded.marks.any():
        return matches
    unclear = is_left_to_law(shredded.marks[matches.pairs], program.copied[program.sets[matches.conditions]])
    return matches.opened(unclear) if unclear.any() else matches
