"""An answer that is on display, published as an update stream of its own (LAWS 5.7), and saved between epochs.

What each moment changes on display goes out as one piece: the elements that a reader has to apply, and a heartbeat that
ends the moment.
So epochs do not show in an answer.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from hashlib import blake2b
from math import floor
from typing import Any

import pyarrow as pa

from anabranch.algebra.display.display import Edit
from anabranch.algebra.display.publishing import Published, ReaderState, heartbeat
from anabranch.branch.display.shown import DisplayChange, ShownQuery
from anabranch.branch.document.layers import Resumed, read_layers, shown
from anabranch.branch.ports import Output
from anabranch.branch.state import BranchState
from anabranch.logic import EVERYTHING
from anabranch.runtime.evolution.outlet import accent_text
from anabranch.stream.elements import Accent, Alter, DeadLetter, Place

_UNIT = 10**30
_BURIED = 1_000
"""The number of latest dead letters of a query that are not written twice."""
SHOWN = pa.schema([("text", pa.large_string())])
"""What is on display, in one row, or in none before the first moment."""


class DisplayPublisher:
    """Publishes what a machine shows; `meta` is what `save` gave."""

    def __init__(self, machine: ShownQuery, out: Output, meta: dict[str, Any] | None) -> None:
        self._machine = machine
        self._out = out
        self.edits: list[Edit] = []
        """The edits of this epoch."""
        self._buried: dict[str, None] = {}
        """Digests of the latest dead letters, oldest first."""
        self._open: list[str] = []
        """The elements of a moment that may go on."""
        self._at: Fraction | None = None
        self._told = Decimal(0), ""
        if meta is not None:
            self._open = list(meta.get("open", ()))
            self._display.resume(ReaderState(*meta["told"]))
            self._buried = dict.fromkeys(meta["buried"])

    @property
    def _display(self) -> Published:
        display = self._machine.display
        assert isinstance(display, Published)
        return display

    def show(self, change: DisplayChange, *, goes_on: bool = False) -> None:
        """Publish what a moment has changed; one that `goes_on` is published when it is `over`."""
        if change.alters:
            self._open += [self._accent(each, change.at) for each in change.alters]
        self._open += self._display.wire(self._wired(change.at)[0], hidden=self._machine.failure is not None)
        if not goes_on:
            self.over(change.at)
        self.edits += change.edits
        for letter in change.dead:
            self._bury(letter)

    def _accent(self, alter: Alter, at: Fraction) -> str:
        """An alter as it is told: what stands behind it is in the new unit."""
        accent = Accent(EVERYTHING, alter, Place("", "", 0), wire_time(at))
        return accent_text(accent, json=self._machine.json)

    def over(self, at: Fraction) -> None:
        """The moment that was shown last, at this time, is over."""
        if self._open:
            self._out.piece("".join((*self._open, self._wired(at)[1])))
            self._open = []

    def _wired(self, at: Fraction) -> tuple[Decimal, str]:
        """A time as the wire has it, and the heartbeat of it; many moments have the same."""
        if at is not self._at:
            time = wire_time(at)
            self._at, self._told = at, (time, heartbeat(time, json=self._machine.json))
        return self._told

    def _bury(self, letter: DeadLetter) -> None:
        """Write a dead letter, unless that was done lately: an entry that fails does so whenever it is evaluated."""
        place = letter.place
        told = repr((place.stream, place.partition, place.offset, letter.reason, letter.code))
        digest = blake2b(told.encode(), digest_size=8).hexdigest()
        if digest not in self._buried:
            self._buried[digest] = None
            self._out.bury(letter)
            if len(self._buried) > _BURIED:
                del self._buried[next(iter(self._buried))]

    def save(self, resumed: Resumed[Any], held: int) -> dict[str, Any]:
        """The state of the branch, that of the machine included."""
        layers = resumed.save(held, {"": self.edits}, lambda: {"": self._machine.text})
        return {"operator": "display", "layers": layers, **self.told()}

    def told(self) -> dict[str, Any]:
        """What readers and users were told, which a publisher continues from."""
        return {"told": [*self._display.told], "buried": list(self._buried), "open": self._open}


def shown_in(state: BranchState, read: Callable[[str], bytes], key: Callable[[], str]) -> str | None:
    """The text on display in a state; None before the first moment.

    `key` gives what identifies the query where its branch serves several.
    """
    if state.meta["operator"] not in ("display", "displays"):
        found: list[str] = state.tables["shown"].column("text").to_pylist()
        return found[0] if found else None
    layers = read_layers(state.meta["layers"], read)
    asked = key() if state.meta["operator"] == "displays" else ""
    return None if layers[-1].more["is_new"] else shown(layers, asked)


@lru_cache(maxsize=64)
def wire_time(time: Fraction) -> Decimal:
    """A time as the wire can have it (`stream/reading/wire.py`): from 0 on, with at most thirty digits on each side."""
    units = min(max(floor(time * _UNIT), 0), _UNIT * _UNIT - 1)
    whole, rest = divmod(units, _UNIT)
    return Decimal(f"{whole}.{rest:030}".rstrip("0").rstrip("."))
