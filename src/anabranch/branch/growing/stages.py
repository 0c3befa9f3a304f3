"""The stages of a query over streams that only grow: the results of an item or a window are found once, and stay.

An aggregate over them keeps a few shares that have the same value together as all shares (`aggregates/folds.py`), where
the function allows that; `median` does not, and keeps its values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from typing import Any

from anabranch.aggregates.folds import EntryShare, Share
from anabranch.algebra.display.sorting import EntryPlaces
from anabranch.branch.display.evaluation import AnswerScope, Changed, QuerySite
from anabranch.branch.display.groups.sliced_folds import SlicedFolds
from anabranch.branch.display.parts import ComputedPart, EachPart, Folded
from anabranch.branch.display.stages import EntrySource
from anabranch.errors import DynamicError
from anabranch.law.evaluate import ResultRow
from anabranch.law.inputs import Input
from anabranch.values.sequences import Values

_ALWAYS = 0
"""The entry under which errors for good are noted, whichever entry has failed."""


def fail_for_good(site: QuerySite, id: str, error: DynamicError) -> None:
    """Let the whole answer fail from now on, because of an entry that is never edited."""
    site.failing.setdefault((id, _ALWAYS), error)


class TriedSource(ABC):
    """Entries that are tried one by one; an error of one makes the whole answer fail."""

    stream: str
    """The name under which its entries are numbered."""
    _site: QuerySite

    def rows(self, entry: int) -> Sequence[ResultRow]:
        """The results of an entry; none where its error makes the whole answer fail."""
        try:
            return self.tried(entry)
        except DynamicError as error:
            self.fails(entry, error)
            return ()

    shown = rows

    @abstractmethod
    def tried(self, entry: int) -> Sequence[ResultRow]:
        """The results of an entry, or its error."""

    def fails(self, entry: int, error: DynamicError) -> None:
        """Let the whole answer fail until the entry is tried again."""
        self._site.failing[self.stream, entry] = error


class LastingSource(TriedSource):
    """Entries that are never edited, and so are tried once; an error stays for good."""

    is_lasting = may_forget = True

    def __init__(self, id: str, site: QuerySite, stream: str) -> None:
        self.stream = stream
        self._id, self._site = id, site

    def again(self, changed: Changed) -> Collection[int]:
        """The entries that have come."""
        return changed[self.stream]

    def fails(self, entry: int, error: DynamicError) -> None:
        """Let the whole answer fail, from now on."""
        fail_for_good(self._site, self._id, error)

    def remembered(self, stream: str, entry: int) -> Any:
        """Nothing is kept of an entry beside what it gave."""
        return None

    def recall(self, stream: str, entry: int, data: Any) -> None:
        """There is nothing to restore."""


class ItemSource(LastingSource):
    """The results of a part that distributes over the items of a stream; `item` gives a stream with one of them."""

    def __init__(
        self, id: str, site: QuerySite, scope: AnswerScope, part: EachPart, item: Callable[[int], Input]
    ) -> None:
        super().__init__(id, site, part.stream)
        self._scope, self._part, self._item = scope, part, item

    def tried(self, entry: int) -> Sequence[ResultRow]:
        evaluation = self._site.evaluation
        rows = evaluation.rows(self._part.expression, self._scope, {self.stream: self._item(entry)})
        self._site.dead += evaluation.aside
        return rows


class WindowSource(LastingSource):
    """The results of windows, or of tuples, that an operator has found (`windows.py`)."""

    def __init__(self, id: str, site: QuerySite) -> None:
        super().__init__(id, site, id)
        self._found: dict[int, Sequence[ResultRow]] = {}

    def put(self, entry: int, rows: Sequence[ResultRow]) -> None:
        """Put the rows of a window, which are read in the same moment."""
        self._found[entry] = rows

    def tried(self, entry: int) -> Sequence[ResultRow]:
        return self._found.pop(entry)


class RunningStage(SlicedFolds):
    """A value computed from aggregates over entries that stay, over groups, or over results in an interval."""

    def __init__(
        self,
        id: str,
        site: QuerySite,
        scope: AnswerScope,
        part: ComputedPart,
        source: Callable[[str, Folded], tuple[EntrySource, EntryPlaces]],
    ) -> None:
        super().__init__(id, site, scope, part, source)
        self._few: dict[str, Sequence[EntryShare]] = {
            name: ()
            for name, (entrywise, state) in self._folds.items()
            if state.is_small and entrywise.is_lasting and name not in self._slices
        }
        """For aggregates without an interval: a few shares that stand for all."""

    def _put(self, name: str, entry: int, share: Share) -> None:
        entrywise, state = self._folds[name]
        if name in self._slices or not entrywise.is_lasting:
            super()._put(name, entry, share)
            return
        if share is None or entry in self._shares[name]:
            return
        if not state.is_small:
            self._has_changed = True
            state.put(entry, share)
            self._shares[name][entry] = share
            return
        few = state.reduced([*self._few[name], (entry, share)])
        self._has_changed |= few != self._few[name]
        self._few[name] = few

    def _aggregate(self, name: str) -> Values:
        return self._together(name, self._few[name]) if name in self._few else super()._aggregate(name)

    # --- state --------------------------------------------------------------------------------------------

    def save(self) -> Any:
        """The shares that stand for all, as plain data."""
        return {name: [list(each) for each in few] for name, few in self._few.items()}

    def restore(self, data: Any) -> None:
        """Restore from `save`."""
        self._few = {name: [(entry, share) for entry, share in few] for name, few in data.items()}
