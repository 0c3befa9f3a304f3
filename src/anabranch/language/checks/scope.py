"""What the checks know of variables and the context item before any data is seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from anabranch.errors import Span
from anabranch.language import ast

Position: TypeAlias = tuple[str, ...]
"""Names from the root element down to a node; the document itself is the empty position."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a value.

    Nodes from an input know it, and their position while it can be told; `missing` is where a path was written that
    the schema lacks; `flowing` says that the value is all of a stream.
    """

    source: ast.Source | None = None
    position: Position | None = None
    missing: Span | None = None
    flowing: bool = False
    numeric: bool = False


UNKNOWN = Known()


@dataclass(frozen=True, slots=True)
class Scope:
    """What names mean at a place, and what the place asks for."""

    variables: Mapping[str, Known] = field(default_factory=dict)
    context: Known | None = None
    prefixes: Mapping[str, str] = field(default_factory=dict)
    """The namespaces that are declared."""
    in_round: bool = False
    """Inside the round of a stream's `for`, where no other stream may be read."""
    condition: bool = False
    """Inside a condition, where a path that the schema lacks is an error."""

    def bind(self, name: str, known: Known) -> Scope:
        return replace(self, variables={**self.variables, name: known})

    def within(self, context: Known) -> Scope:
        """Inside a predicate on nodes of which `context` is known."""
        return replace(self, context=context, condition=True, in_round=self.in_round or context.source is not None)

    def asking(self) -> Scope:
        return replace(self, condition=True)

    def remembered(self) -> Scope:
        """Under a temporal qualifier, where another stream may be read: its past is bounded."""
        return replace(self, in_round=False)

    def round(self) -> Scope:
        return replace(self, in_round=True)

    @property
    def flowing(self) -> frozenset[str]:
        return frozenset(name for name, known in self.variables.items() if known.flowing)
