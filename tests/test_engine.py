"""The Python API as a user meets it, on the shared Spark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import anabranch
from anabranch.engine.handles import LiveSubscription
from anabranch.errors import QueryError, StreamError, Unsupported, UsageError
from anabranch.spark.epoch.metrics import Metrics

ALL = '<all>{ for $p in stream("s")/root/p return $p }</all>'


def append(path: Path, *values: object) -> None:
    with path.open("a") as file:
        file.writelines(f"<p>{value}</p>\n" for value in values)


def pieces_until(pieces: Iterator[str], end: str) -> str:
    """Take pieces, as they come, until the text ends like this."""
    text = ""
    while not text.endswith(end):
        text += next(pieces)
    return text


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    return folder


def test_a_stream_is_answered_to_its_end(spark: SparkSession, folder: Path) -> None:
    """With `once`, the pieces of a subscription put together are its answer, and so is `answer()`."""
    append(folder / "a", 1, 2, 3)
    heard: list[Metrics] = []
    with anabranch.Engine(spark, once=True, epoch_bytes=9, on_epoch=heard.append) as engine:
        engine.stream("s", folder, format="lines")
        every = engine.subscribe(ALL)
        none = engine.subscribe('<none>{ for $p in stream("s")/root/p where $p > 9 return $p }</none>', "none")
        assert "".join(every) == "<all><p>1</p><p>2</p><p>3</p></all>"
        assert list(none) == ["<none/>"]
        assert every.answer() == "<all><p>1</p><p>2</p><p>3</p></all>"
        assert none.answer() == "<none/>"
        assert [metrics.epoch for metrics in heard] == [0, 1, 2]
        assert engine.metrics == heard[-1]
        assert heard[-1].matches == {"query-1": 1}


def test_a_piece_is_one_result(folder: Path) -> None:
    """Never an empty text; the front comes with the first result, what is behind the last when all is over."""
    append(folder / "a", 1, 2, 3)
    each = 'for $p in stream("s")/root/p return'
    with anabranch.Engine(local=True, once=True) as engine:
        engine.stream("s", folder, format="lines")
        framed, bare = engine.subscribe(ALL), engine.subscribe(f"{each} $p")
        several, numbers = engine.subscribe(f"{each} ($p, <q/>)"), engine.subscribe(f"{each} $p * 2")
        windows = engine.subscribe('for $w in stream("s")/root/p |count 2| return <n>{ sum($w) }</n>')
        nothing = engine.subscribe('for $p in stream("s")/root/p where $p > 9 return $p')
        assert list(framed) == ["<all><p>1</p>", "<p>2</p>", "<p>3</p>", "</all>"]
        assert list(bare) == ["<p>1</p>", "<p>2</p>", "<p>3</p>"]
        assert list(several) == ["<p>1</p>", "<q/>", "<p>2</p>", "<q/>", "<p>3</p>", "<q/>"]
        assert [float(piece) for piece in numbers] == [2, 4, 6]
        assert list(windows) == ["<n>3</n>"]
        assert list(nothing) == []
        for subscription in (framed, bare, several, numbers, windows, nothing):
            assert "".join(subscription) == subscription.answer()
            assert all(subscription)


def test_pieces_come_while_the_stream_grows(spark: SparkSession, folder: Path) -> None:
    """Iteration waits for new items; a subscription that comes later answers from the first item it sees."""
    append(folder / "a", 1)
    with anabranch.Engine(spark, trigger_ms=20) as engine:
        engine.stream("s", folder, format="lines")
        first = engine.subscribe(ALL)
        pieces = iter(first)
        assert pieces_until(pieces, "<p>1</p>") == "<all><p>1</p>"
        assert first.answer() == "<all><p>1</p></all>"
        second = engine.subscribe(ALL)
        append(folder / "a", 2)
        assert pieces_until(pieces, "<p>2</p>") == "<p>2</p>"
        assert pieces_until(iter(second), "<p>2</p>") == "<all><p>2</p>"
        first.cancel()
        first.cancel()  # once is enough, twice does no harm
        assert list(pieces) == ["</all>"]
        append(folder / "a", 3)
        assert pieces_until(iter(second), "<p>3</p>") == "<all><p>2</p><p>3</p>"
        assert first.answer() == "<all><p>1</p><p>2</p></all>"


def test_windows_answer_while_the_stream_grows(spark: SparkSession, folder: Path) -> None:
    """LAWS cases 5 and 6: a subscription that comes later counts from the first item it sees, and has no window that
    reaches back before it.
    """
    twos = '<r>{ for $w in stream("s")/root/p |count 2| return <w>{ $w }</w> }</r>'
    times = '<r>{ for $w in stream("s")/root/p |self::p diff 20 step 10| return <w>{ count($w) }</w> }</r>'
    append(folder / "a", 5)
    with anabranch.Engine(spark, trigger_ms=20) as engine:
        engine.stream("s", folder, format="lines")
        first, timed = engine.subscribe(twos), engine.subscribe(times)
        engine.start()
        assert engine.trunk.beyond(-1)
        second, late = engine.subscribe(twos), engine.subscribe(times)
        append(folder / "a", 12, 18, 25, 45)
        pieces = iter(timed)
        assert pieces_until(pieces, "<w>1</w>") == "<r><w>3</w><w>3</w><w>1</w>"
        assert first.answer() == "<r><w><p>5</p><p>12</p></w><w><p>18</p><p>25</p></w></r>"
        assert second.answer() == "<r><w><p>12</p><p>18</p></w><w><p>25</p><p>45</p></w></r>"
        assert late.answer() == "<r><w>1</w></r>"
        assert engine.metrics is not None
        assert engine.metrics.held > 0


def test_an_engine_goes_on_from_its_checkpoint(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    """The same subscription has the same answer, continued; a named reader gets what it has not had."""

    def engine() -> anabranch.Engine:
        found = anabranch.Engine(spark, checkpoint=tmp_path / "state", once=True)
        found.stream("s", folder, format="lines")
        return found

    append(folder / "a", 1)
    with engine() as one:
        assert "".join(one.subscribe(ALL, "q").pieces("me")) == "<all><p>1</p></all>"
    append(folder / "a", 2)
    with engine() as two:
        q = two.subscribe(ALL, "q", sink=tmp_path / "out")
        assert "".join(q.pieces("me")) == "<p>2</p></all>"
        assert q.answer() == "<all><p>1</p><p>2</p></all>"
    assert (tmp_path / "out").read_text() == "<all><p>1</p><p>2</p>"


def test_mistakes_are_named_where_they_are_made(folder: Path) -> None:
    """A wrong query, one that needs an end, a missing path, a name taken; the engine goes on after each."""
    append(folder / "a", 1)
    with anabranch.Engine(local=True, once=True) as engine:
        engine.stream("s", folder, format="lines")
        with pytest.raises(UsageError, match="there is a stream 's' already"):
            engine.stream("s", folder)
        with pytest.raises(UsageError, match="there is no"):
            engine.stream("t", folder / "gone")
        with pytest.raises(QueryError, match="no input is called 't'"):
            engine.subscribe('<all>{ stream("t")/root/p }</all>')
        near = """for $x in stream("s")/root/p for $y in stream("s")/root/p
            where $x/t >= $y/t - 1 and $x/t <= $y/t + 1 return $x"""
        with pytest.raises(Unsupported, match="an interval join needs streams whose declared times"):
            engine.subscribe(near)
        with pytest.raises(QueryError, match="refused: stream inside the round of another"):
            engine.subscribe('for $p in stream("s")/root/p return count(stream("s")/root/p[. = $p])')
        taken = engine.subscribe(ALL, "q")
        with pytest.raises(UsageError, match="there is a subscription 'q' already"):
            engine.subscribe(ALL, "q")
        assert taken.answer() == "<all><p>1</p></all>"


def test_what_ends_the_trunk_reaches_whoever_waits(spark: SparkSession, folder: Path) -> None:
    """A file that was read has become shorter: the iteration and the answer raise what the trunk met."""
    (folder / "a").write_text("<p>1</p>\n<p>2</p>\n")
    for broken in (False, True):
        with anabranch.Engine(spark, once=True, checkpoint=folder.parent / "state") as engine:
            engine.stream("s", folder, format="lines")
            subscription = engine.subscribe(ALL, "all")
            if not broken:
                assert subscription.answer() == "<all><p>1</p><p>2</p></all>"
                (folder / "a").write_text("<p>1</p>\n")
                continue
            for wait in (list, LiveSubscription.answer):
                with pytest.raises(StreamError, match="/a' has become shorter: 9 bytes, of which 18 were read"):
                    wait(subscription)


def test_another_python_for_the_workers_is_refused(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    """Our code needs this interpreter's packages; the message says what to set."""
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "/usr/bin/another-python")
    with pytest.raises(UsageError, match="would run '/usr/bin/another-python'") as raised:
        anabranch.Engine(spark)
    assert "set PYSPARK_PYTHON=" in (raised.value.hint or "")


def test_a_closed_engine_starts_no_more(folder: Path) -> None:
    """Its checkpoint belongs to others then."""
    append(folder / "a", 1)
    with anabranch.Engine(local=True, once=True) as engine:
        engine.stream("s", folder, format="lines")
        late = engine.subscribe(ALL)
    with pytest.raises(UsageError, match="the engine is closed"):
        next(islice(late, 1))


def test_an_engine_has_sinks_of_all_kinds(
    spark: SparkSession, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A path is a file; tables and consoles are asked for by name; two sinks in one place are refused."""
    append(folder / "a", 1, 2)
    rows = '<t>{ for $p in stream("s")/root/p return <row>{ $p }</row> }</t>'
    with anabranch.Engine(spark, once=True) as engine:
        engine.stream("s", folder, format="lines")
        engine.subscribe(ALL, sink=tmp_path / "all.xml")
        engine.subscribe(ALL, "shown", sink=anabranch.Console())
        engine.subscribe(rows, "table", sink=anabranch.Parquet(tmp_path / "table"))
        with pytest.raises(UsageError, match="two sinks write to"):
            engine.subscribe(rows, "again", sink=anabranch.Files(tmp_path / "table"))
        with pytest.raises(UsageError, match="two sinks write to it, 'query-1' and 'again'"):
            engine.subscribe(ALL, "again", sink=f"{folder}/../all.xml")
        with pytest.raises(UsageError, match=r"the sink of 'again' cannot be .* the folder that the stream 's' reads"):
            engine.subscribe(ALL, "again", sink=folder / "all.xml")
        with pytest.raises(UsageError, match="cannot give its name to a file"):
            engine.subscribe(ALL, "../again", sink=tmp_path)
        with pytest.raises(UsageError, match="a subscription cannot be called"):
            engine.subscribe(ALL, "\ud800")
        (tmp_path / "table").mkdir()
        with pytest.raises(UsageError, match=r"the stream 't' cannot be .*table': it lies in .* the sink of 'table'"):
            engine.stream("t", tmp_path / "table")
        with pytest.raises(UsageError, match="'no' cannot have a 'parquet' sink"):
            engine.subscribe(ALL, "no", sink=anabranch.Parquet(tmp_path / "no"))
        engine.wait()
    assert (tmp_path / "all.xml").read_text() == "<all><p>1</p><p>2</p>"
    assert capsys.readouterr().out == "shown: <p>1</p>\nshown: <p>2</p>\n"
    assert spark.read.parquet(str(tmp_path / "table")).orderBy("p").collect() == [("1",), ("2",)]


def test_tables_with_columns_that_come_later(spark: SparkSession, tmp_path: Path) -> None:
    """Spark puts the files of a table together by name."""
    (tmp_path / "in").write_text("<p><a>1</a></p>\n<p><a>2</a><b>3</b></p>\n")
    with anabranch.Engine(spark, once=True, epoch_bytes=17) as engine:
        engine.stream("s", tmp_path / "in", format="lines")
        every = '<t>{ for $p in stream("s")/root/p return <row>{ $p/* }</row> }</t>'
        engine.subscribe(every, sink=anabranch.Parquet(tmp_path / "out"))
        engine.wait()
    found = spark.read.option("mergeSchema", "true").parquet(str(tmp_path / "out")).orderBy("a")
    assert [row.asDict() for row in found.collect()] == [{"a": "1", "b": None}, {"a": "2", "b": "3"}]


def test_a_notebook_shows_an_engine(folder: Path) -> None:
    """Streams, subscriptions and numbers, at every stage of its life; of many pieces the newest."""
    append(folder / "a", *range(1000, 1012))
    with anabranch.Engine(local=True, once=True, epoch_bytes=60) as engine:
        assert "<b>Engine</b>, not started: 0 items in all" in engine._repr_html_()
        engine.stream("s", folder, format="lines")
        q = engine.subscribe(ALL, "q")
        assert "<b>q</b>: 0 answers" in q._repr_html_()
        engine.wait()
        shown = engine._repr_html_()
        assert "<b>Engine</b>, ended: 12 items in all" in shown
        assert ">s</td>" in shown
        assert str(folder) in shown
        assert ">12</td>" in shown
        newest = q._repr_html_()
        assert "<b>q</b>: 12 answers" in newest
        assert [f"&lt;p&gt;{n}&lt;/p&gt;" in newest for n in range(1005, 1012)] == [False, False] + [True] * 5
        explained = engine.explain()
        assert str(explained).startswith('stream "s": 1 subscription, 1 different query of 1 shape, 0 branches\n')
        assert "<svg" in explained._repr_html_()
    assert "<b>Engine</b>, closed: 12 items in all" in engine._repr_html_()
    assert "<b>q</b>: 12 answers" in q._repr_html_()


def test_nothing_can_act_in_a_notebook(tmp_path: Path) -> None:
    """Names, queries and data are text whatever they hold: no tag but ours, no attribute, no script."""
    hostile = "<script>alert('1')</script>\"'&\u202e"
    folder = tmp_path / hostile.replace("/", "")
    folder.mkdir()
    (folder / "a").write_text("<p><script>alert(1)</script>&amp;lt;b>\u202e</p>\n")
    with anabranch.Engine(local=True, once=True) as engine:
        engine.stream("s", folder, format="lines")
        query = '<script t="&lt;b onclick=&quot;x&quot;>">{ for $p in stream("s")/root/p return $p }</script>'
        q = engine.subscribe(query, hostile)
        engine.wait()
        for shown in (engine._repr_html_(), q._repr_html_()):
            tags = set(re.findall("<[^>]*>", shown))
            assert {re.split("[ >]", tag.strip("</"))[0] for tag in tags} <= {
                *("div", "b", "table", "tr", "th", "td", "pre", "code")
            }
            assert all(re.fullmatch(r'</?[a-z]+( style="[^"<>&]*")?>', tag) for tag in tags)
            assert "\u202e" not in shown
            assert "&lt;script&gt;alert(" in shown
