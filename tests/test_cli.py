"""The command line as a user meets it: answers, exit status, messages, dead letters."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

import papers
from anabranch.bench import parse as bench_parse
from anabranch.cli import main
from anabranch.demo import show
from anabranch.engine.finite import FiniteRun, answering
from anabranch.errors import UsageError
from anabranch.network.description import read_network
from anabranch.site import read_site
from brokers import Broker

STREAM = """\
<photons>
<photon><en>1.50</en><det_time>1</det_time></photon>
<photon><en>2.5</en><det_time>2</photon>
<photon><en>abc</en><det_time>3</det_time></photon>
<photon><en>0.5</en><det_time>12</det_time></photon>
</photons>
"""
SELECT = 'for $p in stream("photons")/photons/photon where $p/en > 1 return <x>{ $p/en }</x>'
WINDOW = 'for $w in stream("photons")/photons/photon|det_time diff 10| return <n>{ count($w) }</n>'

Files = Callable[..., list[str]]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    """Writes files by name into a folder that is the working directory, and gives their names."""
    monkeypatch.chdir(tmp_path)

    def write(**texts: str) -> list[str]:
        names = [name.replace("_", ".") for name in texts]
        for name, text in zip(names, texts.values(), strict=True):
            Path(name).write_text(text, encoding="utf-8")
        return names

    return write


def test_one_answer_is_printed(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    """One query: its answer on standard output, the summary on standard error, status 0."""
    query, _ = files(q_xq=SELECT, p_xml=STREAM)
    assert main(["query", query, "--stream", "photons=p.xml", "--engine", "reference"]) == 0
    shown = capsys.readouterr()
    assert shown.out == "<x><en>1.50</en></x>\n"
    assert "items: 3, dead letters: 2" in shown.err


def test_a_byte_order_mark_is_no_part_of_a_query(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    """Editors may put U+FEFF before a text: the answer is the same, and errors are placed without it."""
    query, wrong, _ = files(q_xq="\ufeff" + SELECT, wrong_xq="\ufefffor $p in", p_xml=STREAM)
    assert main(["query", query, "--stream", "photons=p.xml", "--engine", "reference"]) == 0
    assert capsys.readouterr().out == "<x><en>1.50</en></x>\n"
    assert main(["query", wrong, "--stream", "photons=p.xml"]) == 1
    assert "wrong.xq:1:10: " in capsys.readouterr().err


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_another_encoding_is_named(files: Files, capsys: pytest.CaptureFixture[str], encoding: str) -> None:
    """A query in UTF-16 is refused with what to do about it."""
    files(p_xml=STREAM)
    Path("q.xq").write_bytes(SELECT.encode(encoding))
    assert main(["query", "q.xq", "--stream", "photons=p.xml"]) == 2
    assert capsys.readouterr().err.endswith("'q.xq' is UTF-16 or UTF-32, not UTF-8\nhint: save it as UTF-8\n")


@pytest.mark.parametrize("read", [read_site, read_network])
def test_a_byte_order_mark_is_no_part_of_a_table(files: Files, read: Callable[[Path], object]) -> None:
    """SITE.toml and NETWORK.toml may begin with one, and lines are counted without it."""
    files(some_toml="\ufeff[engine]\nwrong = 1\n")
    with pytest.raises(UsageError, match="engine") as error:
        read(Path("some.toml"))
    assert "invalid" not in str(error.value)


@pytest.mark.mass
def test_an_evaluation_without_end_is_set_aside(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    """LAWS 6, case 37: 2^24 calls on one item end after a million, by name; the other item is answered."""
    calls = "".join(
        f"declare function local:f{number}() {{ local:f{number - 1}() + local:f{number - 1}() }};"
        for number in range(1, 24)
    )
    query, _ = files(
        q_xq=f"declare function local:f0() {{ 1 }}; {calls} "
        "for $p in stream('s')/r/p return if ($p/a) then <n>{ local:f23() }</n> else <ok/>",
        s_xml="<r><p><a/></p><p/></r>",
    )
    given = ["query", query, "--stream", "s=s.xml", "--engine", "reference", "--dead-letter", "dead.json"]
    assert main(given) == 0
    assert capsys.readouterr().out == "<ok/>\n"
    (letter,) = map(json.loads, Path("dead.json").read_text(encoding="utf-8").splitlines())
    assert (letter["code"], letter["subscription"], letter["raw"]) == ("XPDY0130", "q", "<p><a/></p>")
    assert "more than 1,000,000 steps" in letter["reason"]
    assert "'max_steps' allows more" in letter["reason"]


@pytest.mark.mass
def test_steps_can_be_allowed(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    """`--max-steps` raises the limit, and cannot lower it."""
    values = "".join(f"<v>{number}</v><w>-</w>" for number in range(1_001))
    query, _ = files(q_xq="for $p in stream('s')/r/p where $p/v = $p/w return $p", s_xml=f"<r><p>{values}</p></r>")
    given = ["query", query, "--stream", "s=s.xml", "--engine", "reference"]
    assert main(given) == 3
    assert "dead letters: 1" in capsys.readouterr().err
    assert main([*given, "--max-steps", "2000000"]) == 0
    assert "dead letters: 0" in capsys.readouterr().err
    assert main([*given, "--max-steps", "10"]) == 2
    assert "the limit 'steps' must be at least 1,000,000" in capsys.readouterr().err


@pytest.mark.parametrize(("read", "table"), [(read_site, "engine"), (read_network, "network")])
def test_steps_can_be_allowed_in_a_file(files: Files, read: Callable[[Path], Any], table: str) -> None:
    """`max_steps` raises the limit of a site or a network; fewer are refused by name and line."""
    rest = 'checkpoint = "state"\n' + ('topology = "line"\npeers = 2\n' if table == "network" else "")
    files(some_toml=f"[{table}]\n{rest}max_steps = 5000000\n", few_toml=f"[{table}]\n{rest}max_steps = 5\n")
    found = read(Path("some.toml"))
    assert (found.settings.limits.steps if table == "engine" else found.max_steps) == 5_000_000
    with pytest.raises(UsageError, match=rf"line \d, \[{table}\]: 'max_steps' must be at least 1,000,000"):
        read(Path("few.toml"))


def test_dead_letters_are_written(files: Files) -> None:
    """Each set-aside thing is a JSON line: the broken item with its raw text, the failed evaluation with its code."""
    query, _ = files(q_xq=SELECT, p_xml=STREAM)
    main(["query", query, "--stream", "photons=p.xml", "--engine", "reference", "--dead-letter", "dead.json"])
    broken, failed = map(json.loads, Path("dead.json").read_text(encoding="utf-8").splitlines())
    assert broken["raw"] == "<photon><en>2.5</en><det_time>2</photon>"
    assert broken["offset"] == STREAM.index(broken["raw"])
    assert (failed["code"], failed["subscription"]) == ("FORG0001", "q")
    assert failed["offset"] == STREAM.index("<photon><en>abc")


def test_several_answers_are_written(files: Files) -> None:
    """Several queries: one file each, called after the query."""
    queries = files(a_xq=SELECT, b_xq=WINDOW)
    files(p_xml=STREAM)
    assert main(["query", *queries, "--stream", "photons=p.xml", "--engine", "reference", "--out", "out"]) == 0
    assert Path("out/a.xml").read_text(encoding="utf-8") == "<x><en>1.50</en></x>\n"
    assert Path("out/b.xml").read_text(encoding="utf-8") == "<n>2</n><n>1</n>\n"


BAD_SUM = "<r><p><f>1</f></p><p><f>abc</f></p></r>"
TOTAL = 'sum(stream("s")/r/p/f)'
EACH = 'for $p in stream("s")/r/p return <x>{ $p/f }</x>'
NUMBER = 'count(stream("s")/r/p)'


@pytest.mark.parametrize(
    ("failing", "why"),
    [
        (TOTAL, "'abc' is no number [FORG0001] (s/s.xml at byte 18)"),
        ('(stream("s")/r/p, max(stream("s")/r/p/f))', "'abc' is no number [FORG0001] (s/s.xml at byte 18)"),
        ('avg(stream("s")/r/p#[2]/f)', "'abc' is no number [FORG0001] (s/s.xml at byte 18)"),
        ('<a n="{ 1 + "x" }">{ stream("s")/r/p }</a>', "a number is needed, not the string 'x' [XPTY0004]"),
        (
            'let $m := max(doc("d")/r/p/f) for $p in stream("s")/r/p return <x>{ $m }</x>',
            "'abc' is no number [FORG0001]",
        ),
        ('stream("s")/r/p/@k', "attribute 'k' stands outside of any element [SENR0001]"),
    ],
)
def test_a_query_that_fails_as_a_whole_is_alone(
    files: Files, capsys: pytest.CaptureFixture[str], failing: str, why: str
) -> None:
    """The others answer; it is named with its code and place, has no answer, and the status is 1."""
    queries = files(a_xq=failing, b_xq=EACH, c_xq=NUMBER)
    files(s_xml=BAD_SUM.replace("<p>", "<p k='1'>") if "@k" in failing else BAD_SUM)
    Path("out").mkdir()
    Path("out/a.xml").write_text("from another time", encoding="utf-8")
    inputs = ["--stream", "s=s.xml", "--doc", "d=s.xml", "--engine", "reference", "--dead-letter", "dead.json"]
    assert main(["query", *queries, *inputs, "--out", "out"]) == 1
    assert f"the query 'a' has ended: {why}" in capsys.readouterr().err
    assert Path("out/a.xml").read_text(encoding="utf-8") == ""
    assert Path("out/b.xml").read_text(encoding="utf-8") == "<x><f>1</f></x><x><f>abc</f></x>\n"
    assert Path("out/c.xml").read_text(encoding="utf-8") == "2\n"
    letters = list(map(json.loads, Path("dead.json").read_text(encoding="utf-8").splitlines()))
    assert [each["subscription"] for each in letters] == ["a"] * len(letters)
    assert letters[-1]["code"] in why or letters[-1]["code"] == "FORG0001"


def test_a_query_that_fails_as_a_whole_prints_nothing(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    """Alone it has no output at all; its dead letter shows the item at fault."""
    query, _ = files(a_xq=TOTAL, s_xml=BAD_SUM)
    assert main(["query", query, "--stream", "s=s.xml", "--dead-letter", "dead.json"]) == 1
    assert capsys.readouterr().out == ""
    (letter,) = map(json.loads, Path("dead.json").read_text(encoding="utf-8").splitlines())
    assert (letter["raw"], letter["offset"]) == ("<p><f>abc</f></p>", 18)


def test_a_timeline_that_ends_in_an_error(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    """What was shown before stays, the others have their timelines, and who fails at the end is named."""
    a, b, _ = files(a_xq=TOTAL, b_xq=NUMBER, s_xml=BAD_SUM)
    status = main(["query", a, b, "--stream", "s=s.xml", "--engine", "reference", "--timeline", "--out", "out"])
    assert status == 1
    assert "the query 'a' has ended: 'abc' is no number [FORG0001]" in capsys.readouterr().err
    shown = [json.loads(line)["answer"] for line in Path("out/a.jsonl").read_text(encoding="utf-8").splitlines()]
    assert shown == ["1", ""]
    counts = [json.loads(line)["answer"] for line in Path("out/b.jsonl").read_text(encoding="utf-8").splitlines()]
    assert counts == ["1", "2"]


@pytest.mark.parametrize("timeline", [False, True])
def test_a_display_that_fails_at_the_end(files: Files, capsys: pytest.CaptureFixture[str], timeline: bool) -> None:
    """Over updates, an error that a later update corrects is none; one that is left at the end is told by name."""
    head = '<r xmlns:s="urn:anabranch:stream"><s:mutable id="1" at="1"><p><f>x</f></p></s:mutable>'
    mended = f'{head}<s:replace target="1" at="2"><p><f>7</f></p></s:replace></r>'
    query, *_ = files(a_xq=TOTAL, good_xml=mended, bad_xml=f"{head}</r>")
    more = ["--engine", "reference", *(["--timeline"] if timeline else [])]
    assert main(["query", query, "--stream", "s=good.xml", *more]) == 0
    assert "7" in capsys.readouterr().out
    assert main(["query", query, "--stream", "s=bad.xml", *more]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "the query 'a' has ended: 'x' is no number [FORG0001]" in shown.err


def test_a_site_names_the_query_that_has_no_answer(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    """What a query fixes before its streams begin fails when the site is read, and that names the query."""
    site = '[engine]\ncheckpoint = "state"\n[streams.s]\npath = "in"\n[subscriptions.q]\nquery = "q.xq"\n'
    files(SITE_toml=site, q_xq='<a n="{ 1 div 0 }">{ stream("s")/r/p }</a>')
    Path("in").mkdir()
    assert main(["run", "SITE.toml", "--once"]) == 1
    assert re.search(r"the query '.*q\.xq' has no answer: division by zero \[FOAR0001\]", capsys.readouterr().err)


BROKEN = "<p><f>1</p>\n<p><f>2</p>\n"
FAILING = "<r><p><f>x</f></p><p><f>y</f></p></r>"
ABOVE = 'for $p in stream("s")/r/p where $p/f > 1 return <x>{ $p/f }</x>'


@pytest.mark.parametrize(
    ("stream", "query", "out", "items", "reason", "status"),
    [
        (BROKEN, ABOVE, "\n", "all 2 items", "not well-formed", 3),
        (BROKEN, f"<o>{{ {ABOVE} }}</o>", "<o/>\n", "all 2 items", "not well-formed", 3),
        (BROKEN, NUMBER, "0\n", "all 2 items", "not well-formed", 3),
        (FAILING, ABOVE, "\n", "all 2 items", "'x' is no number [FORG0001]", 3),
        (
            FAILING,
            'for $w in stream("s")/r/p|count 2| return <x>{ sum($w/f) }</x>',
            "\n",
            "all 2 items",
            "'x' is no number [FORG0001]",
            3,
        ),
        (
            f"<r>{'<p><f>x</f></p>' * 14}</r>",
            'for $w in stream("s")/r/p|count 14| return <x>{ sum($w/f) }</x>',
            "\n",
            "all 14 items",
            "'x' is no number [FORG0001]",
            3,
        ),
        (BAD_SUM, ABOVE, "\n", "1 of 2 items", "'abc' is no number [FORG0001]", 0),
    ],
)
def test_a_query_that_answers_nothing_says_so(
    files: Files,
    capsys: pytest.CaptureFixture[str],
    stream: str,
    query: str,
    out: str,
    items: str,
    reason: str,
    status: int,
) -> None:
    """How many items were set aside, why, and how to see them; where all were, the status is 3."""
    name, _ = files(q_xq=query, s_xml=stream)
    command = ["query", name, "--stream", "s=s.xml", "--engine", "reference"]
    assert main(command) == status
    shown = capsys.readouterr()
    assert shown.out == out
    assert f"warning: the query 'q' answers nothing: {items} were set aside, most often" in shown.err
    assert reason in shown.err
    assert "--dead-letter FILE shows them" in shown.err
    assert main([*command, "--dead-letter", "dead.json"]) == status
    assert "; see dead.json" in capsys.readouterr().err


def test_an_answer_gives_no_warning(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither where something is answered beside what was set aside, nor where nothing was set aside."""
    each, none, _ = files(a_xq=EACH, b_xq='stream("s")/r/q', s_xml=BAD_SUM)
    assert main(["query", each, none, "--stream", "s=s.xml", "--engine", "reference", "--out", "out"]) == 0
    query, _ = files(q_xq=SELECT, p_xml=STREAM)
    assert main(["query", query, "--stream", "photons=p.xml", "--engine", "reference"]) == 0
    assert "warning" not in capsys.readouterr().err


def test_items_of_other_streams_do_not_count(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    """All items are those of the streams that a query reads."""
    a, b, _, _ = files(a_xq=ABOVE, b_xq=EACH.replace('"s"', '"t"'), s_xml=FAILING, t_xml=BAD_SUM)
    inputs = ["--stream", "s=s.xml", "--stream", "t=t.xml", "--engine", "reference", "--out", "out"]
    assert main(["query", a, b, *inputs]) == 3
    assert "the query 'a' answers nothing: all 2 items were" in capsys.readouterr().err


@pytest.mark.parametrize("more", [[], ["--no-sharing"]])
def test_sharing_can_be_turned_off(files: Files, monkeypatch: pytest.MonkeyPatch, more: list[str]) -> None:
    """The flag gets to whoever answers, and changes nothing else."""
    seen: list[object] = []

    def noted(*given: Any, **named: Any) -> AbstractContextManager[FiniteRun]:
        seen.append(given[2].sharing)
        return answering(*given, **named)

    monkeypatch.setattr("anabranch.cli.answering.answering", noted)
    query, _ = files(q_xq=SELECT, p_xml=STREAM)
    assert main(["query", query, "--stream", "photons=p.xml", "--engine", "reference", *more]) == 0
    assert seen == [not more]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["query", "q.xq", "--stream", "other=p.xml"], 1, "q.xq:1:11: no input is called 'photons'"),
        (["query", "q.xq", "--stream", "photons=gone.xml"], 2, "there is no 'gone.xml'"),
        (["query", "gone.xq", "--stream", "photons=p.xml"], 2, "cannot read 'gone.xq'"),
        (["query", "q.xq", "w.xq", "--stream", "photons=p.xml"], 2, "give one with --out DIR"),
        (["query", "q.xq", "--stream", "photons"], 2, "--stream takes NAME=VALUE"),
        (["query", "q.xq", "--stream", "photons=p.xml", "--time", "x=t"], 2, "which is not given"),
        (["query", "q.xq", "--stream", "photons=p.xml", "--slack", "photons=x"], 2, "--slack takes a number"),
        (
            ["query", "q.xq", "--stream", "photons=p.xml", "--origin", "photons=PT1S"],
            2,
            "--origin takes a number",
        ),
        (["query", "q.xq", "--stream", "photons=p.xml", "--time-unit", "x=ms"], 2, "--time-unit names stream 'x'"),
        (["query", "q.xq", "--stream", "photons=p.xml", "--time-unit", "photons=ms"], 2, "needs a 'time'"),
        (["query", "bad.xq", "--stream", "photons=p.xml"], 1, "expected 'where', 'order by' or 'return'"),
        (["query", "t.xq", "--stream", "photons=p.xml"], 1, "t.xq:1:60: refused: bounds of what is no window"),
        (["query", "q.xq", "--stream", "photons=p.xml", "--domain", "photons=en"], 2, "--domain takes NAME=PATH:V,V"),
        (["query", "q.xq", "--stream", "photons=p.xml", "--domain", "x=en:1"], 2, "which is not given"),
        (["generate", "photons", "--count", "-1"], 2, "--count takes a number of photons"),
    ],
)
def test_errors(
    files: Files, capsys: pytest.CaptureFixture[str], arguments: list[str], status: int, message: str
) -> None:
    """What is wrong, where, and what to do; 1 for a query that fails, 2 for wrong usage."""
    files(q_xq=SELECT, w_xq=WINDOW, bad_xq=SELECT.replace("where", "wher"), p_xml=STREAM)
    files(t_xq='for $w in stream("photons")/photons/photon|count 2| return window-start($w)')
    assert main(arguments) == status
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.out == ""


def test_reference_steps_in_with_a_note(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    """Without --engine, what has to wait for the end is answered by the reference, and the note says why."""
    query, _ = files(o_xq='<n>{ count(stream("photons")/photons/photon) }</n>', p_xml=STREAM)
    assert main(["query", query, "--stream", "photons=p.xml"]) == 0
    shown = capsys.readouterr()
    assert shown.out == "<n>3</n>\n"
    note = "'count()' over a whole stream has to wait for the end of the input: the reference engine answers 'o'"
    assert note in shown.err


@pytest.mark.parametrize(
    ("called", "given", "message", "hint"),
    [
        ("stream", "--doc", "'p' is a document", "write doc('p')"),
        ("doc", "--stream", "'p' is a stream", "write stream('p')"),
    ],
)
def test_streams_and_documents_are_told_apart(
    called: str, given: str, message: str, hint: str, files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    """A name that is known as the other kind of input is an error at its place, and no empty answer."""
    query, _ = files(q_xq=f"for $p in\n  {called}('p')/photons/photon return $p/en", p_xml=STREAM)
    assert main(["query", query, given, "p=p.xml"]) == 1
    shown = capsys.readouterr()
    assert f"{query}:2:3: {message} [FODC0002]" in shown.err
    assert f"hint: {hint}\n" in shown.err
    assert shown.out == ""


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('{ "n": count(stream("photons")/photons/photon) }', "an object over a whole stream"),
        ('count(stream("photons")/photons/photon) eq 3', "'eq' over a whole stream"),
        ('(stream("photons")/photons/photon/en) instance of element()*', "'instance of' over a whole stream"),
    ],
)
def test_notes_name_what_was_written(files: Files, capsys: pytest.CaptureFixture[str], text: str, what: str) -> None:
    """An operator that is a call inside is told by its word, and a constructor by what it makes."""
    query, _ = files(o_xq=text, p_xml=STREAM)
    assert main(["query", query, "--stream", "photons=p.xml"]) == 0
    assert f"{what} has to wait" in capsys.readouterr().err


def test_schema_warns_of_what_is_returned(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    """A path that the DTD lacks is noted where it is returned, and the query is answered."""
    files(p_xml=STREAM, d_dtd="<!ELEMENT photons (photon*)><!ELEMENT photon (en, det_time)>")
    (query,) = files(q_xq=SELECT.replace("$p/en }", "$p/spin }"))
    arguments = ["query", query, "--stream", "photons=p.xml", "--dtd", "photons=d.dtd", "--engine", "reference"]
    assert main(arguments) == 0
    shown = capsys.readouterr()
    assert shown.out == "<x/>\n"
    assert "q.xq:1: the schema has no 'spin'" in shown.err


def test_generate_then_query(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    """The same seed gives the same photons, in a file as on standard output, and they can be queried."""
    (query,) = files(q4_xq=papers.Q4)
    assert main(["generate", "photons", "--count", "300", "--seed", "7", "--out", "p.xml"]) == 0
    main(["generate", "photons", "--count", "300", "--seed", "7"])
    assert capsys.readouterr().out == Path("p.xml").read_text(encoding="utf-8")
    assert main(["query", query, "--stream", "photons=p.xml", "--engine", "reference"]) == 0
    assert capsys.readouterr().out.startswith("<photons><vela><ra>")


@pytest.mark.mass
def test_bench_writes_its_figures(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """`bench parse` measures a thousand queries and writes the figures as JSON; one round is enough to see that."""
    for rounds, few in (("_WARM_UP", 0), ("_QUICK_ROUNDS", 1)):
        monkeypatch.setattr(bench_parse, rounds, few)
    files()
    assert main(["bench", "parse", "--quick", "--json", "figures.json"]) == 0
    figures = json.loads(Path("figures.json").read_text(encoding="utf-8"))
    assert figures["queries"] == 1_000
    assert figures["parse_1000_s"] > 0


@pytest.mark.spark
def test_all_engines_print_the_same(spark: SparkSession, files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    """q3 and q4 over generated photons: files written by a trunk here or on Spark are the reference's to the byte."""
    queries = files(q3_xq=papers.Q3, q4_xq=papers.Q4)
    main(["generate", "photons", "--count", "2000", "--seed", "7", "--out", "p.xml"])
    for engine in ("local", "spark", "reference"):
        assert main(["query", *queries, "--stream", "photons=p.xml", "--engine", engine, "--out", engine]) == 0
    for name in ("q3.xml", "q4.xml"):
        answer = Path("spark", name).read_bytes()
        assert answer == Path("local", name).read_bytes() == Path("reference", name).read_bytes()
        assert answer.count(b"<en>") > 10
    assert "items: 2,000" in capsys.readouterr().err


@pytest.mark.spark
def test_a_line_that_is_bad_alone_is_bad_on_spark(spark: SparkSession, files: Files) -> None:
    """Text in a CDATA section behind an item: both engines set that line aside, and give all six windows.

    Beside it, a root that declares the prefix of control elements: none of what is copied has it (LAWS 2.1).
    """
    items = [f"<p><t>{number}</t><e>{number % 7}</e></p>" for number in range(60)]
    lines = [*items[:32], "<p><t>1031</t><e>1</e></p><![CDATA[x]]>", *items[32:]]
    query = 'for $w in stream("s")/*/p[e>2]|t diff 10| return <w n="{count($w)}">{avg($w/e)}</w>'
    copied = 'for $i in stream("c")/r/i return <o>{ $i/x }{ $i }</o>'
    root = '<r xmlns:s="urn:anabranch:stream" xmlns:n="u"><i><x>1</x></i><s:punctuation at="1"/></r>'
    files(s_xml="".join(f"{line}\n" for line in lines), c_xml=root, q_xq=query, c_xq=copied)
    for engine in ("local", "spark", "reference"):
        given = ["--stream", "s=s.xml", "--stream", "c=c.xml", "--engine", engine, "--out", engine]
        assert main(["query", "q.xq", "c.xq", *given, "--dead-letter", f"{engine}.dead"]) == 0
        written = Path(engine, "c.xml").read_text().strip()
        assert written == '<o><x xmlns:n="u">1</x><i xmlns:n="u"><x>1</x></i></o>'
    answer, dead = Path("spark", "q.xml").read_text(), Path("spark.dead").read_text()
    assert answer.count("<w ") == 6
    assert answer == Path("reference", "q.xml").read_text() == Path("local", "q.xml").read_text()
    assert [json.loads(line)["offset"] for line in dead.splitlines()] == [sum(map(len, items[:32])) + 32]
    assert dead == Path("reference.dead").read_text()


N = 'xmlns:s="urn:anabranch:stream"'
SENSORS = f"""\
<sensors>
<reading><ts>1</ts><s>1</s><t>68</t></reading>
<reading><ts>3</ts><s>2</s><t>72</t></reading>
<s:accent {N} where="s = 2"><s:alter path="t" by="(. - 32) * 5 div 9"/></s:accent>
<reading><ts>6</ts><s>2</s><t>25.0</t></reading>
<reading><ts>8</ts><s>1</s><t>71</t></reading>
<s:accent {N} where="s = 1"><s:alter path="t" by="(. - 32) * 5 div 9"/></s:accent>
<reading><ts>14</ts><s>1</s><t>20</t></reading>
<reading><ts>17</ts><s>2</s><t>25</t></reading>
</sensors>
"""
PLACES = """\
<places>
<place><ts>2</ts><s>1</s><l>hall</l></place>
<place><ts>4</ts><s>2</s><l>lab</l></place>
<place><ts>12</ts><s>2</s><l>roof</l></place>
</places>
"""
READINGS = 'stream("sensors")/sensors/reading'
EVOLVING = {
    "select": f"for $r in {READINGS} where $r/t >= 71 return <warm>{{ $r/s }}{{ $r/t }}</warm>",
    "average": f"for $w in {READINGS}|ts diff 10| return <window><t>{{ avg($w/t) }}</t></window>",
    "join": f"""for $r in {READINGS}|ts diff 10| for $p in stream("places")/places/place|ts diff 10|
        where $r/s = $p/s return <at>{{ $p/l }}{{ $r/t }}</at>""",
}
TO_CELSIUS = '<s:alter path="t" by=". * 5 div 9 - 160 div 9"/>'
TOLD = {
    "select": f"""\
<warm><s>2</s><t>72</t></warm>
<s:accent {N} where="s = 2">{TO_CELSIUS}</s:accent>
<warm><s>2</s><t>25.0</t></warm>
<warm><s>1</s><t>71</t></warm>
<s:accent {N} where="s = 1">{TO_CELSIUS}</s:accent>
<warm><s>2</s><t>25</t></warm>
""",
    "average": f"""\
<s:accent {N}>{TO_CELSIUS}</s:accent>
<window><t>22.22222222222222</t></window>
<window><t>22.5</t></window>
""",
    "join": f"""\
<s:accent {N}>{TO_CELSIUS}</s:accent>
<at><l>hall</l><t>20</t></at>
<at><l>lab</l><t>22.22222222222222</t></at>
<at><l>lab</l><t>25.0</t></at>
<at><l>hall</l><t>21.666666666666668</t></at>
<at><l>hall</l><t>20</t></at>
<at><l>lab</l><t>25</t></at>
<at><l>roof</l><t>25</t></at>
""",
}


@pytest.fixture
def evolving(files: Files) -> list[str]:
    """The arguments for three queries over an accented file."""
    files(sensors_xml=SENSORS, places_xml=PLACES)
    queries = files(**{f"{name}_xq": text for name, text in EVOLVING.items()})
    given = ["--stream", "sensors=sensors.xml", "--stream", "places=places.xml", "--domain", "sensors=s:1,2"]
    return ["query", *queries, *given, "--time", "sensors=ts", "--time", "places=ts", "--out", "out"]


def told() -> dict[str, str]:
    return {name: Path("out", f"{name}.xml").read_text(encoding="utf-8") for name in TOLD}


@pytest.mark.spark
def test_failures_on_spark(spark: SparkSession, files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    """A query that fails as a whole, one that fails before its streams, and a window that fails: the others answer."""
    window = 'for $w in stream("s")/r/p|count 2| return <x>{ sum($w/f) }</x>'
    fixed = 'let $m := max(doc("d")/r/p/f) for $w in stream("s")/r/p|count 1| return <x>{ $m }{ $w }</x>'
    queries = files(a_xq=TOTAL, b_xq=EACH, c_xq=NUMBER, d_xq=window, e_xq=fixed, s_xml=BAD_SUM)[:-1]
    inputs = ["--stream", "s=s.xml", "--doc", "d=s.xml", "--dead-letter", "dead.json", "--engine", "spark"]
    assert main(["query", *queries, *inputs, "--out", "out"]) == 1
    said = capsys.readouterr().err
    assert "the query 'a' has ended: 'abc' is no number [FORG0001] (s/s.xml at byte 18)" in said
    assert "the query 'e' has ended: 'abc' is no number [FORG0001]" in said
    assert "the query 'd' answers nothing: 1 of 2 items were set aside" in said
    texts = {each: Path(f"out/{each}.xml").read_text(encoding="utf-8") for each in "abcde"}
    assert texts == {"a": "", "b": "<x><f>1</f></x><x><f>abc</f></x>\n", "c": "2\n", "d": "\n", "e": ""}
    letters = list(map(json.loads, Path("dead.json").read_text(encoding="utf-8").splitlines()))
    assert sorted((each["subscription"], each["raw"]) for each in letters) == [
        ("a", "<p><f>abc</f></p>"),
        ("d", "<p><f>abc</f></p>"),
        ("e", ""),
    ]


@pytest.mark.spark
def test_an_accented_file_and_its_queries(spark: SparkSession, evolving: list[str]) -> None:
    """Units are right on both sides of accents, for a selection, a window and a join, with and without sharing."""
    for more in ([], ["--no-sharing"]):
        assert main([*evolving, *more]) == 0
        assert told() == {name: text.replace("\n", "") + "\n" for name, text in TOLD.items()}
    assert main([*evolving, "--policy", "absorb"]) == 0
    assert told()["average"] == "<window><t>72</t></window><window><t>72.5</t></window>\n"


def test_accents_and_policies_without_spark(evolving: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The reference gives the same to the byte; another policy leaves alters out, or ends who cannot tell them."""
    assert main([*evolving, "--engine", "reference"]) == 0
    assert told() == {name: text.replace("\n", "") + "\n" for name, text in TOLD.items()}
    assert main([*evolving, "--engine", "reference", "--policy", "absorb"]) == 0
    assert told()["average"] == "<window><t>72</t></window><window><t>72.5</t></window>\n"
    capsys.readouterr()
    assert main([*evolving, "--engine", "reference", "--policy", "abort"]) == 1
    assert "the query 'average' has ended: the query cannot pass on the accent on 't'" in capsys.readouterr().err
    assert told()["select"] == TOLD["select"].replace("\n", "") + "\n"


@pytest.mark.spark
def test_demo_ends_by_itself(spark: SparkSession, broker: Broker) -> None:
    """The demo makes photons and answers queries over all of them; sensors change their unit, and quotes change.

    Where a broker can be had, as here, its last act kills one.
    """
    console = Console(record=True, width=100, file=None, force_terminal=False, quiet=False)
    show(3_000, console)
    shown = console.export_text()
    assert "3,000 items" in shown
    assert "vela: an answer of" in shown
    assert "0 set aside" in shown
    units = re.findall(r"[0-9.]+ (°[FC]) ", shown)
    assert units == ["°F"] * 4 + ["°C"] * 5
    stocks = re.findall(r"(\w+) +│ +[0-9.]+ │ +[▲▼] [0-9.]+ %", shown)
    assert stocks == ["ACME", "Globex", "Hooli", "Initech", "Soylent", "Umbrella"]
    assert "quotes were replaced" in shown
    assert re.search(r"done: 800 orders, \d+ alerts, 0 doubled, 0 lost", shown)
