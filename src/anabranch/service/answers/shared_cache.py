"""A cache for many readers: each value is made once, also where several ask for it at the same time.

The values that were used longest ago are dropped when all of them together have too many bytes; a value that is larger
than that is given to those who wait for it, and not kept.
A value is made outside of the lock, so readers of other values never wait for it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SharedCache(Generic[K, V]):
    """Values by key; any thread may ask."""

    def __init__(self, most: int, size: Callable[[V], int]) -> None:
        """`most` bytes are kept, as `size` counts them."""
        self._most = most
        self._size = size
        self._lock = Lock()
        self._kept: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._making: dict[K, Future[V]] = {}
        self.bytes = 0
        """Of all values that are kept."""
        self.made = 0
        """The number of values that were made."""

    def peek(self, key: K) -> V | None:
        """A value, if it is there; never waits for anything that is slow."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def get(self, key: K, make: Callable[[], V]) -> V:
        """A value; it is made if need be, unless somebody is at it."""
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
                return found[0]
            making = self._making.get(key)
            is_mine = making is None
            if making is None:
                making = self._making[key] = Future()
        if not is_mine:
            return making.result()
        try:
            value = make()
        except BaseException as error:
            with self._lock:
                del self._making[key]
            making.set_exception(error)
            raise
        with self._lock:
            del self._making[key]
            self._keep(key, value)
        making.set_result(value)
        return value

    def _keep(self, key: K, value: V) -> None:
        size = self._size(value)
        self.made += 1
        if size > self._most:
            return
        self._kept[key] = value, size
        self.bytes += size
        while self.bytes > self._most:
            _, (_, dropped) = self._kept.popitem(last=False)
            self.bytes -= dropped
