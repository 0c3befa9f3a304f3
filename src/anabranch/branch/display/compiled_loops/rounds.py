"""The rounds of a large entry, remembered: an update inside one of them costs that round, however many there are.

A compiled loop looks at nothing but the node of a round and what is below it, once the nodes are found; and its path
finds the same nodes as long as nothing has changed but inside them, if no predicate on the way looks there
(`CompiledLoop.is_separable`).
So an entry with many nodes keeps the result of each, and which regions are inside of which node.
An update of such a region, or of one that holds nodes and nothing else, evaluates the nodes in question again;
any other change of the entry evaluates all of them.

Results are numbered by the places of their nodes, those without a result counted: the number of one does not depend on
what the others give, and follows from the content of the entry alone, whoever evaluates it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from anabranch.branch.display.compiled_loops.kept_nodes import MOST_WORK, Unusual, collect, collect_deep
from anabranch.branch.display.compiled_loops.loops import CompiledLoop, ShownRow
from anabranch.errors import DynamicError
from anabranch.law.history.chains import Chain, Content, Lived
from anabranch.stream.tree import Element

LEAST_NODES = 32
"""With fewer nodes than this, all are evaluated."""


@dataclass(frozen=True, slots=True)
class NumberedRows:
    """Results of an entry by their numbers: all of them, or `only` those of some numbers, which may have none."""

    rows: dict[int, ShownRow]
    only: tuple[int, ...] | None = None


def _nodes_of(loop: CompiledLoop, entry: Content) -> tuple[list[Lived], dict[Chain, tuple[int, ...]]]:
    """The nodes of all rounds, and those in regions that hold nothing else, by their numbers."""
    last = loop.steps[-1]
    nodes: list[Lived] = []
    around: dict[Chain, tuple[int, ...]] = {}
    for host in loop.hosts(entry):
        if last.deep:
            collect_deep(host, last.name, nodes, is_last=True)
            continue
        for each in host:
            first = len(nodes)
            collect((each,), last.name, nodes)
            if isinstance(each, Chain) and _holds_only(each, last.name):
                around[each] = tuple(range(first, len(nodes)))
    return nodes, around


@dataclass(slots=True)
class EntryRounds:
    """The rounds of a loop over one entry."""

    _loop: CompiledLoop
    _nodes: list[Lived]
    _work: list[int] = field(default_factory=list)
    """What each round has cost."""
    _total: int = 0
    _inside: dict[Chain, int] = field(default_factory=dict)
    """By region inside a node: the number of the node."""
    _around: dict[Chain, tuple[int, ...]] = field(default_factory=dict)
    """By region that holds nodes, and nothing else: their numbers."""

    @staticmethod
    def of(loop: CompiledLoop, entry: Content) -> tuple[EntryRounds, NumberedRows] | None:
        """All rounds of an entry, evaluated; None where they are few, or depend on one another."""
        nodes, around = _nodes_of(loop, entry)
        if len(nodes) < LEAST_NODES or (loop.deep_name and _nested(nodes, loop.deep_name)):
            return None
        found = EntryRounds(loop, nodes, [0] * len(nodes), loop.work, {}, around)
        for number, node in enumerate(nodes):
            found._register(number, node.content)
        return found, NumberedRows(found._evaluated(range(len(nodes))))

    @staticmethod
    def is_large(loop: CompiledLoop, entry: Content) -> bool:
        """Whether the rounds of an entry may be evaluated one by one."""
        try:
            return len(_nodes_of(loop, entry)[0]) >= LEAST_NODES
        except (Unusual, DynamicError):
            return True

    def changed(self, regions: Iterable[Chain]) -> NumberedRows | None:
        """The results of the rounds that updates of some regions concern; None where all have to be evaluated."""
        numbers: dict[int, None] = {}
        for region in regions:
            if (inside := self._inside.get(region)) is not None:
                if self._loop.deep_name and _nested_in(region, self._loop.deep_name):
                    return None
                numbers[inside] = None
            elif region in self._around and self._replaced(region):
                numbers.update(dict.fromkeys(self._around[region]))
            else:
                return None
        return NumberedRows(self._evaluated(numbers), tuple(numbers))

    def _replaced(self, region: Chain) -> bool:
        """Take the nodes that a region holds now; false where there are more, or fewer, or something else."""
        last, numbers = self._loop.steps[-1], self._around[region]
        if not _holds_only(region, last.name):
            return False
        nodes: list[Lived] = []
        collect((region,), last.name, nodes)
        if len(nodes) != len(numbers) or (self._loop.deep_name and _nested(nodes, self._loop.deep_name)):
            return False
        for number, node in zip(numbers, nodes, strict=True):
            self._nodes[number] = node
            self._register(number, node.content)
        return True

    def _evaluated(self, numbers: Iterable[int]) -> dict[int, ShownRow]:
        found: dict[int, ShownRow] = {}
        for number in numbers:
            row = self._loop.single_round(self._nodes[number])
            self._total += self._loop.work - self._work[number]
            self._work[number] = self._loop.work
            if self._total > MOST_WORK:
                raise Unusual
            if row is not None and row.piece is not None:
                found[number] = row
        return found

    def _register(self, number: int, content: Sequence[Content]) -> None:
        for each in content:
            if isinstance(each, Chain):
                self._inside[each] = number
                for version in each.versions:
                    self._register(number, version.content)
            else:
                self._register(number, each.content)


def _holds_only(region: Chain, name: str) -> bool:
    """Whether a region holds elements of a name in its present version, and nothing else."""
    return bool(region.versions) and all(
        isinstance(each, Lived) and isinstance(each.node, Element) and each.node.name.local == name
        for each in region.versions[-1].content
    )


def _nested(nodes: Iterable[Lived], name: str) -> bool:
    """Whether an element of a name is below one of the nodes: a step to any depth would find it."""
    found: list[Lived] = []
    for node in nodes:
        collect_deep(node.content, name, found, is_last=True)
    return bool(found)


def _nested_in(region: Chain, name: str) -> bool:
    found: list[Lived] = []
    collect_deep((region,), name, found, is_last=True)
    return bool(found)
