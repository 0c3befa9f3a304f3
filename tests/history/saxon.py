"""Saxon as the judge of history: queries with their qualifiers compiled away, over annotated documents.

What is plain XQuery is written by `oracle.translate`; here every step goes through the functions of `lives.xq`, because
the children of an annotated element are wrappers, and every value that leaves a path is a plain copy.
Errors are not judged here (their units are tested by hand), so the queries must not raise any.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cache
from pathlib import Path as File

from saxonche import PySaxonProcessor

from anabranch.language import ast
from oracle.saxon import canonical
from oracle.translate import LAWS, Translation, order, string, test

VALUES = LAWS.partition("(: --- partitions")[0]  # windows and joins are not needed, and take Saxon its time
LIVES = (File(__file__).parent / "lives.xq").read_text(encoding="utf-8")
NAMESPACES = {
    "o": "urn:anabranch:oracle",
    "h": "urn:anabranch:history",
    "v": "urn:life",
    "map": "http://www.w3.org/2005/xpath-functions/map",
    "array": "http://www.w3.org/2005/xpath-functions/array",
}


@cache
def _processor() -> PySaxonProcessor:
    return PySaxonProcessor(license=False)


def judge(query: ast.Query, now: Decimal, documents: Mapping[str, Mapping[Decimal | None, str]]) -> str:
    """The canonical answer at a time; `documents` are annotated, by stream, and by the time until which, None for all.

    A time in the past is needed for each `(e)?t`: see `moments`.
    """
    saxon = _processor().new_xquery_processor()
    names: list[str] = []
    for stream, versions in documents.items():
        for until, text in versions.items():
            names.append(_variable(stream, until))
            saxon.set_parameter(names[-1], _processor().parse_xml(xml_text=text))
    body = HistoryTranslation({}, {}, now).expression(query.body)
    prolog = [
        'xquery version "3.1";',
        "declare boundary-space preserve;",
        *(f"declare namespace {prefix} = {string(uri)};" for prefix, uri in NAMESPACES.items()),
        *(f"declare variable ${name} external;" for name in names),
    ]
    answer = f'element {{ QName("", "answer") }} {{ h:plain({body}) }}'
    saxon.set_query_content("\n".join((*prolog, VALUES, LIVES, answer)))
    return canonical(saxon.run_query_to_string(), wrapped=True)


def moments(query: ast.Query, now: Decimal) -> set[Decimal]:
    """The times of the documents that a query needs beside the current one."""
    translation = HistoryTranslation({}, {}, now)
    translation.expression(query.body)
    return translation.pasts


def _variable(stream: str, until: Decimal | None) -> str:
    suffix = "" if until is None else f".at.{until}".replace("-", "minus")
    return f"input.{stream}{suffix}"


@dataclass(frozen=True)
class HistoryTranslation(Translation):
    now: Decimal
    until: Decimal | None = None
    pasts: set[Decimal] = field(default_factory=set)

    def expression(self, expression: ast.Expression) -> str:
        match expression:
            case ast.Source(_, name):
                return f"${_variable(name, self.until)}"
            case ast.Filter(base, tail):
                return self.filter(base, tail)
            case ast.Arithmetic(first, rest):
                operands = "".join(f" {op} {self.plain(each)}" for op, each in rest)
                return f"({self.plain(first)}{operands})"
            case ast.Negation(operand):
                return f"(-{self.plain(operand)})"
            case _:
                return super().expression(expression)

    def plain(self, expression: ast.Expression) -> str:
        return f"h:plain({self.expression(expression)})"

    def operand(self, expression: ast.Expression) -> str:
        literal = isinstance(expression, ast.Number | ast.Negation)
        return super().operand(expression) if literal else self.plain(expression)

    def argument(self, expression: ast.Expression) -> str:
        return self.plain(expression)

    def content(self, part: ast.Content) -> str:
        return f"{{ {self.plain(part.value)} }}" if isinstance(part, ast.Enclosed) else super().content(part)

    # --- paths --------------------------------------------------------------------------------------------

    def path(self, start: ast.Expression | None, steps: tuple[ast.Step, ...]) -> str:
        text = "." if start is None else self.expression(start)
        for step in steps:
            text = self.taken(text, step)
        return f"({text})"

    def taken(self, before: str, step: ast.Step) -> str:
        """A step from the nodes that an expression gives; `/` sorts them."""
        places = [place for place, each in enumerate(step.tail) if isinstance(each, ast.Qualifier)]
        hosts = f"{before}/h:here(.)" if step.deep else before
        if not places or step.axis not in ("child", "descendant"):
            reached = f"({hosts}/{self.along(step.axis)}[self::{test(step.test)}])"
            if step.axis == "attribute":
                reached = f"({hosts}/h:attribute(.)[{self.attribute(step.test)}])"
            if not places:
                return f"{reached}{self.tail(step.tail)}"
            (place,) = places
            same = f"h:same({reached}, {self.gives(step.tail[place])})"
            return f"({same}{self.tail(step.tail[:place])}{self.tail(step.tail[place + 1 :])}/.)"
        (place,) = places
        deep = step.deep or step.axis == "descendant"
        hosts = f"({before}/h:here(.))" if deep else f"({before})"
        fits = f"function($n) {{ exists($n[self::{test(step.test)}]{self.tail(step.tail[:place])}) }}"
        found = f"h:qualified({hosts}, {str(deep).lower()}(), {fits}, {self.gives(step.tail[place])})"
        return f"({found}{self.tail(step.tail[place + 1 :])})"

    def along(self, axis: str) -> str:
        return {
            "child": "h:child(.)",
            "descendant": "h:below(.)",
            "descendant-or-self": "h:here(.)",
            "self": ".",
            "parent": "h:parent(.)",
            "attribute": "h:attribute(.)",
        }[axis]

    def attribute(self, test: ast.NameTest | ast.KindTest) -> str:
        return "true()" if not isinstance(test, ast.NameTest) or test.local == "*" else f"name() = '{test.local}'"

    def gives(self, qualifier: ast.Tail) -> str:
        assert isinstance(qualifier, ast.Qualifier)
        window = f"{str(qualifier.window).lower()}()"
        return f'function($n) {{ h:gives($n, "{qualifier.kind}", {window}, {qualifier.amount.text}, {self.now}) }}'

    def filter(self, base: ast.Expression, tail: tuple[ast.Tail, ...]) -> str:
        places = [place for place, each in enumerate(tail) if isinstance(each, ast.Qualifier)]
        if not places:
            return f"({self.expression(base)}){self.tail(tail)}"
        (place,) = places
        qualifier = tail[place]
        assert isinstance(qualifier, ast.Qualifier)
        after = self.tail(tail[place + 1 :])
        match base:
            case ast.Path(start, (*steps, last)) if not any(isinstance(each, ast.Qualifier) for each in last.tail):
                behind = replace(last, tail=(*last.tail, *tail[: place + 1]))
                return f"{self.path(start, (*steps, behind))}{after}"
            case ast.Path() | ast.Variable() | ast.ContextItem():
                return f"(h:same({self.expression(base)}, {self.gives(qualifier)}){self.tail(tail[:place])}{after}/.)"
            case _:
                then = self.now - Decimal(qualifier.amount.text)
                self.pasts.add(then)
                past = HistoryTranslation(self.times, self.partitions, then, then, self.pasts)
                return f"({past.expression(base)}{past.tail(tail[:place])}{after})"

    # --- FLWR ---------------------------------------------------------------------------------------------

    def pipeline_clause(self, clause: ast.Clause, of_items: bool) -> str:
        """A clause; a stream is a document here."""
        match clause:
            case ast.For(variable, source, None):
                return f"for ${variable} in {self.expression(source)}"
            case _:
                return super().pipeline_clause(clause, of_items)

    def flwor(self, flwor: ast.Flwor) -> str:
        clauses = [
            f"for ${each.variable} in {self.expression(each.source)}"
            if isinstance(each, ast.For)
            else f"let ${each.variable} := {self.expression(each.value)}"
            for each in flwor.clauses
        ]
        if flwor.where is not None:
            clauses.append(f"where {self.condition(flwor.where)}")
        keys = "".join(f"zero-or-one(data({self.plain(each.key)})), " for each in flwor.order)
        tuples = f"{' '.join(clauses)} return [{keys}{self.expression(flwor.result)}]"
        return f"for $o:tuple in ({tuples}) {order(flwor.order)} return $o:tuple?{len(flwor.order) + 1}"
