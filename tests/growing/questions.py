"""Random queries over the items of 'a' and 'b' that have no part that stands before their streams end (LAWS 3.11)."""

from __future__ import annotations

from random import Random

_NUMBERS = ("max", "min", "count", "sum", "avg", "median", "stddev")
_CONDITIONS = ("[v > 4]", "[v != 'x']", "[k = 'b']", "[v + 1 > 3]", "")


def question(random: Random) -> str:
    """A query; some are answered bit by bit all the same, and stand."""
    return random.choice((_sequence, _element, _attribute, _part, _let, _let_and_loop))(random)


def _path(random: Random, below: str = "") -> str:
    return f"stream('{random.choice('ab')}')/r/i{random.choice(_CONDITIONS)}{below}"


def _values(random: Random) -> str:
    if random.random() < 0.3:
        return f"(for $p in {_path(random)} where $p/v > 1 return $p/v)"
    return _path(random, random.choice(("/v", "[v != 'x']/v", "[v != 'x']/v")))


def _aggregate(random: Random) -> str:
    return f"{random.choice(_NUMBERS)}({_values(random)})"


def _computed(random: Random) -> str:
    one, other = _aggregate(random), _aggregate(random)
    return random.choice(
        (
            one,
            one,
            f"count({_path(random)}) * 2 - 1",
            f"({one}, {other})",
            f"6 div (count({_path(random)}) - 2)",
            f"if ({one} > 4) then <hi/> else {other}",
            f"if (exists({_path(random)})) then 'some' else 'none'",
            f"empty({_path(random)})",
            f"some $q in {_path(random)} satisfies $q/v > 8",
            f"every $q in {_path(random)} satisfies $q/v < 9",
            f"sum(for $w in {_window(random)} return count($w))",
        )
    )


def _window(random: Random) -> str:
    size = random.choice(("t diff 2", "t diff 3 step 1", "count 2", "count 3 step 2"))
    return f"{_path(random)}|{size}|"


def _order(random: Random, *keys: str) -> str:
    found = [f"{key}{random.choice(('', ' descending'))}" for key in random.sample(keys, random.randint(1, len(keys)))]
    return f"order by {', '.join(found)}"


def _loop(random: Random) -> str:
    order = random.choice(("", _order(random, "$x/k", "$x/v", "$x/t + 1")))
    given = random.choice(
        ("$x/v", "<x k='{ $x/k }'>{ $x/v }</x>", "($x/v + 1, 'z')", "if ($x/v > 3) then $x/v else ()")
    )
    return f"for $x in {_path(random)} {order} return {given}"


def _windows(random: Random) -> str:
    order = random.choice(("", _order(random, "count($w)", "max($w/v)")))
    given = random.choice(("<w>{ count($w) }</w>", "<w>{ $w/v }</w>", "sum($w/v)", "$w/k"))
    return f"for $w in {_window(random)} {order} return {given}"


def _join(random: Random) -> str:
    order = random.choice(("", _order(random, "$x/v", "$y/k")))
    return (
        f"for $x in {_window(random)}, $y in {_window(random)} where $x/k = $y/k {order} return <p>{{ $x/v, $y/v }}</p>"
    )


def _whole(random: Random) -> str:
    return random.choice(
        (
            f"distinct-values({_path(random, '/k')})",
            "for $x in stream('a')/r/i, $y in stream('b')/r/i where $x/t <= $y/t and $y/t <= $x/t + 1 "
            "order by $x/v, $y/t return <n>{ $x/v, $y/v }</n>",
            f"count(distinct-values({_path(random, '/k')}))",
            f"let $s := {_path(random)} return <all n='{{ count($s) }}'>{{ $s[v > 5]/v }}</all>",
            "stream('a')",
            "stream('b')/r/@*",
        )
    )


def _part(random: Random) -> str:
    return random.choice((_computed, _computed, _loop, _loop, _windows, _windows, _join, _whole))(random)


def _sequence(random: Random) -> str:
    return f"({', '.join(f'({_part(random)})' for _ in range(random.randint(2, 3)))})"


def _element(random: Random) -> str:
    inside = "".join(
        random.choice(("{{ {0} }}", "{{ {0} }}", "<in>{{ {0} }}</in>", "text{{ {0} }}")).format(_part(random))
        for _ in range(random.randint(1, 3))
    )
    return f"<out>{inside}</out>"


def _attribute(random: Random) -> str:
    return f"<out n='{{ {_aggregate(random)} }}'>{{ {_computed(random)} }}</out>"


def _let(random: Random) -> str:
    return f"let $m := {_aggregate(random)} return <out>{{ $m, $m * 2 }}</out>"


def _let_and_loop(random: Random) -> str:
    return f"let $m := {_aggregate(random)} return for $x in {_path(random)} where $x/v >= $m return $x/v"
