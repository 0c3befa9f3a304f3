"""A branch whose windows are over the results of another: the two halves of a chained query (LAWS 3.13).

The inner branch writes its results and accents as for an answer; they are the elements of a stream of one partition,
which the outer branch reads as any other.
So neither knows of the other, and what holds for an answer that is read as a stream (LAWS 3.12) holds here, at once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction
from typing import Any

import pyarrow as pa

from anabranch.branch.family import operator_of
from anabranch.branch.futures import digest
from anabranch.branch.intake.backlog import Key
from anabranch.branch.intake.entries import FeedOrigin, pack
from anabranch.branch.members import BranchMember
from anabranch.branch.open import FlowingBranch, open_branch
from anabranch.branch.ports import InputStream, Output, Spill
from anabranch.branch.state import BranchState
from anabranch.errors import StateError
from anabranch.law.calls import PythonFunction
from anabranch.law.inputs import Input
from anabranch.runtime.chains import RESULTS, ChainedQuery
from anabranch.runtime.evolution.tracing import lineage_of
from anabranch.stream.elements import DeadLetter, Place
from anabranch.stream.limits import Limits
from anabranch.stream.path import Path
from anabranch.stream.reading.parse import parse_root
from anabranch.stream.reading.reader import ElementReader
from anabranch.stream.reading.source import Source
from anabranch.stream.reading.split import DocumentSplitter

_ROOT = b"<results>"


class _InnerResults:
    """Takes the results of the inner branch; dead letters and late items are those of the subscription."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self.text: list[bytes] = []

    def piece(self, text: str) -> None:
        self.text.append(text.encode())

    def extend(self, data: bytes, pieces: int, first: int) -> None:
        self.text.append(data)

    def bury(self, letter: DeadLetter) -> None:
        self._out.bury(letter)

    def late(self, place: Place) -> None:
        self._out.late(place)


class ChainedBranch:
    """Two branches, one behind the other."""

    def __init__(
        self,
        member: BranchMember[ChainedQuery],
        inputs: Mapping[str, InputStream],
        state: BranchState | None,
        functions: Mapping[str, PythonFunction] | None,
        documents: Mapping[str, Input] | None,
        spill: Spill,
    ) -> None:
        if state is not None and state.meta["operator"] != "chain":
            raise StateError(f"the state of '{member.name}' is that of another kind of branch")
        self._member = member
        self._results = _InnerResults(member.out)
        self._written = 0 if state is None else state.meta["written"]
        """The bytes of all results so far."""
        self._open = {(name, part) for name, each in inputs.items() for part in range(len(each.source.partitions))}
        self._open -= set() if state is None else {(name, part) for name, part in state.meta["ended"]}
        self._ended: list[Key] = [] if state is None else [(name, part) for name, part in state.meta["ended"]]
        chain = member.query
        inner = BranchMember("", member.name, chain.inner, self._results, member.policy)
        outer = BranchMember("", member.name, chain.outer, member.out, member.policy)
        times = {name: each.source.time for name, each in inputs.items()}
        late = any(each.late for each in inputs.values())
        between = {RESULTS: _stream(late, _domains(chain, inputs, tuple(functions or ())))}
        rest = functions, documents, spill
        self._inner = open_branch(
            operator_of(chain.inner, times, endless=True), [inner], inputs, _half(state, "inner"), *rest
        )
        self._outer = open_branch(
            operator_of(chain.outer, {RESULTS: None}, endless=True), [outer], between, _half(state, "outer"), *rest
        )
        self._pass()

    def feed(self, *feeds: bytes) -> None:
        """Add packed feeds."""
        self._inner.feed(*feeds)
        self._pass()

    def passed(self, time: Fraction) -> None:
        """No input with arrival times brings anything at or before `time` any more."""
        self._inner.passed(time)
        self._pass()

    def end(self, stream: str, partition: int) -> None:
        """End an input; the end of the last one is that of the results."""
        self._inner.end(stream, partition)
        self._pass()
        self._ended.append((stream, partition))
        self._open.discard((stream, partition))
        if not self._open:
            self._outer.end(RESULTS, 0)

    def _pass(self) -> None:
        """Hand new results on."""
        text, self._results.text = b"".join(self._results.text), []
        if not text:
            return
        splitter = DocumentSplitter(Limits())
        moved = self._written - len(_ROOT)
        cuts = [
            each._replace(start=each.start + moved, end=each.end + moved)
            for each in (*splitter.feed(_ROOT + text), *splitter.finish())
            if each.reason is None or each.raw
        ]
        self._written += len(text)
        self._outer.feed(pack(FeedOrigin(RESULTS, 0, self._member.name), cuts))

    # --- between epochs -----------------------------------------------------------------------------------------

    def save(self) -> BranchState | None:
        """The states of both."""
        meta: dict[str, Any] = {"operator": "chain", "written": self._written, "ended": self._ended}
        tables: dict[str, pa.Table] = {}
        for name, half in (("inner", self._inner.save()), ("outer", self._outer.save())):
            if half is not None:
                meta[name] = half.meta
                tables |= {f"{name} {each}": table for each, table in half.tables.items()}
        return BranchState(meta, tables)

    def futures(self, keys: Collection[str]) -> dict[str, str]:
        """The future of the query (`futures.py`): that of both halves.

        Places of results count from the beginning of the branch, so they count back from the end here.
        """
        if self._member.key not in keys or not (
            isinstance(self._inner, FlowingBranch) and isinstance(self._outer, FlowingBranch)
        ):
            return {}
        inner = self._inner.futures(("",))
        outer = self._outer.futures(("",), {RESULTS: self._written})
        return {self._member.key: digest(inner, outer)} if inner and outer else {}

    @property
    def held(self) -> int:
        """The number of items in both states."""
        return self._inner.held + self._outer.held

    @property
    def waiting(self) -> dict[Key, int]:
        """The number of elements of each input that are held back, because another is behind."""
        return self._inner.waiting

    @property
    def spilled(self) -> tuple[str, ...]:
        """The names in the spill that the states refer to."""
        return (*self._inner.spilled, *self._outer.spilled)

    @property
    def aborted(self) -> dict[str, str]:
        """Why it ended in this epoch, if it did."""
        reasons = (*self._inner.aborted.values(), *self._outer.aborted.values())
        return {self._member.key: reasons[0]} if reasons else {}


def _half(state: BranchState | None, name: str) -> BranchState | None:
    if state is None or name not in state.meta:
        return None
    tables = {each.removeprefix(f"{name} "): table for each, table in state.tables.items() if each.startswith(name)}
    return BranchState(state.meta[name], tables)


def _domains(
    chain: ChainedQuery, inputs: Mapping[str, InputStream], registered: tuple[str, ...]
) -> tuple[tuple[Path, tuple[str, ...]], ...]:
    """The declared domains of streams, for the paths of results that are copies of theirs."""
    lineage = lineage_of(chain.inner, registered, {name: each.root.namespaces for name, each in inputs.items()})
    return tuple(
        (found, values)
        for number, names in enumerate(lineage.streams)
        if len(names) == 1
        for path, values in inputs[names[0]].source.domains
        if (found := lineage.seen(number, path)) is not None
    )


def _stream(late: bool, domains: tuple[tuple[Path, tuple[str, ...]], ...]) -> InputStream:
    root = parse_root(_ROOT)
    return InputStream(
        Source(RESULTS, RESULTS, "document", domains=domains),
        root,
        lambda: ElementReader(RESULTS, "document", Limits(), root),
        late,
        endless=True,
    )
