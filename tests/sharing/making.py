"""Random queries over one small stream, and random items for it; what the tests of sharing share.

Items have leaves `a`, `b` and `k`, and elements `c` with `x` and `y` inside and an attribute; everything may be missing
or be there twice, and `k` is a word.
"""

from __future__ import annotations

from random import Random

from anabranch.language import ast, check, parse
from anabranch.sharing.normalize import unwindowed
from anabranch.sharing.render import render
from anabranch.sharing.rules.derive import derive
from anabranch.sharing.tree import PropertyTree
from reference.asking import ask, stream

LEAVES = ("a", "b", "k", "c/x", "c/y")


def checked(text: str) -> ast.Query:
    """A query over whatever streams it names."""
    return check(parse(text), text).query


def tree(text: str) -> PropertyTree:
    """The tree of a query, without a schema."""
    return derive(checked(text), None, text)


def answer(text: str, items: str) -> str:
    """The answer over a stream `s`; it must come without a single failure."""
    found = ask(text, {"s": items})
    assert not found.dead
    return found.text


def sent(shared: PropertyTree, items: str) -> str:
    """What a shared stream carries, as a document again; of windows, the items they are made of."""
    text = answer(render(unwindowed(shared)), items)
    return text if text.startswith("<r") else f"<r>{text}</r>"


def items(random: Random, count: int = 12) -> str:
    """A stream `<r><i>...</i>...</r>`, each item with its time `t`."""
    return stream(*(f"{some_content(random)}<t>{time * 3}</t>" for time in range(count)))


def some_content(random: Random) -> str:
    def leaf(name: str) -> str:
        value = random.choice("uvw") if name == "k" else str(random.randrange(10))
        return "".join(f"<{name}>{value}</{name}>" for _ in range(random.choice((0, 1, 1, 1, 2))))

    def element() -> str:
        return f"<c id='{random.randrange(3)}'>{leaf('x')}{leaf('y')}</c>"

    parts = [leaf("a"), leaf("b"), leaf("k"), *(element() for _ in range(random.choice((0, 1, 1, 2))))]
    random.shuffle(parts)
    return "".join(parts)


# --- conditions and selections ------------------------------------------------------------------------------


def comparison(random: Random, start: str, leaves: tuple[str, ...] = LEAVES) -> str:
    leaf = random.choice(leaves)
    path = f"{start}/{leaf}" if start else leaf
    if leaf == "k":
        return f'{path} {random.choice(("=", "!="))} "{random.choice("uvw")}"'
    return f"{path} {random.choice(('<', '<=', '>', '>=', '=', '!='))} {random.randrange(10)}"


def condition(random: Random, start: str, depth: int = 2, leaves: tuple[str, ...] = LEAVES) -> str:
    match random.randrange(10) if depth else 0:
        case 1 | 2:
            return " and ".join(f"({condition(random, start, depth - 1, leaves)})" for _ in range(2))
        case 3:
            return " or ".join(f"({condition(random, start, depth - 1, leaves)})" for _ in range(2))
        case 4:
            return f"not({condition(random, start, depth - 1, leaves)})"
        case 5 if start and leaves is LEAVES:
            return f"some $s in {start}/c satisfies {condition(random, '$s', 1, _INSIDE)}"
        case 6:
            first, second = random.choice(leaves), random.choice(leaves)
            return f"{start + '/' if start else ''}{first} <= {start + '/' if start else ''}{second}"
        case 7:
            return f"exists({start + '/' if start else ''}{random.choice(leaves)})"
        case _:
            return comparison(random, start, leaves)


_INSIDE = ("x", "y")
_SIMPLE = (
    "<hit/>",
    "$p",
    "$p/c",
    "$p//x",
    "string-join($p/a, '-')",
    "$p/*",
    "for $c in $p/c return 1",
    "data($p/c/@id)",
    "sum($p/a)",
    "count($p/c[x > 3])",
    "for $c in $p/c order by string-join($c/y, '') return $c/x/text()",
    "(1, 'z')[$p/b > 4]",
    "distinct-values($p/c/x)",
)


def returned(random: Random, depth: int = 2) -> str:
    """Something a round over `$p` may return."""
    match random.randrange(14) if depth else 0:
        case 1:
            return f'<o k="{{ $p/k }}">{{ {returned(random, depth - 1)} }}{{ {returned(random, depth - 1)} }}</o>'
        case 2:
            inner = returned(random, depth - 1), returned(random, depth - 1)
            return f"if ({condition(random, '$p')}) then {inner[0]} else {inner[1]}"
        case 3:
            return f"if ({condition(random, '$p')}) then {returned(random, depth - 1)} else ()"
        case 4:
            return f"for $c in $p/c where {condition(random, '$c', 1, _INSIDE)} return <c>{{ $c/x }}</c>"
        case 5:
            return f"$p/c[{condition(random, '', 1, _INSIDE)}]/{random.choice('xy')}"
        case 6 | 7:
            return random.choice(_SIMPLE)
        case 8:
            test = condition(random, "$x", 1, _INSIDE)
            return f"let $x := $p/c return if ({test}) then {returned(random, depth - 1)} else $x/y"
        case 9:
            head = f"for $c in $p/c[{condition(random, '', 1, _INSIDE)}] let $y := $c/y"
            return f"{head} return if ({condition(random, '$c', 1, _INSIDE)} or $y > 4) then <y>{{ $y }}</y> else $p/a"
        case 10:
            return f"$p[{condition(random, '', 1)}]/{random.choice(LEAVES)}"
        case 11:
            test = condition(random, "$s", 1, _INSIDE)
            return f"if (every $s in $p/c satisfies {test}) then {returned(random, depth - 1)} else <none/>"
        case 12:
            return f"for $a in $p/a for $c in $p/c where {condition(random, '$c', 1, _INSIDE)} and $a > 2 return <ac/>"
        case _:
            return f"$p/{random.choice(LEAVES)}"


def selection(random: Random) -> str:
    """A query that selects and projects."""
    head = f"for $p in stream('s')/r/i{f'[{condition(random, str())}]' if random.random() < 0.3 else ''}"
    where = f" where {condition(random, '$p')}" if random.random() < 0.8 else ""
    return f"<q>{{ {head}{where} return {returned(random)} }}</q>"


def sharp(random: Random) -> str:
    """A selection that a single element too few would change: it counts, and asks what is not there."""
    first, second = (comparison(random, "$p") for _ in range(2))
    condition = random.choice((f"not({first})", f"not({first}) and {second}", f"{second} and not({first})", second, ""))
    where = f" where {condition}" if condition else ""
    shown = random.choice(
        (
            "<hit/>",
            "<o>{ $p/k }</o>",
            f"if ({comparison(random, '$p')}) then <yes/> else <no/>",
            f"<o>{{ $p/a[not(. > {random.randrange(10)})] }}</o>",
            f"<o>{{ $p/b[. > {random.randrange(10)}] }}</o>",
            f"for $c in $p/c where not($c/x > {random.randrange(10)}) return <c>{{ $c/y }}</c>",
            f"for $c in $p/c return <c>{{ $c/x[. > {random.randrange(10)}] }}</c>",
        )
    )
    return f"for $p in stream('s')/r/i{where} return {shown}"


# --- windows ------------------------------------------------------------------------------------------------

_FUNCTIONS = ("min", "max", "sum", "count", "avg")


def windowed(random: Random) -> str:
    """A query with a window, of aggregates or of elements."""
    size, step = random.choice(((6, 3), (12, 6), (12, 12), (9, 6), (18, 6)))
    pre = random.choice(("", "", "[a > 2]", "[a > 2 and b < 8]", '[not(k = "u")]'))
    extent = f"t diff {size} step {step}" if random.random() < 0.7 else f"count {size // 3} step {step // 3}"
    lets = f"let $m := {_aggregate(random)} let $n := {_aggregate(random)}"
    where = random.choice(("", "", " where $m > 3", " where $w/a > 5", " where $m > 2 and $w/b < 7 and $n < 9"))
    shown = random.choice(
        ("$m", "($m, $n)", "if ($n > 4) then $m else ()", "<n>{ $n }</n>, $w/b", "$w/c[x > 3]/y", "<hit/>", "$m + $n")
    )
    return f"<q>{{ for $w in stream('s')/r/i{pre}|{extent}| {lets}{where} return <o>{{ {shown} }}</o> }}</q>"


def _aggregate(random: Random) -> str:
    argument = random.choice(("a", "b", "c/x", "a[. > 1]", "a[. > 1]", "c[y > 2]/x"))
    return f"{random.choice(_FUNCTIONS)}($w/{argument})"


def several(random: Random) -> str:
    """Selections beside each other in one query."""
    return f"<all>{selection(random)}{{ {sharp(random)} }}{{ {sharp(random)} }}</all>"


def query(random: Random) -> str:
    """A query of any of these kinds."""
    return random.choice((selection, selection, several, windowed))(random)
