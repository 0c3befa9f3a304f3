"""The productions of objects and arrays: lookups behind an expression, and constructors (LAWS 7.1, 7.2).

`.` looks up behind a variable, `)` or `]` only; everywhere else `a.b` is one name, as XQuery has it.
A variable's name may have dots, too: of `$p.a.b`, the longest name that is declared is the variable's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from anabranch.language import ast
from anabranch.language.objects import ARRAY, ARRAY_OF, LOOKUP, MEMBER, MEMBERS, OBJECT
from anabranch.language.parsing.cursor import QueryToken
from anabranch.language.parsing.types import TypeParser

_KEY = re.compile(r"[^\W\d][\w\-]*\Z")


class LookupParser(TypeParser):
    """Lookups and constructors; `PathParser` and `Parser` add the expressions inside of them."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.bound: list[str] = []
        """The variables that are bound at the current place, and perhaps some that were bound before it."""
        self.dotted = False
        """Whether the name of a variable has a dot."""

    def expr(self) -> ast.Expression:
        """Expressions with commas between them."""
        raise AssertionError("the parser gives this")

    def expr_single(self) -> ast.Expression:
        """One expression, without commas."""
        raise AssertionError("the parser gives this")

    @contextmanager
    def before(self, count: int) -> Iterator[None]:
        """Leave the scope of the last `count` variables, as for reading the expression that they are bound to."""
        names = self.bound[-count:]
        del self.bound[-count:]
        yield
        self.bound += names

    # --- lookups ------------------------------------------------------------------------------------------

    def variable_reference(self) -> ast.Expression:
        """`$name`, with the keys that are looked up in it where they were read as one name."""
        start = self.expect("$").start
        if self.token.kind != "name" or (":" in self.token.text and not self.token.text.startswith("err:")):
            self.unexpected("a variable name")
        token = self.advance()
        if ":" in token.text:
            return ast.Variable(token.text, span=self.since(start))
        parts = token.text.split(".")
        ends = [end for end in range(len(parts), 0, -1) if ".".join(parts[:end]) in self.bound]
        end = ends[0] if ends else len(parts)
        name, keys = ".".join(parts[:end]), parts[end:]
        found = ast.Variable(name, span=self.since(start))
        return self.keyed(found, keys, token, start)

    def keyed(self, base: ast.Expression, keys: Sequence[str], name: QueryToken, start: int) -> ast.Expression:
        """The keys that were read as one name, looked up one after the other; the last may be a string behind it."""
        for place, key in enumerate(keys):
            follows = self.token.start == name.end and self.token.kind in ("string",)
            if key == "" and place == len(keys) - 1 and follows:
                key = self.advance().text
            elif not _KEY.match(key):
                raise self.error(f"'{key}' is no key", name.span, hint='write it in quotes, as in $o."odd key"')
            base = self.looked_up(base, key, start)
        return base

    def looked_up(self, base: ast.Expression, key: str, start: int) -> ast.Call:
        span = self.since(start)
        return ast.Call(LOOKUP, (base, ast.String(key, span=span)), span=span)

    def at_member(self) -> bool:
        """Whether `[[` or `[]` comes."""
        if not self.at_symbol("["):
            return False
        return self.text.startswith("[[", self.token.start) or (self.peek().kind, self.peek().text) == ("symbol", "]")

    def lookups(self, base: ast.Expression, start: int) -> ast.Expression:
        """The lookups behind an expression that has been read, applied to it."""
        while True:
            if self.at_symbol(".") and (self.text[self._end - 1] in ")]" or self.at_key(base)):
                base = self.keys(base, start)
            elif self.at_member():
                base = self.array_lookup(base, start)
            else:
                return base

    def at_key(self, base: ast.Expression) -> bool:
        """Whether a key follows directly behind one in quotes, as in `$o."odd key".name`."""
        return isinstance(base, ast.Call) and base.name == LOOKUP and self.token.start == self._end

    def keys(self, base: ast.Expression, start: int) -> ast.Expression:
        """`.key.key` or `."odd key"` behind a bracket."""
        self.advance()
        if self.token.kind == "string":
            return self.looked_up(base, self.advance().text, start)
        if self.token.kind != "name" or ":" in self.token.text:
            self.unexpected('a key, as in .key or ."odd key"')
        token = self.advance()
        return self.keyed(base, token.text.split("."), token, start)

    def array_lookup(self, base: ast.Expression, start: int) -> ast.Call:
        """`[[n]]` or `[]`."""
        self.advance()
        if self.take("]"):
            return ast.Call(MEMBERS, (base,), span=self.since(start))
        self.advance()
        place = self.expr()
        self.expect("]")
        self.expect("]")
        return ast.Call(MEMBER, (base, place), span=self.since(start))

    # --- constructors -------------------------------------------------------------------------------------

    def object_constructor(self, start: int) -> ast.Call:
        """`{ "k": v }`, from the brace on."""
        self.expect("{")
        parts: list[ast.Expression] = []
        while not self.at_symbol("}"):
            if parts and not self.take(","):
                self.unexpected("',' or '}'")
            key = self.expr_single()
            if isinstance(key, ast.Path) and key.start is None:
                raise self.error("a key is a string", key.span, hint='write it in quotes, as in { "key": 1 }')
            if not self.at_symbol(":"):
                self.unexpected("':' behind a key")
            self.advance()
            parts += (key, self.expr_single())
        self.expect("}")
        return ast.Call(OBJECT, tuple(parts), span=self.since(start))

    def array_constructor(self) -> ast.Call:
        """`[a, b]`"""
        start = self.expect("[").start
        found: list[ast.Expression] = []
        while not self.at_symbol("]"):
            if found and not self.take(","):
                self.unexpected("',' or ']'")
            found.append(self.expr_single())
        self.expect("]")
        return ast.Call(ARRAY, tuple(found), span=self.since(start))

    def named_constructor(self) -> ast.Call:
        """`map { ... }` or `array { ... }`."""
        word = self.advance()
        if word.text == "map":
            return self.object_constructor(word.start)
        self.expect("{")
        inner: ast.Expression = ast.Sequence((), span=self.since(word.start))
        if not self.at_symbol("}"):
            inner = self.expr()
        self.expect("}")
        return ast.Call(ARRAY_OF, (inner,), span=self.since(word.start))
