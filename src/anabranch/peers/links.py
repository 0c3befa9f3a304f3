"""A link: a durable log of documents, in which one peer sends a flow to another.

Each epoch of the maker appends one document, under a name that follows from the epoch and from the plan in force, by an
exclusive create: what is sent again after a crash exists already.
Number 0 of a plan is what a new reader of the log must know of what it has missed; it is not handed on.
The reader has the log as an ordinary stream.

Names ascend, so a position in a log is a name, and documents before the positions of all readers are removed.
The newest documents always stay: the last name gives the length of the log, and a document that was sent but not yet
recorded as sent is found there.

Nothing else is known of a link, so its documents may also travel in topics (`transport.py`).

    links/<flow>/<partition>/<plan>-<epoch>.xml
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from urllib.parse import quote

from anabranch.spark.checkpoint import durable
from anabranch.storage import Location
from anabranch.stream.reading.parse import parse_root

RETAINED = 4
"""The number of newest documents of a partition that always stay."""
_LONGEST = 200
"""The most characters of a flow's name in the name of its folder."""


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
        """The folders of its partitions."""
        return tuple(self.folder / str(number) for number in range(self.partitions))

    def make(self) -> None:
        """Create its folders."""
        for path in self.paths:
            path.mkdir(parents=True, exist_ok=True)
            Location.of(path).sweep()

    def append(self, plan: int, number: int, root: str, content: Iterable[str], partition: int = 0) -> int:
        """Append a document, unless it exists; gives its size.

        Numbers ascend under one plan, and so do plans.
        """
        path = self.paths[partition] / _name(plan, number)
        if not path.exists():
            durable.publish(path, document(root, content))
        return path.stat().st_size

    def begin(self, plan: int, root: str, contents: Sequence[Iterable[str]]) -> None:
        """Start anew, with what a new reader of each partition must know; all other readers have read everything."""
        for number, (path, content) in enumerate(zip(self.paths, contents, strict=True)):
            for each in _names(path):
                if each < _name(plan, 0):
                    (path / each).unlink()
            self.append(plan, 0, root, content, number)

    def hand_on(self, other: Link, plan: int) -> list[int]:
        """Copy all documents of another link under a plan; gives the sizes of the new ones."""
        sizes: list[int] = []
        for mine, path, reached in zip(self.paths, other.paths, self.reached(plan), strict=True):
            for each in _names(path):
                if each > reached and each.startswith(_name(plan)):
                    data = (path / each).read_bytes()
                    durable.publish(mine / each, data)
                    sizes.append(len(data))
        return sizes

    def documents(self, partition: int, after: str, most: int) -> list[tuple[str, bytes]]:
        """The first documents of a partition behind a name, by name."""
        path = self.paths[partition]
        found = [each for each in _names(path) if each > after][:most]
        return [(each, (path / each).read_bytes()) for each in found]

    def take(self, partition: int, name: str, data: bytes) -> None:
        """Append a document that was made elsewhere, unless it is there, or has been; the first of a plan starts anew.

        Then its reader has not read the log before, and whoever hands it on has handed everything on.
        """
        path = self.paths[partition]
        before = _names(path)
        if name > max(before, default=""):
            for each in before if name.endswith(_FIRST) else ():
                (path / each).unlink()
            durable.publish(path / name, data)

    def newest(self) -> list[str]:
        """By partition: the name of the newest document, or nothing."""
        return [max(_names(path), default="") for path in self.paths]

    def reached(self, plan: int) -> tuple[str, ...]:
        """By partition: the position in what another link received under a plan; earlier plans are complete."""
        return tuple(max((_name(plan, 0), *_names(path))) for path in self.paths)

    def forget(self, before: Sequence[str]) -> None:
        """Remove the documents before a name, by partition, except the newest."""
        for path, name in zip(self.paths, before, strict=True):
            for each in _names(path)[:-RETAINED]:
                if each < name:
                    (path / each).unlink()

    def remove(self) -> None:
        """Remove the log, which has no readers any more."""
        rmtree(self.folder, ignore_errors=True)

    def is_begun(self, plan: int) -> bool:
        """Whether all partitions have what was sent first under a plan."""
        return all(name >= _name(plan) for name in self.newest())

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever sent."""
        return not any(map(_names, self.paths))


def is_behind(name: str, plan: int) -> bool:
    """Whether a document was made under a later plan."""
    return name >= _name(plan + 1)


def _name(plan: int, number: int | None = None) -> str:
    """The name of a document, or the prefix of all names of a plan."""
    return f"{plan:06}-" if number is None else f"{plan:06}-{number:010}.xml"


_FIRST = _name(0, 0).removeprefix(_name(0))
"""The end of the name of what a new reader must know."""


def _names(path: Path) -> list[str]:
    """The documents of a partition, in order."""
    return sorted(each.name for each in path.glob("[0-9]*.xml"))


def document(root: str, content: Iterable[str]) -> bytes:
    """A document with a root, which is given without content; without one, lines of JSON."""
    if not root:
        return "".join(content).encode()
    opening = root[:-2] + ">" if root.endswith("/>") else root
    closing = f"</{parse_root(root.encode()).name}>"
    return "".join((opening, *content, closing)).encode()
