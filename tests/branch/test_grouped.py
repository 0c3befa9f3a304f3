"""Windows that are grouped and counted by panes: the answer, the dead letters and what is late are the law's."""

from __future__ import annotations

import json
from fractions import Fraction
from random import Random

import pytest

from anabranch.branch.panes import grouped
from anabranch.columnar.panes.query import shared
from branch.counting import Stream, check_state, one_clock
from mass import enough, some

KEYS = ("DE", "FR", "DE", "FR", "IT", "1", "1.0", "01", "", " ", "A&amp;B", "&lt;", "é", 'say "a"', "it's", "a b", "-0")
NUMBERS = ("0", "1", "2", "2.5", "-3", "-0", "0.1", "99", "7.50")
ODD = ("x", "INF", "NaN", "1e400", "", "12345678901234567890.5", " 5 ")
USUAL = (
    '<i c="{c}"><t>{t}</t><k>{k}</k><n>{n}</n><p><q>{q}</q></p></i>',
    '<i c="{c}"><t>{t}</t><n>{n}</n><p/></i>',
    "<i><t>{t}</t><k>{k}</k><n>{n}</n></i>",
    '<i c="{c}"><t>{t}</t><k/><n>{n}</n><p><q>{q}</q></p></i>',
)
SHAPES = (
    '<i c="{c}"><t>{t}</t><k>{k}</k><k>{c}</k><n>{n}</n></i>',
    "<i><t>{t}</t><k><x>{k}</x>y</k><n>{n}</n></i>",
    "<i><t>{t}</t><n>{n}</n><n>{q}</n><k>{k}</k></i>",
    "<i><k>{k}</k><n>{n}</n></i>",
    "<j><t>{t}</t><k>{k}</k></j>",
    "<i><t>{t}</t><k>{k}<!-- c --></k><n>{n}</n><p><q>{q}</q><q>{n}</q></p></i>",
    "<i><t>{t}</t><k>{k}</k>",
    '<s:punctuation xmlns:s="urn:anabranch:stream" where="t &lt; {t}"/>',
)


def one_stream(random: Random) -> Stream:
    """A stream with mostly rising times and mostly usual items."""
    time, odd, clock = 0, random.choice((0.0, 0.0, 0.05, 0.3)), one_clock(random)
    usual = random.choice((USUAL[:1], USUAL[2:3], USUAL[:2], USUAL))
    keys = random.sample(KEYS, random.choice((1, 3, 6, len(KEYS))))
    items: list[str] = []
    for _ in range(random.randint(0, 60)):
        time += random.choice((0, 1, 2, 3, 5, 12, -2, -7 if odd else 0, 130 if odd else 1))
        shape = random.choice(SHAPES if random.random() < odd else usual)
        number = random.choice(ODD if random.random() < odd else NUMBERS)
        key, other = random.choice(keys), random.choice(keys)
        attribute = other.replace('"', "&quot;")
        items.append(shape.format(t=clock(Fraction(time - 5, 10)), k=key, c=attribute, n=number, q=other))
    slack, origin = random.choice(("0", "0", "0.3")), random.choice(("0", "0", "-2", "1.5"))
    return Stream(items, slack, origin, random.choice((None, "t")), random.random() < 0.2)


def one_json_stream(random: Random) -> Stream:
    """The same in records, whose keys are texts, numbers, nothing, or lists of them."""
    time, odd, clock = 0, random.choice((0.0, 0.0, 0.1)), one_clock(random)
    items: list[str] = []
    for _ in range(random.randint(0, 60)):
        time += random.choice((0, 1, 2, 5, 12, -2))
        key: object = random.choice(('DE "x"', "FR", "A&B", "1", 1, 1.5, "é\n", "", "<"))
        if random.random() < odd:
            key = random.choice((None, [key, "b"], [], {"x": key}, True))
        text = clock(Fraction(time, 10))
        record = {
            "t": text if ":" in text else time / 10,
            "k": key,
            "n": random.choice((0, 1, 2.5, -3)),
            "c": random.choice(("u", "v")),
        }
        if random.random() < odd:
            del record[random.choice(("k", "n", "c"))]
        items.append(json.dumps(record, ensure_ascii=random.random() < odd))
    return Stream(items, random.choice(("0", "0.3")), time=random.choice((None, "t")), form="json")


_ONE = (
    *("$k := $o/k", "$k := $o/k", "$k := $o/@c", "$k := $o/p/q", "$k := $o/missing", "$k := upper-case($o/k)"),
    *("$k := substring($o/k, 1, 1)", "$k := concat($o/k, '-', $o/@c)", "$k := $o/k[. != 'FR']", "$k := $o/*"),
    *("$k := $o/n > 1", "$k := $o/k = 'DE' or $o/n > 1", "$k := contains($o/k, 'E')", "$k := not($o/@c)"),
    *("$k := string($o/@c)", "$k := $o//q", "$k := $o/k/text()"),
)


def one_query(random: Random, is_json: bool = False) -> str:
    """A window that is grouped by one key or two, and whose groups are seen through aggregates."""
    keys = [random.choice(_ONE).replace("@c", "c" if is_json else "@c")]
    if random.random() < 0.3:
        keys.append(random.choice(_ONE).replace("$k", "$l").replace("@c", "c" if is_json else "@c"))
    named = random.choice(("", "", "let $v := $o/n "))
    size = random.choice(("1", "0.5", "2", "0.25", "0.3", "6"))
    step = random.choice(("", "", " step 0.5", " step 0.1", " step 1.2", " step 4", " step 0.07"))
    count, by = random.choice(("1", "2", "3", "6")), random.choice(("", " step 1", " step 2", " step 4"))
    window = random.choice((f"t diff {size}{step}", f"t diff {size}{step}", f"count {count}{by}"))
    bounds = ["window-start($w)", "window-end($w)"] if "diff" in window and random.random() < 0.6 else []

    def call(*functions: str) -> str:
        paths = ("$o/n", "$o/n", "$o", "$o/p/q", "$o/t", "$o/n[. > 1]", "$o/missing", "for $i in $o return $i/n * 2")
        path = random.choice((*paths, "$v") if named else paths)
        return f"{random.choice(functions or ('min', 'max', 'sum', 'count', 'avg'))}({path})"

    asked = random.choice(("", "", "where $o/n >= 1 ", "where $o/k != 'FR' and not($o/n > 50) "))
    first = f"let $a := {call()} " if random.random() < 0.7 else ""
    clauses = [
        f"where {call('sum', 'avg', 'count')} >= 1 ",
        f"order by {call()} descending ",
        f"let $b := {call()} order by $b, $k ",
    ]
    clauses += ["order by $k ", "count $i where $i <= 3 ", f"where {call('count')} >= 1 let $b := {call()} "]
    clauses += ["where $a >= 1 or count($o) > 2 "] if first else []
    clauses += ["order by window-end($w), $k descending "] if bounds else []
    where = "".join(random.sample(clauses, random.choice((0, 0, 1, 1, 2))))
    where = where if where.count("let $b") < 2 else ""
    shown = ["$k", "$k", call(), call(), *(["$a"] if first else []), *(["$l"] if len(keys) > 1 else [])]
    shown += [f"${name}" for name in "bi" if f"let ${name} " in where or f"count ${name} " in where]
    shown += bounds
    one, two = ", ".join(random.sample(shown, 2)), ", ".join(random.sample(shown, random.choice((1, 2, 3))))
    result = random.choice((f'<g k="{{ {one} }}">{{ {two} }}</g>', f"<g><a>{{ {one} }}</a>{{ {two} }}</g>", "<g/>"))
    chosen = random.choice(("", "", "", "[n >= 1]", "[k]", "[not(n < 2)]"))
    loop = f'for $w in stream("s")/r/i{chosen} |{window}| '
    inner = f"for $o in $w {named}{asked}group by {', '.join(keys)} {first}{where}return {result}"
    body = f"{loop}{random.choice(('', 'return '))}{inner}"
    return random.choice((body, f"<out>{{ {body} }}</out>"))


def is_the_law(name: str) -> bool:
    """Compare one case; whether it was counted by panes."""
    random = Random(name)
    is_json = random.random() < 0.3
    stream = (one_json_stream if is_json else one_stream)(random)
    query = one_query(random, is_json)
    plan = stream.plan(query)
    if plan is None:
        return False
    law = stream.by_law(query)
    text, found = stream.by_panes(query, plan, random)
    shown = f"case {name}\n{query}\n{stream}"
    assert text == law.text, shown
    assert sorted(map(str, found.dead)) == sorted(map(str, law.dead)), shown
    assert list(dict.fromkeys(found.places)) == law.late, shown
    return True


@pytest.mark.parametrize(
    ("family", "at_once", "most_bytes"), [(0, 1 << 16, 1 << 26), (1, 1 << 16, 60), (2, 4, 1 << 26), (3, 1, 200)]
)
def test_groups_by_panes_are_the_law(
    family: int, at_once: int, most_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However a stream is cut into ranges and epochs, and its groups into such as are answered or written together."""
    monkeypatch.setattr(grouped, "GROUPS_AT_ONCE", at_once)
    monkeypatch.setattr(grouped, "MOST_BYTES", most_bytes)
    counted = [is_the_law(f"groups {family} {number}") for number in some(range(12))]
    assert sum(counted) > enough(4), "most of these queries are counted by panes"


def test_grouped_windows_counted_together_do_not_notice_each_other() -> None:
    """One pass for several queries, some of them over the same keys: each is answered as the law says."""
    for number in range(4):
        random = Random(f"groups together {number}")
        stream = one_stream(random)
        queries = [one_query(random) for _ in range(2)]
        queries += [each.replace("|t diff ", "|t diff 3 step ").replace(" step ", " step 1", 1) for each in queries]
        queries = [each for each in queries if each.count("step") < 2]
        queries.append('for $w in stream("s")/r/i |t diff 1| return <w>{ sum($w/n), count($w) }</w>')
        known = [(query, plan) for query in dict.fromkeys(queries) if (plan := stream.plan(query))]
        found = stream.together([plan for _, plan in known], random)
        for (query, _), (text, each) in zip(known, found, strict=True):
            law = stream.by_law(query)
            assert text == law.text, (number, query, stream)
            assert sorted(map(str, each.dead)) == sorted(map(str, law.dead)), (number, query, stream)


def test_windows_over_the_same_keys_are_counted_once() -> None:
    """Sizes and conditions behind the `group by` may differ; keys may not."""
    by = 'for $w in stream("s")/r/i |t diff {}| for $o in $w group by $k := {} {}return <g>{{ $k, sum($o/n) }}</g>'
    texts = [
        by.format("20 step 10", "$o/k", ""),
        by.format("60", "$o/k", "where sum($o/n) > 5 "),
        by.format("60", "$o/c", ""),
        by.format("60", "$o/k, $l := $o/c", ""),
        'for $o in stream("s")/r/i |t diff 60| return <g>{ sum($o/n) }</g>',
    ]
    plans = [plan for text in texts if (plan := Stream([]).plan(text))]
    assert sorted(sorted(each) for each in shared([each.query for each in plans])) == [[0, 1], [2], [3], [4]]


CASES = {
    "behind": ("$o/k", "let $s := sum($o/n) where $s > 5 ", '<g k="DE">8</g><g k="">7</g>'),
    "missing": ("$o/c", "let $s := count($o) ", '<g k="">4</g><g k="u">1</g>'),
    "computed": ("substring($o/k, 1, 1)", "let $s := max($o/n) ", '<g k="D">5</g><g k="F">4</g><g k="">7</g>'),
}


@pytest.mark.parametrize("case", CASES)
def test_groups_come_in_the_order_of_their_first_items(case: str) -> None:
    """LAWS 3.8: with what stands behind the `group by`, in all epochs and as the law says."""
    key, behind, expected = CASES[case]
    items = [
        *("<i><t>1</t><k>DE</k><n>3</n></i>", "<i><t>2</t><k>FR</k><n>4</n></i>", "<i><t>3</t><k>DE</k><n>5</n></i>"),
        *("<i><t>4</t><c>u</c><k>FR</k><n>1</n></i>", "<i><t>5</t><n>7</n></i>"),
    ]
    stream = Stream(items)
    query = f"""for $w in stream("s")/r/i |t diff 10| for $o in $w group by $k := {key} {behind}
        return <g k="{{$k}}">{{ $s }}</g>"""
    plan = stream.plan(query)
    assert plan is not None
    assert {stream.by_panes(query, plan, Random(seed))[0] for seed in range(5)} == {expected}
    assert stream.by_law(query).text == expected


def test_an_item_with_several_keys_is_in_no_group() -> None:
    """LAWS case 50; its dead letter comes with each window that holds it, and with none that has no answer."""
    items = [f"<i><t>{time}</t><k>1</k></i>" for time in range(4)]
    stream = Stream([*items, "<i><t>4</t><k>1</k><k>2</k></i>", "<i><t>5</t><k>1</k></i>"])
    for window, times in (("t diff 10", 1), ("t diff 6 step 2", 3), ("count 4", 0)):
        query = f"""for $w in stream("s")/r/i |{window}| for $o in $w group by $k := $o/k
            return <g>{{ $k, count($o) }}</g>"""
        plan = stream.plan(query)
        assert plan is not None
        text, found = stream.by_panes(query, plan, Random(3))
        law = stream.by_law(query)
        assert (text, sorted(map(str, found.dead))) == (law.text, sorted(map(str, law.dead)))
        assert [each.code for each in found.dead] == ["XPTY0004"] * times


@pytest.mark.parametrize(
    "text",
    [
        "for $o in $w group by $k := $o/k return <g>{ $k, $o/n }</g>",
        "for $o in $w group by $k := $o/n * 2 return <g>{ $k, count($o) }</g>",
        "for $o in $w group by $k := $o/k return <g>{ $k, count($w) }</g>",
        "for $o in $w group by $k := $o/k[1] return <g>{ $k, count($o) }</g>",
        "for $o in $w/p group by $k := $o/q return <g>{ $k, count($o) }</g>",
        "for $o in $w group by $k := $o/k order by concat($k, 'x') return <g>{ $k, count($o) }</g>",
        "for $o in $w group by $k := $o/k where string-length($k) > 1 return <g>{ $k, sum($o/n) }</g>",
        "for $o in $w where $o/n > count($w) group by $k := $o/k return <g>{ $k, count($o) }</g>",
        "for $o in $w where $o/n where $o/k group by $k := $o/k return <g>{ $k, count($o) }</g>",
        "for $o in $w for $p in $o/p group by $k := $o/k return <g>{ $k, count($o) }</g>",
        "for $o in $w group by $k := $o/k return <g>{ $k, 1 div count($o) }</g>",
        "for $o in $w group by $k := $o/k where max($o/n) > 1 return <g>{ $k, count($o) }</g>",
        "for $o in $w group by $k := $o/k where window-end($w) > 1 return <g>{ $k, count($o) }</g>",
        "for $o in $w where $o/n > 1 group by $k := $o/k return <g>{ $k, window-end($w) }</g>",
        "for $o in $w let $k := $o/k group by $k let $k := 1 return <g>{ $k, count($o) }</g>",
    ],
)
def test_other_groups_hold_their_items(text: str) -> None:
    """What panes are not made for is not counted by them."""
    assert Stream([]).plan(f'for $w in stream("s")/r/i |t diff 10| {text}') is None


@pytest.mark.mass
def test_keys_that_nobody_has_any_more_are_forgotten() -> None:
    """However many keys come and go, a branch remembers those of its open windows; each range is counted in columns."""
    query = """for $w in stream("s")/r/i |t diff 30 step 10| for $o in $w group by $k := $o/k
        return <g k="{$k}">{ sum($o/n) }</g>"""
    stream = Stream([f"<i><t>{time}</t><k>k{time // 7}</k><n>{time % 7}</n></i>" for time in range(2_000)])
    # three panes have keys of thirty seconds
    check_state(stream, query, width=10, most_keys=7, most_growth=300)
