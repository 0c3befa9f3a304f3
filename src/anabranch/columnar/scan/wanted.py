"""What is wanted of the items of a stream, and how scanners are told.

A scanner (`xml_scan.py`, `json_scan.py`) reads one item after the other, along the parts of a look.
It sets by row and item where the text or the whole of a part starts and ends: `ABSENT` where the item has no such
part, `UNCLEAR` where it has several or its text cannot be told.
What lies inside of a repeated part is logged instead, each time it comes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from anabranch.columnar.scan.kernels import Bytes, Flags, Indices, Places
from anabranch.columnar.scan.look import Column, Look
from anabranch.columnar.scan.words import WORD

ABSENT, UNCLEAR = -1, -2
"""What stands in the place of a start."""


class Guide(NamedTuple):
    """A look and what is wanted of it, as scanners take it."""

    names: Bytes
    """The names of all parts one behind the other, those of attributes without `@`; then a word of zeros."""
    bounds: Indices
    """By part: where its name begins, and the last ends."""
    are_attributes: Flags
    """By part."""
    heads: Indices
    children: Indices
    """The parts in part p are `children[heads[p + 1] : heads[p + 2]]`; the items' own are those of p = -1."""
    texts: Indices
    wholes: Indices
    """By part: the row of its text and of all of it, -1 where it is not wanted."""
    numeric: Flags
    """By row: whether its number is wanted."""
    has_text: Flags
    """By part: whether it holds a text and nothing else."""
    frames: Indices
    """By part: the number of its frame, 0 for what an item has once; frames are numbered from 1 on."""
    repeated: Flags
    """By part: whether it may come several times; each time is a row of its frame."""


class FrameLog(NamedTuple):
    """What scanners log of repeated parts."""

    counts: Indices
    """How many rows were opened, how many spans were logged, and how many rows each frame has, from frame 1 on."""
    opened: Places
    """By opened row: its frame, and the row of the frame around it, an item's own number for frame 0."""
    spans: Places
    """By logged span: the row of what was wanted, the row of its frame, start and end."""

    @staticmethod
    def room(frames: int, count: int) -> FrameLog:
        """Room for so many of each."""
        return FrameLog(np.zeros(2 + frames, np.int64), np.empty((count, 2), np.int32), np.empty((count, 4), np.int32))


@dataclass(frozen=True)
class WantedColumns:
    """The columns that are wanted of a look, by row, and for each row whether its number is wanted."""

    look: Look
    columns: tuple[Column, ...]
    numeric: tuple[bool, ...]

    @staticmethod
    def of(look: Look, columns: Iterable[Column], numbers: Iterable[Column]) -> WantedColumns:
        """Some columns, and which of them are read as numbers."""
        numeric = set(numbers)
        ordered = tuple(sorted({*columns, *numeric}))
        return WantedColumns(look, ordered, tuple(each in numeric for each in ordered))

    @cached_property
    def rows(self) -> dict[Column, int]:
        """By column: its row."""
        return {column: row for row, column in enumerate(self.columns)}

    @cached_property
    def frames(self) -> tuple[int, ...]:
        """The repeated parts, each a frame, in the order of their numbers from 1 on."""
        return tuple(number for number, part in enumerate(self.look.parts) if part.repeated)

    @cached_property
    def guide(self) -> Guide:
        """As scanners take it."""
        parts = self.look.parts
        names = [part.name.removeprefix("@").encode() for part in parts]
        children = [self.look.children(number) for number in range(-1, len(parts))]
        frame_numbers = {-1: 0, **{part: number for number, part in enumerate(self.frames, 1)}}
        return Guide(
            np.frombuffer(b"".join(names) + bytes(WORD), np.uint8),
            np.cumsum([0, *map(len, names)]),
            np.array([part.name.startswith("@") for part in parts], np.bool_),
            np.cumsum([0, *map(len, children)]),
            np.array([child for each in children for child in each], np.int64),
            np.array([self.rows.get(number, -1) for number in range(len(parts))], np.int64),
            np.array([self.rows.get(~number, -1) for number in range(len(parts))], np.int64),
            np.array(self.numeric, np.bool_),
            np.array([part.has_text for part in parts], np.bool_),
            np.array([frame_numbers[each] for each in self.look.frames], np.int64),
            np.array([part.repeated for part in parts], np.bool_),
        )
