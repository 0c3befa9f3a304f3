"""Storage in an object store: S3 and what speaks like it, by way of obstore, which is loaded with the first use.

Exclusive create is a conditional put.
Where its answer was lost, the store's client asks again and is told that the object exists: so the object is read back,
and one that holds exactly our bytes is ours.
What is written piece by piece is collected on the local disk and sent at the end, in parts where it is large; a writer
that was killed leaves nothing in the store.

Endpoint and credentials are those of the AWS tools (`credentials.py`); they are looked up in each process and are never
part of a value, so no plan, manifest or log can hold them.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property, lru_cache
from io import RawIOBase
from tempfile import SpooledTemporaryFile
from types import TracebackType
from typing import TYPE_CHECKING, Any

from anabranch.errors import UsageError
from anabranch.storage.credentials import s3_settings
from anabranch.storage.interface import Data, Stat, Storage

if TYPE_CHECKING:
    from obstore.store import ObjectStore

SCHEMES = ("s3", "gs", "az", "file+object", "memory")
"""The first is what this is for, and tested; the last two are for tests."""
_SPOOLED_BYTES = 16 << 20
_PART_BYTES = 8 << 20
_TRIES = 8
"""How often an exclusive create is tried that lost against one which then did not come about."""
_RETRIES = 8
_PATIENCE = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class ObjectStorage:
    """The objects of a bucket."""

    bucket: str
    """As in `s3://bucket`."""

    def name(self, key: str) -> str:
        return f"{self.bucket}/{key}"

    def read(self, key: str, start: int = 0, length: int | None = None) -> bytes:
        if length == 0:
            return b""
        import obstore

        with _translated(self.name(key)):
            if length is None and not start:
                return bytes(obstore.get(self._store, key).bytes())
            try:
                if length is not None:
                    return bytes(obstore.get_range(self._store, key, start=start, length=length))
                return bytes(obstore.get(self._store, key, options={"range": {"offset": start}}).bytes())
            except obstore.exceptions.BaseError:
                if obstore.head(self._store, key)["size"] <= start:
                    return b""  # a range behind the end is an error of its own kind in each store
                raise

    def stat(self, key: str) -> Stat | None:
        import obstore

        try:
            with _translated(self.name(key)):
                return _stat(obstore.head(self._store, key))
        except FileNotFoundError:
            return None

    def is_folder(self, key: str) -> bool:
        import obstore

        with _translated(self.name(key)):
            return any(obstore.list(self._store, key, chunk_size=1))

    def names(self, folder: str, *, below: bool = False, after: str = "") -> Sequence[str]:
        if not below:
            return [name for name in self.list(folder) if name > after]
        import obstore

        behind = f"{folder}/{after}" if after else None
        with _translated(self.name(folder)):
            found = [each["path"] for batch in obstore.list(self._store, folder, offset=behind) for each in batch]
        return sorted(each.removeprefix(f"{folder}/") for each in found)

    def list(self, folder: str) -> Mapping[str, Stat]:
        import obstore

        with _translated(self.name(folder)):
            found = obstore.list_with_delimiter(self._store, folder)["objects"]
        return dict(sorted((each["path"].rpartition("/")[2], _stat(each)) for each in found))

    def put(self, key: str, data: Data) -> None:
        import obstore

        with _translated(self.name(key)):
            obstore.put(self._store, key, bytes(data))

    def create(self, key: str, data: Data) -> None:
        import obstore

        with _translated(self.name(key)):
            for _ in range(_TRIES):
                try:
                    obstore.put(self._store, key, bytes(data), mode="create", use_multipart=False)
                    return
                except obstore.exceptions.AlreadyExistsError:
                    try:
                        if self.read(key) == data:
                            return  # the answer to our first attempt was lost
                    except FileNotFoundError:
                        continue  # another writer's attempt was in the way, and has failed
                    break
        raise FileExistsError(errno.EEXIST, "it exists", self.name(key))

    def writer(self, key: str) -> ObjectWriter:
        return ObjectWriter(self, key)

    def upload(self, key: str, file: Any) -> None:
        """Write an object from a local file, in parts where it is large."""
        import obstore

        with _translated(self.name(key)):
            obstore.put(self._store, key, file, chunk_size=_PART_BYTES)

    def delete(self, keys: Collection[str]) -> None:
        if not keys:
            return
        import obstore

        with _translated(self.bucket):
            try:
                obstore.delete(self._store, list(keys))
            except FileNotFoundError:  # some stores mind
                for key in keys:
                    try:
                        obstore.delete(self._store, key)
                    except FileNotFoundError:
                        continue

    def settle(self, folders: Collection[str]) -> None:
        """Do nothing: an object that was written is durable."""

    def sweep(self, folder: str) -> None:
        """Do nothing: a killed writer leaves nothing."""

    @property
    def _store(self) -> ObjectStore:
        return _opened(self.bucket)


class ObjectWriter:
    """Collects an object in memory, or on the local disk where it is large, and sends it at the end."""

    def __init__(self, storage: ObjectStorage, key: str) -> None:
        self._storage = storage
        self._key = key
        self._file = SpooledTemporaryFile(_SPOOLED_BYTES, prefix="anabranch-")  # noqa: SIM115  # closed in __exit__

    def write(self, data: Data, /) -> None:
        self._file.seek(0, os.SEEK_END)
        self._file.write(data)

    def read(self, start: int, length: int) -> bytes:
        self._file.seek(start)
        return self._file.read(length)

    def __enter__(self) -> ObjectWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._file:
            if error is None:
                self._file.seek(0)
                self._storage.upload(self._key, self._file)


class ObjectFile(RawIOBase):
    """An object as a file that is read from any position; each `read` is a request for a range."""

    def __init__(self, storage: Storage, key: str) -> None:
        self._storage = storage
        self._key = key
        self._at = 0

    @cached_property
    def _size(self) -> int:
        found = self._storage.stat(self._key)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self._storage.name(self._key))
        return found.size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + (0 if whence == os.SEEK_SET else self._at if whence == os.SEEK_CUR else self._size)
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1) -> bytes:
        data = self._storage.read(self._key, self._at, None if size < 0 else size)
        self._at += len(data)
        return data


@lru_cache(maxsize=32)
def _opened(bucket: str) -> ObjectStore:
    """The client for a bucket, one for each process."""
    from obstore.store import LocalStore, MemoryStore, from_url

    retry: Any = {"max_retries": _RETRIES, "retry_timeout": _PATIENCE}
    match bucket.partition("://")[0]:
        case "s3":
            settings, plain = s3_settings(os.environ)
            config: Any = settings
            return from_url(bucket, config=config, client_options={"allow_http": plain}, retry_config=retry)
        case "file+object":
            return LocalStore("/", automatic_cleanup=True)
        case "memory":
            return MemoryStore()
        case _:
            return from_url(bucket, retry_config=retry)


def bucket_and_key(text: str) -> tuple[str, str]:
    """The parts of an address; `UsageError` where it is none."""
    scheme, _, rest = text.partition("://")
    if scheme not in SCHEMES:
        raise UsageError(f"'{text}': files at '{scheme}://' are not known", hint="use s3://BUCKET/NAME, or a path")
    if scheme == "file+object":
        bucket, path = "", rest
    else:
        bucket, _, path = rest.partition("/")
        if not bucket:
            raise UsageError(f"'{text}' names no bucket", hint="as in s3://BUCKET/NAME")
    parts = [each for each in path.split("/") if each]
    if any(each in (".", "..") for each in parts):
        raise UsageError(f"'{text}': '.' and '..' mean nothing in an object store", hint="write the name out")
    return f"{scheme}://{bucket}", "/".join(parts)


def _stat(found: Any) -> Stat:
    return Stat(found["size"], (found["e_tag"] or "", found["last_modified"].isoformat(), found["size"]))


@contextmanager
def _translated(name: str) -> Iterator[None]:
    """Raise errors of the client as errors of files."""
    from obstore.exceptions import BaseError

    try:
        yield
    except FileNotFoundError:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name) from None
    except (BaseError, ValueError) as error:  # the latter for a name that cannot be a key
        reason = str(error).partition("\n")[0]  # behind it stands the client's own account
        raise OSError(errno.EIO, reason, name) from None
