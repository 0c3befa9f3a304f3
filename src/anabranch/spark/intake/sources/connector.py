"""The interface of a source: what the intake asks of the place that a stream comes from.

A stream has partitions, each one sequence (LAWS 1.1), and a partition consists of *stretches*, each a named piece of
its source from a position on: a file from a byte on, say.
The order in which stretches are begun is in the stream's order log (`order.py`), so a place in a partition is the
number of a stretch and a position there (`ranges.Position`), and an offset has one for each partition.

A connector answers four questions:

* What is there now?
  `listing` looks at the source, and `sight` leaves what an epoch may read of it.
* How far does an epoch go?
  `views` are the partitions that have something to read, and each of them says where it would stop for a number of
  bytes, and which records the order log must hold before.
* What lies between two offsets?
  `ranges` is a function of the offsets and the order log, so every process gets the same ranges.
  Each range is read by one task (`range_reader.py`); `RangeBytes` there is the other half of this interface.
* What is the stream waiting for?
  `waits` tells it to people.

Connectors live in the process that plans epochs, and in the driver.
They may keep connections and caches, but nothing that an answer depends on: after a crash another connector goes on
from the offsets and the log.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Protocol, TypeAlias

from anabranch.spark.intake.order import OrderLog
from anabranch.spark.intake.ranges import Move, Offset, Position, Range
from anabranch.stream.reading.source import Source, StreamForm

if TYPE_CHECKING:
    from anabranch.spark.checkpoint.manifest import Manifest  # which the process that plans epochs does not load

Listing: TypeAlias = dict[str, dict[str, int]]
"""What a source holds at a moment: by key of a partition, the names of its stretches, each with its present end."""
Reason: TypeAlias = tuple[str, str]
"""What is missing, and what to do about it."""
Weights: TypeAlias = Callable[[], Mapping[str, float]]
"""By stream of messages: the bytes of a message, where some were read (`weights.py`)."""


class ReadyPartition(Protocol):
    """A partition with something to read, as it is in a sight."""

    @property
    def key(self) -> str:
        """Its key in offsets."""

    def advance(self, at: Position, budget: int, stretches: int) -> Move:
        """Go on from a position by about `budget` bytes in at most so many stretches, and by some element at least."""


class Connector(ABC):
    """One stream in one process; the caller refreshes the order log, and appends the records of moves to it."""

    def __init__(self, source: Source, log: OrderLog) -> None:
        self.source = source
        self.log = log

    @property
    @abstractmethod
    def keys(self) -> Iterable[str]:
        """The keys of its partitions, in their order; new ones come behind the others."""

    # --- planning -----------------------------------------------------------------------------------------

    @abstractmethod
    def listing(self, *, patient: bool) -> Listing:
        """Look at the source; where that takes long, only a `patient` caller waits for it."""

    @abstractmethod
    def sight(self, there: Listing, before: Listing | None) -> Listing:
        """What epochs may read of a listing.

        `before` is a sight that earlier epochs have not finished, where there is one: what has come since stays out,
        but for what has to be read first.
        """

    @abstractmethod
    def form(self, sight: Listing, *, decide: bool) -> StreamForm | None:
        """The format of the stream, by its declaration or its first bytes; None while more bytes could change it.

        With `decide`, nothing will be added.
        """

    @abstractmethod
    def views(self, sight: Listing, start: Offset, *, finite: bool) -> Iterator[ReadyPartition]:
        """The partitions that have something to read behind `start`; `finite` says that nothing will be added."""

    @abstractmethod
    def ranges(self, key: str, start: Offset, end: Offset, cores: int | None) -> Iterator[Range]:
        """The ranges of a partition between two offsets, in order, cut up for so many cores.

        Without `cores` the stream was removed, and its source may be gone: then nothing is looked at.
        """

    # --- for people ---------------------------------------------------------------------------------------

    @abstractmethod
    def waits(self, last: Manifest | None) -> Iterator[Reason]:
        """What the stream waits for, behind the newest epoch."""
