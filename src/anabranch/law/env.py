"""What names mean at a place in a query."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from anabranch.language import ast
from anabranch.stream.tree import XML_NAMESPACE
from anabranch.values.sequences import Value, Values

_PREDECLARED = {
    "xml": XML_NAMESPACE,
    "local": "http://www.w3.org/2005/xquery-local-functions",
    "fn": "http://www.w3.org/2005/xpath-functions",
    "xs": "http://www.w3.org/2001/XMLSchema",
}


@dataclass(frozen=True, slots=True)
class Env:
    """Variables, the context item, and namespace prefixes; binding gives a new environment."""

    variables: Mapping[str, Values] = field(default_factory=dict)
    context: Value | None = None
    namespaces: Mapping[str, str] = field(default_factory=dict)
    flowing: frozenset[str] = frozenset()
    """The variables that a `let` bound to what flows."""
    position: int | None = None
    """Where the context item stands among those that a predicate looks at, counted from 1."""
    last: int | None = None
    """The number of these items."""
    found: Mapping[str, Callable[[], Values]] = field(default_factory=dict)
    """Variables whose values are found when they are asked for, which may raise `DynamicError`."""

    @staticmethod
    def of(query: ast.Query) -> Env:
        """What names mean at the top of a query."""
        return Env(namespaces={**_PREDECLARED, **dict(query.namespaces)})

    def bind(self, name: str, values: Values, flowing: bool = False) -> Env:
        """This environment with one more variable."""
        names = self.flowing | {name} if flowing else self.flowing - {name}
        return replace(self, variables={**self.variables, name: values}, flowing=names)

    def at(self, item: Value, position: int | None = None, last: int | None = None) -> Env:
        """This environment with another context item, and its position where a predicate may ask for it."""
        return replace(self, context=item, position=position, last=last)
