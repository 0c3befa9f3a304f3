"""Appends the results of a peer's epochs to the flows that it makes.

For a usual epoch that is the answer to the flow's query; before it the first item of the epoch, and behind it the items
with the largest progress, unless they are in the answer anyway (`spark/evolution/progress.py`).
So readers of the flow judge late items and closed windows as if they had seen everything.
An epoch with anything else is sent unchanged, read again and written again (`verbatim`).
Behind the first accent the meaning of conditions depends on when a subscription began: items are read again, too, and
those that somebody selects are sent in parts (`narrowing.py`).
So are items of JSON, of which each is a line, and those of several partitions, always; those that show the progress of
their partition stand in their places.

The sending position is durable, and written after the links themselves: after a kill in between, the same is sent
again, and found there.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple, TypeAlias

from anabranch.errors import BadItem, DynamicError, StateError
from anabranch.peers.links import Link
from anabranch.peers.narrowing import NarrowedItems, evaluator, stays_whole
from anabranch.peers.programs import FLOW_PREFIX, MadeFlow, PeerProgram
from anabranch.spark.answers.log import AnswerLog
from anabranch.spark.answers.segments import RANGE_PROGRESS
from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Manifest, Manifests
from anabranch.spark.evolution.progress import ProgressAxis, RangeProgress, Top, numbers_at
from anabranch.spark.evolution.views import KnownLog, KnownLogs, known_log
from anabranch.spark.intake.order import OrderLog
from anabranch.spark.intake.order_logs import epoch_ranges
from anabranch.spark.intake.range_reader import RangeReader
from anabranch.spark.intake.ranges import Range
from anabranch.spark.plan.epoch_plan import Plan
from anabranch.spark.plan.files import Plans
from anabranch.stream.elements import LONGEST_RAW, DeadLetter, Item, StreamElement
from anabranch.stream.limits import DOCUMENT, Limits
from anabranch.stream.path import TimeScale
from anabranch.stream.reading.json_items import to_json, write_control
from anabranch.stream.reading.parse import parse_item
from anabranch.stream.reading.source import KnownStream
from anabranch.stream.reading.wire import doubt_tree, write, write_came, write_doubt
from anabranch.stream.tree import STREAM_NAMESPACE, Element

_MICROSECONDS = 1_000_000
_OPENING = re.compile(r"<(?:([^\s/>:]+):)?[^\s/>:]+")


def verbatim(
    checkpoint: Checkpoint, epoch: int, plan: Plan, stream: KnownStream, *, items: bool = True
) -> Iterator[tuple[int, str]]:
    """The elements of a stream in an epoch, or all but its items, as text, each with the number of its partition."""
    for reach, element in elements(checkpoint, epoch, plan, stream):
        text = _text(element, stream, reach) if items or not isinstance(element, Item) else None
        if text is not None:
            yield int(reach.partition), text


def elements(
    checkpoint: Checkpoint, epoch: int, plan: Plan, stream: KnownStream
) -> Iterator[tuple[Range, StreamElement | DeadLetter]]:
    """The elements of a stream in an epoch, each with its range."""
    carries = Manifests(checkpoint.manifests).load(epoch - 1).carries if epoch else {}
    root = stream.root()
    for reach in epoch_ranges(checkpoint, epoch):
        if reach.mark is None and reach.stream == stream.name:
            before = carries.get(reach.key)
            carry = before.carry if before and before.number == reach.number else None
            for element in RangeReader(stream, root, plan.limits, reach, carry, accents=plan.accents):
                yield reach, element


def _text(element: StreamElement | DeadLetter, stream: KnownStream, reach: Range) -> str | None:
    has_none = not stream.source.is_timed and reach.arrived is not None and not stream.source.is_divided
    came = Decimal(reach.arrived or 0) / _MICROSECONDS if has_none else None
    if stream.source.format == "json":
        return _line(element, came)
    match element:
        case DeadLetter(raw=raw, doubts=doubts):
            alone = _alone(raw) if doubts and came is None and len(raw) < LONGEST_RAW else None
            return alone or "".join(write_doubt(each, came) for each in doubts) or None
        case Item(at=at) if (time := came if at is None else at) is not None:
            return write_came(element, time)
        case _:
            return write(replace(element, at=came) if element.at is None else element)


def _line(element: StreamElement | DeadLetter, came: Decimal | None) -> str | None:
    """An element of a stream of JSON as a line, with its types."""
    match element:
        case DeadLetter(doubts=doubts):
            return "".join(f"{write_control(doubt_tree(each, came))}\n" for each in doubts) or None
        case _:
            return f"{to_json(replace(element, at=came) if element.at is None else element)}\n"


def root_on_link(stream: KnownStream) -> str:
    """The root of documents that carry all of a stream; lines of JSON have none."""
    return "" if stream.source.format == "json" else stream.form.root


def _alone(raw: str) -> str | None:
    """An accent that can be parsed without its document's root, which may have declared its prefix.

    None where there is none.
    """
    front = _OPENING.match(raw)
    if front is None:
        return None
    declaration = f' xmlns{":" if front[1] else ""}{front[1] or ""}="{STREAM_NAMESPACE}"'
    for text in (raw, f"{front[0]}{declaration}{raw[front.end() :]}"):
        with suppress(BadItem):
            if parse_item(text.encode(), DOCUMENT).name.uri == STREAM_NAMESPACE:
                return text
    return None


@dataclass(frozen=True, slots=True)
class Sent:
    """The amount sent of a flow."""

    bytes: int = 0
    items: int = 0
    documents: int = 0

    def plus(self, size: int, items: int) -> Sent:
        return Sent(self.bytes + size, self.items + items, self.documents + 1)


@dataclass(slots=True)
class SendProgress:
    """The sending position of a peer, as on disk."""

    next: int = 0
    """The next epoch to send."""
    tops: dict[str, dict[str, float]] = field(default_factory=dict)
    """By stream and axis: the largest value so far."""
    sent: dict[str, Sent] = field(default_factory=dict)
    """By flow."""
    begun: dict[str, dict[str, int]] = field(default_factory=dict)
    """By flow and subscription that depends on it: the first epoch of this peer that the subscription sees.

    -1 where it began before this peer made the flow.
    """


class Sender:
    """Sends the flows of a peer; nobody else writes to its links."""

    def __init__(self, checkpoint: Checkpoint, record: Path, links: Path) -> None:
        self._checkpoint = checkpoint
        self._record = record
        self._links = links
        self._log = AnswerLog(checkpoint)
        self._plans = Plans(checkpoint)
        self._orders: dict[str, OrderLog] = {}
        self._logs: KnownLogs = {}
        self.reached = durable.read_record(SendProgress, record) if record.exists() else SendProgress()

    def begin(self, program: PeerProgram, new: Collection[str]) -> None:
        """Note where new subscriptions behind the flows of a program begin; everything read before has been sent."""
        before, now = self.reached.begun, self.reached.next
        begun = {
            each.flow: {name: before.get(each.flow, {}).get(name, now if name in new else -1) for name in each.behind}
            for each in program.made
        }
        if begun != before:
            self.reached.begun = begun
            self._save()

    def send(self, program: PeerProgram, plan: int) -> None:
        """Send the results of new epochs, under the plan with this number."""
        epochs = self._log.manifests.epochs()
        for epoch in range(self.reached.next, epochs.stop):
            self._send_epoch(program, plan, self._log.manifests.load(epoch))
            self.reached.next = epoch + 1
            self._save()

    def read(self, stream: str, partitions: int) -> list[str]:
        """By partition of a stream: the first file that may still be read here or later."""
        if stream not in self._orders:
            self._orders[stream] = OrderLog.of(self._checkpoint, stream)
        order = self._orders[stream]
        order.refresh()
        offsets = self._log.manifests.load(self.reached.next - 1).offsets if self.reached.next else {}
        found = ((order.stretches(str(each)), offsets.get(f"{stream}/{each}")) for each in range(partitions))
        return [begun[min(at["file"], len(begun) - 1)].file if at else "" for begun, at in found]

    def note(self, flow: str, size: int, items: int) -> None:
        """Count what was sent of a flow that was only handed on."""
        self._count(flow, size, items)
        self._save()

    def _count(self, flow: str, size: int, items: int) -> None:
        self.reached.sent[flow] = self.reached.sent.get(flow, Sent()).plus(size, items)

    def _save(self) -> None:
        durable.write_record(self._record, self.reached)

    def _send_epoch(self, program: PeerProgram, plan: int, manifest: Manifest) -> None:
        given = self._plans.ran(manifest.epoch)
        streams = {each.name: each for each in given.streams}
        courses = self._courses(manifest, given)
        failed = {letter.subscription for letter in self._log.buried(manifest)} if manifest.dead_letters else set()
        for made in program.made:
            stream = streams.get(made.stream)
            if stream is None:
                continue
            course = courses.get((made.stream, 0))
            if made.kind == "results":
                self._send_results(made, plan, manifest, given)
                continue
            if made.kind in ("parts", "lines"):
                self._send_parts(made, plan, manifest, given, stream, courses)
                continue
            content: _EpochContent | None = None
            if made.kind == "selection" and course is not None and not course.odd:
                if course.first is None:
                    continue
                if made.stream in manifest.evolution:
                    content = self._narrowed(made, manifest, given, stream, course)
                elif FLOW_PREFIX + made.flow not in failed:
                    content = self._selected(made, manifest, given, stream, course)
            if content is None:
                self._send_all(made, plan, manifest.epoch, given, stream)
            else:
                size = self._link(made, stream).append(plan, manifest.epoch + 1, root_on_link(stream), content.texts)
                self._count(made.flow, size, content.items)

    # --- usual epochs ---------------------------------------------------------------------------------------

    def _courses(self, manifest: Manifest, plan: Plan) -> _Courses:
        """The progress of partitions in an epoch, which is odd if it falls behind what was reached before."""
        found: dict[tuple[str, int], RangeProgress] = {}
        for chunk in self._log.chunks(manifest, RANGE_PROGRESS):
            for line in self._log.text(chunk).splitlines():
                course = RangeProgress.from_json(line)
                axes = plan.axes(plan.stream(course.stream).source) or ()
                before = found.get(key := (course.stream, course.partition))
                found[key] = course if before is None else before.then(course, axes)
        for (name, partition), course in found.items():
            axes = plan.axes(plan.stream(name).source) or ()
            tops = self.reached.tops.setdefault(f"{name}/{partition}" if partition else name, {})
            earlier = tuple(Top(tops[each.path], "") if each.path in tops else None for each in axes)
            held = RangeProgress(name, None, earlier, (None,) * len(axes)).then(course, axes)
            found[name, partition] = replace(course, odd=held.odd)
            tops |= {axis.path: top.value for axis, top in zip(axes, held.tops, strict=True) if top is not None}
        return found

    def _selected(
        self, made: MadeFlow, manifest: Manifest, given: Plan, stream: KnownStream, course: RangeProgress
    ) -> _EpochContent | None:
        """The selected items; None where those would not show the progress."""
        number = next(each.id for each in given.subscriptions if each.name == FLOW_PREFIX + made.flow)
        chunks = self._log.chunks(manifest, number)
        root = stream.root()

        def sent(item: Element) -> str | None:
            return evaluator(made.text).item(root, item).text or None

        unselected = _unselected(course, sent, stream, given.axes(stream.source) or ())
        if unselected is None:
            return None
        texts = map(self._log.text, chunks)
        return _EpochContent.of(course, unselected, texts, sum(each.entries for each in chunks))

    def _narrowed(
        self, made: MadeFlow, manifest: Manifest, given: Plan, stream: KnownStream, course: RangeProgress
    ) -> _EpochContent | None:
        """The parts of items that somebody selects, in a stream that has evolved; None where all of it is sent."""
        items = self._narrowed_items(made, manifest, given, stream)
        if items is None:
            return None
        axes = given.axes(stream.source) or ()
        texts: list[str] = []
        for _, element in elements(self._checkpoint, manifest.epoch, given, stream):
            if not isinstance(element, Item) or items.is_bad(element.tree):
                return None
            text = items.text(element.tree)
            texts += [] if text is None else [text]
        unselected = _unselected(course, items.text, stream, axes)
        return None if unselected is None else _EpochContent.of(course, unselected, texts, len(texts))

    def _send_parts(
        self, made: MadeFlow, plan: int, manifest: Manifest, given: Plan, stream: KnownStream, courses: _Courses
    ) -> None:
        """Send of each partition, read again, the parts of items that are selected or show its progress, or all."""
        axes = given.axes(stream.source) or ()
        partitions: dict[int, list[tuple[Range, StreamElement | DeadLetter]]] = {}
        for reach, element in elements(self._checkpoint, manifest.epoch, given, stream):
            partitions.setdefault(int(reach.partition), []).append((reach, element))
        for partition, found in partitions.items():
            course = courses.get((made.stream, partition))
            texts: list[str] | None = None
            if course is not None and not course.odd:
                items = self._narrowed_items(made, manifest, given, stream, partition)
                texts = None if items is None else _parts(items, [element for _, element in found], axes)
            if texts is None:
                texts = [text for reach, each in found if (text := _text(each, stream, reach)) is not None]
            if texts:
                root = root_on_link(stream)
                size = self._link(made, stream).append(plan, manifest.epoch + 1, root, texts, partition)
                self._count(made.flow, size, len(texts))

    def _narrowed_items(
        self, made: MadeFlow, manifest: Manifest, given: Plan, stream: KnownStream, partition: int = 0
    ) -> NarrowedItems | None:
        """What finds the parts of a stream's items that a flow carries; None where all of the stream is sent."""
        if not made.is_part:
            return None
        if made.stream not in manifest.evolution:
            return NarrowedItems(made, stream)
        log = self._known_log(stream).up_to(manifest.epoch)
        first_epochs = self.reached.begun[made.flow].values()
        if -1 in first_epochs or stays_whole(log, given.axes(stream.source) or ()) is not None:
            return None
        return NarrowedItems(made, stream, log, first_epochs, partition)

    def _known_log(self, stream: KnownStream) -> KnownLog:
        """The log of a stream that has evolved; only the parts of the newest one are there for good."""
        while True:
            newest = self._log.manifests.newest()
            assert newest is not None, "what is sent was committed"
            try:
                return known_log(self._checkpoint.evolution, stream, newest.evolution[stream.name], self._logs)
            except StateError:
                if self._log.manifests.newest() == newest:
                    raise

    def _send_results(self, made: MadeFlow, plan: int, manifest: Manifest, given: Plan) -> None:
        """Send windows, which show their own progress, or tuples, which need none (`branch/remote/lines.py`)."""
        number = next(each.id for each in given.subscriptions if each.name == FLOW_PREFIX + made.flow)
        chunks = self._log.chunks(manifest, number)
        if chunks:
            content = map(self._log.text, chunks)
            size = Link.of(self._links, made.flow).append(plan, manifest.epoch + 1, made.root, content)
            self._count(made.flow, size, sum(each.entries for each in chunks))

    # --- others ---------------------------------------------------------------------------------------------

    def _send_all(self, made: MadeFlow, plan: int, epoch: int, given: Plan, stream: KnownStream) -> None:
        partitions: dict[int, list[str]] = {}
        for partition, text in verbatim(self._checkpoint, epoch, given, stream):
            partitions.setdefault(partition, []).append(text)
        for partition, texts in partitions.items():
            size = self._link(made, stream).append(plan, epoch + 1, root_on_link(stream), texts, partition)
            self._count(made.flow, size, len(texts))

    def root(self, stream: str) -> str:
        """The root around the documents of a stream that has begun, as text."""
        found = self._plans.newest()
        assert found is not None, "a stream that has begun was read in an epoch"
        return root_on_link(found.stream(stream))

    def elements_so_far(self, stream: str, *, items: bool = True) -> Iterator[tuple[int, str]]:
        """The elements of a stream so far, or all but its items: the text of each, and the number of its partition."""
        for epoch in self._log.manifests.epochs():
            given = self._plans.ran(epoch)
            for each in given.streams:
                if each.name == stream:
                    yield from verbatim(self._checkpoint, epoch, given, each, items=items)

    def _link(self, made: MadeFlow, stream: KnownStream) -> Link:
        return Link.of(self._links, made.flow, len(stream.source.partitions))


_Courses: TypeAlias = Mapping[tuple[str, int], RangeProgress]
"""By stream and partition: its progress in an epoch."""


class _EpochContent(NamedTuple):
    """What is sent of an epoch, and how many items it holds."""

    texts: Iterable[str]
    items: int

    @staticmethod
    def of(course: RangeProgress, unselected: Sequence[str], texts: Iterable[str], items: int) -> _EpochContent:
        """Selected items, and between the first of the epoch and others those that show its progress."""
        before = [each for each in unselected if each == course.first]
        behind = [each for each in unselected if each != course.first]
        return _EpochContent((*before, *texts, *behind), items + len(unselected))


def _parts(
    items: NarrowedItems, given: Iterable[StreamElement | DeadLetter], axes: Iterable[ProgressAxis]
) -> list[str] | None:
    """What is sent of items that stand in their places, also of those that show the progress; None for all of them."""
    ways = [(each.path.split("/"), TimeScale(each.per_second)) for each in axes]

    def shown(item: Element) -> list[list[float]]:
        return [[float(each) for each in numbers_at(item, *way)] for way in ways]

    found: list[Element] = []
    tops = [(-math.inf, 0)] * len(ways)
    for element in given:
        match element:
            case Item(tree) if not items.is_bad(tree):
                largest = [max(each, default=-math.inf) for each in shown(tree)]
                tops = [(new, len(found)) if new > top[0] else top for new, top in zip(largest, tops, strict=True)]
                found.append(tree)
            case DeadLetter(doubts=()):  # it is set aside where the stream comes in
                continue
            case _:
                return None
    showing = {0, *(place for _, place in tops)}
    sent = (items.showing(each, shown) if place in showing else items.text(each) for place, each in enumerate(found))
    return [each for each in sent if each is not None]


def _unselected(
    course: RangeProgress, sent: Callable[[Element], str | None], stream: KnownStream, axes: Iterable[ProgressAxis]
) -> list[str] | None:
    """The items that show the progress of an epoch and of which nothing is sent; None where a part shows less."""
    others = dict.fromkeys(filter(None, (course.first, *(each.item for each in course.tops if each is not None))))
    ways = [(each.path.split("/"), TimeScale(each.per_second)) for each in axes]
    spaces = stream.root().namespaces
    found: list[str] = []
    for text in others:
        whole = parse_item(text.encode(), Limits(), spaces)
        try:
            given = sent(whole)
        except DynamicError:
            return None
        if given is None:
            found.append(text)
            continue
        part = parse_item(given.encode(), Limits(), spaces)
        if any(list(numbers_at(part, *way)) != list(numbers_at(whole, *way)) for way in ways):
            return None
    return found
