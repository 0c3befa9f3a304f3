"""XQuery: texts that explode, climb out, or ask for more than an item is worth."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from anabranch.errors import AnabranchError
from anabranch.stream.reading.source import Source
from hostile.attacks import Attack, Carry, Outcome
from hostile.streams import answered

_STREAM = 'for $i in stream("s")/*/* '
_ITEM = b"<i><a>41</a><b>" + b"a" * 2_000 + b"!</b></i>\n"


def _asked(text: str) -> Carry:
    def carry_out(folder: Path) -> Outcome:
        source = Source("s", folder / "s", format="lines", root="r")
        try:
            found, dead = answered(folder, _ITEM, source, {"q": text, "other": _STREAM + "return $i/a"})
        except AnabranchError:
            return "refused"
        assert found["other"].count("41") == 1, "the other query does not notice"
        return "set aside" if dead else "answered"

    return carry_out


REFUSED = {
    "functions that call twice": "".join(
        f"declare function local:f{n}($x) {{ local:f{n - 1}($x) + local:f{n - 1}($x) }}; "
        if n
        else "declare function local:f0($x) { $x }; "
        for n in range(40)
    )
    + _STREAM
    + "return local:f39(1)",
    "parentheses 10,000 deep": "(" * 10_000 + "1" + ")" * 10_000,
    "constructors 10,000 deep": "<a>{" * 10_000 + "1" + "}</a>" * 10_000,
    "elements 10,000 deep": "<a>" * 10_000 + "</a>" * 10_000,
    "predicates 10,000 deep": _STREAM + "return $i/a" + "[a" * 10_000 + "]" * 10_000,
    "conditions 10,000 deep": "if (1) then " * 10_000 + "1" + " else 1" * 10_000,
    "10,000 loops": _STREAM + "for $x in 1 " * 10_000 + "return 1",
    "a comment that never ends": "(:" + "x" * 10_000,
    "a text that never ends": _STREAM + 'where $i/b = "' + "x" * 10_000,
    "a query of ten megabytes": _STREAM + "return (" + "1," * 5_000_000 + "1)",
    "a name of a megabyte": f"{_STREAM} return $i/{'n' * 1_000_000}",
    "a number of a million digits": f"{_STREAM} where $i/a > {'9' * 1_000_000} return $i",
    "nothing": "",
    "a NUL": _STREAM + "return \x00",
    "half a character": _STREAM + 'return "\ud800"',
    "a file by doc()": 'doc("/etc/passwd")',
    "an address by doc()": 'doc("http://127.0.0.1:9/")',
    "a file by unparsed-text()": 'unparsed-text("/etc/passwd")',
    "the environment": 'environment-variable("HOME")',
    "a collection": 'collection("file:///etc")',
    "a transformation": "transform(map { })",
    "a module": 'import module namespace m = "http://127.0.0.1:9/"; 1',
    "a schema": 'import schema "http://127.0.0.1:9/"; 1',
    "an extension": "(# x:eval #) { 1 }",
    "a foreign function": 'declare namespace p = "java:java.lang.Runtime"; p:exit(1)',
    "Python's functions": '__import__("os")',
    "an unknown function": 'system("reboot")',
    "recursion": "declare function local:f($x) { local:f($x) }; local:f(1)",
    "recursion over two": "declare function local:f($x) { local:g($x) }; declare function local:g($x) { local:f($x) }; "
    "local:f(1)",
    "entities": "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>",
    "an undefined entity": "<a>&laugh;</a>",
    "a control element": '<s:accent xmlns:s="urn:anabranch:stream"/>',
    "a stream that is not there": 'stream("../../etc/passwd")/r/i',
    "a pattern of a megabyte": _STREAM + f'where matches($i/b, "{"a?" * 500_000}") return 1',
    "a window of no size": 'for $w in stream("s")/*/* |count 0| return 1',
    "a window with a step of nothing": 'for $w in stream("s")/*/* |a diff 10 step 0| return 1',
    "a window of a negative size": 'for $w in stream("s")/*/* |a diff -5| return 1',
}
SET_ASIDE = {
    "a pattern with a reference back": _STREAM + 'where matches($i/b, "(a)\\1") return 1',
    "a pattern that is none": _STREAM + 'where matches($i/b, "(") return 1',
    "a division by zero": _STREAM + "return 1 div 0",
    "a text as a number": _STREAM + "return $i/b + 1",
    "a sequence of a billion": _STREAM + "return count((1 to 1000000000)[. mod 2 = 0])",
    "a sequence of sequences": _STREAM + "return count(for $x in 1 to 100000, $y in 1 to 100000 return $x * $y)",
    "doubled texts": _STREAM
    + "let $a := string($i/b) "
    + " ".join("let $a := concat($a, $a)" for _ in range(30))
    + " return string-length($a)",
    "doubled elements": _STREAM
    + "let $a := $i "
    + " ".join("let $a := <d>{ $a, $a }</d>" for _ in range(30))
    + " return $a",
    "doubled sequences": _STREAM
    + "let $a := $i/a "
    + " ".join("let $a := ($a, $a)" for _ in range(30))
    + " return count($a)",
    "a text joined with itself": _STREAM + 'return string-length(string-join(for $x in 1 to 100000000 return "xx"))',
    "codepoints without end": _STREAM + "return codepoints-to-string(1 to 100000000)",
    "a power": _STREAM + "return " + " * ".join(["1e300"] * 5) + " idiv 1",
    "a cast": _STREAM + 'return xs:date("99999999999999999999-01-01")',
    "an error of its own": _STREAM + 'return error((), "x")',
}
ANSWERED = {
    "a repeated replacement": _STREAM + 'return replace($i/b, "a", string($i/b))',
    "eight loops over one stream": "for " + ", ".join(f'$x{n} in stream("s")/*/*' for n in range(8)) + " return 1",
    "comments 10,000 deep": "(:" * 10_000 + ":)" * 10_000 + "1",
    "a pattern that explodes": _STREAM + 'return matches($i/b, "^(a+)+$")',
    "a pattern that explodes by alternatives": _STREAM + 'return matches($i/b, "^(a|aa)+$")',
    "a pattern that explodes by optional parts": _STREAM + f'return matches($i/b, "^{"a?" * 30}{"a" * 30}$")',
    "a pattern with nested counts": _STREAM + 'return matches($i/b, "^((a{1,10}){1,10}){1,10}$")',
    "a replacement that explodes": _STREAM + 'return string-length(replace($i/b, "(a*)*b", "x"))',
    "a pattern in words": _STREAM + 'return count(tokenize($i/b, "(a+)+!"))',
    "a thousand conditions": _STREAM
    + "where "
    + " and ".join(f"$i/a != {n + 100}" for n in range(1_000))
    + " return $i/a",
    "a thousand paths": _STREAM + "return (" + ", ".join("$i/a" for _ in range(1_000)) + ")",
    "a script": _STREAM + 'return "<script>alert(1)</script>"',
    "a command of a shell": _STREAM + 'return "$(reboot); `reboot`"',
    "a quote of SQL": _STREAM + """return "'; DROP TABLE s; --" """,
    "a format of Python": _STREAM + 'return "{0.__class__} %s"',
}


def attacks() -> Iterator[Attack]:
    """Queries beside another one."""
    groups: tuple[tuple[dict[str, str], Outcome], ...] = (
        (REFUSED, "refused"),
        (SET_ASIDE, "set aside"),
        (ANSWERED, "answered"),
    )
    for found, expected in groups:
        for name, text in found.items():
            yield Attack("a query", name, _asked(text), expected)
