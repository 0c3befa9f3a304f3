"""Peers on Spark: all trunks of a network share a session, and each has a pool of its own.

A peer's trunk is driven by hand (`spark/epoch/drivers.py`) until it is started: from then on it is a streaming query,
and epochs come by themselves (`spark/epoch/drivers.py`), until it is stopped.
Both go on from where the other was.
A peer that reads nothing has no query, and gets one when it is started with its first stream.
On a machine that is too busy to start them peers are driven by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TypeAlias

from anabranch.peers.peer import Worked, Workings
from anabranch.spark.epoch.drivers import PoolUsage, SteppedTrunk, StreamedTrunk
from anabranch.spark.epoch.trunk import Trunk, pool_of
from anabranch.spark.plan.wanted import Epoch, Listener, Wanted
from anabranch.spark.session import Session, local_session
from anabranch.stream.settings import Settings

Open: TypeAlias = Callable[[str, Path], Workings]
"""Gives a peer, by name, what runs its epochs in a folder."""


def on_spark(
    session: Session | None, settings: Settings, on_epoch: Callable[[str, Epoch], None], held: ExitStack
) -> Open:
    """Peers whose epochs run on Spark, as long as `held` is open; without a session, on one of their own."""
    spark = session or local_session()

    def opened(name: str, folder: Path) -> Workings:
        return held.enter_context(TrunkWorkings(spark, folder, settings, partial(on_epoch, name)))

    return opened


class TrunkWorkings:
    """Runs the epochs of a peer on a trunk; as a context it holds the trunk's checkpoint."""

    def __init__(self, session: Session, folder: Path, settings: Settings, on_epoch: Callable[[Epoch], None]) -> None:
        self.worked = Worked()
        self._tell = on_epoch
        self._session = session
        self._trunk = Trunk(session, folder, settings, listener=Listener(self._take))
        self._reads = False

    def __enter__(self) -> TrunkWorkings:
        self._trunk.__enter__()
        self.checkpoint = self._trunk.checkpoint
        self._driven: SteppedTrunk | StreamedTrunk = SteppedTrunk(self._session, self._trunk)
        self._usage = PoolUsage(self._session, pool_of(self.checkpoint))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._trunk.__exit__(kind, error, trace)

    def want(self, wanted: Wanted) -> None:
        self._trunk.want(wanted)
        self._reads = bool(wanted.streams)

    def hold(self, holds: Mapping[str, int]) -> None:
        self._trunk.hold(holds)

    def run(self) -> None:
        if self._reads:
            self._driven.run()

    def start(self) -> bool:
        if self._reads and isinstance(self._driven, SteppedTrunk):
            streamed = StreamedTrunk(self._session, self._trunk)
            if not streamed.start():
                return False
            self._driven = streamed
        return True

    def check(self) -> None:
        if isinstance(self._driven, StreamedTrunk):
            self._driven.check()

    def stop(self) -> None:
        if isinstance(self._driven, StreamedTrunk):
            self._driven.stop()
            self._driven = SteppedTrunk(self._session, self._trunk)  # one that knows what was read meanwhile

    def _take(self, epoch: Epoch) -> None:
        worked = self.worked
        worked.epochs += 1
        worked.items += epoch.manifest.items
        worked.bytes_read += epoch.manifest.bytes_read
        worked.cpu_s += epoch.cpu
        worked.executor_cpu_s = self._usage.seconds()
        self._tell(epoch)
