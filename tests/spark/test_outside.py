"""Queries that look at the root of a stream: where its name tells it, they end, and nobody else."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from anabranch.stream.source import Source
from spark.bare import BareTrunk


@pytest.mark.parametrize(
    "query",
    [
        'for $x in stream("s")//r return <o>{ count($x/p) }</o>',
        'for $w in stream("s")//*|t diff 2| return <w>{ count($w) }</w>',
        'for $x in stream("s")/r/p|count 1| for $y in stream("s")//*|count 1| return <j/>',
    ],
)
def test_one_query_that_reaches_the_root_ends_alone(tmp_path: Path, query: str) -> None:
    """It used to end the trunk, and all others with it, in every epoch anew."""
    (tmp_path / "in").write_text("<r>" + "".join(f"<p><t>{n}</t></p>" for n in range(6)) + "</r>")
    trunk = BareTrunk(tmp_path / "state", [Source("s", tmp_path / "in", "document")], Random(1), finite=False)
    trunk.run({"q": query, "deep": 'stream("s")//t', "all": 'stream("s")/r/p/t'}, (40, 1 << 20), (1, 2))
    assert trunk.answer("all") == trunk.answer("deep") == "".join(f"<t>{n}</t>" for n in range(6))
    assert trunk.answer("q") == ""
    assert trunk.plan is not None
    names = {each.id: each.name for each in trunk.plan.subscriptions}
    ended = {names[number]: why for number, why in list(trunk.log.manifests.since(0))[-1].aborted.items()}
    assert ended == {"q": "the query looks at the stream's root element, which has no end"}
