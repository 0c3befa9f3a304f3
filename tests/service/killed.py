"""A service that is started, killed and started again, at one address."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import Literal

from faults.harness import await_end

PATIENCE = 240.0
_POLL = 0.005

Victim = Literal["process", "jvm", "both"]


@dataclass
class Killed:
    """A service that is started and killed, at one address."""

    folder: Path
    port: int
    command: Sequence[str | Path]
    process: subprocess.Popen[bytes] | None = None
    jvms: set[int] = field(default_factory=set)
    patience: float = PATIENCE
    """Seconds that it may take to whatever it is expected to do."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def is_at_work(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self) -> None:
        with (self.folder / "output").open("ab") as output:
            self.process = subprocess.Popen(
                list(self.command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env={**os.environ, "PYTHONFAULTHANDLER": "1"},
            )

    def watch(self, until: Callable[[], bool], what: str) -> None:
        """Wait for something while it is at work."""
        assert self.process is not None
        patience = monotonic() + self.patience
        while not until():
            assert self.process.poll() is None, self.story(f"it has ended, before {what}")
            assert monotonic() < patience, self.story(f"it hangs, before {what}")
            sleep(_POLL)

    def kill(self, victim: Victim) -> None:
        """Kill the process, its JVM, after which it ends by itself, or both at once."""
        assert self.process is not None
        about = json.loads((self.folder / "state" / "run.json").read_text().splitlines()[0])
        jvm = int(about["jvm"]) if about["pid"] == self.process.pid and about["jvm"] != about["pid"] else None
        if jvm is not None:
            self.jvms.add(jvm)
        if victim in ("process", "both") or jvm is None:
            self.process.kill()
        if victim in ("jvm", "both") and jvm is not None:
            os.kill(jvm, signal.SIGKILL)
        try:
            status = self.process.wait(self.patience)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)
            self.process.wait()
            raise AssertionError(self.story("it goes on without its JVM")) from None
        expected = 1 if victim == "jvm" and jvm is not None else -signal.SIGKILL
        assert status == expected, self.story(f"it has ended with {status}")

    def end(self) -> None:
        """Let it end by itself."""
        assert self.process is not None
        self.process.terminate()
        assert self.process.wait(self.patience) == 0, self.story("it has failed")
        for jvm in self.jvms:
            await_end(jvm)

    def give_up(self) -> None:
        """End it however that goes."""
        if self.process is not None and self.is_at_work:
            self.process.kill()
            self.process.wait()

    def story(self, message: str) -> str:
        tails = [(self.folder / name).read_text(errors="replace")[-2_000:] for name in ("output", "log.jsonl")]
        return "\n".join((message, *tails))


def free_port() -> int:
    """A port of loopback at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])
