"""A peer in a process of its own, which matches a file of items whenever it is asked to.

The process stays at work from round to round, so that it can take turns with us, and is idle in between.
Whatever it is asked has a time limit, behind which the process is ended and a `PeerFailure` is raised.
What it writes to standard error is kept beside its queries.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from types import TracebackType

from anabranch.bench.peers.building import JavaProgram
from anabranch.bench.peers.peer import PeerFailure

THREADS = 2


@dataclass(frozen=True, slots=True)
class PeerSetup:
    """What adding the conjunctions has taken, and how the peer is set."""

    seconds: float
    heap_bytes: float
    settings: str


class PeerProcess:
    """Queries over a file of items, one to a line."""

    def __init__(
        self,
        program: JavaProgram,
        items: Path,
        lines: Sequence[str],
        work: Path,
        memory: str,
        limits: tuple[float, float],
        *,
        streamed: str = "",
    ) -> None:
        """Queries are `lines`: conjunctions, or windows for the class `streamed`.

        The limits are seconds for adding them, and for a round.
        """
        work.mkdir(parents=True)
        self._work = work
        written = work / "queries"
        written.write_text("".join(f"{each}\n" for each in lines), encoding="utf-8")
        given = str(items), str(written)
        main = ("StreamRounds", streamed) if streamed else ("Rounds", program.peer.program)
        self._command = program.command(memory, *main, *given, *(() if streamed else (str(THREADS),)))
        self._count = len(lines)
        self._limits = limits
        self.matches = 0
        """The number of matches of the last round."""

    def __enter__(self) -> PeerProcess:
        with (self._work / "errors").open("wb") as errors:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        try:
            adding = f"adding {self._count:,} queries"
            word, nanoseconds, heap, settings = self._answer(adding, self._limits[0]).split(" ", 3)
        except BaseException:
            self.close()
            raise
        assert word == "ready"
        self.setup = PeerSetup(int(nanoseconds) / 1e9, int(heap), settings)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process: without any more orders it ends by itself, or else it is ended."""
        with self._ended_after(30):
            self._process.communicate()

    def match(self, items: int) -> float:
        """The seconds of matching the first `items` items, and nothing else."""
        return self._round(f"match {items}")

    def write(self, items: int) -> float:
        """The seconds of matching them and writing each match with its item to a file, which is made durable."""
        return self._round(f"write {items} {self._work / 'answers'}")

    def pairs(self, items: int) -> set[tuple[int, int]]:
        """The numbers of each conjunction and each of the first `items` items that match."""
        self._round(f"pairs {items} {self._work / 'pairs'}")
        found: set[tuple[int, int]] = set()
        for file in self._work.glob("pairs-*"):
            for line in file.read_text(encoding="utf-8").splitlines():
                conjunction, item = line.split()
                found.add((int(conjunction), int(item)))
            file.unlink()
        return found

    def run(self, items: int) -> float:
        """The seconds of the first `items` items through all windows."""
        return self._round(f"run {items}")

    def results(self, items: int) -> list[str]:
        """What windows give: the number of a query and a value in a line."""
        file = self._work / "results"
        self._round(f"run {items} {file}")
        return file.read_text(encoding="utf-8").splitlines()

    def _round(self, order: str) -> float:
        assert self._process.stdin is not None
        try:
            print(order, file=self._process.stdin, flush=True)
        except OSError as error:
            raise PeerFailure(f"it has ended: {self._last_words()}") from error
        nanoseconds, matches = self._answer(f"'{order.split()[0]}'", self._limits[1]).split()
        self.matches = int(matches)
        return int(nanoseconds) / 1e9

    def _answer(self, asked: str, seconds: float) -> str:
        assert self._process.stdout is not None
        with self._ended_after(seconds):
            line = self._process.stdout.readline()
        if line:
            return line.strip()
        if self._timed_out:
            raise PeerFailure(f"{asked} took longer than {seconds:g} s")
        raise PeerFailure(f"{asked} failed: {self._last_words()}")

    @contextmanager
    def _ended_after(self, seconds: float) -> Iterator[None]:
        """End the process where what is done meanwhile takes longer."""
        self._timed_out = False

        def end() -> None:
            self._timed_out = True
            self._process.kill()

        timer = Timer(seconds, end)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _last_words(self) -> str:
        """The line of standard error that says most about a failure."""
        lines = (self._work / "errors").read_text(encoding="utf-8", errors="replace").splitlines()
        telling = [each for each in lines if "Error" in each or "Exception" in each]
        return (telling or lines or ["without a word"])[0].strip()[:300]
