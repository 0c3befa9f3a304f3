"""Queries over update streams on a trunk: the same answers for any epochs, shards and restarts (LAWS 1.2, 5)."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest

from anabranch.branch.display.publishing import wire_time
from anabranch.spark.plan.branches import keeper_of
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source
from anabranch.stream.tree import STREAM_NAMESPACE
from history.hosting import WHEN, Case, Law, random_case, replayed
from mass import some
from spark.bare import BareTrunk
from test_docs import TOP, blocks

S = f'xmlns:s="{STREAM_NAMESPACE}"'


class Lines:
    """A stream of lines that grows, and a trunk that follows it."""

    def __init__(self, folder: Path, seed: int = 1) -> None:
        self.folder = folder / "in"
        self.folder.mkdir()
        self.source = Source("s", self.folder, "lines", updates=True)
        self.trunk = BareTrunk(folder / "state", [self.source], Random(seed), finite=False)
        self.files = 0

    def add(self, *elements: str, queries: Mapping[str, str], sizes: tuple[int, ...] = (60, 1_000)) -> None:
        """More elements come, and are answered."""
        self.files += 1
        (self.folder / f"{self.files:03}").write_text("".join(f"{each}\n" for each in elements))
        self.trunk.run(queries, sizes, [1, 2])

    def shown(self, name: str) -> list[tuple[str, str]]:
        """What a display has shown, with times as texts."""
        return [(str(at), text) for at, text in replayed(self.trunk.log, name)]


@pytest.fixture(params=[0, 3], ids=["in one piece", "in strands"])
def stream(tmp_path: Path, request: pytest.FixtureRequest) -> Lines:
    """A stream whose queries are answered in one piece, or in strands where they can be."""
    found = Lines(tmp_path)
    found.trunk.strands = request.param
    return found


def region(id: str, content: str, at: int) -> str:
    return f'<s:mutable {S} id="{id}" at="{at}">{content}</s:mutable>'


def replace(target: str, content: str, at: int) -> str:
    return f'<s:replace {S} target="{target}" at="{at}">{content}</s:replace>'


@pytest.mark.parametrize("seed", some(range(2)))
@pytest.mark.mass
def test_random_cases_on_a_trunk(seed: int, tmp_path: Path) -> None:
    """After every moment a trunk shows what the law shows, however it was cut into epochs and shards."""
    found = {f"q{number}": random_case(number) for number in range(seed * 15, seed * 15 + 15)}
    cases = {name: each for name, each in found.items() if each is not None}
    sources = {name: each.sources(tmp_path) for name, each in cases.items()}
    given = [each for several in sources.values() for each in several]
    trunk = BareTrunk(tmp_path / "state", given, Random(seed), finite=True)
    trunk.strands = 2 * seed
    trunk.run({name: each.query for name, each in cases.items()}, [300, 1_000, 5_000], [1, 2, 3])
    assert trunk.plan is not None
    assert any(each.strands for each in trunk.plan.subscriptions) is (seed > 0)
    for name, case in cases.items():
        law = Law.of(case, sources[name])
        assert replayed(trunk.log, name) == law.shown, case
        if law.answer is not None:
            assert trunk.answer(name) == law.answer, case


@pytest.mark.mass
def test_large_documents_in_any_epochs(tmp_path: Path) -> None:
    """States that are written in layers, read by one process and another, tell the same to the byte (LAWS 1.2)."""
    random, folder = Random(1), tmp_path / "in"
    folder.mkdir()
    item = '<t {0} s:at="0"><n>{1}</n>{2}</t>'
    lines = [item.format(S, each, region(f"q{each}", f"<q>{each}</q>", 0)) for each in range(120)]
    for at in range(1, 60):
        target = f"q{random.randrange(120)}"
        added = f'<s:after {S} target="{target}" id="a{at}" at="{at}"><q>7</q></s:after>'
        content = random.choice(("", f"<q>{random.randint(1, 300)}</q>", f"<q>{random.randint(1, 300)}</q>"))
        lines.append(random.choice((added, *(replace(target, content, at),) * 4)))
    (folder / "1").write_text("".join(f"{each}\n" for each in lines))
    risen = 'for $t in stream("s")/root/t where $t/q > $t/q#1 order by $t/q descending return <r>{ $t/n, $t/q }</r>'
    queries = {"risen": f"<risen>{{ {risen} }}</risen>", "max": '(max(stream("s")//q), stream("s")/root/t[q = 7])'}
    source = Source("s", folder, "lines", updates=True)
    told: list[list[str]] = []
    for number, sizes in enumerate(((1_000_000,), (500, 3_000), (1_000, 5_000))):
        trunk = BareTrunk(tmp_path / f"state{number}", [source], Random(number), finite=False)
        trunk.strands = number + 1
        trunk.run(queries, sizes, [1, 2, 3, 4])
        found = [trunk.log.subscription(name) for name in queries]
        told.append(["".join(trunk.log.answer(each).pieces()) for each in found if each])
        kept = [each for manifest in trunk.log.manifests.since(0) for each in manifest.states.values()]
        assert (max(len(each.spilled) for each in kept) > 1) is (number > 0)  # there are layers
    assert told[0] == told[1] == told[2]


def test_who_comes_late_begins_with_the_document_as_it_stands(stream: Lines) -> None:
    """LAWS 3.6: lives begin at its start, so there is no version before; ids are known, updates of them act."""
    early = {"early": 'stream("s")/root/b#1'}
    stream.add(region("1", "<b>X</b>", 1), replace("1", "<b>Y</b>", 2), queries=early)
    both = {**early, "late": 'stream("s")/root/b#[1]', "past": 'stream("s")/root/b?[1]'}
    stream.add(replace("1", "<b>Z</b>", 5), f'<s:punctuation {S} at="9"/>', queries=both)
    assert stream.shown("early") == [("2", "<b>X</b>"), ("5", "<b>Y</b>")]
    assert stream.shown("late") == [("2", "<b>Y</b>"), ("5", "<b>Z</b><b>Y</b>")]
    assert stream.shown("past") == [("2", "<b>Y</b>"), ("5", "<b>Z</b><b>Y</b>"), ("9", "<b>Z</b>")]
    assert stream.trunk.answer("past") == "<b>Z</b>"


def test_a_document_is_kept_though_nobody_asks(tmp_path: Path) -> None:
    """A stream advances without subscriptions; of each region what shows now is kept, and no more."""
    stream = Lines(tmp_path)
    stream.add(*(region(str(each), f"<b>{each}</b>", 1) for each in range(5)), queries={})
    sizes = []
    for at in range(2, 12):
        stream.add(*(replace(str(each), f"<b>{at}{each}</b>", at) for each in range(5)), queries={}, sizes=(10_000,))
        (*_, newest) = stream.trunk.log.manifests.since(0)
        sizes.append(newest.states[keeper_of("s")].size)
    assert max(sizes) < 1.1 * min(sizes)
    stream.add(replace("4", "<b>new</b>", 20), queries={"q": 'stream("s")/root/b'})
    assert stream.trunk.answer("q") == "<b>110</b><b>111</b><b>112</b><b>113</b><b>new</b>"


def test_bad_elements_are_set_aside_once(stream: Lines) -> None:
    """Whatever the number of queries, none included: reason and position, and the rest is exact (LAWS 2.5)."""
    queries = {"one": 'count(stream("s")/root/b)', "two": 'stream("s")/root/b#1'}
    good = [region("1", "<b>X</b>", 3), replace("1", "<b>Y</b>", 5)]
    bad = [replace("9", "<b/>", 3), region("1", "<b/>", 4), replace("1", "<b/>", 2)]
    stream.add(good[0], *bad, good[1], queries=queries)
    stream.add(replace("8", "<b/>", 6), queries={})
    letters = list(stream.trunk.log.dead_letters())
    offsets = [len(good[0]) + 1]
    offsets += [offsets[-1] + len(bad[0]) + 1, offsets[-1] + len(bad[0]) + len(bad[1]) + 2]
    assert [(each.place.partition, each.place.offset, each.reason, each.subscription) for each in letters] == [
        ("001", offsets[0], "no region is called '9'", None),
        ("001", offsets[1], "the id '1' is that of a mutable region, which keeps it", None),
        ("001", offsets[2], "its time 2 is before 3, the time of the element before it", None),
        ("002", 0, "no region is called '8'", None),
    ]
    assert stream.shown("one") == [("3", "1")]
    assert stream.shown("two") == [("5", "<b>X</b>")]


def test_a_query_that_fails_shows_nothing_until_it_is_mended(stream: Lines) -> None:
    """An error that belongs to no entry empties the display; then all is told anew, and the error is a dead letter."""
    queries = {"q": '<sum>{ sum(stream("s")/root/b) }<n>{ stream("s")/root/b }</n></sum>'}
    stream.add(region("1", "<b>1</b>", 1), queries=queries)
    stream.add(replace("1", "<b>x</b>", 2), queries=queries)
    stream.add(region("2", "<b>7</b>", 3), queries=queries)
    stream.add(replace("1", "<b>2</b>", 4), queries=queries)
    assert stream.shown("q") == [
        ("1", "<sum>1<n><b>1</b></n></sum>"),
        ("2", ""),
        ("4", "<sum>9<n><b>2</b><b>7</b></n></sum>"),
    ]
    assert {each.subscription for each in stream.trunk.log.dead_letters()} == {"q"}


def test_equal_queries_share_a_branch(tmp_path: Path) -> None:
    """Two that began together are answered once; one that came later has a branch and an answer of its own."""
    stream = Lines(tmp_path)
    text = 'stream("s")/root/b#1'
    stream.add(region("1", "<b>X</b>", 1), queries={"a": text, "b": text})
    stream.add(replace("1", "<b>Y</b>", 2), queries={"a": text, "b": text, "c": text})
    (*_, newest) = stream.trunk.log.manifests.since(0)
    assert len(newest.states) == 3  # the keeper's, and two
    assert stream.shown("a") == stream.shown("b") == [("2", "<b>X</b>")]
    assert stream.shown("c") == [("2", "<b>X</b>")]


def test_an_answer_is_a_stream(stream: Lines, tmp_path: Path) -> None:
    """LAWS 5.7: what a display tells can be registered as a stream of updates, and be asked again."""
    inside = 'for $b in stream("s")/root/b where $b > 3 return <p:c>{ $b/text() }</p:c>'
    queries = {"q": f'<out xmlns:p="u">{{ {inside} }}</out>'}
    stream.add(region("1", "<b>1</b>", 1), region("2", "<b>5</b>", 2), queries=queries)
    stream.add(replace("1", "<b>7</b>", 3), replace("2", "<b>2</b>", 4), queries=queries)
    found = stream.trunk.log.subscription("q")
    assert found is not None
    told = tmp_path / "told.xml"
    told.write_text("".join(stream.trunk.log.answer(found).pieces()))
    again = BareTrunk(tmp_path / "again", [Source("t", told, updates=True)], Random(2), finite=True)
    again.run({"all": 'stream("t")/answer/out', "n": 'count(stream("t")//*:c)'}, [200], [2])
    assert again.answer("all") == stream.trunk.answer("q") == '<out xmlns:p="u"><p:c>7</p:c></out>'
    assert [text for _, text in replayed(again.log, "n")] == ["0", "1", "2", "1"]
    assert Fraction(4) == replayed(again.log, "n")[-1][0]


def test_an_answer_that_is_a_stream_has_a_past(tmp_path: Path) -> None:
    """Each result of a display is a region of its own: `#1` is what was there in its place, and no other's."""
    stream = Lines(tmp_path)
    queries = {"q": 'for $x in stream("s")/root/x where $x/v > 3 return <y>{ $x/@n, $x/v }</y>'}
    entries = [f'<x {S} n="{id}" s:at="1">{region(id, f"<v>{value}</v>", 1)}</x>' for id, value in (("a", 5), ("b", 1))]
    changes = [replace("a", "<v>7</v>", 2), replace("b", "<v>4</v>", 3), replace("a", "<v>0</v>", 4)]
    stream.add(*entries, *changes, queries=queries)
    found = stream.trunk.log.subscription("q")
    assert found is not None
    told = tmp_path / "told.xml"
    told.write_text("".join(stream.trunk.log.answer(found).pieces()))
    again = BareTrunk(tmp_path / "again", [Source("t", told, updates=True)], Random(2), finite=True)
    asked = {"then": 'stream("t")/answer/y?1', "both": 'for $y in stream("t")//y return <z>{ $y/v, $y#1/v }</z>'}
    again.run({**asked, "before": 'stream("t")/answer/y#1'}, [200, 400], [1, 2])
    five, seven, four = ('<y n="a"><v>5</v></y>', '<y n="a"><v>7</v></y>', '<y n="b"><v>4</v></y>')
    assert [text for _, text in replayed(again.log, "before")] == [five, seven]
    assert again.answer("both") == "<z><v>4</v></z>"
    assert again.answer("then") == f"{seven}{four}"


def test_the_answer_on_the_page(tmp_path: Path) -> None:
    """The tutorial shows what the query that it follows tells, to the byte."""
    page = list(blocks(TOP / "docs/history.md"))
    tickers, movers = (
        next(each.text for each in page if each.options.get("stream") == name) for name in ("tickers", "movers")
    )
    risen = next(each.text for each in page if each.kind == "xquery" and "#1" in each.text)
    (tmp_path / "tickers.xml").write_text(tickers)
    source = Source("tickers", tmp_path / "tickers.xml", updates=True)
    trunk = BareTrunk(tmp_path / "state", [source], Random(1), finite=True)
    trunk.run({"movers": risen}, [200], [1, 2])
    found = trunk.log.subscription("movers")
    assert found is not None
    assert "".join(trunk.log.answer(found).pieces()).strip() == movers.strip()


def test_documents_of_one_stream_may_declare_what_they_like(tmp_path: Path) -> None:
    """An item comes with what its own root declares, be it another's than that of the stream."""
    files = [tmp_path / "0.xml", tmp_path / "1.xml"]
    for file, declared in zip(files, ("xmlns:n='urn:n'", "xmlns:m='urn:m'"), strict=True):
        file.write_text(f"<root {S} {declared}><b/>{region('1', '<c/>', 1)}</root>")
    source = Source("s", files[0], more=(files[1],), time=WHEN, updates=True)
    case = Case('stream("s")/root/*', {"s": []})
    trunk = BareTrunk(tmp_path / "state", [source], Random(1), finite=True)
    trunk.run({"q": case.query}, [100], [1, 2])
    assert replayed(trunk.log, "q") == Law.of(case, [source]).shown
    assert '<b xmlns:m="urn:m"' in trunk.answer("q")


def test_what_fails_again_is_told_once(stream: Lines) -> None:
    """An entry that fails is looked at with every update in it, in this epoch or another; it is one dead letter."""
    queries = {"q": 'for $x in stream("s")/root/x return <r>{ $x/v + 1, $x/w }</r>'}
    stream.add(f'<x {S} s:at="1"><v>bad</v><s:mutable id="1"><w>0</w></s:mutable></x>', queries=queries)
    for at in (2, 3):
        stream.add(replace("1", f"<w>{at}</w>", at), replace("1", "<w/>", at), queries=queries)
    assert [each.subscription for each in stream.trunk.log.dead_letters()] == ["q"]


@pytest.mark.parametrize(
    ("time", "written"),
    [("0", "0"), ("12.50", "12.5"), ("100", "100"), ("-3", "0"), ("1e40", "9" * 30 + "." + "9" * 30), ("1e-31", "0")],
)
def test_times_on_the_wire(time: str, written: str) -> None:
    """A time path may give any number; what is told has a time that can be read again."""
    assert f"{wire_time(Fraction(time)):f}" == written


@pytest.mark.parametrize("sizes", [(40, 100), (1_000_000,)])
def test_times_of_their_own_are_not_those_of_arrival(sizes: tuple[int, ...], tmp_path: Path) -> None:
    """A stream without a time path whose elements have times is waited for, whatever the clock says (LAWS 1.2, 1.3)."""
    for name in ("s", "orders"):
        (tmp_path / name).mkdir()
    edited = [f'<e {S} s:at="1">{region("1", "<q>1</q>", 1)}</e>', *(replace("1", f"<q>{at}</q>", at) for at in (4, 6))]
    orders = [f"<i><t>{at}</t></i>" for at in (2, 5, 7)]
    sources = [
        Source("s", tmp_path / "s", "lines", updates=True),
        Source("orders", tmp_path / "orders", "lines", time=ItemPath.parse("t")),
    ]
    trunk = BareTrunk(tmp_path / "state", sources, Random(1), finite=False)
    query = {"q": 'for $i in stream("orders")/root/i return <r>{ $i/t, stream("s")/root/e/q }</r>'}
    for number, (update, order) in enumerate(zip(edited, orders, strict=True)):
        (tmp_path / "orders" / str(number)).write_text(f"{order}\n")
        if number == 0:
            (tmp_path / "s" / "0").write_text(f"{update}\n")
        trunk.run(query, sizes, [1, 2])
        if number:
            (tmp_path / "s" / str(number)).write_text(f"{update}\n")
            trunk.run(query, sizes, [1, 2])
    assert trunk.answer("q") == "<r><t>2</t><q>1</q></r><r><t>5</t><q>4</q></r>"  # 7 waits for what may come before it
