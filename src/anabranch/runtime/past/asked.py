"""What a query asks of the past of its streams, and how far back: known before anything has arrived."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction

from anabranch.language import ast
from anabranch.language.rewrite import parts
from anabranch.law.arrivals.qualified import Qualified, Wanted, is_path, qualified
from anabranch.law.arrivals.recall import asks
from anabranch.law.paths import base_of
from anabranch.law.slices import below_item


@dataclass(frozen=True, slots=True)
class Asked:
    """A path over a stream whose past a query asks for, and how far back."""

    path: ast.Expression
    stream: str
    qualifiers: tuple[ast.Qualifier, ...]
    alone: bool
    """Whether nothing but an item decides what the path reaches in it, so that it is known when the item arrives."""


def asked_of(query: ast.Query, beside: Collection[str] = ()) -> tuple[Asked, ...] | None:
    """What a query asks of the past of items; None where it is not known beforehand how much it needs.

    The streams `beside` are those of updates.
    """
    # what prefixes mean is known for all of the query, unless a constructor declares some
    declares = any(isinstance(each, ast.ElementConstructor) and each.namespaces for each in parts(query))
    asked: dict[ast.Expression, Asked] = {}
    for part in parts(query):
        each = _innermost(part)
        if each is None:
            continue
        if not is_path(each.base):
            return None
        source = base_of(each.base)
        if not isinstance(source, ast.Source) or source.kind == "doc" or source.name in beside:
            continue  # a part of the item at hand, or of what was chosen already; or no items
        if asks(each.base) or not below_item(each.base):
            return None
        if any(isinstance(inside, ast.Source) and inside.name in beside for inside in parts(each.base)):
            return None
        alone = not declares and not any(isinstance(inside, ast.Variable) for inside in parts(each.base))
        if not alone and Wanted.by(each.qualifier, Fraction(0)).end is not None:
            return None
        before = asked[each.base].qualifiers if each.base in asked else ()
        asked[each.base] = Asked(each.base, source.name, (*before, each.qualifier), alone)
    return tuple(asked.values())


def only_past(query: ast.Query, beside: Collection[str] = ()) -> bool:
    """Whether a query reads streams of items by asking for their past only, so it is corrected with every element."""
    asked = filter(None, map(_innermost, parts(query)))
    known = [base_of(each.base) for each in asked]
    sources = (each for each in parts(query) if isinstance(each, ast.Source) and each.kind == "stream")
    streams = [each for each in sources if each.name not in beside]
    return bool(streams) and all(any(each is source for source in known) for each in streams)


def _innermost(part: object) -> Qualified | None:
    """A path at its first qualifier: the others choose among what that one has given."""
    found = qualified(part) if isinstance(part, ast.Path | ast.Filter) else None
    return found and (_innermost(found.base) or found)
