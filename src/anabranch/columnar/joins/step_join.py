"""The step join over columns (LAWS 3.5): the same movements and pairs as `law/rounds/joins.py`, in blocks.

A window only ever moves to a position at which a waiting item enters: the positions between let go of what they leave
behind, and so does the next.
An item's position is known when it arrives, because its window cannot pass it before it has entered.
So what a movement costs does not depend on how far it goes.

Each movement at which the other side holds something is a *meeting*, two spans of items all of which meet.
Pairs are made from meetings a block at a time, judged, and their answers laid out; never are all pairs there at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.items.layout import fragments_of, laid_out, ready_pieces
from anabranch.columnar.joins import kernels
from anabranch.columnar.joins.condition import PairCondition, PairJudge
from anabranch.columnar.joins.kernels import HIGH, LOW, NEXT, STEP, STRIDE, WAITING, ItemPairs, LaneState, RunTexts
from anabranch.columnar.joins.pairs import CompiledJoin, Run
from anabranch.columnar.match.condition import UNCLEAR, YES, Verdicts
from anabranch.columnar.scan.kernels import Bytes, Indices
from anabranch.columnar.scan.shred import Shredded

BLOCK = 1 << 15
"""How many pairs are judged at a time: as many as stay in a core's own memory."""
MEETINGS = 1 << 12
LONGEST = 16 << 20
"""How many bytes of answers are laid out at a time, unless one alone is longer."""
SLOW = 64
"""How many pairs are asked for one by one before their answers are laid out with the others."""


@dataclass(frozen=True, slots=True)
class Lane:
    """One side of a join: its window, all in one unit, and its items.

    Items are numbered: first those it holds, then those that wait, then those that arrive, each in their order.
    """

    size: int
    step: int
    slack: int
    next: int
    """The position the window has yet to move to."""
    held: int
    waiting: int
    values: Indices
    status: Bytes
    """What those that arrive are to the join: `VOID`, `SHOWN` or `SELECTED`."""


class StepJoinLanes:
    """Two lanes while items arrive; the only one to change its state is whoever asks for `pairs`."""

    def __init__(self, first: Lane, second: Lane) -> None:
        self._second = len(first.values)
        values = np.concatenate([first.values, second.values])
        status = np.concatenate([first.status, second.status])
        sides = np.zeros((2, kernels.FIELDS), np.int64)
        most = max(len(first.values), len(second.values))
        waiting, logs = np.empty((2, most), np.int64), np.empty((2, most + 1), np.int64)
        self._lanes = LaneState(values, status, np.empty(len(values), np.int64), sides, waiting, logs)
        for side, (lane, base) in enumerate(((first, 0), (second, self._second))):
            window, arriving = sides[side], base + lane.held + lane.waiting
            window[[kernels.SIZE, STEP, kernels.SLACK, NEXT]] = lane.size, lane.step, lane.slack, lane.next
            window[[kernels.SOONEST, HIGH, kernels.ARRIVING]] = kernels.NEVER, lane.held, arriving
            logs[side, : lane.held] = base + np.arange(lane.held)
            for item in range(base + lane.held, arriving):
                kernels.wait(window, item, values[item], self._lanes.positions, waiting[side])

    def pairs(
        self, arrivals: Indices, *, ended: bool, placed: bool = False
    ) -> Iterator[tuple[Indices, Indices, NDArray[np.int64]]]:
        """Let items arrive, each from the side that is given; the pairs that come of it, by number, in order.

        If `placed`, each comes with the positions at which both windows then stand.
        What is given is overwritten when the next is asked for.
        """
        x, y = np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int64)
        places = np.empty((2, BLOCK if placed else 0), np.int64)
        at, is_done = 0, False
        while not is_done:
            room = max(MEETINGS, int(self._lanes.sides[:, WAITING].max()) + 1)
            meetings = np.empty((room, kernels.MEETING), np.int64)
            count, at, is_done = kernels.move(arrivals, at, ended, self._lanes, meetings)
            done = np.zeros(3, np.int64)
            while number := kernels.pair(meetings[:count], self._lanes.logs, self._second, done, x, y, places):
                yield x[:number], y[:number], places[:, :number]
            self._make_room()

    def _make_room(self) -> None:
        """Let go of what no meeting needs any more."""
        sides, logs = self._lanes.sides, self._lanes.logs
        for side, (window, log) in enumerate(zip(sides, logs, strict=True)):
            held = self._held(side)
            log[: len(held)] = held
            window[LOW], window[HIGH] = 0, len(held)
        most = 2 * int(sides[:, HIGH].max()) + int(sides[:, WAITING].max()) + 1
        if most > logs.shape[1]:
            self._lanes = self._lanes._replace(logs=np.concatenate([logs, np.empty((2, most), np.int64)], axis=1))

    def _held(self, side: int) -> Indices:
        window = self._lanes.sides[side]
        items = self._lanes.logs[side, window[LOW] : window[HIGH]]
        held: Indices = items[self._lanes.values[items] >= (window[NEXT] - 1) * window[STEP]]
        return held

    def next(self, side: int) -> int:
        """The position that a side has yet to move to."""
        return int(self._lanes.sides[side, NEXT])

    def held(self, side: int) -> Indices:
        """The numbers of the items that a side holds, in order."""
        return self._held(side) - side * self._second

    def waiting(self, side: int) -> Indices:
        """The numbers of the items that wait, in order."""
        return self._lanes.waiting[side, : self._lanes.sides[side, WAITING]] - side * self._second


@dataclass(frozen=True, slots=True)
class AnswerBlock:
    """Answers one behind the other: how many, and how long the first is."""

    data: bytes
    entries: int
    first: int


class PairColumns:
    """Items of two sides that lie in columns, and what was found of them: once for all queries that ask the same."""

    def __init__(self, sides: tuple[Shredded, Shredded]) -> None:
        self._sides = sides
        self._judges: dict[PairCondition, PairJudge] = {}
        self._texts: dict[tuple[Run, ...], RunTexts] = {}

    def judge(self, condition: PairCondition) -> PairJudge:
        if condition not in self._judges:
            self._judges[condition] = PairJudge(condition, self._sides)
        return self._judges[condition]

    def texts(self, join: CompiledJoin) -> RunTexts:
        if join.runs not in self._texts:
            self._texts[join.runs] = run_texts(join, self._sides)
        return self._texts[join.runs]


def run_texts(join: CompiledJoin, sides: tuple[Shredded, Shredded]) -> RunTexts:
    """What the runs of a join's result give for all items."""
    edges: list[Indices] = []
    store: list[Bytes] = []
    runs = np.zeros((len(join.runs), 2), np.int64)
    places = size = 0
    for number, run in enumerate(join.runs):
        shredded = sides[run.side]
        fragments = fragments_of([run.fragments], join.sides[run.side].wanted)
        # what does not fit has the empty piece
        picks = np.where(shredded.fits, np.arange(len(shredded.fits)), -1)
        texts, offsets = laid_out(shredded, fragments, picks, [b""])
        runs[number] = run.side, places
        edges.append(offsets + size)
        store.append(texts)
        places += len(offsets)
        size += len(texts)
    return RunTexts(
        runs,
        np.concatenate([np.empty(0, np.int64), *edges]),
        np.concatenate([*store, np.empty(STRIDE, np.uint8)]),
    )


class PairAnswers:
    """Answers pairs of items that lie in columns, for one query."""

    def __init__(self, join: CompiledJoin, columns: PairColumns, slow: Callable[[int, int], bytes]) -> None:
        """`slow` is the law: the piece of one pair, empty where it gives none."""
        self._judge = columns.judge(join.condition)
        self._texts = columns.texts(join)
        self._slow = slow

    def answer(self, x: Indices, y: Indices) -> Iterator[AnswerBlock]:
        """The answers to some pairs, in order."""
        verdicts = self._judge.verdicts(x, y)
        unclear = np.flatnonzero(verdicts == UNCLEAR)
        for start, end in pairwise([0, *unclear[SLOW::SLOW], len(x)]):
            yield from self._answer(x[start:end], y[start:end], verdicts[start:end])

    def _answer(self, x: Indices, y: Indices, verdicts: Verdicts) -> Iterator[AnswerBlock]:
        texts = self._texts
        taken = np.flatnonzero(verdicts == YES) if len(texts.runs) else np.empty(0, np.int64)
        pieces: list[tuple[int, bytes]] = []
        for pair in map(int, np.flatnonzero(verdicts == UNCLEAR)):
            if piece := self._slow(int(x[pair]), int(y[pair])):
                pieces.append((pair, piece))
        picks = taken
        if pieces:
            order = np.argsort([*taken, *(pair for pair, _ in pieces)])
            picks = np.concatenate([taken, ~np.arange(len(pieces))])[order]
        ready, pairs = ready_pieces([piece for _, piece in pieces]), ItemPairs(x, y)
        offsets = np.zeros(len(picks) + 1, np.int64)
        kernels.measure_pairs(texts, pairs, picks, ready, offsets)
        start = 0
        while start < len(picks):
            end = max(start + 1, int(np.searchsorted(offsets, offsets[start] + LONGEST, "right")) - 1)
            size = offsets[end] - offsets[start]
            out = np.empty(size + STRIDE, np.uint8)
            kernels.lay_out_pairs(texts, pairs, picks[start:end], ready, out)
            lengths = np.diff(offsets[start : end + 1])
            lengths = lengths[lengths > 0]  # what is empty is no answer
            if len(lengths):
                yield AnswerBlock(out[:size].tobytes(), len(lengths), int(lengths[0]))
            start = end
