"""Windows and tuples on their way through trunks without Spark: made by one, changed by others, read by the last.

What a trunk sends is laid down as documents, one for each epoch of its maker, as a link would do it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

from anabranch.spark.answers.log import AnswerLog
from anabranch.stream.elements import DeadLetter
from anabranch.stream.reading.source import Source
from spark.bare import BareTrunk

SHARDS = (1, 2, 5)


class Peer:
    """A trunk that has one operator over its streams, and answers another query beside it."""

    def __init__(
        self, folder: Path, sources: Sequence[Source], text: str, random: Random, *, finite: bool = True
    ) -> None:
        self._asked = {"q": text, "beside": f'for $i in stream("{sources[0].name}")/*/* return <i/>'}
        self.trunk = BareTrunk(folder, sources, random, finite=finite)

    def run(self, epoch_bytes: Sequence[int], *, without: bool = False) -> None:
        """Read what is there; without the operator, if it is still to come."""
        asked = {"beside": self._asked["beside"]} if without else self._asked
        self.trunk.run(asked, epoch_bytes, SHARDS)

    def sent(self) -> list[str]:
        """What it has sent, epoch by epoch."""
        log: AnswerLog = self.trunk.log
        subscription = log.subscription("q")
        if subscription is None:
            return []
        return ["".join(map(log.text, log.chunks(manifest, subscription.id))) for manifest in log.manifests.since(0)]

    def letters(self) -> list[DeadLetter]:
        return [each for each in self.trunk.log.dead_letters() if each.subscription is not None]


class Link:
    """Carries what a peer sends to the next one."""

    def __init__(self, folder: Path, name: str, root: str = "windows") -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._carried = 0
        self.source = Source(name, folder, "document", root=root)
        self._root = root

    def carry(self, sent: Sequence[str]) -> None:
        """Lay down what is new."""
        for number, text in enumerate(sent):
            if number >= self._carried and text:
                (self._folder / f"{number:06}.xml").write_text(f"<{self._root}>{text}</{self._root}>")
        self._carried = max(self._carried, len(sent))
