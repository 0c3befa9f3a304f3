"""Commands that are stopped while Spark works for them: real processes, real signals, to the whole process group.

A terminal sends Ctrl-C to all processes of a group; the JVM and its Python workers must not die of it before the
command has let them go, and must not stay behind it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from anabranch.cli import main

PATIENCE = 180.0
SITE = """\
[engine]
checkpoint = "state"
log = "log"
[streams.s]
path = "in"
format = "lines"
[subscriptions.all]
query = "all.xq"
"""
NETWORK = """\
[network]
checkpoint = "state"
log = "log"
[[links]]
between = ["A", "B"]
[streams.s]
at = "A"
path = "in"
format = "lines"
time = "t"
[subscriptions.all]
at = "B"
query = "all.xq"
"""
ITEMS = "".join(f"<p><t>{number}</t></p>\n" for number in range(100))

pytestmark = pytest.mark.spark


class Command:
    """A command of its own process group, with its own folder for what is temporary."""

    def __init__(self, *arguments: str) -> None:
        Path("tmp").mkdir()
        self._errors = Path("errors").open("w+b")  # noqa: SIM115  # it is closed when the command has ended
        self.process = subprocess.Popen(
            [sys.executable, "-c", "import sys; from anabranch.cli import main; sys.exit(main())", *arguments],
            env={**os.environ, "TMPDIR": str(Path("tmp").absolute())},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            start_new_session=True,
        )

    def wait_for(self, come: Callable[[], bool]) -> None:
        """Wait until something has come; the command must go on meanwhile."""
        deadline = monotonic() + PATIENCE
        while not come():
            assert self.process.poll() is None, self.errors()
            assert monotonic() < deadline, self.errors()
            signal.sigtimedwait((), 0.01)

    def java(self) -> int | None:
        """The process of the JVM, once it is there: the command's child that leads a session of its own."""
        for each in Path("/proc").glob("[0-9]*/stat"):
            try:
                state, parent, _, session = each.read_text().rpartition(")")[2].split()[:4]
            except OSError:
                continue
            if int(parent) == self.process.pid and session == each.parent.name and state != "Z":
                return int(each.parent.name)
        return None

    def send(self, *numbers: int) -> None:
        """Send signals to all processes of the group."""
        for number in numbers:
            os.killpg(self.process.pid, number)

    def end(self) -> int:
        """Wait for the end."""
        return self.process.wait(PATIENCE)

    def errors(self) -> str:
        return Path("errors").read_text()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._errors.close()


@contextmanager
def started(*arguments: str) -> Iterator[Command]:
    command = Command(*arguments)
    try:
        yield command
    finally:
        command.close()


def await_end(process: int | None) -> None:
    """Wait until a process is gone by itself."""
    deadline = monotonic() + PATIENCE
    while Path(f"/proc/{process}").exists():
        assert monotonic() < deadline, f"process {process} was left behind"
        signal.sigtimedwait((), 0.01)


def events() -> list[dict[str, Any]]:
    log = Path("log")
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def told(kind: str) -> Callable[[], bool]:
    """Whether the log tells of an event."""
    return lambda: any(each["event"] == kind for each in events())


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    Path("in/a").write_text(ITEMS)
    Path("all.xq").write_text('<all>{ for $p in stream("s")/root/p return $p/t }</all>')
    Path("site.toml").write_text(SITE)
    Path("network.toml").write_text(NETWORK)


def test_a_run_is_stopped() -> None:
    """Status 0, `stopped` with the reason is the last event, nothing is on standard error, and the JVM ends."""
    with started("run", "site.toml") as command:
        command.wait_for(told("epoch"))
        java = command.java()
        command.send(signal.SIGTERM)
        assert (command.end(), command.errors()) == (0, "")
    assert (events()[-1]["event"], events()[-1]["epoch"], events()[-1]["reason"]) == ("stopped", 0, "SIGTERM")
    assert java is not None
    await_end(java)


def test_a_second_signal_does_not_wait_for_the_epoch_at_work(capsys: pytest.CaptureFixture[str]) -> None:
    """It ends as after the first, and the next run repeats what was not done."""
    with started("run", "site.toml") as command:
        command.wait_for(told("started"))
        command.send(signal.SIGINT, signal.SIGINT)
        assert (command.end(), command.errors()) == (0, "")
        await_end(command.java())
    assert (events()[-1]["event"], events()[-1]["reason"]) == ("stopped", "SIGINT")
    assert main(["run", "site.toml", "--once"]) == 0
    assert main(["answer", "site.toml", "all"]) == 0
    assert capsys.readouterr().out == f"<all>{''.join(f'<t>{number}</t>' for number in range(100))}</all>\n"


def test_a_run_is_stopped_before_spark_has_started() -> None:
    """The JVM is just being started: nothing is waited for, all else is the same."""
    with started("run", "site.toml") as command:
        command.wait_for(lambda: command.java() is not None)
        java = command.java()
        command.send(signal.SIGINT)
        assert (command.end(), command.errors()) == (0, "")
    assert [(each["event"], each["reason"]) for each in events()] == [("stopped", "SIGINT")]
    await_end(java)


def test_a_network_is_stopped() -> None:
    """Like a site, here by SIGINT."""
    with started("network", "run", "network.toml") as command:
        command.wait_for(told("epoch"))
        java = command.java()
        command.send(signal.SIGINT)
        assert (command.end(), command.errors()) == (0, "")
    assert (events()[-1]["event"], events()[-1]["reason"]) == ("stopped", "SIGINT")
    await_end(java)


def test_a_query_is_interrupted_at_work() -> None:
    """Status 130, no answer, nothing on standard error, and nothing is left in the temporary folder."""
    Path("in/a").write_text("".join(f"<p><t>{number}</t></p>\n" for number in range(2_000_000)))
    with started("query", "all.xq", "--stream", "s=in", "--out", "out") as command:
        command.wait_for(lambda: any(Path("tmp").glob("anabranch-*/run.json")))
        java = command.java()
        command.send(signal.SIGINT)
        assert (command.end(), command.errors()) == (130, "")
    assert not Path("out").exists()
    assert not list(Path("tmp").glob("anabranch-*"))
    await_end(java)


def test_the_demo_is_interrupted() -> None:
    """The same, for SIGTERM while Spark starts."""
    with started("demo", "--count", "1000") as command:
        command.wait_for(lambda: command.java() is not None)
        java = command.java()
        command.send(signal.SIGTERM)
        assert (command.end(), command.errors()) == (130, "")
    assert not list(Path("tmp").glob("anabranch-*"))
    await_end(java)


def test_a_jvm_does_not_outlive_its_command() -> None:
    """SIGKILL leaves the command no time to end its JVM, which is in another session: it ends by itself."""
    with started("run", "site.toml") as command:
        command.wait_for(told("started"))
        java = command.java()
        assert java is not None
        command.send(signal.SIGKILL)
        assert command.end() == -signal.SIGKILL
    await_end(java)
