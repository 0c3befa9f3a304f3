"""Which plan an epoch runs with that was begun and never committed."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch.spark.plan.files import Plans
from anabranch.spark.plan.planning import Planning
from anabranch.spark.plan.wanted import Workload
from anabranch.storage import Location
from anabranch.stream.reading.source import Source, StreamForm
from anabranch.stream.settings import Settings

FORM = StreamForm("lines", "<root/>")
FORMS = {"a": FORM, "b": FORM}


def wanted(*streams: str, **subscriptions: str) -> Workload:
    return Workload({each: Source(each, Path(each)) for each in streams}, subscriptions)


def text(stream: str) -> str:
    return f'stream("{stream}")/root/p'


BOTH = wanted("a", "b", qa=text("a"), qb=text("b"))


@pytest.mark.parametrize(
    ("later", "streams", "names"),
    [
        (BOTH, ["a", "b"], ["qa", "qb"]),
        (wanted("a", "b", qa=text("a"), qb=text("b"), more=text("a")), ["a", "b"], ["qa", "qb"]),
        (wanted("b", qb=text("b")), ["b"], ["qb"]),
        (wanted("b", qb=text("b"), more=text("b")), ["b"], ["qb", "more"]),
        (wanted("a", "b", qb=text("b")), ["a", "b"], ["qb"]),
        (wanted("a", "b", qa=text("b"), qb=text("b")), ["a", "b"], ["qb", "qa"]),
    ],
)
def test_what_is_wanted_no_more_takes_no_part(
    tmp_path: Path, later: Workload, streams: list[str], names: list[str]
) -> None:
    """A plan that was written holds, also when more is wanted since; not when it has what was taken out."""
    first = Planning(Plans(Location.of(tmp_path)), Settings(), {}, 1)
    before = first.begin(0, BOTH, FORMS, None).load()
    again = Planning(Plans(Location.of(tmp_path)), Settings(), {}, 1)
    found = again.begin(0, later, FORMS, None).load()
    assert [each.name for each in found.streams] == streams
    assert [each.name for each in found.subscriptions] == names
    ids = {each.name: each.id for each in before.subscriptions}
    kept = [each for each in found.subscriptions if ids.get(each.name) == each.id]
    assert all(each in before.subscriptions for each in kept)
    assert len({each.id for each in (*before.subscriptions, *found.subscriptions)}) == len(
        {(each.name, each.text) for each in (*before.subscriptions, *found.subscriptions)}
    )
    written = Plans(Location.of(tmp_path)).of(0)
    assert written is not None
    assert written.load() == found
