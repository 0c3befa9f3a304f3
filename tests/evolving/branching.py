"""Branches over accented streams, fed element by element; an epoch may end between any two of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from algebra.accented import HERE, item
from anabranch.branch import Branch, BranchMember, BranchState, cache, open_branch
from anabranch.branch.family import operator_of
from anabranch.branch.ports import InputStream
from anabranch.runtime.standing import standing
from anabranch.stream.elements import Accent, Punctuation, StreamElement
from anabranch.stream.limits import Limits
from anabranch.stream.reading.parse import parse_item
from anabranch.stream.reading.wire import element_of, write
from branch.feeding import Flow, Question, Stream, Taken
from evolving.outlets import checked, told


@dataclass(frozen=True)
class Doubted:
    """An accent that a task has refused, and why."""

    accent: Accent
    reason: str


Given: TypeAlias = Accent | Punctuation | Doubted | str
"""An element; an item as `t=68 s=1`, or as XML."""
At: TypeAlias = Given | tuple[str, Given] | tuple[str, Given, int]
"""The same with its stream, where that is not `a`, and its partition."""


def raw(given: Given) -> str:
    """An element on the wire."""
    if isinstance(given, str):
        return given if given.startswith("<") else write(item(given))
    return write(given.accent if isinstance(given, Doubted) else given)


def placed(given: At) -> tuple[str, Given, int]:
    """The stream of an element, the element, and its partition."""
    match given:
        case (str(stream), element):
            return stream, element, 0
        case (str(stream), element, int(partition)):
            return stream, element, partition
        case _:
            return "a", given, 0


class Together(Question):
    """Several queries of one family, in one branch; `ended` tells which of them are over."""

    def __init__(self, queries: Sequence[str], streams: Sequence[Stream]) -> None:
        super().__init__(queries[0], streams)
        self.standings = [standing(checked(each)) for each in queries]
        self.takens = [Taken() for _ in queries]
        self.ended: dict[str, str] = {}
        self.inputs: Mapping[str, InputStream] = {each.name: each.for_branch() for each in streams}
        self.elsewhere = False
        """Whether another process opens the branch next."""
        self._opened: Branch | None = None

    def open(self, taken: Taken, state: BranchState | None) -> Branch:
        self.note()
        if self.elsewhere:
            cache.here = cache.ProcessCache()
        named = enumerate(zip(self.standings, self.takens, strict=True))
        members = [BranchMember(f"q{number}", f"q{number}", query, out) for number, (query, out) in named]
        times = {name: each.source.time for name, each in self.inputs.items()}
        endless = all(each.endless for each in self.inputs.values())
        operator = operator_of(self.standings[0], times, endless=endless)
        self._opened = open_branch(operator, members, self.inputs, state, {}, {}, taken)
        return self._opened

    def note(self) -> None:
        """Take in who has ended in the epoch."""
        self.ended |= self._opened.aborted if self._opened else {}


def run(
    queries: Sequence[str],
    given: Sequence[At],
    *,
    partitions: int = 1,
    time: str | None = None,
    cuts: Collection[int] = (),
    inputs: Mapping[str, InputStream] | None = None,
    endless: bool = False,
) -> Together:
    """Feed a branch; an epoch ends before each of the elements whose numbers are in `cuts`."""
    names = [each for each in ("a", "b") if f'stream("{each}")' in queries[0]]
    streams = [Stream(name, partitions=partitions, time=time, endless=endless) for name in names]
    asked = Together(queries, streams)
    asked.inputs = inputs or asked.inputs
    flow = Flow(asked)
    for number, each in enumerate(given):
        if number in cuts:
            asked.elsewhere = bool(number % 2)
            flow.epoch()
        stream, element, partition = placed(each)
        reason = element.reason if isinstance(element, Doubted) else None
        flow.bring(stream, raw(element), partition=partition, reason=reason)
    flow.end()
    asked.note()
    return asked


def shown(pieces: Sequence[str]) -> list[str]:
    """The pieces of an answer, accents in short."""
    return [told(each) if isinstance(each, Accent) else text for text in pieces for each in [read(text)]]


def read(piece: str) -> StreamElement | None:
    """The element that a piece is, if it is an accent."""
    if not piece.startswith("<s:accent"):
        return None
    return element_of(parse_item(piece.encode(), Limits()), HERE)


def ask(query: str, *given: At, partitions: int = 1, time: str | None = None) -> list[str]:
    """What a branch answers, which is the same wherever epochs end."""
    found = []
    for cuts in ((), range(len(given)), range(0, len(given), 2)):
        asked = run([query], given, partitions=partitions, time=time, cuts=cuts)
        assert not asked.ended, asked.ended
        found.append(shown(asked.takens[0].pieces))
    assert found[0] == found[1] == found[2]
    return found[0]
