"""The first process of a machine of the lab: it gives the machine a disk of its own, and then waits for its end.

usage: machine.py NAME ADDRESS EMPTY-FOLDER [PATH...]

It is started in new namespaces (`machines.py` does so), and makes its root out of a file system in memory, which holds
nothing but the named paths, read-only, but for those with a `+` in front; everything else of the computer is out of
its sight, for good.
When it is ready it prints a line.
All other processes of the machine end with it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

SIZE = "1g"
_LINKED = ("bin", "lib", "lib64", "sbin")
"""Symbolic links to folders in /usr on most systems, folders on others."""
_DEVICES = ("full", "null", "random", "tty", "urandom", "zero")


def main(name: str, address: str, root: str, *paths: str) -> None:
    """Make the machine and wait."""
    disk = Path(root)
    _mount("-t", "tmpfs", "-o", f"size={SIZE},mode=755", name, root)
    for each in ("dev", "home", "proc", "root", "run", "tmp", "var/tmp"):
        (disk / each).mkdir(parents=True)
    for each in ("tmp", "var/tmp"):
        (disk / each).chmod(0o1777)
    for each in _LINKED:
        _same(Path("/", each), disk / each)
    for path in ("/usr", "/etc", *paths):
        _bind(Path(path.removeprefix("+")), disk, writable=path.startswith("+"))
    (disk / "run/hosts").write_text(f"127.0.0.1 localhost\n{address} {name}\n")
    _mount("--bind", str(disk / "run/hosts"), str(disk / "etc/hosts"))
    for each in _DEVICES:
        (disk / "dev" / each).touch()
        _mount("--bind", f"/dev/{each}", str(disk / "dev" / each))
    (disk / "dev/shm").mkdir()
    for link, target in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        (disk / "dev" / link).symlink_to(f"/proc/self/fd{target}")
    _mount("-t", "proc", "proc", str(disk / "proc"))
    before = disk / "before"
    before.mkdir()
    subprocess.run(["pivot_root", root, str(before)], check=True)
    os.chdir("/")
    subprocess.run(["umount", "--lazy", "/before"], check=True)
    Path("/before").rmdir()
    subprocess.run(["hostname", name], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    print("ready", flush=True)
    while True:  # orphans become children of the first process, which has to see them off
        signal.sigwait({signal.SIGCHLD})
        while _reaped():
            pass


def _reaped() -> bool:
    try:
        return os.waitpid(-1, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return False


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def _same(given: Path, made: Path) -> None:
    """A symbolic link like the given one, or the given folder."""
    if given.is_symlink():
        made.symlink_to(os.readlink(given))
    elif given.exists():
        _bind(given, made.parent)


def _bind(path: Path, disk: Path, *, writable: bool = False) -> None:
    """Show a path of the computer at the same place of a disk."""
    place = disk / path.relative_to("/")
    if path.is_dir():
        place.mkdir(parents=True, exist_ok=True)
    else:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
    _mount("--bind", str(path), str(place))
    if not writable:
        _mount("-o", "remount,bind,ro", str(place))


if __name__ == "__main__":
    main(*sys.argv[1:])
