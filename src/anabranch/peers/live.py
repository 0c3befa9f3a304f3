"""A network that goes on until it is stopped, on a thread of its own.

Where epochs come by themselves the thread waits for them and has each sent on as soon as it is committed; otherwise it
runs the peers, round after round, and lets others have their turn in between.
"""

from __future__ import annotations

from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Event, RLock, Thread

from anabranch.peers.team import Team

_PAUSE = 0.2


class Live:
    """Lets the peers of a team go on; `turn` is held by whoever tells them what to do."""

    def __init__(self, team: Team, turn: RLock) -> None:
        self._team = team
        self._turn = turn
        self._committed: SimpleQueue[str] = SimpleQueue()
        """The peers that have committed an epoch."""
        self._thread: Thread | None = None
        self._stopping = Event()
        self._failure: Exception | None = None

    def hear(self, peer: str) -> None:
        """A peer has committed an epoch."""
        if self._team.by_itself:
            self._committed.put(peer)

    def start(self) -> bool:
        """Begin, unless it has begun already; gives whether epochs come by themselves."""
        if self._thread is None:
            self._stopping.clear()
            with self._turn:
                self._team.start()
            self._thread = Thread(target=self._run, name="network", daemon=True)
            self._thread.start()
        return self._team.by_itself

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                committed = self._next()
                with self._turn:
                    if self._team.by_itself:
                        self._team.pass_on(committed)
                    else:
                        self._team.round()
        except Exception as error:
            self._failure = error

    def _next(self) -> set[str]:
        """Who has committed something, after a while at most."""
        found: set[str] = set()
        with suppress(Empty):
            found.add(self._committed.get(timeout=_PAUSE))
            while True:
                found.add(self._committed.get_nowait())
        return found

    def stop(self) -> None:
        """End after the epochs at work; raises what has gone wrong."""
        if self._thread is not None:
            self._stopping.set()
            self._thread.join()
            self._thread = None
            if self._failure is None:
                with self._turn:
                    self._team.stop()
        self.raise_failure()

    @property
    def running(self) -> bool:
        """Whether it goes on."""
        return self._thread is not None and self._failure is None

    def raise_failure(self) -> None:
        """Raise what has gone wrong, once."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
