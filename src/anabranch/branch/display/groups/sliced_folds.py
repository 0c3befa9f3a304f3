"""A value computed from aggregates of which some are over results in an interval of places.

The results in the interval are kept with the shares that their values would have alone; the aggregate is put together
from these when one of them has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from typing import Any

from anabranch.aggregates.folds import EntryShare, Fold, Share
from anabranch.algebra.display.sorting import EntryPlaces
from anabranch.branch.display.evaluation import AnswerScope, Changed, QuerySite
from anabranch.branch.display.folds import fold
from anabranch.branch.display.groups.slices import RankedResult, ResultSlice
from anabranch.branch.display.parts import ComputedPart, Folded, SlicePart, order_of
from anabranch.branch.display.stages import ComputedStage, EntrySource, Finding
from anabranch.branch.growing.arrivals import ARRIVALS
from anabranch.values.sequences import Values


class SlicedFolds(ComputedStage):
    """A value computed from aggregates over entries, or over results in an interval."""

    def __init__(
        self,
        id: str,
        site: QuerySite,
        scope: AnswerScope,
        part: ComputedPart,
        source: Callable[[str, Folded], tuple[EntrySource, EntryPlaces]],
    ) -> None:
        self._slices: dict[str, ResultSlice[Share]] = {}
        """For aggregates over an interval of places: the results in it, each with the share of one value."""
        self._seen: dict[str, Values] = {}
        """Cached values of these aggregates, until they change."""

        def taken_over(id: str, folded: Folded) -> tuple[EntrySource, EntryPlaces]:
            found, places = source(id, folded)
            if isinstance(folded.over, SlicePart):
                over, interval = folded.over.over, folded.over.interval
                kept: ResultSlice[Share] = ResultSlice(places, order_of(over), interval, forgets=found.may_forget)
                self._slices[id.removeprefix(f"{self._prefix}.")] = kept
            return found, places

        self._prefix = id
        super().__init__(id, site, scope, part, taken_over)
        self._functions = {name: folded.function for name, folded in part.names}

    def find(self, changed: Changed) -> Iterator[Finding]:
        for id, name in self._names.items():
            entrywise, state = self._folds[name]
            for entry in entrywise.again(changed):
                found = self._ranked if name in self._slices else self._share
                yield Finding(id, entry, found(entrywise, state, entry))

    def _ranked(self, entrywise: EntrySource, state: Fold, entry: int) -> Share:
        """The values of an entry, one by one, each as the share that it would have alone."""
        rows = entrywise.rows(entry)
        return [RankedResult(row.ranks, state.share([value])) for row in rows for value in row.values]

    def _put(self, name: str, entry: int, share: Share) -> None:
        if name not in self._slices:
            super()._put(name, entry, share)
            return
        for _ in self._slices[name].take(entry, share):
            self._has_changed = True
            self._seen.pop(name, None)

    def _value(self) -> Values:
        known = {name: partial(self._aggregate, name) for name in self._folds}
        return self.site.evaluation.value(self._part.expression, self.scope, {}, known)

    def _aggregate(self, name: str) -> Values:
        if name not in self._slices:
            return self._folds[name][1].value()
        if name not in self._seen:
            self._seen[name] = self._together(name, enumerate(self._slices[name].seen()))
        return self._seen[name]

    def _together(self, name: str, shares: Iterable[EntryShare]) -> Values:
        state = fold(self._functions[name], ARRIVALS)
        for entry, share in shares:
            state.put(entry, share)
        return state.value()

    def forgotten(self) -> Collection[tuple[str, int]]:
        found: list[tuple[str, int]] = []
        for name, kept in self._slices.items():
            found += [(self._folds[name][0].stream, entry) for entry in kept.forgotten]
            kept.forgotten = []
        return found

    # --- state --------------------------------------------------------------------------------------------

    def keeps(self, stream: str, entry: int) -> bool:
        sliced = ((self._folds[name][0].stream, kept) for name, kept in self._slices.items())
        return super().keeps(stream, entry) or any(stream == own and entry in kept for own, kept in sliced)

    def remembered(self, stream: str, entry: int) -> Any:
        found: dict[str, Any] = super().remembered(stream, entry) or {}
        for name, kept in self._slices.items():
            if stream == self._folds[name][0].stream and (shares := kept.remembered(entry, _same)) is not None:
                found[name] = [found.get(name, (None, None))[0], shares]
        return found or None

    def recall(self, stream: str, entry: int, data: Any) -> None:
        for name, (entrywise, _) in self._folds.items():
            known, share = (data or {}).get(name, (None, None))
            entrywise.recall(stream, entry, known)
            if stream == entrywise.stream:
                if name in self._slices:
                    self._slices[name].recall(entry, share, _same)
                else:
                    self._put(name, entry, share)

    def recalled(self) -> None:
        self._settle_slices()
        super().recalled()

    def stood(self, data: Any) -> None:
        self._settle_slices()
        super().stood(data)

    def _settle_slices(self) -> None:
        for name, kept in self._slices.items():
            for _ in kept.recalled():
                self._seen.pop(name, None)


def _same(share: Share) -> Share:
    """Shares are plain data."""
    return share
