"""The queries of a stream, compiled for the look of its items, which is learned as they come.

The look affects the speed of answers only: one that serves fewer queries than the one before is not used, unless most
items no longer have that one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anabranch.columnar.expressions.spots import NotColumnar
from anabranch.columnar.items.coverage import Coverage
from anabranch.columnar.items.growing_look import SAMPLE, GrowingLook, chosen
from anabranch.columnar.items.programs import Compile, ItemQueries, Program, compiled_queries, program_of
from anabranch.columnar.messages import Messages
from anabranch.columnar.scan.look import Look
from anabranch.columnar.scan.shred import Shredded, Shredder
from anabranch.columnar.scan.template import scope_around, scope_of
from anabranch.errors import BadItem
from anabranch.stream.elements import Item, Place
from anabranch.stream.limits import Limits
from anabranch.stream.reading.json_items import parse_line
from anabranch.stream.reading.lines import Cut
from anabranch.stream.reading.parse import parse_item
from anabranch.stream.reading.reader import Format
from anabranch.stream.schema import Schema
from anabranch.stream.tree import Element

_SAMPLE_BYTES = 1 << 14


@dataclass(slots=True)
class PieceSample:
    """How many entries of a piece do not fit, and some entries to learn from."""

    entries: int = 0
    off: int = 0
    cuts: Sequence[Cut] = ()
    _most: int = 0

    def take(self, shredded: Shredded) -> None:
        """Count some entries of the piece; the sample is taken where most do not fit."""
        off = len(shredded.fits) - int(np.count_nonzero(shredded.fits))
        self.entries += len(shredded.fits)
        self.off += off
        if off > self._most and shredded.wanted is not None:
            self._most = off
            self.cuts = [shredded.cut(each) for each in chosen(shredded.fits).tolist()]


class LearnedProgram:
    """The queries and takers of one stream, compiled for the look that is known."""

    def __init__(
        self,
        queries: Sequence[ItemQueries],
        compiles: Sequence[Compile],
        form: Format,
        root: Element,
        limits: Limits,
        schema: Schema | None,
        *,
        item: str,
        together: bool,
    ) -> None:
        """The arguments are those of `StreamAnswers`."""
        self._queries = queries
        self._compiles = compiles
        self._form = form
        self._root = root.name.expanded
        self._scope = scope_of(root)
        self._limits = limits
        self._schema = schema
        self._item = item
        self._together = together
        self._growing = GrowingLook(is_json=form == "json", lines=form == "lines", scope=self._scope)
        self._able = bool(compiles) or bool(queries)
        self.coverage = Coverage.of(queries, [NotColumnar("items whose look is not known")] * len(queries))
        """Which subscriptions are answered in columns."""
        self.program: Program | None = None

    def begin(self, shredder: Shredder, piece: bytes | Messages) -> None:
        """Learn from the next piece, where no look is known yet; a blank piece is no attempt, which a pause follows."""
        if not self._able or self.program is not None:
            return
        sample = shredder.sample(piece, _SAMPLE_BYTES)[:SAMPLE]
        if sample and self._growing.is_due(1, 1):
            self._learn(sample, 1.0)

    def grow(self, sample: PieceSample) -> None:
        """Learn from a piece that was read, where too many of its entries did not fit."""
        if sample.cuts and self._growing.is_due(sample.entries, sample.off):
            self._learn(sample.cuts, sample.off / sample.entries)

    def _learn(self, cuts: Sequence[Cut], share: float) -> None:
        """Learn the look of items, of which this share did not fit."""

        def use(look: Look) -> bool:
            found, joined = compiled_queries(self._queries, self._root, look)
            program = program_of(self._queries, found, self._compiles, self._root, joined, together=self._together)
            known = self.program
            if known is not None and (program is None or (2 * share <= 1 and program.missing > known.missing)):
                return False
            self.program, self.coverage = program, Coverage.of(self._queries, found)
            return program is not None

        self._growing.learn([(cut.raw, tree) for cut in cuts if (tree := self._tree(cut))], share, use)

    def _tree(self, cut: Cut) -> Element | None:
        """The tree of a good item, for learning; None for one below a root that declares other namespaces."""
        if scope_around(cut.root, cut.encoding) != self._scope:
            return None
        try:
            if self._form == "json":
                element = parse_line(cut.raw, Place("", "", 0), self._limits, self._item)
                tree = element.tree if isinstance(element, Item) else None
            else:
                tree = parse_item(cut.raw, self._limits, dict(self._scope))
        except BadItem:
            return None
        return None if tree and self._schema and self._schema.undeclared(tree) else tree
