"""The remembered values of expressions that are no path, and are asked for their past (LAWS 5.4).

A closed expression has one value at each moment of a query, so its versions are remembered once for all places that ask
for them (`ValueHistory`), as many as can still be asked for; evaluations look them up (`Remembering`).
Displays compute them by a stage of their own (`branch/display/history_stage.py`), questions about items as items come
(`branch/past/values.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, TypeAlias

from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.language.rewrite import children
from anabranch.language.versions import ValuePast, is_closed, value_past
from anabranch.law.env import Env
from anabranch.law.evaluate import Evaluator
from anabranch.law.history.values import ValueVersion, WrittenValues, chosen_values
from anabranch.law.slices import Slice
from anabranch.sharing.retention import Lookback, Lookbacks, kept, needed
from anabranch.values.numbers import read_fraction, write_fraction
from anabranch.values.sequences import Values

HistoryKey: TypeAlias = tuple[ast.Expression, frozenset[tuple[str, str]]]
"""An expression, and what prefixes mean there."""


def history_key(expression: ast.Expression, namespaces: Mapping[str, str]) -> HistoryKey:
    """The key of an expression at a place with these prefixes."""
    return expression, frozenset(namespaces.items())


def histories_of(query: ast.Query) -> dict[HistoryKey, Lookbacks]:
    """The closed expressions of a query whose versions are asked for, inner ones first, each with how far back."""
    found: dict[HistoryKey, Lookbacks] = {}
    start = dict(Env.of(query).namespaces)
    for body in (*(each.body for each in query.functions), query.body):
        for past, namespaces, ago in _asked_in(body, start, Fraction(0)):
            key = history_key(past.expression, namespaces)
            counts, amount = past.qualifier.kind == "version", past.qualifier.amount
            own = Lookback(int(amount.text), ago) if counts else Lookback(0, ago + amount.exact)
            found[key] = needed((*found.get(key, ()), own))
    return found


def _asked_in(
    node: Any, namespaces: Mapping[str, str], ago: Fraction
) -> Iterator[tuple[ValuePast, Mapping[str, str], Fraction]]:
    """The questions in a part of a query, and how many seconds ago each is asked: `(e)?t` asks what is in it then."""
    past = value_past(node)
    inside = ago
    if past is not None and not past.has_versions:
        inside += past.qualifier.amount.exact
    if isinstance(node, ast.ElementConstructor):
        namespaces = {**namespaces, **dict(node.namespaces)}
    for each in children(node):
        yield from _asked_in(each, namespaces, inside)
    if past is not None and past.has_versions and is_closed(past.expression):
        yield past, namespaces, ago


class ValueHistory:
    """The versions of one expression that can still be asked for, newest first."""

    def __init__(self, lookbacks: Lookbacks) -> None:
        self._lookbacks = lookbacks
        self._seconds = max(each.seconds for each in lookbacks)
        self.versions: list[ValueVersion] = []
        self.now = Fraction(0)
        """The time of the latest moment."""
        self.failure: DynamicError | None = None
        """Why the expression fails now, if it does."""

    def take(self, now: Fraction, written: WrittenValues, failure: DynamicError | None) -> bool:
        """Take the value of a moment; gives whether what a question gets may have changed, if only by time."""
        before = self.versions, self.failure
        ages = now > self.now and bool(self.versions) and self.now - self.versions[0].start <= self._seconds
        self.now, self.failure = now, failure
        if not self.versions or self.versions[0].written != written:
            self.versions = [ValueVersion(now, written), *self.versions]
        ends = [None, *(each.start for each in self.versions[:-1])]
        self.versions = self.versions[: kept(self._lookbacks, ends, now)]
        return ages or (self.versions, self.failure) != before

    def asked(self, qualifier: ast.Qualifier, now: Fraction) -> Values:
        """What a qualifier gives at a time, which is now or earlier."""
        latest = next((place for place, each in enumerate(self.versions) if each.start <= now), len(self.versions))
        return chosen_values(self.versions[latest:], qualifier, now, self.failure if now == self.now else None)

    # --- state --------------------------------------------------------------------------------------------

    def save(self) -> Any:
        """All of it as plain data."""
        failure = None if self.failure is None else [self.failure.message, self.failure.code]
        versions = [[write_fraction(each.start), each.written] for each in self.versions]
        return [versions, write_fraction(self.now), failure]

    def restore(self, data: Any) -> None:
        """Restore from `save`."""
        versions, now, failure = data
        self.now = read_fraction(now)
        self.versions = [ValueVersion(read_fraction(start), written) for start, written in versions]
        self.failure = None if failure is None else DynamicError(failure[0], code=failure[1])


class Remembering(Evaluator, ABC):
    """An evaluator that looks values of the past up, where they are remembered."""

    histories: Mapping[HistoryKey, ValueHistory] = {}  # those of a query are set

    def walk(self, expression: ast.Expression, env: Env, part: Slice | None = None) -> Values:
        past = value_past(expression) if self.histories else None
        history = None if past is None else self.histories.get(history_key(past.expression, env.namespaces))
        if past is None or history is None or not past.has_versions:
            return super().walk(expression, env, part)
        return self._filter(history.asked(past.qualifier, self.moment_time()), past.behind, env, part)

    @abstractmethod
    def moment_time(self) -> Fraction:
        """The time as of which this evaluates."""
