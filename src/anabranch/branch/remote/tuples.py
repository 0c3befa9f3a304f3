"""Tuples that travel between trunks: which joins may be made elsewhere than where they are answered.

A tuple is one element (figure 15 of the sharing paper): in it one for each of its items, with all that anybody behind
needs of it.
It is made by the abstract query of the join, a join like any other, and read by the subscriber's own query, whose loops
run over the items inside; so the order of LAWS 1.2, windows, what is late, and who begins late are the business of the
peer that makes the tuples, and `where` and `return` that of the one that answers.
Tuples have no times and tell no progress: whoever reads them remembers nothing.

That is exact where

* the query answers tuple by tuple, and so does what is left of it over tuples;
* the abstract query joins as early: one that compares times is not to wait for the end of its streams, and wherever
  its condition cannot be told, the tuple is sent (`asking.py`), for it to fail where it is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from anabranch.branch.joins.interval import bounds_of
from anabranch.errors import AnabranchError
from anabranch.language import ast, check, parse
from anabranch.runtime.standing import Standing, standing
from anabranch.sharing.forest import PropertyForest
from anabranch.sharing.loops import over_tuples
from anabranch.sharing.render import render_join
from anabranch.stream.path import Path

_JOINS = ("step join", "interval join")


def why_not_sent(query: ast.Query, forest: PropertyForest) -> str | None:
    """Why the tuples of a checked join cannot be sent in the form of a forest; None where they can."""
    try:
        asked, made = standing(query), _abstract(forest)
        left = standing(over_tuples(query, forest, "tuples"))
    except AnabranchError as error:
        return f"its tuples cannot be written down ({error.message})"
    if asked.kind not in _JOINS:
        return "it has to wait for the end of its streams"
    if made.kind != asked.kind or left.kind != "items":
        return "its tuples cannot be written down"
    return None


def waits(query: ast.Query, forest: PropertyForest, times: Mapping[str, Path | None]) -> bool:
    """Whether a join has to wait for the end of streams whose items have these times."""
    joins = (standing(query), _abstract(forest))
    return any(each.kind == "interval join" and not bounds_of(each, times, endless=True) for each in joins)


@lru_cache(maxsize=1 << 10)
def _abstract(forest: PropertyForest) -> Standing:
    text = render_join(forest)
    return standing(check(parse(text), text).query, None, text)
