"""Trees as text: XML without declaration and indentation, the form of answers.

The text can be parsed on its own: the node at the top declares all namespaces in scope for it, wherever it was taken
from, and an element below it declares only what differs from the element around it.
The namespace of control elements is declared for names only (LAWS 2.1).
A name whose prefix is not declared, or is declared otherwise, gets the declaration it needs, so a tree that a query
built from several inputs keeps its meaning.

Guarantees: parsing the text gives an equal tree; no recursion, so a deep tree is as safe as a wide one.
"""

from __future__ import annotations

from collections import ChainMap
from itertools import count
from typing import TypeAlias

from anabranch.stream.tree import (
    STREAM_NAMESPACE,
    XML_NAMESPACE,
    Attribute,
    Child,
    Comment,
    Document,
    Element,
    Instruction,
    Name,
    Node,
    Text,
    namespaces_in_scope,
)

Scope: TypeAlias = ChainMap[str, str]
"""The namespace of each prefix at a place."""
NOTHING: Scope = ChainMap({"": "", "xml": XML_NAMESPACE})


def serialize(node: Node) -> str:
    """The text of a node; an attribute by itself is written as `name="value"`."""
    match node:
        case Document():
            return _content(node.children)
        case Attribute():
            return f'{node.name}="{escape_attribute(node.value)}"'
        case _:
            return _content([node])


def escape_text(text: str) -> str:
    """Text between tags."""
    if text.isalnum():
        return text
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\r", "&#xD;")


def escape_attribute(text: str) -> str:
    """Text between double quotes; white space is escaped, so that a parser does not normalise it."""
    if text.isalnum():
        return text
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    return escaped.replace("\t", "&#x9;").replace("\n", "&#xA;").replace("\r", "&#xD;")


def _content(children: list[Child]) -> str:
    out: list[str] = []
    # What is still to be written, last first: nodes with the scope around them (None at the top), end tags as text.
    pending: list[tuple[Child | str, Scope | None]] = [(child, None) for child in reversed(children)]
    while pending:
        node, scope = pending.pop()
        match node:
            case str():
                out.append(node)
            case Text():
                out.append(escape_text(node.value))
            case Element():
                name, rest, inner = start_tag(node, scope)
                if node.children:
                    out.append(f"<{name}{rest}>")
                    pending.append((f"</{name}>", None))
                    pending.extend((child, inner) for child in reversed(node.children))
                else:
                    out.append(f"<{name}{rest}/>")
            case Comment():
                out.append(f"<!--{node.value}-->")
            case Instruction():
                out.append(f"<?{node.target} {node.value}?>" if node.value else f"<?{node.target}?>")
    return "".join(out)


def start_tag(element: Element, around: Scope | None) -> tuple[str, str, Scope]:
    """The name in the start tag, what follows it there, and the scope of the children."""
    declared = namespaces_in_scope(element) if around is None else element.namespaces
    around = NOTHING if around is None else around
    if not declared and not element.attributes and around.get(element.name.prefix) == element.name.uri:
        return str(element.name), "", around
    # A chain and not a copy: a thousand declarations above cost an element nothing.
    scope = around.new_child()
    for prefix, uri in declared.items():
        # A prefix cannot be undeclared in XML 1.0, only the default namespace can.
        if around.get(prefix) != uri and (uri or not prefix) and uri != STREAM_NAMESPACE:
            scope[prefix] = uri
    taken: set[str] = set()
    name = _bind(element.name, scope, taken)
    attributes = [
        f'{_bind(each.name, scope, taken) if each.name.uri else each.name.local}="{escape_attribute(each.value)}"'
        for each in element.attributes
    ]
    fresh = scope.maps[0]
    declarations = [
        f'xmlns{":" if prefix else ""}{prefix}="{escape_attribute(uri)}"' for prefix, uri in sorted(fresh.items())
    ]
    return name, "".join(f" {each}" for each in declarations + attributes), scope if fresh else around


def _bind(name: Name, scope: Scope, taken: set[str]) -> str:
    """The name as written, its prefix declared in `scope`; `taken` are the prefixes that this tag already uses.

    The element's own name comes first and so always keeps its prefix; no prefix at all is for elements only.
    """
    prefix = name.prefix if name.uri else ""
    if taken and (not prefix or (prefix in taken and scope[prefix] != name.uri)):
        known = (each for each, uri in scope.items() if each and uri == name.uri)
        invented = (f"ns{number}" for number in count() if f"ns{number}" not in scope)
        prefix = next(known, None) or next(invented)
    taken.add(prefix)
    if scope.get(prefix) != name.uri:
        scope[prefix] = name.uri
    return f"{prefix}:{name.local}" if prefix else name.local
