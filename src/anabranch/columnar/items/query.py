"""A query compiled for columns: a condition on items, and the fragments that the answer to an item is made of.

    for $p in stream("s")/root/item[condition] let ... where condition return result

or such a path alone, with conditions and results that `expressions/compiling.py` compiles.
`return if (condition) then result else ()`, as abstract queries have it, is the same as `where`.
Any other query is answered item by item.

For windows and joins, a single `for` is compiled: whether it selects an item, its reference value, and its time.
Its path leads to items themselves, and the reference of its time window to one value in each.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from anabranch.columnar.expressions.compiling import LookScope, as_fragment
from anabranch.columnar.expressions.objects.results import LineScope
from anabranch.columnar.expressions.rows.folding import MEMBERS_JOINED
from anabranch.columnar.expressions.scope import Binding, LookupTables, NodeBudget
from anabranch.columnar.expressions.spots import NotColumnar, Spot, is_named
from anabranch.columnar.expressions.start_tags import copied, scope_within
from anabranch.columnar.expressions.tree import (
    Choice,
    Column,
    Constant,
    ContentOf,
    Expression,
    Fragment,
    FunctionCall,
    JsonCopy,
    JsonText,
    Made,
    RecordLine,
    RowFold,
    RowLoop,
    Taken,
    Wrapped,
)
from anabranch.columnar.match.condition import (
    ALWAYS,
    NO,
    Condition,
    ItemTest,
    NumberTest,
    PresenceTest,
    Settled,
    columns_of,
    numbers_of,
)
from anabranch.columnar.rewriting import in_usual_forms
from anabranch.columnar.scan.decoded import COPIES_ELEMENTS, COPIES_NOTHING, TAKES_TEXTS
from anabranch.columnar.scan.look import Look, PartColumn
from anabranch.columnar.scan.wanted import WantedColumns
from anabranch.language import ast
from anabranch.language.checks.outputs import may_give_items, may_give_json
from anabranch.logic import Tree
from anabranch.stream.path import Path
from anabranch.stream.serialize import Scope


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """The condition and the fragments of a query, for items of the look that it was compiled for."""

    condition: Condition
    fragments: tuple[Fragment, ...]

    @property
    def numbers(self) -> set[Column]:
        """The columns whose numbers its condition reads."""
        return numbers_of(self.condition)

    @property
    def columns(self) -> set[Column]:
        """All columns that its condition reads."""
        return columns_of(self.condition)


def compile_query(
    hole: ast.Expression,
    root: str,
    look: Look,
    marks: Container[Constant] = (),
    namespaces: Mapping[str, str] = MappingProxyType({}),
    tables: LookupTables | None = None,
    *,
    at_top: bool = True,
) -> CompiledQuery | NotColumnar:
    """Compile the expression of a query for one item, or say why it does not compile.

    `root` is the expanded name of the stream's root; the names of the query are expanded, too (`with_expanded_names`).
    `marks` are literals that stand for others, `namespaces` are declared around the results.
    `tables` are the documents for lookups, for the same look; without them, a query with `doc()` does not compile.
    Results `at_top`, without an element around them, may be JSON (LAWS 7.3).
    """
    try:
        lines = look.is_json and at_top
        work, around = NodeBudget(marks, tables), scope_within(dict(namespaces))
        return _compiled(in_usual_forms(hole), root, look, work, around, lines=lines)
    except NotColumnar as reason:
        return reason.blame(hole)


def refuse_records(looks: Sequence[Look], *results: ast.Expression, clauses: Sequence[ast.For | ast.Let] = ()) -> None:
    """Leave items of JSON that are given as they are to the law: they leave as JSON (LAWS 7.3), and copies are XML."""
    if any(look.is_json for look in looks) and may_give_items(*results, clauses=clauses):
        raise NotColumnar("an item of JSON as it is", 'the keys that are needed, as in { "key": $o.key }')


def _compiled(
    hole: ast.Expression, root: str, look: Look, work: NodeBudget, around: Scope, *, lines: bool
) -> CompiledQuery:
    """Compile; items that are results themselves leave as `lines` of JSON, or as XML."""
    match hole:
        case ast.Flwor((ast.For(variable, source, None), *others), where, (), result):
            conditions, found = source_spots(source, root, look, work=work)
            if not found:
                return CompiledQuery(tuple(conditions), ())
            as_json = lines and may_give_json(hole)
            scope = (LineScope if as_json else LookScope)({variable: only(found)}, work, around=around)
            while others and isinstance(others[0], ast.Let):
                scope, clear = scope.let(others[0].variable, others[0].value)
                if clear is not None:
                    conditions.append(NumberTest(clear, "=", 1.0))
                others = others[1:]
            if others:
                result, where = ast.Flwor(tuple(others), where, (), result), None
            if where is not None:
                conditions.append(scope.condition(where))
            while isinstance(result, ast.If) and result.otherwise == ast.Sequence(()):
                conditions.append(scope.condition(result.condition))
                result = result.then
            bound = scope.names.get(result.name) if isinstance(result, ast.Variable) else None
            given = _line_of(bound) if lines else ()
            if lines and not as_json and not given:
                refuse_records([look], hole)
            return CompiledQuery(tuple(conditions) or ALWAYS, given or joined(scope.result(result)))
        case ast.Path():
            conditions, found = source_spots(hole, root, look, work=work)
            given = _line_of(only(found)) if found and lines else ()
            if found and not given:
                given = (as_fragment(copied(only(found), around)),)
            return CompiledQuery(tuple(conditions) or ALWAYS, given)
        case _:
            raise NotColumnar("a query that is no loop over items")


def _line_of(bound: Binding | None) -> tuple[Fragment, ...]:
    """The fragment of an item of JSON as a line; none where a variable stands for anything else."""
    spot = bound[0] if isinstance(bound, tuple) and len(bound) == 1 else bound
    if not isinstance(spot, Spot) or spot != spot.bare or spot.part not in spot.look.own:
        return ()
    return (Made(RecordLine(spot.whole)),)


def source_spots(
    source: ast.Expression, root: str, look: Look, side: int = 0, work: NodeBudget | None = None
) -> tuple[list[Tree[ItemTest]], list[Spot]]:
    """The conditions in the predicates of a path over a stream, and the spots that the path leads to."""
    match source:
        case ast.Path(ast.Source("stream"), (ast.Step("child", ast.NameTest() as top, (), False), *steps)) if steps:
            pass
        case _:
            raise NotColumnar(
                "a path that does not lead from the root to items by names", "name the root and the items"
            )
    found = [Spot(look, -1, side=side)] if is_named(root, top) else []
    conditions: list[Tree[ItemTest]] = []
    for number, step in enumerate(steps, 1):
        found = [each for parent in found for each in parent.steps(step)]
        if found and (step.tail or number == len(steps)):
            conditions += _there(only(found))
        for predicate in step.tail:
            if not isinstance(predicate, ast.Predicate):
                raise NotColumnar("a step into the past")
            if found:
                scope = LookScope({None: found[0]}, work or NodeBudget())
                conditions.append(scope.predicate_test(predicate.condition))
    return conditions if found else [Settled(NO)], found


def _there(spot: Spot) -> list[Tree[ItemTest]]:
    """The condition that an item has a part; none where it is the only kind of item."""
    return [] if spot.look.own == (spot.part,) else [PresenceTest(spot.presence)]


def only(spots: list[Spot]) -> Spot:
    """The only spot; raises NotColumnar where there is none, or where there are several."""
    if len(spots) != 1 or not spots[0].is_single:
        raise NotColumnar("a path to several parts of an item, or to none")
    return spots[0]


def joined(fragments: Sequence[Fragment]) -> tuple[Fragment, ...]:
    """Fragments in which neighbouring fixed texts are joined."""
    found: list[Fragment] = []
    for each in fragments:
        if isinstance(each, Wrapped):
            each = Wrapped(joined(each.content), each.end_tag)
        if isinstance(each, bytes) and found and isinstance(found[-1], bytes):
            found[-1] += each
        elif each:
            found.append(each)
    return tuple(found)


def copied_by(fragments: Sequence[Fragment]) -> int:
    """What fragments copy of items, which decides what is left to the law for marked items (`scan/decoded.py`)."""
    found = COPIES_NOTHING
    for each in fragments:
        match each:
            case Wrapped(content):
                found = max(found, copied_by(content))
            case Taken(column):
                found = max(found, TAKES_TEXTS if column >= 0 else COPIES_ELEMENTS)
            case Made(ContentOf(content)):
                found = max(found, copied_by(content))
            case Made(made) if _is_json(made):
                pass
            case Made():
                found = TAKES_TEXTS
    return found


def _is_json(made: Expression) -> bool:
    """Whether something is written as JSON: from the bytes that came, or from texts as they are when decoded."""
    match made:
        case RecordLine() | JsonText() | JsonCopy():
            return True
        case Choice(_, then, otherwise):
            return _is_json(then) and _is_json(otherwise)
        case FunctionCall("behind", (_, operand)):
            return _is_json(operand)
        case RowLoop(_, _, content):
            return _is_json(content)
        case RowFold(name, sources):
            return name == MEMBERS_JOINED and all(each.value and _is_json(each.value) for each in sources)
        case ContentOf(fragments):
            return all(
                isinstance(each, bytes) or (isinstance(each, Made) and _is_json(each.expression)) for each in fragments
            )
        case _:
            return False


def made_in(fragments: Sequence[Fragment]) -> list[Made]:
    """The computed fragments, in their order."""
    found: list[Made] = []
    for each in fragments:
        match each:
            case Made():
                found.append(each)
            case Wrapped(content):
                found += made_in(content)
    return found


# --- one `for` -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CompiledFor:
    """The condition of a `for`, and the columns that are read of its items."""

    is_reached: bool
    """Whether its path leads to anything in such items."""
    presence: PartColumn | None
    """The column of the part that the path leads to, if items may lack it; None where all have it."""
    condition: Condition
    reference: PartColumn | None
    """The column of a time window's reference."""
    time: PartColumn | None
    """The column of an item's time, where it has one."""
    wanted: WantedColumns


def compile_for(clause: ast.For, root: str, look: Look, time: Path | None) -> CompiledFor | None:
    """Compile a single `for`; None where it does not compile.

    `root` is the expanded name of the stream's root; `time` is the path to the times of items, where it is declared.
    """
    try:
        conditions, spot = single_spot(clause.source, root, look)
        reference = None
        if spot is not None and isinstance(clause.window, ast.TimeWindow):
            reference = reference_column(clause.window, root, spot)
        moment = time_column(time, look)
    except NotColumnar:
        return None
    condition = tuple(conditions) or ALWAYS
    presence = None if spot is None else spot.presence
    read: set[Column] = {column for column in (reference, moment) if column is not None}
    columns = columns_of(condition) | read | ({presence} if presence is not None else set())
    wanted = WantedColumns.of(look, columns, numbers_of(condition) | read)
    return CompiledFor(spot is not None, presence, condition, reference, moment, wanted)


def single_spot(
    source: ast.Expression, root: str, look: Look, side: int = 0
) -> tuple[list[Tree[ItemTest]], Spot | None]:
    """The conditions of a path over a stream, and the spot that it leads to in each item, if any."""
    conditions, found = source_spots(source, root, look, side)
    return conditions, only(found) if found else None


def time_column(path: Path | None, look: Look) -> PartColumn | None:
    """The column that has the time of each item; None if they have none."""
    if path is None:
        return None
    spots = [Spot(look, part) for part in range(len(look.parts)) if look.path(part)[1:] == path.steps]
    return only(spots).text if spots else None


def reference_column(window: ast.TimeWindow | ast.SessionWindow, root: str, spot: Spot) -> PartColumn:
    """The column at a window's reference."""
    return only(LookScope({None: spot}).spots(below_spot(window.reference, root, spot))).text


def below_spot(path: ast.Path, root: str, spot: Spot) -> ast.Path:
    """The path of a window relative to an element; one from the root loses the steps that lead to the element."""
    if not isinstance(path.start, ast.Root):
        return path
    above = [ast.NameTest(name) for name in (root, *spot.look.expanded_path(spot.part))]
    if [step.test for step in path.steps[: len(above)]] != above:
        raise NotColumnar("a reference outside of items")
    return ast.Path(None, path.steps[len(above) :])
