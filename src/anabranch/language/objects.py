"""Objects and arrays in queries, as calls of functions: `$o.key` is `op:lookup($o, "key")` (LAWS 7.1, 7.2).

They only compute: whoever walks over a query meets a function that takes values and gives some, and needs no case for
each construct; the printer writes them as they are written.
"""

from __future__ import annotations

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
"""`$m("k")`, which may as well be the call of a function."""

POSTFIX = frozenset((LOOKUP, MEMBER, MEMBERS))
JSON = frozenset((*POSTFIX, OBJECT, ARRAY, ARRAY_OF))
