"""Windows over JSON that is edited, with dots and in SQL: the machine shows what the law says (LAWS 5.10)."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from anabranch.cli import main
from mass import some

QUERIES = {
    "q.sql": "SELECT window_start, SUM(v) AS total, COUNT(*) AS n, COUNT(v) AS c, MIN(v) AS least, AVG(v) AS mean "
    "FROM TUMBLE(s, t, 10) GROUP BY window_start",
    "groups.sql": "SELECT k, window_start, SUM(v) AS total, COUNT(*) AS n FROM TUMBLE(s, t, 10) "
    "GROUP BY k, window_start",
    "hops.sql": "SELECT k, window_end, MAX(v) AS top FROM HOP(s, t, 5, 10) WHERE v > 1 GROUP BY k, window_end",
    "having.sql": "SELECT k, SUM(v) AS total FROM TUMBLE(s, t, 5) GROUP BY k, window_start HAVING COUNT(*) > 1",
    "dots.xq": 'for $w in stream("s")|t diff 10| return { "at": window-start($w), "sum": sum($w.v), "max": max($w.v) }',
    "held.xq": 'for $w in stream("s")|count 2| return { "all": array { $w.v }, "n": count($w.k) }',
    "gaps.xq": 'for $w in stream("s")|t gap 4 by k| return { "k": array { $w.k }, "n": count($w), "sum": sum($w.v) }',
}


def written(random: Random) -> str:
    """Objects with mutable values, and updates of these."""
    kinds: dict[str, str] = {}

    def value(kind: str) -> Any:
        match kind:
            case "t":
                return random.choice((*range(25), 2.5))
            case "k":
                return random.choice(("a", "b", None, 1, 1.0, "1", True))
            case _:
                return random.choice((*range(6), 1.50, "7", None, 2e3))

    def leaf(kind: str) -> Any:
        if random.random() < 0.6:
            return value(kind)
        kinds[f"r{len(kinds)}"] = kind
        return {"$mutable": {"id": f"r{len(kinds) - 1}", "content": value(kind)}}

    lines: list[str] = []
    for at in range(14):
        if not kinds or random.random() < 0.5:
            item = {"$at": at, **{kind: leaf(kind) for kind in "tkv" if kind == "t" or random.random() < 0.85}}
            lines.append(json.dumps(item))
        else:
            target = random.choice(list(kinds))
            lines.append(json.dumps({"$replace": {"target": target, "at": at, "content": value(kinds[target])}}))
    return "".join(f"{each}\n" for each in lines)


@pytest.mark.parametrize("name", QUERIES)
def test_windows_of_objects(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every display of random streams is that of the reference, to the byte, and so is what is set aside."""
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(QUERIES[name])
    moments = 0
    for number in some(range(12)):
        Path("s.jsonl").write_text(written(Random(f"{name} {number}")))
        shown: list[tuple[int, str, set[str]]] = []
        for engine in ("local", "reference"):
            line = ["query", name, "--stream", "s=s.jsonl", "--timeline", "--engine", engine, "--dead-letter", engine]
            status = main(line)
            letters = Path(engine).read_text().splitlines() if Path(engine).exists() else []
            reasons = {(each["reason"], each["offset"]) for each in map(json.loads, letters)}
            shown.append((status, capsys.readouterr().out, {str(each) for each in reasons}))
            Path(engine).unlink(missing_ok=True)
        assert shown[0] == shown[1], Path("s.jsonl").read_text()
        moments += shown[0][1].count("\n")
    assert moments > 8
