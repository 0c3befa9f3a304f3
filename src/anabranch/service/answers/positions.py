"""Positions: where a result stands in the answer to a subscription, as in `12-3`.

A position is an epoch and the number of a result within it, counted from 0 over the results of this subscription.
It follows from the committed log alone, so it is the same for every client, after a restart and after a kill, and it
grows along an answer; also along the answers that one name has had one after the other, since the query that a name
gets later begins with a later epoch.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from anabranch.errors import UsageError

_WRITTEN = re.compile(r"([0-9]{1,18})-([0-9]{1,18})", re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class ResultPosition:
    """The place of a result."""

    epoch: int
    index: int

    def __str__(self) -> str:
        return f"{self.epoch}-{self.index}"

    @staticmethod
    def parse(text: str) -> ResultPosition:
        """The position that a client has sent."""
        found = _WRITTEN.fullmatch(text)
        if found is None:
            raise UsageError(f"'{text}' is no position", hint="it is an epoch and a number, as in 12-3")
        return ResultPosition(int(found[1]), int(found[2]))

    @staticmethod
    def given(text: str | None) -> ResultPosition | None:
        """The position that a client may have sent."""
        return None if text is None else ResultPosition.parse(text)
