"""One input, three doors: files, topics and HTTP push give the same answers, to the byte."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from random import Random
from typing import Literal

import pytest

from anabranch import Engine, Http, Topic
from anabranch.engine.handles import LiveSubscription
from anabranch.stream.photons import photons
from brokers import Broker
from endpoint.client import XML, ask
from papers import SHARING

NEAR = 'stream("photons")/photons/photon|det_time diff 2|'
QUERIES = {
    **{name: SHARING[name] for name in ("q1", "q2", "q3")},
    "window": f"for $w in {NEAR} return <w>{{ count($w), max($w/en), avg($w/phc) }}</w>",
    "group": f"for $w in {NEAR} for $p in $w group by $k := $p/phc return <g>{{ $k, count($p), sum($p/en) }}</g>",
    "join": f'for $p in {NEAR}, $o in stream("others")/photons/photon|det_time diff 2| '
    "where $p/phc = $o/phc return <j>{ $p/det_time, $o/det_time }</j>",
    "display": 'for $p in stream("photons")/photons/photon group by $k := $p/phc order by $k '
    "return <d>{ $k, count($p) }</d>",
}
Door = Callable[[Engine, str, Sequence[bytes]], object]


def files(folder: Path) -> Door:
    """Lines of a file."""

    def open_door(engine: Engine, name: str, items: Sequence[bytes]) -> None:
        (folder / name).write_bytes(b"".join(each + b"\n" for each in items))
        engine.stream(name, folder / name, format="lines", root="photons", time="det_time", slack=1)

    return open_door


def topics(broker: Broker, random: Random, form: Literal["xml", "lines"]) -> Door:
    """Messages, each an item or some lines."""

    def open_door(engine: Engine, name: str, items: Sequence[bytes]) -> None:
        topic = broker.topic(name)
        broker.write(topic, items if form == "xml" else batches(items, random))
        source = Topic.of(broker.address, topic, partitions=1)
        engine.stream(name, source, format=form, root="photons", time="det_time", slack=1)

    return open_door


def pushed(random: Random) -> Door:
    """Bodies of some lines."""

    def open_door(engine: Engine, name: str, items: Sequence[bytes]) -> None:
        stream = engine.stream(name, Http(), format="lines", root="photons", time="det_time", slack=1)
        assert stream.url is not None
        for body in batches(items, random):
            assert ask(stream.url, body, XML).status == 200

    return open_door


def batches(items: Sequence[bytes], random: Random) -> list[bytes]:
    """Items on lines, some of them together."""
    left, found = iter(items), list[bytes]()
    while taken := list(islice(left, random.choice((1, 5, 60)))):
        found.append(b"\n".join(taken))
    return found


def answers(folder: Path, door: Door, streams: Mapping[str, Sequence[bytes]], epoch_bytes: int) -> dict[str, str]:
    """All answers over streams that came through a door."""
    with Engine(local=True, checkpoint=folder, epoch_bytes=epoch_bytes, trigger_ms=5) as engine:
        for name, items in streams.items():
            door(engine, name, items)
        held: list[LiveSubscription] = [engine.subscribe(text, name) for name, text in QUERIES.items()]
        engine.start()
        engine.trunk.catch_up()
        return {each.name: each.answer() for each in held}


@pytest.mark.parametrize("seed", [1, 2])
def test_answers_do_not_depend_on_the_door(broker: Broker, tmp_path: Path, seed: int) -> None:
    """Photons with a time path, some of them late: as lines of files, as messages of one and of several, and pushed."""
    random = Random(seed)
    streams = {
        name: [each.encode() for each in photons(700, seed + number)]
        for number, name in enumerate(("photons", "others"))
    }
    for items in streams.values():
        for _ in range(40):
            at = random.randrange(len(items) - 9)
            items.insert(at + random.randrange(9), items.pop(at))
    doors = {
        "files": files(tmp_path),
        "messages": topics(broker, random, "xml"),
        "lines": topics(broker, random, "lines"),
        "http": pushed(random),
    }
    found = {
        name: answers(tmp_path / f"{name}-state", door, streams, random.choice((20_000, 60_000, 1 << 20)))
        for name, door in doors.items()
    }
    for name, each in found.items():
        assert each == found["files"], name
    assert all(len(each) > 60 for each in found["files"].values()), found["files"]  # more than the frame of q1
