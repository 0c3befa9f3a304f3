"""The square of LAWS 4.1 for query text: random queries over random accented items, both ways round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random

from algebra.accented import HERE
from algebra.evolving import faults, merged, stream
from anabranch.algebra.accents.evolution import Evolution
from anabranch.algebra.accents.items import number
from anabranch.errors import Aborted
from anabranch.law import evaluate
from anabranch.stream.elements import Accent, Item, Punctuation, StreamElement
from anabranch.stream.serialize import serialize
from anabranch.stream.tree import Element, Text, copy, descendants, renumber
from anabranch.values.sequences import Value
from evolving.outlets import ROUND, Asked, given
from models.canonical import canonical

EXACT = (". * 2", ". + 10", ". * 3 div 2 - 1", ". div 2", ". * 4 - 8")
"""Maps under which short decimals stay short, so that no value is rounded on its way out."""

CONTENTS = (
    "{$p/t}",
    "{$p/s}",
    "{$p/x}",
    "{$p/p}",
    "{$p/c}",
    "{$p/*}",
    "<a>{$p/t/text()}</a>",
    "<k>{$p/s/text()}</k>",
    "<b>{$p/t * 2 - 1}</b>",
    "<n>{10 - $p/x div 2}</n>",
    "<m>{max($p/c/v)}</m>",
    "<u>{sum($p/c/v)}</u>",
    "<e>{if ($p/s > 1) then $p/t/text() else $p/x/text()}</e>",
    "<f><g>{$p/x}</g>{$p/s}</f>",
    "<h>{data($p/p)}</h>",
    "<l>{$p/t + $p/x}</l>",
    "<o>{$p/x/text()}<i>{$p/t}</i></o>",
    "{if ($p/s = 2) then $p/t else $p/x}",
    "{for $c in $p/c return <w>{$c/v/text()}</w>}",
    "{string-join($p/c/v, '-')}",
    "text",
)
CONDITIONS = ("", "", "where $p/t > 10 ", "where $p/s = 1 or $p/x < 20 ", "where some $v in $p/c/v satisfies $v > 9 ")
OF_WINDOWS = (
    "<a>{max($w/t)}</a>",
    "<b>{sum($w/x)}</b>",
    "<c>{min($w/x) * 2 - 1}</c>",
    "<d>{sum($w/c/v)}</d>",
    "<n>{count($w)}</n>",
    "<m>{median($w/t)}</m>",
    "<m>{median($w/x) * 2}</m>",
    "{$w/t}",
    "{$w/p}",
    "{$w/s}",
)
OF_PAIRS = (
    "{$x/t}",
    "{$y/t}",
    "{$x/s}",
    "{$x/p}",
    "<a>{$y/t/text()}</a>",
    "<k>{$y/s/text()}</k>",
    "<q>{$y/p/text()}</q>",
    "<d>{$x/t * -2}</d>",
)


def item_query(random: Random) -> str:
    """A random query over the items of `a`."""

    def element(name: str) -> str:
        attribute = random.choice(("", "", ' at="{$p/s}"', ' at="{$p/t}"'))
        return f"<{name}{attribute}>{''.join(random.sample(CONTENTS, random.randint(0, 3)))}</{name}>"

    results = (
        element("o"),
        element("o"),
        element("o"),
        "$p",
        "$p/t",
        "$p/t/text()",
        "($p/t, $p/s)",
        "$p/c",
        f"if ($p/s > 1) then {element('o')} else {element('q')}",
        f"({element('o')}, $p/t)",
        f"for $c in $p/c return {element('o')}",
    )
    return f"{ROUND}{random.choice(CONDITIONS)}return {random.choice(results)}"


def window_query(random: Random) -> str:
    """A random query over windows of `a`; no average, which would be rounded."""
    result = random.choice(("$w", *2 * (f"<o>{''.join(random.sample(OF_WINDOWS, 2))}</o>",)))
    selected = random.choice(("s", "s > 1", "t > 10"))
    return f'for $w in stream("a")/r/i[{selected}] |count {random.randint(1, 3)}| return {result}'


def join_query(random: Random) -> str:
    """A random join of `a` and `b`."""
    clauses = (f'for ${v} in stream("{s}")/r/i |count {random.randint(1, 3)}| ' for v, s in (("x", "a"), ("y", "b")))
    where = random.choice(("$x/s = $y/s", "$x/t < $y/t", "$x/x >= $y/x - 5"))
    return f"{''.join(clauses)}where {where} return <o>{''.join(random.sample(OF_PAIRS, 3))}</o>"


def plain(value: Value) -> str:
    """An output item, with numbers written in one way."""
    if not isinstance(value, Element | Text):
        return str(value)
    fresh = copy(value)
    inside = descendants(fresh) if isinstance(fresh, Element) else ()
    for each in (fresh, *inside):
        for leaf in each.attributes if isinstance(each, Element) else (each,):
            if not hasattr(leaf, "value"):
                continue
            known = number(leaf.value)
            leaf.value = leaf.value if known is None else str(known)
    return serialize(fresh)


def items(elements: Sequence[StreamElement]) -> list[Item]:
    """The items of the canonical stream, in document order."""
    found = [each for each in canonical(elements) if isinstance(each, Item)]
    for each in found:
        renumber(each.tree)
    return found


def square(seed: int, query: Callable[[Random], str]) -> tuple[Counter[str], Counter[str], int]:
    """Both ways round, and how many accents came out; what comes out is a valid stream.

    Drops are for queries that remember nothing: elsewhere they purge, and no square is claimed (LAWS 4.2 c, g).
    """
    random = Random(seed)
    running = Asked(query(random))
    goes = running.standing.kind == "items"
    streams = {
        name: stream(random, ["s", "t", "x"], 12, comes=True, goes=goes) for name in sorted(running.standing.streams)
    }
    fed: dict[str, list[StreamElement]] = {name: [] for name in streams}
    with suppress(Aborted):
        for name, each in merged(random, streams):
            running.feed(name, each)
            fed[name] += [] if isinstance(each, Punctuation) else [each]
        running.end()
    out: list[StreamElement] = []
    across: Counter[str] = Counter()
    for piece in running.answer:
        for value in [piece] if isinstance(piece, Accent) else piece:
            match value:
                case Accent():
                    out.append(value)
                case Element():
                    out.append(Item(value, HERE))
                case _:
                    across[plain(value)] += 1
    assert faults(out, Evolution()) == [], seed
    across.update(plain(each.tree) for each in items(out))
    inputs = {name: items(elements) for name, elements in fed.items()}
    alone = [{name: [each]} for name, known in inputs.items() for each in known] if goes else [inputs]
    down: Counter[str] = Counter()
    for each_input in alone:
        answer = evaluate(running.query, {name: given(known) for name, known in each_input.items()})
        down.update(map(plain, answer.values))
    return across, down, sum(isinstance(each, Accent) for each in out)
