"""The subscriptions of one stream, answered a few thousand items at a time.

For each subscription that is made for columns, items that fit the template are judged and their answers laid out
without a step of Python for any single item.
*Takers* see the same items in the same pass: they gather what windows and joins go on with.
What remains is read by the real parser and answered by the reference evaluator, one by one and in order: items of
another look, items whose condition is unclear, and every item for a query that is not made for columns.
So which way an item takes never shows in an answer.

The template is learned from the stream, and learned anew when most items no longer fit it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from anabranch.columnar import guided
from anabranch.columnar.condition import NO, UNCLEAR, YES, Verdicts, judge
from anabranch.columnar.kernels import Flags
from anabranch.columnar.laying import Laid, laid_out
from anabranch.columnar.query import CompiledQuery, compile_query
from anabranch.columnar.shred import Shredded, Shredder, Wanted
from anabranch.columnar.template import Template
from anabranch.errors import BadItem, DynamicError
from anabranch.language import ast
from anabranch.stream.elements import LONGEST_RAW, DeadLetter, Item, Punctuation
from anabranch.stream.limits import Limits
from anabranch.stream.lines import Cut
from anabranch.stream.parse import parse_item
from anabranch.stream.schema import Schema
from anabranch.stream.serialize import serialize
from anabranch.stream.tree import Element

_SAMPLE_BYTES, _SAMPLE = 1 << 14, 20
_HELD = 4 << 20
"""How many bytes of slow answers are held before they are handed out."""


Read: TypeAlias = Callable[[Cut], Item | Punctuation | None]


class Answers(Protocol):
    """Where answers and dead letters go."""

    def extend(self, subscription: int, data: bytes, entries: int, first: int) -> None:
        """Add the answers to some items, one behind the other; the first is `first` bytes long."""

    def bury(self, letter: DeadLetter) -> None:
        """Set a dead letter down."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """A query that answers item by item (`reference.standing`)."""

    number: int
    name: str
    hole: ast.Expression | None
    """What it does with one item; None if that stands in a namespace."""
    slow: Callable[[Element], str]
    """The law: the piece that an item adds; `DynamicError` where it fails (LAWS 2.4)."""


class Compiled(Protocol):
    """What was made for one template."""

    @property
    def leaves(self) -> set[int]:
        """The leaves it looks at."""

    @property
    def numbers(self) -> set[int]:
        """Those of them whose numbers it looks at."""


Compile: TypeAlias = Callable[[str, Template], Compiled | None]
"""Makes something for a template, or None if it cannot; told the name of the stream's root."""


class Taker(Protocol):
    """Gathers what a branch needs of the items of one range, batch by batch: `judge`, `show`, `take`."""

    def judge(self, compiled: Any, shredded: Shredded, known: Flags) -> Flags:
        """Begin a batch; gives the entries that must be shown. `known` are those that are good items for certain."""

    def show(self, entry: int, element: Item | Punctuation) -> None:
        """See one of them; a bad one is not shown."""

    def take(self) -> None:
        """End the batch."""


@dataclass(frozen=True, slots=True)
class _Program:
    """All subscriptions for one template: None for those that are not made for columns."""

    wanted: Wanted
    queries: tuple[Laid | None, ...]
    taken: tuple[Compiled | None, ...]
    """What takers take, in the order of `compiles`."""


class StreamAnswers:
    """Answers the items of one stream; what it learns of their look only makes it faster or slower."""

    def __init__(
        self,
        subscriptions: Sequence[Subscription],
        root: Element,
        limits: Limits,
        schema: Schema | None = None,
        compiles: Sequence[Compile] = (),
    ) -> None:
        """`schema` is given where the stream is strict, `compiles` where there will be takers: one for each."""
        self._subscriptions = subscriptions
        self._compiles = compiles
        self._root = root.name.local
        self._limits = limits
        self._schema = schema
        self._template: Template | None = None
        self._program: _Program | None = None
        self._able = not root.namespaces and (bool(compiles) or any(each.hole is not None for each in subscriptions))
        self._stale = True

    def answer(
        self, shredder: Shredder, piece: bytes | None, read: Read, out: Answers, takers: Sequence[Taker] = ()
    ) -> int:
        """Answer what ends in the next piece, None for the end of input; how many items there were.

        `read` gives an element as a tree, or None where it has seen to a bad one itself.
        """
        if piece is None:
            return sum(self._answer(each, read, out, takers) for each in shredder.finish())
        if self._able and self._stale:
            self._learn(shredder.sample(piece[:_SAMPLE_BYTES])[:_SAMPLE])
        wanted = self._program.wanted if self._program else None
        items = fitting = 0
        for shredded in shredder.feed(piece, wanted):
            items += self._answer(shredded, read, out, takers)
            fitting += int(np.count_nonzero(shredded.fits))
        self._stale = self._program is None or 2 * fitting < items
        return items

    def _learn(self, cuts: Sequence[Cut]) -> None:
        template = Template.learn((cut.raw, tree) for cut in cuts if (tree := self._tree(cut)))
        if template is None or template == self._template:
            return
        self._template = template
        queries = [self._compiled(each, template) for each in self._subscriptions]
        compiled = [each for each in queries if each]
        taken = tuple(each(self._root, template) for each in self._compiles)
        everything = [*compiled, *(each for each in taken if each)]
        leaves = tuple(sorted(set().union(*(each.leaves for each in everything))))
        numbers = set().union(*(each.numbers for each in everything))
        wanted = Wanted(template, leaves, tuple(leaf in numbers for leaf in leaves))
        laid = tuple(None if each is None else Laid.of(each, wanted) for each in queries)
        self._program = _Program(wanted, laid, taken) if compiled or taken else None

    def _compiled(self, subscription: Subscription, template: Template) -> CompiledQuery | None:
        return None if subscription.hole is None else compile_query(subscription.hole, self._root, template)

    def _tree(self, cut: Cut) -> Element | None:
        """The tree of a good item, for learning."""
        try:
            tree = parse_item(cut.raw, self._limits)
        except BadItem:
            return None
        return None if self._schema and self._schema.undeclared(tree) else tree

    def _answer(self, shredded: Shredded, read: Read, out: Answers, takers: Sequence[Taker]) -> int:
        known = shredded.fits
        if self._schema is None:
            known = known | guided.fill(shredded, self._limits)
        verdicts = self._verdicts(shredded)
        unread = ~known
        for each in verdicts:
            unread |= each == UNCLEAR
        shown = self._judged(shredded, known, takers)
        for flags in shown:
            unread |= flags
        items = int(np.count_nonzero(known))
        slow = _Slow(self._subscriptions, out)
        begin = 0
        for entry in map(int, np.flatnonzero(unread)):
            element = read(shredded.cut(entry))
            if element is None:
                continue
            for taker, flags in zip(takers, shown, strict=True):
                if flags[entry]:
                    taker.show(entry, element)
            if isinstance(element, Punctuation):
                continue
            items += not known[entry]
            slow.answer(entry, element, verdicts)
            if slow.held > _HELD:
                self._deliver(shredded, range(begin, entry + 1), verdicts, slow.take(), out)
                begin = entry + 1
        self._deliver(shredded, range(begin, len(known)), verdicts, slow.take(), out)
        for taker in takers:
            taker.take()
        return items

    def _judged(self, shredded: Shredded, known: Flags, takers: Sequence[Taker]) -> list[Flags]:
        """Which entries each taker must be shown."""
        program = self._program if shredded.wanted else None
        taken = program.taken if program else (None,) * len(takers)
        return [taker.judge(compiled, shredded, known) for taker, compiled in zip(takers, taken, strict=True)]

    def _deliver(
        self,
        shredded: Shredded,
        entries: range,
        verdicts: Sequence[Verdicts],
        slow: Sequence[Sequence[tuple[int, bytes]]],
        out: Answers,
    ) -> None:
        """Hand out the answers to some entries."""
        program = self._program if shredded.wanted else None
        for number, subscription in enumerate(self._subscriptions):
            laid = program.queries[number] if program else None
            taken = np.empty(0, np.int64)
            if laid is not None and laid.query.fragments:
                taken = entries.start + np.flatnonzero(verdicts[number][entries.start : entries.stop] == YES)
            pieces = slow[number]
            if laid is not None and len(taken):
                picks = np.concatenate([taken, ~np.arange(len(pieces))])
                if pieces:
                    picks = picks[np.argsort([*taken, *(entry for entry, _ in pieces)])]
                answers, offsets = laid_out(shredded, laid, picks, [piece for _, piece in pieces])
                out.extend(subscription.number, answers, len(offsets) - 1, int(offsets[1]))
            elif pieces:
                out.extend(subscription.number, b"".join(piece for _, piece in pieces), len(pieces), len(pieces[0][1]))

    def _verdicts(self, shredded: Shredded) -> list[Verdicts]:
        """What each subscription makes of each entry; yes only for those that fit."""
        unclear = np.full(len(shredded.fits), UNCLEAR, np.uint8)
        if self._program is None or shredded.wanted is None:
            return [unclear] * len(self._subscriptions)
        assert shredded.wanted is self._program.wanted, "a piece is answered before the next is fed"
        found: list[Verdicts] = []
        for laid in self._program.queries:
            verdicts = judge(laid.query.condition, shredded) if laid else unclear
            found.append(np.where(shredded.fits | (verdicts == NO), verdicts, np.uint8(UNCLEAR)))
        return found


class _Slow:
    """Answers single items by the law; holds the pieces by subscription, each with the number of its entry."""

    def __init__(self, subscriptions: Sequence[Subscription], out: Answers) -> None:
        self._subscriptions = subscriptions
        self._out = out
        self._pieces: list[list[tuple[int, bytes]]] = []
        self.take()

    def answer(self, entry: int, item: Item, verdicts: Sequence[Verdicts]) -> None:
        """Show an item to the subscriptions for which its entry is unclear."""
        for subscription, each, pieces in zip(self._subscriptions, verdicts, self._pieces, strict=True):
            if each[entry] != UNCLEAR:
                continue
            try:
                piece = subscription.slow(item.tree).encode()
            except DynamicError as error:  # LAWS 2.4: it concerns this subscription and this item only
                raw = serialize(item.tree)[:LONGEST_RAW]
                self._out.bury(DeadLetter(item.place, error.message, raw, error.code, subscription.name))
            else:
                if piece:
                    pieces.append((entry, piece))
                    self.held += len(piece)

    def take(self) -> list[list[tuple[int, bytes]]]:
        """What is held, which is then no longer held."""
        pieces, self._pieces, self.held = self._pieces, [[] for _ in self._subscriptions], 0
        return pieces
