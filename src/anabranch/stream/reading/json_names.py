"""Keys of JSON as names of XML: each key has one name, and each name is that of one key at most (LAWS 7.1).

A key that is a name of XML, as its fourth edition has them, is its own name.
In any other key, what cannot stand in a name is escaped as SQL/XML does it (ISO 9075-14):

    odd key     odd_x0020_key
    2026        _x0032_026
    a/b         a_x002F_b
    x:y         x_x003A_y
    (empty)     _x_
    a_x0020_    a_x005F_x0020_

`_xHHHH_` is the character of that number, with six digits beyond U+FFFF.
An underscore that would begin an escape is escaped itself, so that what a name stands for is never in doubt; texts such
as `_x0041_`, whose character needs no escape, are none.

So trees, paths, states and columns hold names of XML only, whatever the keys are; keys are turned into names where JSON
is read or looked into, and back where it is written.
A key with `@` in front is an attribute, and its *step* has the `@`, too, as in paths: `@odd key` is `@odd_x0020_key`.
No attribute can be called `xmlns`, so that is `_x0078_mlns`.
Queries and settings may write names with letters that no name has, as the `ț` of `/țară`, and mean that key (`named`).

Guarantees: `key_of_step(step_of_key(key)) == key` for all keys of characters that XML has, and
`step_of_key(key_of_step(step)) == step` for all steps that have a key; time is linear in characters.
"""

from __future__ import annotations

import re
from functools import lru_cache

from anabranch.stream.limits import LONGEST_NAME

# --- names of XML 1.0, with the characters that its fourth edition lists (appendix B) ---
# The fifth edition has more, but parsers in use, expat among them, refuse these.

_FIRST_RANGES = """
    C0-D6 D8-F6 F8-131 134-13E 141-148 14A-17E 180-1C3 1CD-1F0 1F4-1F5 1FA-217 250-2A8 2BB-2C1 386 388-38A 38C
    38E-3A1 3A3-3CE 3D0-3D6 3DA 3DC 3DE 3E0 3E2-3F3 401-40C 40E-44F 451-45C 45E-481 490-4C4 4C7-4C8 4CB-4CC 4D0-4EB
    4EE-4F5 4F8-4F9 531-556 559 561-586 5D0-5EA 5F0-5F2 621-63A 641-64A 671-6B7 6BA-6BE 6C0-6CE 6D0-6D3 6D5 6E5-6E6
    905-939 93D 958-961 985-98C 98F-990 993-9A8 9AA-9B0 9B2 9B6-9B9 9DC-9DD 9DF-9E1 9F0-9F1 A05-A0A A0F-A10 A13-A28
    A2A-A30 A32-A33 A35-A36 A38-A39 A59-A5C A5E A72-A74 A85-A8B A8D A8F-A91 A93-AA8 AAA-AB0 AB2-AB3 AB5-AB9 ABD AE0
    B05-B0C B0F-B10 B13-B28 B2A-B30 B32-B33 B36-B39 B3D B5C-B5D B5F-B61 B85-B8A B8E-B90 B92-B95 B99-B9A B9C B9E-B9F
    BA3-BA4 BA8-BAA BAE-BB5 BB7-BB9 C05-C0C C0E-C10 C12-C28 C2A-C33 C35-C39 C60-C61 C85-C8C C8E-C90 C92-CA8 CAA-CB3
    CB5-CB9 CDE CE0-CE1 D05-D0C D0E-D10 D12-D28 D2A-D39 D60-D61 E01-E2E E30 E32-E33 E40-E45 E81-E82 E84 E87-E88 E8A
    E8D E94-E97 E99-E9F EA1-EA3 EA5 EA7 EAA-EAB EAD-EAE EB0 EB2-EB3 EBD EC0-EC4 F40-F47 F49-F69 10A0-10C5 10D0-10F6
    1100 1102-1103 1105-1107 1109 110B-110C 110E-1112 113C 113E 1140 114C 114E 1150 1154-1155 1159 115F-1161 1163
    1165 1167 1169 116D-116E 1172-1173 1175 119E 11A8 11AB 11AE-11AF 11B7-11B8 11BA 11BC-11C2 11EB 11F0 11F9
    1E00-1E9B 1EA0-1EF9 1F00-1F15 1F18-1F1D 1F20-1F45 1F48-1F4D 1F50-1F57 1F59 1F5B 1F5D 1F5F-1F7D 1F80-1FB4
    1FB6-1FBC 1FBE 1FC2-1FC4 1FC6-1FCC 1FD0-1FD3 1FD6-1FDB 1FE0-1FEC 1FF2-1FF4 1FF6-1FFC 2126 212A-212B 212E
    2180-2182 3007 3021-3029 3041-3094 30A1-30FA 3105-312C 4E00-9FA5 AC00-D7A3
"""
_INNER_RANGES = """
    B7 2D0-2D1 300-345 360-361 387 483-486 591-5A1 5A3-5B9 5BB-5BD 5BF 5C1-5C2 5C4 640 64B-652 660-669 670 6D6-6E4
    6E7-6E8 6EA-6ED 6F0-6F9 901-903 93C 93E-94D 951-954 962-963 966-96F 981-983 9BC 9BE-9C4 9C7-9C8 9CB-9CD 9D7
    9E2-9E3 9E6-9EF A02 A3C A3E-A42 A47-A48 A4B-A4D A66-A71 A81-A83 ABC ABE-AC5 AC7-AC9 ACB-ACD AE6-AEF B01-B03 B3C
    B3E-B43 B47-B48 B4B-B4D B56-B57 B66-B6F B82-B83 BBE-BC2 BC6-BC8 BCA-BCD BD7 BE7-BEF C01-C03 C3E-C44 C46-C48
    C4A-C4D C55-C56 C66-C6F C82-C83 CBE-CC4 CC6-CC8 CCA-CCD CD5-CD6 CE6-CEF D02-D03 D3E-D43 D46-D48 D4A-D4D D57
    D66-D6F E31 E34-E3A E46-E4E E50-E59 EB1 EB4-EB9 EBB-EBC EC6 EC8-ECD ED0-ED9 F18-F19 F20-F29 F35 F37 F39 F3E-F3F
    F71-F84 F86-F8B F90-F95 F97 F99-FAD FB1-FB7 FB9 20D0-20DC 20E1 3005 302A-302F 3031-3035 3099-309A 309D-309E
    30FC-30FE
"""
"""Ranges of hexadecimal numbers, those of ASCII left out: what a name can begin with, and what else it can hold."""


def _characters(ranges: str) -> str:
    """Ranges of numbers as they stand in a class of a pattern."""
    return "".join("-".join(chr(int(number, 16)) for number in each.split("-")) for each in ranges.split())


_FIRST = f"A-Z_a-z{_characters(_FIRST_RANGES)}"
"""The characters that a name without prefix can begin with, as they stand in a class of a pattern."""
_INNER = rf"{_FIRST}\-.0-9{_characters(_INNER_RANGES)}"
"""The characters that it can hold."""
_NAME = re.compile(f"[{_FIRST}][{_INNER}]*")
"""A name without prefix."""

# --- keys ---

_CODE = "[0-9A-F]{4}|[0-9A-F]{6}"
_CAN_BE_FIRST, _CAN_BE_INNER = re.compile(f"[{_FIRST}]"), re.compile(f"[{_INNER}]")
_ODD = re.compile(rf"[^{_INNER}]|\A[^{_FIRST}]|\A_(?=x_\Z)|_(?=x({_CODE})(?:_|[^{_INNER}]))")
"""What may have to be escaped; an underscore may seem to begin an escape with the one behind it."""
_ESCAPE = re.compile(f"_x({_CODE})_")
NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""The characters that XML does not have."""
MEMBER = "member"
"""The name of the members of an array that is a member of an array itself; others have that of their key."""
_EMPTY = "_x_"
_ATTRIBUTES = {"xmlns": "_x0078_mlns", "_x0078_mlns": "_x005F_x0078_mlns"}
_CACHED = 4096


def step_of_key(key: str) -> str:
    """The step that leads to the value of a key: its name, with `@` in front for an attribute."""
    return _cached_step(key) if len(key) <= LONGEST_NAME else _step(key)


def key_of_step(step: str) -> str | None:
    """The key that a step leads to; None for a name that no key has."""
    return _cached_key(step) if len(step) <= LONGEST_NAME else _key(step)


def is_name(text: str) -> bool:
    """Whether a text is a name of XML without a prefix."""
    return _NAME.fullmatch(text) is not None


def named(step: str) -> str:
    """A step as it is written in a query or a setting, as a name of XML; `@` stands in front of an attribute."""
    return step if _NAME.fullmatch(step.removeprefix("@")) else step_of_key(step)


def is_spelled(name: str, written: str) -> bool:
    """Whether a name of XML, as `named` gives it, was written so: with letters that no name has."""
    return "_x" in name and not _NAME.fullmatch(written) and step_of_key(written) == name


def _step(key: str) -> str:
    if key.startswith("@"):
        inner = key[1:]
        return f"@{_ATTRIBUTES.get(inner) or _name(inner)}"
    return _name(key)


def _key(step: str) -> str | None:
    mark, name = ("@", step[1:]) if step.startswith("@") else ("", step)
    if not _NAME.fullmatch(name):
        return None
    known = (f"@{inner}" for inner, given in _ATTRIBUTES.items() if mark and given == name)
    key = next(known, f"{mark}{_unescaped(name)}")
    return key if step_of_key(key) == step else None


_cached_step = lru_cache(_CACHED)(_step)
_cached_key = lru_cache(_CACHED)(_key)


def _name(key: str) -> str:
    return _ODD.sub(_escaped, key) if key else _EMPTY


def _escaped(found: re.Match[str]) -> str:
    char, code = found[0], found[1]
    if code is not None and _meant(code, is_first=found.start() == 0) is None:
        return char
    return f"_x{ord(char):04X}_" if ord(char) <= 0xFFFF else f"_x{ord(char):06X}_"


def _unescaped(name: str) -> str:
    if name == _EMPTY:
        return ""
    found: list[str] = []
    at = 0
    while escape := _ESCAPE.search(name, at):
        meant = _meant(escape[1], is_first=escape.start() == 0)
        end = escape.start() if meant is not None else escape.start() + 1
        found += (name[at:end], meant or "")
        at = escape.end() if meant is not None else end
    return "".join((*found, name[at:]))


def _meant(code: str, *, is_first: bool) -> str | None:
    """The character that an escape stands for; None where the character needs none, so that there is no escape."""
    number = int(code, 16)
    if number > 0x10FFFF or (len(code) > 4) != (number > 0xFFFF):
        return None
    char = chr(number)
    needs_none = (_CAN_BE_FIRST if is_first else _CAN_BE_INNER).match(char) and char != "_"
    return None if needs_none or NOT_XML.match(char) else char
