"""The evaluator of expressions (`tree.py`), for many rows at once.

The rows are those of a batch, some of them, or the rows of a repeated part inside them (`FrameEvaluation.inside`).
Each node is evaluated once for all rows, even if several expressions contain it.

A value is *absent* or *unclear* by its state (`States`); then its number or text means nothing.
Numbers are doubles, integers too: where one is not exact any more, it is unclear.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.expressions import texts
from anabranch.columnar.expressions.functions import FUNCTIONS
from anabranch.columnar.expressions.objects.writing import json_copies, json_texts
from anabranch.columnar.expressions.rows.comparing import values_compared
from anabranch.columnar.expressions.rows.folding import FOLDS, SourceRows, folded
from anabranch.columnar.expressions.rows.ordering import ordered
from anabranch.columnar.expressions.rows.places import first_of_values, only_one, row_places
from anabranch.columnar.expressions.texts import TextColumn
from anabranch.columnar.expressions.tree import (
    TIMES,
    Choice,
    Clear,
    ColumnArithmetic,
    ColumnComparison,
    Constant,
    ConstantValue,
    ContentOf,
    Expression,
    FirstOfValue,
    Fragment,
    FunctionCall,
    JsonCopy,
    JsonText,
    Junction,
    Kind,
    Made,
    PartsInOrder,
    PartText,
    Presence,
    RecordLine,
    RowExtreme,
    RowFold,
    RowLoop,
    RowPlace,
    RowQuantifier,
    RowsFound,
    RowSource,
    Taken,
    Truth,
    Wrapped,
    constant_of,
)
from anabranch.columnar.expressions.values import (
    ABSENT,
    CLEAR,
    UNCLEAR,
    ColumnValue,
    States,
    calculated,
    doubles_of,
    exact_numbers,
    lines_of_records,
    only_unclear,
    spans_of_owners,
    spelled,
    state_of,
    truth_of,
    with_front,
    worst,
)
from anabranch.columnar.match.condition import NO, YES
from anabranch.columnar.match.condition import UNCLEAR as UNCLEAR_VERDICT
from anabranch.columnar.scan import kernels
from anabranch.columnar.scan.frames import FrameRows
from anabranch.columnar.scan.kernels import Flags, Indices
from anabranch.columnar.scan.look import PartColumn
from anabranch.columnar.scan.shred import Shredded
from anabranch.columnar.tables.joined_look import JoinedLook, RowLookup, TableView

_TYPED_FOLDS = (Kind.INTEGER, *TIMES)
"""The results of functions of sequences that are of the type of what they are given."""
_NO_CONSTANTS: Mapping[Constant, ColumnValue] = {}


class FrameEvaluation:
    """Expressions over some rows of one frame."""

    def __init__(
        self,
        shredded: Shredded | TableView,
        picks: Indices | None = None,
        frame: int = -1,
        around: FrameEvaluation | None = None,
        owners: Indices | None = None,
        constants: Mapping[Constant, ColumnValue] = _NO_CONSTANTS,
    ) -> None:
        """`picks` are rows of the frame, None for all; `owners` gives for each the row of `around` that it lies in.

        `constants` gives the constants of each row, by the marks in their place.
        """
        self._shredded = shredded
        self._picks = picks
        self._frame = frame
        self._outer = None if around is None else ref(around)  # it holds this one: no reference cycle
        self._owners = owners
        self._constants = constants
        self._known: dict[Expression, ColumnValue] = {}
        self._inside: dict[int, FrameEvaluation] = {}
        rows: Shredded | FrameRows = shredded if isinstance(shredded, Shredded) and frame < 0 else shredded.frame(frame)
        self._rows = rows
        self._whole: tuple[FrameEvaluation, Indices] | None = None
        """Where these are some of the rows of another evaluation: that one, and which of its rows they are."""
        self._doubtful: dict[int, Flags] = {}
        """By lookup: the rows that are left to the law."""
        self.count = rows.starts.shape[1] if picks is None else len(picks)

    @property
    def _around(self) -> FrameEvaluation | None:
        return None if self._outer is None else self._outer()

    def value(self, expression: Expression) -> ColumnValue:
        """The values of an expression."""
        found = self._known.get(expression)
        if found is None:
            with np.errstate(all="ignore"):
                found = self._value(expression)
            if found.state is not None and len(found.state) != self.count:
                found = found.with_state(np.broadcast_to(found.state, self.count))
            self._known[expression] = found
        return found

    def _value(self, expression: Expression) -> ColumnValue:
        if self._belongs_around(expression):
            return self._from_around(expression)
        match expression:
            case PartText(column):
                return self._part(column, expression.kind)
            case ConstantValue():
                return self._literal(expression)
            case Presence(column):
                starts = self._taken(self._rows.starts[self._row(column)])
                verdicts = np.where(starts >= 0, np.uint8(YES), np.uint8(NO))
                verdicts[starts == kernels.UNCLEAR] = UNCLEAR_VERDICT
                return ColumnValue.truth(verdicts)
            case ColumnArithmetic(operator, left, right):
                numbers = doubles_of(self.value(left)), doubles_of(self.value(right))
                return calculated(expression.kind, operator, *numbers)
            case ColumnComparison(operator, left, right):
                sides = (left, self.value(left)), (right, self.value(right))
                return values_compared(operator, *sides, self.count)
            case Junction(is_and, operands):
                by = np.minimum if is_and else np.maximum
                return ColumnValue.truth(reduce(by, (self.truth(each) for each in operands)))
            case Truth(operand):
                return ColumnValue.truth(truth_of(self.value(operand), self.count))
            case Clear(operand):
                unclear = self.value(operand).unclear
                verdicts = np.where(np.broadcast_to(unclear, self.count), np.uint8(UNCLEAR_VERDICT), np.uint8(YES))
                return ColumnValue.truth(verdicts)
            case Choice(condition, then, otherwise):
                return self._chosen(self.truth(condition), self.value(then), self.value(otherwise))
            case FunctionCall("behind", (clear, operand), _):
                return self.value(operand).unclear_where(self.truth(clear) == UNCLEAR_VERDICT)
            case FunctionCall(name, arguments, kind):
                return FUNCTIONS[name].evaluate(kind, [self.value(each) for each in arguments], self.count)
            case RowsFound(frame):
                return ColumnValue.truth(np.where(self.doubtful(frame), np.uint8(UNCLEAR_VERDICT), np.uint8(YES)))
            case RowQuantifier(frame, is_some, condition):
                return ColumnValue.truth(self._quantified(self.inside(frame), is_some, condition))
            case RowFold("only one", (source,)):
                return only_one(self._source_rows(source, ()), self.count)
            case RowFold(name, sources, arguments):
                rows = [self._source_rows(each, FOLDS[name].reads) for each in sources]
                found = folded(name, rows, self.count, [self.value(each) for each in arguments])
                return replace(found, kind=expression.kind) if expression.kind in _TYPED_FOLDS else found
            case FirstOfValue() | RowPlace() if self._whole is not None:  # these look at all rows
                whole, chosen = self._whole
                return whole.value(expression).take(chosen)
            case FirstOfValue(_, text, condition, at):
                mine, count = self._rows_in(at, condition)
                return ColumnValue.truth(first_of_values(replace(mine, value=self.value(text)), count))
            case RowPlace(_, is_last, condition, at):
                return row_places(*self._rows_in(at, condition), last=is_last)
            case RowExtreme(frame, is_greatest, operand):
                return self._extreme(self.inside(frame), is_greatest, operand)
            case RowLoop(frame):
                return self._looped(self.inside(frame), expression)
            case PartsInOrder(columns):
                return self._in_order(columns)
            case RecordLine(_, is_ended):
                assert isinstance(self._shredded, Shredded), "only items are records"
                return lines_of_records(self._shredded, self._picks, is_ended=is_ended)
            case JsonText(operand):
                return json_texts(operand.kind, self.value(operand), self.count)
            case JsonCopy(column):
                assert isinstance(self._shredded, Shredded), "only items have objects in them"
                row = self._row(column)
                return json_copies(
                    self._shredded.raw, self._taken(self._rows.starts[row]), self._taken(self._rows.ends[row])
                )
            case ContentOf(fragments):
                return self._content(fragments)

    def truth(self, expression: Expression) -> NDArray[np.uint8]:
        """The outcomes of a boolean expression."""
        found = self.value(expression)
        assert found.verdicts is not None, "a condition is boolean"
        return np.broadcast_to(found.verdicts, self.count)

    # --- columns ------------------------------------------------------------------------------------------

    def _row(self, column: int) -> int:
        return self._shredded.row(column)

    def _taken(self, values: NDArray[Any]) -> NDArray[Any]:
        return values if self._picks is None else values.take(self._picks)

    def _frame_of(self, column: int) -> int:
        assert self._shredded.wanted is not None
        return self._shredded.wanted.all_parts.frames[column if column >= 0 else ~column]

    def _stands_around(self, column: int) -> bool:
        return self._frame_of(column) != self._frame

    def _belongs_around(self, expression: Expression) -> bool:
        """Whether an expression reads parts of an outer frame only."""
        match expression:
            case PartText(column) | Presence(column) | JsonCopy(column) | RecordLine(column):
                return self._stands_around(column)
            case RowQuantifier() | RowFold() | RowExtreme() | RowLoop() | PartsInOrder() | RowsFound():
                return expression.at != self._frame
            case FirstOfValue(frame) | RowPlace(frame):
                return frame != self._frame
            case _:
                return False

    def _from_around(self, expression: Expression) -> ColumnValue:
        assert self._around is not None, "an expression looks at nothing further in"
        assert self._owners is not None
        return self._around.value(expression).take(self._owners)

    def _span(self, column: int) -> ColumnValue:
        """The text or the whole of a part."""
        row = self._row(column)
        starts, ends = self._taken(self._rows.starts[row]), self._taken(self._rows.ends[row])
        state: States | None = None
        if starts.min(initial=0) < 0:
            state = np.where(starts == kernels.ABSENT, np.uint8(ABSENT), np.uint8(CLEAR))
            state[starts == kernels.UNCLEAR] = UNCLEAR
            starts, ends = np.maximum(starts, 0), np.maximum(ends, 0)
        found = TextColumn(self._shredded.data, starts, ends)
        if isinstance(self._shredded, TableView):
            found, _ = texts.concat([found])  # so that not all texts of the table are carried along
        return ColumnValue(Kind.UNTYPED, state, texts=found)

    def _part(self, column: int, kind: Kind) -> ColumnValue:
        found = self._span(column)
        numbers = None if kind in (Kind.STRING, Kind.FLAG) else self._taken(self._rows.values[self._row(column)])
        return ColumnValue(kind, found.state, numbers, found.texts)

    def _literal(self, literal: ConstantValue) -> ColumnValue:
        """A constant, which may differ from row to row."""
        if self._around is not None:
            found = self._around.value(literal)
            assert self._owners is not None
            return found.take(self._owners)
        constant = constant_of(literal)
        if constant in self._constants:
            return replace(self._constants[constant], kind=literal.kind)
        if isinstance(constant, float) and -constant in self._constants:
            numbers = self._constants[-constant].numbers
            assert numbers is not None
            return ColumnValue(literal.kind, numbers=-numbers)
        return ColumnValue.literal(literal.value)

    # --- operators ----------------------------------------------------------------------------------------

    def _chosen(self, condition: NDArray[np.uint8], then: ColumnValue, otherwise: ColumnValue) -> ColumnValue:
        found = then.where(condition == YES, otherwise, self.count)
        return found.unclear_where(condition == UNCLEAR_VERDICT)

    # --- frames -------------------------------------------------------------------------------------------

    @property
    def owners(self) -> Indices:
        """By row of a frame: the row of the outer frame that it lies in."""
        assert self._owners is not None, "an item lies in nothing"
        return self._owners

    def inside(self, frame: int) -> FrameEvaluation:
        """The rows of a repeated part inside these rows, also through other repeated parts."""
        assert self._shredded.wanted is not None
        look = self._shredded.wanted.all_parts
        parent = look.parts[frame].parent
        around = look.frames[parent] if parent >= 0 else -1
        if around != self._frame:
            return self.inside(around).inside(frame)
        if frame not in self._inside and isinstance(look, JoinedLook) and frame in look.lookups:
            self._look_up(frame, look.lookups[frame])
        if frame not in self._inside:
            rows, first = self._shredded.frame(frame), self._shredded.first if self._frame < 0 else 0
            if self._picks is None:
                picks, owners = rows.rows_between(first, first + self.count)
            else:
                picks, owners = rows.rows_in(self._picks + first)
            self._inside[frame] = FrameEvaluation(self._shredded, picks, frame, self, owners)
        return self._inside[frame]

    def _look_up(self, frame: int, lookup: RowLookup) -> None:
        """Look up the rows of a table for these rows."""
        assert self._shredded.wanted is not None
        sought = None if lookup.sought is None else self.value(lookup.sought)
        items, around = self._owners, self._around
        while items is not None and around is not None and around._owners is not None:
            items, around = around._owners.take(items), around._around
        found = lookup.find(sought, [self.value(each) for each in lookup.measured], self.count, items)
        view = lookup.view(self._shredded.wanted)
        self._inside[frame] = FrameEvaluation(view, found.picks, frame, self, found.owners)
        self._doubtful[frame] = found.doubtful

    def doubtful(self, frame: int) -> Flags:
        """The rows whose lookup is left to the law."""
        self.inside(frame)
        return self._doubtful[frame]

    def _some(self, chosen: Indices) -> FrameEvaluation:
        """Some of the rows of a frame, in this order, with the same outer rows."""
        assert self._owners is not None
        picks = chosen if self._picks is None else self._picks[chosen]
        found = FrameEvaluation(self._shredded, picks, self._frame, self._around, self._owners[chosen])
        whole, rows = self._whole or (self, np.arange(self.count))
        found._whole = whole, rows[chosen]
        return found

    def _owners_of(self, inside: FrameEvaluation) -> Indices:
        """By row of an inner frame: the row here that it lies in."""
        owners, around = inside.owners, inside._around
        while around is not self:
            assert around is not None, "it lies inside"
            owners, around = around.owners.take(owners), around._around
        return owners

    def _source_rows(self, source: RowSource, reads: Container[str]) -> SourceRows:
        rows = self if source.frame == self._frame else self.inside(source.frame)
        owners = np.arange(self.count) if rows is self else self._owners_of(rows)
        value = None if source.value is None else rows.value(source.value)
        numbers = doubles_of(value) if value is not None and "doubles" in reads else None
        found = SourceRows(owners, None if source.condition is None else rows.truth(source.condition), value, numbers)
        if not source.order:
            return found
        return found.sorted_by([(rows.value(each.value), each.descending) for each in source.order])

    def _rows_in(self, frame: int, condition: Expression | None) -> tuple[SourceRows, int]:
        """The rows for which a condition holds, by their row of an outer frame, and the number of its rows."""
        outer = self._around
        while outer is not None and outer._frame != frame:
            outer = outer._around
        assert outer is not None, "these rows lie in something"
        verdicts = None if condition is None else self.truth(condition)
        return SourceRows(outer._owners_of(self), verdicts, None, None), outer.count

    def _by_owner(self, inside: FrameEvaluation, verdicts: NDArray[np.uint8], *, greatest: bool) -> NDArray[np.uint8]:
        """The greatest of the outcomes of the rows inside of each row, or the least."""
        found = np.full(self.count, NO if greatest else YES, np.uint8)
        bounds = self._bounds(inside)
        filled = np.flatnonzero(bounds[1:] > bounds[:-1])
        if len(filled):
            by = np.maximum if greatest else np.minimum
            found[filled] = by.reduceat(verdicts, bounds[filled])
        return found

    def _bounds(self, inside: FrameEvaluation) -> Indices:
        """By row: the first row inside it; then the number of all. Inner rows are in the order of their owners."""
        return np.concatenate([[0], np.cumsum(np.bincount(self._owners_of(inside), minlength=self.count))])

    def _quantified(self, inside: FrameEvaluation, is_some: bool, condition: Expression) -> NDArray[np.uint8]:
        return self._by_owner(inside, inside.truth(condition), greatest=is_some)

    def _extreme(self, inside: FrameEvaluation, is_greatest: bool, operand: Expression) -> ColumnValue:
        numbers, state = exact_numbers(inside.value(operand))
        bounds = self._bounds(inside)
        some = np.flatnonzero(bounds[1:] > bounds[:-1])
        edge, by = (-np.inf, np.maximum) if is_greatest else (np.inf, np.minimum)
        found, states = np.full(self.count, edge), np.full(self.count, ABSENT, np.uint8)
        if len(some):
            there = np.ones(inside.count, np.bool_) if state is None else state == CLEAR
            found[some] = by.reduceat(np.where(there, numbers, edge), bounds[some])
            states[some[np.logical_or.reduceat(there, bounds[some])]] = CLEAR
        if state is not None:
            states[self._owners_of(inside)[state == UNCLEAR]] = UNCLEAR
        return ColumnValue(Kind.DOUBLE, states, found)

    def _looped(self, inside: FrameEvaluation, loop: RowLoop) -> ColumnValue:
        unclear = np.zeros(self.count, np.bool_)
        if loop.condition is not None:
            verdicts = inside.truth(loop.condition)
            unclear[self._owners_of(inside)[verdicts == UNCLEAR_VERDICT]] = True
            inside = inside._some(np.flatnonzero(verdicts == YES))
        if loop.order:
            keys = [(inside.value(each.value), each.descending) for each in loop.order]
            order, doubtful = ordered(keys, self._owners_of(inside))
            unclear[self._owners_of(inside)[doubtful]] = True
            inside = inside._some(order)
        found = inside.value(loop.content)
        assert found.texts is not None
        if found.state is not None:
            unclear[self._owners_of(inside)[found.state == UNCLEAR]] = True
        joined, _ = texts.concat([found.texts]) if len(found.texts.starts) != inside.count else (found.texts, None)
        spans = spans_of_owners(joined, self._bounds(inside))
        return ColumnValue(Kind.CONTENT, state_of(unclear, UNCLEAR), texts=spans)

    # --- content ------------------------------------------------------------------------------------------

    def _content(self, fragments: Sequence[Fragment]) -> ColumnValue:
        """Fragments one behind the other; the texts of all rows lie one behind the other, too."""
        columns: list[TextColumn] = []
        unclear: States | None = None
        for each in fragments:
            found, state = self.fragment(each)
            columns += found
            unclear = worst(unclear, state)
        made, full = texts.concat([TextColumn.of(b"").repeated(self.count), *columns])
        return ColumnValue(Kind.CONTENT, worst(unclear, state_of(full, UNCLEAR)), texts=made)

    def _in_order(self, columns: Sequence[PartColumn]) -> ColumnValue:
        """The contents of some columns, of this frame or inner ones, in document order."""
        unclear = np.zeros(self.count, np.bool_)
        owners, spans = [], []
        for column in columns:
            frame = self._frame_of(column)
            rows = self if frame == self._frame else self.inside(frame)
            mine = np.arange(self.count) if rows is self else self._owners_of(rows)
            row = rows._row(column)
            starts, ends = rows._taken(rows._rows.starts[row]), rows._taken(rows._rows.ends[row])
            unclear[mine[starts == kernels.UNCLEAR]] = True
            there = starts >= 0
            owners.append(mine[there])
            spans.append(TextColumn(rows._shredded.data, starts[there], ends[there]))
        owner = np.concatenate(owners)
        starts, ends = (np.concatenate([each[side] for each in spans]) for side in (1, 2))
        order = np.lexsort((starts, owner))
        made, full = texts.concat([TextColumn(spans[0].data, starts[order], ends[order])])
        unclear[owner[order][np.broadcast_to(full, len(order))]] = True
        bounds = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=self.count))])
        return ColumnValue(Kind.CONTENT, state_of(unclear, UNCLEAR), texts=spans_of_owners(made, bounds))

    def fragment(self, fragment: Fragment) -> tuple[list[TextColumn], States | None]:
        """The texts of a fragment, and where they are unclear; what is absent is an empty text."""
        match fragment:
            case bytes():
                return [TextColumn.of(fragment)], None
            case Taken(column) if self._stands_around(column):
                assert self._around is not None
                assert self._owners is not None
                found, state = self._around.fragment(fragment)
                taken = None if state is None else state.take(self._owners)
                return [each.take(self._owners) for each in found], taken
            case Taken(column):
                span = self._span(column)
                assert span.texts is not None
                return with_front(span.texts, fragment), only_unclear(span.state)
            case Made(expression):
                value = spelled(self.value(expression), self.count)
                assert value.texts is not None
                return [value.texts], only_unclear(value.state)
            case Wrapped(content, end_tag):
                inside = self._content(content)
                assert inside.texts is not None
                filled = (inside.texts.ends > inside.texts.starts).astype(np.int32)
                tags = TextColumn.of(b"/>", b">", b"", end_tag)
                opening = tags.take(filled)
                closing = tags.take(2 + filled)
                return [opening, inside.texts, closing], inside.state
