"""How the items of a stream write the names that a query asks for.

Accents, descriptions and settings name paths as text, with the prefixes that the items have; a query may have others
for the same namespaces.
What a prefix means is known where the stream's root declares it, and there names are compared as XML has it: by
namespace and local name.
Items may also declare prefixes of their own, which are not known before they are read: those are taken as the query
writes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from anabranch.language import ast

Namespaces: TypeAlias = Mapping[str, str]
"""What prefixes mean at a place; the empty one is that of elements without any."""


@dataclass(frozen=True, slots=True)
class Spelling:
    """A translation of the prefixes at a place in a query to those of a stream; without any, names stay as they are."""

    asked: Namespaces = field(default_factory=dict)
    written: Namespaces = field(default_factory=dict)
    """The prefixes that the stream's root declares."""

    def of(self, test: ast.NameTest, *, attribute: bool = False) -> tuple[str, ...]:
        """The names that items may write for what a test asks for: mostly one, and `*` for a wildcard.

        >>> Spelling({"q": "urn:x"}, {"p": "urn:x"}).of(ast.NameTest("t", "q"))
        ('p:t',)
        """
        local, prefix = test.local, test.prefix or ""
        if "*" in (local, prefix):
            return ("*",)
        if attribute and not prefix:
            return (local,)  # it is in no namespace, whatever the default is
        uri = self.asked.get(prefix, "")
        found = sorted(each for each, meant in self.written.items() if uri and meant == uri and (each or not attribute))
        if not found and self.written.get(prefix, uri) != uri:
            return (f"{{{uri}}}{local}",)  # the prefix has another meaning in the stream; no item has a name like this
        return tuple(f"{each}:{local}" if each else local for each in found or [prefix])
