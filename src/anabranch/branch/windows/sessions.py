"""Sessions that hold their items: LAWS 3.9, item by item.

The operator holds the nodes of open sessions, by key and session.
The sessions of a key are the gap or more apart; a node that is less than the gap from two of them merges them, which
the slack of the stream allows for as long as both are open.
A session is answered when the stream has reached its largest value and the gap; nothing that is not late can belong to
it any more.

Several queries over the same source, with the same reference and key, are one operator, as those with windows are
(`windows.py`); queries with equal gaps have their sessions together.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from heapq import heappop, heappush
from operator import attrgetter
from typing import Any

import pyarrow as pa

from anabranch.branch.futures import NEVER, digest, node_since
from anabranch.branch.held_items import HeldItem, HeldNode, Shelf, placed_tables
from anabranch.branch.intake.merge import StreamSignal
from anabranch.branch.members import Asker, Everyone
from anabranch.branch.windows.selection import WindowProgress, WindowSelection
from anabranch.branch.windows.windows import window_values
from anabranch.language import ast
from anabranch.law.rounds.windows import Reach, SessionKey, amount_on
from anabranch.stream.path import TimeScale


class Session:
    """Nodes of one key, each of which is less than the gap from the next one by value."""

    __slots__ = ("high", "is_merged", "key", "low", "nodes")

    def __init__(self, key: SessionKey, node: HeldNode) -> None:
        self.key = key
        self.low = self.high = node.value
        self.nodes = [node]
        self.is_merged = False
        """Whether another session has absorbed it."""

    def add(self, node: HeldNode) -> None:
        """Take in a node that is near enough."""
        self.low, self.high = min(self.low, node.value), max(self.high, node.value)
        self.nodes.append(node)

    def absorb(self, other: Session) -> None:
        """Merge with another session, which is not used any more."""
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        fewer, more = sorted((self.nodes, other.nodes), key=len)
        more.extend(fewer)
        self.nodes = more
        other.is_merged = True

    @property
    def first(self) -> tuple[int, int]:
        """The key of the node that came first."""
        return min(each.key for each in self.nodes)

    def in_order(self) -> list[HeldNode]:
        """Its nodes in the order of the stream."""
        return sorted(self.nodes, key=attrgetter("key"))


class SessionSequence:
    """The sessions of one gap, and the queries that have exactly these."""

    def __init__(self, gap: Fraction, scale: TimeScale, askers: Sequence[Asker]) -> None:
        self.gap = gap
        self._scale = scale
        self.askers = askers
        self.count = 0
        """How many nodes it holds."""
        self._open: dict[SessionKey, list[Session]] = {}
        """By key, in the order of their values."""
        self._ends: list[tuple[Fraction, int, Session]] = []
        """A heap of the open sessions, by an end that each has had: it ends there or later."""
        self._made = 0

    def hold(self, key: SessionKey, node: HeldNode) -> None:
        """Take a node into its session; it may begin a new one, or merge two."""
        self.count += 1
        mine = self._open.setdefault(key, [])
        at = bisect_left(mine, node.value, key=attrgetter("low"))
        before = mine[at - 1] if at and node.value - mine[at - 1].high < self.gap else None
        behind = mine[at] if at < len(mine) and mine[at].low - node.value < self.gap else None
        match before, behind:
            case None, None:
                session = Session(key, node)
                mine.insert(at, session)
                self._made += 1
                heappush(self._ends, (session.high + self.gap, self._made, session))
            case Session() as one, None:
                one.add(node)
            case None, Session() as one:
                one.add(node)
            case Session() as one, Session() as other:
                one.add(node)
                one.absorb(other)
                del mine[at]

    def close(self, reached: Reach, first: Fraction | None) -> None:
        """Answer all sessions that end at or before `reached`, in the order of LAWS 3.9.

        Sessions that begin less than a gap behind `first`, the first value of a late subscription, are left out.
        """
        for session in self._ended(reached):
            if first is not None and session.low < first + self.gap:
                continue
            held = session.in_order()
            nodes = window_values(held, session.low, session.high + self.gap, self._scale)
            for asker in self.askers:
                asker.answers.give(held[0].kept, held, partial(asker.window, held, nodes))

    def _ended(self, reached: Reach) -> list[Session]:
        found: list[Session] = []
        while self._ends and self._ends[0][0] <= reached:
            _, number, session = heappop(self._ends)
            if session.is_merged:
                continue
            end = session.high + self.gap
            if end > reached:
                heappush(self._ends, (end, number, session))
                continue
            found.append(session)
            self.count -= len(session.nodes)
            mine = self._open[session.key]
            mine.remove(session)
            if not mine:
                del self._open[session.key]
        return sorted(found, key=lambda each: (each.high, each.first))

    def is_whole(self, progress: WindowProgress) -> bool:
        """Whether a late subscription will leave no session out any more."""
        first = progress.first_seen
        lows = (session.low for mine in self._open.values() for session in mine)
        return first is None or min([Fraction(progress.reached or 0), *lows]) >= first + self.gap

    def held(self) -> Iterator[tuple[SessionKey, HeldNode]]:
        """All nodes that it holds, with their keys."""
        for key, mine in self._open.items():
            for session in mine:
                yield from ((key, node) for node in session.nodes)


class Sessions:
    """The operator for one `for` with sessions."""

    def __init__(self, askers: Sequence[Asker], shelf: Shelf) -> None:
        self._everyone = Everyone(askers)
        self._judge = WindowSelection(0, askers[0].standing, shelf, self._everyone)
        self._shelf = shelf
        found: dict[Fraction, list[Asker]] = {}
        for asker in askers:
            window = asker.standing.fors[0].window
            assert isinstance(window, ast.SessionWindow), "windows have an operator of their own"
            found.setdefault(amount_on(window.gap, self._judge.scale), []).append(asker)
        self._sequences = {str(gap): SessionSequence(gap, self._judge.scale, those) for gap, those in found.items()}

    def item(self, kept: HeldItem) -> None:
        """Take the next item."""
        for key, held in self._judge.keyed(kept):
            if held is not None:
                for each in self._sequences.values():
                    each.hold(key, held)
            self._close(self._judge.reached)

    def signal(self, signal: StreamSignal) -> None:
        """Take a punctuation or the end of a partition."""
        self._judge.signal(signal)
        self._close(self._judge.reached)

    def finish(self) -> None:
        """The input has ended."""
        self._close(math.inf)

    def _close(self, reached: Reach | None) -> None:
        if reached is not None:
            for each in self._sequences.values():
                each.close(reached, self._judge.progress.first_seen)

    # --- between epochs -----------------------------------------------------------------------------------

    def future(self, asker: Asker) -> str:
        """The future of one query (`branch/futures.py`)."""
        progress, taken = self._judge.progress, self._shelf.taken
        (sequence,) = (each for each in self._sequences.values() if any(one is asker for one in each.askers))
        if (now := progress.now) is None or not sequence.is_whole(progress):
            return NEVER
        left = [[key, node_since(held, taken)] for key, held in sequence.held()]
        return digest(now, sorted(left, key=json.dumps))

    def held(self) -> list[HeldNode]:
        """All nodes that the branch holds."""
        return [held for each in self._sequences.values() for _, held in each.held()]

    def loads(self) -> Iterator[tuple[Sequence[Asker], int]]:
        """How many nodes queries hold."""
        return ((each.askers, each.count) for each in self._sequences.values())

    def save(self) -> tuple[dict[str, Any], dict[str, pa.Table]]:
        """The rest of the state."""
        placed = (
            (json.dumps([name, key]), held, None) for name, each in self._sequences.items() for key, held in each.held()
        )
        return {"progress": self._judge.save()}, placed_tables(placed)

    def restore(self, meta: dict[str, Any], tables: dict[str, pa.Table]) -> None:
        """Restore from `save`; nodes that only removed queries held are dropped."""
        self._judge.restore(meta["progress"])
        for text, held, _ in self._shelf.placed(tables):
            name, key = json.loads(text)
            if name in self._sequences:
                self._sequences[name].hold(key, held)
