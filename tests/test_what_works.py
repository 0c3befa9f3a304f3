"""The table 'What works now' of the README, kind of query by kind of query."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import prepare, refuse_endless
from anabranch.errors import Unsupported
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source

ITEM = 'for $p in stream("s")/r/p where $p/t > 1 return <a>{ $p/t }</a>'
WINDOW = 'for $w in stream("s")/r/p|t diff 10| return avg($w/t)'
STEP_JOIN = 'for $x in stream("s")/r/p|count 2|, $y in stream("t")/r/p|count 2| where $x/t = $y/t return $x'
INTERVAL = 'for $x in stream("s")/r/p, $y in stream("t")/r/p where $y/t >= $x/t - 1 and $y/t <= $x/t + 1 return $x'
KEYED = 'for $x in stream("s")/r/p, $y in stream("t")/r/p where $x/k = $y/k and $x/t > 1 return $x'
SET = 'for $x in stream("s")/r/p union stream("t")/r/p[t > 1] return $x'
ORDERED = 'for $p in stream("s")/r/p order by $p/t return $p'
MIXED_JOIN = 'for $x in stream("s")/r/p|count 2|, $y in stream("t")/r/p|t diff 2| where $x/t = $y/t return $x'
WHOLE = 'count(stream("s")/r/p)'
SEVERAL = f"<a>{{ {WINDOW} }}{{ {WHOLE} }}</a>"
OF_WINDOWS = f"let $all := ({WINDOW}) return ($all, $all)"
BELOW_WINDOWS = 'let $all := (for $w in stream("s")/r/p|t diff 10| return $w) return $all/t'
BEFORE = 'stream("s")/r/p#1'
MINUTE = 'stream("s")/r/p?[60]'
EVER = 'stream("s")/r/p/t#1, stream("s")/r/p'
RUN = [
    # over streams of items or of updates, with a declared time or without: refused by `run`, and why
    *((each, False, time, None) for each in (ITEM, WINDOW, STEP_JOIN, BEFORE, MINUTE) for time in ("t", None)),
    *((each, updates, time, None) for each in (KEYED, SET) for updates in (False, True) for time in ("t", None)),
    (INTERVAL, False, "t", None),
    (INTERVAL, False, None, "an interval join needs streams whose declared times are what it compares"),
    *((each, False, time, None) for each in (ORDERED, WHOLE, SEVERAL, OF_WINDOWS) for time in ("t", None)),
    (BELOW_WINDOWS, False, "t", "a 'let' that holds a whole stream has to wait for the end of the input"),
    *(
        (each, True, time, None)
        for each in (ITEM, WINDOW, STEP_JOIN, ORDERED, WHOLE, BEFORE, MINUTE, EVER)
        for time in ("t", None)
    ),
    (INTERVAL, True, None, None),
    (MIXED_JOIN, True, "t", "a count window cannot be joined with one over values in streams of updates"),
]


def inputs(folder: Path, updates: bool, time: str | None) -> Inputs:
    for name in "st":
        (folder / name).write_text("<r><p><t>1</t></p></r>")
    path = None if time is None else ItemPath.parse(time)
    return Inputs(tuple(Source(name, folder / name, time=path, updates=updates) for name in "st"))


@pytest.mark.parametrize(("query", "updates", "time", "refused"), RUN)
def test_what_run_answers(tmp_path: Path, query: str, updates: bool, time: str | None, refused: str | None) -> None:
    """What the README says that `anabranch run` answers is taken, and the rest refused by name."""
    given = inputs(tmp_path, updates, time)
    if refused is None:
        refuse_endless(prepare("q", query, given, "spark"), given)
    else:
        with pytest.raises(Unsupported, match=refused):
            refuse_endless(prepare("q", query, given, "spark"), given)
