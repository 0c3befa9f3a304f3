"""The dead letters of a network, one line of JSON each, and each once.

A bad element is set aside where its stream comes in; peers that receive it nevertheless, because it leaves something in
doubt (LAWS 4.5), find it bad again, and that is not reported.
A failure for a subscription is set aside where it is answered (LAWS 2.4), with its place in the flow that is read
there.
Where the query of a flow of items fails, the items go on and the subscriptions' own queries fail for them; failures in
windows and tuples end there, and are reported for each subscription that depends on them.

The file has a durable position, by peer.
Lines are written first and the position is moved afterwards: after a kill in between, the file is truncated and the
same lines are written again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from anabranch.errors import StateError
from anabranch.network.catalogue import Catalogue
from anabranch.peers.peer import Peer
from anabranch.peers.programs import FLOW_PREFIX, is_items
from anabranch.peers.running import RunningNetwork
from anabranch.spark.checkpoint import durable
from anabranch.stream.elements import DeadLetter


class LetterFile:
    """The dead letters of a network in a file; `record` is the file of its position."""

    def __init__(self, path: Path, record: Path) -> None:
        self._path = path
        self._record = record
        self._length = 0
        self._next: dict[str, int] = {}
        """By peer: the next epoch to report."""
        if record.exists():
            found = durable.unsealed(record)
            self._length, self._next = found["length"], found["next"]
        elif path.exists() and path.stat().st_size:
            raise StateError(f"'{path}' exists, and another checkpoint or program wrote it")
        self._streams: set[str] = set()
        """The registered streams, including those that have ended."""

    @staticmethod
    def of(path: Path, folder: Path) -> LetterFile:
        """A file of the network that keeps its records in a folder; a new file gets all dead letters."""
        name = durable.digest(os.path.relpath(path, folder).encode())[:16]
        return LetterFile(path, folder / "letters" / f"{name}.json")

    def take(self, network: RunningNetwork) -> None:
        """Append the dead letters since the last call."""
        self._streams.update(network.streams)
        reached = {name: peer.sender.reached.next for name, peer in network.peers.items()}
        if reached != {name: self._next.get(name, 0) for name in reached}:
            catalogue = network.catalogue
            letters = (each for name, peer in network.peers.items() for each in self._set_aside(peer, reached[name]))
            lines = [f"{each.to_json()}\n" for letter in letters for each in self._as_reported(letter, catalogue)]
            if lines:
                self._write(lines)
            self._next |= reached
            self._save()

    def _set_aside(self, peer: Peer, end: int) -> Iterator[DeadLetter]:
        log = peer.log
        for epoch in range(self._next.get(peer.name, 0), end):
            manifest = log.manifests.load(epoch)
            if manifest.dead_letters:
                yield from log.buried(manifest)

    def _as_reported(self, letter: DeadLetter, catalogue: Catalogue) -> Iterator[DeadLetter]:
        """The letters to report for one: one for each subscription that it concerns."""
        if letter.subscription is None:
            if letter.place.stream in self._streams:
                yield letter
        elif not letter.subscription.startswith(FLOW_PREFIX):
            yield letter
        elif (flow := catalogue.flows.get(letter.subscription.removeprefix(FLOW_PREFIX))) and not is_items(flow):
            behind = set(catalogue.below(flow.name))
            for each in catalogue.subscriptions.values():
                if behind.intersection(each.reads):
                    yield replace(letter, subscription=each.name)

    def _write(self, lines: Iterable[str]) -> None:
        if not self._record.exists():
            self._save()  # from now on the file is ours
        with durable.writing(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            size = self._path.stat().st_size if self._path.exists() else 0
            if size < self._length:
                raise StateError(f"'{self._path}' has become shorter than what was written to it")
        self._length = durable.append(self._path, (line.encode() for line in lines), self._length)

    def _save(self) -> None:
        with durable.writing(self._record):
            self._record.parent.mkdir(parents=True, exist_ok=True)
        durable.replace(self._record, durable.sealed({"length": self._length, "next": self._next}))
