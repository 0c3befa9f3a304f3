"""The settings of a run's endpoint: where it listens, who may send, and every limit that a client can meet.

The table `[http]` of SITE.toml and the Python API fill them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from anabranch.errors import UsageError

TOKEN_VARIABLE = "ANABRANCH_TOKEN"
"""The environment variable with the token, where no file is named."""
_LEAST_TOKEN = 16
_LOCALHOST = "localhost"


@dataclass(frozen=True, slots=True)
class EndpointSettings:
    """Where an endpoint listens, who may send, and how much."""

    listen: str = "127.0.0.1:0"
    """An address and a port; port 0 is any that is free."""
    token_file: Path | None = None
    """The file with the token that clients send; else it is in the environment."""
    max_body: int = 16 << 20
    """The bytes of a body, also after unpacking."""
    connections: int = 100
    max_headers: int = 16 << 10
    """The bytes of the request line and the headers together."""
    header_seconds: float = 30.0
    """The time that a connection may be idle, or take for the headers of a request."""
    body_seconds: float = 60.0
    """The time that a body may take."""

    def __post_init__(self) -> None:
        self.address()

    def address(self) -> tuple[str, int]:
        """The address and port to listen on; UsageError if they are none."""
        host, colon, port = self.listen.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        try:
            if host != _LOCALHOST:
                ip_address(host)
            if colon and port.isdecimal() and int(port) < 1 << 16:
                return host, int(port)
        except ValueError:
            pass
        hint = "as in 127.0.0.1:8080, or 127.0.0.1:0 for any port that is free"
        raise UsageError(f"'listen' takes an address and a port, not '{self.listen}'", hint=hint)

    @property
    def is_loopback(self) -> bool:
        """Whether only programs on the same machine can reach it."""
        host = self.address()[0]
        return host == _LOCALHOST or ip_address(host).is_loopback

    def token(self) -> str | None:
        """The token that clients must send, None if none is asked for; UsageError where one is needed."""
        if self.token_file is not None:
            try:
                found = self.token_file.read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
                raise UsageError(f"cannot read the token in '{self.token_file}': {reason}") from None
            whence = f"'{self.token_file}'"
        else:
            found, whence = os.environ.get(TOKEN_VARIABLE, ""), f"the environment's {TOKEN_VARIABLE}"
            if not found and self.is_loopback:
                return None
        hint = f'name a file with it, token_file = "token", or set {TOKEN_VARIABLE}'
        if not found and self.token_file is None:
            raise UsageError(f"to listen on '{self.listen}' takes a token, for others can reach it", hint=hint)
        if len(found) < _LEAST_TOKEN or not (found.isascii() and found.isprintable()) or " " in found:
            raise UsageError(
                f"the token in {whence} cannot be used",
                hint=f"it has {_LEAST_TOKEN} characters or more, letters, digits and punctuation",
            )
        return found
