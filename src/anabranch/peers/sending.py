"""Appends the results of a peer's epochs to the flows that it makes.

For a usual epoch that is the answer to the flow's query; before it the first item of the epoch, and behind it the items
with the largest progress, unless they are in the answer anyway (`spark/evolution/progress.py`).
So readers of the flow judge late items and closed windows as if they had seen everything.
An epoch with anything else is sent unchanged, read again and written again (`verbatim`); so is everything behind the
first accent, since the meaning of conditions and paths from there on depends on when a subscription began.

The sending position is durable, and written after the links themselves: after a kill in between, the same is sent
again, and found there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Literal

from anabranch.errors import BadItem, DynamicError
from anabranch.language import parse
from anabranch.peers.links import Link
from anabranch.peers.programs import FLOW_PREFIX, MadeFlow, PeerProgram
from anabranch.runtime.standing import standing
from anabranch.runtime.units import Units
from anabranch.spark.answers.log import AnswerLog
from anabranch.spark.answers.segments import RANGE_PROGRESS
from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Manifest, Manifests
from anabranch.spark.evolution.progress import ProgressAxis, RangeProgress, Top, numbers_at
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
from anabranch.stream.tree import STREAM_NAMESPACE

_MICROSECONDS = 1_000_000
_OPENING = re.compile(r"<(?:([^\s/>:]+):)?[^\s/>:]+")


def verbatim(checkpoint: Checkpoint, epoch: int, plan: Plan, stream: KnownStream) -> Iterator[tuple[int, str]]:
    """The elements of a stream in an epoch, as text, each with the number of its partition."""
    carries = Manifests(checkpoint.manifests).load(epoch - 1).carries if epoch else {}
    root = stream.root()
    for reach in epoch_ranges(checkpoint, epoch):
        if reach.mark is None and reach.stream == stream.name:
            before = carries.get(reach.key)
            carry = before.carry if before and before.number == reach.number else None
            for element in RangeReader(stream, root, plan.limits, reach, carry, accents=plan.accents):
                text = _text(element, stream, reach)
                if text is not None:
                    yield int(reach.partition), text


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


class Sender:
    """Sends the flows of a peer; nobody else writes to its links."""

    def __init__(self, checkpoint: Checkpoint, record: Path, links: Path) -> None:
        self._checkpoint = checkpoint
        self._record = record
        self._links = links
        self._log = AnswerLog(checkpoint)
        self._plans = Plans(checkpoint)
        self._orders: dict[str, OrderLog] = {}
        self.reached = durable.read_record(SendProgress, record) if record.exists() else SendProgress()

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
            course = courses.get(made.stream)
            if made.kind == "results":
                self._send_results(made, plan, manifest, given)
                continue
            usual = (
                made.kind == "selection"
                and made.stream not in manifest.evolution
                and FLOW_PREFIX + made.flow not in failed
            )
            if not usual or course is None or course.odd:
                self._send_all(made, plan, manifest.epoch, given, stream)
            elif course.first is not None:
                self._send_selected(made, plan, manifest, given, stream, course)

    # --- usual epochs ---------------------------------------------------------------------------------------

    def _courses(self, manifest: Manifest, plan: Plan) -> dict[str, RangeProgress]:
        """By stream: its progress in an epoch, which is odd if it falls behind what was reached before."""
        found: dict[str, RangeProgress] = {}
        for chunk in self._log.chunks(manifest, RANGE_PROGRESS):
            for line in self._log.text(chunk).splitlines():
                course = RangeProgress.from_json(line)
                axes = plan.axes(plan.stream(course.stream).source) or ()
                before = found.get(course.stream)
                found[course.stream] = course if before is None else before.then(course, axes)
        for name, course in found.items():
            axes = plan.axes(plan.stream(name).source) or ()
            tops = self.reached.tops.setdefault(name, {})
            earlier = tuple(Top(tops[each.path], "") if each.path in tops else None for each in axes)
            held = RangeProgress(name, None, earlier, (None,) * len(axes)).then(course, axes)
            found[name] = replace(course, odd=held.odd)
            tops |= {axis.path: top.value for axis, top in zip(axes, held.tops, strict=True) if top is not None}
        return found

    def _send_selected(
        self, made: MadeFlow, plan: int, manifest: Manifest, given: Plan, stream: KnownStream, course: RangeProgress
    ) -> None:
        """Send the selected items, or everything where those would not show the progress."""
        number = next(each.id for each in given.subscriptions if each.name == FLOW_PREFIX + made.flow)
        chunks = self._log.chunks(manifest, number)
        others = dict.fromkeys(filter(None, (course.first, *(each.item for each in course.tops if each is not None))))
        shown = {each: _shown(made.text, stream, given.axes(stream.source) or (), each) for each in others}
        if "odd" in shown.values():
            self._send_all(made, plan, manifest.epoch, given, stream)
            return
        unselected = [each for each, found in shown.items() if found == "nothing"]
        before = [each for each in unselected if each == course.first]
        behind = [each for each in unselected if each != course.first]
        content = (*before, *map(self._log.text, chunks), *behind)
        items = sum(each.entries for each in chunks) + len(unselected)
        size = self._link(made, stream).append(plan, manifest.epoch + 1, stream.form.root, content)
        self._count(made.flow, size, items)

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

    def elements_so_far(self, stream: str) -> Iterator[tuple[int, str]]:
        """All elements of a stream so far: the text of each, and the number of its partition."""
        for epoch in self._log.manifests.epochs():
            given = self._plans.ran(epoch)
            for each in given.streams:
                if each.name == stream:
                    yield from verbatim(self._checkpoint, epoch, given, each)

    def _link(self, made: MadeFlow, stream: KnownStream) -> Link:
        return Link.of(self._links, made.flow, len(stream.source.partitions))


def _shown(
    text: str, stream: KnownStream, axes: Iterable[ProgressAxis], item: str
) -> Literal["nothing", "same", "odd"]:
    """The results of a flow's query for an item: none, with the same progress, or with less."""
    root = stream.root()
    whole = parse_item(item.encode(), Limits(), root.namespaces)
    try:
        given = _units(text).item(root, whole).text
    except DynamicError:
        return "odd"
    if not given:
        return "nothing"
    sent = parse_item(given.encode(), Limits(), root.namespaces)
    ways = [(each.path.split("/"), TimeScale(each.per_second)) for each in axes]
    same = all(list(numbers_at(sent, *way)) == list(numbers_at(whole, *way)) for way in ways)
    return "same" if same else "odd"


@lru_cache(maxsize=1_000)
def _units(text: str) -> Units:
    return Units(standing(parse(text)), {}, {})
