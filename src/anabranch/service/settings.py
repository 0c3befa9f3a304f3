"""The settings of a service: where it listens, who may ask it, and every limit that a client can meet.

A token file has a line for each token: its role, the token, and a name for the log.
A file with nothing but one token is that of an administrator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from anabranch.endpoint.settings import EndpointSettings
from anabranch.errors import UsageError

Role: TypeAlias = Literal["read", "subscribe", "administer"]
ROLES: tuple[Role, ...] = get_args(Role)
"""Each may do what those before it may."""
DEFAULT_PORT = 8080
_LEAST_TOKEN = 16


@dataclass(frozen=True, slots=True)
class Client:
    """Who asks: a name for the log and for limits, and a role."""

    name: str
    role: Role

    def may(self, role: Role) -> bool:
        """Whether the client may do what takes this role."""
        return ROLES.index(self.role) >= ROLES.index(role)


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """Where a service listens, who may ask, and how much."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    token_file: Path | None = None
    max_body: int = 16 << 20
    """The bytes of a body."""
    body_seconds: float = 60.0
    """How long a body may take."""
    requests_per_second: float = 500.0
    """Of one client, over some seconds."""
    event_streams: int = 2_000
    """Of one client at a time."""
    connections: int = 4_000

    @property
    def server(self) -> EndpointSettings:
        """The settings of its server."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return EndpointSettings(f"{host}:{self.port}", max_body=self.max_body, connections=self.connections)

    def tokens(self) -> Mapping[str, Client] | None:
        """By token: who has it; None where nobody is asked for one; UsageError where one is needed."""
        if self.token_file is None:
            if not self.server.is_loopback:
                raise UsageError(
                    f"to serve on '{self.host}' takes tokens, for others can reach it",
                    hint="name a file with them: --token-file FILE",
                )
            return None
        return read_tokens(self.token_file)


def read_tokens(file: Path) -> dict[str, Client]:
    """The tokens in a file; UsageError says which line is wrong, never the token."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(f"cannot read the tokens in '{file}': {reason}") from None
    given = [(number, line.split()) for number, line in enumerate(lines, 1) if line.strip() and line.strip()[0] != "#"]
    if len(given) == 1 and len(given[0][1]) == 1:
        given = [(given[0][0], ["administer", *given[0][1]])]
    found: dict[str, Client] = {}
    for number, words in given:
        role = next((each for each in ROLES if each == words[0]), None)
        if role is None or not 2 <= len(words) <= 3:
            hint = f"a line has a role ({', '.join(ROLES)}), a token and, if you like, a name"
            raise UsageError(f"'{file}', line {number}: this is no token", hint=hint)
        token = words[1]
        if len(token) < _LEAST_TOKEN or not (token.isascii() and token.isprintable()):
            hint = f"it has {_LEAST_TOKEN} characters or more, letters, digits and punctuation"
            raise UsageError(f"'{file}', line {number}: the token cannot be used", hint=hint)
        if token in found:
            raise UsageError(f"'{file}', line {number}: the token is there twice")
        found[token] = Client(words[2] if len(words) == 3 else f"{role}-{number}", role)
    if not found:
        raise UsageError(f"there is no token in '{file}'", hint="a line has a role, a token and, if you like, a name")
    return found
