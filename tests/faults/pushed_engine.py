"""An engine without Spark into which programs push, as a process that can be killed.

usage: pushed_engine.py CHECKPOINT EPOCH_BYTES
"""

from __future__ import annotations

import signal
import sys
from threading import Event

from anabranch import Engine, Http

QUERIES = {
    "all": 'for $p in stream("s") return { "id": $p.id }',
    "pairs": 'for $w in stream("s")|count 2| return { "first": $w[1].id, "second": $w[2].id }',
    "sums": 'for $w in stream("s")|count 5| return { "sum": sum($w.n) }',
}


def main(checkpoint: str, epoch_bytes: int) -> None:
    """Answer until SIGTERM comes."""
    stop = Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    with Engine(local=True, checkpoint=checkpoint, trigger_ms=20, epoch_bytes=epoch_bytes) as engine:
        engine.stream("s", Http())
        for name, text in QUERIES.items():
            engine.subscribe(text, name)
        engine.start()
        while not stop.wait(0.05):
            engine.trunk.raise_failure()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
