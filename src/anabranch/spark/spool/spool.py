"""The spool of a pushed stream: it takes the bodies of requests, and tells of each when it is durable.

One thread writes: while it waits for the disk, requests gather, and the next write takes all of them (a group commit).
So a request waits for at most two writes, and a disk that manages a hundred writes a second takes in thousands of
requests.
The order of the stream is that of the requests in these writes, which is the order in which they are answered.

A request that was accepted is read exactly once: its bytes are in the stream, under a key if it has one, from the
moment at which its file exists, and an epoch that reads them is committed or repeated.
One whose writer was killed before it was answered may be in the stream or not; whoever repeats it under its key makes
it count once.
What was read in a committed epoch is removed.

In an object store a run that was overtaken accepts nothing more (`files.py`): the write that would make a request
durable is refused, so the request is not acknowledged, and whoever repeats it under its key at the new run makes it
count once.

The moment of acceptance is recorded with the bytes (LAWS 1.3).
Its clock ticks twenty times a second, so that what came together can be read together.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Condition, Thread
from time import monotonic, time_ns

from anabranch.errors import AnabranchError, StateError, UsageError
from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.crash import spool_point
from anabranch.spark.spool import keys
from anabranch.spark.spool.files import FileName, Footer, KeyedRequest, names, read_footer
from anabranch.spark.spool.keys import RememberedKeys
from anabranch.storage import Location
from anabranch.stream.reading.reader import Format
from anabranch.stream.reading.source import Source

_TICK = 50_000
"""Microseconds."""
_READERS = 16
"""How many footers are read at a time."""
_CLAIMS = 100
"""How many claims of earlier runs stay."""
_GROUP_BYTES = 16 << 20
"""The bytes from which on a group takes no further request."""
_LEAST_COUNTED = 16 << 10
"""The bytes that a file counts at least, so that many small ones cannot pile up below the backlog."""
_KEPT_SECONDS = 30.0
_KEPT_BYTES = 256 << 20
"""Where keys are remembered, files that were read are removed in rounds: each takes a snapshot of the keys."""


class TrunkBehind(AnabranchError):
    """So much waits to be read that nothing more is accepted for now."""


class KeyReused(AnabranchError):
    """A key that belongs to a request with another body."""


class SpoolClosed(AnabranchError):
    """The run is about to end, or the stream was removed."""


@dataclass(frozen=True, slots=True)
class PushedBody:
    """The body of a request as it goes into the stream: whole items, with a line's end behind the last."""

    data: bytes
    format: Format
    digest: str
    """Of the body as it was sent."""
    front: int = 0
    """How many bytes stand before those that were sent."""
    length: int = 0
    """How many bytes were sent."""


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The place of a body: byte `i` of what was sent is byte `start + i` of the stream."""

    start: int
    end: int
    repeated: bool = False
    """Whether it was accepted before, under the same key."""


@dataclass(frozen=True, slots=True)
class SpoolState:
    """How many bytes of a stream were accepted, and how many of these were read in committed epochs."""

    accepted: int
    read: int

    @property
    def behind(self) -> int:
        return self.accepted - self.read


@dataclass(frozen=True, slots=True)
class WritingRun:
    """A run that no lock protects from others: its number, and what is to be done when another has taken over."""

    number: int
    overtaken: Callable[[int], StateError]
    """The error that names the run of a number."""
    fail: Callable[[Exception], None]
    """Ends the run with an error."""


@dataclass(slots=True)
class _Waiting:
    """A request that waits for its group to be written."""

    body: PushedBody
    key: str | None
    done: Future[Acceptance]


class Spool:
    """The spool of one stream in the run that holds its checkpoint; any thread may call it."""

    def __init__(
        self,
        source: Source,
        read: int,
        warn: Callable[[str], None] = lambda message: None,
        most_keys: int = keys.MOST_KEYS,
        run: WritingRun | None = None,
    ) -> None:
        """`read` is the position up to which committed epochs have read the stream; without a `run` a lock is held."""
        self.source = source
        self._format: Format = "json"
        """That of the newest file."""
        self._backlog = 0
        self._warn = warn
        self._folder = Location.of(source.path)
        self._keys = RememberedKeys(most_keys)
        self._moved = Condition()
        """Guards what follows; notified when a request waits, and when the spool is closed."""
        self._waiting: list[_Waiting] = []
        self._writing: list[_Waiting] = []
        """The requests of the group that is being written."""
        self._read = read
        self._moment = 0
        self._run = run
        self._writer = 0
        """The number of the run that writes, in the names of files."""
        self._overtaken: StateError | None = None
        self._known: set[FileName] = set()
        """The files whose footers were read."""
        self._files: list[tuple[int, int, FileName]] = []
        """The first byte of each file, the first behind it, and its name."""
        self._claims: list[FileName] = []
        self._end = 0
        self._kept_since = monotonic()
        self._refusing = False
        """Whether the latest group could not be written."""
        self._closed = False
        self._folder.sweep()
        self._load()
        self._claim()
        self.check(source)
        self.follow(source)
        self._thread = Thread(target=self._work, name=f"spool {source.name}", daemon=True)
        self._thread.start()

    def _load(self) -> None:
        """Read what the folder says beyond what is known.

        A run that is being overtaken may still write, and remove files that were read: then the folder is read again.
        The names are listed first: the keys of what was gone by then are in the snapshot, which is read next.
        """
        while True:
            there = names(self._folder)
            fresh = [each for each in there if each not in self._known]
            try:
                remembered = [] if self._known else keys.load(self._folder)
                with ThreadPoolExecutor(_READERS) as threads:
                    footers = list(threads.map(lambda each: read_footer(self._folder / str(each)), fresh))
                found = dict(zip(fresh, footers, strict=True))
                writer = footers[-1].claimed or fresh[-1].run if fresh else self._writer
                if self._run is not None and self._writer == self._run.number != writer:
                    self._writer = writer  # overtaken: nothing else matters any more
                    return
                added = [(each.start, each.end, name) for name, each in found.items() if not each.claimed]
                files = [*self._files, *added]
                whole = self._whole(files, footers[-1].end if footers else self._end)
                break
            except StateError:
                if there == names(self._folder):
                    raise
        now = _now()
        self._keys.add(remembered, now)
        kept = {name for _, _, name in files[whole:]}
        for name, footer in found.items():
            self._end, self._format = footer.end, footer.format
            self._moment = max(self._moment, footer.moment)
            if footer.claimed:
                self._claims.append(name)
            elif name in kept:
                self._keys.add(footer.keyed, now)
        self._known.update(fresh)
        self._writer, self._files = writer, files[whole:]
        durable.delete(self._folder, [str(name) for _, _, name in files[:whole]])

    def _whole(self, files: Sequence[tuple[int, int, FileName]], end: int) -> int:
        """The first of the files from which on nothing is missing; what is before it was read.

        Files are removed in any order, so those that a run was about to remove when it was killed may have gaps.
        """
        first, number = end, len(files)
        while number and files[number - 1][1] == first:
            number -= 1
            first = files[number][0]
        if not first <= self._read <= end:
            hint = "restore the whole checkpoint from one copy"
            raise StateError(f"'{self._folder}' is damaged: a part of what was accepted is missing", hint=hint)
        return number

    def _claim(self) -> None:
        """Take the place of the writer before, unless a later run has it."""
        while self._run is not None and self._writer != self._run.number:
            if self._writer > self._run.number:
                raise self._run.overtaken(self._writer)
            name = FileName(self._end, self._writer)
            claim = Footer(self._end, self._end, self._moment, self._format, claimed=self._run.number)
            durable.create(self._folder / str(name), claim.behind(b""))
            self._load()

    def check(self, source: Source) -> None:
        """Refuse another format for what nobody has read yet."""
        if self._files and self._end > self._read and source.format != self._format:
            raise UsageError(
                f"the stream '{source.name}' holds requests that nobody has read, "
                f"as '{self._format}', not as '{source.format}'",
                hint="let a run read them first, or give the stream another name",
            )

    def follow(self, source: Source) -> None:
        """Go on with a new declaration of the stream, which was checked."""
        assert source.http is not None, "the stream is one that is pushed"
        assert source.format != "auto", "... and has a format"
        with self._moved:
            self.source, self._format, self._backlog = source, source.format, source.http.backlog

    @property
    def state(self) -> SpoolState:
        with self._moved:
            return SpoolState(self._end, self._read)

    # --- requests -----------------------------------------------------------------------------------------

    def check_room(self) -> None:
        """Refuse what would only be refused later: `TrunkBehind` or `SpoolClosed`."""
        with self._moved:
            self._check_room(0)

    def _check_room(self, size: int) -> None:
        if self._closed:
            raise SpoolClosed(f"the stream '{self.source.name}' is not read any more", hint="send it again later")
        self._check_writer()
        unread = (len(self._files) - bisect_right(self._files, self._read, key=_behind)) * _LEAST_COUNTED
        held = sum(len(each.body.data) for each in (*self._waiting, *self._writing))
        if max(self._end - self._read, unread) + held + size > self._backlog:
            raise TrunkBehind(
                f"'{self.source.name}' is behind: {self._end - self._read:,} bytes wait to be read",
                hint="send it again later",
            )

    def _check_writer(self) -> None:
        if self._overtaken is not None:  # one error for each request: they are raised on several threads
            raise StateError(self._overtaken.message, hint=self._overtaken.hint)

    def accept(self, body: PushedBody, key: str | None = None) -> Future[Acceptance]:
        """Take a body; the future has its place when it is durable, or the error if it could not be written."""
        with self._moved:
            if key is not None and (known := self._repeated(body, key)) is not None:
                return known
            self._check_room(len(body.data))
            if body.format != self._format:
                raise SpoolClosed(f"the stream '{self.source.name}' was just declared anew", hint="send it again")
            fresh = _Waiting(body, key, _promise())
            self._waiting.append(fresh)
            self._moved.notify_all()
        return fresh.done

    def _repeated(self, body: PushedBody, key: str) -> Future[Acceptance] | None:
        """The outcome of the request that has the key already; it may still be waiting."""
        found = self._keys.find(key, _now())
        if found is not None:
            _check_digest(found.digest, body, key)
            done = _promise()
            done.set_result(Acceptance(found.start, found.end, repeated=True))
            return done
        for each in (*self._writing, *self._waiting):
            if each.key == key:
                _check_digest(each.body.digest, body, key)
                return _repeating(each.done)
        return None

    # --- the writer ---------------------------------------------------------------------------------------

    def _work(self) -> None:
        while True:
            with self._moved:
                self._moved.wait_for(lambda: self._waiting or self._closed)
                if not self._waiting:
                    return
                size = count = 0
                while count < len(self._waiting) and (not count or size < _GROUP_BYTES):
                    size += len(self._waiting[count].body.data)
                    count += 1
                self._writing, self._waiting = self._waiting[:count], self._waiting[count:]
            self._write(self._writing)

    def _write(self, group: list[_Waiting]) -> None:
        """Write a group, and tell its requests."""
        try:
            places = self._publish(group)
        except Exception as error:
            self._fail(group, error)
            return
        with self._moved:
            self._writing = []
            self._refusing = False
        for each, place in zip(group, places, strict=True):
            each.done.set_result(place)

    def _publish(self, group: list[_Waiting]) -> list[Acceptance]:
        self._check_writer()
        start = at = self._end
        moment = max(self._moment, _now() // _TICK * _TICK)
        places: list[Acceptance] = []
        keyed: list[KeyedRequest] = []
        for each in group:
            first = at + each.body.front
            places.append(Acceptance(first, first + each.body.length))
            if each.key is not None:
                keyed.append(KeyedRequest(each.key, each.body.digest, places[-1].start, places[-1].end, moment))
            at += len(each.body.data)
        footer = Footer(start, at, moment, self._format, tuple(keyed))
        spool_point("spool-begun")
        name = FileName(start, self._writer)
        durable.publish(self._folder / str(name), footer.behind(b"".join(each.body.data for each in group)))
        spool_point("spool-written")
        with self._moved:
            self._files.append((start, at, name))
            self._known.add(name)
            self._end, self._moment = at, moment
            self._keys.add(keyed, _now())
        return places

    def _fail(self, group: list[_Waiting], error: Exception) -> None:
        """Tell the requests of a group that it could not be written.

        Its file may be there all the same, if the disk failed at the very end; then it is a part of the stream.
        Or another file is, because another run has taken over.
        """
        told = error if isinstance(error, AnabranchError) else StateError(f"cannot write: {error}")
        with self._moved:
            try:
                self._load()
            except AnabranchError as another:
                told = another
            if self._run is not None and self._writer != self._run.number:
                told = self._overtaken = self._overtaken or self._run.overtaken(self._writer)
            self._writing = []
            first, self._refusing = not self._refusing, True
        if first:
            self._warn(f"requests to '{self.source.name}' are refused: {told.message}")
        for each in group:
            each.done.set_exception(told)
        if self._run is not None and self._overtaken is not None:
            self._run.fail(self._overtaken)

    # --- what was read ------------------------------------------------------------------------------------

    def forget(self, read: int, *, at_once: bool = False) -> None:
        """Note up to where committed epochs have read, and remove files that hold nothing else, except the newest."""
        with self._moved:
            self._read = max(self._read, read)
            done = [each for each in self._files[:-1] if each[1] <= self._read]
            kept = self._keys.all() if len(self._keys) else []
            size = sum(end - start for start, end, _ in done)
            removed = {*self._claims[:-_CLAIMS], *(name for _, _, name in done)}
            due = not kept or at_once or size >= _KEPT_BYTES or monotonic() - self._kept_since >= _KEPT_SECONDS
            position = self._read
        if not done or not due:
            return
        if kept:
            keys.save(self._folder, position, kept)
        durable.delete(self._folder, [str(each) for each in removed])
        with self._moved:
            self._files = self._files[len(done) :]
            self._claims = self._claims[-_CLAIMS:]
            self._known -= removed
            self._kept_since = monotonic()

    def close(self) -> None:
        """Accept nothing more; what waits is still written."""
        with self._moved:
            self._closed = True
            self._moved.notify_all()
        self._thread.join()
        self.forget(self._read, at_once=True)


def _now() -> int:
    return time_ns() // 1_000


def _behind(file: tuple[int, int, FileName]) -> int:
    return file[1]


def _promise() -> Future[Acceptance]:
    """A future that its reader cannot cancel: what is accepted is accepted."""
    done: Future[Acceptance] = Future()
    done.set_running_or_notify_cancel()
    return done


def _check_digest(known: str, body: PushedBody, key: str) -> None:
    if known != body.digest:
        raise KeyReused(f"the key '{key}' belongs to a request with another body", hint="use a new key for each body")


def _repeating(done: Future[Acceptance]) -> Future[Acceptance]:
    """The outcome of a request for another that repeats it."""
    found = _promise()

    def tell(first: Future[Acceptance]) -> None:
        error = first.exception()
        if error is not None:
            found.set_exception(error)
        else:
            place = first.result()
            found.set_result(Acceptance(place.start, place.end, repeated=True))

    done.add_done_callback(tell)
    return found
