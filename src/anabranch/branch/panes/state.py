"""What branches remember of their panes between epochs; the states of a shard's branches lie in one blob."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anabranch.branch.state import BranchState
from anabranch.columnar.panes.keys import Key, key_table, keys_of
from anabranch.columnar.panes.rows import GroupPane, ManyPanes, Numbered, Rows, together
from anabranch.errors import StateError

OPERATOR = "panes"
_KEYS = "keys "
"""The names of key tables begin so; the place of their branch follows."""


@dataclass(frozen=True, slots=True)
class PaneState:
    """What one branch remembers."""

    meta: dict[str, Any]
    rows: Rows
    odd: tuple[GroupPane, ...]
    """Panes that do not fit into rows."""
    keys: Sequence[Key] = ()
    """The keys of the groups of its panes; the first has the number 1."""


def pack(states: Mapping[int, PaneState]) -> BranchState:
    """The states of branches by their numbers, as one."""
    rows: dict[int, list[Rows]] = {}
    odd: list[Numbered] = []
    for place, each in enumerate(states.values()):
        rows.setdefault(each.rows.paths, []).append(each.rows.of(place))
        odd += ((place, key, number, pane) for (key, number), pane in each.odd)
    panes = ManyPanes({paths: together(parts, paths) for paths, parts in rows.items()}, tuple(odd))
    branches = [[number, each.rows.paths, each.meta] for number, each in states.items()]
    keys = {f"{_KEYS}{place}": key_table(each.keys) for place, each in enumerate(states.values()) if each.keys}
    return BranchState({"operator": OPERATOR, "branches": branches}, {**panes.tables(), **keys})


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
        keys = state.tables.get(f"{_KEYS}{place}")
        found[number] = PaneState(meta, rows, tuple(odd), () if keys is None else keys_of(keys))
    return found
