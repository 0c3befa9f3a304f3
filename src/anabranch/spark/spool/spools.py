"""The spools of a trunk: one for each stream that is pushed, and they come and go with the streams."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager

from anabranch.spark.spool.spool import Spool, WritingRun
from anabranch.stream.reading.source import Source


class Spools:
    """The spools of a trunk, by stream; only the trunk changes which there are."""

    def __init__(self, warn: Callable[[str], None], run: WritingRun | None = None) -> None:
        """Without a `run` a lock is held."""
        self._warn = warn
        self._run = run
        self._held: dict[str, Spool] = {}

    def get(self, stream: str) -> Spool | None:
        """The spool of a stream that is pushed."""
        return self._held.get(stream)

    @property
    def names(self) -> list[str]:
        """The streams that are pushed."""
        return list(self._held)

    @contextmanager
    def changed(self, streams: Iterable[Source], read: Callable[[str], int]) -> Iterator[None]:
        """Have a spool for each pushed stream and for no other from the end of the block on, unless it fails.

        `read` gives how far a stream was read.
        """
        wanted = {each.name: each for each in streams if each.http is not None}
        with ExitStack() as on_error:
            fresh: dict[str, Spool] = {}
            for name, source in wanted.items():
                if name in self._held:
                    self._held[name].check(source)
                else:
                    fresh[name] = Spool(source, read(name), self._warn, run=self._run)
                    on_error.callback(fresh[name].close)
            yield
            on_error.pop_all()
        gone = [each for name, each in self._held.items() if name not in wanted]
        for name, source in wanted.items():
            if name in self._held:
                self._held[name].follow(source)
        self._held = {name: self._held.get(name) or fresh[name] for name in wanted}
        for each in gone:
            each.close()

    def forget(self, read: Callable[[str], int]) -> None:
        """Remove what the streams have read."""
        for name, each in self._held.items():
            each.forget(read(name))

    def close(self) -> None:
        """Accept nothing more."""
        for each in self._held.values():
            each.close()
