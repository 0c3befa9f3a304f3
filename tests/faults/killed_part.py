"""Super-peers of a network in a process of their own, as by `anabranch network run --peer`, but without Spark.

Epochs are run in this process, which starts in seconds where a JVM takes ten more.
With `ANABRANCH_DIES=N` the process ends by SIGKILL in front of the N-th thing that it makes durable, sends or takes.

usage: python -m faults.killed_part SEED NETWORK.toml PEER...
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path
from random import Random
from threading import Event

from anabranch.errors import AnabranchError
from anabranch.network.description import Network, read_network
from anabranch.network_run import run
from anabranch.peers.carriers import FolderCarrier, TopicCarrier
from anabranch.peers.dead_letters import LetterFile
from anabranch.peers.links import Link
from anabranch.peers.parts import NetworkPart
from anabranch.peers.peer import Peer
from anabranch.peers.records import SavedPlan
from anabranch.peers.running import RunningNetwork
from anabranch.peers.sending import Sender
from peers.working import BareRunner

CARRIED = ("write", "publish_order", "report", "release", "begin", "read", "orders")
PLACES: tuple[tuple[type, str], ...] = (
    *((Link, each) for each in ("append", "begin", "hand_on", "forget", "take")),
    *((carrier, each) for carrier in (FolderCarrier, TopicCarrier) for each in CARRIED),
    (Sender, "_save"),
    (SavedPlan, "save"),
    (LetterFile, "_write"),
    (LetterFile, "_save"),
    (Peer, "want"),
    (Peer, "run"),
    (NetworkPart, "_carry_out"),
    (NetworkPart, "_carry"),
)
"""What a part does that others, or its next run, depend on."""


def dying(places: Iterable[tuple[type, str]], when: int) -> None:
    """Let the process die in front of the call of that number."""
    calls = count(1)
    for owner, name in places:
        real = getattr(owner, name)

        def counting(*given: object, real: Callable[..., object] = real, **named: object) -> object:
            if next(calls) == when:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*given, **named)

        setattr(owner, name, counting)


def main(seed: str, file: str, *here: str) -> int:
    """Run the peers until a signal comes."""
    if when := os.environ.get("ANABRANCH_DIES"):
        dying(PLACES, int(when))
    stop, random = Event(), Random(int(seed))

    def opened(name: str, where: Path) -> BareRunner:
        return BareRunner(where, random, (1_500, 4_000, 20_000))

    def bare(network: Network, folder: Path, hear: object) -> RunningNetwork:
        return RunningNetwork(
            network,
            folder,
            runner=opened,
            here=here,
            on_warning=lambda message: print(f"warning: {message}", flush=True),
            wanted=lambda: not stop.is_set(),
            describe=lambda: read_network(Path(file), here),
        )

    try:
        run(Path(file), stop=stop, opens=bare, here=here)
    except AnabranchError as error:
        print(f"{error.message} ({error.hint})", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
