"""What a branch over updates works on, from epoch to epoch: its state in layers, and what it left in its process.

To take a whole document back from its state costs the document, and an epoch may bring one update.
So the process that has had the branch keeps what it made of the state (`branch/cache.py`); if another one has had it
since, only the layers that came with that are taken in.
A process that has never had it, or too long ago, takes all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from anabranch.algebra.history.display import Edit, Insert
from anabranch.branch import cache
from anabranch.branch.document.layers import Layer, Layers
from anabranch.branch.document.state import Data, undisturbed
from anabranch.branch.ports import Spill


class Machine(Protocol):
    """What is kept up to date, and can be put away."""

    @property
    def changes(self) -> int:
        """How much has changed since `settled`."""

    def encode(self, *, whole: bool) -> Data:
        """All of it, or what has changed since `settled`."""

    def decode(self, *several: Data) -> None:
        """Take back what `encode` gave, all or, for an earlier state of it, changes."""

    def settled(self) -> None:
        """It is put away as it is."""


M = TypeVar("M", bound=Machine)


class Resumed(Generic[M]):
    """A machine that goes on where the epoch before has left it; `ground` is all else that it follows from."""

    def __init__(self, fresh: Callable[[], M], ground: Any, kept: Data | None, spill: Spill) -> None:
        self._ground = ground
        self._layers = Layers(spill, kept)
        with undisturbed():
            self.machine = self._found(fresh)

    def _found(self, fresh: Callable[[], M]) -> M:
        if not self._layers.born:
            return fresh()
        picked: tuple[str, M] | None = cache.here.take((self._layers.born, self._ground))
        if picked is not None:
            save, machine = picked
            if (missed := self._layers.since(save)) is not None:
                if missed:
                    machine.decode(*(each.data() for each in missed))
                return machine
        machine = fresh()
        machine.decode(*(each.data() for each in self._layers.all()))
        return machine

    def save(self, held: int, edits: Sequence[Edit] = (), text: Callable[[], str] = str) -> Data:
        """Write what has changed, or all; gives where it lies. The machine is not used any more.

        `held` is how much it is; `edits` are those of the epoch, and `text` is what all edits have come to.
        """
        with undisturbed():
            if whole := self._layers.wants_all(self.machine.changes + len(edits)):
                edits = (Insert(0, text()),)
            self._layers.put(Layer.of(self.machine.encode(whole=whole), edits), whole=whole)
        self.machine.settled()
        cache.here.put((self._layers.born, self._ground), (self._layers.latest, self.machine), held)
        return self._layers.save()

    @property
    def refs(self) -> tuple[str, ...]:
        """The names in the spill that the state needs."""
        return self._layers.refs
