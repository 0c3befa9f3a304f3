"""Thousands of patterns found in texts at once: the automaton of Aho and Corasick (1975) over bytes.

Its states are the beginnings of patterns, numbered by length and among those of one length in the order of their bytes.
So the children of a state, which are one byte longer, stand together, and its *fallback*, its longest proper suffix
that is the beginning of a pattern, too, has a smaller number.
The first states, as many as there is room for, have a table with the next state for every byte; the others only have
their children, and fall back where none of these matches. A search is nearly always at short beginnings, so that is
rare.

Guarantees: building takes time and memory linear in the bytes of the patterns, and at most `ROOM` entries besides;
searching takes time linear in the bytes of the texts and the number of matches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.expressions.texts import TextColumn
from anabranch.columnar.scan.kernels import Bytes, Flags, Indices, Places, compiled

ROOM = 1 << 22
"""The number of entries in the table of next states, 16 MB."""
_FIRST_ROOM = 1 << 12
_NONE = -1


class Automaton(NamedTuple):
    """The states, of which 0 is the empty beginning, in arrays."""

    classes: Places
    """By byte: its class, 0 for all bytes that are in no pattern; in the order of bytes."""
    labels: Places
    """By state: the class of its last byte."""
    children: Places
    """By state: its first child; the children of the next state follow."""
    fallbacks: Places
    patterns: Places
    """By state: the number of the pattern that ends there, or -1."""
    reports: Places
    """By state: the first state that is a whole pattern, among itself and its chain of fallbacks; 0 for none."""
    following: NDArray[np.int32]
    """By state, for the first states, and by class: the next state."""


# --- making ---------------------------------------------------------------------------------------------------


@compiled
def _grow(data: Bytes, bounds: Indices, classes: Places, labels: Places, children: Places, patterns: Places) -> int:
    """Build the states of distinct patterns, which are given in the order of their bytes.

    Gives the number of states.
    """
    reached = np.zeros(len(bounds) - 1, np.int32)  # by pattern: the state of its first bytes
    longer = np.arange(len(bounds) - 1)  # the patterns that are longer
    left, length = len(longer), 0
    count, known = 1, 0  # the number of states, and of states with known children
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
    """The next state, by a byte of class `label`."""
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
    """Compute the fallbacks and reports of all states, and the next states of the first."""
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
def _step(automaton: Automaton, state: np.uint64, byte: int) -> np.uint64:
    """The state behind one more byte; unsigned, so that no index is checked for being negative."""
    label = automaton.classes[byte]
    if state < np.uint64(len(automaton.following)):
        return np.uint64(automaton.following[state, np.uint64(label)])
    return np.uint64(_next(automaton, int(np.int64(state)), label))


@compiled
def _reports_any(automaton: Automaton, data: Bytes, at: int, stop: int, state: np.uint64) -> bool:
    """Whether a search of `data[at:stop]` from a state reports any pattern."""
    any_of = 0
    for place in range(np.uint64(at), np.uint64(stop)):
        state = _step(automaton, state, data[place])
        any_of |= automaton.reports[state]
    return any_of != 0


@compiled
def _mark(automaton: Automaton, texts: TextColumn, marked: Flags) -> None:
    """Mark the texts that contain a pattern that is not empty.

    Most of the time is spent waiting for memory, for the next state; so four texts are searched side by side, as long
    as each of them has bytes left.
    """
    data, starts, ends = texts
    reports = automaton.reports
    together = len(starts) // 4 * 4
    for row in range(0, together, 4):
        common = min(
            min(ends[row] - starts[row], ends[row + 1] - starts[row + 1]),
            min(ends[row + 2] - starts[row + 2], ends[row + 3] - starts[row + 3]),
        )
        a = b = c = d = np.uint64(0)
        at_a, at_b = np.uint64(starts[row]), np.uint64(starts[row + 1])
        at_c, at_d = np.uint64(starts[row + 2]), np.uint64(starts[row + 3])
        any_a = any_b = any_c = any_d = 0
        for place in range(np.uint64(common)):
            a, b = _step(automaton, a, data[at_a + place]), _step(automaton, b, data[at_b + place])
            c, d = _step(automaton, c, data[at_c + place]), _step(automaton, d, data[at_d + place])
            any_a, any_b, any_c, any_d = any_a | reports[a], any_b | reports[b], any_c | reports[c], any_d | reports[d]
        marked[row] = any_a or _reports_any(automaton, data, starts[row] + common, ends[row], a)
        marked[row + 1] = any_b or _reports_any(automaton, data, starts[row + 1] + common, ends[row + 1], b)
        marked[row + 2] = any_c or _reports_any(automaton, data, starts[row + 2] + common, ends[row + 2], c)
        marked[row + 3] = any_d or _reports_any(automaton, data, starts[row + 3] + common, ends[row + 3], d)
    for row in range(together, len(starts)):
        marked[row] = _reports_any(automaton, data, starts[row], ends[row], np.uint64(0))


@compiled
def _search(
    automaton: Automaton,
    texts: TextColumn,
    marked: Flags,
    latest: Places,
    row: int,
    count: int,
    rows: Places,
    numbers: Places,
) -> tuple[int, int]:
    """Append the patterns in the texts from `row` on, each with its row, to the `count` matches found before.

    Gives the number of matches, and the row where it stopped: if that is not behind the last, there was no more room.
    `latest` has an entry for each pattern; texts without a mark contain only the empty pattern.
    """
    _, _, _, fallbacks, patterns, reports, _ = automaton
    latest[:] = _NONE  # the last row in which it was reported
    while row < len(texts.starts):
        before = count
        if patterns[0] != _NONE:
            if count == len(rows):
                return before, row
            rows[count], numbers[count] = row, patterns[0]
            count += 1
        state = np.uint64(0)
        for place in range(texts.starts[row], texts.ends[row] if marked[row] else texts.starts[row]):
            state = _step(automaton, state, texts.data[place])
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
    """Patterns that are searched for together."""

    automaton: Automaton
    count: int
    """The number of patterns."""

    @staticmethod
    def of(patterns: Sequence[bytes], room: int = ROOM) -> PatternIndex:
        """An index of distinct patterns, which are numbered by their places."""
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
        """The matches as pairs of row and pattern, each once, in the order of rows."""
        found = self.find_few(texts, len(texts.starts) * self.count)
        assert found is not None, "there cannot be more"
        return found

    def find_few(self, texts: TextColumn, most: int) -> tuple[Places, Places] | None:
        """The matches as of `find`; None where there are more than `most` and they do not fit into the room."""
        marked = np.empty(len(texts.starts), np.bool_)
        _mark(self.automaton, texts, marked)
        latest = np.empty(self.count, np.int32)
        rows, numbers = np.empty(_FIRST_ROOM, np.int32), np.empty(_FIRST_ROOM, np.int32)
        count, row = _search(self.automaton, texts, marked, latest, 0, 0, rows, numbers)
        while row < len(texts.starts):
            if len(rows) > most:
                return None
            rows, numbers = (np.concatenate([found, np.empty_like(found)]) for found in (rows, numbers))
            count, row = _search(self.automaton, texts, marked, latest, row, count, rows, numbers)
        return rows[:count], numbers[:count]
