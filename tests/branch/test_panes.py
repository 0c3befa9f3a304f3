from __future__ import annotations

import json
import re
from fractions import Fraction
from random import Random

import pytest

from anabranch.branch.panes.group import PaneGroup, Served
from anabranch.branch.panes.panes import PaneWindows
from anabranch.branch.panes.state import PaneState, pack, unpack
from anabranch.branch.state import BranchState
from anabranch.errors import StateError
from branch.counting import Found, Stream, one_clock
from mass import some

NUMBERS = ("0", "1", "2", "2.5", "7.50", "-3", "-0", "0", "1.3", "0.1", "007", "+4", ".5", "5.", "99")
ODD = (
    *(" 5 ", "1e3", "2E-1", "INF", "-INF", "NaN", "x", "", "12345678901234567890.5", "0.3333333333333333333333"),
    *("1e400", "1e1200", "-1e1200", "1e-1200", "123456789012345.123"),
)
_PLAIN = '<i id="{b}"><t>{t}</t><n>{a}</n><c><m>{b}</m></c></i>'
_REPEATED = '<i id="{b}"><t>{t}</t><n>{a}</n><n>{b}</n><c><m>{b}</m></c><c><m>{a}</m><k/></c></i>'
USUAL = (
    (_PLAIN,),
    (_REPEATED,),
    (_PLAIN, "<i><t>{t}</t><n>{a}</n><c/></i>", '<i id="{a}"><t>{t}</t><c><m>{b}</m></c></i>'),
    (_REPEATED, _REPEATED, "<i><c><m>{b}</m></c><t>{t}</t></i>", "<i><c/><t>{t}</t><n>{a}</n><n>{b}</n><n>{a}</n></i>"),
)
"""Items of one look each: all parts, repeated parts, optional parts, and both."""
SHAPES = (
    '<i id="{b}"><n>{a}</n><t>{t}</t><c><m>{b}</m></c></i>',
    "<i><t>{t}</t></i>",
    "<i><t>{t}</t><n>{a}</n><n>{b}</n><c><m>{b}</m><m>{a}</m></c><c/></i>",
    "<i><t>{t}</t><n/><c><m>{b}</m></c></i>",
    "<i><t>{t}</t><t>{a}</t><n>{a}</n></i>",
    "<i><n>{a}</n></i>",
    "<k><t>{t}</t><n>{a}</n><c><m>{b}</m></c></k>",
    "<i><t>{t}</t><n>{a}<!-- c --></n><c><m>{b}</m></c></i>",
    "<i><t>{t}</t><n>{a}</n>",
    '<s:punctuation xmlns:s="urn:anabranch:stream" where="t &lt; {t}"/>',
    '<s:punctuation xmlns:s="urn:anabranch:stream" at="{t}"/>',
    '<s:punctuation xmlns:s="urn:anabranch:stream" where="t &lt; {t} or n = 5"/>',
)
PLAIN = (
    *("$w/n", "$w/n", "$w/c/m", "$w", "$w/missing", "$w/t", "$w/n[. > 1]", "$w/c[m > 1]/m", "$w[n >= 2]/c/m"),
    *("$w/@id", "$w[@id = '2']/n", "$w/n[contains(., '5')]", "$w[n * 2 > c/m]/t", "$w[c/m]/n", "$w/c[not(m)]"),
)
"""What columns are made for."""
COMPUTED = (
    "for $i in $w return $i/n * 2",
    "for $i in $w return $i/n * $i/c/m",
    "for $i in $w return $i/t div 7",
    "for $i in $w where $i/c/m > 1 return ($i/n + 0.1) * 3",
    "for $i in $w where contains($i/n, '1') return $i/c/m",
    "for $i in $w/c return $i/m * 1.1",
    "for $i in $w/c where $i/m >= 2 return $i/m",
    "for $i in $w/n return -$i",
    "for $i in $w/n return $i div 0",
    "for $i in $w return $i/@id - $i/t",
    "for $i in $w return $i/missing + 1",
    "for $i in $w return 2",
)
"""What is computed for each node."""
PATHS = (
    *("$w/n", "$w/n", "$w/n", "$w/c/m", "$w/@id", "$w", "$w//m", "$w/*", "$w/missing", "$w/t", "$w/n/text()"),
    *("$w/n[. > 1]", "$w/c[m > 1]/m", "$w[n >= 2]", "$w[n >= 2]/c/m", "$w/n[. != 'x']", "$w/c[m]/m", "$w/n[../t]"),
    *COMPUTED,
)
CHOSEN = ("", "", "", "[n >= 2]", "[n > 1 and c/m < 5]", "[c/m != 2 or n = 2.5]", "[@id = '1']", "[not(n < 2)]")

REFERENCES = {"": ("t", "t", "./t", "/r/i/t", "c/m"), "/c": ("m", "/r/i/c/m"), "/n": ("self::n",)}

STARTS = ("", "", "", "17000000001234", "1700000000.1234")


def one_stream(random: Random) -> Stream:
    """A stream with mostly rising times and mostly usual items."""
    time, tenths, start = (
        0,
        random.choice((1, 10, 1000)),
        random.choice(("", "", "", "17000000001234", "1700000000.1234")),
    )
    odd, usual, clock = random.choice((0.0, 0.0, 0.03, 0.3)), random.choice(USUAL), one_clock(random)
    items: list[str] = []
    for _ in range(random.randint(0, 60)):
        time += random.choice((0, 1, 2, 3, 5, 5, 10, 12, -2, -7 if odd else 0, 130 if odd else 1))
        text = f"{start}{max(time, 0):03}" if start else clock(Fraction(time - 20, tenths))
        if random.random() < odd / 3:
            text = random.choice(ODD)
        shape = random.choice(SHAPES if random.random() < odd else usual)
        a, b = (random.choice(ODD if random.random() < odd else NUMBERS) for _ in range(2))
        item = shape.format(t=text, a=a, b=b)
        if "punctuation" not in item or (text not in ODD and ":" not in text):
            items.append(item)
    slack, origin = random.choice(("0", "0", "3", "0.25")), random.choice(("0", "0", "-20", "1.5"))
    return Stream(items, slack, origin, random.choice((None, "t")), random.random() < 0.2)


RECORDS = (
    '{{"id": {b}, "t": {t}, "n": {a}, "c": {{"m": {b}}}}}',
    '{{"t": {t}, "n": [{a}, {b}], "id": {b}, "c": [{{"m": {b}}}, {{"m": {a}, "k": null}}]}}',
)
ODD_RECORDS = (
    '{{"t": {t}}}',
    '{{"t": {t}, "n": null, "c": {{"m": {b}}}}}',
    '{{"n": {a}, "t": {t}, "c": {{"m": [{b}, {a}]}}}}',
    '{{"t": [{t}, {a}], "n": {{"x": {a}}}}}',
    '{{"t": {t}, "n": true, "m m": {b}}}',
    '{{"t": {t}, "n": }}',
    "[{t}]",
)


def one_json_stream(random: Random) -> Stream:
    """The same in records, whose numbers are numbers of JSON where they can be."""

    def written(text: str) -> str:
        is_number = re.fullmatch(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", text)
        return text if is_number and random.random() < 0.8 else json.dumps(text)

    time, odd, usual, clock = 0, random.choice((0.0, 0.0, 0.03, 0.3)), random.choice(RECORDS), one_clock(random)
    items: list[str] = []
    for _ in range(random.randint(0, 60)):
        time += random.choice((0, 1, 2, 3, 5, 5, 10, 12, -2, -7 if odd else 0))
        shape = random.choice(ODD_RECORDS) if random.random() < odd else usual
        a, b = (random.choice(ODD if random.random() < odd else NUMBERS) for _ in range(2))
        items.append(shape.format(t=written(clock(Fraction(time, 10))), a=written(a), b=written(b)))
    return Stream(items, random.choice(("0", "0.25")), time=random.choice((None, "t")), form="json")


def one_query(random: Random) -> str:
    """One windowed `for` that is seen through aggregates."""

    paths, below = random.choice((*[(PLAIN, "")] * 5, *[(COMPUTED, "")] * 3, (PATHS, ""), (PATHS, "/c"), (PATHS, "/n")))

    def call() -> str:
        return f"{random.choice(('min', 'max', 'sum', 'count', 'avg', 'fn:avg'))}({random.choice(paths)})"

    reference = random.choice(REFERENCES[below])
    size = random.choice(("10", "5", "20", "2.5", "0.3", "0.05", "60"))
    step = random.choice(("", " step 5", " step 1", " step 0.5", " step 12", " step 40", " step 0.07"))
    count, by = random.choice(("1", "2", "3", "6")), random.choice(("", " step 1", " step 2", " step 4"))
    window = random.choice((f"{reference} diff {size}{step}", f"{reference} diff {size}{step}", f"count {count}{by}"))
    source = f'stream("s")/r/i{random.choice(CHOSEN)}{below}'
    where = random.choice(("", "", f"where {call()} >= 1 ", "where $a >= 1 or $b < 5 "))
    results = ["<o>{ $a }</o>", "<o n='{count($w)}'>{ $a, $b }</o>", "($a, $b)", "$a + 1", "($a, <e/>)"]
    if "diff" in window:
        results += ["<o s='{ window-start($w) }'>{ $a, window-end($w) }</o>", "<o>{ window-start($w) }</o>"]
        results += ["(window-end($w), $b)", "<o>{ $a, string(window-start($w)) }</o>", "window-end($w) - 1"]
    result = random.choice(results)
    named = f"let $v := $w/n let $a := {random.choice(('sum', 'max'))}($v{random.choice(('', '[. > 1]', '/m'))})"
    first = random.choice((f"let $a := {call()}", f"let $a := {call()}", named))
    body = f"for $w in {source} |{window}| {first} let $b := {call()} {where}return {result}"
    return random.choice((body, f"<out>{{ {body} }}</out>"))


@pytest.mark.parametrize("family", range(4))
def test_counting_by_panes_is_the_law(family: int) -> None:
    """However a stream is cut into ranges and epochs: the answer, the dead letters and what is late are the law's."""
    for number in some(range(7)):
        random = Random(f"panes {family} {number}")
        stream, query = random.choice((one_stream, one_stream, one_json_stream))(random), one_query(random)
        plan = stream.plan(query)
        if plan is None:
            continue
        law = stream.by_law(query)
        text, found = stream.by_panes(query, plan, random)
        shown = f"case {family} {number}\n{query}\n{stream}"
        assert text == law.text, shown
        assert sorted(map(str, found.dead)) == sorted(map(str, law.dead)), shown
        assert list(dict.fromkeys(found.places)) == law.late, shown


def some_queries(random: Random) -> list[str]:
    """A few queries, some of which differ in their windows only."""
    queries = [one_query(random) for _ in range(random.choice((1, 2, 3)))]
    for query in tuple(queries):
        before, _, rest = query.partition("|")
        window, _, after = rest.partition("|")
        reference = window.partition(" diff")[0]
        sizes = random.sample(("10", "20 step 10", "5", "30 step 2.5", "0.3 step 0.1", "40 step 60"), 3)
        others = (
            ["count 2", "count 3 step 1"] if window.startswith("count") else [f"{reference} diff {s}" for s in sizes]
        )
        queries += [f"{before}|{each}|{after}" for each in others]
    return queries


@pytest.mark.parametrize("family", range(2))
@pytest.mark.mass
def test_queries_counted_together_do_not_notice_each_other(family: int) -> None:
    """One pass over a range for several queries, one state for all of them: each is answered as the law says."""
    for number in range(5):
        random = Random(f"together {family} {number}")
        stream = one_stream(random)
        queries = some_queries(random)
        known = [(query, plan) for query in queries if (plan := stream.plan(query))]
        found = stream.together([plan for _, plan in known], random)
        for (query, _), (text, each) in zip(known, found, strict=True):
            law = stream.by_law(query)
            shown = f"case {family} {number}\n{query}\n{stream}"
            assert text == law.text, shown
            assert sorted(map(str, each.dead)) == sorted(map(str, law.dead)), shown
            assert list(dict.fromkeys(each.places)) == law.late, shown


def answered(query: str, stream: Stream, ends: bool = True, seed: int = 1) -> str:
    """The answer by panes."""
    plan = stream.plan(query)
    assert plan is not None
    return stream.by_panes(query, plan, Random(seed), ends)[0]


def items(*given: tuple[object, object]) -> list[str]:
    """Items with a time and a number."""
    return [f"<i><t>{time}</t><n>{number}</n></i>" for time, number in given]


AVERAGE = 'for $w in stream("s")/r/i |t diff {}| let $a := avg($w/n) where $a >= 2 return <o>{{ $a }}</o>'


def test_windows_of_several_sizes() -> None:
    """LAWS case 7, and case 8: an average over a window is no average of averages."""
    stream = Stream(items((1, 1), (11, 5)))
    assert answered(AVERAGE.format(10), stream) == "<o>5</o>"
    assert answered(AVERAGE.format(20), stream) == "<o>3</o>"
    stream = Stream(items((1, 1), (2, 1), (31, 4)))
    assert answered(AVERAGE.format("40 step 10"), stream) == "<o>2</o><o>4</o><o>4</o><o>4</o>"


def test_aggregates_do_not_mix() -> None:
    """LAWS case 10, in one query; and windows of which nothing is asked at all."""
    query = 'for $w in stream("s")/r/i |t diff 10| return <o>{ avg($w/n), avg($w/n[. > 1]) }</o>'
    stream = Stream(items((1, 1), (2, 3), (11, 1)))
    assert answered(query, stream) == "<o>2 3</o><o>1</o>"
    assert answered('for $w in stream("s")/r/i[n = 1] |t diff 10| return <hit/>', stream) == "<hit/><hit/>"


def test_a_window_without_values() -> None:
    """LAWS case 12: avg is empty, sum 0, count 0."""
    query = 'for $w in stream("s")/r/i |t diff 10| return <o>{ avg($w/n) }<s>{ sum($w/n), count($w/n) }</s></o>'
    assert answered(query, Stream(["<i><t>3</t></i>"])) == "<o><s>0 0</s></o>"


def test_a_predicate_raises_in_an_item_without_the_value() -> None:
    """It is put to the item before the path goes on; nowhere where what it is put to is missing."""
    shapes = ["<i><t>1</t><n>5</n><c><m>4</m></c></i>", "<i><t>11</t><n/><c><m>4</m></c></i>"] * 10
    stream = Stream([*shapes, "<i><t>21</t><n/><c/></i>", "<i><t>22</t><n>7</n><c/></i>", "<i><t>31</t><c/></i>"])
    for path, dead in (("$w[n >= 2]/c/m", 2), ("$w/c[m >= 2]/m", 0), ("$w/n[. >= 2]", 2)):
        query = f'for $w in stream("s")/r/i |t diff 10| return <o>{{ max({path}) }}</o>'
        plan = stream.plan(query)
        assert plan is not None
        text, found = stream.by_panes(query, plan, Random(1))
        law = stream.by_law(query)
        assert (text, sorted(map(str, found.dead))) == (law.text, sorted(map(str, law.dead)))
        assert len(found.dead) == dead


def test_a_window_of_times_compared_with_a_number() -> None:
    """LAWS 2.3, 2.4: the greatest of dateTimes is one, which is no number; the window's first item names it."""
    query = """for $w in stream("s")/r/i |t diff 10| where max($w/n) > 3
        return <o>{ window-start($w), window-end($w) }</o>"""
    at = "1970-01-01T00:00:0{}Z"
    stream = Stream(["<i><t>1</t></i>", *items((at.format(2), at.format(5)), ("11", 4)), "<i><t>12</t></i>"])
    plan = stream.plan(query)
    assert plan is not None
    text, found = stream.by_panes(query, plan, Random(1))
    law = stream.by_law(query)
    assert (text, list(map(str, found.dead))) == (law.text, list(map(str, law.dead)))
    assert (text, [each.code for each in found.dead]) == ("<o>10 20</o>", ["XPTY0004"])


def test_a_computed_value_that_is_no_number_counts() -> None:
    """LAWS 2.2: NaN is a value, also where it was computed."""
    query = """for $w in stream("s")/r/i |t diff 10|
        return <o>{ count(for $i in $w return $i/n * 2), max(for $i in $w return $i/n * 2) }</o>"""
    stream = Stream(items((1, -3), (2, "NaN"), (3, 5), (11, 4)))
    assert answered(query, stream) == stream.by_law(query).text == "<o>3 NaN</o><o>1 8</o>"


def test_an_item_that_is_not_selected_closes_windows() -> None:
    """LAWS case 13: without an end of input, the window is answered when 100 arrives; its own stays open."""
    query = 'for $w in stream("s")/r/i[n = 1] |t diff 10| return <o>{ count($w) }</o>'
    assert answered(query, Stream(items((1, 1), (100, 0))), ends=False) == "<o>1</o>"
    assert answered(query, Stream(items((1, 1), (100, 1))), ends=False) == "<o>1</o>"
    assert answered(query, Stream(items((1, 1), (9, 1))), ends=False) == ""
    assert answered(query, Stream(items((1, 1), (11, 0)), slack="2"), ends=False) == ""


def test_count_windows_number_the_selected() -> None:
    """LAWS case 5; a window that is not full gives nothing."""
    query = 'for $w in stream("s")/r/i[n > 0] |count 2| return <o>{ min($w/n), max($w/n) }</o>'
    assert answered(query, Stream(items((0, 1), (0, 2), (0, 0), (0, 3), (0, 4), (0, 5)))) == "<o>1 2</o><o>3 4</o>"
    assert answered(query, Stream(items((0, 2), (0, 3), (0, 4), (0, 5)))) == "<o>2 3</o><o>4 5</o>"


def test_a_late_subscription_leaves_out_what_it_does_not_see_whole() -> None:
    """LAWS case 6: what begins with 18 answers from [20,40) on."""
    query = 'for $w in stream("s")/r/i |t diff 20 step 10| return <o>{ min($w/t) }</o>'
    stream = Stream(items((18, 1), (25, 1), (45, 1)), late=True)
    assert answered(query, stream) == "<o>25</o><o>45</o><o>45</o>"


def test_a_jump_over_a_million_million_windows_costs_nothing() -> None:
    """Windows are found from the panes there are."""
    query = 'for $w in stream("s")/r/i |t diff 0.001| return <o>{ count($w) }</o>'
    stream = Stream(items((0, 1), ("1000000000", 1), ("1e30", 1), ("1e1000", 1)))
    assert answered(query, stream) == "<o>1</o>" * 4
    query = 'for $w in stream("s")/r/i |t diff 0.000000000001 step 10000000000| return <o>{ count($w) }</o>'
    assert answered(query, Stream(items((0, 1), ("10000000000", 1), ("10000000001", 1)))) == "<o>1</o>" * 2


def test_the_state_of_another_operator_is_refused() -> None:
    """What an earlier query left under the same name is not taken for panes."""
    with pytest.raises(StateError, match="the state of 'q' is one of 'windows'"):
        unpack(BranchState({"operator": "windows"}), "q")


def test_the_state_is_as_large_as_a_window() -> None:
    """Panes that no open window holds are dropped; however long the stream is, nothing grows."""
    query = 'for $w in stream("s")/r/i |t diff 30 step 10| return <o>{ avg($w/n) }</o>'
    stream = Stream(items(*((time, time % 7) for time in range(2_000))))
    plan = stream.plan(query)
    assert plan is not None
    held: list[int] = []
    sizes: list[int] = []
    state: PaneState | None = None
    lines = stream.data.splitlines(keepends=True)
    for at in range(0, len(lines), 100):
        group = PaneGroup()
        group.add(7, branch := PaneWindows(plan, "q", stream.stream, state, found := Found()))
        offset = sum(map(len, lines[:at]))
        counted = stream.count([[plan]], offset, b"".join(lines[at : at + 100]), Random(1), [found])
        assert not group.take(0, counted, [Served((7,), Fraction(10))])
        group.close((7,))
        assert found.shown <= 2, "items of the usual look are counted in columns"
        blob = pack(group.save()).to_bytes()
        state = unpack(BranchState.from_bytes(blob), "q")[7]
        held.append(branch.held)
        sizes.append(len(blob))
    assert set(held) == {3}
    assert max(sizes) - min(sizes) < 100
