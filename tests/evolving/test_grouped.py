"""Windows that are grouped and counted by panes, over accented streams: what a trunk answers is the law's."""

from __future__ import annotations

from pathlib import Path as Folder
from random import Random

import pytest

from evolving.test_panes import ACCENT, SENSORS, sliced
from evolving.windowed import OVER, Law, elements, lay
from mass import enough, some

WINDOWS = ("|n diff 10|", "|n diff 20 step 10|", "|n diff 7 step 3|", "|count 3|")
KEYS = ("$k := $o/s", "$k := $o/s", "$k := $o/t", "$k := $o/x", "$k := $o/s, $l := $o/t", "$k := $o/t > 20")
BEHIND = ("", "", "where avg($o/t) >= 20 ", "order by max($o/x) ", "order by $k descending count $i where $i < 3 ")
RESULTS = (
    "<o>{ avg($o/t) }</o>",
    '<o k="{ $k }">{ sum($o/t) }</o>',
    "<o><k>{ $k }</k><a>{ avg($o/t) }</a><b>{ max($o/x) }</b></o>",
    "<o>{ $k, min($o/t), count($o) }</o>",
    '<o k="{ $k }" m="{ min($o/n) }">{ max($o/x) }</o>',
)


@pytest.mark.mass
def test_groups_in_other_units(tmp_path: Folder) -> None:
    """Values and keys whose units change, keys of one item or another, and accents that come out between windows."""
    accents = answered = 0
    for seed in some(range(8)):
        random = Random(f"grouped and accented {seed}")
        queries: dict[str, str] = {}
        gone = random.choice(("", "", "x"))
        for number in range(4):
            key, result = random.choice(KEYS), random.choice(RESULTS)
            if gone in key:
                key = KEYS[0] if gone else key
            inner = f"for $o in $w group by {key} {random.choice(BEHIND)}return {result}"
            queries[str(number)] = f"{OVER} {random.choice(WINDOWS)} {inner}"
        source = lay(tmp_path / f"in-{seed}", [elements(random, 30, gone=gone)], domains=SENSORS)
        trunk = sliced(tmp_path / f"state-{seed}", [source], random, queries)
        assert trunk.plan is not None
        assert {each.kind for each in trunk.plan.subscriptions} == {"windows by panes"}
        for name, text in queries.items():
            due = Law(text, source).read()
            assert trunk.answer(name) == due, (seed, text)
            accents += due.count(ACCENT)
            answered += bool(due)
    assert accents > enough(3)
    assert answered > enough(20)
