"""Random queries over the items of 'a' and 'b' that have no part that stands before their streams end (LAWS 3.11)."""

from __future__ import annotations

from random import Random

_NUMBERS = ("max", "min", "count", "sum", "avg", "median", "stddev")
_CONDITIONS = ("[v > 4]", "[v != 'x']", "[k = 'b']", "[v + 1 > 3]", "")


def question(random: Random) -> str:
    """A query; some are answered bit by bit all the same, and stand."""
    return random.choice((_sequence, _element, _attribute, _part, _part, _let, _let_and_loop, _let_results))(random)


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
            "for $x in stream('a')/r/i, $y in stream('b')/r/i where $x/t <= $y/t and $y/t <= $x/t + 1 "
            "order by $x/v, $y/t return <n>{ $x/v, $y/v }</n>",
            f"let $s := {_path(random)} return <all n='{{ count($s) }}'>{{ $s[v > 5]/v }}</all>",
            "stream('a')",
            "stream('b')/r/@*",
        )
    )


def _grouped(random: Random) -> str:
    """Groups of a stream, with what may stand before and behind the `group by`."""
    keys = random.choice(
        (
            "$k := $x/k",
            "$k := $x/k",
            "$k := $x/k",
            "$k := $x/v > 3",
            "$k := $x/t mod 2",
            "$k := $x/k, $m := $x/v",
            "$k := string($x/k)",
            "$n",
        )
    )
    ahead = ["let $n := $x/v"] if keys == "$n" or random.random() < 0.3 else []
    ahead += ["where $x/v != 3"] if random.random() < 0.2 else []
    ahead += ["for $p in $x/v"] if random.random() < 0.15 else []
    key = "$n" if keys == "$n" else "$k"
    behind = ["let $s := sum($x/v)"] if random.random() < 0.4 else ["let $s := count($x)"]
    behind += ["where $s > 1"] if random.random() < 0.3 else []
    order = random.choice(("", _order(random, "$s", key, "max($x/t)")))
    count = random.choice(("", "", "count $c", "count $c where $c <= 2", "count $c where $c < 3 and $s > 0"))
    said = [f"{key}", "$s", "count($x)", "max($x/v)", "avg($x[v != 'x']/v)", "<in>{ min($x/t) }</in>"]
    said += ["if ($x/v = 3) then 'three' else ()", "count(distinct-values($x/v))", "sum(for $q in $x return $q/t * 2)"]
    said += ["exists($x[v > 6])", "median($x/t)"]
    said += ["$x/v", "$x[1]/v", "$x[last()]/t", "string-join($x/k, '-')"] if random.random() < 0.3 else []
    said += ["$c", "$c"] if count else []
    given = ", ".join(random.sample(said, random.randint(1, 3)))
    result = random.choice((f"<g>{{ {given} }}</g>", f"<g k='{{ {key} }}'>{{ {given} }}</g>", f"({given})"))
    clauses = [f"for $x in {_path(random)}", *ahead, f"group by {keys}", *behind, order, count]
    return f"{' '.join(each for each in clauses if each)} return {result}"


def _distinct(random: Random) -> str:
    over = random.choice(
        (
            _path(random, "/k"),
            _path(random, "/v"),
            f"for $x in {_path(random)} return ($x/v, $x/k)",
            f"for $w in {_window(random)} return count($w)",
        )
    )
    return f"distinct-values({over})"


def _placed(random: Random, base: str) -> str:
    """Some of what an expression gives, by places."""
    asked = (
        *("1", "2", "last()", "last() - 1", "position() <= 3", "position() < 3", "position() > 1"),
        *("position() >= 2", "3 >= position()", "position() = last()", "position() > last() - 2"),
        *("position() < last()", "position() > 1 and position() <= 3", "0", "position() <= 2.5"),
    )
    return random.choice(
        (
            f"({base})[{random.choice(asked)}]",
            f"({base})[{random.choice(asked)}]",
            f"({base})[{random.choice(asked)}][{random.choice(asked)}]",
            f"head({base})",
            f"tail({base})",
            f"subsequence({base}, {random.choice((0, 1, 1, 2, 1.5))}, {random.choice((1, 2, 2.5))})",
            f"subsequence({base}, 2)",
        )
    )


def _slices(random: Random) -> str:
    return _placed(random, random.choice((_loop, _windows, _windows, _grouped, _grouped, _distinct, _join))(random))


def _taken(random: Random) -> str:
    """An aggregate of groups, of different values, or of some results by their places."""
    over = random.choice((_slices, _slices, _grouped, _distinct))(random)
    return f"{random.choice(('count', 'sum', 'max', 'exists', 'empty', 'avg', 'median'))}({over})"


def _let_results(random: Random) -> str:
    """A `let` that holds results of windows or groups."""
    order = random.choice(("", _order(random, "count($w)", "max($w/v)")))
    given = random.choice(("<w>{ count($w), max($w/t) }</w>", "count($w)", "(count($w), max($w/t))"))
    results = random.choice((f"for $w in {_window(random)} {order} return {given}", _grouped(random)))
    used = random.choice(
        (
            "<out n='{ count($r) }'>{ $r[last()], $r }</out>",
            "<out n='{ count($r) }'>{ head($r) }</out>",
            "($r[position() <= 2], count($r))",
            "$r[last()]",
            "<out>{ for $y in $r return <in>{ $y }</in> }</out>",
            "for $y in $r order by $y descending return $y",
            "if (count($r) > 2) then $r[2] else 'few'",
        )
    )
    return f"let $r := {results} return {used}"


def _part(random: Random) -> str:
    return random.choice(
        (
            *(_computed, _computed, _loop, _loop, _windows, _windows, _join, _whole),
            *(_grouped, _grouped, _grouped, _distinct, _slices, _slices, _slices, _taken, _taken),
        )
    )(random)


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
