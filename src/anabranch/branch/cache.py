"""What branches leave in their process when an epoch is over, for whoever opens them there next.

A state is all that an answer depends on; but to make something of it again takes time, so the process that had a branch
last keeps what it made of it, under its *ground*: all that it follows from.
It is given away once: who picks it up may change it, and leaves it again when that is known to count.
So little is kept that a process with many branches does not grow with them.
"""

from __future__ import annotations

from typing import Any

_MOST_THINGS = 512
_MOST_WEIGHT = 250_000


class Left:
    """What lies in one process."""

    def __init__(self) -> None:
        self._things: list[tuple[Any, Any, int]] = []

    def leave(self, ground: Any, thing: Any, weight: int = 0) -> None:
        """Keep something for whoever comes with an equal ground; what was left first goes first when it is too much."""
        if weight > _MOST_WEIGHT:
            return
        self._things.append((ground, thing, weight))
        while len(self._things) > _MOST_THINGS or sum(each for _, _, each in self._things) > _MOST_WEIGHT:
            del self._things[0]

    def pick_up(self, ground: Any) -> Any:
        """What was left on this ground, for nobody else any more; None for nothing."""
        for number, (known, thing, _) in enumerate(self._things):
            if known == ground:
                del self._things[number]
                return thing
        return None


here = Left()
"""What lies in this process; tests put others in its place."""
