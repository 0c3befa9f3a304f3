"""Requests to a service: JSON in and out, and streams of events, over `http.client`.

Every reply is bounded in size, and in time from the request to its last byte; connecting and each read have a timeout.
Requests that only read share a kept connection, and are sent once more where the service had closed that meanwhile.
Whatever changes something has a connection of its own and is sent once: if it breaks off, nobody but the caller can
know whether to send it again.
The exception is status 429, which says that nothing was done; the request is repeated when the service asks for it.
Redirects are not followed, and no proxy is asked: the token goes to the address that was given and nowhere else.
"""

from __future__ import annotations

import http.client
import json
import re
import ssl
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from time import monotonic, sleep
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from anabranch.client.refusals import RemoteError, RemoteUnavailable, refusal
from anabranch.errors import UsageError
from anabranch.visible import visible

MOST_BODY = 64 << 20
"""Bytes of one reply."""
SILENCE_SECONDS = 45.0
"""A stream of events that is silent for so long is lost: a service sends something every 15 seconds."""
_PIECE = 1 << 16
_LONGEST_PAUSE = 5.0
_TOKEN = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    """Where a service is: a URL in its parts."""

    scheme: str
    host: str
    port: int
    prefix: str
    """What stands in front of its paths, where a proxy has given it a path of its own."""

    @staticmethod
    def of(url: str) -> ServiceAddress:
        """The address in a URL, as in http://127.0.0.1:8080."""
        hint = "it begins with http:// or https://, as in http://127.0.0.1:8080"
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise UsageError(f"'{url}' is no URL: {error}", hint=hint) from None
        if parts.scheme not in ("http", "https") or not host or not _TOKEN.fullmatch(url):
            raise UsageError(f"'{url}' is no URL of a service", hint=hint)
        if parts.username is not None or parts.query or parts.fragment:
            raise UsageError("the URL of a service has neither a user nor a query", hint="give a token by itself")
        usual = 443 if parts.scheme == "https" else 80
        return ServiceAddress(parts.scheme, host, usual if port is None else port, parts.path.rstrip("/"))

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.prefix}"


def path_of(*parts: str) -> str:
    """A path of the API from its parts; names may have any characters."""
    for each in parts:
        try:
            each.encode()
        except UnicodeEncodeError:
            raise UsageError(f"there is no '{each}'", hint="the name has halves of characters") from None
        if not each:
            raise UsageError("a name is empty")
    return "".join(f"/{quote(each, safe='')}" for each in ("api", *parts))


class ServiceConnection:
    """Requests to one service; any thread may use it."""

    def __init__(self, address: ServiceAddress, token: str | None, timeout: float) -> None:
        if token is not None and not _TOKEN.fullmatch(token):
            raise UsageError("a token has no blanks, and no characters but those of ASCII")
        self.address = address
        self._token = token
        self._timeout = timeout
        self._kept: list[http.client.HTTPConnection] = []
        """Connections that wait for a request; to take and to give are single steps of Python's."""

    def close(self) -> None:
        """Close what is kept; a further request opens it again."""
        while self._kept:
            self._kept.pop().close()

    def __del__(self) -> None:
        if hasattr(self, "_kept"):  # else its token was refused
            self.close()

    def get(self, path: str, **given: str | int | None) -> Any:
        """The JSON at a path, with parameters; those that are None are left out."""
        known = {name: value for name, value in given.items() if value is not None}
        return self._ask("GET", f"{path}?{urlencode(known)}" if known else path)

    def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        sent: str | Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Send JSON; gives that of the reply, None where there is none. `sent`: queries, whose errors have places."""
        data = None if body is None else json.dumps(body).encode()
        return self._ask(method, path, data, sent, timeout)

    @contextmanager
    def events(self, path: str, last: str | None) -> Iterator[Iterator[bytes]]:
        """A stream of events as pieces of bytes, behind the position `last`; it ends where the service ends it."""
        headers = {"Accept": "text/event-stream", **({} if last is None else {"Last-Event-ID": last})}
        deadline = monotonic() + self._timeout
        while True:
            with (
                closing(self._opened(SILENCE_SECONDS)) as connection,
                closing(self._reply(connection, "GET", path, None, headers)) as found,
            ):
                if found.status == 200 and _kind(found) == "text/event-stream":
                    yield self._pieces(found)
                    return
                data = self._read(found, deadline)
            if found.status == 200:
                raise self._foreign(f"a stream of events was asked for, and '{_kind(found)}' came")
            if found.status != 429:
                raise refusal(found.status, self._json(found, data, lenient=True))
            self._pause(found, deadline)

    # --- one request ------------------------------------------------------------------------------------------

    def _ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        sent: str | Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> Any:
        seconds = self._timeout if timeout is None else timeout
        deadline = monotonic() + seconds
        headers = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        while True:
            connection, found = self._answered(method, path, body, headers, seconds)
            is_kept = False
            try:
                with closing(found):
                    data = self._read(found, deadline)
                is_kept = method == "GET" and not found.will_close
            finally:
                if is_kept:
                    self._kept.append(connection)
                else:
                    connection.close()
            if found.status == 429:
                self._pause(found, deadline)
                continue
            if 200 <= found.status < 300:
                return self._json(found, data)
            raise refusal(found.status, self._json(found, data, lenient=True), sent)

    def _answered(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], seconds: float
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """Send a request on a kept connection, if it only reads, or else on a new one."""
        if method == "GET" and self._kept:
            kept = self._kept.pop()
            try:
                return kept, self._reply(kept, method, path, body, headers)
            except RemoteUnavailable:  # closed by the service while it waited
                kept.close()
        connection = self._opened(seconds)
        try:
            return connection, self._reply(connection, method, path, body, headers)
        except BaseException:
            connection.close()
            raise

    def _opened(self, seconds: float) -> http.client.HTTPConnection:
        where = self.address
        if where.scheme == "https":
            return http.client.HTTPSConnection(where.host, where.port, timeout=seconds, context=_trusted())
        return http.client.HTTPConnection(where.host, where.port, timeout=seconds)

    def _reply(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
    ) -> http.client.HTTPResponse:
        """The head of a reply."""
        token = {} if self._token is None else {"Authorization": f"Bearer {self._token}"}
        try:
            connection.request(method, f"{self.address.prefix}{path}", body, {**headers, **token})
            return connection.getresponse()
        except OSError as error:  # which a reply that never came is, too
            raise self._unreachable(error) from None
        except (http.client.HTTPException, ValueError) as error:
            raise self._foreign(f"{type(error).__name__}: {error}") from None

    # --- its reply --------------------------------------------------------------------------------------------

    def _pieces(self, found: http.client.HTTPResponse) -> Iterator[bytes]:
        """The body of a reply, in pieces as they come."""
        while True:
            try:
                piece = found.read1(_PIECE)
            except OSError as error:
                raise self._unreachable(error) from None
            except http.client.IncompleteRead:
                raise RemoteUnavailable(f"the service at {self.address} broke off") from None
            except (http.client.HTTPException, ValueError) as error:
                raise self._foreign(f"{type(error).__name__}: {error}") from None
            if not piece:
                return
            yield piece

    def _read(self, found: http.client.HTTPResponse, deadline: float) -> bytes:
        """The whole body of a reply."""
        parts: list[bytes] = []
        size, announced = 0, found.length
        for piece in self._pieces(found) if announced != 0 else ():
            parts.append(piece)
            size += len(piece)
            if size > MOST_BODY:
                raise RemoteError(f"the service at {self.address} answers with more than {MOST_BODY:,} bytes")
            if monotonic() > deadline:
                raise RemoteUnavailable(f"the service at {self.address} takes too long to answer")
            if size == announced:
                break
        if announced is not None and size < announced:
            raise RemoteUnavailable(f"the service at {self.address} broke off")
        return b"".join(parts)

    def _json(self, found: http.client.HTTPResponse, data: bytes, *, lenient: bool = False) -> Any:
        """The JSON of a reply; None where it is empty, and with `lenient` also where it is something else."""
        if not data:
            return None
        try:
            if _kind(found) == "application/json":
                return json.loads(data)
        except (ValueError, RecursionError):
            pass
        if lenient:
            return None
        shown = data[:60].decode(errors="replace")
        raise self._foreign(f"JSON was expected, and '{_kind(found)}' came: {shown}")

    def _pause(self, found: http.client.HTTPResponse, deadline: float) -> None:
        """Wait as long as a service asks for that has too many requests."""
        asked = found.getheader("Retry-After", "")
        pause = min(float(asked) if re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,6})?", asked) else 1.0, _LONGEST_PAUSE)
        if monotonic() + pause > deadline:
            raise RemoteUnavailable(f"the service at {self.address} has too many requests of this client")
        sleep(max(pause, 0.01))

    def _unreachable(self, error: OSError) -> RemoteError:
        if isinstance(error, ssl.SSLCertVerificationError):
            hint = "SSL_CERT_FILE names a file with those to trust"
            return RemoteError(f"the certificate of {self.address} is not trusted: {error.verify_message}", hint=hint)
        if isinstance(error, TimeoutError):
            return RemoteUnavailable(f"the service at {self.address} does not answer in time")
        if isinstance(error, http.client.RemoteDisconnected | ConnectionResetError | BrokenPipeError):
            return RemoteUnavailable(f"the service at {self.address} broke off")
        reason = getattr(error, "reason", None) or error.strerror or str(error)
        return RemoteUnavailable(f"cannot reach {self.address}: {reason}", hint="is 'anabranch serve' running there?")

    def _foreign(self, why: str) -> RemoteError:
        return RemoteError(
            f"what answers at {self.address} is no service of anabranch: {visible(why)[:300]}",
            hint="it has to be the address that 'anabranch serve' tells",
        )


@cache
def _trusted() -> ssl.SSLContext:
    """Whom this machine trusts; to read that takes some time."""
    return ssl.create_default_context()


def _kind(found: http.client.HTTPResponse) -> str:
    """The media type of a reply."""
    return found.getheader("Content-Type", "").partition(";")[0].strip().lower()
