"""Windows and groups of items in questions about the past: when they are looked at, and by which engine (LAWS 5.5)."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest

from anabranch.branch.growing.split import growing_query
from anabranch.branch.past.queries import recalled_query
from anabranch.cli import main
from anabranch.law import evaluate
from anabranch.runtime.standing import standing
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source
from history.past import asked, checked, given, item, stream, timeline
from history.test_recalled import sources
from history.test_remember import PATHS, QUALIFIERS, some_stream
from mass import Mass, enough, some
from spark.bare import BareTrunk

STREAMS = {
    "s": stream(item(1, v=1), item(4, v=2), item(11, v=5), item(13, v=1), item(25, v=2)),
    "t": stream(item(2, v=10), item(5, v=20), item(12, v=30), item("12.5", v=40)),
}
"""Those of the cases of the laws."""


def told(query: str) -> list[tuple[str, str]]:
    """What the law shows, and when, as words."""
    shown = timeline(query, STREAMS)
    return [(at, text.replace("</o><o>", " / ").removeprefix("<o>").removesuffix("</o>")) for at, text in shown]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("|t diff 10| return <o>{ sum($w/v), data(stream('t')/r/i/v#1) }</o>", "3 10 / 6 30 / 2 30"),
        ("|count 2| return <o>{ data(($w/v#1, stream('t')/r/i/v#0)) }</o>", "1 10 / 5 40"),
        ("|t gap 4| return <o>{ sum($w/v), data(stream('t')/r/i/v#0) }</o>", "3 20 / 6 40 / 2 40"),
        ("|t diff 10| return <o>{ (count($w))#1, (sum($w/v))?[3] }</o>", "1 3 / 1 6 / 2"),
        ("[v != stream('t')/r/i#0/v div 10]|t diff 10| return <o>{ data($w/v) }</o>", "2 / 5 1 / 2"),
    ],
)
def test_a_window_is_looked_at_when_it_closes(query: str, expected: str) -> None:
    """Cases 226 and 228: later items of other streams are not seen, and what the window has given stands."""
    (*_, (_, last)) = shown = told(f"for $w in stream('s')/r/i{query}")
    assert last == expected
    assert all(last.startswith(text) for _, text in shown)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("group by $k := $x/v return <o>{ $k, data(stream('t')/r/i/v#0) }</o>", "1 40 / 2 40 / 5 40"),
        (
            "let $p := stream('t')/r/i/v#0 group by $k := $x/v return <o>{ $k, data($p) }</o>",
            "1 40 / 2 10 40 / 5 20",
        ),
        (
            "order by $x/v count $c return <o>{ $c, data(($x/t, stream('t')/r/i/v#0)) }</o>",
            "1 1 / 2 13 40 / 3 4 10 / 4 25 40 / 5 11 20",
        ),
    ],
)
def test_tuples_stand_and_groups_are_looked_at_anew(query: str, expected: str) -> None:
    """Case 227: what an item gives is found when it comes, what is said of a group is as of the latest element."""
    assert told(f"for $x in stream('s')/r/i {query}")[-1][1] == expected


def test_a_window_over_what_was() -> None:
    """Case 228: it holds versions as they are at the moment; though the newest come first, none of them is late."""
    shown = dict(told("for $w in stream('s')/r/i?[14]|t diff 10| return <o>{ data($w/v) }</o>"))
    assert (shown["13"], shown["25"]) == ("1 2 / 5 1", "5 1 / 2")
    assert asked("for $w in stream('s')/r/i#[3]|count 2| return <o>{ $w/v }</o>", STREAMS) == (
        "<o><v>1</v><v>2</v></o><o><v>2</v><v>5</v></o>"
    )


# --- by hand ------------------------------------------------------------------------------------------------


def by_hand(streams: dict[str, list[tuple[Fraction, int]]], size: int, step: int, ago: Fraction) -> str:
    """Time windows over `a` with their values, and beside them what `b` had last when they closed, and how many lately.

    Times rise in both, and those of `b` are never those of `a`.
    """
    ours, others = streams["a"], streams["b"]
    found: list[str] = []
    last = ours[-1][0]
    for number in range(int(last) + 1):
        start, end = number * step, number * step + size
        inside = [value for time, value in ours if start <= time < end]
        if inside:
            closed = next((time for time, _ in ours if time >= end), last)
            seen = [(time, value) for time, value in others if time < closed]
            recent = sum(1 for time, _ in seen if time >= closed - ago)
            newest = "".join(f" {value}" for _, value in seen[-1:])
            found.append(f"<o>{sum(inside)}{newest} {recent}</o>")
    return "".join(found)


@pytest.mark.parametrize("seed", some(range(40)))
def test_as_found_by_hand(seed: int) -> None:
    """The law says what a few lines of arithmetic say, which know nothing of moments and evaluators."""
    random = Random(seed)
    streams: dict[str, list[tuple[Fraction, int]]] = {}
    for name, shift in (("a", Fraction(0)), ("b", Fraction(1, 4))):
        time = Fraction(0)
        streams[name] = []
        for _ in range(random.randint(2, 12)):
            time += random.choice((Fraction(1, 2), 1, 3))
            streams[name].append((time + shift, random.randrange(9)))
    size, ago = random.choice((2, 3, 5)), random.choice((1, 2, 6))
    step = random.choice((1, 2, size))
    query = (
        f"for $w in stream('a')/r/i|t diff {size} step {step}| "
        f"return <o>{{ sum($w/v), data(stream('b')/r/i/v#0), count(stream('b')/r/i?[{ago}]) }}</o>"
    )
    written = {name: stream(*(item(float(time), v=v) for time, v in each)) for name, each in streams.items()}
    assert asked(query, written) == by_hand(streams, size, step, Fraction(ago)), query


# --- a trunk ------------------------------------------------------------------------------------------------

WINDOWS = (
    *("|count 2|", "|count 3 step 1|", "|t diff 2|", "|t diff 4 step 2|", "|t gap 1|", "|t gap 1.5 by v|"),
    "|v diff 2|",
)
BODIES = (
    "for $w in stream('a')/r/i{w} return <n>{{ {0}, count({1}) }}</n>",
    "<o>{{ for $w in stream('a')/r/i[v > 0]{w} where sum($w/v) > count({0}) return <p>{{ $w/t, {1} }}</p> }}</o>",
    "for $w in stream('a')/r/i{w} let $p := {0} return sum(($w/v, $p/v, {1}/v))",
    "for $w in stream('a')//i{w} return (count(stream('b')/r/i[v = $w/v]?[3]), $w#0/v, $w#1/v, $w?[1])",
    "for $w in stream('a')/r/i{w}, $y in {0} where $y/v >= $w/v return <p>{{ count($w), $y }}</p>",
    "for $w in stream('a')/r/i{w} for $x in $w group by $k := $x/v return <g k='{{ $k }}'>{{ count($x), {0} }}</g>",
    "for $w in stream('a')/r/i{w} for $x in $w let $p := {0} group by $k := $x/v order by $k "
    "return <g k='{{ $k }}'>{{ count($x), count($p) }}</g>",
    "for $w in stream('a')/r/i{w} return <n>{{ (count($w))#1, (sum($w/t))?[2], {0} }}</n>",
    "for $w in stream('a')/r/i{w} return <n>{{ ({0}, $w) intersect {1} }}</n>",
    "for $w in stream('a')/r/i{w} return <n>{{ (count(stream('b')/r/i))#1, sum($w/v) }}</n>",
    "for $x in stream('a')/r/i|t diff 2|, $y in stream('b')/r/i|t diff 3 step 1| where $x/v = $y/v "
    "return <p>{{ $x/t, $y/t, {0} }}</p>",
    "for $x in stream('a')/r/i|count 2|, $y in stream('b')/r/i|count 2 step 1| "
    "return <p>{{ $x/t, $y/t, count({0}) }}</p>",
)


def a_query(random: Random) -> str:
    """A query over windows, with two questions about the past."""
    paths = [random.choice(PATHS) + random.choice(QUALIFIERS) for _ in range(2)]
    return random.choice(BODIES).format(*paths, w=random.choice(WINDOWS))


def cases(mass: Mass, folder: Path) -> Iterator[tuple[int, Path]]:
    """Numbers with folders of their own."""
    for number in mass.cases(300):
        (folder / str(number)).mkdir()
        yield number, folder / str(number)


def test_random_windows_on_a_trunk(mass: Mass, tmp_path: Path) -> None:
    """Whatever the epochs, shards and processes, it answers what the law does, and sets the same aside."""
    answered = 0
    for number, folder in cases(mass, tmp_path):
        random = Random(number)
        queries = {f"q{each}": a_query(random) for each in range(6)}
        streams = {name: some_stream(random, random.randrange(6, 14)) for name in ("a", "b")}
        trunk = BareTrunk(folder / "state", sources(folder, streams), random, finite=True)
        trunk.run(queries, [80, 200, 1_000], [1, 2, 3])
        for name, query in queries.items():
            parsed = checked(query, streams).query
            found = recalled_query(parsed)
            assert found is not None, query
            assert found.has_windows, query
            law = evaluate(parsed, given(streams), name=name)
            assert trunk.answer(name) == law.text, (number, query)
            answered += bool(law.text)
    assert answered > mass.done


def test_the_cases_on_a_trunk(tmp_path: Path) -> None:
    """Case 226, in epochs of a few bytes, each of which another process may take up."""
    query = "for $w in stream('s')/r/i|t diff 10| return <o>{ sum($w/v), data(stream('t')/r/i/v#1) }</o>"
    trunk = BareTrunk(tmp_path / "state", sources(tmp_path, STREAMS), Random(3), finite=True)
    trunk.run({"q": query}, [30], [1, 2])
    assert trunk.answer("q") == "<o>3 10</o><o>6 30</o><o>2 30</o>"


def test_no_more_is_held_than_windows_and_qualifiers_need(tmp_path: Path) -> None:
    """Of a thousand items those of the open window, and the last one of the other stream."""
    streams = {
        "a": stream(*(item(time, v=1) for time in range(500))),
        "b": stream(*(item(time + 0.5, v=time) for time in range(500))),
    }
    query = "for $w in stream('a')/r/i|t diff 10| return <o>{ sum($w/v), data(stream('b')/r/i/v#0) }</o>"
    trunk = BareTrunk(tmp_path / "state", sources(tmp_path, streams), Random(1), finite=True)
    trunk.run({"q": query}, [2_000], [1])
    held = [each.states[0].held for each in trunk.log.manifests.since(0) if 0 in each.states]
    assert len(held) > enough(5)
    assert 1 < max(held) <= 12


def test_who_comes_late_has_its_first_whole_window(tmp_path: Path) -> None:
    """It leaves out the window that it lands in, and remembers nothing of what was before it (LAWS 3.6)."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in/1").write_text("<i><t>1</t></i>\n<i><t>12</t></i>\n")
    source = Source("s", tmp_path / "in", "lines", root="r", time=ItemPath.parse("t"))
    trunk = BareTrunk(tmp_path / "state", [source], Random(4), finite=False)
    query = "for $w in stream('s')/r/i|t diff 10| return <o>{ data($w/t), '-', data(stream('s')/r/i/t#[9]) }</o>"
    trunk.run({"first": query}, [60], [1])
    (tmp_path / "in/2").write_text("".join(f"<i><t>{time}</t></i>\n" for time in (14, 21, 25, 33)))
    trunk.run({"first": query, "late": query}, [60], [1, 2])
    assert trunk.answer("first") == "<o>1 - 12 1</o><o>12 14 - 21 14 12 1</o><o>21 25 - 33 25 21 14 12 1</o>"
    assert trunk.answer("late") == "<o>21 25 - 33 25 21 14</o>"


@pytest.mark.parametrize(
    "query",
    [
        "for $x in stream('s')/r/i order by $x/v return ($x/v, (max(stream('t')/r/i/v))#1)",
        "for $x in stream('s')/r/i group by $k := $x/v return (count($x), (max(stream('t')/r/i/v))#0)",
        "for $x in stream('s')/r/i let $n := (max(stream('t')/r/i/v))#0 group by $k := $x/v return $n",
        "count(stream('s')/r/i[v > (max(stream('s')/r/i/v))#1])",
        "<o>{ (for $w in stream('s')/r/i|t diff 2| order by max($w/v) return <w>{ count($w) }</w>)#1 }</o>",
        "let $s := stream('s')/r return <o>{ for $x in $s/i order by $x/v return (max(stream('t')/r/i/v))#1 }</o>",
    ],
)
def test_what_stands_is_not_found_anew(query: str) -> None:
    """A display of a growing stream finds such parts anew, over all items; here each has its own moment."""
    parsed = checked(query, STREAMS).query
    assert recalled_query(parsed) is None
    assert growing_query(standing(parsed), {}) is None


def test_what_is_sorted_and_looks_back_is_refused_without_an_end() -> None:
    """It says why, and what to do instead."""
    query = "for $x in stream('s')/r/i order by $x/v return stream('t')/r/i#0"
    reason = standing(checked(query, STREAMS).query).reason
    assert reason is not None
    assert reason.message == "what is sorted, numbered or grouped of items cannot look back before they end"


@pytest.mark.spark
def test_windows_on_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Spark answers what the reference does, to the byte."""
    monkeypatch.chdir(tmp_path)
    random = Random(11)
    for name in ("a", "b"):
        Path(f"{name}.xml").write_text(some_stream(random, 40))
    texts = [a_query(random) for _ in range(3)]
    shown: list[list[str]] = []
    for engine in ("spark", "reference"):
        told: list[str] = []
        for text in texts:
            Path("q.xq").write_text(text)
            line = ["query", "q.xq", "--stream", "a=a.xml", "--stream", "b=b.xml", "--time", "a=t", "--time", "b=t"]
            assert main([*line, "--engine", engine]) == 0, text
            told.append(capsys.readouterr().out)
        shown.append(told)
    assert shown[0] == shown[1]
    assert all(shown[0])
