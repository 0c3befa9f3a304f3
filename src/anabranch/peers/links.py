"""A link: what one peer sends another of a flow, as a durable log of documents.

Each epoch of the maker adds one document, under a name that follows from the epoch and from the plan in force, by an
exclusive create: what is sent again after a crash is there already.
The number 0 of a plan is what the reader of the log is told of all that it has missed; nobody hands that on.
The reader has the log as an ordinary stream.

Names grow, so how far anybody has come with a log is a name, and what all have left behind is forgotten.
The newest documents stay all the same: the last name says how far the log has come, and what was sent last and not yet
noted as sent is found there.

Nothing else is known of a link, so a topic with one record for each document would do as well.

    links/<flow>/<partition>/<plan>-<epoch>.xml
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from urllib.parse import quote

from anabranch.spark.checkpoint import durable
from anabranch.stream.reading.parse import parse_root

KEPT = 4
"""So many of the newest documents of a partition stay, whoever has read them."""
_LONGEST = 200
"""So many characters of a flow's name are in the name of its folder."""


@dataclass(frozen=True, slots=True)
class Link:
    """The log of one flow."""

    folder: Path
    partitions: int = 1

    @staticmethod
    def of(links: Path, flow: str, partitions: int = 1) -> Link:
        """The log of a flow among all links."""
        name = quote(flow, safe=" +")
        if len(name) > _LONGEST:  # longer than file systems allow
            name = f"{name[:_LONGEST]}-{durable.digest(flow.encode())[:16]}"
        return Link(links / name, partitions)

    @property
    def paths(self) -> tuple[Path, ...]:
        """Where its partitions are."""
        return tuple(self.folder / str(number) for number in range(self.partitions))

    def make(self) -> None:
        """See to it that it is there."""
        for path in self.paths:
            path.mkdir(parents=True, exist_ok=True)
            durable.sweep(path)

    def append(self, plan: int, number: int, root: str, content: Iterable[str], partition: int = 0) -> int:
        """Add a document, unless it is there; how many bytes it has.

        Under one plan numbers grow, and so do plans.
        """
        path = self.paths[partition] / _name(plan, number)
        if not path.exists():
            durable.publish(path, document(root, content))
        return path.stat().st_size

    def begin(self, plan: int, root: str, contents: Sequence[Iterable[str]]) -> None:
        """Begin anew, with what a new reader of each partition must know; all other readers have read everything."""
        for number, (path, content) in enumerate(zip(self.paths, contents, strict=True)):
            for each in _names(path):
                if each < _name(plan, 0):
                    (path / each).unlink()
            self.append(plan, 0, root, content, number)

    def hand_on(self, other: Link, plan: int) -> list[int]:
        """Have all that another link was given under a plan; the sizes of what was not there yet."""
        sizes: list[int] = []
        for mine, path, reached in zip(self.paths, other.paths, self.reached(plan), strict=True):
            for each in _names(path):
                if each > reached and each.startswith(_name(plan)):
                    data = (path / each).read_bytes()
                    durable.publish(mine / each, data)
                    sizes.append(len(data))
        return sizes

    def reached(self, plan: int) -> tuple[str, ...]:
        """By partition, how far it has come with what another was given under a plan; other plans are behind it."""
        return tuple(max((_name(plan, 0), *_names(path))) for path in self.paths)

    def forget(self, before: Sequence[str]) -> None:
        """Remove the documents before a name, by partition, but not the newest."""
        for path, name in zip(self.paths, before, strict=True):
            for each in _names(path)[:-KEPT]:
                if each < name:
                    (path / each).unlink()

    def remove(self) -> None:
        """Forget all of it: nobody reads it any more."""
        rmtree(self.folder, ignore_errors=True)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever sent."""
        return not any(map(_names, self.paths))


def _name(plan: int, number: int | None = None) -> str:
    """The name of a document, or what all names of a plan begin with."""
    return f"{plan:06}-" if number is None else f"{plan:06}-{number:010}.xml"


def _names(path: Path) -> list[str]:
    """The documents of a partition, in order."""
    return sorted(each.name for each in path.glob("[0-9]*.xml"))


def document(root: str, content: Iterable[str]) -> bytes:
    """A document with a root, which is given without content."""
    opening = root[:-2] + ">" if root.endswith("/>") else root
    closing = f"</{parse_root(root.encode()).name}>"
    return "".join((opening, *content, closing)).encode()
