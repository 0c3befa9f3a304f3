"""Collections in Spark's processes are short, and lose nothing for good."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from weakref import ref

import pytest

from anabranch.spark.garbage import Freezer


class _Circle:
    """Garbage that only a collection sees."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    gc.unfreeze()


def _task(freezer: Freezer) -> None:
    """What Spark's daemon does: a task, and then a collection."""
    freezer.begin_task()
    gc.collect()


def test_what_a_task_leaves_is_collected_behind_it() -> None:
    """As without freezing."""
    freezer = Freezer()
    freezer.begin_task()
    left = ref(_Circle())
    gc.collect()
    assert left() is None


def test_what_has_outlived_a_task_is_not_walked_through() -> None:
    """It is frozen when the next one begins."""
    freezer, kept = Freezer(), [_Circle() for _ in range(1_000)]
    _task(freezer)
    walked = {id(each) for each in gc.get_objects()}
    assert not walked & {id(each) for each in kept}


@pytest.mark.mass
def test_frozen_garbage_is_seen_after_many_tasks() -> None:
    """Not by the next task, but by the hundredth."""
    freezer, kept = Freezer(), [_Circle()]
    left = ref(kept[0])
    _task(freezer)
    kept.clear()
    _task(freezer)
    assert left() is not None
    for _ in range(100):
        _task(freezer)
    assert left() is None
