"""Nothing that data, queries or names hold acts on a terminal: messages, notes, reports, the log, answers on a TTY."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console
from rich.status import Status

from anabranch.cli import main
from anabranch.errors import QueryError, Span, UsageError
from anabranch.run_control import Log
from anabranch.stream.elements import DeadLetter, Place
from anabranch.visible import visible, visible_json, visible_lines

ACTS = "\x1b\x9b\x07\x7f\r\u202e\u2066\u200b\u200d\u2060\u2028\u2029\u061c\ufeff\u00ad\U000e0041"
"""Characters that act, or hide: C0, C1, DEL, directions, widths, lines, tags."""
SELECT = 'for $p in stream("s")/root/p where $p/x > 1 return $p'


def hostile(shown: str) -> set[str]:
    """What of these is in a text."""
    return set(ACTS) & set(shown)


@pytest.mark.parametrize(
    "each", [*ACTS, "\x00", "\n", "\t", "\ud800", chr(0xDFFF), "\u200c", "\u2069", "\x80", "\uffff"]
)
def test_what_is_not_seen_is_shown_as_a_reference(each: str) -> None:
    """By its number, so that it can be told from others; in JSON as an escape, from which it comes back."""
    assert visible(f"a{each}b") == f"a&#{ord(each)};b"
    assert visible_lines(f"a{each}b") == (f"a{each}b" if each in "\n\t" else f"a&#{ord(each)};b")
    written = visible_json({f"a{each}": [each]})
    assert each not in written
    assert json.loads(written) == {f"a{each}": [each]}


def test_what_is_seen_stays() -> None:
    """Letters, marks and pictures of all scripts, with the joiners of their spelling; a joiner too many does not."""
    text = "é 漢 ﷺ \u0628\u200d \u06a9\u200c\u0647 👨\u200d👩\ufe0f \u0301"
    assert visible(text) == text
    assert visible("👨\u200d\u200d👩") == "👨\u200d&#8205;👩"
    assert json.loads(visible_json(text)) == text
    assert "漢" in visible_json(text)


def test_the_text_of_an_error_has_no_lines_but_its_own() -> None:
    """Message, hint and name of the query are what they are, shown so that they can do nothing."""
    error = UsageError("no 'a\nanabranch: b\x9b'", hint="try\r\x1b[2J")
    assert str(error) == "no 'a&#10;anabranch: b&#155;'\nhint: try&#13;&#27;[2J"
    assert error.message == "no 'a\nanabranch: b\x9b'"
    wrong = QueryError("bad '\u202e'", text="x\u202ey", span=Span(0, 1), name="q\n.xq")
    assert str(wrong) == "q&#10;.xq:1:1: bad '&#8238;'\n  x y\n  ^"


def test_data_in_messages_is_visible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """File names, names of queries and streams, and what a query says, in errors, notes and summaries."""
    monkeypatch.chdir(tmp_path)
    odd = ACTS.replace("\r", "")
    Path(f"q{odd}.xq").write_text(SELECT)
    Path(f"bad{odd}.xq").write_text(f'for $p in stream("{odd}")/root/p return $p', newline="")
    Path("n.xq").write_text(f'<n a="{odd[4:]}">{{ count(stream("s")/root/p) }}</n>', newline="")
    Path(f"in{odd}").write_text(f"<root><p><x>a{odd[4:]}</x></p><p><x>2</x></p></root>", newline="")
    stream = ["--stream", f"s=in{odd}", "--engine", "reference"]
    for arguments, status in (
        (["query", f"gone{odd}", *stream], 2),
        (["query", f"bad{odd}.xq", *stream], 1),
        (["query", "n.xq", "--stream", f"t{odd}=gone{odd}"], 2),
        (["query", "n.xq", *stream, "--slack", f"s={odd}"], 2),
        (["query", "n.xq", *stream, "--dtd", f"{odd}=x"], 2),
        (["query", f"q{odd}.xq", *stream, "--dead-letter", f"dead{odd}"], 0),
        (["answer", f"site{odd}.toml", f"a{odd}"], 2),
        (["explain", f"q{odd}.xq"], 0),
        (["explain", f"q{odd}.xq", "--json"], 0),
    ):
        assert main(arguments) == status, arguments
        shown = capsys.readouterr()
        assert not hostile(shown.err), arguments
        assert not hostile(shown.out if arguments[0] != "query" else ""), arguments
        assert "&#155;" in shown.err or "\\u009b" in shown.out or "&#155;" in shown.out, arguments
    letters = Path(f"dead{odd}").read_text()
    assert not hostile(letters)
    assert f"a{odd[4:]}" in json.loads(letters)["raw"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["query", "q.xq", f"--{ACTS}"],
        ["query", "q.xq", "--max-depth", ACTS],
        ["query", "q.xq", "--policy", ACTS],
        [ACTS],
        ["network", ACTS],
    ],
)
def test_arguments_that_are_wrong_are_visible(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """What the parser of arguments says of them."""
    with pytest.raises(SystemExit):
        main(arguments)
    assert not hostile(capsys.readouterr().err)


def test_the_log_is_visible(tmp_path: Path) -> None:
    """Lines of JSON from which everything comes back, one line each, also for names that are no UTF-8."""
    with Log.opened(tmp_path / "log") as log:
        log.event("refused", message=f"{ACTS}\ud800", name="é")
    text = (tmp_path / "log").read_bytes().decode()
    assert not hostile(text)
    assert text.count("\n") == 1
    assert "é" in text
    assert json.loads(text) == {**json.loads(text), "message": f"{ACTS}\ud800"}
    letter = DeadLetter(Place("s", ACTS, 0), ACTS, ACTS)
    assert not hostile(letter.to_json())


def test_the_display_of_a_run_is_visible() -> None:
    """On a terminal: what is going on and what has happened are text and nothing else, no markup either."""
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=400)
    with Status("starting", console=console) as status:
        log = Log(None, status)
        log.say(f"epoch 1 of [red]{ACTS}[/nothing]")
        log.event("warning", message=f"[bold]{ACTS}[/x]")
        shown = console.render_str("")
        assert shown is not None
        with console.capture() as captured:
            console.print(status.renderable)
    drawn = out.getvalue() + captured.get()
    assert "[red]&#27;&#155;" in drawn
    assert "warning: message [bold]&#27;&#155;" in drawn
    assert not hostile(drawn) - {"\x1b", "\r"}  # rich moves the cursor itself


QUERIES = {
    "framed": f"<all>{{ {SELECT.replace('where $p/x > 1 ', '')} }}</all>",
    "bare": 'for $p in stream("s")/root/p return $p/x/text()',
    "empty": 'for $p in stream("s")/root/p where $p/x = "no" return $p',
}
ANSWERS = {"framed": "<all><p><x>a\u009b\nb\u202e</x></p></all>", "bare": "a\u009b\nb\u202e", "empty": ""}


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    """The command, in a process of its own, for the query of a name."""
    for name, text in QUERIES.items():
        (tmp_path / f"{name}.xq").write_text(text)
    (tmp_path / "s.xml").write_text("<root><p><x>a\u009b\nb\u202e</x></p></root>")
    code = "import sys; from anabranch.cli import main; sys.exit(main())"
    return [sys.executable, "-c", code, "query", "--stream", f"s={tmp_path}/s.xml", "--engine", "reference"]


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.mass
def test_a_pipe_gets_the_answer_to_the_byte(tmp_path: Path, command: list[str], name: str) -> None:
    """And a newline behind it; whoever reads it has to know what is in there."""
    found = subprocess.run([*command, tmp_path / f"{name}.xq"], capture_output=True, check=True)
    assert found.stdout == f"{ANSWERS[name]}\n".encode()


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.mass
def test_a_terminal_gets_an_answer_that_cannot_act(tmp_path: Path, command: list[str], name: str) -> None:
    """References, which mean the same in XML; lines stay lines."""
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        found = subprocess.run(
            [*command, tmp_path / f"{name}.xq"], stdout=theirs, stderr=subprocess.PIPE, check=True, timeout=120
        )
        os.write(theirs, b"end")
        shown = b""
        while not shown.endswith(b"end"):
            shown += terminal.read(4096)
        os.close(theirs)
    assert found.returncode == 0
    text = shown.decode().removesuffix("end").replace("\r\n", "\n")
    assert text == ANSWERS[name].replace("\u009b", "&#155;").replace("\u202e", "&#8238;") + "\n"


@pytest.mark.mass
def test_an_output_without_the_letters_gets_references(tmp_path: Path, command: list[str]) -> None:
    """An answer does not fail where the output has another encoding: in XML a reference is the same character."""
    (tmp_path / "s.xml").write_text("<root><p><x>漢</x></p></root>")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    found = subprocess.run([*command, tmp_path / "framed.xq"], capture_output=True, check=True, env=environment)
    assert found.stdout == b"<all><p><x>&#28450;</x></p></all>\n"
    timeline = [*command, str(tmp_path / "framed.xq"), "--timeline"]
    found = subprocess.run(timeline, capture_output=True, check=True, env=environment)
    assert json.loads(found.stdout)["answer"] == "<all><p><x>漢</x></p></all>"
    assert found.stdout.isascii()


def test_an_answer_that_ends_its_line_gets_no_second_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Standard output ends with one newline, whether the answer has it or not."""
    monkeypatch.chdir(tmp_path)
    Path("q.xq").write_text('for $p in stream("s")/root/p return $p/text()')
    Path("s.xml").write_text("<root><p>1\n</p><p>2\n</p></root>")
    assert main(["query", "q.xq", "--stream", "s=s.xml", "--engine", "reference"]) == 0
    assert capsys.readouterr().out == "1\n2\n"
