"""Subscriptions that begin with the beginning of their streams (LAWS 3.6): they answer as one that was there from the
start, which runs beside them and is the judge.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from random import Random

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from anabranch import Engine, Http, Topic
from anabranch.cli import main
from anabranch.errors import UsageError
from brokers import PATIENCE, Broker
from mass import Mass

QUERIES = {
    "items": 'for $o in stream("s") where $o.v > 3 return [key($o), $o.v]',
    "windows": 'for $w in stream("s")/root/item |t diff 20| return <w>{ count($w), sum($w/v) }</w>',
    "groups": 'for $o in stream("s")/root/item group by $k := $o/v return <g>{ $k, count($o) }</g>',
    "pairs": 'for $a in stream("s")/root/item |t diff 10|, $b in stream("u")/root/item |t diff 10| '
    "where $a/v = $b/v return <p>{ $a/t/text(), $b/t/text() }</p>",
}
TABLE = {
    "rows": 'for $o in stream("s") return [key($o), $o.v]',
    "before": 'for $o in stream("s") return [key($o), array { for $p in $o#1 return $p.v }]',
}


def answers(
    folder: Path,
    streams: Mapping[str, Topic | Path],
    queries: Mapping[str, str],
    late: Mapping[str, str],
    **given: object,
) -> dict[str, str]:
    """Run to the present end, with subscriptions as they are and with some that begin with the beginning."""
    epoch_bytes = given.pop("epoch_bytes", 1 << 20)
    with Engine(local=True, checkpoint=folder, once=True, epoch_bytes=epoch_bytes) as engine:  # type: ignore[arg-type]
        for name, each in streams.items():
            engine.stream(name, each, format="json", **given)  # type: ignore[arg-type]
        held = [engine.subscribe(text, name) for name, text in queries.items()]
        held += [engine.subscribe(text, name, from_beginning=True) for name, text in late.items()]
        engine.wait()
        return {each.name: each.answer() for each in held}


def message(random: Random, now: int) -> tuple[bytes, bytes | None]:
    value = {"t": now + random.randint(0, 8), "v": random.randint(0, 9)}
    return random.choice("abcd").encode(), json.dumps(value).encode()


@pytest.mark.parametrize("table", [False, True])
def test_late_is_early(broker: Broker, tmp_path: Path, mass: Mass, table: bool) -> None:
    """Topics that are written in parts, in runs with epochs of chance, some of them begun at a later offset: whoever
    subscribes behind any of the parts has the answers of who was there from the start, to the byte.
    """
    asked = TABLE if table else QUERIES
    given: dict[str, object] = {"updates": "upsert"} if table else {"time": "t", "slack": 4}
    for number in mass.cases(3):
        random = Random(f"replay {table} {number}")
        count = random.choice((1, 2))
        topics = {name: broker.topic(name, count) for name in ("s", "u")}
        start = random.choice(("earliest", {0: 2}))
        streams = {name: Topic.of(broker.address, each, start=start) for name, each in topics.items()}
        late: dict[str, str] = {}
        for part in range(4):
            for topic, partition in product(topics.values(), range(count)):
                written = [message(random, part * 40 + step) for step in range(random.choice((3, 30)))]
                gone = 0.2 if table else 0
                messages = [(key, value if random.random() >= gone else None) for key, value in written]
                broker.write(topic, messages, partition)
            given["epoch_bytes"] = random.choice((9_000, 50_000, 1 << 20))
            if part:
                late |= {f"{name}-{part}": text for name, text in asked.items()}
            found = answers(tmp_path / str(number), streams, asked, late, **given)
        assert any(found[name] for name in asked)
        for name in late:
            assert found[name] == found[name.partition("-")[0]], f"{number} {name}"


def test_files_are_read_in_the_order_in_which_they_came(tmp_path: Path) -> None:
    """One that came behind others with larger names is read behind them again, and so is what a file grew by."""
    folder, query = tmp_path / "in", {"q": 'for $o in stream("s") return $o.v'}
    folder.mkdir()
    (folder / "b").write_text('{"v": 1}\n')
    (folder / "c").write_text('{"v": 2}')
    answers(tmp_path / "state", {"s": folder}, query, {})
    (folder / "a").write_text('{"v": 3}\n')
    answers(tmp_path / "state", {"s": folder}, query, {})
    with (folder / "b").open("a") as file:
        file.write('{"v": 4}\n')
    found = answers(tmp_path / "state", {"s": folder}, query, {"late": query["q"]}, epoch_bytes=1)
    (folder / "d").write_text('{"v": 5}\n')
    found = answers(tmp_path / "state", {"s": folder}, query, {"late": query["q"]})
    assert found == {"q": "1\n2\n3\n4\n5\n", "late": "1\n2\n3\n4\n5\n"}
    (folder / "a").unlink()
    with pytest.raises(
        UsageError, match="'more' cannot begin with the beginning of 's': the file 'a' is not there any"
    ):
        answers(tmp_path / "state", {"s": folder}, query, {"late": query["q"], "more": query["q"]})


def test_what_retention_has_removed_is_named(broker: Broker, tmp_path: Path) -> None:
    """The answer begins with what is left, and a dead letter has the offsets that are not."""
    topic, query = broker.topic(), 'for $o in stream("s") return $o.v'
    broker.write(topic, [b'{"v": %d}' % each for each in range(6)])
    streams = {"s": Topic.of(broker.address, topic)}
    answers(tmp_path, streams, {"q": query}, {})
    asked = AdminClient({"bootstrap.servers": broker.address})  # has to live until the result is there
    for each in asked.delete_records([TopicPartition(topic, 0, 4)]).values():
        each.result(PATIENCE)
    assert answers(tmp_path, streams, {"q": query}, {"late": query}) == {
        "q": "0\n1\n2\n3\n4\n5\n",
        "late": "4\n5\n",
    }
    with Engine(local=True, checkpoint=tmp_path) as engine:
        (letter,) = engine.log.dead_letters()
        assert (letter.place.offset, letter.reason) == (0, "retention has removed the offsets 0 to 3")


def test_what_cannot_begin_with_the_beginning(tmp_path: Path) -> None:
    """What no source keeps is refused by name, and so is a subscription that was taken out meanwhile."""
    for name in ("in", "on"):
        (tmp_path / name).write_text('{"v": 1}\n')
    query = 'for $o in stream("s") return $o.v'
    for given, reason in (
        ({"source": Http()}, "is pushed, and what was read of it is not kept"),
        ({"source": tmp_path / "in", "heartbeat": 1, "time": "v"}, "has heartbeats, which are not kept"),
        ({"source": [tmp_path / "in", tmp_path / "on"]}, "declares no time, and when its elements came is not kept"),
        ({"source": tmp_path / "in", "updates": True}, "declares no time, and when its elements came is not kept"),
        ({"source": Topic.of("127.0.0.1:1", "t", timestamps=False)}, "declares no time"),
    ):
        with Engine(local=True, checkpoint=tmp_path / "refused") as engine:
            engine.stream("s", format="json", **given)
            with pytest.raises(UsageError, match=f"'q' cannot begin with the beginning: the stream 's' {reason}"):
                engine.subscribe(query, "q", from_beginning=True)
    late = {"late": query}
    answers(tmp_path / "state", {"s": tmp_path / "in"}, {"q": query}, late)
    (tmp_path / "in").write_text('{"v": 1}\n{"v": 2}\n')
    answers(tmp_path / "state", {"s": tmp_path / "in"}, {"q": query}, {})
    with pytest.raises(UsageError, match="'late' was taken out when it had read a part of 's@late"):
        answers(tmp_path / "state", {"s": tmp_path / "in"}, {"q": query}, late)


@pytest.mark.spark
def test_in_a_site(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`from = "beginning"` says so there."""
    (tmp_path / "in").write_text('{"v": 1}\n{"v": 2}\n')
    (tmp_path / "q.xq").write_text('for $o in stream("s") return $o.v')
    site = (
        '[engine]\ncheckpoint = "state"\n[streams.s]\npath = "in"\nformat = "json"\n[subscriptions.q]\nquery = "q.xq"\n'
    )
    (tmp_path / "SITE.toml").write_text(site)
    assert main(["run", str(tmp_path / "SITE.toml"), "--once"]) == 0
    late = '[subscriptions.late]\nquery = "q.xq"\nfrom = "beginning"\n[subscriptions.now]\nquery = "q.xq"\n'
    (tmp_path / "SITE.toml").write_text(site + late)
    with (tmp_path / "in").open("a") as file:
        file.write('{"v": 3}\n')
    assert main(["run", str(tmp_path / "SITE.toml"), "--once"]) == 0
    capsys.readouterr()
    for name, answer in ("late", "1\n2\n3\n"), ("now", "3\n"):
        assert main(["answer", str(tmp_path / "SITE.toml"), name]) == 0
        assert capsys.readouterr().out.strip() == answer.strip()
    (tmp_path / "SITE.toml").write_text(site + '[subscriptions.late]\nquery = "q.xq"\nfrom = "start"\n')
    assert main(["run", str(tmp_path / "SITE.toml"), "--once"]) == 2
    assert "'from' takes 'now' or 'beginning', not 'start'" in capsys.readouterr().err
