"""An S3 server of the bench's own on loopback: versitygw over a folder, as `scripts/s3.sh` builds it."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from unittest.mock import patch

from anabranch.errors import UsageError
from anabranch.storage import Location

_PROGRAM, _VERSION = "versitygw", "v1.8.0"
_BUCKET = "bench"
_START_SECONDS = 30.0


def program() -> str | None:
    """The server's program: on the path, or where `scripts/s3.sh` keeps it; None if there is none."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "anabranch"
    return shutil.which(_PROGRAM) or shutil.which(str(cache / f"{_PROGRAM}-{_VERSION}"))


def missing() -> UsageError:
    """The error where there is no program."""
    return UsageError(
        "an S3 server is needed, and there is none",
        hint=f"'scripts/s3.sh start FOLDER' builds {_PROGRAM} with Go once; or put it on the path",
    )


@contextmanager
def served_bucket() -> Iterator[Location]:
    """An empty bucket; this process and those it starts meanwhile have the keys."""
    found = program()
    if found is None:
        raise missing()
    secret, port = secrets.token_hex(16), _free_port()
    keys = {"AWS_ACCESS_KEY_ID": _BUCKET, "AWS_SECRET_ACCESS_KEY": secret, "AWS_REGION": "us-east-1"}
    with TemporaryDirectory(prefix="anabranch-s3-") as folder:
        (Path(folder) / _BUCKET).mkdir()
        process = subprocess.Popen(
            [found, "--quiet", "--port", f"127.0.0.1:{port}", "posix", folder],
            env={**os.environ, "ROOT_ACCESS_KEY": _BUCKET, "ROOT_SECRET_KEY": secret},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            _await(process, port)
            with patch.dict(os.environ, keys | {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}):
                for each in ("AWS_ENDPOINT_URL_S3", "AWS_PROFILE", "AWS_SESSION_TOKEN"):
                    os.environ.pop(each, None)
                yield Location.of(f"s3://{_BUCKET}")
        finally:
            process.terminate()
            process.wait()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _await(process: subprocess.Popen[bytes], port: int) -> None:
    """Wait until the server answers."""
    patience = monotonic() + _START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if process.poll() is not None or monotonic() > patience:
                raise UsageError(f"the S3 server '{process.args!r}' does not start") from None
            sleep(0.05)
