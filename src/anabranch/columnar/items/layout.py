"""The layout of answers: the texts that compiled queries give for items in columns, written into one buffer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from anabranch.columnar.expressions.evaluating import FrameEvaluation
from anabranch.columnar.expressions.texts import TextColumn
from anabranch.columnar.expressions.tree import Constant, Fragment, Kind, Made, Taken, Wrapped
from anabranch.columnar.expressions.values import UNCLEAR, ColumnValue
from anabranch.columnar.items import kernels
from anabranch.columnar.items.kernels import Fragments, ItemLeaves, MadeTexts, OwnedTexts, ReadyPieces
from anabranch.columnar.items.query import CompiledQuery, made_in
from anabranch.columnar.scan.kernels import Bytes, Flags, Indices, Numbers, Places
from anabranch.columnar.scan.shred import Shredded
from anabranch.columnar.scan.wanted import WantedColumns

_NO_BYTES = np.empty(0, np.uint8)
NO_FRAGMENTS = Fragments(np.empty((0, 3), np.int64), np.zeros(1, np.int64), _NO_BYTES, np.empty(0, np.bool_))
NO_TEXTS = MadeTexts(np.empty(0, np.uint8), np.empty((0, 0), np.int32), np.empty((0, 0), np.int32))


def fragments_of(sets: Sequence[Sequence[Fragment]], wanted: WantedColumns) -> Fragments:
    """Sets of fragments in the form the kernels take."""
    fixed = bytearray()
    found: list[tuple[int, int, int]] = []
    bounds = [0]
    own: list[bool] = []

    def add(fragments: Sequence[Fragment], made: int) -> int:
        """Add fragments behind `made` computed texts; returns the number of computed texts then."""
        for each in fragments:
            match each:
                case bytes():
                    found.append((kernels.FIXED, len(fixed), len(fixed) + len(each)))
                    fixed.extend(each)
                case Taken(column, front=front):
                    assert not front, "it is computed"
                    found.append((kernels.TAKEN, wanted.rows[column], 0))
                case Made():
                    found.append((kernels.MADE, made, 0))
                    made += 1
                case Wrapped(content, end_tag):
                    found.append((kernels.CONTENT, len(content), 0))
                    made = add((*content, end_tag), made)
        return made

    for each in sets:
        own.append(add(each, 0) > 0)
        bounds.append(len(found))
    rows = np.array(found, np.int64).reshape(-1, 3)
    return Fragments(rows, np.array(bounds, np.int64), np.frombuffer(bytes(fixed), np.uint8), np.array(own, np.bool_))


@dataclass(frozen=True, slots=True)
class SetConstants:
    """The constants that the queries of a set have in the place of marks."""

    first: int
    """The number of the first query."""
    numbers: Mapping[float, Numbers]
    texts: Mapping[bytes, TextColumn]
    """By mark: the constant of each query."""

    @staticmethod
    def of(first: int, marks: Sequence[Constant], constants: Sequence[Sequence[Constant]]) -> SetConstants:
        """`constants` are by query, in the order of the marks."""
        numbers: dict[float, Numbers] = {}
        texts: dict[bytes, TextColumn] = {}
        for mark, found in zip(marks, zip(*constants, strict=True), strict=True):
            if isinstance(mark, bytes):
                texts[mark] = TextColumn.of(*(each for each in found if isinstance(each, bytes)))
            else:
                numbers[mark] = np.array(found, np.float64)
        return SetConstants(first, numbers, texts)

    def taken(self, queries: Indices) -> dict[Constant, ColumnValue]:
        """The constants of some queries, by mark."""
        mine = queries - self.first
        found: dict[Constant, ColumnValue] = {}
        for mark, numbers in self.numbers.items():
            found[mark] = ColumnValue(Kind.DOUBLE, numbers=numbers[mine])
        for text, texts in self.texts.items():
            found[text] = ColumnValue(Kind.STRING, texts=texts.take(mine))
        return found


def computed_texts(
    shredded: Shredded,
    sets: Sequence[Sequence[Made]],
    given: Indices,
    entries: Places,
    queries: Places | None = None,
    constants: Sequence[SetConstants | None] = (),
) -> tuple[MadeTexts, Flags]:
    """The computed texts of some answers, each made of a set for an entry; and which of them are unclear.

    Where sets have constants, `queries` gives the query of each answer.
    """
    rows, count = max(map(len, sets), default=0), len(given)
    starts, ends = (np.zeros((rows, count), np.int32) for _ in range(2))
    unclear = np.zeros(count, np.bool_)
    buffers: list[Bytes] = []
    size = 0
    order = np.argsort(given, kind="stable")
    bounds = np.searchsorted(given, np.arange(len(sets) + 1), sorter=order)
    for number, wanted in enumerate(sets):
        mine = order[bounds[number] : bounds[number + 1]]
        if not wanted or not len(mine):
            continue
        own = constants[number] if constants else None
        taken = own.taken(queries[mine].astype(np.int64)) if own is not None and queries is not None else {}
        evaluation = FrameEvaluation(shredded, entries[mine].astype(np.int64), constants=taken)
        for row, each in enumerate(wanted):
            (text,), state = evaluation.fragment(each)
            starts[row, mine], ends[row, mine] = text.starts + size, text.ends + size
            buffers.append(text.data)
            size += len(text.data)
            if state is not None:
                unclear[mine[state == UNCLEAR]] = True
    return MadeTexts(np.concatenate([np.empty(0, np.uint8), *buffers]), starts, ends), unclear


def ready_pieces(pieces: Sequence[bytes]) -> ReadyPieces:
    """Texts as the kernels take them."""
    bounds = np.array([*accumulate(map(len, pieces), initial=0)], np.int64)
    return ReadyPieces(np.frombuffer(b"".join(pieces), np.uint8), bounds)


@dataclass(frozen=True, slots=True)
class Laid:
    """A compiled query with its fragments in the form the kernels take."""

    query: CompiledQuery
    fragments: Fragments
    made: tuple[Made, ...]

    @staticmethod
    def of(query: CompiledQuery, wanted: WantedColumns) -> Laid:
        return Laid(query, fragments_of([query.fragments], wanted), tuple(made_in(query.fragments)))


@dataclass(frozen=True, slots=True)
class Dealt:
    """Texts by owner: where the texts of each begin, their bytes, their number, and the length of the first."""

    data: Bytes
    lengths: Indices
    """The lengths of all texts, in the order in which they were given."""
    begins: Indices
    sizes: Indices
    counts: Indices
    firsts: Indices


class Scratch:
    """A reusable buffer, whose content is valid until its next use: new large arrays are slow to write at first."""

    def __init__(self) -> None:
        self._bytes = np.empty(0, np.uint8)

    def of(self, size: int) -> Bytes:
        if len(self._bytes) < size:
            self._bytes = np.empty(size + size // 4, np.uint8)
        return self._bytes[:size]


def dealt(
    shredded: Shredded,
    made: MadeTexts,
    fragments: Fragments,
    texts: OwnedTexts,
    count: int,
    pieces: Sequence[bytes],
    scratch: Scratch,
) -> Dealt:
    """Lay out texts, those of each of `count` owners together and in their order.

    The result is valid until the scratch is used again.
    """
    ready = ready_pieces(pieces)
    lengths, sources = (np.empty(len(texts.items), np.int64) for _ in range(2))
    owned = np.zeros((count, 3), np.int64)
    leaves = ItemLeaves(shredded.data, shredded.starts, shredded.ends)
    given = leaves, made, fragments, ready, texts, lengths, sources
    kernels.measure(*given, owned)
    sizes, counts, firsts = owned[:, kernels.SIZE], owned[:, kernels.COUNT], owned[:, kernels.FIRST]
    ends = np.cumsum(sizes)
    data = scratch.of(int(ends[-1]) if count else 0)
    kernels.deal(*given, ends - sizes, data)
    return Dealt(data, lengths, ends - sizes, sizes, counts, firsts)


def laid_out(
    shredded: Shredded,
    fragments: Fragments,
    picks: Indices,
    pieces: Sequence[bytes],
    made: MadeTexts = NO_TEXTS,
    places: Indices | None = None,
) -> tuple[Bytes, Indices]:
    """The answers to the items that were picked, with complete pieces among them, and where each ends.

    A pick is the number of an entry, or, below 0, the complement of the number of a piece; there is one set of
    fragments, and `places` has the place of the computed texts of each pick.
    """
    nothing = np.zeros(len(picks), np.int64)
    owners = np.zeros(len(picks), np.int32)
    texts = OwnedTexts(np.minimum(picks, 0), picks.astype(np.int32), owners, nothing if places is None else places)
    found = dealt(shredded, made, fragments, texts, 1, pieces, Scratch())
    return found.data, np.concatenate([[0], np.cumsum(found.lengths)])
