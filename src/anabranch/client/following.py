"""Answers as they are committed, over a stream of events that is opened again whenever it breaks off.

The position of the newest answer is all that is remembered, so neither a lost connection nor a service that was killed
and started again shows in what the caller gets: the next stream begins behind that position.
Positions must grow; a service that repeats one is not trusted any further.
Where retention has dropped answers that were not read, that is an error, and nothing behind the gap is handed on.
Only the first connection must succeed at once, for a wrong address should be told and not waited for.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from random import uniform
from time import monotonic, sleep

from anabranch.client.connection import ServiceConnection
from anabranch.client.events import EventReader, ServerEvent
from anabranch.client.refusals import RemoteError, RemoteUnavailable, short
from anabranch.errors import UsageError

_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0
_BEGIN_AGAIN = "begin again without a position, with the first answer that is kept"
_POSITION = re.compile(r"([0-9]{1,18})-([0-9]{1,18})")


def place_of(position: str) -> tuple[int, int] | None:
    """A position as numbers, which have its order; None for what is no position."""
    found = _POSITION.fullmatch(position)
    return None if found is None else (int(found[1]), int(found[2]))


def check_position(position: str | None) -> None:
    """Refuse what is no position."""
    if position is not None and place_of(position) is None:
        raise UsageError(f"'{position}' is no position", hint="it is an epoch and a number, as in 12-3")


def follow(
    connection: ServiceConnection, path: str, after: str | None, patience: float
) -> Generator[ServerEvent, None, str]:
    """The events of answers behind a position, until the service says that there are no more; gives its reason.

    Where nothing was heard for `patience` seconds, the reason of the last failure is raised.
    """
    last, has_begun, pause, heard = after, False, _FIRST_PAUSE, monotonic()
    while True:
        try:
            with connection.events(path, last) as pieces:
                reader = EventReader()
                has_begun = True
                for piece in pieces:
                    heard = monotonic()
                    for event in reader.feed(piece):
                        if event.kind == "end":
                            return short(event.data)
                        if event.kind in ("error", "gap"):
                            raise RemoteError(short(event.data), hint=_BEGIN_AGAIN if event.kind == "gap" else None)
                        if event.kind == "message":
                            last, pause = _beyond(last, event), _FIRST_PAUSE
                            yield event
                            heard = monotonic()  # the caller may have taken its time
            lost = RemoteUnavailable(f"the service at {connection.address} broke off")
        except RemoteUnavailable as error:
            if not has_begun:
                raise
            lost = error
        if monotonic() - heard > patience:
            raise lost
        sleep(uniform(pause / 2, pause))  # so that many who were lost together do not come back together
        pause = min(pause * 2, _LONGEST_PAUSE)


def _beyond(last: str | None, event: ServerEvent) -> str:
    """The position of an event, which must lie behind the last one."""
    place = place_of(event.id or "")
    if event.id is None or place is None:
        raise RemoteError("the service has sent an answer without a position")
    before = None if last is None else place_of(last)
    if before is not None and place <= before:
        raise RemoteError(f"the service has sent the answer at {event.id} behind the one at {last}")
    return event.id
