"""Amounts per second, over the newest seconds.

An epoch brings its items at once, when it is committed, but has worked on them since it began; so its amounts are
divided among the seconds that it has taken.
Sums are kept by second, of which there are at most sixty, so memory follows the number of keys alone.
The window is ten seconds, or twice as long as the longest epoch in it: with epochs of half a minute a rate would
otherwise come and go.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import floor

_LEAST_SECONDS, _MOST_SECONDS = 10, 60


class SlidingRates:
    """Amounts by key; its owner lets one thread at a time call it."""

    def __init__(self, begun: float) -> None:
        """Nothing has come before `begun`."""
        self._begun = begun
        self._seconds: dict[int, dict[str, float]] = {}
        """By second: the amounts."""
        self._lengths: dict[int, float] = {}
        """By second: the length of the longest epoch that ended in it."""

    def add(self, begin: float, end: float, amounts: Mapping[str, float]) -> None:
        """Add what an epoch from `begin` to `end` has brought."""
        end = max(begin, end)
        self._lengths[floor(end)] = max(end - begin, self._lengths.get(floor(end), 0.0))
        first = max(floor(begin), floor(end) - _MOST_SECONDS)
        count = floor(end) - first + 1
        for second in range(first, first + count):
            length = min(end, second + 1) - max(begin, second)
            share = length / (end - begin) if count > 1 else 1.0
            held = self._seconds.setdefault(second, {})
            for key, amount in amounts.items():
                held[key] = held.get(key, 0.0) + amount * share
        for second in [each for each in self._seconds if each < end - _MOST_SECONDS]:
            del self._seconds[second]
            self._lengths.pop(second, None)

    def now(self, at: float) -> dict[str, float]:
        """The amounts per second in the window that ends now, by key, for keys that have some."""
        recent = [length for second, length in self._lengths.items() if second >= at - _MOST_SECONDS]
        window = min(_MOST_SECONDS, max(_LEAST_SECONDS, 2 * max(recent, default=0.0)))
        window = max(1.0, min(window, at - self._begun))
        found: dict[str, float] = {}
        for second, held in self._seconds.items():
            share = min(1.0, max(0.0, second + 1 - (at - window)))
            for key, amount in held.items() if share else ():
                found[key] = found.get(key, 0.0) + amount * share
        return {key: amount / window for key, amount in found.items()}
