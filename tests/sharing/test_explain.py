"""`anabranch explain`, as text and as data."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import papers
from anabranch.cli import main
from anabranch.stream import photons

DTD = str(Path(photons.__file__).with_name("photons.dtd"))
PAGE = Path(__file__).parents[2] / "docs" / "explain.md"

Explain = Callable[..., str]


@pytest.fixture
def explain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Explain:
    """Explains queries given by name, and gives what was printed."""
    monkeypatch.chdir(tmp_path)

    def run(*options: str, **texts: str) -> str:
        for name, text in texts.items():
            Path(f"{name}.xq").write_text(text, encoding="utf-8")
        assert main(["explain", *(f"{name}.xq" for name in texts), "--dtd", f"photons={DTD}", *options]) == 0
        return capsys.readouterr().out

    return run


def test_the_page_shows_what_comes_out(explain: Explain) -> None:
    """The example of docs/explain.md is what its queries give."""
    page = PAGE.read_text(encoding="utf-8")
    queries = dict(re.findall(r"```\n\(: (\w+)\.xq :\)\n(.*?)\n```", page, re.S))
    [shown] = re.findall(r"```console\n\$ anabranch explain [^\n]*\n(.*?)\n```", page, re.S)
    assert explain(**queries) == f"{shown}\n"


def test_how_the_papers_queries_share(explain: Explain) -> None:
    """q1 to q4 in the order of the paper's introduction: each has to widen what is there."""
    found = explain(**{name: papers.SHARING[name] for name in ("q1", "q2", "q3", "q4")})
    assert [line.strip() for line in found.splitlines() if line.startswith("  against")] == [
        "against q1: relaxes the windows of photons/photon to |det_time diff 20 step 10|; "
        "widens the selection of avg(en)",
        "against q1: removes the windows and aggregates of photons/photon, and sends the elements they need",
        "against q2: removes the windows and aggregates of photons/photon, and sends the elements they need",
        "against q1: removes the windows and aggregates of photons/photon, and sends the elements they need",
        "against q2: removes the windows and aggregates of photons/photon, and sends the elements they need",
        "against q3: widens the selection of photons/photon/coord/cel/ra, photons/photon/coord/cel/dec, "
        "photons/photon/en, photons/photon/det_time; adds photons/photon/phc",
    ]
    assert 'one stream "photons" for q1, q2, q3, q4:' in found


def test_a_match_is_said(explain: Explain) -> None:
    """Registered the other way round, q3 finds all it needs."""
    assert "against q4: matches, nothing is added" in explain(q4=papers.Q4, q3=papers.Q3)


def test_streams_are_apart(explain: Explain) -> None:
    """A query is compared only with those of the same stream."""
    other = papers.Q3.replace('stream("photons")', 'stream("others")')
    found = explain(q3=papers.Q3, other=other)
    assert "against" not in found
    assert "one stream" not in found


def test_joins_are_named(explain: Explain) -> None:
    """A query that needs a forest is listed with the reason why it has no tree, and the others go on."""
    found = explain(q5=papers.Q5, q4=papers.Q4)
    assert found.startswith("q5: a query that reads several inputs has a property forest")
    assert 'q4: stream "photons"' in found


def test_as_data(explain: Explain) -> None:
    """The same for programs: trees, what is lacking, and abstract queries."""
    found = json.loads(explain("--json", q1=papers.Q1, q2=papers.Q2, q5=papers.Q5))
    first, second, join = found["queries"]
    assert first["tree"]["window"]["extent"] == "|det_time diff 60 step 40|"
    assert first["tree"]["aggregates"] == [
        {"value": "avg(en)", "path": "photons/photon/en", "selection": "avg(en) >= 1.3"}
    ]
    assert second["against"] == [
        {
            "query": "q1",
            "matches": False,
            "lacks": [{"kind": "window", "of": "photons/photon"}, {"kind": "selection", "of": "avg(en)"}],
        }
    ]
    assert second["abstract"].startswith("<photons>")
    assert join["tree"] is None
    assert [each["serves"] for each in found["streams"]] == [["q1", "q2"]]


def test_a_bad_query_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Query text that cannot be read ends with its place and status 1."""
    query = tmp_path / "bad.xq"
    query.write_text("for $p in", encoding="utf-8")
    assert main(["explain", str(query)]) == 1
    assert "bad.xq:1:" in capsys.readouterr().err
