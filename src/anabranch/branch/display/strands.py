"""A query over one stream of updates in several strands, each of which keeps some of the entries.

Parts that distribute over entries are evaluated entry by entry, so several places can share that; what is between
entries, their order, aggregates and the display, is in one place, behind them.

A *strand* takes all elements of the stream, and so knows all ids, and admits the same elements as a query in one piece.
It keeps the content of its own entries only, those whose number modulo the number of strands is its own; of the entries
of others it keeps only chains, beside which other entries may be put.
So all strands number entries alike, and count the same moments, and none has to ask another.
For each moment it reports which of its entries have come and gone, and the results of those that have changed.

The *braid* puts the reports together, moment by moment and in the order in which a query in one piece evaluates
entries: what it shows and publishes is the same to the byte, whatever the number of strands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import msgspec

from anabranch.branch.display.continuous import ContinuousQuery, Machine
from anabranch.branch.display.parts import (
    ComputedPart,
    DistinctPart,
    EachPart,
    EditedWindowPart,
    ElementPart,
    FixedPart,
    GroupPart,
    Part,
    SequencePart,
    SlicePart,
    WholePart,
    WindowPart,
)
from anabranch.branch.display.shown import DisplayChange
from anabranch.branch.display.stages import Finding
from anabranch.branch.document.entries import DocumentEntry
from anabranch.branch.document.projection import NOWHERE, InsertionPoint, KeptDocument
from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.law.history.chains import Chain, Lived
from anabranch.sharing.retention import Needs
from anabranch.stream.affine import parse
from anabranch.stream.elements import Alter, DeadLetter, Place
from anabranch.stream.limits import Limits
from anabranch.stream.path import Path
from anabranch.stream.tree import Element, JsonMark
from anabranch.values.numbers import read_fraction, write_fraction

_MOST = 1_000
"""The number of moments that are sent at a time."""


class Entered(NamedTuple):
    """A new entry: before or after another one, or at the end."""

    number: int
    before: int | None
    after: int | None


class Letter(NamedTuple):
    """A dead letter of the query, as it is sent."""

    place: Place
    reason: str
    raw: str
    code: str | None
    subscription: str | None


class Found(NamedTuple):
    """The finding of an entry for a part of the query, or why it fails, with the dead letters of its evaluation."""

    part: str
    entry: int
    data: Any
    error: tuple[str, str | None] | None = None
    """Message and code."""
    dead: tuple[Letter, ...] = ()


class UnitChange(NamedTuple):
    """An alter of the display's units, as it is sent."""

    path: tuple[str, ...]
    by: str


class StrandMoment(NamedTuple):
    """What a moment has changed for one strand; all strands number the moments alike."""

    moment: int
    at: Fraction
    place: Place
    entered: tuple[Entered, ...] = ()
    left: tuple[int, ...] = ()
    found: tuple[Found, ...] = ()
    alters: tuple[UnitChange, ...] = ()
    """The same from all strands."""


_ENCODER = msgspec.json.Encoder(enc_hook=write_fraction)
_DECODER = msgspec.json.Decoder(list[StrandMoment], dec_hook=lambda _, text: read_fraction(text))


def packed(told: Sequence[StrandMoment]) -> Iterator[bytes]:
    """Moments as messages."""
    for start in range(0, len(told), _MOST):
        yield _ENCODER.encode(told[start : start + _MOST])


def unpacked(data: bytes) -> list[StrandMoment]:
    """The moments of a message."""
    return _DECODER.decode(data)


def spreads(part: Part) -> bool:
    """Whether a query that splits like this can be answered in strands: every entry is evaluated by itself."""
    match part:
        case FixedPart():
            return True
        case EachPart():
            return not part.beside
        case ComputedPart(_, names):
            return all(spreads(folded.over) for _, folded in names)
        case WholePart() | EditedWindowPart() | WindowPart() | GroupPart() | DistinctPart() | SlicePart():
            return False
        case SequencePart(inner):
            return all(map(spreads, inner))
        case ElementPart(_, content):
            texts = ast.Characters | ast.CommentConstructor
            return all(isinstance(each, texts) or spreads(each) for each in content)


class Share(KeptDocument):
    """The part of the stream that one strand keeps, and the changes of its entries since the last call of `news`."""

    def __init__(self, root: Element, stream: str, needs: Needs, limits: Limits | None, strand: int, of: int) -> None:
        super().__init__(root, stream, needs, limits)
        self._strand, self._of = strand, of
        self._entered: list[Entered] = []
        self._left: list[int] = []

    def _owns(self, number: int) -> bool:
        return number % self._of == self._strand

    def numbers(self) -> Iterator[int]:
        """The entries of this strand."""
        return filter(self._owns, super().numbers())

    def news(self) -> tuple[tuple[Entered, ...], tuple[int, ...]]:
        """The entries that have come, and those that are gone."""
        entered, left = tuple(self._entered), tuple(self._left)
        self._entered, self._left = [], []
        return entered, left

    def _enter(self, entry: DocumentEntry, *, before: int | None = None, after: int | None = None) -> int:
        number = self.next_number
        if self._owns(number):
            self._entered.append(Entered(number, before, after))
        elif isinstance(entry.content, Lived):  # no entry can be put beside it
            self.next_number += 1
            return number
        return super()._enter(entry, before=before, after=after)

    def _leave(self, number: int) -> None:
        super()._leave(number)
        if self._owns(number):
            self._left.append(number)
        else:
            self.changed.pop(number, None)

    def _touch(self, number: int, at: Fraction) -> None:
        if self._owns(number):
            super()._touch(number, at)

    def _begin(self, chain: Chain, at: Fraction, mark: JsonMark | None = None) -> InsertionPoint:
        held = self.held.get(chain)
        if held is not None and held.top and held.end is None and not self._owns(held.entry):
            return NOWHERE
        return super()._begin(chain, at, mark)


class Strand(Machine[StrandMoment]):
    """One strand of a query: it shows nothing, and reports the findings of its entries."""

    def __init__(self, query: ast.Query, roots: Mapping[str, Element], strand: int, of: int, **given: Any) -> None:
        self._which = strand, of
        self.moments = 0
        """The number of moments so far, which is the same in all strands."""
        super().__init__(query, roots, **given)

    def _keep(self, root: Element, stream: str, limits: Limits | None) -> Share:
        return Share(root, stream, self.needs, limits, *self._which)

    def _moment(self, place: Place) -> Iterator[StrandMoment]:
        changed = self._moved()
        found = [self._found(stage.write, each) for stage in self._stages for each in stage.find(changed)]
        (kept,) = self.kept.values()
        assert isinstance(kept, Share)
        entered, left = kept.news()
        alters = tuple(UnitChange(each.path.steps, str(each.by)) for each in self._altered())
        if found or entered or left or alters or not self.moments:
            yield StrandMoment(self.moments, self.now, place, entered, left, tuple(found), alters)
        self.moments += 1
        self._is_new = False

    def _found(self, write: Any, finding: Finding) -> Found:
        dead, self._site.dead = self._site.dead, []
        error = self._site.failing.get((finding.part, finding.entry))
        why = None if error is None else (error.message, error.code)
        letters = tuple(Letter(each.place, each.reason, each.raw, each.code, each.subscription) for each in dead)
        return Found(finding.part, finding.entry, write(finding.value), why, letters)


class Places(KeptDocument):
    """The entries of all strands in their order, without their contents."""

    def put(self, entered: Entered) -> None:
        """Add an entry."""
        self.next_number = entered.number
        self._enter(DocumentEntry(None), before=entered.before, after=entered.after)

    def remove(self, number: int) -> None:
        """Remove an entry."""
        self._leave(number)


class Braid(ContinuousQuery):
    """A query behind its strands: it evaluates no entry, and shows what the strands have found."""

    def _keep(self, root: Element, stream: str, limits: Limits | None) -> Places:
        return Places(root, stream, self.needs, limits)

    def put_together(self, several: Sequence[StrandMoment]) -> DisplayChange:
        """Put together the reports of one moment; returns what changes on display."""
        (kept,) = self.kept.values()
        assert isinstance(kept, Places)
        kept.now = several[0].at
        alters = max((told.alters for told in several), key=len)
        self.alter([Alter(Path(each.path), parse(each.by)) for each in alters])
        self._moved()
        for entered in sorted(each for told in several for each in told.entered):
            kept.put(entered)
        for number in sorted(number for told in several for number in told.left):
            kept.remove(number)
        found = {(each.part, each.entry): each for told in several for each in told.found}
        turn = kept.in_turn({entry for _, entry in found})
        for stage in self._stages:
            for part in stage.parts:
                for each in (found[part, entry] for entry in turn if (part, entry) in found):
                    self._note(each)
                    stage.take(Finding(part, each.entry, stage.read(each.data)))
            stage.settle()
        kept.unsaved.entries.update((entry, None) for entry in turn)
        return self._change(several[0].place)

    def _note(self, found: Found) -> None:
        """Note the error and the dead letters of a finding."""
        self._site.failing.pop((found.part, found.entry), None)
        if found.error is not None:
            message, code = found.error
            self._site.failing[found.part, found.entry] = DynamicError(message, code=code)
        self._site.dead += [DeadLetter(*each) for each in found.dead]
