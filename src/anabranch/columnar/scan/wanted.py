"""The wanted columns of a stream's items, and their form for scanners.

A scanner (`xml_scan.py`, `json_scan.py`) reads one item after the other, along the parts of a look.
It sets by row and item the start and end of the text or the whole of a part: `ABSENT` where the item has no such part,
`UNCLEAR` where it has several or its text is not in one place.
Parts inside a repeated part are logged instead, each time they come.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from anabranch.columnar.expressions.tree import Column, Expression, Fragment, read_columns, read_numbers
from anabranch.columnar.scan.kernels import ABSENT, Bytes, Flags, Indices, ItemColumns, Pattern, Places
from anabranch.columnar.scan.look import JSON_TYPES, NULL_ONLY, Look, LookPart, PartColumn
from anabranch.columnar.scan.template import PLAIN, Anchor, TemplatePart, declaring
from anabranch.columnar.scan.words import WORD
from anabranch.stream.reading.json_items import write_string
from anabranch.stream.reading.json_names import MEMBER, key_of_step


class Guide(NamedTuple):
    """A look and its wanted columns, as arrays for scanners."""

    names: Bytes
    """The names of all parts one behind the other, those of attributes without `@`; then the URIs of declarations, and
    a word of zeros."""
    bounds: Indices
    """By part: the start of its name; then the end of the last."""
    are_attributes: Flags
    """By part."""
    heads: Indices
    children: Indices
    """The parts in part p are `children[heads[p + 1] : heads[p + 2]]`; the items' own are those of p = -1."""
    texts: Indices
    wholes: Indices
    """By part: the row of its text and of the whole part, -1 where it is not wanted."""
    numeric: Flags
    """By row: whether its number is wanted."""
    has_text: Flags
    """By part: whether it holds a text and nothing else; in JSON not before its type was seen."""
    frames: Indices
    """By part: the number of its frame, 0 for a part that an item has once; frames are numbered from 1 on."""
    repeated: Flags
    """By part: whether it may come several times; each time is a row of its frame."""
    declared: Indices
    """By part: the number of declarations of all parts before it; then the number of all.

    Declarations are attributes that an element must have with one value. They are parts behind those of the look, which
    nobody can ask for."""
    uris: Indices
    """By declaration: where its value begins among the names, and the last ends."""
    types: Indices
    """By part: the type of JSON that its values have (`JSON_TYPES`), -1 where that is not known."""
    typed: Indices
    """By part: the row of the values of this type, -1 where it is not wanted; of objects their place in the record."""
    arrays: Indices
    """By part: the row of the places of its arrays in the record, -1 where it is not wanted."""
    holds_typed: Flags
    """By part: whether one of these is wanted of a part inside of it."""
    keys: Bytes
    """In JSON, the keys of all parts one behind the other, as the law writes them in quotes; then a word of zeros."""
    key_bounds: Indices
    """By part: the start of its key; then the end of the last."""
    members: Indices
    """By part: the part that the members of an array are which stands in its place as a member of an array; -1 where
    none was seen."""


class FrameLog(NamedTuple):
    """The log of a scanner: the rows and spans of repeated parts."""

    counts: Indices
    """The numbers of opened rows, of logged spans, and of the rows of each frame, from frame 1 on."""
    opened: Places
    """By opened row: its frame, and the row of the frame around it, an item's own number for frame 0."""
    spans: Places
    """By logged span: the row of its column, the row of its frame, start and end."""

    @staticmethod
    def room(frames: int, count: int) -> FrameLog:
        """An empty log for `count` rows and `count` spans."""
        return FrameLog(np.zeros(2 + frames, np.int64), np.empty((count, 2), np.int32), np.empty((count, 4), np.int32))


@dataclass(frozen=True)
class WantedColumns:
    """The wanted columns of a look, by row, and for each row whether its number is wanted."""

    look: Look
    columns: tuple[PartColumn, ...]
    numeric: tuple[bool, ...]
    computed: tuple[Expression, ...] = ()
    """The expressions whose values are rows behind these."""
    joined: Look | None = field(default=None, compare=False)
    """The look of items with the rows that are looked up for them, where there are lookups."""

    @property
    def all_parts(self) -> Look:
        """The look of all parts that expressions may read, of items and of rows that are looked up for them."""
        return self.joined or self.look

    @staticmethod
    def of(
        look: Look, columns: Iterable[Column], numbers: Iterable[Column], others: Iterable[Column | Fragment] = ()
    ) -> WantedColumns:
        """The rows for some columns, of which `numbers` are read as numbers; of `others` only the columns they read."""
        given, made = tuple(columns), (*others, *look.sought)
        computed = tuple(dict.fromkeys(each for each in given if not isinstance(each, int)))
        numeric = {part for each in (*numbers, *computed, *made) for part in read_numbers(each)}
        read = sorted(numeric.union(*(read_columns(each) for each in (*given, *made))))
        items = look.of_items
        if items is look:
            return WantedColumns(look, tuple(read), tuple(each in numeric for each in read), computed)
        mine = [each for each in read if (each if each >= 0 else ~each) < len(items.parts)]
        look.want(set(read).difference(mine))
        return WantedColumns(items, tuple(mine), tuple(each in numeric for each in mine), computed, look)

    def computing(self, columns: Iterable[Column]) -> WantedColumns:
        """The wanted columns with other computed rows: those for the expressions among `columns`."""
        return replace(self, computed=tuple(dict.fromkeys(each for each in columns if not isinstance(each, int))))

    @cached_property
    def rows(self) -> dict[Column, int]:
        """By column: its row."""
        return {column: row for row, column in enumerate((*self.columns, *self.computed))}

    @cached_property
    def untyped(self) -> list[int]:
        """The rows that have nothing to do with the types of JSON."""
        parts = (self.look.parts[column if column >= 0 else ~column] for column in self.columns)
        return [row for row, part in enumerate(parts) if not part.is_typed]

    @cached_property
    def frames(self) -> tuple[int, ...]:
        """The repeated parts, each a frame, in the order of their numbers from 1 on."""
        return tuple(number for number, part in enumerate(self.look.parts) if part.repeated)

    @cached_property
    def guide(self) -> Guide:
        """The wanted columns in the form for scanners."""
        declared = [(number, *each) for number, part in enumerate(self.look.parts) for each in part.declared]
        hidden = (LookPart(f"@{declaring(prefix)}", number, has_text=True) for number, prefix, _ in declared)
        look = Look((*self.look.parts, *hidden))
        parts = look.parts
        names = [part.name.removeprefix("@").encode() for part in parts]
        uris = [uri.encode() for _, _, uri in declared]
        keys = [key_of_step(part.name) if self.look.is_json else "" for part in parts]
        own, *inside = [look.children(number) for number in range(-1, len(parts))]
        children = [own, *([child for child in each if keys[child] is not None] for each in inside)]
        spelled = [write_string(key or "")[1:-1].encode() for key in keys]
        frame_numbers = {-1: 0, **{part: number for number, part in enumerate(self.frames, 1)}}
        return Guide(
            np.frombuffer(b"".join((*names, *uris)) + bytes(WORD), np.uint8),
            np.cumsum([0, *map(len, names)]),
            np.array([part.name.startswith("@") for part in parts], np.bool_),
            np.cumsum([0, *map(len, children)]),
            np.array([child for each in children for child in each], np.int64),
            np.array([self.rows.get(number, -1) for number in range(len(parts))], np.int64),
            np.array([self.rows.get(~number, -1) for number in range(len(parts))], np.int64),
            np.array(self.numeric, np.bool_),
            np.array([part.has_text and part.json_type != NULL_ONLY for part in parts], np.bool_),
            np.array([frame_numbers[each] for each in look.frames], np.int64),
            np.array([part.repeated for part in parts], np.bool_),
            np.cumsum([0, *(len(part.declared) for part in parts)]),
            sum(map(len, names)) + np.cumsum([0, *map(len, uris)]),
            *self._typing(look),
            np.frombuffer(b"".join(spelled) + bytes(WORD), np.uint8),
            np.cumsum([0, *map(len, spelled)]),
            np.array([next((m for m in each if parts[m].name == MEMBER), -1) for each in inside], np.int64),
        )

    def _typing(self, look: Look) -> tuple[Indices, Indices, Indices, Flags]:
        """What is wanted of the types of JSON; the look has declarations, too."""
        types, typed, arrays = np.full((3, len(look.parts)), -1, np.int64)
        holds = np.zeros(len(look.parts), np.bool_)
        for number, part in enumerate(self.look.parts):
            found, array = look.typed(number), look.array(number)
            if found >= 0:
                types[number] = JSON_TYPES.index(part.json_type)
                typed[number] = self.rows.get(look.presence(found), -1)
            arrays[number] = -1 if array < 0 else self.rows.get(~array, -1)
            around = part.parent if max(typed[number], arrays[number]) >= 0 else -1
            while around >= 0:
                holds[around] = True
                around = look.parts[around].parent
        return types, typed, arrays, holds

    # --- templates ----------------------------------------------------------------------------------------

    @cached_property
    def _template_parts(self) -> dict[int, TemplatePart]:
        """By part of the look: the part of the template."""
        if self.look.template is None:
            return {}
        paths = {self.look.path(number): number for number in range(len(self.look.parts))}
        return {
            paths[path]: part for path, part in zip(self.look.template.paths, self.look.template.parts, strict=True)
        }

    @cached_property
    def _helping(self) -> dict[int, int]:
        """By gap that locates a wanted element without being wanted itself: its row, behind the others."""
        gaps = {part.gap: self.rows[number] for number, part in self._template_parts.items() if number in self.rows}
        parts = ((each, self._template_parts.get(each if each >= 0 else ~each)) for each in self.columns)
        placed = [part for each, part in parts if part is not None and (each < 0 or part.gap is None)]
        anchors = (place.gap for part in placed for place in (part.begin, part.end))
        found = dict.fromkeys(gap for gap in anchors if gap >= 0 and gap not in gaps)
        return {gap: len(self.rows) + number for number, gap in enumerate(found)}

    @cached_property
    def room(self) -> int:
        """The number of rows that the kernel needs for items that fit the template."""
        return len(self.rows) + len(self._helping)

    @cached_property
    def _gap_rows(self) -> dict[int, int]:
        """By gap: the row that has its text."""
        parts = ((part.gap, self.rows.get(number)) for number, part in self._template_parts.items())
        return {**{gap: row for gap, row in parts if gap is not None and row is not None}, **self._helping}

    @cached_property
    def pattern(self) -> Pattern:
        """The template in the form for the kernel."""
        assert self.look.template is not None, "only a template is a pattern"
        pieces = self.look.template.pieces
        slots = np.full(self.look.template.gaps, -1, np.int64)
        for gap, row in self._gap_rows.items():
            slots[gap] = row
        numeric = np.zeros(self.room, np.bool_)
        numeric[: len(self.numeric)] = self.numeric
        fixed = np.frombuffer(b"".join(pieces), np.uint8)
        return Pattern(fixed, np.cumsum([0, *map(len, pieces)]), slots, numeric, np.frombuffer(PLAIN, np.uint8))

    def complete(self, columns: ItemColumns, fitting: Flags) -> ItemColumns:
        """The columns with all rows of the entries that fit the template; the kernel has set those of gaps only."""
        some = slice(None) if fitting.all() else fitting
        for row, column in enumerate(self.columns):
            part = self._template_parts.get(column if column >= 0 else ~column)
            starts, ends = columns.starts[row], columns.ends[row]
            if part is None:
                starts[some] = ends[some] = ABSENT
            elif column < 0:
                starts[some], ends[some] = self._place(part.begin, columns)[some], self._place(part.end, columns)[some]
            elif part.gap is None:  # it is empty
                starts[some] = ends[some] = self._place(part.end, columns)[some]
            if part is None or part.gap is None or column < 0:
                columns.values[row, some] = np.nan
        return columns.rows(len(self.rows))

    def _place(self, anchor: Anchor, columns: ItemColumns) -> Places:
        base = columns.begins if anchor.gap < 0 else columns.ends[self._gap_rows[anchor.gap]]
        found: Places = base + np.int32(anchor.offset)
        return found
