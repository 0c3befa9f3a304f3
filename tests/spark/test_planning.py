"""Which plan an epoch runs with that was begun and never committed."""

from __future__ import annotations

from pathlib import Path

import pytest

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
    ("later", "names"),
    [
        (BOTH, ["qa", "qb"]),
        (wanted("a", "b", qa=text("a"), qb=text("b"), more=text("a")), ["qa", "qb", "more"]),
        (wanted("b", qb=text("b")), ["qb"]),
        (wanted("b", qb=text("b"), more=text("b")), ["qb", "more"]),
        (wanted("a", "b", qb=text("b")), ["qb"]),
        (wanted("a", "b", qa=text("b"), qb=text("b")), ["qb", "qa"]),
    ],
)
def test_an_epoch_that_comes_again_is_planned_anew(tmp_path: Path, later: Workload, names: list[str]) -> None:
    """What is wanted now takes part, whatever was planned before; who began in a committed epoch keeps its number."""
    folder = Location.of(tmp_path)
    committed = Planning(folder, folder, None, Settings(), {}, 1).begin(0, BOTH, FORMS, None)
    begun = Planning(folder, folder, committed, Settings(), {}, 1).begin(1, BOTH, FORMS, None).load()
    again = Planning(folder, folder, committed, Settings(), {}, 1)
    found = again.begin(1, later, FORMS, None).load()
    assert [each.name for each in found.streams] == list(later.streams)
    assert sorted(each.name for each in found.subscriptions) == sorted(names)
    before = {(each.name, each.text): each for each in committed.load().subscriptions}
    assert {(each.name, each.text): each for each in begun.subscriptions} == before
    fresh = [each for each in found.subscriptions if (each.name, each.text) not in before]
    assert all(before.get((each.name, each.text), each) == each for each in found.subscriptions)
    assert not {each.id for each in fresh} & {each.id for each in before.values()}
    assert all(each.first == 1 for each in fresh)
