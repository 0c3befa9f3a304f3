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


def test_the_page_shows_what_comes_out(explain: Explain, capsys: pytest.CaptureFixture[str]) -> None:
    """The examples of docs/explain.md are what its queries give."""
    page = PAGE.read_text(encoding="utf-8")
    explain(**dict(re.findall(r"```\n\(: (\w+)\.xq :\)\n(.*?)\n```", page, re.S)))
    examples = re.findall(r"```console\n\$ anabranch explain ([^\n]*)\n(.*?)\n```", page, re.S)
    assert len(examples) == 3
    for arguments, shown in examples:
        assert main(["explain", *arguments.replace("photons.dtd", DTD).split()]) == 0
        assert capsys.readouterr().out == f"{shown}\n"


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


def test_what_is_missing_is_said(explain: Explain) -> None:
    """Energies below 1.3 beside those above; where all of a query is missing, nothing more is said."""
    query = '<o>{ for $p in stream("photons")/photons/photon where $p/en >= 1.3 return $p/en }</o>'
    found = explain(above=query, all=query.replace("1.3", "0.5"))
    assert found.split("beside it would be sent:\n")[1].splitlines()[2].endswith(" en >= 0.5 and en < 1.3")
    assert "beside" not in explain(above=query, other=query.replace("$p/en", "$p/phc"))
    [_, second] = json.loads(explain("--json", above=query, all=query.replace("1.3", "0.5")))["queries"]
    [output] = second["against"][0]["remainder"]["outputs"]
    assert output["condition"] == "en >= 0.5 and en < 1.3"


def test_streams_are_apart(explain: Explain) -> None:
    """A query is compared only with those of the same stream."""
    other = papers.Q3.replace('stream("photons")', 'stream("others")')
    found = explain(q3=papers.Q3, other=other)
    assert "against" not in found
    assert "one stream" not in found


def test_how_the_papers_joins_share(explain: Explain) -> None:
    """q5 to q8: one join for the first two, windows for the others, and inputs for a query of one stream."""
    one = papers.Q4.replace('stream("photons")', 'stream("photon1")')
    found = explain(**{name: papers.SHARING[name] for name in ("q5", "q6", "q7", "q8")}, one=one)
    against = [line.strip() for line in found.splitlines() if line.startswith("  against q5")]
    assert against == [
        "against q5: shares the tuples of the join; adds photon1/det_time, photon2/det_time; "
        "widens the selection of photon1/en, photon2/en",
        "against q5: shares windows of 10 every 5 and 5 every 5, by SELECTWINDOWS(3, 2, 1) and "
        "SELECTWINDOWS(3, 1, 2); joins by itself",
        "against q5: shares windows of 5 every 5 and 10 every 5, by SELECTWINDOWS(3, 1, 2) and "
        "SELECTWINDOWS(3, 2, 3); joins by itself",
        "against q5: removes the join of photon1 and photon2, and sends what it needs of each",
    ]
    assert 'one step join of "photon1" and "photon2" for q5, q6:' in found
    assert 'one stream "photon1" for q5, q6, q7, q8, one:' in found


def test_a_stream_may_be_the_input_of_a_join(explain: Explain) -> None:
    """A join is told for each input what it finds in a stream; two joins of other kinds keep to themselves."""
    everything = "for $p in stream('photon1')/photons/photon return $p"
    found = explain(one=everything, q5=papers.Q5, figure11=papers.INTERVAL_JOIN)
    assert "  against one: as input photon1 it matches, nothing is added\n" in found
    assert "  against q5: joins by itself, for one is a step join, the other an interval join" in found


def test_inputs_that_are_apart(explain: Explain) -> None:
    """Streams that do not meet have a tree each, and what reads none has a reason."""
    found = explain(both="(stream('photon1')/photons/photon/en, stream('photon2')/photons/photon/phc)", none="<o/>")
    assert 'both: stream "photon1"' in found
    assert 'both: stream "photon2"' in found
    assert "none: a query that reads no stream has no property tree" in found


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
    assert join["forest"]["kind"] == "step"
    assert join["forest"]["condition"] == "photon1/en >= photon2/en + 0.5"
    assert [each["window"]["extent"] for each in join["forest"]["trees"]] == [
        "|det_time diff 10 step 5|",
        "|det_time diff 20 step 10|",
    ]
    assert [each["serves"] for each in found["streams"]] == [["q1", "q2"]]


def test_levels_as_data(explain: Explain) -> None:
    """Programs are told at which level a join is shared, with the parameters of the operators."""
    larger = papers.Q6.replace("diff 10 step 5", "diff 20 step 5")
    texts = {"q5": papers.Q5, "larger": larger, "q8": papers.Q8, "figure11": papers.INTERVAL_JOIN}
    found = json.loads(explain("--json", **texts))
    levels = [query["against"][0]["join"] for query in found["queries"][1:]]
    assert levels[0] == {
        "level": "selective join result sharing",
        "windows": ["20", "20"],
        "stream": ["10", "20"],
        "query": ["20", "20"],
    }
    assert levels[1]["query"] == ["SELECTWINDOWS(3, 1, 2)", "SELECTWINDOWS(3, 2, 3)"]
    assert levels[2] == {"level": "separate joins", "reason": "one is a step join, the other an interval join"}
    assert [each["serves"] for each in found["joins"]] == [["q5", "larger"]]


def test_a_bad_query_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Query text that cannot be read ends with its place and status 1."""
    query = tmp_path / "bad.xq"
    query.write_text("for $p in", encoding="utf-8")
    assert main(["explain", str(query)]) == 1
    assert "bad.xq:1:" in capsys.readouterr().err


def test_what_is_answered_in_columns_is_said(explain: Explain) -> None:
    """Items as the schema declares them, and what is to blame where columns cannot answer."""
    fast = '<r>{ for $p in stream("photons")/photons/photon where $p/en * 2 > 1 return <e>{ $p/en }</e> }</r>'
    slow = '<r>{ for $p in stream("photons")/photons/photon\n  return <e>{ $p/en/following-sibling::* }</e> }</r>'
    found = explain(fast=fast, slow=slow).splitlines()
    assert "  in columns: items are answered, if items look as the schema declares" in found
    (law,) = (line for line in found if "by the law" in line)
    blamed = "a step along the following-sibling axis: '$p/en/following-sibling::*' (line 2, column 15)"
    assert law.startswith(f"  by the law: {blamed}, if items look")
    [_, told] = json.loads(explain("--json", fast=fast, slow=slow))["queries"]
    assert told["columns"] == {
        "answered": False,
        "does": "items are answered",
        "look": "as the schema declares",
        "construct": "a step along the following-sibling axis",
        "expression": "$p/en/following-sibling::*",
        "line": 2,
        "column": 15,
        "hint": None,
    }


def test_the_look_of_items_is_that_of_a_sample_or_assumed(explain: Explain) -> None:
    """What the first items have several times is no operand of a sum; assumed is that they have one."""
    query = '<r>{ for $p in stream("s")/root/p return <e>{ $p/v + 1 }</e> }</r>'
    assert "  in columns: items are answered, if items look as the query's paths suggest" in explain(q=query)
    Path("s.xml").write_text("<p><v>1</v><v>2</v></p>\n" * 30, encoding="utf-8")
    found = explain("--stream", "s=s.xml", q=query)
    assert "by the law: a path to several values: '$p/v' (line 1, column 47)" in found
    assert ", if items look as the first 20 do" in found


def test_of_windows_and_joins_the_way_in_is_said(explain: Explain) -> None:
    """Their references and preselections."""
    found = explain(**{name: papers.SHARING[name] for name in ("q1", "q5")})
    assert "  in columns: windows are counted by panes, if items look as the schema declares" in found
    assert "  in columns: items reach the join, if items look as the query's paths suggest" in found
    path = 'stream("photons")/photons/photon[en/following-sibling::*]'
    window = f"<r>{{ for $w in {path} |count 3| return <c>{{ count($w) }}</c> }}</r>"
    blamed = "a step along the following-sibling axis: 'en/following-sibling::*'"
    assert f"  by the law: {blamed}" in explain(w=window)


def test_windows_are_counted_or_filled(explain: Explain) -> None:
    """The revenue per minute and country, with the bounds of its windows, is counted; what shows items is not."""
    window = 'for $w in stream("orders")/orders/order|ts diff PT1M| for $o in $w group by $c := $o/country '
    counted = window + 'return <r at="{ window-start($w) }" c="{ $c }">{ sum($o/amount) }</r>'
    assert "  in columns: windows are counted by panes, if items look as" in explain(w=counted)
    filled = window + 'return <r at="{ window-start($w) }">{ $o/amount }</r>'
    assert "  in columns: windows are filled, if items look as" in explain(w=filled)


def test_sessions_are_counted_or_held(explain: Explain) -> None:
    """Where no more is asked for than aggregates, bounds and the key, they are counted; other sessions hold items."""
    window = 'for $w in stream("views")/views/view|ts gap PT30M by user| '
    counted = window + 'return <v user="{ $w[1]/user }" at="{ window-start($w) }">{ sum($w/seconds) }</v>'
    assert "  in columns: sessions are counted by panes, if items look as" in explain(w=counted)
    held = "  by the law: sessions that are seen through more than aggregates, their bounds and their key"
    assert held in explain(w=window + "return <v>{ $w/page }</v>")


def test_what_cannot_be_in_columns_whatever_items_look_like(explain: Explain) -> None:
    """Namespaces around windows; around items they may be."""
    query = '<r xmlns="u">{ for $w in stream("photons")/photons/photon |count 3| return <c>{ count($w) }</c> }</r>'
    assert "  by the law: namespaces around the results\n" in explain(q=query)
    query = 'declare namespace q = "u"; <q:r>{ for $p in stream("s")/r/q:p where $p/q:x > 1 return $p }</q:r>'
    assert "  in columns: items are answered, if items look as the query's paths suggest" in explain(q=query)
