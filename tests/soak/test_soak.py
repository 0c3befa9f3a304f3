"""The parts of `make soak`: what is flat and what is not, its picture, its judges, and a short soak on Spark."""

from __future__ import annotations

import faulthandler
import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from xml.etree import ElementTree

import pytest

from anabranch import Engine
from anabranch.site import read_site
from progress import Progress
from soak.crowd import ALWAYS, KINDS, Crowd
from soak.flatness import Bound, flatness
from soak.judging import Judges
from soak.lives import Lives
from soak.picture import Panel, draw
from soak.processes import holding, machine_seconds
from soak.run import Plan, Soak, judge_answers, judge_letters, judge_network
from soak.site import write_site
from soak.streams import RATES, SLACK, GrowingStream, broken_lines

MINUTES = [number / 6 for number in range(180)]


@pytest.mark.parametrize(
    ("curve", "is_flat"),
    [
        (lambda minute, random: 100 + random.uniform(-5, 5), True),
        (lambda minute, random: 100 + (200 if 14 < minute < 15 else 0), True),
        (lambda minute, random: 100 + minute % 3 * 10, True),
        (lambda minute, random: 100 - minute, True),
        (lambda minute, random: 100 + minute + random.uniform(-20, 20), False),
        (lambda minute, random: 100 + 2 * minute - minute % 3, False),
    ],
    ids=["noise", "peak", "saw", "falls", "rises", "saw that rises"],
)
def test_a_leak_is_found(curve: Callable[[float, Random], float], is_flat: bool) -> None:
    """Noise, peaks and saws are flat; what rises by more than a tenth in half an hour is not."""
    random = Random(1)
    found = flatness(MINUTES, [curve(minute, random) for minute in MINUTES], Bound(0.1))
    assert found.is_flat == is_flat


def test_the_load_of_others_is_no_growth() -> None:
    """Latency that follows the load is flat; what rises beside the load is found all the same."""
    random = Random(2)
    load = [minute / 30 + random.uniform(-0.3, 0.3) for minute in MINUTES]
    latency = [100 + 100 * each for each in load]
    assert not flatness(MINUTES, latency, Bound(0.3)).is_flat
    assert flatness(MINUTES, latency, Bound(0.3, under_load=True), load).is_flat
    slower = [each + 4 * minute for each, minute in zip(latency, MINUTES, strict=True)]
    assert not flatness(MINUTES, slower, Bound(0.3, under_load=True), load).is_flat


def test_the_picture_has_all_curves() -> None:
    """A line for each curve with a point for each sample, inside the picture, and a title that is escaped."""
    curves = {"a < b": [1.0, 3.0, 2.0], "none": [0.0, 0.0, 0.0]}
    picture = ElementTree.fromstring(draw("a soak", "of <1>", [0, 1, 2], [Panel("memory", "MB", curves)], 1, [0.5]))
    across, down = (float(picture.attrib[name]) for name in ("width", "height"))
    lines = [each.attrib["points"].split() for each in picture.iter("{http://www.w3.org/2000/svg}polyline")]
    assert [len(each) for each in lines] == [3, 3]
    for point in (point for line in lines for point in line):
        x, y = map(float, point.split(","))
        assert 0 <= x <= across
        assert 0 <= y <= down


def test_what_processes_hold() -> None:
    """This one: memory, files and threads that it has, and time that goes forwards."""
    found, machine = holding(os.getpid()), machine_seconds()
    assert found.driver_mb > 10
    assert found.files > 2
    assert found.threads >= 1
    assert 0 < found.processor <= machine


@pytest.mark.mass
def test_the_judges_agree_with_an_engine(tmp_path: Path) -> None:
    """Subscriptions of all kinds that come and go while streams grow, without Spark: all answers are those due."""
    site = write_site(tmp_path)
    streams = {name: GrowingStream(name, tmp_path / "in" / name) for name in RATES}
    sources = read_site(site).streams
    crowd = Crowd(3)
    with Engine(local=True, checkpoint=tmp_path / "state", trigger_ms=10) as engine:
        for name, source in sources.items():
            engine.stream(
                name,
                tmp_path / "in" / name,
                format=source.format,
                root=source.root,
                time=str(source.time) if source.time else None,
                slack=SLACK if name == "photons" else 0,
                updates=source.updates,
                domains={str(path): values for path, values in source.domains},
            )
        there = {name: engine.subscribe(text, name) for name, text in ALWAYS.items()}
        engine.start()
        lives = Lives(tmp_path / "state")
        for step in range(6):
            for name in crowd.go(8) if step else ():
                there.pop(name).cancel()
            for asked in crowd.come(8 if step else 60, each_kind=not step):
                there[str(asked["name"])] = engine.subscribe(str(asked["query"]), str(asked["name"]))
            for name, stream in streams.items():
                stream.grow(60 * RATES[name])
            engine.trunk.catch_up()
            lives.look()
        for stream in streams.values():
            stream.close()
        engine.trunk.catch_up()
        lives.look()
    judges, found = Judges(streams, sources, lives), lives.by_name()
    compared = 0
    for name, kind in crowd.kinds.items():
        if name in found:
            compared += 1
            given = judges.given(found[name], kind)
            assert given == judges.by_law(found[name], kind), (name, found[name].last, lives.newest, found[name].asked)
            if kind.judge == "arithmetic":
                assert given == judges.by_arithmetic(found[name], kind), (
                    name,
                    found[name].last,
                    lives.newest,
                    found[name].asked,
                )
    assert {crowd.kinds[name].name for name in found if name in crowd.kinds} == {each.name for each in KINDS}
    assert compared > 60
    assert sum(broken_lines(name, len(stream.lines)) for name, stream in streams.items()) > 5


@pytest.mark.kills
@pytest.mark.spark
def test_a_short_soak(tmp_path: Path) -> None:
    """Half a minute with all restarts and kills: each bad element is set aside once, and all answers are those due."""
    faulthandler.cancel_dump_traceback_later()  # other processes, each with its own limit
    progress, plan = Progress(), Plan(0.5, 60, 1, tmp_path / "soak.svg")
    soak = Soak(tmp_path, plan, progress)
    try:
        soak.begin()
        soak.work()
        soak.end()
    finally:
        soak.give_up()
    judge_letters(soak, progress, tmp_path)
    judge_network(soak, progress)
    judge_answers(plan, soak, progress, tmp_path)
    assert progress.failed == 0
    assert progress.passed > 15
