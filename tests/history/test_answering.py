"""What has been on display, asked for from outside: `anabranch answer`, its timeline, the state, the display."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from anabranch.algebra.display.replay import CLOSING, OPENING
from anabranch.algebra.plans.builder import stream
from anabranch.cli import main
from anabranch.engine.handles import LiveDisplay, LiveSubscription
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import Checking
from anabranch.errors import UsageError
from anabranch.site import read_site
from anabranch.spark.answers.log import AnswerFrame, AnswerLog
from anabranch.spark.sinks import Parquet
from anabranch.stream.reading.source import Source
from history.editing import apply
from spark.bare import BareTrunk

LINES = (
    '<s:mutable xmlns:s="urn:anabranch:stream" id="1" at="1"><b>X</b></s:mutable>\n',
    '<s:replace xmlns:s="urn:anabranch:stream" target="1" at="2.50"><b>Y</b></s:replace>\n',
)
QUERY = '<o>{ stream("s")/root/b }</o>'


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A site that has run over two epochs."""
    (tmp_path / "in").mkdir()
    (tmp_path / "q.xq").write_text(QUERY)
    file = tmp_path / "SITE.toml"
    file.write_text(
        '[engine]\ncheckpoint = "state"\n'
        '[streams.s]\nsource = "files"\npath = "in"\nformat = "lines"\nupdates = true\n'
        '[subscriptions.q]\nquery = "q.xq"\n'
    )
    return file


def run(site: Path, keep: int = 0) -> AnswerLog:
    """Run a site over its lines, an epoch each, and perhaps forget the first epochs."""
    read = read_site(site)
    trunk = BareTrunk(read.checkpoint, list(read.streams.values()), Random(1), finite=False)
    for number, line in enumerate(LINES):
        (site.parent / "in" / str(number)).write_text(line)
        trunk.run({"q": QUERY}, [1_000], [1])
    for epoch in range(keep):
        (read.checkpoint / "manifest" / f"{epoch:08}.json").delete()
    return trunk.log


def test_answer_prints_what_is_shown_now(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything has come, what the query gives over nothing; then what is on display, and what was."""
    assert main(["answer", str(site), "q"]) == 0
    assert capsys.readouterr().out == "<o/>\n"
    run(site)
    assert main(["answer", str(site), "q"]) == 0
    assert capsys.readouterr().out == "<o><b>Y</b></o>\n"
    assert main(["answer", str(site), "q", "--timeline"]) == 0
    lines = [json.loads(each) for each in capsys.readouterr().out.splitlines()]
    assert lines == [{"at": 1, "answer": "<o><b>X</b></o>"}, {"at": 2.5, "answer": "<o><b>Y</b></o>"}]
    assert main(["state", str(site)]) == 0
    assert "stream s  document" in capsys.readouterr().out


def test_what_is_shown_now_needs_no_log(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Retention drops the front of a display's log; what it shows is known all the same, what it was is not."""
    run(site, keep=1)
    assert main(["answer", str(site), "q"]) == 0
    assert capsys.readouterr().out == "<o><b>Y</b></o>\n"
    assert main(["answer", str(site), "q", "--timeline"]) == 2
    assert "the beginning of 'q' is no longer kept" in capsys.readouterr().err


# --- the display ------------------------------------------------------------------------------------------


def displayed(site: Path, *, shows: bool = True) -> LiveDisplay:
    """The display of a subscription whose trunk has ended."""
    log = run(site)
    registered = log.subscription("q")
    assert registered is not None
    chunks = [log.text(chunk) for each in log.manifests.since(0) for chunk in log.chunks(each, registered.id)]
    handle = SimpleNamespace(
        name="q",
        shows=shows,
        registered=registered,
        engine=SimpleNamespace(log=log),
        frame=AnswerFrame(OPENING, CLOSING, OPENING + CLOSING),
        pieces=lambda: iter((OPENING, *chunks, CLOSING)),
    )
    return LiveDisplay(cast(LiveSubscription, handle))


def test_a_display_is_followed_moment_by_moment(site: Path) -> None:
    """Iterating moves it; its text and the changes of the latest moment are there to be drawn."""
    display = displayed(site)
    assert (display.text, display.changes) == ("", ())
    texts = [(str(moment.at), display.text) for moment in display]
    assert texts == [("1", "<o><b>X</b></o>"), ("2.5", "<o><b>Y</b></o>")]
    assert apply(display.changes, "<o><b>X</b></o>") == display.text
    assert "&lt;b&gt;Y&lt;/b&gt;" in display._repr_html_()


def test_a_display_is_drawn_in_place(site: Path) -> None:
    """On a terminal the new text takes the place of the old one."""
    out = StringIO()
    displayed(site).follow(Console(file=out, force_terminal=True, width=60))
    drawn = out.getvalue()
    assert drawn.index("<o><b>X</b></o>") < drawn.index("<o><b>Y</b></o>")
    assert "\x1b[" in drawn


def test_a_display_in_a_notebook_is_one_output(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is shown once, and that output changed."""
    seen: list[str] = []

    def display(shown: LiveDisplay, display_id: bool) -> Any:
        seen.append(shown.text)
        return SimpleNamespace(update=lambda again: seen.append(again.text))

    notebook = SimpleNamespace(
        get_ipython=lambda: SimpleNamespace(kernel=None), display=SimpleNamespace(display=display)
    )
    monkeypatch.setitem(__import__("sys").modules, "IPython", notebook)
    displayed(site).follow()
    assert seen == ["", "<o><b>X</b></o>", "<o><b>Y</b></o>"]


def test_an_answer_that_only_grows_has_no_display(site: Path) -> None:
    """It is told by name."""
    with pytest.raises(UsageError, match="the answer of 'q' only grows"):
        displayed(site, shows=False)


@pytest.mark.parametrize("query", [QUERY, 'stream("t")/root/b#1'])
def test_what_is_corrected_makes_a_table_of_changes(tmp_path: Path, query: str) -> None:
    """Its rows are corrections; an answer whose rows stay has none."""
    checking = Checking(Inputs((Source("s", tmp_path, updates=True), Source("t", tmp_path))))
    for changes in (None, "updates", "upserts"):
        assert checking.printed("q", query, sink=Parquet(Path("table"), changes))
    with pytest.raises(UsageError, match="the answer of 'q' only grows, so it has no 'changes'"):
        checking.printed("q", 'for $b in stream("t")/root/b return <c>{ $b/d }</c>', sink=Parquet("table", "upserts"))
    with pytest.raises(UsageError, match="the 'changes' of a display are updates or upserts, not 'all'"):
        Parquet("table", "all")


def test_operators_do_not_follow_updates(tmp_path: Path) -> None:
    """A plan of the builder over a stream of updates is refused by name."""
    checking = Checking(Inputs((Source("s", tmp_path, updates=True),)))
    with pytest.raises(UsageError, match="the plan 'p' reads 's', and operators cannot follow updates yet"):
        checking.written("p", stream("s").select("t > 5").plan)
