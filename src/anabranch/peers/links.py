"""A link: what one peer sends another of a flow, as a durable log of documents.

Each epoch of the maker adds one document, under a name that follows from the epoch and from the plan in force, by an
exclusive create: what is sent again after a crash is there already.
The reader has the log as an ordinary stream.
Nothing else is known of it, so a topic with one record for each document would do as well.

    links/<flow>/<partition>/<plan>-<epoch>.xml
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from urllib.parse import quote

from anabranch.spark import durable
from anabranch.stream.parse import parse_root


@dataclass(frozen=True, slots=True)
class Link:
    """The log of one flow."""

    folder: Path
    partitions: int = 1

    @staticmethod
    def of(links: Path, flow: str, partitions: int = 1) -> Link:
        """The log of a flow among all links."""
        return Link(links / quote(flow, safe=" +"), partitions)

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
        path = self.paths[partition] / f"{plan:06}-{number:010}.xml"
        if not path.exists():
            durable.publish(path, document(root, content))
        return path.stat().st_size

    def hand_on(self, other: Link, plan: int) -> list[int]:
        """Have all that another link was given under a plan; the sizes of what was not there yet."""
        sizes: list[int] = []
        for mine, path in zip(self.paths, other.paths, strict=True):
            for each in sorted(path.glob(f"{plan:06}-*.xml")):
                if not (mine / each.name).exists():
                    data = each.read_bytes()
                    durable.publish(mine / each.name, data)
                    sizes.append(len(data))
        return sizes

    def remove(self) -> None:
        """Forget all of it: nobody reads it any more."""
        rmtree(self.folder, ignore_errors=True)

    @property
    def bytes(self) -> int:
        """All that was ever sent."""
        return sum(each.stat().st_size for path in self.paths for each in path.glob("*.xml"))


def document(root: str, content: Iterable[str]) -> bytes:
    """A document with a root, which is given without content."""
    opening = root[:-2] + ">" if root.endswith("/>") else root
    closing = f"</{parse_root(root.encode()).name}>"
    return "".join((opening, *content, closing)).encode()
