"""The branch that reads the tuples of a join whose streams may have accents: another trunk made them.

Tuples come in the order of the join, and the events of its streams between them, each at the place where the join heard
it (LAWS 4).
So the reader follows evolution as the join itself would: the follower is that of the subscriber's own query over the
streams, which lets accents out, changes the units of results, and ends the query that cannot go on.
Behind the first event tuples tell where their items stand among the events (`branch/marked_tuples.py`): their values
are brought into the units of the start before the query is asked, and a path that was dropped is taken from the items
that the join had taken by then.

A narrower flow of tuples is selected in the same way, by its abstract query, and passes all events on.

State is the log of events, what the last tuple told of its items, and whether the answer so far ends with a value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from anabranch.algebra.accents.events import Announced
from anabranch.algebra.accents.items import nodes
from anabranch.branch.evolution.changelog import Changelog
from anabranch.branch.intake.backlog import Key
from anabranch.branch.intake.entries import EntryReader, RawEntry, cuts, unpack
from anabranch.branch.marked_tuples import MarkedItem, TupleMarks, mark_of, marked_items
from anabranch.branch.members import AnswerWriter, BranchMember
from anabranch.branch.ports import InputStream
from anabranch.branch.remote.lines import EventMark, Layout, NoLine, mark_text, read_line
from anabranch.branch.state import BranchState
from anabranch.errors import DynamicError
from anabranch.language import check, parse, print_query
from anabranch.law.calls import PythonFunction
from anabranch.law.evolution.canonical import remeasured
from anabranch.law.inputs import Input
from anabranch.runtime.evolution.follower import Follower
from anabranch.runtime.evolution.outlet import remove
from anabranch.runtime.evolution.tracing import lineage_of
from anabranch.runtime.standing import Standing, standing
from anabranch.runtime.units import NOTHING, AnswerPiece, Units
from anabranch.sharing.forest import labels
from anabranch.sharing.loops import over_tuples
from anabranch.sharing.remote import ReadTuples
from anabranch.stream.culprits import letter_of
from anabranch.stream.elements import LONGEST_RAW, DeadLetter, Item, Place
from anabranch.stream.tree import Element

_EVENT = "event"
_NO_WINDOWS = Layout((), ())


@dataclass(frozen=True, slots=True)
class TupleQuery:
    """A query over tuples."""

    stream: str
    over_streams: Standing
    """The subscriber's query, as it was asked."""
    over_tuples: Standing
    tuple_name: str
    labels: tuple[str, ...]
    """By input: the name of its item within a tuple."""
    whole: tuple[str | None, ...]
    """By input: the name of the item itself, where it is sent whole."""
    streams: tuple[str, ...]
    """By input: the name of its stream in the subscriber's query."""
    sends: bool


@lru_cache(maxsize=1 << 10)
def tuple_query(operator: ReadTuples) -> TupleQuery:
    """The query of an operator over tuples, compiled once per process."""
    checked = check(parse(operator.text), operator.text).query
    trees = operator.tuples.trees
    left = print_query(over_tuples(checked, operator.tuples, operator.stream))
    whole = (
        tree.item[1] if any(each.whole and each.path == tree.item for each in tree.outputs) else None for tree in trees
    )
    return TupleQuery(
        operator.stream,
        standing(checked, None, operator.text),
        standing(check(parse(left), left).query, None, left),
        operator.tuples.tuple_path[1],
        labels(trees),
        tuple(whole),
        tuple(each.stream for each in trees),
        operator.sends,
    )


class TupleReader:
    """A branch over tuples, for one epoch."""

    def __init__(
        self,
        member: BranchMember[TupleQuery],
        stream: InputStream,
        state: BranchState | None,
        functions: Mapping[str, PythonFunction],
        documents: Mapping[str, Input],
    ) -> None:
        self._member = member
        self._query = member.query
        self._stream = stream
        self._reader = EntryReader(stream)
        self._units = Units(member.query.over_tuples, functions, documents)
        self._answers = AnswerWriter(member.name, member.out)
        self._registered = tuple(functions)
        self._mark: str | None = None
        """What the last tuple told of its items."""
        self._marks = TupleMarks()
        self._log = Changelog()
        self._follower: Follower | None = None
        self.aborted: dict[str, str] = {}
        if state is not None:
            self._answers.restore(state.meta["answers"])
            self._mark = state.meta["mark"]
            self._log = Changelog.from_json(state.meta["events"])
            for each in self._log.entries:
                assert isinstance(each, Announced), "windows are reached by their marks"
                self._following().hear(each)

    # --- what comes in ------------------------------------------------------------------------------------

    def feed(self, *feeds: bytes) -> None:
        """Add packed feeds, in stream order."""
        for data in feeds:
            origin, table = unpack(data)
            for cut in cuts(table):
                if not self.aborted:
                    self._take(RawEntry(origin, cut))

    def _take(self, entry: RawEntry) -> None:
        match self._reader.read(entry):
            case Item(tree, place):
                try:
                    self._line(tree, place)
                except ValueError as error:
                    raw = _shown(entry.cut.raw)
                    self._member.out.bury(DeadLetter(place, f"no tuple of this flow: {error}", raw))
                except DynamicError as error:
                    shown = [(place, _shown(entry.cut.raw))]
                    self._member.out.bury(letter_of(error, shown, 0, self._member.name))
            case _:
                pass  # no other elements are sent between tuples

    def _line(self, tree: Element, place: Place) -> None:
        if tree.name.local == _EVENT:
            mark = read_line(tree, _NO_WINDOWS)
            assert isinstance(mark, EventMark), "so its line is called"
            self._hear(mark.announced)
        elif tree.name.local == self._query.tuple_name:
            self._answers.write(self._answer(tree))
        else:
            raise NoLine(f"'{tree.name.local}' is no tuple")

    def _hear(self, announced: Announced) -> None:
        """Follow an event of a stream of the join."""
        if self._query.sends:
            self._answers.write(AnswerPiece(mark_text(EventMark(announced)), begins=False, ends=False))
            return
        input = int(announced.stream)
        if not 0 <= input < len(self._query.streams):
            raise NoLine(f"the join has no input {input}")
        event = replace(announced, stream=self._query.streams[input])
        follower = self._following()
        accents = follower.hear(event)
        if follower.aborted is not None:
            self.aborted[self._member.key] = follower.aborted
            return
        self._answers.announce(accents, json=follower.lineage.outputs.form({}) == "json")
        if self._log.add(event, let_out=bool(accents)):
            self._log.thin()

    def _following(self) -> Follower:
        """The follower of the subscriber's own query, from its first event on."""
        if self._follower is None:
            lineage = lineage_of(self._query.over_streams, self._registered)
            streams = {name: self._stream.source for names in lineage.streams for name in names}
            self._follower = Follower(lineage, self._member.policy, streams)
        return self._follower

    # --- answers ------------------------------------------------------------------------------------------

    def _answer(self, tree: Element) -> AnswerPiece:
        self._mark = self._mark if (told := mark_of(tree)) is None else told
        items = () if self._mark is None else marked_items(self._mark)
        if items and len(items) != len(self._query.labels):
            raise NoLine(f"it tells of {len(items)} items")
        if self._query.sends:
            return self._selected(tree, items)
        for number, each in enumerate(items):
            if not self._brought(tree, number, each):
                return NOTHING
        forward = None if self._follower is None else self._follower.outlet.forward
        return self._units.item(self._stream.root, tree, forward)

    def _selected(self, tree: Element, items: Sequence[MarkedItem]) -> AnswerPiece:
        """A tuple of the narrower flow, selected in the units of the start, and sent as it came."""
        piece = self._units.item(self._stream.root, tree, asked=False)
        try:
            for number, each in enumerate(items):
                self._brought(tree, number, each)
            if not self._units.item(self._stream.root, tree).text:
                return NOTHING
        except DynamicError:
            pass  # it is judged where it is read
        return piece if self._mark is None else replace(piece, text=self._marks.on(piece.text, self._mark))

    def _brought(self, tree: Element, input: int, item: MarkedItem) -> bool:
        """Bring an item of a tuple into the units of the start, without what was dropped; False where it was itself."""
        above, held = self._place(tree, input)
        fresh = remeasured(held, item.units) if item.units else held
        if fresh is not held:
            above.children = [fresh if child is held else child for child in above.children]
            fresh.parent = above
        if self._follower is None or not self._follower.has_purged:
            return True
        for path in self._follower.lost(item.number, input, fresh):
            for node in list(nodes(fresh, path)):
                if node is fresh:
                    return False
                remove(node)
        return True

    def _place(self, tree: Element, input: int) -> tuple[Element, Element]:
        """The element of an item in a tuple, and the one around it."""
        above, held = tree, _child(tree, self._query.labels[input])
        if (name := self._query.whole[input]) is not None:
            above, held = held, _child(held, name)
        return above, held

    # --- between epochs -----------------------------------------------------------------------------------

    def passed(self, time: Fraction) -> None:
        """Ignore the time: tuples have none."""

    def end(self, stream: str, partition: int) -> None:
        """Ignore the end: all tuples have been answered."""

    def save(self) -> BranchState | None:
        """The state after the epoch."""
        if self.aborted:
            return None
        meta = {"answers": self._answers.save(), "events": self._log.to_json(), "mark": self._mark}
        return BranchState(meta, {})

    @property
    def held(self) -> int:
        """No items are held."""
        return 0

    @property
    def waiting(self) -> dict[Key, int]:
        """Nothing waits for another input."""
        return {}

    @property
    def spilled(self) -> tuple[str, ...]:
        return ()


def _child(above: Element, name: str) -> Element:
    for each in above.children:
        if isinstance(each, Element) and each.name.local == name:
            return each
    raise NoLine(f"it has no '{name}'")


def _shown(raw: bytes) -> str:
    """A tuple as shown in a dead letter."""
    return raw.decode(errors="replace")[:LONGEST_RAW]
