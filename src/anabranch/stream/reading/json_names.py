"""Keys of JSON as names of XML: each key has one name, and each name is that of one key at most (LAWS 7.1).

A key that is a name of XML is its own name.
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

Guarantees: `key_of_step(step_of_key(key)) == key` for all keys of characters that XML has, and
`step_of_key(key_of_step(step)) == step` for all steps that have a key; time is linear in characters.
"""

from __future__ import annotations

import re
from functools import lru_cache

from anabranch.stream.limits import LONGEST_NAME

_FIRST = (
    "A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d"
    "\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_INNER = rf"{_FIRST}\-.0-9\u00b7\u0300-\u036f\u203f-\u2040"
_CODE = "[0-9A-F]{4}|[0-9A-F]{6}"
_NAME = re.compile(rf"[{_FIRST}][{_INNER}]*\Z")
_CAN_BE_FIRST, _CAN_BE_INNER = re.compile(f"[{_FIRST}]"), re.compile(f"[{_INNER}]")
_ODD = re.compile(rf"[^{_INNER}]|\A[^{_FIRST}]|\A_(?=x_\Z)|_(?=x({_CODE})(?:_|[^{_INNER}]))")
"""What may have to be escaped; an underscore may seem to begin an escape with the one behind it."""
_ESCAPE = re.compile(f"_x({_CODE})_")
NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""The characters that XML does not have."""
_EMPTY = "_x_"
_ATTRIBUTES = {"xmlns": "_x0078_mlns", "_x0078_mlns": "_x005F_x0078_mlns"}
_CACHED = 4096


def step_of_key(key: str) -> str:
    """The step that leads to the value of a key: its name, with `@` in front for an attribute."""
    return _cached_step(key) if len(key) <= LONGEST_NAME else _step(key)


def key_of_step(step: str) -> str | None:
    """The key that a step leads to; None for a name that no key has."""
    return _cached_key(step) if len(step) <= LONGEST_NAME else _key(step)


def _step(key: str) -> str:
    if key.startswith("@"):
        inner = key[1:]
        return f"@{_ATTRIBUTES.get(inner) or _name(inner)}"
    return _name(key)


def _key(step: str) -> str | None:
    mark, name = ("@", step[1:]) if step.startswith("@") else ("", step)
    if not _NAME.match(name):
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
