"""A client that pushes the lines of a file over HTTP, in a process of its own: it must not share a core by force.

`python -m anabranch.bench.harness.poster URL FILE LINES CONNECTIONS` sends the whole file once for each line that it
reads, so many lines of the file in a request and so many requests at a time, and prints a line when all of them were
accepted.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from itertools import islice
from pathlib import Path
from types import TracebackType
from urllib.parse import urlsplit


class Poster:
    """The process, as its owner sees it."""

    def __init__(self, url: str, file: Path, lines: int, connections: int) -> None:
        words = [sys.executable, "-m", __name__, url, str(file), str(lines), str(connections)]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Poster:
        return self

    def send(self) -> None:
        """Send the file, and wait until all of it was accepted."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print("send", file=self._process.stdin, flush=True)
        assert self._process.stdout.readline(), "the client has ended; standard error says why"

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()


def _send(url: str, bodies: Sequence[bytes]) -> None:
    """Send some bodies on one connection, one after the other."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    connection = HTTPConnection(parts.hostname, parts.port)
    for each in bodies:
        connection.request("POST", parts.path, each, {"Content-Type": "application/xml"})
        found = connection.getresponse()
        content = found.read()
        assert found.status == 200, content
    connection.close()


def main(url: str, file: str, lines: str, connections: str) -> None:
    """Send a file whenever asked to."""
    count = int(connections)
    with Path(file).open("rb") as opened:
        bodies = list(iter(lambda: b"".join(islice(opened, int(lines))), b""))
    with ThreadPoolExecutor(count) as threads:
        for _ in sys.stdin:
            list(threads.map(_send, [url] * count, [bodies[number::count] for number in range(count)]))
            print("sent", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
