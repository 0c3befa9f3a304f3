"""Peers on Spark: all trunks of a network share a session, and each has a pool of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from anabranch.peers.peer import Worked
from anabranch.spark.epochs import Trunk
from anabranch.spark.session import Session
from anabranch.spark.stepping import SteppedTrunk
from anabranch.spark.usage import PoolUsage
from anabranch.spark.wanted import Epoch, Listener, Settings, Wanted


class TrunkWorkings:
    """Runs the epochs of a peer on a trunk; as a context it holds the trunk's checkpoint."""

    def __init__(self, session: Session, folder: Path, settings: Settings, on_epoch: Callable[[Epoch], None]) -> None:
        self.worked = Worked()
        self._tell = on_epoch
        self._session = session
        self._trunk = Trunk(session, folder, settings, listener=Listener(self._take))

    def __enter__(self) -> TrunkWorkings:
        self._trunk.__enter__()
        self.checkpoint = self._trunk.checkpoint
        self._stepped = SteppedTrunk(self._session, self._trunk)
        self._usage = PoolUsage(self._session, self._stepped.pool)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._trunk.__exit__(kind, error, trace)

    def want(self, wanted: Wanted) -> None:
        self._trunk.want(wanted)

    def run(self) -> None:
        self._stepped.run()

    def _take(self, epoch: Epoch) -> None:
        worked = self.worked
        worked.epochs += 1
        worked.items += epoch.manifest.items
        worked.bytes_read += epoch.manifest.bytes_read
        worked.cpu_s += epoch.cpu
        worked.executor_cpu_s = self._usage.seconds()
        self._tell(epoch)
