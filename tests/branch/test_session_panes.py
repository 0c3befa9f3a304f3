"""Sessions that are counted by panes: the answer, the dead letters and what is late are the law's."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest

from anabranch.branch.panes import sessions
from anabranch.columnar.panes.query import shared
from anabranch.values.time_arithmetic import decimal_of
from branch.counting import Stream, check_state
from branch.test_grouped import one_json_stream, one_stream
from mass import Mass, enough, some

_PATHS = ("$w/n", "$w/n", "$w", "$w/p/q", "$w/t", "$w/n[. > 1]", "$w/missing", "for $i in $w return $i/n * 2")
_GAPS = ("1", "0.5", "0.25", "0.3", "2", "0.07", "6", "PT0.4S", "0.125")


def one_query(random: Random, is_json: bool = False) -> str:
    """Sessions with a key or without one, seen through aggregates, their bounds and their key."""
    key = random.choice((None, "k", "k", "k", "@c", "p/q", "missing", "/r/i/k", "k/text()"))
    key = key.replace("@", "") if key is not None and is_json else key

    def call() -> str:
        return f"{random.choice(('min', 'max', 'sum', 'count', 'avg'))}({random.choice(_PATHS)})"

    def shown() -> str:
        named = ["window-start($w)", "window-end($w)", call(), call(), *(["$a"] if "$a" in first else [])]
        if key is not None:
            named += [f"distinct-values($w/{key})", f"data($w[1]/{key})", f"data(($w/{key})[last()])"]
        return ", ".join(random.sample(named, random.choice((1, 2, 2, 3))))

    first = f"let $a := {call()} " if random.random() < 0.4 else ""
    bound = random.choice(("window-end($w) >= 2", "window-start($w) < xs:dateTime('1970-01-01T00:00:03Z')"))
    where = random.choice(("", "", f"where {call()} >= 1 ", f"where {call()} > 1 or count($w) = 1 ", f"where {bound} "))
    attribute = shown()
    if key is not None and random.random() < 0.2:
        first += f"let $u := $w[1]/{key} "
        attribute = random.choice(("$u", "count($w), $u", "data($u)", "string($u)"))
    if key is not None and random.random() < 0.3:
        attribute = random.choice((f"$w[1]/{key}", f"{call()}, $w[last()]/{key}", f"string($w[1]/{key})"))
    results = (f'<s k="{{ {attribute} }}">{{ {shown()} }}</s>', f"<s><a>{{ {shown()} }}</a>{{ {shown()} }}</s>", "<s/>")
    other = f"<s>{{ {call()} * 2, string(window-end($w)) }}</s>"
    result = random.choice((*results, *results, *results, other))
    by = "" if key is None else f" by {key}"
    chosen = random.choice(("", "", "", "[n >= 1]", "[k]", "[not(n < 2)]"))
    reference = random.choice(("t", "t", "t", "/r/i/t"))
    return (
        f'for $w in stream("s")/r/i{chosen} |{reference} gap {random.choice(_GAPS)}{by}| {first}{where}return {result}'
    )


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


@pytest.mark.parametrize(("family", "most_bytes"), [(0, 1 << 26), (1, 100)])
def test_sessions_by_panes_are_the_law(family: int, most_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However a stream is cut into ranges and epochs, and its sessions into such as are written together."""
    monkeypatch.setattr(sessions, "MOST_BYTES", most_bytes)
    counted = [is_the_law(f"sessions {family} {number}") for number in some(range(30))]
    assert sum(counted) > enough(20), "most of these queries are counted by panes"


def test_sessions_before_the_origin() -> None:
    """The pane before the first one is a pane, too."""
    assert is_the_law("many sessions 2254")


def test_many_sessions_by_panes_are_the_law(mass: Mass) -> None:
    """The same, for many cases."""
    for number in mass.cases(3_000):
        is_the_law(f"many sessions {number}")


_TIMES = ("0", "7", "1e3", "1767225600", "1767225600123", "176722560012345678", "-25", "123456789012345678901")
_PARTS = ("0", "0.5", "0.001", "0.000000001", "0.0000000000000001", "0.1234567890123")
_DISTANCES = ("0.001", "1", "0.000000001", "1800000", "0.5", "123456789012345678", "0.3", "PT30M", "0.0000000000000001")


def test_sessions_of_any_size(mass: Mass) -> None:
    """Values of any digits, near zero and far from it, and gaps of any: nothing is rounded."""
    for number in mass.cases(600):
        random = Random(f"sizes {number}")
        base, part, gap = Fraction(random.choice(_TIMES)), Fraction(random.choice(_PARTS)), random.choice(_DISTANCES)
        width = Fraction(1800) if gap.startswith("P") else Fraction(gap)
        values = [base]
        for _ in range(30):
            values.append(values[-1] + random.choice((0, 1, 1, 2)) * random.choice((part, width / 2, width, -part)))
        items = [f"<i><t>{decimal_of(each):f}</t><k>{random.choice('ab')}</k><n>1</n></i>" for each in values]
        stream = Stream(items, slack=random.choice(("0", "0.25", "1")), origin=random.choice(("0", "0.125", "-7")))
        query = f"""for $w in stream("s")/r/i |t gap {gap}{random.choice(("", " by k"))}|
            return <s s="{{ window-start($w) }}" e="{{ window-end($w) }}">{{ count($w) }}</s>"""
        plan = stream.plan(query)
        assert plan is not None
        text, found = stream.by_panes(query, plan, random)
        law = stream.by_law(query)
        assert text == law.text, (number, query, stream)
        assert list(dict.fromkeys(found.places)) == law.late, (number, query, stream)


def test_sessions_counted_together_do_not_notice_each_other() -> None:
    """One pass for several queries, some of them over the same keys and gaps: each is answered as the law says."""
    for number in some(range(4)):
        random = Random(f"sessions together {number}")
        stream = one_stream(random)
        queries = [one_query(random) for _ in range(3)]
        queries += [each.replace("return ", "where count($w) > 1 return ") for each in queries if "where" not in each]
        queries.append('for $w in stream("s")/r/i |t diff 1| return <w>{ sum($w/n), count($w) }</w>')
        known = [(query, plan) for query in dict.fromkeys(queries) if (plan := stream.plan(query))]
        found = stream.together([plan for _, plan in known], random)
        for (query, _), (text, each) in zip(known, found, strict=True):
            law = stream.by_law(query)
            assert text == law.text, (number, query, stream)
            assert sorted(map(str, each.dead)) == sorted(map(str, law.dead)), (number, query, stream)


def test_sessions_of_one_gap_are_counted_once() -> None:
    """Conditions on sessions and what is shown of them may differ; gaps, keys and what is aggregated may not."""
    by = 'for $w in stream("s")/r/i |t gap {}| {}return <s e="{{ window-end($w) }}">{{ sum($w/n) }}</s>'
    texts = [
        by.format("20 by k", ""),
        by.format("20 by k", "where sum($w/n) > 5 "),
        by.format("20 by k", "").replace("window-end", "window-start"),
        by.format("10 by k", ""),
        by.format("20 by c", ""),
        by.format("20", ""),
        by.format("20 by k", "").replace("/n", "/m"),
        by.format("20", "").replace("gap", "diff"),
    ]
    plans = [plan for text in texts if (plan := Stream([]).plan(text))]
    assert len(plans) == len(texts)
    groups = shared([each.query for each in plans])
    assert sorted(sorted(each) for each in groups) == [[0, 1, 2], [3], [4], [5], [6], [7]]


USERS = [(0, "a"), (10, "b"), (25, "a"), (39, "b"), (100, "a")]


def test_the_cases_of_the_law() -> None:
    """LAWS cases 51 and 52, and items out of order that make two sessions one."""
    times = [f"<i><t>{time}</t></i>" for time in (0, 20, 50, 90)]
    users = [f"<i><t>{time}</t><u>{user}</u></i>" for time, user in USERS]
    plain = 'for $w in stream("s")/r/i |t gap 30| return <s>{ window-start($w), window-end($w), count($w) }</s>'
    keyed = (
        'for $w in stream("s")/r/i |t gap 30 by u| return <s u="{ $w[1]/u }">{ sum($w/t), string(window-end($w)) }</s>'
    )
    cases = (
        (Stream(times), plain, "<s>0 50 2</s><s>50 80 1</s><s>90 120 1</s>"),
        (Stream([*times, "<i><t>70</t></i>"], slack="20"), plain, "<s>0 50 2</s><s>50 120 3</s>"),
        (Stream(users), keyed.replace("string(window-end($w))", "window-end($w)"), '<s u="a">25 55</s>'),
    )
    for stream, query, expected in cases:
        plan = stream.plan(query)
        assert plan is not None
        for seed in range(5):
            assert stream.by_panes(query, plan, Random(seed))[0].startswith(expected)
        assert stream.by_law(query).text.startswith(expected)
    assert Stream(users).plan(keyed) is None, "what may fail because of a key holds its items"


@pytest.mark.parametrize(
    "result",
    [
        "<s>{ $w/n }</s>",
        "<s>{ $w[1]/k }</s>",
        "let $u := $w[1]/k return <s>{ $u }</s>",
        '<s k="{ $w[2]/k }"/>',
        '<s k="{ $w[1]/n }"/>',
        "<s>{ distinct-values($w/n) }</s>",
        "<s>{ string($w[1]/k), 1 }</s>",
        "<s>{ distinct-values($w/k) + 1 }</s>",
        "for $o in $w group by $c := $o/c return <g>{ $c, count($o) }</g>",
    ],
)
def test_other_sessions_hold_their_items(result: str) -> None:
    """What panes are not made for is not counted by them."""
    result = result if result.startswith("let") else f"return {result}"
    assert Stream([]).plan(f'for $w in stream("s")/r/i |t gap 10 by k| {result}') is None


@pytest.mark.mass
def test_what_has_ended_is_forgotten() -> None:
    """However many keys come and go, a branch remembers open sessions only; each range is counted in columns."""
    query = 'for $w in stream("s")/r/i |t gap 15 by k| return <s k="{ $w[1]/k }">{ sum($w/n), window-end($w) }</s>'
    stream = Stream([f"<i><t>{time}.5</t><k>k{time // 70}</k><n>{time % 7}</n></i>" for time in range(2_000)])
    # another key comes after seventy seconds
    check_state(stream, query, width=15, most_keys=2, most_growth=600)


def test_a_dead_letter_shows_an_item_as_the_law_does() -> None:
    """Where a session fails without any value at fault, its first item is named, in the law's spelling."""
    stream = Stream([f"<i><t>{2 * number}</t><q></q><n>{number}</n></i>" for number in range(25)])
    query = 'for $w in stream("s")/r/i |t gap 1| return <s>{ 1 div (count($w) - 1) }</s>'
    plan = stream.plan(query)
    assert plan is not None
    _, found = stream.by_panes(query, plan, Random(2))
    assert found.shown < 10, "most items are counted in columns"
    assert {each.raw for each in found.dead} == {each.raw for each in stream.by_law(query).dead}
    assert len(found.dead) == 25
