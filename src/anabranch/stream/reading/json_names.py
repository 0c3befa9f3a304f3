"""Keys of JSON as names of XML: each key has one name, and each name is that of one key at most (LAWS 7.1).

A key that is a name of XML (`xml_names.py`) is its own name.
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
from anabranch.stream.xml_names import FIRST, INNER, NAME

_CODE = "[0-9A-F]{4}|[0-9A-F]{6}"
_CAN_BE_FIRST, _CAN_BE_INNER = re.compile(f"[{FIRST}]"), re.compile(f"[{INNER}]")
_ODD = re.compile(rf"[^{INNER}]|\A[^{FIRST}]|\A_(?=x_\Z)|_(?=x({_CODE})(?:_|[^{INNER}]))")
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


def named(step: str) -> str:
    """A step as it is written in a query or a setting, as a name of XML; `@` stands in front of an attribute."""
    return step if NAME.fullmatch(step.removeprefix("@")) else step_of_key(step)


def is_spelled(name: str, written: str) -> bool:
    """Whether a name of XML, as `named` gives it, was written so: with letters that no name has."""
    return "_x" in name and not NAME.fullmatch(written) and step_of_key(written) == name


def _step(key: str) -> str:
    if key.startswith("@"):
        inner = key[1:]
        return f"@{_ATTRIBUTES.get(inner) or _name(inner)}"
    return _name(key)


def _key(step: str) -> str | None:
    mark, name = ("@", step[1:]) if step.startswith("@") else ("", step)
    if not NAME.fullmatch(name):
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
