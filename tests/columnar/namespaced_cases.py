"""Names in namespaces for random items and queries: the same items and queries, with other names.

Items and queries call one namespace by different prefixes, as they do in life.
Some items declare something else than the others, or declare it in another way, and some declare too little.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Literal, TypeAlias

from anabranch.language import ast, parse
from anabranch.language.printer import print_query
from anabranch.language.rewrite import rebuild

Place: TypeAlias = Literal["item", "root"]
"""Who declares the namespace: each item, or the root of a document."""

URI = "urn:items"
_ELEMENT = re.compile(r"(</?)(\w+)")
_ATTRIBUTE = re.compile(r" (\w+)=(?=[\"'])")
_LOCALS = ["p", "d", "t", "u", "f", "g", "h", "o", "v", "w", "line", "q", "sku", "name", "note", "id", "extra"]


@dataclass(frozen=True, slots=True)
class Naming:
    """Which names of a stream are in a namespace, and who says so."""

    random: Random
    place: Place
    prefix: str
    """The one that items use; the empty one stands for a default namespace, in which all elements are."""
    spaced: frozenset[str]
    """The names that are in the namespace, of elements and attributes."""
    odd: int
    """How often an item declares something else, out of a hundred."""

    @staticmethod
    def draw(random: Random) -> Naming:
        """Any."""
        some = random.choice([_LOCALS, random.sample(_LOCALS, random.randrange(2, len(_LOCALS)))])
        place: Place = random.choice(["item", "item", "root"])
        return Naming(random, place, random.choice(["n", "n", ""]), frozenset(some), random.choice([0, 5, 20]))

    @property
    def root(self) -> str:
        """The start tag of the root."""
        return f'<r {self._declaration}="{URI}">' if self.place == "root" else "<r>"

    @property
    def _declaration(self) -> str:
        return f"xmlns:{self.prefix}" if self.prefix else "xmlns"

    # --- items --------------------------------------------------------------------------------------------

    def item(self, text: str) -> str:
        """An item with names of this stream."""
        named = self._with_prefixes(text) if self.prefix else text
        if self.place == "item":
            named = self._in_start_tag(named, f' {self._declaration}="{URI}"')
        return self._changed(named) if self.random.randrange(100) < self.odd else named

    def _with_prefixes(self, text: str) -> str:
        def named(before: str, name: str, behind: str) -> str:
            return f"{before}{self.prefix}:{name}{behind}" if name in self.spaced else f"{before}{name}{behind}"

        text = _ELEMENT.sub(lambda found: named(found[1], found[2], ""), text)
        return _ATTRIBUTE.sub(lambda found: named(" ", found[1], "="), text)

    def _in_start_tag(self, text: str, added: str) -> str:
        """With something added behind the first name."""
        return re.sub(r"^( *<[\w:]+)", lambda found: found[1] + added, text, count=1)

    def _changed(self, text: str) -> str:
        """Declared in another way, which some readers would take for the same."""
        random, mine = self.random, f'{self._declaration}="{URI}"'
        other = random.choice([f'{self._declaration}="urn:other"', 'xmlns="urn:items"', 'xmlns=""', 'xmlns:z="urn:z"'])
        match random.randrange(9):
            case 0:
                return text.replace(mine, other)
            case 1:
                return text.replace(f" {mine}", "")
            case 2:
                return text.replace(mine, mine.replace('"', "'"))
            case 3:
                return self._in_start_tag(text, f" {other}")
            case 4:  # behind the attributes
                return re.sub(r"^(<[\w:]+)( .*?)(/?>)", r"\1\2 " + mine + r"\3", text.replace(f" {mine}", ""), count=1)
            case 5:  # further in
                return re.sub(r"(?<=>)(<[\w:]+)", lambda found: f"{found[1]} {other}", text, count=1)
            case 6:
                return text.replace(mine, f'{mine} xmlns:m="{URI}"').replace(f"<{self.prefix}:", "<m:", 1)
            case 7:
                return re.sub(r"<(\w+)>", r"<m:\1>", text, count=1)
            case _:
                return text.replace(mine, mine.replace("urn:", "urn&#58;"))

    # --- queries ------------------------------------------------------------------------------------------

    def query(self, text: str) -> str:
        """A query with names of this stream: by a prefix of its own, a default namespace, or in any namespace."""
        query = parse(text)
        by_default = self.random.randrange(3) == 0

        def named(step: ast.Step) -> ast.Step:
            test, wild = step.test, self.random.randrange(12) == 0
            if not isinstance(test, ast.NameTest):
                return step
            is_attribute = step.axis == "attribute"
            if test.local == "r":
                is_spaced = self.place == "root" and not self.prefix
            elif self.prefix:
                is_spaced = test.local in self.spaced
            else:
                is_spaced = not is_attribute
            if wild and test.local != "*":
                return replace(step, test=ast.NameTest(test.local, "*"))
            if test.local == "*":
                return replace(step, test=ast.NameTest("*", "q")) if wild else step
            if is_spaced and (is_attribute or not by_default):
                return replace(step, test=ast.NameTest(test.local, "q"))
            if by_default and not is_spaced and not is_attribute:
                return replace(step, test=ast.NameTest(test.local, "*"))
            return step

        def visit(node: Any) -> Any:
            match node:
                case ast.Step():
                    return rebuild(named(node), visit)
                case ast.ElementConstructor():
                    return rebuild(self._constructor(node), visit)
                case _:
                    return rebuild(node, visit)

        declared: tuple[tuple[str, str], ...] = (("q", URI), ("", URI)) if by_default else (("q", URI),)
        return print_query(replace(visit(query), namespaces=declared))

    def _constructor(self, constructor: ast.ElementConstructor) -> ast.ElementConstructor:
        """One in a namespace, or with declarations, now and then."""
        match self.random.randrange(10):
            case 0:
                return replace(constructor, name=f"q:{constructor.name}")
            case 1:
                return replace(constructor, namespaces=(("n", "urn:n"), ("z", "urn:z")))
            case 2:
                return replace(constructor, namespaces=(("", self.random.choice([URI, "urn:w", ""])),))
            case _:
                return constructor
