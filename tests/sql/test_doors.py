"""Where queries in SQL come in: files, options, sites, the Python API; and that a query and its twin are one."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from anabranch import Engine
from anabranch.cli import main
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import Checking
from anabranch.errors import QueryError, UsageError
from anabranch.network.description import read_network
from anabranch.runtime.shapes import Shapes
from anabranch.site import read_site
from anabranch.spark.sinks import Files
from anabranch.stream.reading.source import Source

ROWS = [
    {"id": 1, "t": 1, "k": "x", "a": 7},
    {"id": 2, "t": 4, "k": "y", "a": None},
    {"id": 3, "t": 12, "a": 9},
    {"id": 4, "t": 31, "k": "x", "a": 5},
]
SELECT = "SELECT id, a FROM s WHERE a > 6"
TWIN = 'for $row in stream("s") where $row.a > 6 return { "id": $row.id, "a": $row.a }'
ANSWER = '{"id": 1, "a": 7}\n{"id": 3, "a": 9}\n'
WINDOW = "SELECT window_start AS w, COUNT(*) AS n, AVG(a) AS a FROM TUMBLE(s, t, 10) GROUP BY window_start"
WINDOW_TWIN = (
    'for $win in stream("s")|t diff 10| return { "w": window-start($win), "n": count($win), "a": avg($win.a) }'
)
WINDOWS = '{"w": 0, "n": 2, "a": 7}\n{"w": 10, "n": 1, "a": 9}\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a stream, which is the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    return tmp_path


@pytest.mark.parametrize(
    ("name", "options"), [("q.sql", []), ("q.xq", []), ("q.txt", ["--language", "sql"]), ("q.SQL", [])]
)
def test_query(folder: Path, capsys: pytest.CaptureFixture[str], name: str, options: list[str]) -> None:
    """A file in SQL is recognised by its name, by an option, or by its text."""
    (folder / name).write_text(SELECT)
    assert main(["query", name, "--stream", "s=s.jsonl", *options]) == 0
    assert capsys.readouterr().out == ANSWER


def test_a_language_that_is_given_is_the_one(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is said to be XQuery, or is in a file of SQL, is not read as anything else."""
    (folder / "q.xq").write_text(SELECT)
    assert main(["query", "q.xq", "--stream", "s=s.jsonl", "--language", "xquery"]) == 1
    assert "XPST0003" in capsys.readouterr().err
    (folder / "q.sql").write_text(TWIN)
    assert main(["query", "q.sql", "--stream", "s=s.jsonl"]) == 1
    assert "q.sql:1:1: refused in SQL: statement other than SELECT" in capsys.readouterr().err


def test_tables(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A name that is given with --doc is a table."""
    (folder / "names.json").write_text('[{"k": "x", "name": "ex"}]')
    (folder / "q.sql").write_text("SELECT s.id, n.name FROM s JOIN names n ON s.k = n.k")
    assert main(["query", "q.sql", "--stream", "s=s.jsonl", "--doc", "names=names.json"]) == 0
    assert capsys.readouterr().out == '{"id": 1, "name": "ex"}\n{"id": 4, "name": "ex"}\n'


def test_explain(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A query in SQL is explained as its twin is."""
    (folder / "a.sql").write_text(SELECT)
    (folder / "a.xq").write_text(TWIN.replace("$row", "$s"))
    shown: list[str] = []
    for name in ("a.sql", "a.xq"):
        assert main(["explain", name]) == 0
        shown.append(capsys.readouterr().out)
    mine, twin = (re.sub(r"'[^']*' \(line \d+, column \d+\)", "...", each) for each in shown)
    assert mine == twin
    assert "'a' (line 1, column 27)" in shown[0]  # what is shown of the query is its text in SQL
    assert main(["explain", "a.sql", "--language", "xquery"]) == 1


def _site(folder: Path) -> Path:
    (folder / "a.sql").write_text(SELECT)
    (folder / "b.query").write_text(WINDOW)
    (folder / "out").mkdir()
    file = folder / "SITE.toml"
    file.write_text(
        '[engine]\ncheckpoint = "state"\n[streams.s]\npath = "s.jsonl"\n[subscriptions.a]\nquery = "a.sql"\n'
        'sink = "files"\npath = "out"\n[subscriptions.b]\nquery = "b.query"\nlanguage = "sql"\n'
    )
    return file


def test_a_site(folder: Path) -> None:
    """Subscriptions of a site may be SQL: by the name of the file, or by the key `language`."""
    file = _site(folder)
    site = read_site(file)
    assert [each.language for each in site.subscriptions.values()] == ["sql", "sql"]
    assert site.subscriptions["a"].sink == Files(folder / "out/a.jsonl")
    file.write_text(file.read_text().replace('"sql"', '"mysql"'))
    with pytest.raises(UsageError, match="the language 'mysql' is unknown"):
        read_site(file)


def test_a_network_takes_the_twin(folder: Path) -> None:
    """A query in SQL is registered in a network as its twin."""
    (folder / "a.sql").write_text(SELECT)
    (folder / "NET.toml").write_text(
        '[network]\ntopology = "line"\npeers = 2\n[peers.P]\nat = "SP0"\n[streams.s]\npath = "s.jsonl"\nat = "P"\n'
        '[subscriptions.a]\nquery = "a.sql"\nat = "P"\n'
    )
    query = read_network(folder / "NET.toml").subscriptions["a"]
    assert query.text == 'for $s in stream("s") where $s.a > 6 return { "id": $s.id, "a": $s.a }'


def _subscribed(engine: Engine) -> dict[str, str]:
    engine.stream("s", "s.jsonl")
    asked = {"sql": SELECT, "twin": TWIN, "windows": WINDOW, "windows twin": WINDOW_TWIN}
    held = {name: engine.subscribe(text, name.replace(" ", "-")) for name, text in asked.items()}
    engine.wait()
    plan = engine.trunk.plan
    assert plan is not None
    by_name = plan.by_name
    assert by_name["windows"].branch == by_name["windows-twin"].branch
    return {name: "".join(each) for name, each in held.items()}


EXPECTED = {"sql": ANSWER, "twin": ANSWER, "windows": WINDOWS, "windows twin": WINDOWS}


def test_subscriptions_in_this_process(folder: Path) -> None:
    """Text that begins with SELECT is SQL; a window in SQL and its twin have one branch."""
    with Engine(local=True, once=True) as engine:
        assert _subscribed(engine) == EXPECTED
        with pytest.raises(QueryError, match="XPST0003"):
            engine.subscribe(SELECT, language="xquery")


def test_displays_are_one(folder: Path) -> None:
    """A display in SQL and its twin have one branch, which goes on for the twin when the other has left."""
    asked = {
        "sql": "SELECT k, COUNT(*) AS n FROM s GROUP BY k",
        "twin": 'for $x in stream("s") group by $g := non-null($x.k) return { "k": $g, "n": count($x) }',
    }
    answers: list[str] = []
    for names in (("sql", "twin"), ("twin",)):
        with Engine(local=True, once=True, checkpoint=folder / "state") as engine:
            engine.stream("s", "s.jsonl")
            held = [engine.subscribe(asked[name], name) for name in names]
            engine.wait()
            plan = engine.trunk.plan
            assert plan is not None
            assert len({plan.by_name[name].branch for name in names}) == 1
            answers += [each.answer() for each in held]
        with (folder / "s.jsonl").open("a") as file:
            file.write('{"id": 5, "k": "y"}\n')
    before, after = (f'{{"k": "x", "n": 2}}\n{{"k": "y", "n": {number}}}\n{{"k": null, "n": 1}}\n' for number in (1, 2))
    assert answers == [before, before, after]


def test_subscriptions_on_spark(folder: Path, spark: SparkSession) -> None:
    """The same on Spark, also as a site."""
    with Engine(spark, once=True) as engine:
        assert _subscribed(engine) == EXPECTED
    assert main(["run", str(_site(folder)), "--once"]) == 0
    assert (folder / "out/a.jsonl").read_text() == ANSWER


def test_twins_are_one(folder: Path) -> None:
    """A query in SQL and its twin in XQuery have one shape and the same constants, so they are answered once; other
    constants make another query of the same shape, also where the text is not parsed again."""
    checking = Checking(Inputs([Source("s", folder / "s.jsonl", format="json")]))
    shapes = Shapes()
    mine, twin = (shapes.of(checking.printed("q", text)) for text in (SELECT, TWIN))
    assert mine == twin
    other = shapes.of(checking.printed("q", SELECT.replace("6", "8")))
    assert (other.shape is mine.shape, other.constants) == (True, (8.0,))
    assert checking.printed("q", SELECT.replace("6", "8")).count("8") == 1


def test_patterns_are_no_constants(folder: Path) -> None:
    """Two texts that differ in a pattern or a time only are not taken for one another's twins."""
    checking = Checking(Inputs([Source("s", folder / "s.jsonl", format="json")]))
    like = "SELECT id FROM s WHERE k LIKE '{}'"
    time = "SELECT id FROM s WHERE ts > TIMESTAMP '{}'"
    found = [checking.printed("q", like.format(each)) for each in ("x%", "%x", "x", "y%", "_", "%")]
    tests = [
        'starts-with($s.k, "x")',
        'ends-with($s.k, "x")',
        '$s.k = "x"',
        'starts-with($s.k, "y")',
        '"^.$"',
        "exists(",
    ]
    assert [test in text for test, text in zip(tests, found, strict=True)] == [True] * 6
    moments = [checking.printed("q", time.format(each)) for each in ("2026-01-01", "2026-01-02", "2026-01-02 10:00:00")]
    wanted = ["2026-01-01T00:00:00", "2026-01-02T00:00:00", "2026-01-02T10:00:00"]
    assert [each in text for each, text in zip(wanted, moments, strict=True)] == [True] * 3


@pytest.mark.mass
def test_only_sql_loads_its_parser(folder: Path) -> None:
    """Help and queries in XQuery do not load sqlglot; a query in SQL does."""
    (folder / "q.xq").write_text(TWIN)
    (folder / "q.sql").write_text(SELECT)
    code = (
        "import sys\nfrom anabranch.cli import main\n"
        "for name in ('q.xq', 'q.sql'):\n"
        "    main(['query', name, '--stream', 's=s.jsonl'])\n"
        "    print('loaded', 'sqlglot' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert [line for line in done.stdout.splitlines() if line.startswith("loaded")] == ["loaded False", "loaded True"]
