"""What a network sets aside: each thing once, however many peers it reaches and whatever is killed."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from anabranch.errors import StateError
from anabranch.network.description import RegisteredStream
from anabranch.network.topology import line
from anabranch.peers.dead_letters import LetterFile
from anabranch.peers.programs import is_items
from anabranch.peers.running import RunningNetwork
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source
from peers.test_kinds import ITEMS, S
from peers.working import GrowingStream, bare_network, network_of

FAILING = 'for $i in stream("s")/root/i where $i/v >= 2 return $i/v'
BAD = (
    "<i><t>3</t><v>bad",
    "<i><t>3</t><k>1</k><v>much</v></i>",
    f'<s:accent {S}><s:alter path="v" by="none"/></s:accent>',
)


class Killed(Exception):
    """Stands for a process that has gone."""


def told(path: Path) -> list[tuple[str, str, str | None]]:
    """Stream, raw text and subscription of what is in a file."""
    found = map(json.loads, path.read_text().splitlines())
    return [(each["stream"], each["raw"], each.get("subscription")) for each in found]


def test_each_thing_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken item, one for which two queries fail, and an accent in doubt, which travels; killed in between."""
    source = Source("s", tmp_path / "s", "lines", time=ItemPath.parse("t"))
    grown = GrowingStream(tmp_path / "s", (*ITEMS[:3], *BAD, *ITEMS[3:]))
    queries = [("a", FAILING, "SP2"), ("b", FAILING.replace("2", "3"), "SP1")]
    network = network_of(line(3), [RegisteredStream(source, "SP0", "SP0")], "widening", queries)
    path, folder = tmp_path / "told" / "dead.jsonl", tmp_path / "network"

    def taken(running: RunningNetwork) -> None:
        LetterFile.of(path, folder).take(running)

    with bare_network(network, folder, Random(8)) as running:
        grown.grow(5)
        running.drain()
        with monkeypatch.context() as dying:
            dying.setattr(LetterFile, "_save", killed_after_the_first(LetterFile._save))
            with pytest.raises(Killed):
                taken(running)
        taken(running)
        assert told(path) == [("s", BAD[0], None), ("s.2", BAD[1], "b"), ("s.3", BAD[1], "a")]
        grown.grow(50)
        running.drain()
        taken(running)
        taken(running)
        assert told(path)[3:] == [("s", BAD[2], None)]
        later = tmp_path / "later.jsonl"
        LetterFile.of(later, folder).take(running)
        assert sorted(told(later), key=str) == sorted(told(path), key=str)
    with pytest.raises(StateError, match="another checkpoint or program wrote it"):
        LetterFile.of(path, tmp_path / "other")


def test_what_fails_where_windows_are_made(tmp_path: Path) -> None:
    """It is told for each whose windows they are, and where it stood in the stream."""
    source = Source("s", tmp_path / "s", "lines", time=ItemPath.parse("t"))
    grown = GrowingStream(tmp_path / "s", (*ITEMS[:3], "<i><t>3</t><k>none</k><v>3</v></i>", *ITEMS[3:]))
    text = 'for $w in stream("s")/root/i[k >= 1]|t diff 10| return <w>{ sum($w/v) }</w>'
    queries = [("a", text, "SP2"), ("b", text.replace("10", "20"), "SP1")]
    stream = RegisteredStream(source, "SP0", "SP0", None, accents=False)
    with bare_network(network_of(line(3), [stream], "widening", queries), tmp_path / "network", Random(8)) as running:
        assert not any(map(is_items, running.catalogue.hops))
        grown.grow(50)
        running.drain()
        LetterFile.of(tmp_path / "dead", tmp_path / "network").take(running)
        expected = "<i><t>3</t><k>none</k><v>3</v></i>"
        assert told(tmp_path / "dead") == [("s", expected, "a"), ("s", expected, "b")]


def killed_after_the_first(save: object) -> object:
    """The second position is never written down: the lines are there, and nobody knows."""
    calls: list[int] = []

    def dying(self: LetterFile) -> None:
        calls.append(1)
        if len(calls) > 1:
            raise Killed
        save(self)  # type: ignore[operator]

    return dying
