"""Accents in answers of JSON (LAWS 7)."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch.engine.finite import answering
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import EngineName, prepare
from anabranch.stream.reading.source import Source

ACCENT = '{"$accent": {"alter": {"path": "t", "by": ". * 5 div 9 - 160 div 9"}}}\n'
LINES = '{"i": 1, "t": 68}\n{"i": 2, "t": 77.0}\n' + ACCENT + '{"i": 3, "t": 30}\n'


@pytest.mark.parametrize("engine", ["reference", "local"])
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('for $o in stream("s") return $o', LINES),
        ('for $o in stream("s") where $o.t > 80 return { "i": $o.i, "t": $o.t }', '{"i": 3, "t": 86}\n'),
        ('for $w in stream("s")|count 3| return { "s": sum($w.t), "a": avg($w.t) }', '{"s": 231, "a": 77}\n'),
        ('for $w in stream("s")|count 2| for $o in $w return $o', LINES.removesuffix('{"i": 3, "t": 30}\n')),
    ],
)
def test_accents(tmp_path: Path, query: str, expected: str, engine: EngineName) -> None:
    """Items as they are have their accents with them, as lines; what is looked up is in the units of the start."""
    (tmp_path / "s").write_text(LINES)
    inputs = Inputs([Source("s", tmp_path / "s", format="json")], finite=True)
    with answering([prepare("q", query, inputs, engine)], inputs) as run:
        assert "".join(run.answers["q"]) == expected
        assert list(run.dead) == []


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_accents_in_arrays(tmp_path: Path, engine: EngineName) -> None:
    """An accent leads to members of arrays in arrays by their name, and lookups find them in the units of before."""
    doubled = '{"$accent": {"alter": {"path": "v/member", "by": ". * 2"}}}\n'
    (tmp_path / "s").write_text('{"v": [[1, 2.0], 7]}\n' + doubled + '{"v": [[2, 5], [], 7.0]}\n')
    inputs = Inputs([Source("s", tmp_path / "s", format="json")], finite=True)
    queries = {
        "whole": "return $o",
        "value": 'return { "v": $o.v, "s": sum($o.v[[1]]) }',
        "less": "where $o.v < 2 return 1",
    }
    prepared = [prepare(name, f'for $o in stream("s") {text}', inputs, engine) for name, text in queries.items()]
    with answering(prepared, inputs) as run:
        assert {name: "".join(run.answers[name]) for name in queries} == {
            "whole": '{"v": [[1, 2.0], 7]}\n' + doubled + '{"v": [[2, 5], [], 7.0]}\n',
            "value": '{"v": [[1, 2.0], 7], "s": 3}\n{"v": [[1, 2.5], [], 7.0], "s": 3.5}\n',
            "less": "1 1",
        }
        assert list(run.dead) == []
