"""What queries about the past keep, as `anabranch explain` and `engine.explain()` tell it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import papers
from anabranch.cli import main
from anabranch.engine.reports.explanation import explanation
from anabranch.language import check, parse, print_query
from anabranch.stream.reading.source import Source

TICKER = """\
q: about the past; it keeps
  stream("tickers")//ticker: current
  stream("tickers")//ticker/quote: 2 versions, whole
  stream("tickers")//ticker/name: current, whole
"""
CASES = {
    "a query about versions": (papers.TICKERS, TICKER),
    "a snapshot": (
        'stream("tickers")//quote',
        'q: on display; it keeps\n  stream("tickers")//quote: current, whole\n',
    ),
    "a time": (
        'count(stream("tickers")//quote?[60])',
        'q: about the past; it keeps\n  stream("tickers")//quote: what lived in the last 60 s\n',
    ),
    "items": (
        'for $a in stream("ack")//p where not(some $s in stream("syn")//p?[60] satisfies $s/id = $a/id) return $a/id',
        'q: about the past, answered by itself; it keeps\n  stream("syn")//p: items of the last 60 s\n',
    ),
    "versions of items": (
        '<o>{ stream("s")//i/t#[1], stream("s")//i/t?5, stream("s")//i/v#0 }</o>',
        "q: about the past, answered by itself; it keeps\n"
        '  stream("s")//i/t: the last 2 items that have it; items of the last 5 s, and the newest before\n'
        '  stream("s")//i/v: the last item that has it\n',
    ),
    "values": (
        '(max(stream("tickers")//quote))#1',
        "q: about the past, answered by itself; it keeps\n"
        '  stream("tickers")//quote: current, whole\n  max(stream("tickers")//quote): 2 values\n',
    ),
    "values of items": (
        'for $i in stream("s")//i where $i/v > (max(stream("s")//i/v))#1 return $i',
        'q: about the past, answered by itself; it keeps\n  max(stream("s")//i/v): 2 values\n',
    ),
    "values for nodes": (
        'for $q in stream("tickers")//ticker return ($q/bid)[. > 1]#1 + (count($q/bid) + 1)#1',
        "q: about the past, answered by itself; it keeps\n"
        '  stream("tickers")//ticker: current\n  stream("tickers")//ticker/bid: all versions; 2 versions, whole\n',
    ),
    "what is not known beforehand": (
        '(count(stream("s")//i))?5',
        "q: about the past, answered by itself; it keeps\n"
        '  stream("s"): all of it, for it is not known beforehand how much is needed\n',
    ),
}


@pytest.mark.parametrize(("query", "expected"), CASES.values(), ids=CASES)
def test_at_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], query: str, expected: str) -> None:
    """Text for people, and the same lines as data; `--updates` says which streams are edited."""
    file = tmp_path / "q.xq"
    file.write_text(query)
    assert main(["explain", str(file), "--updates", "tickers"]) == 0
    assert capsys.readouterr().out == expected
    assert main(["explain", str(file), "--updates", "tickers", "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["queries"]
    head, *lines = expected.splitlines()
    assert f"q: {told['reason']}" == head
    assert told["keeps"] == [each.strip() for each in lines]


def test_of_an_engine() -> None:
    """Subscriptions of an engine are told so in its explanation, those that ask the same together."""
    sources = {"tickers": Source("tickers", Path("t"), updates=True)}
    text = print_query(check(parse(papers.TICKERS), papers.TICKERS, edited=("tickers",)).query)
    found = explanation(sources, {"q": text, "again": text}, None, {})
    assert f"{TICKER}  the same as again" in str(found)
    (told,) = json.loads(found.to_json())["queries"]
    assert told["keeps"] == [each.strip() for each in TICKER.splitlines()[1:]]
    assert "2 versions" in found.svg


def test_a_join_of_streams_that_are_edited(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Documents may be looped over side by side; streams that only grow may not."""
    file = tmp_path / "q.xq"
    file.write_text('for $a in stream("s")//a, $b in stream("t")//b where $a/k < $b/k return $b/v#1')
    assert main(["explain", str(file), "--updates", "s", "--updates", "t"]) == 0
    assert 'stream("t")//b/v: 2 versions, whole' in capsys.readouterr().out
    assert main(["explain", str(file), "--updates", "s"]) == 1
    assert "unbounded second stream" in capsys.readouterr().err


def test_queries_that_share_a_history(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One history of minimal length for all that see the same entries: who needs less is served, others widen it."""
    loop = 'for $q in stream("tickers")//ticker where $q/quote{} > 5 return $q/name'
    texts = {"a": loop.format("#3"), "b": loop.format("?60"), "c": loop.format("#1"), "d": 'stream("tickers")/a/b'}
    for name, text in texts.items():
        (tmp_path / f"{name}.xq").write_text(text)
    files = [str(tmp_path / f"{name}.xq") for name in texts]
    assert main(["explain", *files, "--updates", "tickers"]) == 0
    told = capsys.readouterr().out
    quote = 'stream("tickers")//ticker/quote'
    assert f"against a: widens its history by {quote}: what lived in the last 60 s, whole\n\nc:" in told
    assert "against a: is served by its history\n  against b: widens" in told
    merged = [
        'stream("tickers")//ticker: current',
        f"{quote}: what lived in the last 60 s; 4 versions, whole",
        'stream("tickers")//ticker/name: current, whole',
    ]
    assert told.endswith("\n".join(('one history of "tickers" for a, b, c:', *(f"  {each}" for each in merged), "")))
    assert main(["explain", *files, "--updates", "tickers", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["histories"] == [{"serves": ["a", "b", "c"], "stream": "tickers", "keeps": merged}]
    assert data["queries"][2]["against"][0] == {"query": "a", "widens": []}
