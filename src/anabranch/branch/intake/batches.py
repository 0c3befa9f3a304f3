"""The next entries of one input of a windowed `for`, in columns: how the `for` selects them, and when they arrive.

Entries that fit the template are never parsed singly.
The others are, by the reader and the law; one that columns cannot represent is a *barrier*: the batch ends before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from anabranch.branch.held_items import HeldNode
from anabranch.branch.intake.entries import EntryReader, RawEntry
from anabranch.branch.intake.lookahead import EntryTimes, NextEntries, own_time
from anabranch.branch.ports import InputStream
from anabranch.columnar.items.query import CompiledFor
from anabranch.columnar.match.condition import UNCLEAR, YES
from anabranch.columnar.match.judging import judge
from anabranch.columnar.match.rows import with_computed
from anabranch.columnar.scan.entries import SELECTED, SHOWN, VOID, Decimals, shred_entries
from anabranch.columnar.scan.kernels import ABSENT, Bytes, Flags
from anabranch.columnar.scan.shred import Shredded
from anabranch.columnar.scan.template import is_plain_around
from anabranch.errors import DynamicError, StreamError
from anabranch.law.steps import Exhausted
from anabranch.runtime.units import Candidates, Units
from anabranch.stream.elements import DeadLetter, Item, Punctuation
from anabranch.stream.limits import Limits
from anabranch.stream.path import TimeScale, per_second
from anabranch.values.placing import Moment, from_origin

LIMITS = Limits()
"""A template's items are all within the limits, or none is; and an item that is too long has a reason."""


@dataclass(frozen=True, slots=True)
class EntryBatch:
    """Numbered items: those that the `for` held before, then its next entries."""

    shredded: Shredded
    before: int
    """The number of items held before."""
    status: Bytes
    values: Decimals
    """The reference values, not relative to the stream's origin."""
    times: Decimals
    timed: Flags
    """Entries with a time of their own."""
    complete: bool
    """Whether there are no other entries yet; False at a barrier."""
    errors: Mapping[int, DynamicError]
    """By number: the error with which an item is set aside when it arrives."""
    signals: Mapping[int, Punctuation]
    bad: Sequence[int]
    """Entries that are no elements at all."""

    def __len__(self) -> int:
        return len(self.status)

    @property
    def has_overrun(self) -> bool:
        """Whether selecting an item takes too many steps, which may end a query just behind that item (LAWS 2.9)."""
        return any(isinstance(each, Exhausted) for each in self.errors.values())

    def moments(self, entries: NextEntries) -> EntryTimes:
        """The arrival times of the entries."""
        times = self.times.part(self.before, len(self))
        bad = [number - self.before for number in self.bad]
        return EntryTimes(entries, times, self.timed[self.before :], bad, self.complete)

    def are_times(self, scale: TimeScale) -> Flags:
        """Which reference values are times; only asked for values that are no plain numbers."""
        found = np.full(len(self), scale.is_time)
        found[[entry for entry, each in self.values.others.items() if isinstance(each, Moment)]] = True
        return found

    @property
    def items(self) -> Flags:
        """Which entries are items."""
        found = np.ones(len(self), np.bool_)
        found[[*self.signals, *self.bad]] = False
        return found[self.before :]


class BatchReader(EntryReader):
    """Parses the entries of one `for` into columns."""

    def __init__(self, stream: InputStream, clause: int, units: Units, *, signals: bool = False) -> None:
        """Without `signals` a punctuation is a barrier."""
        super().__init__(stream)
        self._clause = clause
        self._units = units
        self._scale = stream.source.scale(units.reference(clause, stream.root))
        self._origin = self._scale.origin
        self._signals = signals

    def batch(self, compiled: CompiledFor, held: Sequence[HeldNode], entries: NextEntries) -> EntryBatch:
        """The columns of the items held before, and of the next entries."""
        before = len(held)
        parts, lengths = entries.raw()
        old = [each.kept.entry.cut.raw for each in held]
        ends = np.cumsum(np.concatenate([np.array([len(raw) for raw in old], np.int64), *lengths]))
        shredded = shred_entries(b"".join((*old, *parts)), ends, compiled.wanted, LIMITS)
        around = ((each.kept.entry.cut.root, each.kept.entry.cut.encoding) for each in held)
        shredded.fits[:before] &= np.fromiter((is_plain_around(*each) for each in around), np.bool_, before)
        shredded.fits[before:] &= entries.good
        shredded = with_computed(shredded)
        verdicts = judge(compiled.condition, shredded)
        unclear = ~shredded.fits | (verdicts == UNCLEAR)
        reached = np.full(len(unclear), compiled.is_reached)
        if compiled.presence is not None:
            reached &= shredded.starts[shredded.row(compiled.presence)] != ABSENT
        if compiled.reference is not None:
            unclear |= reached & np.isnan(shredded.values[shredded.row(compiled.reference)])
        if compiled.time is not None:
            unclear |= np.isnan(shredded.values[shredded.row(compiled.time)])
        status = np.where(verdicts == YES, np.uint8(SELECTED), np.where(reached, np.uint8(SHOWN), np.uint8(VOID)))
        timed = np.full(len(status), compiled.time is not None)
        values = {
            number: from_origin(held[number].value, -self._origin)
            for number in np.flatnonzero(unclear[:before]).tolist()
        }
        times: dict[int, Fraction] = {}
        errors: dict[int, DynamicError] = {}
        signals: dict[int, Punctuation] = {}
        bad: list[int] = []
        stop = len(status)
        others = np.flatnonzero(unclear[before:])
        for number, entry in zip((before + others).tolist(), entries.some(others), strict=True):
            look = self._look(entry)
            if look is None:
                stop = number
                break
            status[number] = look.status
            timed[number] = look.time is not None
            if look.value is not None:
                values[number] = look.value
            if look.time is not None:
                times[number] = look.time
            if look.error is not None:
                errors[number] = look.error
            if look.signal is not None:
                signals[number] = look.signal
            if look.is_bad:
                bad.append(number)
        return EntryBatch(
            shredded,
            before,
            status[:stop],
            Decimals.read(shredded, compiled.reference, values, stop),
            Decimals.read(shredded, compiled.time, times, stop, per_second(self._stream.source.time)),
            timed[:stop],
            entries.complete and stop == len(unclear),
            errors,
            signals,
            bad,
        )

    def _look(self, entry: RawEntry) -> JudgedEntry | None:
        """One entry as the law judges it; None where columns cannot represent it."""
        element = self.read(entry)
        if isinstance(element, DeadLetter):  # set aside by the task that read it
            return None if element.doubts else JudgedEntry(VOID, is_bad=True)
        if isinstance(element, Punctuation) and self._signals:
            return JudgedEntry(VOID, time=own_time(element, None), signal=element)
        if not isinstance(element, Item):
            return None
        try:
            found = self._units.candidates(self._clause, self._stream.root, element, self._scale)
        except StreamError:  # the operator raises it when the entry is released
            return None
        if len(found.nodes) > 1:
            return None
        return self._judged(element, found)

    def _judged(self, item: Item, found: Candidates) -> JudgedEntry:
        """An item of which the `for` reaches at most one node."""
        own = own_time(item, self._stream.source.time)
        for node in found.nodes:
            if node.error is None:
                value = None if node.value is None else from_origin(node.value, -self._origin)
                return JudgedEntry(SELECTED if node.selected else SHOWN, value, own, found.error)
            return JudgedEntry(VOID, None, own, found.error or (node.error if node.selected else None))
        return JudgedEntry(VOID, None, own, found.error)


@dataclass(frozen=True, slots=True)
class JudgedEntry:
    """The judgement of one entry; the reference value is not relative to the stream's origin."""

    status: int
    value: Fraction | None = None
    time: Fraction | None = None
    error: DynamicError | None = None
    signal: Punctuation | None = None
    is_bad: bool = False
