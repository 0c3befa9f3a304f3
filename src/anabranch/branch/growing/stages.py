"""The parts of a query over streams that only grow, at work: what an item or a window gives is found once, and stays.

An aggregate keeps a few shares that have the same value together as all that came (`aggregates/folds.py`), where there
are such; `median` has none, and keeps its values.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

from anabranch.aggregates.folds import EntryShare, Share
from anabranch.branch.display.evaluation import AnswerScope, Changed, QuerySite
from anabranch.branch.display.folds import fold
from anabranch.branch.display.split import ComputedPart, EachPart, Folded
from anabranch.branch.display.stages import ComputedStage, EntryPlaces, EntrySource
from anabranch.branch.growing.split import ARRIVALS
from anabranch.errors import DynamicError
from anabranch.law.evaluate import ResultRow
from anabranch.law.inputs import Input
from anabranch.values.sequences import Values

_ALWAYS = 0
"""What fails once fails for ever, whichever entry it was."""


class LastingSource:
    """Entries that are never edited, and so looked at once; `stream` is what they are those of."""

    def __init__(self, id: str, site: QuerySite, stream: str) -> None:
        self.stream = stream
        self._id, self._site = id, site

    def again(self, changed: Changed) -> Collection[int]:
        """The entries that have come."""
        return changed[self.stream]

    def rows(self, entry: int) -> Sequence[ResultRow]:
        """What an entry gives; nothing where it fails so that all fails."""
        try:
            return self.tried(entry)
        except DynamicError as error:
            self.fails(entry, error)
            return ()

    def tried(self, entry: int) -> Sequence[ResultRow]:
        """What an entry gives, and an error where it fails."""
        raise NotImplementedError

    def fails(self, entry: int, error: DynamicError) -> None:
        """What an entry gives makes the whole answer fail, from now on."""
        self._site.failing.setdefault((self._id, _ALWAYS), error)

    def remembered(self, stream: str, entry: int) -> Any:
        """Nothing is kept of an entry beside what it gave."""
        return None

    def recall(self, stream: str, entry: int, data: Any) -> None:
        """There is nothing to take back."""


class ItemSource(LastingSource):
    """What distributes over the items of a stream; `item` gives a stream with one of them."""

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
        """What a window gives; it is asked for in the same moment."""
        self._found[entry] = rows

    def tried(self, entry: int) -> Sequence[ResultRow]:
        return self._found.pop(entry)


class RunningStage(ComputedStage):
    """What is computed from aggregates over entries that stay."""

    def __init__(
        self,
        id: str,
        site: QuerySite,
        scope: AnswerScope,
        part: ComputedPart,
        source: Callable[[str, Folded], tuple[EntrySource, EntryPlaces]],
    ) -> None:
        super().__init__(id, site, scope, part, source)
        self._functions = {name: folded.function for name, folded in part.names}
        self._few: dict[str, Sequence[EntryShare]] = {
            name: () for name, (_, state) in self._folds.items() if state.is_small
        }
        """By aggregate: shares that stand for all."""

    def _put(self, name: str, entry: int, share: Share) -> None:
        if share is None or entry in self._shares[name]:
            return
        _, state = self._folds[name]
        if not state.is_small:
            self._has_changed = True
            state.put(entry, share)
            self._shares[name][entry] = share
            return
        few = state.reduced([*self._few[name], (entry, share)])
        self._has_changed |= few != self._few[name]
        self._few[name] = few

    def _value(self) -> Values:
        known = {name: partial(self._aggregate, name) for name in self._folds}
        return self.site.evaluation.value(self._part.expression, self.scope, {}, known)

    def _aggregate(self, name: str) -> Values:
        if name not in self._few:
            return self._folds[name][1].value()
        state = fold(self._functions[name], ARRIVALS)
        for entry, share in self._few[name]:
            state.put(entry, share)
        return state.value()

    def save(self) -> Any:
        """What stands for all shares, as plain data."""
        return {name: [list(each) for each in few] for name, few in self._few.items()}

    def restore(self, data: Any) -> None:
        """Take in what `save` gave."""
        self._few = {name: [(entry, share) for entry, share in few] for name, few in data.items()}
