"""JSON: lines that are too deep, wide or long, no JSON, or JSON that readers disagree about."""

from __future__ import annotations

from collections.abc import Iterator

from hostile.attacks import Attack, Outcome
from hostile.streams import among_lines

SET_ASIDE = {
    "a command of a terminal in a text": b'{"b": "\\u001b[2J\\u001b]0;x\\u0007"}',
    "a text with a NUL": b'{"b": "\\u0000"}',
    "a key with a NUL": b'{"\\u0000": 1}',
    "arrays of depth 101": b'{"a": ' + b"[" * 101 + b"]" * 101 + b"}",
    "arrays of depth 100,000": b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "objects of depth 101": b'{"a": ' * 101 + b"1" + b"}" * 101,
    "objects of depth 100,000": b'{"a": ' * 100_000 + b"1" + b"}" * 100_000,
    "a million opening brackets": b"[" * 1_000_000,
    "200,000 members": b'{"a": [' + b",".join([b"1"] * 200_000) + b"]}",
    "200,000 keys": b"{" + b",".join(b'"k%d": 1' % n for n in range(200_000)) + b"}",
    "a key of ten thousand characters": b'{"' + b"k" * 10_000 + b'": 1}',
    "a text of five megabytes": b'{"a": "' + b"x" * 5_000_000 + b'"}',
    "a key twice": b'{"a": 1, "a": 2}',
    "a key twice, once with an escape": b'{"a": 1, "\\u0061": 2}',
    "half a character": b'{"a": "\\ud800"}',
    "halves in the wrong order": b'{"a": "\\udc00\\ud800"}',
    "half a character as a key": b'{"\\udfff": 1}',
    "an escape that is none": b'{"a": "\\x41"}',
    "an escape cut off": b'{"a": "\\u00"}',
    "a control character in a text": b'{"a": "\x07"}',
    "a tabulator in a text": b'{"a": "\t"}',
    "a byte that is no UTF-8": b'{"a": "\xff"}',
    "overlong UTF-8": b'{"a": "\xc0\xbc"}',
    "UTF-16": '{"a": 1}'.encode("utf-16"),
    "a text that never ends": b'{"a": "' + b"x" * 100_000,
    "an object that never ends": b'{"a": 1',
    "a comma too many": b'{"a": 1,}',
    "a comma too many in an array": b'{"a": [1,]}',
    "no comma": b'{"a": 1 "b": 2}',
    "no colon": b'{"a" 1}',
    "a key without quotes": b"{a: 1}",
    "single quotes": b"{'a': 1}",
    "a comment": b'{"a": 1 /* x */}',
    "a comment of a line": b'{"a": 1} // x',
    "two values": b'{"a": 1} {"a": 2}',
    "NaN": b'{"a": NaN}',
    "Infinity": b'{"a": -Infinity}',
    "a number with a plus": b'{"a": +1}',
    "a number with a leading zero": b'{"a": 01}',
    "a number that begins with a point": b'{"a": .5}',
    "a number that ends with a point": b'{"a": 5.}',
    "hexadecimal": b'{"a": 0xFF}',
    "a number with underlines": b'{"a": 1_000}',
    "an exponent without digits": b'{"a": 1e}',
    "True": b'{"a": True}',
    "undefined": b'{"a": undefined}',
    "a function": b'{"a": function() {}}',
    "text without quotes": b"hello",
    "XML": b"<i/>",
    "an accent that is none": b'{"$accent": {"explode": 1}}',
    "an accent that is a number": b'{"$accent": 5}',
    "an update in a stream that is not edited": b'{"$replace": {"target": "1"}}',
}
ANSWERED = {
    "an unknown control": b'{"$shutdown": {}}',
    "objects of depth 40": b'{"b": ' * 40 + b"1" + b"}" * 40,
    "arrays of depth 40": b'{"b": ' + b"[" * 40 + b"]" * 40 + b"}",
    "20,000 arrays in an array": b'{"b": [' + b",".join([b"[]"] * 20_000) + b"]}",
    "20,000 members": b'{"b": [' + b",".join([b"1"] * 20_000) + b"]}",
    "a key that is empty": b'{"": 1}',
    "a key like a path": b'{"../../etc/passwd": 1}',
    "a key like a prototype": b'{"__proto__": {"a": 1}, "constructor": 1}',
    "a key with quotes and brackets": b'{"\\"]<>&\'": 1}',
    "a number of ten thousand digits": b'{"a": ' + b"9" * 10_000 + b"}",
    "a number of a million digits": b'{"a": ' + b"9" * 1_000_000 + b"}",
    "a number with a million decimals": b'{"a": 0.' + b"3" * 1_000_000 + b"}",
    "1e999999999": b'{"a": 1e999999999}',
    "1e-999999999": b'{"a": 1e-999999999}',
    "minus zero": b'{"a": -0}',
    "a text of 500,000 escapes": b'{"b": "' + b"\\u00e9" * 500_000 + b'"}',
    "a character of two halves": b'{"b": "\\ud83d\\ude00"}',
    "blanks without end": b'{"b":' + b" " * 1_000_000 + b"1}",
    "a script in a text": b'{"b": "<script>alert(1)</script>"}',
}
OTHERS = {
    "null": b"null",
    "a number alone": b"5",
    "a text alone": b'"x"',
    "an array alone": b"[1, 2]",
}


def attacks() -> Iterator[Attack]:
    """Lines of JSON among good ones."""
    groups: tuple[tuple[dict[str, bytes], Outcome], ...] = (
        (SET_ASIDE, "set aside"),
        (ANSWERED, "answered"),
        (OTHERS, "set aside"),
    )
    for found, expected in groups:
        for name, data in found.items():
            yield Attack("a line of JSON", name, among_lines(data, is_json=True), expected)
