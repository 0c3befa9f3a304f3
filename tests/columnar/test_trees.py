"""Trees made by template are those that a parser makes."""

from __future__ import annotations

import pytest

from anabranch.columnar.scan.template import LONGEST, Template, TemplateTrees, UsualTrees
from anabranch.stream.limits import Limits
from anabranch.stream.photons import photons
from anabranch.stream.reading.parse import parse_item
from anabranch.stream.serialize import serialize
from anabranch.stream.tree import Attribute, Element, Node, Text

LOOK = b'<p a="1" b="x y"><t>12</t> <m><n c="q">z</n><e/> </m><s> </s></p>'


def shown(node: Node) -> object:
    """All that can be seen of a tree."""
    match node:
        case Element():
            inside = [*node.attributes, *node.children]
            assert all(each.parent is node for each in inside)
            return node.name, dict(node.namespaces), [shown(each) for each in inside]
        case Attribute():
            return node.name, node.value
        case _:
            assert isinstance(node, Text)
            return node.value


def orders(node: Node) -> list[int]:
    """The numbers of all nodes of a tree in document order."""
    if not isinstance(node, Element):
        return [node.order]
    return [node.order, *(number for each in (*node.attributes, *node.children) for number in orders(each))]


def trees(raw: bytes) -> TemplateTrees:
    template = Template.of(parse_item(raw, Limits()))
    assert template is not None
    return TemplateTrees(template)


@pytest.mark.parametrize(
    "raw",
    [
        LOOK,
        b'<p a="" b="1"><t>1</t> <m><n c="q">z</n><e/> </m><s> </s></p>',
        b'<p a="it\'s" b="[(.*)]"><t>-.$ ^</t> <m><n c="1">%d {0}</n><e/> </m><s>\\1</s></p>',
        b'<p a="1" b="2"><t>&lt;</t> <m><n c="q">z</n><e/> </m><s> </s></p>',
        b'<p a="1" b="2"><t>\xc3\xa4</t> <m><n c="q">z</n><e/> </m><s> </s></p>',
        b'<p a="1" b="2"><t>1<!-- c --></t> <m><n c="q">z</n><e/> </m><s> </s></p>',
        b'<p a="1" b="2"><t>1\n</t> <m><n c="q">z</n><e/> </m><s> </s></p>',
        b'<p a="1" b="2"><t>1</t> <m><n c="q">z</n><e/> </m><s> </s></p>\n',
        b'<p a="1" b="2"><t/> <m><n c="q">z</n><e/> </m><s> </s></p>',
    ],
)
def test_what_fits_is_what_a_parser_reads(raw: bytes) -> None:
    """A tree is the same as that of the parser, in document order, or there is none."""
    made = trees(LOOK).tree(raw)
    plain = raw.isascii() and not any(mark in raw for mark in (b'""', b"&", b"<!", b"\n", b"<t/>"))
    assert (made is not None) == plain
    if made is not None:
        assert shown(made) == shown(parse_item(raw, Limits()))
        assert orders(made) == sorted(orders(made))


def test_the_usual_look_is_learned_and_learned_again() -> None:
    """Photons are made by template from the second on; after a change of look the new one is learned soon."""
    usual = UsualTrees()
    others = [f"<q><n>{number}</n></q>" for number in range(40)]
    parsed = 0
    for text in [*photons(40, 1), *others]:
        raw = text.encode()
        tree = usual.tree(raw)
        if tree is None:
            parsed += 1
            usual.learn(raw, parse_item(raw, Limits()))
        else:
            assert serialize(tree) == text
    assert parsed == 2


def test_what_no_template_shows_is_left_to_the_parser() -> None:
    """Neither an item with an entity nor one that is very long takes the place of the usual look."""
    usual = UsualTrees()
    for raw in (b"<p><n>1</n></p>", b"<p><n>&lt;</n></p>", b"<p><n>" + b"x" * LONGEST + b"</n></p>"):
        usual.learn(raw, parse_item(raw, Limits()))
    assert usual.tree(b"<p><n>2</n></p>") is not None
    assert usual.tree(b"<p><n>&gt;</n></p>") is None


def test_names_beyond_ascii() -> None:
    """Items with such names have a look, too; the same letters in another encoding do not fit it."""
    raw = '<p><größe k="1">7</größe></p>'
    found = trees(raw.encode()).tree(raw.replace("7", "8").encode())
    assert found is not None
    assert shown(found) == shown(parse_item(raw.replace("7", "8").encode(), Limits()))
    assert trees(raw.encode()).tree(raw.encode("latin-1")) is None
