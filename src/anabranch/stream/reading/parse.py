"""Bytes to trees: one item, a root's start tag, or a finite document, by expat and nothing else.

Expat is small, strict and in the standard library, and it can be kept blind: no handler for external entities exists, a
document type is refused before it is read, so no entity except the five built-in ones is ever known, and nothing is
fetched or opened because of data.
Namespaces are resolved here, since an item's prefixes may be declared on a root that is not part of its bytes.

Guarantees: a resulting tree is namespace-well-formed and within the limits; everything else is a `BadItem` with a plain
reason, raised while parsing; time and memory are linear in bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from xml.parsers import expat

from anabranch.errors import BadItem, StreamError
from anabranch.stream.limits import DOCUMENT, LONGEST_NAME, Limits
from anabranch.stream.reading.markup import DOCTYPE, PROLOG, check_width, declared_encoding
from anabranch.stream.tree import XML_NAMESPACE, Child, Comment, Document, Element, Instruction, Name, Text

_XMLNS_NAMESPACE = "http://www.w3.org/2000/xmlns/"
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_NO_SCOPE: Mapping[str, str] = MappingProxyType({})


def parse_item(raw: bytes, limits: Limits, scope: Mapping[str, str] = _NO_SCOPE, encoding: str = "utf-8") -> Element:
    """Parse one element; `scope` are the prefixes that the root declares, which the tree itself does not repeat."""
    return next(each for each in _parse(raw, limits, scope, encoding) if isinstance(each, Element))


def parse_root(raw: bytes, encoding: str = "utf-8", limits: Limits = DOCUMENT) -> Element:
    """The root element of a stream, without children, from the bytes of its start tag."""
    try:
        return parse_item(raw if raw.endswith(b"/>") else raw[:-1] + b"/>", limits, encoding=encoding)
    except BadItem as error:
        raise StreamError(f"the stream's root element cannot be read: {error.message}", hint=error.hint) from None


def implied_root(name: str) -> Element:
    """The root of a stream without one in its files: one item per line, or JSON."""
    return Element(Name(name))


def parse_document(data: bytes, limits: Limits = DOCUMENT) -> Document:
    """Parse a finite document; its document type, if it has one, is skipped."""
    check_width(data[:4])
    document = Document()  # created first, for it is first in document order
    prolog = PROLOG.match(data)
    end = prolog.end() if prolog else 0
    doctype = DOCTYPE.match(data, end)
    try:
        children = _parse(
            data[:end] + data[doctype.end() :] if doctype else data, limits, _NO_SCOPE, declared_encoding(data[:end])
        )
    except BadItem as error:
        raise StreamError(f"the document cannot be read: {error.message}", hint=error.hint) from None
    for child in children:
        document.append(child)
    return document


def _parse(raw: bytes, limits: Limits, outer: Mapping[str, str], encoding: str) -> list[Child]:
    """The nodes at the top: one element, and perhaps comments and instructions around it."""
    if len(raw) > limits.item_bytes:
        raise BadItem(f"more than {limits.item_bytes:,} bytes")
    if encoding != "utf-8":
        raw = _recoded(raw, encoding)
    if b"\0" in raw:  # expat would take it for UTF-16, whatever the encoding given
        raise BadItem(f"a control character (U+0000) at byte {raw.index(0)}")
    top: list[Child] = []
    open_elements: list[Element] = []
    pending: list[str] = []  # expat hands text out in pieces
    scope = {"xml": XML_NAMESPACE, **outer}
    shadowed: list[tuple[Element, dict[str, str | None]]] = []
    nodes = 0
    most_nodes, most_attributes, most_depth = limits.nodes, 2 * limits.attributes, limits.depth

    def place(node: Child, weight: int = 1) -> None:
        nonlocal nodes
        nodes += weight
        if nodes > most_nodes:
            raise BadItem(f"more than {most_nodes:,} nodes")
        if open_elements:
            open_elements[-1].append(node)
        else:
            top.append(node)

    def flush() -> None:
        if open_elements:
            place(Text("".join(pending)))
        pending.clear()

    def start(tag: str, attributes: list[str]) -> None:
        if pending:
            flush()
        if len(open_elements) >= most_depth:
            raise BadItem(f"nested more than {most_depth} deep")
        if not attributes:
            element = Element(_resolve(tag, scope))
        elif len(attributes) > most_attributes:
            raise BadItem(f"more than {limits.attributes:,} attributes in '{_shown(tag)}'")
        else:
            declared = _declarations(attributes)
            if declared:
                before = {prefix: scope.get(prefix) for prefix in declared}
                scope.update(declared)
            element = Element(_resolve(tag, scope), declared)
            _set_attributes(element, attributes, scope)
            if declared:
                shadowed.append((element, before))
        place(element, 1 + len(element.attributes))
        open_elements.append(element)

    def end(tag: str) -> None:
        if pending:
            flush()
        element = open_elements.pop()
        if shadowed and shadowed[-1][0] is element:
            for prefix, uri in shadowed.pop()[1].items():
                if uri is None:
                    del scope[prefix]
                else:
                    scope[prefix] = uri

    def comment(text: str) -> None:
        if pending:
            flush()
        place(Comment(text))

    def instruction(target: str, text: str) -> None:
        if pending:
            flush()
        place(Instruction(target, text))

    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.ordered_attributes = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = pending.append
    parser.CommentHandler = comment
    parser.ProcessingInstructionHandler = instruction
    parser.StartDoctypeDeclHandler = _refuse_doctype
    try:
        parser.Parse(raw, True)
    except expat.ExpatError as error:
        raise BadItem(_reason(raw, error.code, parser.ErrorByteIndex)) from None
    return top


def _refuse_doctype(*_: object) -> None:
    raise BadItem("a DOCTYPE is not allowed here")


def _recoded(raw: bytes, encoding: str) -> bytes:
    try:
        return raw.decode(encoding).encode()
    except UnicodeDecodeError as error:
        raise BadItem(f"not {encoding}: bad byte at byte {error.start}") from None


def _reason(raw: bytes, code: int, index: int) -> str:
    """Expat's reason, or a plainer one where its 'invalid token' has a plain cause."""
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        return f"not UTF-8: bad byte at byte {error.start}"
    if control := _CONTROL.search(raw):
        return f"a control character (U+{control[0][0]:04X}) at byte {control.start()}"
    return f"not well-formed: {expat.ErrorString(code).removeprefix('not well-formed ').strip('()')} at byte {index}"


# --- names ------------------------------------------------------------------------------------------------


def _resolve(tag: str, scope: Mapping[str, str]) -> Name:
    if ":" not in tag:
        return _name(tag, scope.get("", ""))
    return _name(tag, _uri(tag, scope))


def _uri(name: str, scope: Mapping[str, str]) -> str:
    prefix = name.split(":", 1)[0]
    uri = scope.get(prefix)
    if uri is None:
        raise BadItem(f"the prefix '{_shown(prefix)}' is not declared")
    return uri


@lru_cache(maxsize=4096)
def _name(written: str, uri: str) -> Name:
    """Names are cached, for the items of a stream share them."""
    if len(written) > LONGEST_NAME or len(uri) > LONGEST_NAME:
        raise BadItem(f"a name or namespace of more than {LONGEST_NAME:,} characters")
    prefix, _, local = written.rpartition(":")
    if written.startswith(":") or not local or ":" in prefix:
        raise BadItem(f"'{_shown(written)}' is not a name")
    return Name(local, uri, prefix)


def _declarations(attributes: list[str]) -> dict[str, str]:
    """The namespaces that an element declares; `attributes` alternates names and values."""
    declared: dict[str, str] = {}
    for name, uri in zip(attributes[::2], attributes[1::2], strict=True):
        if name == "xmlns":
            prefix = ""
        elif name.startswith("xmlns:"):
            prefix = name[6:]
        else:
            continue
        if prefix == "xmlns" or uri == _XMLNS_NAMESPACE or (prefix == "xml") != (uri == XML_NAMESPACE):
            raise BadItem(f"the prefix '{_shown(prefix)}' cannot mean '{_shown(uri)}'")
        if prefix and not uri:
            raise BadItem(f"the prefix '{_shown(prefix)}' cannot be undeclared")
        declared[prefix] = uri
    return declared


def _set_attributes(element: Element, attributes: list[str], scope: Mapping[str, str]) -> None:
    prefixed = False
    for name, value in zip(attributes[::2], attributes[1::2], strict=True):
        if ":" not in name:
            if name != "xmlns":
                element.set(_name(name, ""), value)
        elif not name.startswith("xmlns:"):
            prefixed = True
            element.set(_name(name, _uri(name, scope)), value)
    # Expat refuses equal spellings, but does not know two prefixes of one namespace.
    if prefixed and len({each.name for each in element.attributes}) < len(element.attributes):
        raise BadItem(f"an attribute of '{element.name}' is given twice")


def _shown(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."
