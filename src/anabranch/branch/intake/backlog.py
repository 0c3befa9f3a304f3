"""The backlog of one input: entries that wait for another input to catch up, or for the end.

They wait in *chunks*, each some feeds in order.
A small rest stays in the state; more than `SMALL` bytes are written out to the spill, in chunks of at most `CHUNK`
bytes, and read back one chunk at a time.
So memory is bounded however far an input is ahead, and an epoch writes only its new entries, never the whole backlog.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import pyarrow as pa

from anabranch.branch.intake.entries import FeedOrigin, RawEntry, cuts, divided, unpack, without
from anabranch.branch.ports import Spill
from anabranch.branch.state import read_table, table_bytes

SMALL = 256 << 10
CHUNK = 4 << 20

Key: TypeAlias = tuple[str, int]
"""An input: the name of its stream and the number of the partition."""

_SCHEMA = pa.schema(
    [
        ("stream", pa.string()),
        ("partition", pa.int32()),
        ("ref", pa.string()),
        ("feed", pa.binary()),
        ("entries", pa.int64()),
        ("done", pa.int64()),
    ]
)


class Backlog:
    """A queue of entries: the first ones in the spill, the others in memory."""

    def __init__(self, spill: Spill, small: int = SMALL, chunk: int = CHUNK) -> None:
        self._spill = spill
        self._small, self._most = small, chunk
        self._chunks: deque[tuple[str, int]] = deque()  # names in the spill, with their counts of entries
        self._feeds: deque[tuple[bytes, int]] = deque()
        self._done = 0  # entries already taken of the first chunk, or else of the first feed
        self._ahead: Iterator[RawEntry] | None = None
        self._head: RawEntry | None = None
        self._read: tuple[str, list[bytes]] | None = None  # the chunk that was read last, cached

    def append(self, feed: bytes) -> None:
        """Append a feed."""
        if rows := unpack(feed)[1].num_rows:
            self._feeds.append((feed, rows))

    @property
    def head(self) -> RawEntry | None:
        """The first entry, None if the backlog is empty."""
        if self._head is None and (self._chunks or self._feeds):
            if self._ahead is None:
                self._ahead = self._entries()
            self._head = next(self._ahead)
        return self._head

    def take(self) -> RawEntry:
        """Remove the first entry."""
        head = self._head or self.head
        assert head is not None
        self._head = None
        self._done += 1
        queue = self._chunks or self._feeds
        if self._done == queue[0][1]:
            queue.popleft()
            self._done, self._ahead = 0, None
        return head

    def ahead(self, most: int) -> list[tuple[FeedOrigin, pa.Table]]:
        """The next entries, for batches: about `most` bytes of them, or all there are."""
        found: list[tuple[FeedOrigin, pa.Table]] = []
        size, done = 0, self._done
        for feed in self._stored():
            origin, table = unpack(feed)
            if done < table.num_rows:
                found.append((origin, table.slice(done)))
                size += len(feed) * (table.num_rows - done) // table.num_rows
            done = max(0, done - table.num_rows)
            if size >= most:
                break
        return found

    def skip(self, entries: int) -> None:
        """Remove the first entries, `entries` of them."""
        self._ahead = self._head = None
        self._done += entries
        while (queue := self._chunks or self._feeds) and self._done >= queue[0][1]:
            self._done -= queue.popleft()[1]

    def _stored(self) -> Iterator[bytes]:
        """All feeds, the first including entries already taken; a chunk is read when it is reached."""
        for ref, _ in tuple(self._chunks):
            if self._read is None or self._read[0] != ref:
                self._read = ref, read_table(self._spill.read(ref)).column("feed").to_pylist()
            yield from self._read[1]
        yield from (feed for feed, _ in tuple(self._feeds))

    def __len__(self) -> int:
        return sum(entries for _, entries in (*self._chunks, *self._feeds)) - self._done

    @property
    def spilled(self) -> tuple[str, ...]:
        """The names in the spill that are still referenced."""
        return tuple(ref for ref, _ in self._chunks)

    def _entries(self) -> Iterator[RawEntry]:
        """All entries."""
        done = self._done
        for feed in self._stored():
            origin, table = unpack(feed)
            yield from (RawEntry(origin, cut) for cut in cuts(table, done))
            done = max(0, done - table.num_rows)

    # --- between epochs -----------------------------------------------------------------------------------

    def settle(self) -> None:
        """Spill what is too large for the state; called at the end of an epoch."""
        self._ahead = self._head = None
        if self._done and not self._chunks:
            feed, rows = self._feeds.popleft()
            self._feeds.appendleft((without(feed, self._done), rows - self._done))
            self._done = 0
        if sum(len(feed) for feed, _ in self._feeds) <= self._small:
            return
        feeds = [part for feed, _ in self._feeds for part in divided(feed, self._most)]
        self._feeds.clear()
        chunk: list[bytes] = []
        for feed in feeds:
            if chunk and sum(map(len, chunk)) + len(feed) > self._most:
                self._write_out(chunk)
                chunk = []
            chunk.append(feed)
        self._write_out(chunk)

    def _write_out(self, feeds: list[bytes]) -> None:
        entries = sum(unpack(feed)[1].num_rows for feed in feeds)
        table = pa.table([pa.array(feeds, pa.binary())], names=["feed"])
        self._chunks.append((self._spill.write(table_bytes(table, "zstd")), entries))

    def rows(self) -> list[dict[str, Any]]:
        """The rows of a settled backlog for the state."""
        chunks: list[dict[str, Any]] = [{"ref": ref, "entries": entries, "done": 0} for ref, entries in self._chunks]
        if chunks:
            chunks[0]["done"] = self._done
        return chunks + [{"feed": feed, "entries": entries, "done": 0} for feed, entries in self._feeds]

    def restore(self, row: Mapping[str, Any]) -> None:
        """Restore the next row from `rows`."""
        self._done += row["done"]
        if row["ref"] is None:
            self._feeds.append((row["feed"], row["entries"]))
        else:
            self._chunks.append((row["ref"], row["entries"]))


def backlog_table(backlogs: Mapping[Key, Backlog]) -> pa.Table:
    """The table of several backlogs for the state."""
    rows = [
        {"stream": stream, "partition": partition, **row}
        for (stream, partition), backlog in backlogs.items()
        for row in backlog.rows()
    ]
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


def restore_backlogs(backlogs: Mapping[Key, Backlog], table: pa.Table) -> None:
    """Restore empty backlogs from a `backlog_table`."""
    for row in table.to_pylist():
        backlogs[row["stream"], row["partition"]].restore(row)
