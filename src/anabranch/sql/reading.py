"""A query in whichever language it is written: the one door through which text of users becomes a tree.

A file whose name ends in `.sql` is SQL; elsewhere whoever runs a query may say what it is.
Where nobody does, a text that begins with SELECT or WITH, and that XQuery cannot read, is SQL: both words may be names
of elements, but no query in SQL is also one in XQuery, for two names never stand side by side there as in `FROM s`.

What parses SQL is loaded with the first such query.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Literal, TypeAlias

from anabranch.errors import QueryError
from anabranch.language import ast, parse, print_query
from anabranch.storage import Where

Language: TypeAlias = Literal["xquery", "sql"]
LANGUAGES: tuple[Language, ...] = ("xquery", "sql")

_BEGINS_SQL = re.compile(r"(?>(?:\s|--[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/|\()*)(?:SELECT|WITH)\s", re.IGNORECASE)
"""Behind blanks, comments and parentheses, which are never read twice."""
_BETWEEN_OPERANDS = "and|or|div|idiv|mod|to|union|intersect|except|instance|treat|castable|cast|eq|ne|lt|le|gt|ge|is"
_TWO_NAMES = re.compile(rf"\s*(?!(?:{_BETWEEN_OPERANDS})\b)[A-Za-z_]")
"""A name behind another, which XQuery does not have where it is no operator."""


def language_of_file(file: Where, given: Language | None = None) -> Language | None:
    """The language of a query in a file: as given, or by its name; None where its text tells."""
    return given or ("sql" if str(file).lower().endswith(".sql") else None)


def is_sql(text: str, language: Language | None = None) -> bool:
    """Whether a text is SQL: as given, or by its writing."""
    begins = _BEGINS_SQL.match(text) if language is None else None
    if begins is None:
        return language == "sql"
    if _TWO_NAMES.match(text, begins.end()):
        return True
    try:
        parse(text)
    except QueryError:
        return True
    return False


def in_xquery(text: str, file: Where, documents: Collection[str] = ()) -> str:
    """The text of a file with a query; SQL as its twin in XQuery."""
    language = language_of_file(file)
    if not is_sql(text, language):
        return text
    return print_query(read_query(text, str(file), language=language, documents=documents))


def read_query(
    text: str, name: str | None = None, *, language: Language | None = None, documents: Collection[str] = ()
) -> ast.Query:
    """Read a query; `name` (a file's, say) is shown in errors. Raises `QueryError` with the place.

    `documents` are the names that SQL takes for tables instead of streams.
    """
    if not is_sql(text, language):
        return parse(text, name)
    from anabranch.sql.queries import parse_sql

    return parse_sql(text, name, documents)
