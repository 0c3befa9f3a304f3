"""Objects and arrays in queries, as calls of functions: `$o.key` is `op:lookup($o, "key")` (LAWS 7.1, 7.2).

They only compute, so code that walks over a query treats them as functions of values and needs no case for each
construct; the printer gives them their own notation.
"""

from __future__ import annotations

from anabranch.errors import Span
from anabranch.language import ast
from anabranch.stream.reading.json_names import step_of_key

LOOKUP = "op:lookup"
"""`$o.key`, `$o."odd key"`: an expression, and a string."""
MEMBER = "op:member"
"""`$o.tags[[1]]`"""
MEMBERS = "op:members"
"""`$o.tags[]`"""
OBJECT = "op:object"
"""`{ "k": v }`: keys and values in turns."""
ARRAY = "op:array"
"""`[a, b]`: each expression is a member."""
ARRAY_OF = "op:array-of"
"""`array { a }`: each value is a member."""
CALL = "op:call"
"""`$m("k")`; whether `$m` is an object or a function is known only when it is evaluated."""

POSTFIX = frozenset((LOOKUP, MEMBER, MEMBERS))
JSON = frozenset((*POSTFIX, OBJECT, ARRAY, ARRAY_OF))


def step_to(key: str, span: Span = ast.NOWHERE) -> ast.Step:
    """The step to the element or attribute whose value a lookup finds in JSON."""
    step = step_of_key(key)
    if step.startswith("@"):
        return ast.Step("attribute", ast.NameTest(step[1:]), span=span)
    return ast.Step("child", ast.NameTest(step), span=span)
