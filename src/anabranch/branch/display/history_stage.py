"""A stage that computes the value of an expression at each moment, and remembers it (LAWS 5.4).

It has no place on display: its value is computed as that of any other part, from aggregates where it splits
(`split.py`), and kept in a `ValueHistory`, where the other parts find it.
Where the expression fails, that is a version without content, and the rest of the query goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from anabranch.algebra.display.display import Piece
from anabranch.branch.display.evaluation import AnswerScope, Changed, QuerySite
from anabranch.branch.display.stages import NONE, Finding, Single, Stage
from anabranch.errors import DynamicError
from anabranch.law.history.values import WrittenValues, frozen
from anabranch.runtime.past.value_histories import ValueHistory
from anabranch.values.sequences import Values


@dataclass(frozen=True, slots=True)
class _Recorded(AnswerScope):
    """A place that is not on display: values that would be shown there are recorded."""

    found: list[Values] = field(default_factory=list)

    def piece(self, values: Values) -> Piece | None:
        self.found.append(values)
        return None


class HistoryStage(Stage):
    """Computes the value of an expression at each moment, by a stage that shows nothing, and remembers it."""

    def __init__(
        self,
        id: str,
        site: QuerySite,
        scope: AnswerScope,
        history: ValueHistory,
        inner: Callable[[QuerySite, AnswerScope], Single],
        stages: Callable[[], Sequence[Stage]],
    ) -> None:
        """`inner` makes the stage that computes, and `stages` gives all stages, in the order in which they settle."""
        super().__init__(id, site, scope)
        self._history, self._all = history, stages
        self._apart = QuerySite(site.evaluation)
        recorded = _Recorded(scope.env, scope.declared)
        self._found = recorded.found
        self.inner = inner(self._apart, recorded)
        self._latest: WrittenValues = []

    def find(self, changed: Changed) -> Iterator[Finding]:
        return self.inner.find(changed)

    def take(self, finding: Finding) -> None:
        self.inner.take(finding)

    def settle(self) -> None:
        self.inner.settle()
        failure = next(iter(self._apart.failing.values()), None)
        if failure is None and self._found:
            try:
                self._latest = frozen(self._found[-1])
            except DynamicError as error:
                failure = self._apart.failing[self.inner.id, NONE] = error
        self._found.clear()
        self.site.dead += self._apart.dead
        self._apart.dead.clear()
        if self._history.take(self.site.evaluation.now, [] if failure else self._latest, failure):
            stages = self._all()
            for each in stages[stages.index(self) + 1 :]:
                each.renew()

    def renew(self) -> None:
        self.inner.renew()

    def reshow(self) -> None:
        """Values are remembered in the units of the start."""

    # --- state --------------------------------------------------------------------------------------------

    def keeps(self, stream: str, entry: int) -> bool:
        return self.inner.keeps(stream, entry)

    def forgotten(self) -> Sequence[tuple[str, int]]:
        return list(self.inner.forgotten())

    def remembered(self, stream: str, entry: int) -> Any:
        return self.inner.remembered(stream, entry)

    def recall(self, stream: str, entry: int, data: Any) -> None:
        self.inner.recall(stream, entry, data)

    def recalled(self) -> None:
        self.inner.stood(None)

    def save(self) -> Any:
        """What is remembered beside entries, as plain data."""
        failing = [[*key, error.message, error.code] for key, error in self._apart.failing.items()]
        told = self._apart.told.get((self.inner.id, NONE), [])
        return [self._history.save(), self._latest, failing, told]

    def restore(self, data: Any) -> None:
        """Restore from `save`, after all entries were recalled."""
        history, self._latest, failing, told = data
        self._history.restore(history)
        self._apart.failing = {
            (part, entry): DynamicError(message, code=code) for part, entry, message, code in failing
        }
        self._apart.told.pop((self.inner.id, NONE), None)
        if told:
            self._apart.told[self.inner.id, NONE] = told
        self._apart.dead.clear()
        self._found.clear()
