"""Thousands of patterns found in texts at once: the automaton of Aho and Corasick (1975) over bytes.

Its states are the beginnings of patterns, numbered by length and among those of one length in the order of their bytes.
So the children of a state, which are one byte longer, stand together, and its *fallback*, the longest of its ends that
is the beginning of a pattern, too, has a smaller number.
The first states, as many as there is room for, know for every byte which state is next; the others know their children
only and fall back where none of these is meant. Texts are nearly always at short beginnings, so that is seldom.

Guarantees: to make it takes time and memory linear in the bytes of the patterns, and no more than `ROOM` entries
besides; to search takes time linear in the bytes of the texts and in what is found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.expressions.texts import TextColumn
from anabranch.columnar.scan.kernels import Bytes, Indices, Places, compiled

ROOM = 1 << 22
"""So many next states are kept for the first states together, 16 MB."""
_FIRST_ROOM = 1 << 12
_NONE = -1


class Automaton(NamedTuple):
    """The states, of which 0 is the empty beginning, and what is known of each."""

    classes: Places
    """By byte: its class, 0 for all bytes that are in no pattern; in the order of bytes."""
    labels: Places
    """By state: the class of its last byte."""
    children: Places
    """By state: its first child; those of the next state stand behind its own."""
    fallbacks: Places
    patterns: Places
    """By state: the number of the pattern that it is, or -1."""
    reports: Places
    """By state: the first that is a pattern among itself, its fallback, the fallback of that and so on; 0 for none."""
    following: NDArray[np.int32]
    """By state, of the first states, and by class: the next state."""


# --- making ---------------------------------------------------------------------------------------------------


@compiled
def _grow(data: Bytes, bounds: Indices, classes: Places, labels: Places, children: Places, patterns: Places) -> int:
    """Make the states of patterns, which come in the order of their bytes, and no two are the same.

    Gives how many states there are.
    """
    reached = np.zeros(len(bounds) - 1, np.int32)  # by pattern: the state that its first bytes are
    longer = np.arange(len(bounds) - 1)  # the patterns that go on behind these bytes
    left, length = len(longer), 0
    count, known = 1, 0  # the states there are, and those of which the children are known
    patterns[:] = _NONE
    while left:
        kept, parent, label = 0, _NONE, _NONE
        for place in range(left):
            pattern = longer[place]
            if bounds[pattern + 1] - bounds[pattern] == length:
                patterns[reached[pattern]] = pattern
                continue
            longer[kept] = pattern
            kept += 1
            next_label = classes[data[bounds[pattern] + length]]
            if reached[pattern] != parent or next_label != label:
                parent, label = reached[pattern], next_label
                while known <= parent:
                    children[known] = count
                    known += 1
                labels[count] = label
                count += 1
            reached[pattern] = count - 1
        left = kept
        length += 1
    children[known:] = count
    return count


@compiled
def _next(automaton: Automaton, state: int, label: int) -> int:
    """The state that is reached from another by a byte of a class."""
    children, labels = automaton.children, automaton.labels
    while state >= len(automaton.following):
        low, high = children[state], children[state + 1]
        while low < high:
            middle = (low + high) // 2
            if labels[middle] < label:
                low = middle + 1
            else:
                high = middle
        if low < children[state + 1] and labels[low] == label:
            return int(low)
        state = automaton.fallbacks[state]
    return int(automaton.following[state, label])


@compiled
def _connect(automaton: Automaton) -> None:
    """Find the fallbacks of all states, what they report, and the next states of the first."""
    _, labels, children, fallbacks, patterns, reports, following = automaton
    fallbacks[0] = reports[0] = 0
    following[0] = 0
    for state in range(len(fallbacks)):
        fallback = fallbacks[state]
        if state:
            reports[state] = state if patterns[state] != _NONE else reports[fallback]
            if state < len(following):
                following[state] = following[fallback]
        for child in range(children[state], children[state + 1]):
            fallbacks[child] = _next(automaton, fallback, labels[child]) if state else 0
            if state < len(following):
                following[state, labels[child]] = child


# --- searching ------------------------------------------------------------------------------------------------


@compiled
def _search(
    automaton: Automaton, latest: Places, texts: TextColumn, row: int, count: int, rows: Places, numbers: Places
) -> tuple[int, int]:
    """The patterns that are in texts from a row on, each with its row, behind those that were found before.

    Gives how many there are then, and the row that it came to: if that is not behind the last, there was no more room.
    `latest` has an entry for each pattern.
    """
    classes, _, _, fallbacks, patterns, reports, following = automaton
    latest[:] = _NONE  # the last row in which it was reported
    while row < len(texts.starts):
        before = count
        if patterns[0] != _NONE:
            if count == len(rows):
                return before, row
            rows[count], numbers[count] = row, patterns[0]
            count += 1
        state = 0
        for place in range(texts.starts[row], texts.ends[row]):
            label = classes[texts.data[place]]
            state = following[state, label] if state < len(following) else _next(automaton, state, label)
            found = reports[state]
            while found and latest[patterns[found]] != row:  # if it was reported, so were those that it falls back to
                if count == len(rows):
                    return before, row
                latest[patterns[found]] = row
                rows[count], numbers[count] = row, patterns[found]
                count += 1
                found = reports[fallbacks[found]]
        row += 1
    return count, row


@dataclass(frozen=True, slots=True)
class PatternIndex:
    """Patterns that are looked for together."""

    automaton: Automaton
    count: int
    """How many they are."""

    @staticmethod
    def of(patterns: Sequence[bytes], room: int = ROOM) -> PatternIndex:
        """An index of some patterns, no two of which are the same; they are known by their places."""
        order = np.array(sorted(range(len(patterns)), key=patterns.__getitem__), np.int32)
        data = np.frombuffer(b"".join(patterns[place] for place in order.tolist()), np.uint8)
        bounds = np.cumsum([0, *(len(patterns[place]) for place in order.tolist())])
        used = np.bincount(data, minlength=256) > 0
        classes = np.where(used, np.cumsum(used), 0).astype(np.int32)
        labels, children, states = (np.empty(len(data) + size, np.int32) for size in (1, 2, 1))
        count = _grow(data, bounds, classes, labels, children, states)
        numbers = np.where(states[:count] == _NONE, _NONE, order[states[:count]]) if len(order) else states[:1]
        width = int(used.sum()) + 1
        following = np.empty((max(1, min(count, room // width)), width), np.int32)
        fallbacks, reports = np.empty(count, np.int32), np.empty(count, np.int32)
        made = labels[:count].copy(), children[: count + 1].copy(), fallbacks, numbers, reports
        automaton = Automaton(classes, *made, following)
        _connect(automaton)
        return PatternIndex(automaton, len(patterns))

    def find(self, texts: TextColumn) -> tuple[Places, Places]:
        """The rows and patterns of which the text contains the pattern, each pair once, in the order of rows."""
        rows, numbers = np.empty(_FIRST_ROOM, np.int32), np.empty(_FIRST_ROOM, np.int32)
        latest = np.empty(self.count, np.int32)
        count, row = _search(self.automaton, latest, texts, 0, 0, rows, numbers)
        while row < len(texts.starts):
            rows, numbers = (np.concatenate([found, np.empty_like(found)]) for found in (rows, numbers))
            count, row = _search(self.automaton, latest, texts, row, count, rows, numbers)
        return rows[:count], numbers[:count]
