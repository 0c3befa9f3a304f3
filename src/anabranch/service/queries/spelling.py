"""One query in another spelling: XQuery with paths, with dots, or SQL.

A spelling is *exact* if the new text is read into the tree of the old one, checked and with variables of any name: that
is compared here, whoever made the text.
Where a query has no such spelling it is refused; only between paths and dots a spelling that is nearly the same is
given, and called so (`dots.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from anabranch.branch.family import twin_of
from anabranch.engine.inputs import Inputs
from anabranch.errors import AnabranchError, Span, Unsupported
from anabranch.language import ast, print_query
from anabranch.language.objects import POSTFIX
from anabranch.language.printer import print_expression
from anabranch.language.rewrite import parts
from anabranch.service.queries.dots import with_dots, with_paths
from anabranch.service.queries.sql_spelling import sql_of
from anabranch.sql import Language, read_query
from anabranch.sql.reading import is_sql

SpellingName: TypeAlias = Literal["xquery", "dots", "sql"]


@dataclass(frozen=True, slots=True)
class QuerySpelling:
    """A query as it may be written, too."""

    query: str
    exact: bool


def spelled(text: str, language: Language | None, to: SpellingName, inputs: Inputs) -> QuerySpelling:
    """A query in another spelling; raises where it is wrong, or cannot be written so."""
    documents = tuple(inputs.documents or ())
    query = read_query(text, language=language, documents=documents)
    before = twin_of(inputs.check(text, "query", language).query)
    from_sql = is_sql(text, language)
    if to == "sql":
        if from_sql:
            return QuerySpelling(text, exact=True)
        found = sql_of(query, text)
        if _read_back(found, "sql", inputs) != before:
            message = "no query in SQL asks just the same"
            raise Unsupported(
                message, text=text, span=Span(0, len(text)), hint="SQL takes NULL into account everywhere"
            )
        return QuerySpelling(found, exact=True)
    turned = query if from_sql else _turned(query, text, to, inputs)
    found = text if turned == query and not from_sql else laid_out(turned)
    return QuerySpelling(found, exact=_read_back(found, "xquery", inputs) == before)


def _turned(query: ast.Query, text: str, to: SpellingName, inputs: Inputs) -> ast.Query:
    json = inputs.json_items()
    if to == "dots":
        streams = [each for each in parts(query) if isinstance(each, ast.Source) and each.kind == "stream"]
        for each in streams:
            if each.name not in json:
                message = f"'{each.name}' is no stream of JSON, whose items dots look into"
                raise Unsupported(message, text=text, span=each.span)
        return with_dots(query, text, json)
    if any(isinstance(each, ast.Call) and each.name in POSTFIX for each in parts(query)):
        return with_paths(query, text, json)
    return query


def _read_back(text: str, language: Language, inputs: Inputs) -> str | None:
    """What tells a text from all that ask something else; None where it is not even a query."""
    try:
        return twin_of(inputs.check(text, "query", language).query)
    except AnabranchError:
        return None


def laid_out(query: ast.Query) -> str:
    """A query as text, with each clause of its outer loop on a line."""
    written = print_query(query)
    clauses = _clauses(query.body)
    if not clauses or len(written) < _SHORT:
        return written
    prolog = written.removesuffix(print_expression(query.body))
    return prolog + "\n".join(clauses)


_SHORT = 60


def _clauses(body: ast.Expression) -> list[str]:
    """The clauses of a loop, as its own printed text has them one after the other; none where it is no loop."""
    if not isinstance(body, ast.Flwor | ast.Pipeline):
        return []
    found, result = _split(body), f"return {print_expression(body.result)}"
    return [*found, result] if " ".join((*found, result)) == print_expression(body) else []


def _split(body: ast.Flwor | ast.Pipeline) -> list[str]:
    """The text of each clause: that of a loop with this clause alone, without its result."""
    clauses: list[ast.Clause] = list(body.clauses)
    if isinstance(body, ast.Flwor):
        clauses += [] if body.where is None else [ast.Where(body.where)]
        clauses += [ast.OrderBy(body.order)] if body.order else []
    nothing = ast.Sequence(())
    return [print_expression(ast.Pipeline((each,), nothing)).removesuffix(" return ()") for each in clauses]
