"""The reference for streams that evolve: the answer of a query, element by element, until its inputs end.

The law itself gives the canonical answer only (`law/evaluate.py`); where accents stand in an answer, and in which units
it goes on, shows when the elements come one by one.
So such queries run on branches (`branch/`), over elements that were read before; Spark runs the same branches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from anabranch.algebra.accents.events import judged
from anabranch.algebra.accents.evolution import Evolution
from anabranch.algebra.reactions.signature import Policy
from anabranch.branch import Branch, BranchMember, InputStream, open_branch
from anabranch.branch.family import operator_of
from anabranch.branch.intake.entries import FeedOrigin, pack
from anabranch.engine.reading import Read
from anabranch.law import Input
from anabranch.law.calls import PythonFunction
from anabranch.runtime.standing import Standing
from anabranch.stream.elements import DeadLetter, Item, Place, StreamElement
from anabranch.stream.reading.lines import Cut
from anabranch.stream.tree import copy

_NO_TEXT = "recalled"
"""The encoding of cuts that hold no text, but the number of an element."""


@dataclass(frozen=True, slots=True)
class Fed:
    """A finite stream as feeds for a branch."""

    stream: InputStream
    feeds: tuple[bytes, ...]


def fed(read: Read) -> Fed:
    """A stream for a branch."""
    source = read.source
    good = [_good(each, Evolution.of(source)) for each in read.elements]
    known = [element for part in good for element in part]
    is_json = any(isinstance(each, Item) and each.tree.mark is not None for each in known)
    stream = InputStream(source, read.root, lambda: _Recalled(known), is_json=is_json)
    numbers = iter(range(len(known)))
    feeds = [feed for number, part in enumerate(good) for feed in _feeds(source.name, number, part, numbers)]
    return Fed(stream, tuple(feeds))


def _good(elements: Iterable[StreamElement | DeadLetter], evolution: Evolution) -> list[StreamElement | DeadLetter]:
    """The elements that are good at their place, and the bad accents that leave paths in doubt."""
    found = (judged(each, evolution) for each in elements)
    return [each for each in found if not isinstance(each, DeadLetter) or each.doubts]


def _feeds(
    stream: str, partition: int, elements: Iterable[StreamElement | DeadLetter], numbers: Iterator[int]
) -> Iterator[bytes]:
    """The elements of a partition as feeds, one for each file."""
    files: dict[str, list[Cut]] = {}
    for each in elements:
        cut = Cut(each.place.offset, each.place.offset, str(next(numbers)).encode(), encoding=_NO_TEXT)
        files.setdefault(each.place.partition, []).append(cut)
    return (pack(FeedOrigin(stream, partition, file), cuts) for file, cuts in files.items())


class _Recalled:
    """Returns elements that were read before."""

    def __init__(self, known: Sequence[StreamElement | DeadLetter]) -> None:
        self._known = known

    def elements(self, cuts: Iterable[Cut], partition: str) -> Iterator[StreamElement | DeadLetter]:
        for cut in cuts:
            element = self._known[int(cut.raw)]
            yield replace(element, tree=copy(element.tree)) if isinstance(element, Item) else element


# --- answers ----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Answered:
    """The answer to a query, as a branch gives it piece by piece."""

    pieces: list[str] = field(default_factory=list)
    dead: list[DeadLetter] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    """The places of late items."""
    aborted: str | None = None
    """Why it ended early."""

    def piece(self, text: str) -> None:
        self.pieces.append(text)

    def extend(self, data: bytes, pieces: int, first: int) -> None:
        self.pieces.append(data.decode())

    def bury(self, letter: DeadLetter) -> None:
        self.dead.append(letter)

    def late(self, place: Place) -> None:
        self.places.append(place)


class NoSpill:
    """Nothing is left for another epoch, so nothing is spilled."""

    def write(self, data: bytes) -> str:
        raise AssertionError("a branch is not saved here")

    def read(self, ref: str) -> bytes:
        raise AssertionError("and has nothing to read")


def answer_evolving(
    query: Standing,
    name: str,
    streams: Mapping[str, Fed],
    functions: Mapping[str, PythonFunction] | None,
    documents: Mapping[str, Input] | None,
    policy: Policy,
) -> Answered:
    """Answer a query over streams, all of them given as feeds."""
    out = Answered()
    inputs = {name: each.stream for name, each in streams.items()}
    times = {each.name: each.source.time for each in inputs.values()}
    operator = operator_of(query, times, endless=all(each.endless for each in inputs.values()))
    member = BranchMember("", name, query, out, policy)
    branch = open_branch(operator, [member], inputs, None, functions, documents, NoSpill())
    run_branch(branch, {stream: streams[stream] for stream in query.streams})
    out.aborted = branch.aborted.get("")
    return out


def run_branch(branch: Branch, streams: Mapping[str, Fed]) -> None:
    """Feed a branch with whole streams."""
    for each in streams.values():
        for feed in each.feeds:
            branch.feed(feed)
    for name, each in streams.items():
        for partition in range(len(each.stream.source.partitions)):
            branch.end(name, partition)


def text_of(query: Standing, answered: Answered) -> str:
    """The whole answer."""
    text = "".join(answered.pieces)
    return f"{query.opening}{text}{query.closing}" if text else query.empty
