"""Windows over updates into topics of a real broker: a changelog, and compacted by region or by key."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch import Engine, Kafka
from anabranch.algebra.display.replay import Replay
from anabranch.stream.tree import STREAM_NAMESPACE
from brokers import Broker

S = f'xmlns:s="{STREAM_NAMESPACE}"'
LINES = (
    f'<i {S} s:at="1"><t>1</t><v>1</v></i>',
    f'<s:mutable {S} id="a" at="2"><i><t>11</t><v>2</v></i></s:mutable>',
    f'<s:replace {S} target="a" at="3"><i><t>5</t><v>x</v></i></s:replace>',
    f'<s:replace {S} target="a" at="4"><i><t>21</t><v>4</v></i></s:replace>',
    f'<s:mutable {S} id="b" at="5"><i><t>12</t><v>3</v></i></s:mutable>',
    f'<s:replace {S} target="b" at="6"/>',
)
WINDOWS = 'for $w in stream("s")/root/i|t diff 10| return <w from="{ window-start($w) }">{ sum($w/v) }</w>'
QUERY = f'<all>{{ {WINDOWS} }}{{ sum(stream("s")/root/i/v) }}</all>'
"""The sum of all fails where one value is no number, and with it the whole answer, windows included."""


def run(folder: Path, queries: dict[str, tuple[str, Kafka]]) -> None:
    """A run for each element, so that sinks go on where the one before has ended."""
    (folder / "in").mkdir()
    for number, line in enumerate(LINES):
        (folder / "in" / str(number)).write_text(f"{line}\n")
        with Engine(local=True, once=True, checkpoint=folder / "state") as engine:
            engine.stream("s", folder / "in", format="lines", updates=True)
            for name, (text, sink) in queries.items():
                engine.subscribe(text, name, sink=sink)
            engine.wait()


def compacted(broker: Broker, topic: str) -> dict[bytes | None, bytes]:
    """The newest message of each key, without those that a tombstone has taken."""
    table: dict[bytes | None, bytes] = {}
    for each in broker.read(topic):
        if each.value is None:
            table.pop(each.key, None)  # a region that has shown nothing so far may have one, too
        else:
            table[each.key] = each.value
    return table


@pytest.mark.parametrize("key", [None, "@from"])
def test_a_compacted_topic_is_the_display(broker: Broker, tmp_path: Path, key: str | None) -> None:
    """Also behind a moment at which the query failed as a whole: what went meanwhile has a tombstone."""
    log, now = broker.topic(), broker.topic()
    text = QUERY if key is None else f"<all>{{ {WINDOWS} }}</all>"
    queries = {
        "log": (QUERY, Kafka(broker.address, log, changes="updates")),
        "now": (text, Kafka(broker.address, now, key=key, changes="upserts")),
    }
    run(tmp_path, queries)
    replay = Replay()
    shown = [replay.text for each in broker.read(log) for _ in replay.feed((each.value or b"").decode())]
    one, four = '<w from="0">1</w>', '<w from="20">4</w>'
    assert shown == [
        f"<all>{one}1</all>",
        f'<all>{one}<w from="10">2</w>3</all>',
        "",
        f"<all>{one}{four}5</all>",
        f'<all>{one}<w from="10">3</w>{four}8</all>',
        f"<all>{one}{four}5</all>",
    ]
    held = sorted(each.decode() for each in compacted(broker, now).values())
    assert held == sorted([one, four, *(["5"] if key is None else [])])
    if key is not None:
        assert set(compacted(broker, now)) == {b"0", b"20"}
