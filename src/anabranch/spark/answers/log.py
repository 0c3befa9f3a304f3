"""The answer log: the answers of each subscription, in order, and the dead letters.

The log is the chunks in the tasks' segments, indexed by the manifests; reading it needs neither lock nor Spark, also
while a run is at work, or after one was killed.
An answer is read chunk by chunk and is never in memory as a whole.

A display is logged as the update stream that produces it (LAWS 5.7), and its document at the end of an epoch is in the
state of its branch; so the present display is read without replaying the stream, unless the branch has ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from anabranch.algebra.display.replay import CLOSING, OPENING, DisplayMoment, Replay
from anabranch.branch.display.publishing import shown_in
from anabranch.branch.family import twin_of
from anabranch.branch.state import BranchState
from anabranch.branch.timeline import moments
from anabranch.errors import StateError, UsageError
from anabranch.language import parse
from anabranch.language.checks.outputs import outputs_of
from anabranch.language.value_types import ValueTypes
from anabranch.law.answer import ShownAnswer
from anabranch.law.arrivals.past import named
from anabranch.law.calls import PythonFunction
from anabranch.law.history.document import EditedDocument
from anabranch.law.history.timeline import answer
from anabranch.runtime.standing import Standing
from anabranch.spark.answers.segments import (
    DEAD_LETTERS,
    Chunk,
    SegmentIndex,
    read_chunk,
    read_dead_letters,
    read_index,
)
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Manifest, Manifests
from anabranch.spark.plan.epoch_plan import Registration
from anabranch.spark.plan.files import Plans
from anabranch.spark.plan.kinds import KINDS, not_begun
from anabranch.spark.plan.kinds.kind import QueryContext
from anabranch.spark.sinks.pieces import lines_in, results_in
from anabranch.spark.state.files import read_blob
from anabranch.stream.elements import DeadLetter
from anabranch.stream.reading.parse import implied_root
from anabranch.stream.reading.source import Source


@dataclass(frozen=True, slots=True)
class AnswerFrame:
    """The text around the pieces of an answer, `<photons>` and `</photons>`; `<photons/>` if there are none."""

    opening: str
    closing: str
    empty: str
    spaced: bool = False
    """Pieces may be values, separated by a space."""
    plain: bool = False
    """No value contains a blank."""
    json: bool = False
    """Results are lines of JSON."""
    items: bool = False
    """Results may be items as they are, which are lines of JSON in a stream of JSON, and else elements."""

    def is_json(self, text: str) -> bool:
        """Whether a part of the answer is lines of JSON (LAWS 7.3)."""
        return self.json or (self.items and text.startswith("{"))

    def told(self, text: str) -> AnswerFrame:
        """The same, once a part of the answer is known; there is nothing around lines of JSON."""
        return _LINES if self.is_json(text) else self

    def results(self, chunk: Chunk, text: str) -> list[str]:
        """The results in a chunk, none of them empty; concatenated they give its text."""
        if self.is_json(text):
            return lines_in(text)
        return results_in(text, values=self.plain or (self.spaced and chunk.entries > 1))

    @staticmethod
    def of(asked: Registration, functions: Mapping[str, PythonFunction] | None = None) -> AnswerFrame:
        """The frame of a subscription's answer; a display is a document."""
        if asked.shows:
            outputs = outputs_of(parse(asked.text))
            if "json" in outputs.kinds:
                return _LINES
            items = bool(outputs.given_items())
            return AnswerFrame(OPENING, CLOSING, f"{OPENING}{CLOSING}", items=items)
        query = KINDS[asked.kind].framed(asked.text, functions or {}, asked.edited)
        if query is None:
            return AnswerFrame("", "", "")
        items = query.at_top and bool(query.outputs.given_items())
        plain = _are_plain(query)
        return AnswerFrame(
            query.opening, query.closing, query.empty, not query.separate, plain, json=query.json, items=items
        )


_LINES = AnswerFrame("", "", "", json=True)


def empty_answer(text: str, sources: Iterable[Source], functions: Mapping[str, PythonFunction] | None = None) -> str:
    """The answer of a query over these streams that has no first epoch yet."""
    return AnswerFrame.of(not_begun("", text, QueryContext.of(sources, functions or {})), functions).empty


def _are_plain(query: Standing) -> bool:
    """Whether all results are numbers, booleans or times, whose spelling has no blanks."""
    if query.separate or query.hole is None:
        return False
    types = ValueTypes({each.name: each for each in query.query.functions})
    return types.of(query.hole, {}).kind in ("integer", "number", "boolean", "number or boolean", "time")


@dataclass(frozen=True, slots=True)
class CommittedAnswer:
    """The committed answer to one subscription; iterating gives its text in pieces."""

    subscription: Registration
    frame: AnswerFrame
    log: AnswerLog
    functions: Mapping[str, PythonFunction] | None = None

    @property
    def entries(self) -> int:
        """How many items contributed."""
        return sum(chunk.entries for chunk in self._chunks())

    @property
    def whole(self) -> bool:
        """Whether its first epoch is retained."""
        kept = self.log.manifests.epochs()
        return not kept or kept[0] <= self.subscription.first

    def _chunks(self) -> Iterator[Chunk]:
        for manifest in self.log.manifests.since(self.subscription.first):
            yield from self.log.chunks(manifest, self.subscription.id)

    def __iter__(self) -> Iterator[str]:
        if self.subscription.shows:
            return iter((self.log.shown(self.subscription, self.functions),))
        return self.pieces()

    def pieces(self) -> Iterator[str]:
        """The answer as it is delivered; a display as an update stream."""
        frame: AnswerFrame | None = None
        for chunk in self._chunks():
            text = self.log.text(chunk)
            if frame is None:
                frame = self.frame.told(text)
                yield frame.opening
            yield text
        yield self.frame.empty if frame is None else frame.closing

    def results(self) -> Iterator[str]:
        """The results of an answer that is no display, one by one."""
        frame: AnswerFrame | None = None
        for chunk in self._chunks():
            text = self.log.text(chunk)
            frame = frame or self.frame.told(text)
            yield from frame.results(chunk, text)

    def text(self) -> str:
        """The whole answer."""
        return "".join(self)

    def moments(self) -> Iterator[ShownAnswer]:
        """The answers after each moment that changed them: displays, or timed answers so far."""
        if not self.subscription.timed:
            yield from self.log.moments(self.subscription)
            return
        grown, before = "", ""
        for at, more in moments(map(self.log.text, self._chunks())):
            grown += more
            text = f"{self.frame.opening}{grown}{self.frame.closing}" if grown else self.frame.empty
            if text != before:
                yield ShownAnswer(at, text)
                before = text


class AnswerLog:
    """The answers of a checkpoint."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.manifests = Manifests(checkpoint.manifests)
        self._plans = Plans(checkpoint)
        self._segments = checkpoint.segments
        self._states = checkpoint.states

    def subscription(self, name: str) -> Registration | None:
        """The newest subscription of a name in a committed epoch."""
        for plan in self._plans.newest_first():
            for each in plan.subscriptions:
                if each.name == name:
                    return each
        return None

    def answer(
        self, subscription: Registration, functions: Mapping[str, PythonFunction] | None = None
    ) -> CommittedAnswer:
        return CommittedAnswer(subscription, AnswerFrame.of(subscription, functions), self, functions)

    def shown(self, subscription: Registration, functions: Mapping[str, PythonFunction] | None = None) -> str:
        """The present display of a subscription."""
        found = self._kept(subscription)
        if found is not None:
            return found
        replay = Replay()
        if sum(1 for _ in self._replayed(subscription, replay)):
            return replay.text
        query = parse(subscription.text)  # before the first moment: the answer over empty streams
        nothing = {name: EditedDocument(implied_root("root")) for name in named(query)}
        return answer(query, nothing, functions=functions).text

    def moments(self, subscription: Registration) -> Iterator[ShownAnswer]:
        """The displays of a subscription, after each moment that changed it."""
        if not subscription.shows:
            raise UsageError(
                f"the answer of '{subscription.name}' only grows, and what it was when is not kept",
                hint="there is a timeline where a query reads a stream of updates",
            )
        replay, before = Replay(), ""
        for moment in self._replayed(subscription, replay):
            if moment.edits and (text := replay.text) != before:
                yield ShownAnswer(Fraction(moment.at), text, json=bool(replay.is_json))
                before = text

    def check_followed(self, subscription: Registration) -> None:
        """Check that a display can be replayed from its beginning, which retention may have dropped."""
        kept = self.manifests.epochs()
        if kept and kept[0] > subscription.first:
            raise UsageError(
                f"the beginning of '{subscription.name}' is no longer kept, so its display cannot be followed",
                hint="'anabranch answer' prints what it shows now",
            )

    def _replayed(self, subscription: Registration, replay: Replay) -> Iterator[DisplayMoment]:
        """Replay a display from its beginning; after each yield, `replay` shows that moment."""
        self.check_followed(subscription)
        for manifest in self.manifests.since(subscription.first):
            for chunk in self.chunks(manifest, subscription.id):
                yield from replay.feed(self.text(chunk))

    def _kept(self, subscription: Registration) -> str | None:
        """The display at the end of the newest epoch, from its branch's state; None where there is none."""
        newest = self.manifests.newest()
        asked = self._plans.file(newest).load().subscriptions if newest else ()
        if newest is None or all(each.id != subscription.id or each.aborted for each in asked):
            return None
        state = newest.states.get(subscription.branch)
        try:
            read = partial(read_blob, self._states)
            key = partial(_key, subscription.text)
            return None if state is None else shown_in(BranchState.from_bytes(read(state.state)), read, key)
        except StateError:
            return None  # a run at work has removed the state meanwhile

    def index(self, manifest: Manifest) -> SegmentIndex:
        """The index of an epoch's answers, by subscription."""
        return read_index(self._segments, manifest.segments)

    def chunks(self, manifest: Manifest, subscription: int) -> list[Chunk]:
        """The chunks of one subscription, or of the dead letters."""
        return self.index(manifest).of(subscription)

    def text(self, chunk: Chunk, most: int | None = None) -> str:
        """The text of a chunk, or of its first `most` bytes."""
        return read_chunk(self._segments, chunk, most)

    def dead_letters(self) -> Iterator[DeadLetter]:
        for manifest in self.manifests.since(0):
            yield from self.buried(manifest)

    def buried(self, manifest: Manifest) -> Iterator[DeadLetter]:
        """The dead letters of one epoch."""
        for chunk in self.chunks(manifest, DEAD_LETTERS):
            yield from read_dead_letters(self._segments, chunk)


def _key(text: str) -> str:
    """Identifies a query among those that its branch serves."""
    return twin_of(parse(text))
