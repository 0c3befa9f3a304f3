"""What windows counted by panes remember between two epochs; that of many branches is written together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from anabranch.branch.state import BranchState
from anabranch.columnar.panes.rows import Pane, Rows, together
from anabranch.columnar.panes.tables import ManyPanes, Numbered
from anabranch.errors import StateError

OPERATOR = "panes"


@dataclass(frozen=True, slots=True)
class PaneState:
    """What one branch remembers."""

    meta: dict[str, Any]
    rows: Rows
    odd: tuple[tuple[int, Pane], ...]
    """Panes that are no rows, by number."""


def pack(states: Mapping[int, PaneState]) -> BranchState:
    """The states of branches by their numbers, as one."""
    rows: dict[int, list[Rows]] = {}
    odd: list[Numbered] = []
    for place, each in enumerate(states.values()):
        rows.setdefault(len(each.rows.counts), []).append(each.rows.of(place))
        odd += ((place, number, pane) for number, pane in each.odd)
    panes = ManyPanes({paths: together(parts, paths) for paths, parts in rows.items()}, tuple(odd))
    branches = [[number, len(each.rows.counts), each.meta] for number, each in states.items()]
    return BranchState({"operator": OPERATOR, "branches": branches}, panes.tables())


def unpack(state: BranchState, name: str) -> dict[int, PaneState]:
    """The states that were packed; `name` is one of the subscriptions they are for."""
    if state.meta["operator"] != OPERATOR:
        raise StateError(
            f"the state of '{name}' is one of '{state.meta['operator']}', and the query needs '{OPERATOR}'"
        )
    panes = ManyPanes.read(state.tables, max((meta["order"] for _, _, meta in state.meta["branches"]), default=0))
    found: dict[int, PaneState] = {}
    for place, (number, paths, meta) in enumerate(state.meta["branches"]):
        rows, odd = panes.member(place, paths)
        found[number] = PaneState(meta, rows, tuple(odd))
    return found
