"""Windows that travel: whatever they are made of on their way, each answer is that of a single engine (LAWS 3.7)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

import papers
from anabranch.branch.remote.written import write_sent
from anabranch.language import check, parse
from anabranch.network.needs import need_of
from anabranch.sharing.match import matches, merge_all
from anabranch.sharing.remote import CombineWindows, MakeWindows, OverWindows, ReadWindows
from anabranch.sharing.tree import PropertyTree
from anabranch.spark.answers.log import AnswerLog
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.epoch.trunk import Trunk
from anabranch.spark.hosts.spark_host import SparkHost
from anabranch.spark.plan.wanted import Workload
from anabranch.stream.elements import DeadLetter
from anabranch.stream.reading.source import Source
from anabranch.stream.settings import Settings
from disk import on_disk
from spark.law import CLOSING, law_of
from spark.sending import Link, Peer
from spark.test_branches import photon_files

VALUES = ("1", "2.5", "0", "-0", "-3.25", "0.1", "1e3", "12345678901234567890.5", "7", "2")
ODD = ("word", "INF", "-INF", "NaN", "")
EXTENTS = ((10, 10), (20, 10), (30, 10), (40, 20), (5, 5), (20, 20), (60, 40), ("0.5", "0.5"), ("1.5", "0.5"), (10, 20))


def items(random: Random, count: int, *, slack: int, odd: float) -> list[str]:
    """Items whose times rise, but for some, and leave gaps."""
    found, at = [], 0.0
    for _ in range(count):
        at += random.choice((0, 0.3, 1, 2, 7, 45 if random.random() < 0.1 else 3))
        time = max(0.0, round(at - random.random() * slack, 2))
        if odd and random.random() < odd / 3:
            time = max(0.0, time - 30)  # late
        content = f"<t>{time}</t><g>{random.randrange(3)}</g>"
        for name in ("en", "x"):
            for _ in range(random.choice((0, 1, 1, 1, 2))):
                content += f"<{name}>{random.choice(ODD if random.random() < odd else VALUES)}</{name}>"
        found.append(f"<i>{content}</i>")
    return found


def query(random: Random, pre: str) -> str:
    """A query over windows that asks for values only."""
    size, step = random.choice(EXTENTS)
    calls = [f"{each}($w/{random.choice(('en', 'x', 'en[. > 1]'))})" for each in ("avg", "sum", "count", "min", "max")]
    first, second = random.sample([*calls, "count($w)"], 2)
    where = random.choice(("", "where $a >= 2", "where $a > 0 or $b < 3", "where not($a = 0)", "where $a < $b"))
    result = random.choice(
        (
            "<o>{ $a }</o>",
            "<o a='{ $a }'>{ $b }</o>",
            "<o>{ if ($a > 1) then $b else () }</o>",
            "if ($b >= 1) then <o>{ $a, $b }</o> else <none/>",
            "<o>{ 1 div $b, $a + 1 }</o>",
        )
    )
    return (
        f'<all>{{ for $w in stream("s")/r/i{pre} |t diff {size} step {step}| '
        f"let $a := {first} let $b := {second} {where} return {result} }}</all>"
    )


def windowed(folder: Path, source: Source, operator: OverWindows, random: Random, *, finite: bool = True) -> Peer:
    """A peer with an operator over windows."""
    return Peer(folder, [source], write_sent(operator, source.name), random, finite=finite)


def tree_of(text: str) -> PropertyTree | None:
    [tree] = need_of(text, {}).inputs
    return tree if tree.window else None


@pytest.mark.parametrize("seed", [1])
def test_answers_are_those_of_a_single_engine(tmp_path: Path, seed: int) -> None:
    """Windows that serve several queries are made once, put together on the way or not, and read by each."""
    check_chain(tmp_path, seed)


def check_chain(folder: Path, seed: int) -> int:
    """Try some queries over one flow; gives how many of them could share it."""
    random = Random(seed)
    slack, odd = random.choice((0, 0, 3)), random.choice((0.0, 0.0, 0.05))
    (folder / "s").write_text("\n".join(items(random, random.randrange(5, 60), slack=slack, odd=odd)) + "\n")
    source = Source("s", folder / "s", "lines", root="r", slack=Fraction(slack), origin=Fraction(random.choice((0, 3))))
    pre = random.choice(("", "[g >= 1]", "[g = 1 or x > 1]" if not odd else "[g < 2]"))
    asked = {text: tree for text in (query(random, pre) for _ in range(4)) if (tree := tree_of(text))}
    if not asked:
        return 0
    made = merge_all(list(asked.values()))
    if made.window is None:
        return 0
    size = (folder / "s").stat().st_size
    maker = windowed(folder / "maker", source, MakeWindows(made), random)
    maker.run((size // 9 + 1, size // 3 + 1, size + 1))
    link = Link(folder / "link", "s.1")
    link.carry(maker.sent())
    for number, (text, tree) in enumerate(asked.items()):
        assert matches(made, tree)
        last, form = link, made
        while random.random() < 0.4:
            name = last.source.name
            between = windowed(folder / f"put-{number}-{name}", last.source, CombineWindows(tree, form), random)
            between.run((100, 1_000, 10_000))
            last, form = Link(folder / f"link-{number}-{name}", f"{name}.1"), tree
            last.carry(between.sent())
        reader = windowed(
            folder / f"reader-{number}", last.source, ReadWindows(CombineWindows(tree, form), text), random
        )
        reader.run((100, 1_000, 10_000))
        law = law_of(check(parse(text), text).query, [source], endless=False)
        label = f"{seed}: {text}"
        assert reader.trunk.answer("q") == law.text, label
        assert _reasons(reader.letters()) == _reasons(law.dead.elements()), label
    return len(asked)


@pytest.mark.parametrize("seed", [0])
def test_who_comes_late(tmp_path: Path, seed: int) -> None:
    """Behind a border, with a stream that goes on, peers that begin there together have what is whole (LAWS 3.6)."""
    check_late(tmp_path, seed)


def check_late(folder: Path, seed: int) -> int:
    """Try one query whose windows are made behind a border; gives how long its answer is."""
    random = Random(f"late {seed}")
    pre = random.choice(("", "[g >= 1]"))
    text = query(random, pre)
    own, other = tree_of(text), tree_of(query(random, pre))
    if own is None:
        return 0
    merged = merge_all([own, other]) if other else own
    made = merged if merged.window else own
    slack = random.choice((0, 4))
    given = items(random, random.randrange(10, 60), slack=slack, odd=0.0)
    borders = sorted(random.randrange(1, len(given)) for _ in range(3))
    portions = [given[a:b] for a, b in zip([0, *borders], [*borders, len(given)], strict=True)]
    portions[-1].append(CLOSING[False].decode().strip())
    late_from = random.randrange(1, 4)
    source = Source("s", folder / "s", "lines", root="r", slack=Fraction(slack), origin=Fraction(random.choice((0, 2))))
    rest = replace(source, path=folder / "rest")
    on_disk(source.path).mkdir()
    on_disk(rest.path).mkdir()
    maker = windowed(folder / "maker", source, MakeWindows(made), random, finite=False)
    links = [Link(folder / "link", "a"), Link(folder / "on", "b")]
    between = windowed(folder / "between", links[0].source, CombineWindows(own, made), random, finite=False)
    reader = windowed(
        folder / "reader", links[1].source, ReadWindows(CombineWindows(own, own), text), random, finite=False
    )
    for number, portion in enumerate(portions):
        for each in (source, rest) if number >= late_from else (source,):
            (on_disk(each.path) / f"{number}").write_text("".join(f"{item}\n" for item in portion))
        sizes = (200, 1_000, 10_000)
        maker.run(sizes, without=number < late_from)
        links[0].carry(maker.sent())
        between.run(sizes)
        links[1].carry(between.sent())
        reader.run(sizes)
    law = law_of(check(parse(text), text).query, [rest], endless=True, late=["s"])
    assert reader.trunk.answer("q") == law.text, f"{seed}: {text}"
    return len(law.text)


def through(folder: Path, lines: Sequence[str], *queries: str) -> list[Peer]:
    """Queries over one flow of windows, which serves all of them, one reader for each."""
    (folder / "s").write_text("".join(f"{each}\n" for each in lines))
    source = Source("s", folder / "s", "lines", root="r")
    trees = [tree for tree in map(tree_of, queries) if tree]
    made = merge_all(trees)
    assert made.window is not None
    maker = windowed(folder / "maker", source, MakeWindows(made), Random(1))
    maker.run((60, 200))
    link = Link(folder / "link", "s.1")
    link.carry(maker.sent())
    readers = [
        windowed(
            folder / f"reader-{number}", link.source, ReadWindows(CombineWindows(tree, made), text), Random(number)
        )
        for number, (text, tree) in enumerate(zip(queries, trees, strict=True))
    ]
    for each in readers:
        each.run((100, 1_000))
    return readers


def test_cases_of_the_laws(tmp_path: Path) -> None:
    """Cases 7, 8, 10 and 12, all out of one flow: an average is none of averages, and no value is another's."""
    asked = 'for $w in stream("s")/r/p |t diff {}| {} return <o>{{ {} }}</o>'
    queries = (
        asked.format(10, "let $a := avg($w/en) where $a >= 2", "$a"),
        asked.format(20, "let $a := avg($w/en) where $a >= 2", "$a"),
        asked.format(40, "", "avg($w/en), avg($w/en[. > 1])"),
        asked.format(10, "", "sum($w/en), count($w/en), count($w)"),
    )
    items = [(1, "<en>1</en>"), (2, "<en>1</en>"), (11, "<en>5</en>"), (31, "<en>3</en>"), (41, "")]
    readers = through(tmp_path, [f"<p><t>{at}</t>{content}</p>" for at, content in items], *queries)
    sums = "<o>2 2 2</o><o>5 1 1</o><o>3 1 1</o><o>0 0 1</o>"
    averages = ["<o>5</o><o>3</o>", "<o>2.3333333333333335</o><o>3</o>", "<o>2.5 4</o><o/>", sums]
    assert [each.trunk.answer("q") for each in readers] == averages


def test_a_value_that_fails_fails_everywhere(tmp_path: Path) -> None:
    """LAWS 2.4: the window is set aside for whoever looks at the value, with its code, and for nobody else."""
    asked = 'for $w in stream("s")/r/p |t diff 10| let $a := {} where $a >= 1 return <o>{{ $a }}</o>'
    lines = [f"<p><t>{at}</t><en>{en}</en></p>" for at, en in ((1, "1"), (2, "x"), (11, "2"))]
    first, second = through(tmp_path, lines, asked.format("avg($w/en)"), asked.format("count($w/en)"))
    assert first.trunk.answer("q") == "<o>2</o>"
    [letter] = first.letters()
    assert (letter.reason, letter.code, letter.place.stream) == ("'x' is no number", "FORG0001", "s.1")
    assert letter.raw.startswith('<w n="0">')
    assert second.trunk.answer("q") == "<o>2</o><o>1</o>"
    assert not second.letters()


def test_who_reads_windows_that_had_begun_ends(tmp_path: Path) -> None:
    """An open window is one sum already: whoever has not seen it from its beginning gives nothing, and says so."""
    text = 'for $w in stream("s")/r/p |t diff 10| return <o>{ count($w) }</o>'
    tree = tree_of(text)
    assert tree is not None
    link = Link(tmp_path / "link", "s.1")
    link.carry(['<w n="0"><v c="1"/></w><reached n="1"/>'])
    reader = windowed(tmp_path / "reader", link.source, ReadWindows(CombineWindows(tree, tree), text), Random(1))
    reader.run((1_000,))
    assert reader.trunk.answer("q") == ""
    [manifest] = list(reader.trunk.log.manifests.since(0))
    [reason] = manifest.aborted.values()
    assert "had begun before" in reason


def test_an_accent_comes_between_windows(tmp_path: Path) -> None:
    """What is sent has one unit, that of the beginning; whoever reads it follows the accent as if it had come there."""
    accent = '<s:accent xmlns:s="urn:anabranch:stream"><s:alter path="en" by=". * 2"/></s:accent>'
    item = "<p><t>1</t><en>1</en></p>"
    text = 'for $w in stream("s")/r/p |t diff 10| return <o>{ sum($w/en) }</o>'
    [reader] = through(tmp_path, [item, accent, item], text)
    assert "<i/>" in reader.trunk.answer("beside")
    assert not list(reader.trunk.log.manifests.since(0))[-1].aborted
    let_out = '<s:accent xmlns:s="urn:anabranch:stream"><s:alter path="." by=". * 2"/></s:accent>'
    assert reader.trunk.answer("q") == f"{let_out}<o>3</o>"


@pytest.mark.spark
def test_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    """q1 and q2 of the paper over one flow of windows, each trunk on Spark, in epochs of some size."""
    source = photon_files(tmp_path, "photons", 300, 5, 1)
    queries = {"q1": papers.Q1, "q2": papers.Q2}
    trees = {name: tree for name, text in queries.items() if (tree := tree_of(text))}
    made = merge_all(list(trees.values()))
    flow = on_spark(spark, tmp_path / "maker", source, {"flow": write_sent(MakeWindows(made), "photons")}, 26_000)
    link = Link(tmp_path / "link", "flow")
    link.carry([flow["flow"]])
    reading = {
        name: write_sent(ReadWindows(CombineWindows(trees[name], made), text), "flow") for name, text in queries.items()
    }
    found = on_spark(spark, tmp_path / "reader", link.source, reading, 250)
    assert found == {
        name: law_of(check(parse(text), text).query, [source], endless=False).text for name, text in queries.items()
    }
    assert all(len(each) > len("<photons></photons>") for each in found.values())


def on_spark(
    spark: SparkSession, folder: Path, source: Source, texts: Mapping[str, str], epoch_bytes: int
) -> dict[str, str]:
    """What a trunk answers over one stream, to its end, in several epochs."""
    with Trunk(SparkHost(spark), folder, Settings(trigger_ms=20, finite=True, shards=2)) as trunk:
        trunk.want(Workload({source.name: source}, texts, epoch_bytes=epoch_bytes))
        trunk.start(once=True)
        trunk.wait()
    log = AnswerLog(Checkpoint.at(folder))
    assert len(log.manifests.epochs()) > 1
    known = {name: each for name in texts if (each := log.subscription(name))}
    return {name: log.answer(each).text() for name, each in known.items()}


def _reasons(letters: Iterable[DeadLetter]) -> Counter[tuple[str, str | None]]:
    return Counter((each.reason, each.code) for each in letters)
