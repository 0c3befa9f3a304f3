"""Dead letters by a class of their reasons: for metrics, which must have few labels whatever data says.

A letter with a W3C code counts under the code.
Of another the first words of the reason are taken, up to what differs from letter to letter: a quoted name, a number, a
colon.
After twenty classes all others are `other`; so are letters that were not read, since an epoch may have a million.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from anabranch.stream.elements import DeadLetter

MOST_CLASSES = 20
OTHER = "other"
_WORDS = re.compile(r"[A-Za-z][A-Za-z ,-]{0,59}")


class ReasonCounts:
    """The number of dead letters by class; its owner lets one thread at a time call it."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def add(self, letters: Iterable[DeadLetter], total: int) -> None:
        """Count letters, of which there are `total`, all given or not."""
        given = Counter(map(class_of, letters))
        for name, count in given.items():
            known = name in self.counts or len(self.counts) < MOST_CLASSES
            self.counts[name if known else OTHER] += count
        if total > given.total():
            self.counts[OTHER] += total - given.total()


def class_of(letter: DeadLetter) -> str:
    """The class of a letter: its code, or the first words of its reason."""
    if letter.code:
        return letter.code
    found = _WORDS.match(letter.reason)
    return found[0].strip(" ,-").lower() if found and found[0].strip(" ,-") else OTHER
