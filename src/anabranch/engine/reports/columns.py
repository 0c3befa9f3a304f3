"""Whether a query will be answered in columns, for `explain`.

Queries are compiled for the look of items, which a run learns from them.
Here it is taken from the schema of the stream, or from its first items where there are any, or else from the paths of
the query (`assumed_look.py`), and the report says which.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import islice

from anabranch.branch.panes.plan import PanePlan, pane_plan
from anabranch.columnar.expressions.spots import NotColumnar
from anabranch.columnar.items.growing_look import SAMPLE
from anabranch.columnar.items.query import compile_for, compile_query, reference_column, single_spot
from anabranch.columnar.panes.query import compile_panes
from anabranch.columnar.scan.look import MOST_PARTS, Look, LookPart
from anabranch.columnar.scan.template import scope_of
from anabranch.columnar.tables.joined_look import TableParts
from anabranch.columnar.tables.table_columns import DocumentTables
from anabranch.engine.reports.assumed_look import assumed_document, assumed_look
from anabranch.errors import AnabranchError, DynamicError
from anabranch.language import ast
from anabranch.language.printer import print_expression
from anabranch.language.rewrite import with_expanded_names
from anabranch.law.calls import PythonFunction
from anabranch.runtime.standing import Standing, standing
from anabranch.sharing.explain.text import ColumnsVerdict
from anabranch.stream.elements import Item
from anabranch.stream.limits import Limits
from anabranch.stream.reading.source import Contents, Source
from anabranch.stream.schema import Part, Schema
from anabranch.stream.serialize import serialize

_LONGEST = 80
"""The most characters of an expression that are shown."""


@dataclass(frozen=True, slots=True)
class SupposedLook:
    """The assumed look of items, their root, and the reason."""

    root: str
    look: Look
    why: str
    """Continues "if items look ..."."""

    @staticmethod
    def declared(schema: Schema) -> SupposedLook | None:
        """The look that a schema declares; None where that is recursive, or too large."""
        parts: list[LookPart] = []

        def add(part: Part, parent: int, above: frozenset[str]) -> None:
            if len(parts) > MOST_PARTS:
                return
            number, declaration = len(parts), schema.declaration(part)
            parts.append(LookPart(part.name, parent, not declaration.children, part.optional, part.repeated))
            for name in declaration.attributes:
                parts.append(LookPart(f"@{name}", number, True, True))
            for child in declaration.children.values():
                if child.declared not in above:
                    add(child, number, above | {child.declared})

        for item in schema.items:
            found = schema.child(item)
            assert found is not None, "it is declared"
            add(Part(found.name, found.declared, optional=True, repeated=False), -1, frozenset({found.declared}))
        if len(parts) > MOST_PARTS or any(":" in part.name for part in parts):  # the meaning of prefixes is unknown
            return None
        return SupposedLook(schema.root, Look(tuple(parts)), "as the schema declares")

    @staticmethod
    def sampled(source: Source) -> SupposedLook | None:
        """The look of the first items of a stream; None where there are none, or they have no common look."""
        try:
            contents = Contents(source, Limits())
            trees = list(islice((each.tree for each in contents if isinstance(each, Item)), SAMPLE))
            root = contents.root
        except AnabranchError:
            return None
        scope = scope_of(root)
        if not trees or (scope and contents.format != "document"):
            return None
        items = [(serialize(each).encode(), each) for each in trees]
        look = Look.learn(items, is_json=contents.format == "json", scope=scope)
        many = f"the first {len(trees)} do" if len(trees) > 1 else "the first one does"
        return None if look is None else SupposedLook(root.name.expanded, look, f"as {many}")

    @staticmethod
    def of(source: Source | None, schema: Schema | None) -> SupposedLook | None:
        """The known look of a stream: its first items show more than its schema, which leaves much open."""
        found = SupposedLook.sampled(source) if source is not None else None
        return found or (SupposedLook.declared(schema) if schema is not None else None)


def columns_verdict(
    checked: ast.Query, text: str, known: Mapping[str, SupposedLook], functions: Mapping[str, PythonFunction]
) -> ColumnsVerdict | None:
    """Whether a query is answered in columns; None for one that waits for the end of its streams, or fails anyway.

    `text` is the source that it was parsed from, `known` the looks of its streams.
    """
    try:
        query = standing(checked, functions, text)
    except DynamicError:
        return None
    if query.kind == "whole" or not query.streams:
        return None
    hole = query.expanded_hole if query.kind == "items" else query.plain_hole
    if hole is None or (query.documents and query.kind != "items"):
        what = "a document beside the stream" if query.documents else "namespaces around the results"
        return ColumnsVerdict(_DOES[query.kind], None, what)
    looks = {name: known.get(name) or assumed(query, name) for name in query.streams}
    why = " and ".join(dict.fromkeys(each.why for each in looks.values()))
    panes = pane_plan(query, Fraction(0), Fraction(0), functions)
    does = _DOES[query.kind]
    if panes is not None:
        does = f"{'sessions' if panes.query.is_session else 'windows'} are counted by panes"
    match query.kind:
        case "items":
            (only,) = looks.values()
            tables = {name: DocumentTables(partial(assumed_document, hole, name)) for name in query.documents}
            why = f"{why}, and documents as the query asks" if tables else why
            parts = TableParts(only.look, tables)
            found = compile_query(hole, only.root, only.look, namespaces=query.scope, tables=parts, at_top=query.at_top)
            reason = found if isinstance(found, NotColumnar) else None
        case _:
            reason = next(_refused(query, panes, looks), None)
    if reason is None:
        return ColumnsVerdict(does, why)
    return ColumnsVerdict(does, why, reason.construct, *_place(reason.expression, text), reason.hint)


_DOES = {
    "items": "items are answered",
    "windows": "windows are filled",
    "step join": "items reach the join",
    "interval join": "items reach the join",
    "keyed join": "items reach the join",
}


def _refused(query: Standing, plan: PanePlan | None, looks: Mapping[str, SupposedLook]) -> Iterator[NotColumnar]:
    """The constructs that do not compile in the loops of a query with windows, which may be counted by panes."""
    if query.kind == "keyed join":
        yield NotColumnar("a join by keys", "an interval between the times of the streams, if there is one")
    for clause, name in zip(query.fors, query.streams, strict=False):
        if isinstance(clause.window, ast.SessionWindow) and plan is None:
            yield NotColumnar("sessions that are seen through more than aggregates, their bounds and their key")
            continue
        root, look = looks[name].root, looks[name].look
        reason = NotColumnar("a root with namespaces") if look.scope else _entering(clause, root, look)
        if reason is not None:
            yield reason
        elif plan is not None and compile_panes(plan.query, root, look) is None:
            yield NotColumnar("what the windows aggregate")
        elif plan is None and compile_for(clause, root, look, None) is None:
            yield NotColumnar("a loop over such windows")


def _entering(clause: ast.For, root: str, look: Look) -> NotColumnar | None:
    """The construct that does not compile in the selection of items for windows."""
    looked_at = clause.source
    try:
        _, spot = single_spot(clause.source, root, look)
        if spot is not None and isinstance(clause.window, ast.TimeWindow | ast.SessionWindow):
            looked_at = clause.window.reference
            reference_column(clause.window, root, spot)
    except NotColumnar as reason:
        return reason.blame(looked_at)
    return None


def assumed(query: Standing, stream: str) -> SupposedLook:
    """The look that the paths of a query suggest."""
    root, look = assumed_look(with_expanded_names(query.query.body, query.env.namespaces), stream)
    return SupposedLook(root, look, "as the query's paths suggest")


def _place(expression: ast.Expression | None, text: str) -> tuple[str | None, int | None, int | None]:
    """An expression as written, with its line and column; as printed where its place is not known."""
    if expression is None:
        return None, None, None
    span = expression.span
    written = text[span.start : span.end]
    shown = " ".join((written or print_expression(expression)).split())
    shown = shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 3]}..."
    if not written:
        return shown, None, None
    return shown, text.count("\n", 0, span.start) + 1, span.start - text.rfind("\n", 0, span.start)
