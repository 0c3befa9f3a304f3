"""The keys of the groups that a branch has panes of (LAWS 3.8): their numbers, and how they are written.

A range numbers its keys for itself; a branch has a dictionary of its own, into whose numbers it translates them.
Keys that no open window has any more are dropped, so the dictionary is bounded by the open windows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Sequence
from functools import partial

import numpy as np

from anabranch.branch.panes.results import KeyText
from anabranch.columnar.expressions.texts import TextColumn
from anabranch.columnar.panes.keys import Key, is_left_out, spoils
from anabranch.columnar.scan.kernels import Flags, Indices
from anabranch.language.windows.grouping import KeyKind
from anabranch.stream.serialize import escape_attribute, escape_text
from anabranch.values.atomic import NULL, Atomic, JsonNumber, Untyped, identity, order_rank, spell
from anabranch.values.objects.json_text import json_text
from anabranch.values.sequences import Values

_SIGNS = re.compile(rb"[^ !#$%(-;=?-~]")
"""Bytes that may have to be escaped somewhere."""


class KeyBook:
    """Keys by number, from 1 on."""

    def __init__(self, kinds: Sequence[KeyKind], keys: Sequence[Key] = ()) -> None:
        """`kinds` are those of the parts of keys."""
        self._kinds = kinds
        self.keys: list[Key] = list(keys)
        self._numbers = {key: number for number, key in enumerate(self.keys, 1)}
        self._texts: dict[KeyText, TextColumn] = {}
        self._missing: dict[KeyText, Flags] = {}
        self._ranks: dict[int, Indices] = {}
        self._marks: tuple[Flags, Flags] | None = None
        self._equal: Indices | None = None

    def __len__(self) -> int:
        return len(self.keys)

    def numbered(self, keys: Sequence[Key]) -> Indices:
        """The numbers of keys, behind a 0; those that are new are added."""
        known, before = self._numbers, len(self.keys)
        found = [0, *(known.setdefault(key, len(known) + 1) for key in keys)]
        self.keys = list(known)
        if len(self.keys) > before:
            self._texts, self._missing, self._ranks, self._marks, self._equal = {}, {}, {}, None, None
        return np.array(found, np.int64)

    def kept(self, numbers: Indices) -> tuple[KeyBook, Indices]:
        """The dictionary of some of the keys, and the new number of each; 0 for those that are gone."""
        there = np.zeros(len(self.keys) + 1, np.bool_)
        there[numbers] = True
        there[0] = False
        renamed = np.where(there, np.cumsum(there), 0)
        return KeyBook(self._kinds, [self.keys[each - 1] for each in np.flatnonzero(there).tolist()]), renamed

    def of(self, number: int) -> Key:
        """The key with a number."""
        return self.keys[number - 1]

    def values(self, number: int) -> list[Values]:
        """The parts of the key with a number, as the evaluator knows them."""
        parts = zip(self.of(number), self._kinds, strict=True)
        return [[] if part is None else [_value(part, kind)] for part, kind in parts]

    @property
    def marks(self) -> tuple[Flags, Flags]:
        """By number: whether a key stands for an item that is in no group, and for one that makes its windows fail."""
        if self._marks is None:
            left_out, spoiling = ([False, *map(judge, self.keys)] for judge in (is_left_out, spoils))
            self._marks = np.array(left_out, np.bool_), np.array(spoiling, np.bool_)
        return self._marks

    @property
    def equal(self) -> Indices:
        """By number: that of the first key that is equal to it; numbers of JSON are, however they are spelled."""
        if self._equal is None:
            known: dict[Hashable, int] = {}
            found = (known.setdefault(self._identity(key), number) for number, key in enumerate(self.keys, 1))
            self._equal = np.array([0, *found], np.int64)
        return self._equal

    def _identity(self, key: Key) -> Hashable:
        if "json" not in self._kinds or is_left_out(key):
            return key
        given = zip(key, self._kinds, strict=True)
        return tuple(identity(_value(each, kind)) if each and kind == "json" else each for each, kind in given)

    def ranks(self, part: int) -> Indices:
        """By number: the rank of a part of a key among those of all keys in sorting (LAWS 2.3)."""
        if part not in self._ranks:
            parts = (None if is_left_out(key) else key[part] for key in self.keys)
            values = (None if each is None else _value(each, self._kinds[part]) for each in parts)
            found = [order_rank(None), *map(order_rank, values)]
            places = {rank: place for place, rank in enumerate(sorted(set(found)))}
            self._ranks[part] = np.array([places[each] for each in found], np.int64)
        return self._ranks[part]

    def text(self, key: KeyText) -> TextColumn:
        """A part of all keys by number, as it is written."""
        if key not in self._texts:
            write = partial(_as_json if key.as_json else _written, kind=self._kinds[key.part])
            if not key.as_json:
                write = partial(write, escape=escape_attribute if key.in_attribute else escape_text)
            groups = (() if is_left_out(each) else each for each in self.keys)
            texts = (write(part) if each and (part := each[key.part]) is not None else b"" for each in groups)
            self._texts[key] = TextColumn.of(b"", b"", *texts)
        return self._texts[key]

    def missing(self, key: KeyText) -> Flags:
        """By number: whether a part is missing; outside of JSON, `null` is nothing."""
        if key not in self._missing:
            none = (None,) if key.as_json or self._kinds[key.part] != "json" else (None, _NULL)
            self._missing[key] = np.array([True, *(each[key.part] in none for each in self.keys)], np.bool_)
        return self._missing[key]


_NULL = b"null"


def _written(part: bytes, kind: KeyKind, escape: Callable[[str], str]) -> bytes:
    """A part of a key as it is written; most are as they stand."""
    if kind == "json":
        value = _value(part, kind)
        part = b"" if value is NULL else spell(value).encode()
    return part if _SIGNS.search(part) is None else escape(part.decode()).encode()


def _as_json(part: bytes, kind: KeyKind) -> bytes:
    return part if kind == "json" else json_text(_value(part, kind)).encode()


class NumberedKeys:
    """The keys of some groups, by their numbers in a dictionary."""

    def __init__(self, book: KeyBook, numbers: Indices) -> None:
        self._book = book
        self._numbers = numbers

    def texts(self, key: KeyText) -> TextColumn:
        """A part of each key as it is written; empty where it is missing."""
        whole = self._book.text(key)
        return whole.spans(whole.starts[self._numbers + 1], whole.ends[self._numbers + 1])

    def missing(self, key: KeyText) -> Flags:
        """Where a part is missing, or has nothing that is written."""
        found: Flags = self._book.missing(key)[self._numbers]
        return found

    def ranks(self, part: int) -> Indices:
        """The rank of a part of each key in sorting."""
        found: Indices = self._book.ranks(part)[self._numbers]
        return found


def _value(part: bytes, kind: KeyKind) -> Atomic:
    """The value of a part of a key that is not missing."""
    match kind:
        case "untyped":
            return Untyped(part.decode())
        case "string":
            return part.decode()
        case "boolean":
            return part == b"true"
        case "json":
            return _json_value(part)


def _json_value(part: bytes) -> Atomic:
    """What JSON says."""
    match part:
        case b"null":
            return NULL
        case b"true" | b"false":
            return part == b"true"
    if not part.startswith(b'"'):
        return JsonNumber(part.decode())
    text: str = json.loads(part)
    return text
