"""Who listens on the network: the sockets of this process and of all below it, as the kernel lists them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

_LISTENING = "0A"


def listening_addresses() -> set[IPv4Address | IPv6Address]:
    """The addresses on which this process, or one that it has started, listens."""
    ours = {socket for process in own_processes() for socket in _sockets_of(process)}
    return {address for number, address in _listening() if number in ours}


def own_processes(*, below: bool = True) -> set[int]:
    """This process and all below it, or only those that it has started itself.

    What is below a Spark that tests share comes and goes by itself.
    """
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # ended in the meantime
            continue
        parents[int(stat.parent.name)] = int(fields[1])
    found = {os.getpid()}
    if not below:
        return found | {child for child, parent in parents.items() if parent in found}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def _sockets_of(process: int) -> Iterator[str]:
    """The numbers of the sockets that a process holds."""
    try:
        handles = list(Path(f"/proc/{process}/fd").iterdir())
    except OSError:
        return
    for handle in handles:
        with suppress(OSError):  # closed in the meantime, as the one by which this very folder was read
            target = os.readlink(handle)
            if target.startswith("socket:["):
                yield target[len("socket:[") : -1]


def _listening() -> Iterator[tuple[str, IPv4Address | IPv6Address]]:
    """(number, address) of every TCP socket of this machine that listens."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTENING:
                packed = bytes.fromhex(fields[1].partition(":")[0])
                words = [packed[at : at + 4][::-1] for at in range(0, len(packed), 4)]  # the kernel's byte order
                address = ip_address(b"".join(words))
                yield fields[9], getattr(address, "ipv4_mapped", None) or address
