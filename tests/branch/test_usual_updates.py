"""Updates that are read by a pattern: they are what the parser reads, and what a pattern does not take is parsed."""

from __future__ import annotations

from random import Random

import pytest

from anabranch.branch.intake.usual_updates import UsualUpdates
from anabranch.errors import BadItem
from anabranch.stream.elements import Place, Update
from anabranch.stream.limits import Limits
from anabranch.stream.reading import wire
from anabranch.stream.reading.parse import parse_item
from anabranch.stream.tree import Child, Element, namespaces_in_scope

PLACE = Place("s", "p", 0)
DECLARED = 'xmlns:s="urn:anabranch:stream"'
GOOD = ("1", "117.50", "a b", "é", "'", "\u2028", " ")
BAD = ("", "ACME &amp; Co", "]]>", "a\tb", "a\nb", "\r", '"', "&#65;", "<", "\x01")
"""Values that are no XML, or are read as something else than they are written."""


def one(random: Random, look: int) -> str:
    """An update of a look, with any values, also bad ones."""

    def value() -> str:
        return random.choice(GOOD if random.random() < 0.8 else BAD)

    def quoted() -> str:
        return value().replace('"', "")

    contents = (
        f"<quote>{value()}</quote>",
        f'<quote k="{quoted()}"><v>{value()}</v>{value()}<w/></quote>',
        f"<a>{value()}</a>{value()}",
        f'<q:a xmlns:q="urn:q" q:k="{quoted()}" k="{quoted()}">{value()}</q:a>',
        f'<a xmlns="urn:d"><b>{value()}</b></a>',
        f"<s:mutable id='x'><a>{value()}</a></s:mutable>",
        f"<a><!--{random.choice('xy')}--></a>",
        "",
    )
    name = ("s:replace", "s:before", "s:after")[look % 3]
    own = f' id="{quoted()}"' if look % 5 == 0 else ""
    time = random.choice(("3", "3.5", "4", "5", ".5", " 4 ", "-1", "x"))
    at = f' at="{time}"' if look % 7 < 4 else ""
    return f'<{name} {DECLARED} target="{quoted() or 7}"{own}{at}>{contents[look % len(contents)]}</{name}>'


def parsed(raw: bytes) -> Update | str:
    """What the parser reads, or why it is bad."""
    try:
        element = wire.element_of(parse_item(raw, Limits()), PLACE)
    except BadItem as error:
        return error.message
    assert isinstance(element, Update)
    return element


def looks(node: Child) -> object:
    """All that there is to say of a node, its parent's namespaces included."""
    if not isinstance(node, Element):
        return type(node).__name__, vars_of(node)
    attributes = [(each.name, each.name.prefix, each.value) for each in node.attributes]
    inside = [looks(each) for each in node.children]
    return node.name, node.name.prefix, node.namespaces, namespaces_in_scope(node), attributes, inside


def vars_of(node: Child) -> str:
    """The text of a node that is no element."""
    assert not isinstance(node, Element)
    return node.value


@pytest.mark.mass
def test_a_pattern_reads_what_the_parser_reads() -> None:
    """Random updates with references, white space and characters that XML does not have, good and bad."""
    random, usual, known = Random(3), UsualUpdates(), 0
    for number in range(6_000):
        if number % 40 == 0:
            usual = UsualUpdates()
        raw = one(random, number // 40).encode()
        expected, found = parsed(raw), usual.read(raw, PLACE, None)
        if found is None:
            if isinstance(expected, Update):
                usual.learn(raw, expected, None)
            continue
        known += 1
        assert isinstance(expected, Update), (raw, expected)
        assert (found.kind, found.target, found.id, found.at, found.mark) == (
            *(expected.kind, expected.target, expected.id),
            *(expected.at, expected.mark),
        )
        assert list(map(looks, found.content)) == list(map(looks, expected.content)), raw
        orders = [each.order for each in found.content]
        assert orders == sorted(orders)
    assert known > 500


def test_a_look_belongs_to_a_root() -> None:
    """Below another root the same bytes may mean something else."""
    usual = UsualUpdates()
    raw = f'<s:replace {DECLARED} target="1"><a>1</a></s:replace>'.encode()
    element = parsed(raw)
    assert isinstance(element, Update)
    usual.learn(raw, element, b"<r>")
    assert usual.read(raw, PLACE, b"<r>") is not None
    assert usual.read(raw, PLACE, b'<r xmlns="urn:d">') is None
    assert usual.read(raw.replace(b"1", b"11"), PLACE, b"<r>") is None, "how long one may be is for the parser to say"
