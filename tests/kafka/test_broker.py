from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from brokers import SCRIPT, Broker, started, stop


def test_a_broker_that_runs_is_left_alone(broker: Broker) -> None:
    """Starting it again prints its address, one line, and nothing else; the process is the same."""
    pid = (broker.folder / "pid").read_text()
    done = subprocess.run([SCRIPT, "start", broker.folder], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (f"{broker.address}\n", "")
    assert re.fullmatch(r"127\.0\.0\.1:\d+", broker.address)
    assert (broker.folder / "pid").read_text() == pid


def test_messages_are_read_as_they_were_written(broker: Broker) -> None:
    """Keys, values and tombstones come back, partition by partition."""
    topic = broker.topic(partitions=2)
    broker.write(topic, [b"first", (b"key", None)])
    broker.write(topic, [(b"other", b"third")], partition=1)
    found = [(each.partition, each.key, each.value) for each in broker.read(topic)]
    assert found == [(0, None, b"first"), (0, b"key", None), (1, b"other", b"third")]
    assert broker.read(broker.topic()) == []


@pytest.mark.spark
def test_a_killed_broker_starts_again_with_its_data_and_its_address(tmp_path: Path) -> None:
    """What was written before the kill is read from the same address after it; stopped, the process is gone."""
    first = started(tmp_path / "broker")
    try:
        topic = first.topic()
        first.write(topic, [b"before"])
        first.kill()
        again = started(first.folder)
        assert again == first
        again.write(topic, [b"after"])
        assert [each.value for each in again.read(topic)] == [b"before", b"after"]
        pid = int((again.folder / "pid").read_text())
    finally:
        stop(first.folder)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_process_that_only_has_the_number_is_not_ended(tmp_path: Path) -> None:
    """A pid file that names a process of somebody else, here this one, ends nothing."""
    (tmp_path / "pid").write_text(str(os.getpid()))
    done = subprocess.run([SCRIPT, "stop", tmp_path], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("arguments", [[], ["restart"]])
def test_other_words_show_how_it_is_used(arguments: list[str]) -> None:
    """Anything but start, stop and jars prints the usage and fails."""
    done = subprocess.run([SCRIPT, *arguments], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("usage: kafka.sh start [FOLDER [PROPERTY=VALUE...]]\n       kafka.sh stop")
