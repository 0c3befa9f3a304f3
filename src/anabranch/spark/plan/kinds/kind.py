"""The interface of a kind of query; a module of this folder has one kind, or a few similar ones.

A kind defines how a query is recognised, which streams it reads, which queries share its state, how its branch is
opened, the frame of its answer, and its name for people.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar, Self, TypeAlias

from anabranch.branch import Branch, BranchState, InputStream
from anabranch.branch.display.branch import BranchContext
from anabranch.branch.panes.plan import PanePlan
from anabranch.branch.ports import Output, Spill
from anabranch.language import parse
from anabranch.law.calls import PythonFunction
from anabranch.runtime.shapes import Shapes
from anabranch.runtime.standing import Standing, standing
from anabranch.spark.plan.epoch_plan import Registration
from anabranch.stream.reading.source import KnownStream, Source

Functions: TypeAlias = tuple[tuple[str, PythonFunction], ...]
"""The functions that the user registered, by name."""


@dataclass(frozen=True)
class QueryContext:
    """The context in which queries are read."""

    streams: Mapping[str, KnownStream]
    functions: Functions = ()
    endless: bool = True
    """Whether the streams' end is not waited for."""

    @staticmethod
    def of(sources: Iterable[Source], functions: Mapping[str, PythonFunction], *, endless: bool = True) -> QueryContext:
        """The context before anything was read of the streams."""
        return QueryContext({each.name: KnownStream.of(each) for each in sources}, tuple(functions.items()), endless)

    @cached_property
    def edited(self) -> tuple[str, ...]:
        """The streams of updates."""
        return edited_streams(self.streams.values())


@dataclass(frozen=True, slots=True)
class Seat:
    """One of the queries of a branch: its key in the branch, its subscription, and its output."""

    key: str
    asked: Registration
    query: QueryKind
    out: Output


@dataclass(frozen=True, slots=True)
class BranchSetup:
    """What a branch is opened with beside its queries; for a strand, its number and their number."""

    inputs: Mapping[str, InputStream]
    state: BranchState | None
    given: BranchContext
    files: Spill
    strand: tuple[int, int] | None = None


@dataclass(frozen=True, kw_only=True)
class QueryKind(ABC):
    """A query that was read as one of its kind."""

    name: ClassVar[str]
    """Its name in plans."""
    label: ClassVar[str]
    """Its name for people."""
    is_branch: ClassVar[bool] = True
    """Whether it has state; otherwise a task answers each item where it is read."""
    twins: ClassVar[str] = ""
    """Where only twins share a branch: the name of their family."""
    has_frame: ClassVar[bool] = True

    streams: tuple[str, ...]
    """The streams that it reads."""
    standing: Standing | None = None
    """The analysed query, where it is a frame with one hole."""
    panes: PanePlan | None = None
    """The pane plan of its windows, where they are counted by panes."""
    shows: bool = False
    """Whether its answer is a display; others only grow."""
    edited: tuple[str, ...] = ()
    """The streams of updates that it reads beside items, where it has results that stand (LAWS 5.5)."""

    @classmethod
    @abstractmethod
    def read(cls, asked: Registration, known: QueryContext) -> Self | None:
        """Read a query of this kind; None if it is of another kind."""

    def family(self, text: str, strands: int) -> str:
        """The family of queries that its branch can serve; empty for none."""
        return f"{self.twins} {text}" if self.twins else ""

    @property
    def key(self) -> str:
        """Identifies it among the queries of its branch; the same for all where only equal ones share a branch."""
        return ""

    def can_be_divided(self, known: QueryContext) -> bool:
        """Whether it can be divided into strands."""
        return False

    @abstractmethod
    def open(self, seats: Sequence[Seat], setup: BranchSetup) -> Branch:
        """Open a branch that serves queries of this kind."""

    @classmethod
    def framed(cls, text: str, functions: Mapping[str, PythonFunction], edited: Collection[str]) -> Standing | None:
        """The query whose frame is around the answer; None where there is none."""
        return standing(parse(text), functions) if cls.has_frame else None


@lru_cache(maxsize=4)
def shapes_of(functions: Functions) -> Shapes:
    """The shapes of queries that this process has cached."""
    return Shapes(dict(functions))


def edited_streams(streams: Collection[KnownStream]) -> tuple[str, ...]:
    """The streams of updates among some."""
    return tuple(each.name for each in streams if each.source.updates)
