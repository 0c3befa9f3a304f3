"""The values that expressions in a question about the past of items had, one after another (LAWS 5.4).

A closed expression that reads items by their past is evaluated at each moment over what is remembered of them.
One that reads streams as they grow is kept up to date as a display is (`branch/growing/`), but shows nothing: an item
is taken in once, and only its share in aggregates is kept where that suffices.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol

from anabranch.branch.growing.machine import GrowingDisplay
from anabranch.branch.intake.entries import RawEntry
from anabranch.branch.ports import InputStream
from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.language.versions import asks_otherwise, remembered_in
from anabranch.law.arrivals.past import named
from anabranch.law.env import Env
from anabranch.law.history.evaluate import Around
from anabranch.law.history.values import WrittenValues, frozen
from anabranch.law.inputs import Arrival
from anabranch.runtime.past.value_histories import HistoryKey, ValueHistory, histories_of
from anabranch.stream.affine import Affine
from anabranch.stream.elements import DeadLetter, Item, Place
from anabranch.stream.path import Path
from anabranch.stream.tree import copy
from anabranch.values.sequences import Values


@dataclass(frozen=True, slots=True)
class ArrivingItem:
    """An item as it comes: its raw entry, and the maps into the units of query start."""

    entry: RawEntry
    item: Item
    units: Mapping[Path, Affine]
    time: Fraction
    number: int


class Evaluating(Protocol):
    """What a question about the past remembers, over which expressions are evaluated."""

    @property
    def now(self) -> Fraction: ...

    def value(self, expression: ast.Expression, env: Env, item: Arrival | None = None) -> Values: ...


class PastValues:
    """The values of one query's expressions; `histories` is what evaluations look up."""

    def __init__(
        self, query: ast.Query, inputs: Mapping[str, InputStream], around: Around, edited: Collection[str] = ()
    ) -> None:
        found = histories_of(query)
        self.dead: list[DeadLetter] = []
        """The dead letters of expressions that are kept up to date."""
        self._env = Env.of(query)
        self._growing: GrowingDisplay | None = None
        self.histories: dict[HistoryKey, ValueHistory] = {}
        growing = growing_values(query, edited)
        if growing is not None:
            streams = {name: inputs[name] for name in named(growing)}
            self._growing = GrowingDisplay(growing, streams, **around)
            self.histories.update(self._growing.histories)
        self._looked = {key: ValueHistory(each) for key, each in found.items() if key not in self.histories}
        self.histories.update(self._looked)

    def moment(self, memory: Evaluating, place: Place, came: ArrivingItem | None = None) -> None:
        """Take the value of each expression at a moment, which an element from a place has caused."""
        if self._growing is not None:
            taken = None
            if came is not None and came.entry.origin.stream in self._growing.streams:
                stream = came.entry.origin.stream
                item = replace(came.item, tree=copy(came.item.tree))
                streams = self._growing.stream(stream)
                taken = stream, streams.came(came.entry, item, came.units, came.time, came.number)
            self.dead += self._growing.moment(memory.now, place, taken).dead
        for (expression, namespaces), history in self._looked.items():
            written, failure = WrittenValues(), None
            try:
                written = frozen(memory.value(expression, replace(self._env, namespaces=dict(namespaces))))
            except DynamicError as error:
                failure = error
            history.take(memory.now, written, failure)

    # --- between epochs -----------------------------------------------------------------------------------

    def save(self) -> Any:
        """All of it as plain data."""
        growing = None if self._growing is None else self._growing.encode()
        return [growing, [each.save() for each in self._looked.values()]]

    def restore(self, data: Any) -> None:
        """Restore from `save`."""
        growing, looked = data
        if self._growing is not None:
            self._growing.decode(growing)
        for each, written in zip(self._looked.values(), looked, strict=True):
            each.restore(written)


def growing_values(query: ast.Query, edited: Collection[str] = ()) -> ast.Query | None:
    """A query for the values of those expressions that are kept up to date as their streams grow; None without any.

    The streams `edited` are those of updates, which do not only grow.
    """
    found = [each for body in (*(each.body for each in query.functions), query.body) for each in remembered_in(body)]
    asked = [
        each for each in found if not asks_otherwise(each.expression) and not reads(query, each.expression, edited)
    ]
    questions = tuple(ast.Filter(each.expression, (each.qualifier,)) for each in asked)
    return replace(query, body=ast.Sequence(tuple(dict.fromkeys(questions)))) if questions else None


def reads(query: ast.Query, expression: ast.Expression, streams: Collection[str]) -> bool:
    """Whether an expression may read one of some streams, itself or through the functions of its query."""
    return any(each in streams for each in named(replace(query, body=expression)))
