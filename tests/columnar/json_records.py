"""Random records of JSON: of one random shape each stream, spelled in all the ways that JSON allows, and nearly so."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from random import Random

NAMES = [
    "a", "b", "ab", "abc", "abcdefg", "abcdefgh", "abcdefghi", "abcdefghijklmnopq", "abcdefghijklmnopr", "é", "名前",
    "n-1", "x.y", "_", "true", "item",
]  # fmt: skip
"""Keys that are names of XML."""
ODD_NAMES = [
    "odd key", "odd kex", "2026", "a/b", "", "$ref", "x:y", "#number", "[]a", "*", ".", "_x0020_", "_x_", '"', '\\"',
    "\\", "a\\", "\n", "\r", "\t", "<b>", "]]>", "&amp;", "😀", "țară", "\x7f", "\u2028", " ", "abcdefg ", "abcdefgh/",
]  # fmt: skip
"""Keys that are none."""
NUMBERS = [
    "0", "-0", "1", "-1", "7", "12", "130.50", "0.5", "-0.25", "1e3", "1E+3", "2.5e-7", "0e0", "-0.0", "100",
    "123456789012345", "1234567890123456", "0.12345678901234", "0.123456789012345678901", "999999999999999",
    "12345678901234567890123", "1.000000000000000000000", "0.000000000000001",
]  # fmt: skip
PLAIN_TEXTS = [
    "x", "abc", "Berlin", "a longer text of some words", " ", "  x  ", "5", "+5", ".5", "5.", "-", "1e3", "NaN", "'",
    "/", "\\", "a\\b", "{}", "[1, 2]", "a:b,c", "ä", "é" * 9, "日本語", "😀", "x😀y", "\x80", "\x85",
    "\u2028", "\ufeff", "\ud7ff", "\ue000", "\ufffd", "\U0001fffe", "\U0010ffff", "seven77", "eight888", "nine99999",
    "~!#$%()*+,-./:;=?@[]^_`{|}",
]  # fmt: skip
OTHER_TEXTS = [
    "<", "a<b", ">", "&", "&amp;", '"', 'say "x"', "\t", "a\nb", "\r", "\x7f", "\b", "\0", "\x1f", "\ufffe", "\uffff",
    "]]>", "eight88<", "seven77&more",
]  # fmt: skip
HOSTILE = [
    b"\0", b"\t", b"\r", b"\x0b", b"\x0c", b" ", b"\x7f", b"\xff", b"\xc3", b"\xc0\xbc", b"\xc1\xbf", b"\xed\xa0\x80",
    b"\xed\xbf\xbf", b"\xe0\x80\x80", b"\xe0\x9f\xbf", b"\xef\xbb\xbf", b"\xef\xbf\xbe", b"\xef\xbf\xbf",
    b"\xf0\x80\x80\x80", b"\xf0\x8f\xbf\xbf", b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\x80", b"\xe2\x82",
    b"\xc2\xa0", b"\xe2\x82\xac", b'"', b"\\", b"\\u", b"\\u0061", b"\\ud800", b"\\udc00", b"\\ud83d\\ude00",
    b"\\uD83D", b"\\u00e4", b"\\u003c", b"\\u0000", b"\\u00g0", b"\\/", b"\\\\", b"\\n", b"\\x", b'\\"', b"\\b",
    b"\\f", b"{", b"}", b"[", b"]", b"{}", b"[]", b"[[]]", b",", b":", b",,", b"null", b"true", b"false", b"nul",
    b"True", b"NaN", b"Infinity", b"-Infinity", b"0", b"1", b"-", b"+", b".", b"e", b"E5", b"1.", b".5", b"01",
    b"-01", b"1e", b"1e+", b"0x1", b"<", b">", b"&", b"/", b"//", b"'", b'"a": 1,', b'"a"', b'"@a": 1,', b'"$at": 1,',
    b'"": 0,', b',"zz": 0', b"1_0", b"\xd9\xa1",
]  # fmt: skip


@dataclass
class Shape:
    """What records of one stream have in common at one place."""

    name: str
    attributes: list[str] = field(default_factory=list)
    children: list[Shape] = field(default_factory=list)
    repeated: bool = False
    often: float = 1.0
    """How often it is there."""
    nested: int = 0
    """How deep its arrays stand in arrays."""


def random_shape(random: Random, depth: int = 0) -> Shape:
    """The shape of an object, with others in it."""
    shape = Shape("item")
    names = NAMES if random.random() < 0.5 else NAMES + ODD_NAMES
    shape.attributes = random.sample(names, random.choice((0, 0, 1, 2)))
    for name in random.sample(names, random.randint(0 if depth else 1, 8 if depth == 0 else 3)):
        child = random_shape(random, depth + 1) if depth < 4 and random.random() < 0.25 else Shape(name)
        child.name, child.repeated = name, random.random() < 0.2
        child.often = random.choice((1.0, 1.0, 0.9, 0.5, 0.1))
        child.nested = random.choice((1, 2)) if child.repeated and random.random() < 0.4 else 0
        shape.children.append(child)
    return shape


@dataclass
class Writer:
    """Writes records of a shape; `odd` is how often something stands in them that is correct and not plain."""

    random: Random
    odd: float = 0.0
    loose: bool = False
    """Whether there is white space between all tokens."""

    def space(self) -> str:
        return self.random.choice(("", "", " ", "  ", "\t", "\r", " \t ")) if self.loose else ""

    def record(self, shape: Shape) -> bytes:
        return (self.space() + self.element(shape) + self.space()).encode("utf-8", "surrogatepass")

    def element(self, shape: Shape) -> str:
        if self.random.random() < self.odd:
            return self.scalar() if shape.children or shape.attributes else "{}"
        if not shape.children and not shape.attributes:
            return self.scalar()
        if shape.name != "item" and self.random.random() < 0.05:
            return self.random.choice(("null", '""', "{}"))
        attributes = [(f"@{name}", self.scalar()) for name in shape.attributes if self.random.random() < 0.9]
        children = [(each.name, self.value(each)) for each in shape.children if self.random.random() < each.often]
        if self.random.random() < 0.3:
            self.random.shuffle(attributes)
            self.random.shuffle(children)
        entries = attributes + children
        if self.random.random() < self.odd:
            self.random.shuffle(entries)
        if self.random.random() < self.odd:
            name = self.random.choice((*NAMES, *ODD_NAMES, "$at", "$mutable", "zz", "a b", "@zz", "@", "\x01"))
            entries.insert(self.random.randint(0, len(entries)), (name, self.scalar()))
        body = f"{self.space()},{self.space()}".join(self.entry(*each) for each in entries)
        return f"{{{self.space()}{body}{self.space()}}}"

    def entry(self, key: str, value: str) -> str:
        key = json.dumps(key, ensure_ascii=self.random.random() < self.odd)
        key = key.replace("/", "\\/") if self.random.random() < self.odd else key
        return f"{key}{self.space()}:{self.space()}{value}"

    def value(self, shape: Shape) -> str:
        count = self.random.choice((0, 1, 2, 5)) if shape.repeated else self.random.choice((None, None, None, 0, 1))
        if self.random.random() < self.odd:
            count = 2
        if count is None or (shape.repeated and self.random.random() < 0.3):
            return self.element(shape)
        return self.array(shape, count)

    def array(self, shape: Shape, count: int) -> str:
        """An array of so many elements, or, as its shape says, of arrays of them."""
        inner = replace(shape, nested=shape.nested - 1)
        of = self.random.choice((0, 1, 2, 3)) if shape.nested else 0
        written = (self.array(inner, of) if shape.nested else self.element(shape) for _ in range(count))
        members = f"{self.space()},{self.space()}".join(written)
        return f"[{self.space()}{members}{self.space()}]"

    def scalar(self) -> str:
        match self.random.randrange(6):
            case 0 | 1:
                return self.random.choice(NUMBERS)
            case 2:
                return str(self.random.randint(-(10**6), 10**6) / 10 ** self.random.randint(0, 4))
            case 3:
                return self.random.choice(("true", "false", "null", '""'))
            case _:
                texts = OTHER_TEXTS if self.random.random() < self.odd else PLAIN_TEXTS
                spelled = json.dumps(self.random.choice(texts), ensure_ascii=self.random.random() < 0.2)
                return spelled.replace("/", "\\/") if self.random.random() < 0.1 else spelled


def edited(line: bytes, random: Random) -> bytes:
    """A line with a few bytes put in, taken out, replaced or moved."""
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        at, other = sorted((random.randint(0, len(line)), random.randint(0, len(line))))
        match random.randrange(8):
            case 0 | 1:
                line = line[:at] + random.choice(HOSTILE) + line[at:]
            case 2 | 3:
                line = line[:at] + random.choice(HOSTILE) + line[at + random.choice((1, 1, 2, 5)) :]
            case 4:
                line = line[:at] + line[at + random.choice((1, 1, 1, 2, 5)) :]
            case 5:
                line = line[:at] + bytes([random.randrange(256)]) + line[at + 1 :]
            case 6:
                line = line[:at] + line[other:] if random.random() < 0.5 else line[:other] + line[at:]
            case _:
                short = line[at : min(other, at + 12)]
                place = random.randint(0, len(line))
                line = line[:place] + short + line[place:]
    return line.replace(b"\n", b" ")
