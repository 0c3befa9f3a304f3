"""Windows that are sent: counted by panes like those of any query, and written when they close.

The first line gives the first complete window (`from`), and at the end of each epoch a mark gives the progress
(`reached`), where no sent window does.
So the lines depend on the epochs, but no result made of them does.

Events of the stream are passed on from the first on that is about a path of the windows; then all before it are told,
too, since punctuations count as cover (LAWS 4.8).
The maker itself lets no accent out, and goes on when a path is dropped that its windows need, or is in doubt: who needs
it ends where the windows are read, and for others the windows are the same without it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from anabranch.aggregates.written import rank_text, sum_text
from anabranch.algebra.accents.events import Announced
from anabranch.branch.panes.columns import ListedWindows, PaneColumns, held
from anabranch.branch.panes.panes import PaneWindows
from anabranch.branch.panes.plan import PanePlan, pane_plan
from anabranch.branch.panes.state import PaneState
from anabranch.branch.ports import InputStream, Output
from anabranch.branch.remote.lines import (
    EndedMark,
    EventMark,
    FromMark,
    Mark,
    ReachedMark,
    Sending,
    mark_text,
    window_text,
)
from anabranch.columnar.expressions.texts import TextColumn
from anabranch.columnar.panes.rows import Pane
from anabranch.columnar.scan.kernels import Indices
from anabranch.errors import UsageError
from anabranch.language import check, parse
from anabranch.law.calls import PythonFunction
from anabranch.law.inputs import Input
from anabranch.runtime.evolution.outlet import Outlet
from anabranch.runtime.standing import standing
from anabranch.sharing.remote import named_aggregates, window_of
from anabranch.sharing.render import render
from anabranch.sharing.tree import PropertyTree
from anabranch.stream.elements import Accent, Doubt
from anabranch.stream.path import Path


@lru_cache(maxsize=1 << 10)
def sent_plan(
    tree: PropertyTree, slack: Fraction = Fraction(0), origin: Fraction = Fraction(0), time: Path | None = None
) -> PanePlan:
    """The pane plan for sending the windows of a tree; UsageError where they cannot be sent."""
    text = render(tree)
    plan = pane_plan(standing(check(parse(text), text).query), slack, origin, time=time)
    named = (
        None
        if plan is None or plan.keys or plan.seen.asks_bounds
        else named_aggregates(plan.seen, plan.query.clause.variable, window_of(tree).path)
    )
    if plan is None or named is None:
        raise UsageError("these windows cannot be counted on their way", hint="send the items")
    return replace(plan, sending=Sending.of(tree, plan.seen.calls, named))


class SentWindows(PaneWindows):
    """The sent windows of one subscription, for one epoch."""

    def __init__(
        self,
        plan: PanePlan,
        name: str,
        stream: InputStream,
        state: PaneState | None,
        out: Output,
        functions: Mapping[str, PythonFunction] | None = None,
        documents: Mapping[str, Input] | None = None,
    ) -> None:
        super().__init__(plan, name, stream, state, out, functions, documents)
        assert plan.sending is not None
        self._sending: Sending = plan.sending
        self._begun: bool = state is not None and state.meta["begun"]
        """Whether the `from` mark was written."""
        self._told: int | None = 0 if state is None else state.meta["told"]
        """The windows before this number are known as sent; None for all."""
        self._passes: bool = state is not None and state.meta.get("passes", False)
        """Whether events are passed on."""

    def follow(self, outlet: Outlet) -> None:
        """Sent values stay in the units of the stream's beginning."""

    def tell(self, accents: Iterable[Accent | Doubt]) -> None:
        """Readers let accents out."""

    def pass_on(self, before: Sequence[Announced], announced: Announced | None = None) -> None:
        """Pass an event on, and the first time those before it; complete windows have been sent."""
        events = [*(() if self._passes else before), *(() if announced is None else (announced,))]
        self._passes = True
        for each in events:
            self._mark(EventMark(each))

    def end(self, reason: str) -> None:
        """Make no more windows."""
        self._mark(EndedMark(reason))

    # --- marks --------------------------------------------------------------------------------------------

    def begin(self, first: int) -> None:
        """Set the first complete window."""
        super().begin(first)
        if not self._begun:
            self._mark(FromMark(first))
            self._begun = True

    def close(self) -> None:
        """Send the windows whose ends the stream has reached, in order, and the marks of the epoch."""
        if not self._is_timed:
            self.begin(0)  # which count from the subscription's own start (LAWS 3.3)
        elif not self._stream.late or self._progress.first is not None:
            self.begin(max(0, self._progress.first_window(self._plan.extent)))
        super().close()
        if self._told is None:
            return
        if self._is_timed and self._progress.reached == math.inf:
            self._mark(ReachedMark(None))
            self._told = None
        elif self._next > self._told:
            self._mark(ReachedMark(self._next))
            self._told = self._next

    def _close_early(self) -> None:
        """Sent windows are numbered from 0 on; a reader ends by name where there are earlier ones."""
        if not self._early or self._reached is None:
            return
        self._early.clear()
        self.end("its stream has times before 1970, or its origin, and windows of these are not made on their way")

    def _mark(self, mark: Mark) -> None:
        self._out.piece(mark_text(mark))

    # --- windows ------------------------------------------------------------------------------------------

    def _write_listed(self, windows: Sequence[Pane], numbers: Sequence[int]) -> None:
        known = [window.partials for window in windows]
        failing = [any(each.failure for each in partials) for partials in known]
        whole = [partials for partials, has_failed in zip(known, failing, strict=True) if not has_failed]
        chosen = iter(held(self._sending.test, ListedWindows(whole, self._plan.seen.calls)).tolist())
        for number, partials, has_failed in zip(numbers, known, failing, strict=True):
            if has_failed or next(chosen):
                told = [partials[each] for each in self._sending.paths]
                self._out.piece(window_text(number, told, self._sending.layout))
                self._told = number + 1

    def _column_writer(self) -> Callable[[PaneColumns, Indices], None] | None:
        return self._send_columns

    def _send_columns(self, columns: PaneColumns, numbers: Indices) -> None:
        chosen = np.flatnonzero(held(self._sending.test, columns))
        if not len(chosen):
            return
        columns = columns.at(chosen)
        parts = [[f'<w n="{number}">' for number in numbers[chosen].tolist()]]
        for path, fields in zip(self._sending.paths, self._sending.layout.fields, strict=True):
            texts = [[f' {field}="{text}"' for text in _texts(columns, path, field)] for field in fields]
            parts.append([f"<v{''.join(each)}/>" for each in zip(*texts, strict=True)])
        self._extend(TextColumn.of(*(f"{''.join(each)}</w>".encode() for each in zip(*parts, strict=True))))
        self._told = int(numbers[chosen[-1]]) + 1

    # --- between epochs -----------------------------------------------------------------------------------

    def save(self) -> PaneState:
        """The state after the epoch."""
        found = super().save()
        meta = {"begun": self._begun, "told": self._told, "passes": self._passes}
        return replace(found, meta={**found.meta, **meta})


def _texts(columns: PaneColumns, path: int, field: str) -> list[str]:
    """By window: one field of a path."""
    match field:
        case "c":
            return list(map(str, columns.counts(path).tolist()))
        case "s":
            totals, places = columns.sums(path)
            return [
                sum_text(count, each, places) for count, each in zip(columns.counts(path).tolist(), totals, strict=True)
            ]
        case _:
            return list(map(rank_text, columns.ranked(path, greatest=field == "g")))
