"""Windows over what a loop gives: a query in two, of which the second reads the results of the first.

`for $w in (for $x in ..., $y in ... where $x/k = $y/k return <m>...</m>)|ts diff 60| ...` has windows over the results
of a join, in the order in which they come; they are items of a stream without a name (LAWS 3.13).
The inner query is the loop by itself, and the outer one reads that stream in its place; so both are queries of kinds
that there are, and accents go from one to the other as from an answer to who reads it as a stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from anabranch.errors import AnabranchError
from anabranch.language import ast
from anabranch.language.checks.check import check
from anabranch.language.checks.unbounded import readers, readings
from anabranch.language.rewrite import parts, with_part
from anabranch.law.calls import PythonFunction
from anabranch.runtime.standing import Standing, results_of, standing

RESULTS = "(results)"
"""The name of the stream between the two, which no stream of a site can have."""
_ITEMS = ast.Path(ast.Source("stream", RESULTS), tuple(ast.Step("child", ast.NameTest("*")) for _ in ("root", "item")))


@dataclass(frozen=True, slots=True)
class ChainedQuery:
    """A query whose windows are over the results of another."""

    inner: Standing
    outer: Standing

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that it reads."""
        return self.inner.streams


def chained_query(query: ast.Query, functions: Mapping[str, PythonFunction]) -> ChainedQuery | None:
    """A checked query as a chain of two; None where it is none, or cannot be answered before its streams end."""
    sources = [each.source for each in parts(query) if isinstance(each, ast.For) and each.window is not None]
    loops = [each for each in sources if isinstance(each, ast.Flwor)]
    if len(sources) != 1 or len(loops) != 1:
        return None
    reading = readers({each.name: each for each in query.functions})
    behind = with_part(query, loops[0], _ITEMS)
    if len(readings(behind, reading)) != 1:
        return None
    try:
        inner = standing(check(replace(query, body=loops[0]), functions=functions).query, functions)
        outer = standing(check(behind, functions=functions).query, functions)
    except AnabranchError:  # the loop uses variables from around it
        return None
    made = results_of(loops[0], {each.name: each for each in query.functions})
    is_stream = made <= {"content"} and "json" not in inner.outputs.kinds and not inner.outputs.given_items()
    if inner.kind not in ("items", "interval join", "keyed join") or outer.kind != "windows" or not is_stream:
        return None
    return ChainedQuery(inner, outer)
