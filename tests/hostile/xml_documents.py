"""XML: whole documents with entities, other encodings, other roots, or no end."""

from __future__ import annotations

from collections.abc import Iterator

from hostile.attacks import Attack, Outcome
from hostile.streams import whole_document

_LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
_LAUGHING = f'<!DOCTYPE r [<!ENTITY l0 "lol">{_LAUGHS}]><r><i>&l9;</i></r>'
_PARAMETERS = "<!DOCTYPE r [<!ENTITY % a \"<!ENTITY b 'bbbb'>\">%a;]><r><i>&b;</i></r>"
ENTITIES = {
    "a billion laughs": _LAUGHING.encode(),
    "a billion laughs in UTF-16": _LAUGHING.encode("utf-16"),
    "a billion laughs in an attribute": _LAUGHING.replace("<i>&l9;</i>", '<i a="&l9;"/>').encode(),
    "a billion laughs behind an instruction": b"<?p?>" + _LAUGHING.encode(),
    "a billion laughs behind a comment": b"<!-- x -->\n" + _LAUGHING.encode(),
    "a billion laughs behind a mark": b"\xef\xbb\xbf" + _LAUGHING.encode(),
    "a billion laughs of references": _LAUGHING.replace("lol", "&#108;&#111;&#108;").encode(),
    "a quadratic blow-up": b'<!DOCTYPE r [<!ENTITY a "'
    + b"a" * 100_000
    + b'">]><r><i>'
    + b"&a;" * 10_000
    + b"</i></r>",
    "an entity that is itself": b'<!DOCTYPE r [<!ENTITY a "&b;"><!ENTITY b "&a;">]><r><i>&a;</i></r>',
    "a file as an entity": b'<!DOCTYPE r [<!ENTITY a SYSTEM "file:///etc/passwd">]><r><i>&a;</i></r>',
    "an address as an entity": b'<!DOCTYPE r [<!ENTITY a SYSTEM "http://127.0.0.1:9/">]><r><i>&a;</i></r>',
    "a parameter entity": _PARAMETERS.encode(),
    "a DTD that never ends": b"<!DOCTYPE r [" + b"<!ENTITY a 'a'>" * 20_000,
}
SET_ASIDE = {
    "UTF-16": "<r><i>good</i></r>".encode("utf-16"),
    "text behind the root": b"<r><i/></r>hello",
    "a DOCTYPE within the root": b"<r><!DOCTYPE r><i/></r>",
    "an item of 50,000 levels": b"<r>" + b"<i>" * 50_000,
    "an item that never ends": b"<r><i>" + b"<a>1</a>" * 200_000,
    "a root that closes as another": b"<r><i/></q>",
    "a root's attribute twice": b'<r a="1" a="2"><i/></r>',
    "a name of a megabyte": b"<r><i><" + b"n" * 1_000_000 + b"/></i></r>",
    "an undefined entity": b"<r><i>&x;</i></r>",
}
ANSWERED = {
    "a DOCTYPE behind the root": b"<r><i/></r><!DOCTYPE r>",
    "two roots": b"<r><i/></r><r><i/></r>",
    "an unparsed entity": b'<!DOCTYPE r [<!ENTITY a SYSTEM "x" NDATA n>]><r><i/></r>',
    "a notation": b'<!DOCTYPE r [<!NOTATION n SYSTEM "/bin/sh">]><r><i/></r>',
    "attributes by default": b'<!DOCTYPE r [<!ATTLIST i a CDATA "default">]><r><i/></r>',
    "a public DTD": b'<!DOCTYPE r PUBLIC "-//x" "http://127.0.0.1:9/x.dtd"><r><i/></r>',
    "an external DTD": b'<!DOCTYPE r SYSTEM "file:///etc/passwd"><r><i/></r>',
    "an external parameter entity": b'<!DOCTYPE r [<!ENTITY % a SYSTEM "file:///etc/passwd">%a;]><r><i/></r>',
    "a root that never ends": b"<r>" + b"<i/>" * 1_000,
    "a mark": b"\xef\xbb\xbf<r><i/></r>",
    "a declaration": b'<?xml version="1.0" encoding="UTF-8" standalone="yes"?><r><i/></r>',
    "a root with a namespace": b'<r xmlns="urn:x"><i/></r>',
    "100,000 items": b"<r>" + b"<i/>" * 100_000 + b"</r>",
}


def attacks() -> Iterator[Attack]:
    """Documents that are a stream each."""
    groups: tuple[tuple[dict[str, bytes], Outcome], ...] = (
        (ENTITIES, "set aside"),
        (SET_ASIDE, "set aside"),
        (ANSWERED, "answered"),
    )
    for found, expected in groups:
        for name, data in found.items():
            yield Attack("a document of XML", name, whole_document(data), expected)
