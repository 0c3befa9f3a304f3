"""Sequence types, `xs:integer?` or `element(a)*`, which are written into a tree as canonical text."""

from __future__ import annotations

from anabranch.language.checks.refusals import refuse
from anabranch.language.parsing.cursor import Cursor
from anabranch.values.sequence_types import ATOMIC_TYPES

_KINDS = ("node", "text", "comment", "item", "element", "attribute", "document-node", "processing-instruction")
_NAMED_KINDS = ("element", "attribute", "processing-instruction")


class TypeParser(Cursor):
    """The productions of a type."""

    def sequence_type(self) -> str:
        """A type with its occurrence."""
        if self.at_name("empty-sequence"):
            self.advance()
            self.expect("(")
            self.expect(")")
            return "empty-sequence()"
        item = self.item_type()
        if self.at_symbol("?", "*", "+"):
            return item + self.advance().text
        return item

    def item_type(self) -> str:
        if self.take("("):
            inner = self.item_type()
            self.expect(")")
            return inner
        if self.token.kind != "name":
            self.unexpected("a type")
        name = self.token
        if self.peek().text != "(" or self.peek().kind != "symbol":
            if name.text not in ATOMIC_TYPES:
                raise refuse("type expression", self.text, name.span)
            return self.advance().text
        if name.text == "function":
            return self.function_type()
        if name.text not in _KINDS:
            raise refuse("type expression", self.text, name.span)
        self.advance()
        self.advance()
        inside = ""
        if not self.at_symbol(")"):
            inside = self.kind_argument(name.text)
        self.expect(")")
        return f"{name.text}({inside})"

    def kind_argument(self, kind: str) -> str:
        """What stands between the parentheses of a kind test."""
        if kind == "document-node" and self.at_name("element"):
            return self.item_type()
        if kind not in _NAMED_KINDS:
            self.unexpected("')'")
        if self.take("*"):
            return ""
        if kind == "processing-instruction" and self.token.kind == "string":
            return self.advance().text.strip()
        if self.token.kind != "name":
            self.unexpected("a name or '*'")
        found = self.advance()
        if self.at_symbol(","):
            raise refuse("type expression", self.text, self.token.span)
        return found.text

    def function_type(self) -> str:
        """`function(*)`; the types that a function takes and gives are not looked at."""
        start = self.advance().start
        self.expect("(")
        if not self.take("*"):
            raise refuse("type expression", self.text, self.since(start))
        self.expect(")")
        return "function(*)"

    def declared_type(self) -> str | None:
        """`as type`, where it is there."""
        if not self.take_name("as"):
            return None
        return self.sequence_type()
