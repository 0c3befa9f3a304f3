"""`anabranch run` and `anabranch answer`: sites, hot reload, sinks, logs; on the shared Spark."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from threading import Event, Thread
from time import monotonic

import pytest
from pyspark.sql import SparkSession

from anabranch.cli import main
from anabranch.errors import AnabranchError, UsageError
from anabranch.run_control import Log
from anabranch.running import run
from anabranch.site import read_site
from anabranch.spark.sinks import Console, Files, Parquet
from anabranch.storage import Location
from anabranch.stream.limits import SITE_CAPS
from anabranch.stream.settings import Keep, Settings

SITE = """\
[engine]
checkpoint = "state"
trigger_ms = 20
log = "log"

[streams.s]
source = "files"
path = "in"
format = "lines"
"""
SUBSCRIPTION = """
[subscriptions.{name}]
query = "{name}.xq"
"""
ALL = '<all>{ for $p in stream("s")/root/p return $p }</all>'
TENS = '<tens>{ for $w in stream("s")/root/p[. < 50] |self::p diff 10| return <w>{ count($w) }</w> }</tens>'
TWOS = '<twos>{ for $w in stream("s")/root/p |count 2| return <w>{ $w }</w> }</twos>'
ODD = '<odd>{ for $p in stream("s")/root/p where $p mod 2 = 1 return $p }</odd>'
PATIENCE = 60.0


class Folder:
    """A site in the working directory."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.file = top / "site.toml"
        (top / "in").mkdir()
        self.site()

    def site(self, text: str = "", **queries: str) -> None:
        """Write the site, with these subscriptions; the queries before it, since the site names them."""
        for name, query in queries.items():
            (self.top / f"{name}.xq").write_text(query)
        self.file.write_text(SITE + "".join(SUBSCRIPTION.format(name=name) for name in queries) + text)

    def append(self, *values: object) -> None:
        with (self.top / "in" / "a").open("a") as file:
            file.writelines(f"<p>{value}</p>\n" for value in values)

    def events(self) -> list[dict[str, object]]:
        path = self.top / "log"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def last_event(self) -> dict[str, object]:
        """The last thing that the log tells, without its time."""
        return {key: value for key, value in self.events()[-1].items() if key != "time"}

    def await_event(self, kind: str, **fields: object) -> dict[str, object]:
        """Wait until the log tells of it."""
        deadline = monotonic() + PATIENCE
        while monotonic() < deadline:
            for each in self.events():
                if each["event"] == kind and fields.items() <= each.items():
                    return each
            Event().wait(0.02)
        raise AssertionError(f"no '{kind}' with {fields} in {self.events()}")

    @contextmanager
    def running(self) -> Iterator[None]:
        """The site at work on another thread."""
        stop = Event()
        failures: list[AnabranchError] = []

        def work() -> None:
            try:
                run(self.file, stop=stop)
            except AnabranchError as error:
                failures.append(error)

        thread = Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join(PATIENCE)
        assert failures == []
        assert not thread.is_alive()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.chdir(tmp_path)
    return Folder(tmp_path)


def answer(name: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["answer", "site.toml", name]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("slack", "origin"), [("2000", "86400000"), ('"PT2S"', '"1970-01-02"'), ("2e3", "1970-01-02T00:00:00Z")]
)
def test_a_site_says_how_its_time_runs(folder: Folder, slack: str, origin: str) -> None:
    """Slack and origin are numbers of the time's unit, or a duration and a moment; all of it is kept in seconds."""
    folder.file.write_text(f'{SITE}time = "t"\ntime_unit = "ms"\nslack = {slack}\norigin = {origin}\n')
    source = read_site(folder.file).streams["s"]
    assert (source.time_unit, source.slack, source.origin) == ("ms", Fraction(2), Fraction(86_400))
    assert source.scale(source.time).slack == 2_000


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('time_unit = "ms"', "a 'time_unit' needs a 'time'"),
        ('time = "t"\ntime_unit = "m"', "the time unit 'm' is unknown"),
        ('slack = "soon"', "'slack' takes a number, or a duration such as PT5S, not 'soon'"),
        ('root = ""', "'root' takes the name of an element, not ''"),
        ('item = "1x"', "'item' takes the name of an element, not '1x'"),
        ("slack = -1", "'slack' is how late items may come: '-1' is below 0"),
        ('slack = "-PT5S"', "'slack' is how late items may come: '-PT5S' is below 0"),
        ("origin = true", "'origin' takes a number, or a dateTime"),
    ],
)
def test_what_makes_no_sense_is_refused(folder: Folder, lines: str, message: str) -> None:
    """By the name of the key, with file and table."""
    folder.file.write_text(f"{SITE}{lines}\n")
    with pytest.raises(UsageError, match=f"site.toml.*{message}"):
        read_site(folder.file)


def test_a_site_says_all_there_is_to_say(folder: Folder) -> None:
    """Every setting is read; paths are relative to the file."""
    (folder.top / "s.dtd").write_text("<!ELEMENT root (p*)><!ELEMENT p (#PCDATA)>")
    more = 'time = "t"\nslack = 2\norigin = 0.5\nstrict = true\nroot = "r"\nitem = "i"\ndtd = "s.dtd"\n'
    engine = 'epoch_bytes = 1000\nepoch_files = 3\nkeep = "5 GB"\nshards = 4\nsharing = false\n'
    engine += 'late = "late"\ndead_letters = "dead"\n'
    text = SITE.replace("log =", f"{engine}log =") + more + SUBSCRIPTION.format(name="all")
    folder.file.write_text(text + 'sink = "files"\npath = "out/all"\n')
    (folder.top / "all.xq").write_text(ALL)
    site = read_site(folder.file)
    kept = Keep(bytes=5 * 10**9)
    expected = Settings(20, kept, shards=4, sharing=False, epoch_bytes=1000, epoch_files=3, caps=SITE_CAPS)
    assert site.settings == expected
    assert (site.checkpoint, site.owner) == (Location.of(folder.top / "state"), folder.file)
    assert (site.dead_letters, site.late_items) == (Location.of(folder.top / "dead"), Location.of(folder.top / "late"))
    source = site.streams["s"]
    assert (str(source.time), source.slack, source.origin, source.strict) == ("t", Fraction(2), Fraction(1, 2), True)
    assert (source.root, source.item, source.path, source.format) == ("r", "i", Location.of(folder.top / "in"), "lines")
    assert source.time_unit is None
    assert site.subscriptions["all"].sink == Files(folder.top / "out/all")
    assert site.subscriptions["all"].text == ALL


def test_the_page_shows_a_site_that_can_be_read(folder: Folder) -> None:
    """The SITE.toml in docs/running.md is one, to the last key."""
    page = Path(__file__).parent.parent.joinpath("docs/running.md").read_text(encoding="utf-8")
    example = page.split("## SITE.toml\n\n```\n")[1].split("```")[0]
    folder.file.write_text(example)
    (folder.top / "vela.xq").write_text(ALL)
    (folder.top / "alerts.xq").write_text(ALL)
    (folder.top / "photons.dtd").write_text("<!ELEMENT photons (photon*)>")
    site = read_site(folder.file)
    assert (list(site.streams), list(site.subscriptions)) == (["photons", "hot", "orders"], ["vela", "alerts"])
    assert site.settings.keep == Keep(bytes=20 * 10**9)
    assert site.subscriptions["vela"].sink == Files(folder.top / "out/vela.xml")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("checkpoint", "chekpoint"), r"\[engine\] lacks 'checkpoint'"),
        (("trigger_ms = 20", "trigger = 20"), r"\[engine\]: 'trigger' is unknown"),
        (("trigger_ms = 20", "trigger_ms = 'fast'"), r"\[engine\]: 'trigger_ms' takes a positive number, not 'fast'"),
        (('"files"', '"pigeons"'), r"\[streams.s\]: the source 'pigeons' is unknown"),
        (('path = "in"', 'path = "nowhere"'), r"\[streams.s\]: there is no '.*nowhere'"),
        (('"lines"', '"csv"'), r"\[streams.s\]: the format 'csv' is unknown"),
        (('format = "lines"', "updates = 1"), r"\[streams.s\]: 'updates' takes true, false or 'upsert', not '1'"),
        (("[engine]", "[engine"), "site.toml': expected"),
        (("[streams.s]", "[stream.s]"), "the file: 'stream' is unknown"),
        (('query = "all.xq"', 'query = "gone.xq"'), "cannot read '.*gone.xq'"),
        (('query = "all.xq"', 'query = "all.xq"\nsink = "files"'), "'sink' and 'path' go together"),
        (('query = "all.xq"', 'query = "all.xq"\npath = "out"'), "'sink' and 'path' go together"),
        (('query = "all.xq"', 'query = "all.xq"\nsink = "parquet"'), "'sink' and 'path' go together"),
        (('query = "all.xq"', 'query = "all.xq"\nsink = "csv"\npath = "out"'), "the sink 'csv' is unknown"),
        (('query = "all.xq"', 'query = "all.xq"\nsink = "console"\npath = "out"'), "'console' takes no 'path'"),
        (('query = "all.xq"', 'query = "all.xq"\nsink = "files"\npath = "log"'), "'.*log' would be written twice over"),
    ],
)
def test_a_site_that_is_wrong_is_refused(folder: Folder, change: tuple[str, str], message: str) -> None:
    """The message names the file, the table and the key."""
    folder.site(all=ALL)
    text = folder.file.read_text()
    assert change[0] in text
    folder.file.write_text(text.replace(*change))
    with pytest.raises(UsageError, match=message):
        read_site(folder.file)


@pytest.mark.parametrize(
    ("change", "hint"),
    [
        (('format = "lines"', 'tiem = "t"'), "did you mean 'time'?"),
        (("trigger_ms = 20", "trigger = 20"), "did you mean 'trigger_ms'?"),
        (("trigger_ms = 20", "Trigger_MS = 20"), "did you mean 'trigger_ms'?"),
        (("trigger_ms = 20", "colour = 20"), None),
        (("[streams.s]", "[stream.s]"), "did you mean 'streams'?"),
        (("checkpoint", "chekpoint"), "'chekpoint' is unknown, did you mean 'checkpoint'?"),
        (('path = "in"', 'pth = "in"'), "'pth' is unknown, did you mean 'path'?"),
        (("query =", "qeury ="), "'qeury' is unknown, did you mean 'query'?"),
    ],
)
def test_a_misspelt_key_is_told_what_it_may_mean(folder: Folder, change: tuple[str, str], hint: str | None) -> None:
    """The hint names the known key of nearly the same letters, also where the key that is misspelt is a required one;
    a key that is like none has no hint."""
    folder.site(all=ALL)
    folder.file.write_text(folder.file.read_text().replace(*change))
    with pytest.raises(UsageError) as caught:
        read_site(folder.file)
    assert caught.value.hint == hint


def test_a_misspelt_name_on_the_command_line_is_told_what_it_may_mean(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    """Subscriptions, streams of a site and streams of options alike."""
    folder.site(all=ALL)
    assert main(["answer", "site.toml", "al"]) == 2
    assert "hint: did you mean 'all'?" in capsys.readouterr().err
    folder.file.write_text(folder.file.read_text().replace("[streams.s]", "[streams.sensors]"))
    assert main(["history", "site.toml", "sensor"]) == 2
    assert "hint: did you mean 'sensors'?" in capsys.readouterr().err
    assert main(["query", "all.xq", "--stream", "sensors=in", "--time", "sensor=t"]) == 2
    assert "hint: did you mean 'sensors'?" in capsys.readouterr().err


def test_the_log_has_times_and_the_error_that_ended_a_run(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    """Every line tells when, in UTC to the millisecond; what ends a run is told there too, with code and hint."""
    folder.site(all='<all>{ for $p in stream("r")/root/p return $p }</all>')
    before = datetime.now(UTC)
    assert main(["run", "site.toml"]) == 1
    assert "no input is called 'r'" in capsys.readouterr().err
    (event,) = folder.events()
    assert {key: event[key] for key in ("event", "message", "code", "hint")} == {
        "event": "failed",
        "message": "no input is called 'r'",
        "code": "FODC0002",
        "hint": "the inputs given are: 's'",
    }
    time = str(event["time"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", time)
    assert before - timedelta(milliseconds=1) <= datetime.fromisoformat(time) <= datetime.now(UTC)


def test_an_error_of_ours_is_in_the_log_too(tmp_path: Path) -> None:
    """What nobody foresaw ends a run like any other error: the log says which it was."""
    with pytest.raises(ZeroDivisionError), Log.opened(tmp_path / "log"):
        print(1 // 0)
    (line,) = (tmp_path / "log").read_text().splitlines()
    assert json.loads(line)["event"] == "failed"
    assert json.loads(line)["message"].startswith("ZeroDivisionError: ")


def test_a_subscription_names_its_sink(folder: Folder) -> None:
    """A file, a file in a folder that is there, a folder for tables, the console, or nothing but the answer log."""
    (folder.top / "out").mkdir()
    for sink, expected in (
        ('sink = "files"\npath = "all.xml"\n', Files(folder.top / "all.xml")),
        ('sink = "files"\npath = "out"\n', Files(folder.top / "out/all.xml")),
        ('sink = "parquet"\npath = "out"\n', Parquet(folder.top / "out")),
        ('sink = "console"\n', Console()),
        ("", None),
    ):
        folder.site(sink, all=ALL)
        assert read_site(folder.file).subscriptions["all"].sink == expected


def test_an_answer_that_is_no_table_has_no_parquet(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    """Refused by name, before anything starts."""
    folder.site('sink = "parquet"\npath = "out"\n', all=ALL)
    assert main(["run", "site.toml", "--once"]) == 2
    assert "subscription 'all' cannot have a 'parquet' sink: the answer is no table" in capsys.readouterr().err
    assert not (folder.top / "state").exists()


@pytest.mark.parametrize(
    ("query", "message", "hint"),
    [
        (
            'for $x in stream("s")/root/p for $y in stream("s")/root/p where $x/t >= $y/t - 1 and $x/t <= $y/t + 1 '
            "return <r>{ $x/t, $y/t }</r>",
            "an interval join needs streams whose declared times are what it compares",
            'hint: declare them, as in time = "det_time", or use windows',
        ),
        (
            'let $w := (for $w in stream("s")/root/p|t diff 1| return $w) return $w/t',
            "a 'let' that holds a whole stream has to wait for the end of the input",
            "hint: 'anabranch query' answers it over finite inputs",
        ),
        (
            'for $x in stream("s")/root/p return <n>{ count(stream("s")/root/p) }</n>',
            "stream inside the round of another",
            "hint: name all streams in the 'for' clauses of one expression",
        ),
        (
            'for $x in stream("s")/root/p, $y in stream("s")/root/p where $x != $y return $x',
            "unbounded second stream",
            "hint: give both a window, or tie them together in 'where', by equal keys or by an interval",
        ),
    ],
    ids=["interval join", "all windows", "second loop", "unbounded join"],
)
def test_a_query_that_waits_for_the_end_is_refused(
    folder: Folder, capsys: pytest.CaptureFixture[str], query: str, message: str, hint: str
) -> None:
    """A stream that runs has no end: what needs one is refused by name, before anything starts."""
    folder.site(all=query)
    assert main(["run", "site.toml", "--once"]) == 1
    shown = capsys.readouterr().err
    assert message in shown
    assert hint in shown
    assert not (folder.top / "state").exists()


@pytest.mark.spark
@pytest.mark.parametrize("updates", [False, True])
def test_what_has_no_answer_before_the_end_is_on_display(
    spark: SparkSession, folder: Folder, capsys: pytest.CaptureFixture[str], updates: bool
) -> None:
    """With `updates = true` and without it such queries have an answer, which is corrected from run to run."""
    queries = {
        "ordered": 'for $p in stream("s")/root/p order by $p return $p',
        "counted": '<n>{ count(stream("s")/root/p) }</n>',
        "twice": '<r>{ stream("s")/root/p, stream("s")/root/p }</r>',
    }
    folder.site(**queries)
    if updates:
        folder.file.write_text(folder.file.read_text().replace("[streams.s]", "[streams.s]\nupdates = true"))
    folder.append(7, 5)
    assert main(["run", "site.toml", "--once"]) == 0
    assert answer("ordered", capsys) == "<p>5</p><p>7</p>\n"
    assert answer("counted", capsys) == "<n>2</n>\n"
    folder.append(6)
    assert main(["run", "site.toml", "--once"]) == 0
    assert answer("ordered", capsys) == "<p>5</p><p>6</p><p>7</p>\n"
    assert answer("counted", capsys) == "<n>3</n>\n"
    assert answer("twice", capsys) == "<r><p>7</p><p>5</p><p>6</p><p>7</p><p>5</p><p>6</p></r>\n"
    warned = "'ordered' keeps one row per item of 's' that adds to its answer, which grows"
    warnings = [str(each["message"]) for each in folder.events() if each["event"] == "warning"]
    assert any(warned in each for each in warnings) is not updates
    assert not any("'counted' keeps" in each for each in warnings)


def test_the_answer_of_what_never_ran_is_empty(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    """No run, no items; a name that nobody knows is an error."""
    folder.site(all=ALL)
    assert answer("all", capsys) == "<all/>\n"
    assert main(["answer", "site.toml", "other"]) == 2
    assert "has no subscription 'other'" in capsys.readouterr().err


@pytest.mark.spark
@pytest.mark.parametrize("first", ["<root>\n<p>0</p>\n</root>".encode("utf-16"), b"<root a=1>\n<p>0</p>\n</root>\n"])
def test_a_first_file_that_cannot_be_read(
    spark: SparkSession, folder: Folder, capsys: pytest.CaptureFixture[str], first: bytes
) -> None:
    """LAWS 2.5: `run` and `query` set it aside with its reason and answer from the next files."""
    (folder.top / "in" / "0").write_bytes(first)
    (folder.top / "in" / "1").write_text("<root>\n<p>1</p>\n<p>2</p>\n</root>\n")
    folder.site(all=ALL)
    folder.file.write_text(folder.file.read_text().replace('"lines"', '"auto"'))
    assert main(["run", "site.toml", "--once", "--dead-letter", "dead"]) == 0
    assert answer("all", capsys) == "<all><p>1</p><p>2</p></all>\n"
    (letter,) = map(json.loads, (folder.top / "dead").read_text().splitlines())
    assert letter["partition"] == "0"
    for engine in ("spark", "reference"):
        given = ["query", "all.xq", "--stream", "s=in", "--engine", engine, "--dead-letter", f"{engine}.json"]
        assert main(given) == 0
        assert capsys.readouterr().out == "<all><p>1</p><p>2</p></all>\n"
        assert (folder.top / f"{engine}.json").read_text() == (folder.top / "dead").read_text()


@pytest.mark.spark
def test_run_once_and_answer(spark: SparkSession, folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    """To the end of what is there, twice; answers, sink, dead letters and metrics add up."""
    folder.site('sink = "files"\npath = "out/all"\n', all=ALL)
    folder.append(1, 2)
    assert main(["run", "site.toml", "--once", "--dead-letter", "dead"]) == 0
    assert answer("all", capsys) == "<all><p>1</p><p>2</p></all>\n"
    folder.append(3)
    with (folder.top / "in/a").open("a") as file:
        file.write("broken\n")
    assert main(["run", "site.toml", "--once", "--dead-letter", "dead"]) == 0
    assert answer("all", capsys) == "<all><p>1</p><p>2</p><p>3</p></all>\n"
    assert (folder.top / "out/all").read_text() == "<all><p>1</p><p>2</p><p>3</p>"
    (letter,) = map(json.loads, (folder.top / "dead").read_text().splitlines())
    assert (letter["stream"], letter["partition"], letter["raw"]) == ("s", "a", "broken")
    kinds = [each["event"] for each in folder.events()]
    assert kinds == ["started", "epoch", "stopped"] * 2
    assert [each["items"] for each in folder.events() if each["event"] == "epoch"] == [2, 1]


@pytest.mark.spark
def test_tables_and_the_console(spark: SparkSession, folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    """A file for each epoch that has rows, lines for each run's own epochs; a later run goes on."""
    table = '\n[subscriptions.table]\nquery = "table.xq"\nsink = "parquet"\npath = "table"\n'
    (folder.top / "table.xq").write_text(
        '<t>{ for $p in stream("s")/root/p where $p > 1 return <row twice="{ $p * 2 }"><p>{ $p/text() }</p></row> }</t>'
    )
    folder.site('sink = "console"\n' + table, all=ALL)
    folder.append(1, "2.0")
    assert main(["run", "site.toml", "--once"]) == 0
    assert capsys.readouterr().out == "all: <p>1</p>\nall: <p>2.0</p>\n"
    folder.append(3)
    assert main(["run", "site.toml", "--once"]) == 0
    assert capsys.readouterr().out == "all: <p>3</p>\n"
    folder.append(0)
    assert main(["run", "site.toml", "--once"]) == 0
    assert sorted(each.name for each in (folder.top / "table").iterdir()) == [
        "epoch-00000000.parquet",
        "epoch-00000001.parquet",
    ]
    found = spark.read.parquet(str(folder.top / "table")).orderBy("p").collect()
    assert [row.asDict() for row in found] == [{"@twice": 4.0, "p": "2.0"}, {"@twice": 6.0, "p": "3"}]


@pytest.mark.spark
def test_a_checkpoint_belongs_to_its_site(
    spark: SparkSession, folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another site file is refused, for reading too; a renamed one says so, and a site may move as a whole."""
    folder.site(all=ALL)
    folder.append(1)
    assert main(["run", "site.toml", "--once"]) == 0
    other = folder.top / "other.toml"
    other.write_text(folder.file.read_text())
    for command in (["run", "other.toml", "--once"], ["answer", "other.toml", "all"]):
        assert main(command) == 1
        err = capsys.readouterr().err
        assert "the checkpoint 'state' belongs to the site 'site.toml', not to 'other.toml'" in err
        assert 'if the file was renamed, add name = "site.toml" to its [engine]' in err
    other.write_text(other.read_text().replace("[engine]", '[engine]\nname = "site.toml"'))
    folder.append(2)
    assert main(["run", "other.toml", "--once"]) == 0
    assert answer("all", capsys) == "<all><p>1</p><p>2</p></all>\n"
    moved = folder.top.with_name("moved")
    folder.top.rename(moved)
    assert main(["answer", str(moved / "site.toml"), "all"]) == 0
    assert capsys.readouterr().out == "<all><p>1</p><p>2</p></all>\n"
    moved.rename(folder.top)


@pytest.mark.spark
def test_a_run_follows_its_site(spark: SparkSession, folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    """Subscriptions are added, changed and removed in the file; a wrong version is refused and the old one stays."""
    folder.site(all=ALL)
    with folder.running():
        folder.append(0, 1)
        folder.await_event("epoch", epoch=0)
        assert answer("all", capsys) == "<all><p>0</p><p>1</p></all>\n"
        folder.site(all=ALL, odd=ODD)
        folder.await_event("subscription added", name="odd")
        folder.append(2, 3)
        folder.await_event("epoch", epoch=1)
        folder.site(all=ALL, odd=ODD, bad="for $p in")
        folder.await_event("refused")
        folder.site(all=ALL, odd=ODD.replace("odd", "uneven"))
        folder.await_event("subscription changed", name="odd")
        folder.site(odd=ODD.replace("odd", "uneven"))
        folder.await_event("subscription removed", name="all")
        folder.append(4, 5)
        folder.await_event("epoch", epoch=2)
        assert answer("odd", capsys) == "<uneven><p>5</p></uneven>\n"
    assert answer("all", capsys) == "<all><p>0</p><p>1</p><p>2</p><p>3</p></all>\n"
    assert [each["event"] for each in folder.events()].count("started") == 1
    assert folder.last_event() == {"event": "stopped", "epoch": 2, "reason": "asked"}


@pytest.mark.spark
def test_a_run_answers_windows_as_they_close(
    spark: SparkSession, folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    """LAWS case 13: the window of 1 is answered when 100 arrives; windows come and go with the site, as other queries.

    One that is added later begins with the first item it sees (LAWS 3.6), one that is removed leaves nothing behind.
    """
    folder.site(tens=TENS)
    with folder.running():
        folder.append(1, 5)
        folder.await_event("epoch", epoch=0)
        assert answer("tens", capsys) == "<tens/>\n"
        folder.site(tens=TENS, twos=TWOS)
        folder.await_event("subscription added", name="twos")
        folder.append(100)
        assert folder.await_event("epoch", epoch=1)["matches"] == {"tens": 1}
        assert answer("tens", capsys) == "<tens><w>2</w></tens>\n"
        folder.site(twos=TWOS)
        folder.await_event("subscription removed", name="tens")
        folder.append(101, 102)
        folder.await_event("epoch", epoch=2)
        assert answer("twos", capsys) == "<twos><w><p>100</p><p>101</p></w></twos>\n"
    assert answer("tens", capsys) == "<tens><w>2</w></tens>\n"
    assert main(["state", "site.toml"]) == 0
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines()[1:2]] == [["twos", "windows"]]


@pytest.mark.spark
def test_late_items_and_what_is_held(spark: SparkSession, folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    """`--late` gets the items that were too late, the log counts them, and `state` shows what waits and is held."""
    assert main(["state", "site.toml"]) == 1
    assert "state' is not a checkpoint" in capsys.readouterr().err
    timed = '\n[streams.{}]\npath = "{}"\nformat = "lines"\ntime = "t"\n'
    for name, times in (("b", (3, 4, 5)), ("c", (1,))):
        (folder.top / name).write_text("".join(f"<p><t>{time}</t></p>\n" for time in times))
    join = """<r>{ for $x in stream("b")/root/p |t diff 2| for $y in stream("c")/root/p |t diff 2|
        return <o>{ $x, $y }</o> }</r>"""
    folder.site(timed.format("b", "b") + timed.format("c", "c"), tens=TENS, join=join)
    folder.append(1, 20, 5, 22)
    assert main(["run", "site.toml", "--once", "--late", "late"]) == 0
    assert answer("tens", capsys) == "<tens><w>1</w></tens>\n"
    (epoch,) = (each for each in folder.events() if each["event"] == "epoch")
    assert (epoch["late_items"], epoch["waiting"]) == (1, {"b/0": 3})
    (line,) = (folder.top / "late").read_text().splitlines()
    assert json.loads(line) == {"stream": "s", "partition": "a", "offset": len("<p>1</p>\n<p>20</p>\n")}
    assert main(["state", "site.toml"]) == 0
    title, *shown = capsys.readouterr().out.splitlines()
    assert title.split() == ["branch", "kind", "shard", "held", "bytes", "waiting"]
    tens, joined = shown[0].split(), shown[1].split()
    assert (tens[:2], tens[3]) == (["tens", "windows"], "1")
    assert joined[:3] == ["join", "step", "join"]
    assert joined[-3:] == ["3", "of", "b/0"]
    sizes = {int(tens[2]): tens[4], int(joined[3]): joined[5]}
    assert shown[2:] == [f"shard {shard}: {size} bytes" for shard, size in sorted(sizes.items())]


@pytest.mark.spark
def test_a_run_says_what_it_waits_for(spark: SparkSession, folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    """A single line that may be a document, then a line without a newline: each is told once, by name, with a hint."""
    folder.site(all=ALL)
    folder.file.write_text(folder.file.read_text().replace('format = "lines"\n', ""))
    (folder.top / "in" / "a").write_text("<p>1</p>")
    with folder.running():
        told = folder.await_event("waiting", stream="s")
        assert "in/a' is one line" in str(told["message"])
        assert "format" in str(told["hint"])
        with (folder.top / "in" / "a").open("a") as file:
            file.write("\n<p>2</p>\n<p>3</p>")
        folder.await_event("epoch", epoch=0)
        told = folder.await_event("waiting", message=f"the last line of '{folder.top / 'in' / 'a'}' has no newline yet")
    assert len([each for each in folder.events() if each["event"] == "waiting"]) == 2
    assert answer("all", capsys) == "<all><p>1</p><p>2</p></all>\n"
    assert main(["run", "site.toml", "--once"]) == 0
    once = folder.events()[-2]
    assert (once["event"], once["message"], once["hint"]) == ("waiting", told["message"], told["hint"])


@pytest.mark.spark
def test_a_run_sends_heartbeats(spark: SparkSession, folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    """A window closes in a stream in which nothing comes any more, and the next run goes on behind the heartbeat."""
    folder.site(tens='<tens>{ for $w in stream("s")/root/p |t diff 1| return <w>{ $w/t }</w> }</tens>')
    folder.file.write_text(folder.file.read_text().replace("format =", 'time = "t"\nheartbeat = "0.3 s"\nformat ='))
    (folder.top / "in" / "a").write_text("<p><t>7.9</t></p>\n")
    with folder.running():
        folder.await_event("epoch", epoch=0)
        assert folder.await_event("epoch", epoch=1)["items"] == 0
        assert answer("tens", capsys) == "<tens><w><t>7.9</t></w></tens>\n"
    with (folder.top / "in" / "a").open("a") as file:
        file.write("<p><t>7.95</t></p>\n<p><t>100</t></p>\n<p><t>102</t></p>\n")
    assert main(["run", "site.toml", "--once"]) == 0
    assert [each["late_items"] for each in folder.events() if each["event"] == "epoch" and each["items"] == 3] == [1]
    assert answer("tens", capsys) == "<tens><w><t>7.9</t></w><w><t>100</t></w></tens>\n"


@pytest.mark.spark
def test_a_signal_ends_a_run_after_its_epoch(
    spark: SparkSession, folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    """SIGTERM: the run ends by itself with status 0, and says so in the log."""
    folder.site(all=ALL)
    folder.append(1)

    def terminate() -> None:
        folder.await_event("epoch", epoch=0)
        signal.raise_signal(signal.SIGTERM)

    helper = Thread(target=terminate)
    helper.start()
    assert main(["run", "site.toml"]) == 0
    helper.join()
    assert folder.last_event() == {"event": "stopped", "epoch": 0, "reason": "SIGTERM"}
    assert answer("all", capsys) == "<all><p>1</p></all>\n"
