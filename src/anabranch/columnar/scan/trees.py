"""Items of the usual look as trees, without a parser.

What fits a template is the template's tree with other texts in its gaps: one match of a pattern tells whether an item
does, and what its texts are.
That is several times faster than parsing, and what a parser would give, to the node.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from anabranch.columnar.scan.template import PLAIN, Template
from anabranch.stream.limits import DOCUMENT
from anabranch.stream.reading.parse import parse_item
from anabranch.stream.tree import Element, Text

LONGEST = 1 << 14
"""Items of more bytes than this are left to the parser: patterns so long cost more to make than they save."""
_PLAIN = re.escape("".join(chr(byte) for byte in range(256) if PLAIN[byte]))


class TemplateTrees:
    """Makes the trees of items that fit one template."""

    def __init__(self, template: Template) -> None:
        fixed = [piece.decode("latin-1") for piece in template.pieces]  # a character per byte, as below
        self._look = re.compile(f"([{_PLAIN}]++)".join(map(re.escape, fixed)))
        self._model = parse_item(b"-".join(template.pieces), DOCUMENT)

    def tree(self, raw: bytes) -> Element | None:
        """The tree of an item; None where it does not fit."""
        found = self._look.fullmatch(raw.decode("latin-1"))
        return None if found is None else _filled(self._model, iter(found.groups()))


def _filled(model: Element, texts: Iterator[str]) -> Element:
    """A copy of an element with the next texts in its gaps, which come in the order in which `Template` has them."""
    fresh = Element(model.name)
    for attribute in model.attributes:
        fresh.set(attribute.name, next(texts))
    children = model.children
    if len(children) == 1 and isinstance(children[0], Text):
        fresh.append(Text(next(texts)))
        return fresh
    for child in children:
        if isinstance(child, Element):
            fresh.append(_filled(child, texts))
        elif isinstance(child, Text):
            fresh.append(Text(child.value))
    return fresh


class UsualTrees:
    """Makes trees of items that look like those seen before; learns from what it did not know."""

    def __init__(self) -> None:
        self._trees: TemplateTrees | None = None
        self._missed = 0

    def tree(self, raw: bytes) -> Element | None:
        """The tree of an item; None where a parser has to read it."""
        return self._trees.tree(raw) if self._trees else None

    def learn(self, raw: bytes, tree: Element) -> None:
        """See what a parser made of an item. Few of many are looked at closely: learning costs more than parsing."""
        self._missed += 1
        if self._missed & (self._missed - 1) or len(raw) > LONGEST:
            return
        if template := Template.learn([(raw, tree)]):
            trees = TemplateTrees(template)
            self._trees = trees if trees.tree(raw) else self._trees
