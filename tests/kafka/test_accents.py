"""`anabranch accent` publishes into topics: in all partitions at once, checked as in files."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch import Engine, Topic
from anabranch.cli import main
from anabranch.engine import publishing
from brokers import Broker

ACCENT = '<s:accent><s:alter path="t" by="(. - 32) * 5 div 9"/></s:accent>'
QUERY = 'for $r in stream("sensors")/root/reading where $r/t > 0 return <warm>{ $r/n }{ $r/t }</warm>'


def write_site(folder: Path, broker: Broker, topic: str, form: str = "xml") -> Path:
    (folder / "warm.xq").write_text(QUERY)
    site = folder / "SITE.toml"
    site.write_text(
        f'[engine]\ncheckpoint = "state"\n[kafka]\nbrokers = "{broker.address}"\n'
        f'[streams.sensors]\nsource = "kafka"\ntopic = "{topic}"\nformat = "{form}"\nitem = "reading"\n'
        '[subscriptions.warm]\nquery = "warm.xq"\n'
    )
    return site


def reading(number: int, temperature: float) -> bytes:
    return f"<reading><n>{number}</n><t>{temperature}</t></reading>".encode()


def test_an_accent_is_in_every_partition(broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It stands behind what each partition holds, and before what follows."""
    topic = broker.topic(partitions=2)
    for partition in range(2):
        broker.write(topic, [reading(partition, 212)], partition)
    site = write_site(tmp_path, broker, topic)
    assert main(["accent", str(site), "sensors", ACCENT]) == 0
    said = capsys.readouterr().err.splitlines()
    assert said == [f"anabranch: published in {topic}, partition {number}" for number in range(2)]
    for partition in range(2):
        broker.write(topic, [reading(partition + 2, 100)], partition)
    for partition in range(2):
        values = [each.value for each in broker.read(topic) if each.partition == partition]
        assert [(value or b"")[:9] for value in values] == [b"<reading>", b"<s:accent", b"<reading>"]


def test_what_follows_an_accent_is_read_in_its_unit(broker: Broker, tmp_path: Path) -> None:
    """A query that stays in the unit of its start has the same temperature before and behind the accent."""
    topic = broker.topic()
    site = write_site(tmp_path, broker, topic)
    broker.write(topic, [reading(1, 212)])
    assert main(["accent", str(site), "sensors", ACCENT]) == 0
    broker.write(topic, [reading(2, 100)])
    with Engine(local=True, once=True) as engine:
        engine.stream("sensors", Topic.of(broker.address, topic, partitions=1), format="xml", item="reading")
        found = engine.subscribe('for $r in stream("sensors")/root/reading return $r/t', policy="absorb")
        engine.wait()
        assert found.answer() == "<t>212</t><t>212</t>"


def test_one_partition_may_be_chosen(broker: Broker, tmp_path: Path) -> None:
    """Then the others have none."""
    topic = broker.topic(partitions=3)
    site = write_site(tmp_path, broker, topic)
    assert main(["accent", str(site), "sensors", ACCENT, "--partition", "1"]) == 0
    assert [each.partition for each in broker.read(topic)] == [1]


def test_an_accent_in_json(broker: Broker, tmp_path: Path) -> None:
    """A stream of JSON gets it as JSON."""
    topic = broker.topic()
    (tmp_path / "warm.xq").write_text(QUERY)
    site = write_site(tmp_path, broker, topic, "json")
    assert main(["accent", str(site), "sensors", ACCENT]) == 0
    (found,) = broker.read(topic)
    assert (found.value or b"").startswith(b'{"$accent": ')


def test_nothing_is_published_by_a_dry_run_or_what_is_refused(
    broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A dry run says where it would be and what would come of it; a path that no message has is warned of."""
    topic = broker.topic(partitions=2)
    broker.write(topic, [reading(1, 212)], 0)
    site = write_site(tmp_path, broker, topic)
    assert main(["accent", str(site), "sensors", ACCENT, "--dry-run"]) == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines()[:2] == [f"would be published in {topic}, partition {number}" for number in range(2)]
    assert main(["accent", str(site), "sensors", ACCENT.replace('"t"', '"tt"'), "--dry-run"]) == 0
    assert "warning: no item has had 'tt': the newest 1 were looked at" in capsys.readouterr().err
    assert main(["accent", str(site), "sensors", "<s:accent/>"]) == 1
    assert main(["accent", str(site), "sensors", ACCENT, "--partition", "2"]) == 2
    assert "they are 0 to 1" in capsys.readouterr().err
    assert len(broker.read(topic)) == 1


def test_brokers_that_do_not_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command fails and says whom it has asked."""
    monkeypatch.setattr(publishing, "_PATIENCE", 0.5)
    site = write_site(tmp_path, Broker(tmp_path, "127.0.0.1:1"), "t")
    assert main(["accent", str(site), "sensors", ACCENT]) == 1
    assert "127.0.0.1:1" in capsys.readouterr().err
