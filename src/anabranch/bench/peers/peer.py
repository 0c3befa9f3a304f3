"""What a peer is: where it comes from, what it runs on, and the program that drives it.

A peer is fetched by Maven, by its coordinates, when the bench runs; nothing of it is part of this project.
Its program in `java/` adds conjunctions of ranges in the way that the peer's own documentation advises for many of
them, and matches items (`java/Peer.java` is what it has to do).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

Coordinates: TypeAlias = tuple[str, str, str]
"""Group, artifact and version."""

JACKSON: Coordinates = ("com.fasterxml.jackson.core", "jackson-core", "2.18.2")
"""The parser of JSON for peers that do not read text."""
_SHARED = ("Peer", "Photon", "XmlItem", "Rounds")
"""The programs of all peers have these classes."""
_STREAMED = ("StreamPeer", "StreamRounds", "HoppingWindow", "NearPairs")
"""... and those for windows and joins have these, too."""


class PeerFailure(Exception):
    """A peer that cannot be had, cannot hold what it is given, or has failed; the message says why."""


@dataclass(frozen=True, slots=True)
class PeerEngine:
    """One of the engines that we are measured beside."""

    name: str
    """Its name in figures."""
    title: str
    licence: str
    artifacts: tuple[Coordinates, ...]
    program: str
    """The class of its program."""
    jdk: int = 17
    """The least version of Java that it runs on."""
    options: tuple[str, ...] = ()
    """Options of the JVM that it needs."""
    batch: int = 1
    """How many items it takes at a time, in each thread."""
    windows: str = ""
    """The class of its program for windows; empty where it has none."""
    joins: str = ""
    """The class of its program for interval joins; empty where it has none."""

    @property
    def version(self) -> str:
        return self.artifacts[0][2]

    @property
    def sources(self) -> tuple[str, ...]:
        """All classes of its programs."""
        streamed = [each for each in (self.windows, self.joins) if each]
        return (*_SHARED, self.program, *((*_STREAMED, *streamed) if streamed else ()))
