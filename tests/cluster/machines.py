"""Machines for trying out a cluster: each has a disk, a network interface and processes of its own.

A machine is a set of Linux namespaces (mount, network, process, host name), held by its first process (`machine.py`).
Its disk is in memory, empty but for the read-only paths that it is given; nothing of another machine can be seen.
All machines of a lab are on one switch, a bridge in a network namespace of its own, so nothing of this shows up among
the network interfaces of the computer, and no machine reaches anything outside.

Whatever happens, nothing stays behind: a machine ends with its first process, that process ends with this one, even
if this one is killed, and with the processes go the mounts, the interfaces and the disk.
It needs root.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from sockets import TABLES, listening_in

PREFIX = "10.77.0."
PATIENCE = 60.0
_INIT = Path(__file__).with_name("machine.py")
_WITH_US = ("setpriv", "--pdeathsig", "KILL", "--")
"""The process ends when we do."""
_ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LANG": "C.UTF-8",
}


@dataclass(eq=False)
class Machine:
    """A machine that runs."""

    name: str
    address: str
    init: subprocess.Popen[str]
    pid: int
    """Its first process, as the computer numbers it."""
    environment: Mapping[str, str] = field(default_factory=dict)

    def start(
        self, arguments: Sequence[str | Path], *, environment: Mapping[str, str] | None = None, **options: Any
    ) -> subprocess.Popen[Any]:
        """Start a program there; options are those of `Popen`."""
        inside = ["nsenter", f"--target={self.pid}", "--mount", "--net", "--pid", "--uts", "--ipc", "--root", "--wd"]
        given = {**_ENVIRONMENT, **self.environment, **(environment or {})}
        return subprocess.Popen([*_WITH_US, *inside, *arguments], env=given, **options)

    def run(self, arguments: Sequence[str | Path], **options: Any) -> str:
        """Run a program there to its end; gives what it prints."""
        given = options.pop("input", None)
        process = self.start(
            arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
        )
        out, errors = process.communicate(given)
        assert process.returncode == 0, f"{self.name}: {' '.join(map(str, arguments))}: {errors or out}"
        return str(out)

    def log(self, path: str) -> str:
        """The text of a file there; empty if there is none."""
        return self.run(["sh", "-c", f"cat '{path}' 2>/dev/null || true"])

    def put(self, folder: str, files: Mapping[str, str]) -> None:
        """Write files into a folder there, by relative name."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for name, text in files.items():
                data = text.encode()
                entry = tarfile.TarInfo(name)
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
        unpack = ["sh", "-c", f"mkdir -p '{folder}' && tar -x -C '{folder}'"]
        process = self.start(unpack, stdin=subprocess.PIPE)
        process.communicate(packed.getvalue())
        assert process.returncode == 0, f"{self.name}: cannot write into '{folder}'"

    def listens_on(self) -> set[str]:
        """The addresses on which its processes listen."""
        tables = (self.run(["cat", table]) for table in TABLES)
        return {str(address) for table in tables for _, address in listening_in(table)}

    def background(self, arguments: Sequence[str | Path], log: str, **options: Any) -> None:
        """Start a program there that goes on by itself, with a log."""
        line = f"exec \"$@\" >'{log}' 2>&1 </dev/null &"
        self.run(["setsid", "sh", "-c", line, "sh", *arguments], **options)

    def crash(self) -> None:
        """End the machine as a power cut would: all its processes at once, and its disk is gone."""
        self.init.kill()
        self.init.wait(PATIENCE)


class Lab:
    """A switch and the machines on it; `Lab.made` makes one."""

    def __init__(self, switch: int, held: ExitStack) -> None:
        self._switch = switch
        self._held = held
        self._count = 0

    @staticmethod
    @contextmanager
    def made() -> Iterator[Lab]:
        """A lab, from here to the end."""
        with ExitStack() as held:
            ready = "ip link add switch type bridge && ip link set switch up && echo ready && exec sleep infinity"
            process = subprocess.Popen(
                [*_WITH_US, "unshare", "--net", "--", "sh", "-c", ready], stdout=subprocess.PIPE, text=True
            )
            held.callback(_end, process)
            _await_ready(process, "the switch")
            yield Lab(process.pid, held)

    def machine(
        self, name: str, paths: Sequence[str | Path] = (), environment: Mapping[str, str] | None = None
    ) -> Machine:
        """A new machine that sees these paths, read-only, beside the system's programs."""
        self._count += 1
        address = f"{PREFIX}{self._count}"
        root = self._held.enter_context(tempfile.TemporaryDirectory(prefix=f"anabranch-{name}-"))
        spaces = ["unshare", "--mount", "--net", "--pid", "--uts", "--ipc", "--fork", "--kill-child"]
        init = [sys.executable, "-I", str(_INIT), name, address, root, *dict.fromkeys(map(str, paths))]
        process = subprocess.Popen([*_WITH_US, *spaces, "--", *init], stdout=subprocess.PIPE, text=True)
        self._held.callback(_end, process)
        _await_ready(process, name)
        pid = _child_of(process.pid)
        self._connect(name, pid, address)
        return Machine(name, address, process, pid, environment or {})

    def _connect(self, name: str, pid: int, address: str) -> None:
        port = f"port{self._count}"
        _ip("link", "add", port, "netns", str(self._switch), "type", "veth", "peer", "eth0", "netns", str(pid))
        _ip("link", "set", port, "master", "switch", "up", within=self._switch)
        _ip("addr", "add", f"{address}/24", "dev", "eth0", within=pid)
        _ip("link", "set", "eth0", "up", within=pid)

    def unplug(self, machine: Machine) -> None:
        """Take a machine's cable out: everything there goes on, but nobody hears of it."""
        _ip("link", "set", f"port{machine.address.removeprefix(PREFIX)}", "down", within=self._switch)


def _ip(*arguments: str, within: int | None = None) -> None:
    space = () if within is None else ("nsenter", f"--target={within}", "--net")
    subprocess.run([*space, "ip", *arguments], check=True)


def _await_ready(process: subprocess.Popen[str], name: str) -> None:
    out: IO[str] | None = process.stdout
    assert out is not None
    line = out.readline()
    assert line == "ready\n", f"{name} did not start: is this root, on Linux?"


def _child_of(process: int) -> int:
    (child,) = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return int(child)


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait(PATIENCE)
    if process.stdout is not None:
        process.stdout.close()


def is_possible() -> bool:
    """Whether this user may make machines."""
    return os.geteuid() == 0 and sys.platform == "linux"
