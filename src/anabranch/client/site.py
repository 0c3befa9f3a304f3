"""A site behind a service: its streams, subscriptions and reports.

Reports are the objects of docs/service.md as they are, dictionaries and lists; what one acts on has a class.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from anabranch.client.connection import ServiceAddress, ServiceConnection, path_of
from anabranch.client.notebook import html_of
from anabranch.client.refusals import query_error
from anabranch.client.shapes import entry, pages, record, records
from anabranch.client.subscription import RemoteSubscription, asked
from anabranch.errors import UsageError

TOKEN = "ANABRANCH_TOKEN"
"""The variable of the environment with the token, where none is given."""
_TIMEOUT = 60.0
_PAGE = 500
_SECONDS_EACH = 0.01
"""More time for each of many subscriptions that are registered at once."""


def connect(url: str, token: str | None = None, *, timeout: float = _TIMEOUT) -> RemoteSite:
    """Connect to the service at a URL; a token may also be in the environment, ANABRANCH_TOKEN.

    `timeout` is how many seconds a request may take, except those that follow answers.
    """
    given = os.environ.get(TOKEN) or None if token is None else token
    site = RemoteSite(ServiceConnection(ServiceAddress.of(url), given, timeout), timeout)
    entry(site.about(), "site", str)  # a wrong address, or a wrong token, is told at once
    return site


class RemoteSite:
    """A site that a service runs; any thread may use it."""

    def __init__(self, connection: ServiceConnection, timeout: float = _TIMEOUT) -> None:
        self.connection = connection
        self._timeout = timeout

    def __repr__(self) -> str:
        return f"RemoteSite({str(self.connection.address)!r})"

    def close(self) -> None:
        """Close its connections; a further request opens them again."""
        self.connection.close()

    def __enter__(self) -> RemoteSite:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- the site and its streams -----------------------------------------------------------------------------

    def about(self) -> dict[str, Any]:
        """What runs there: the site, its version, run, epoch and state, and what this caller may do."""
        return record(self.connection.get(path_of()))

    def now(self) -> dict[str, Any]:
        """What the run does: rates, lag, the phases of epochs, and what is late, and why."""
        return record(self.connection.get(path_of("now")))

    def state(self) -> dict[str, Any]:
        """What branches and shards remember."""
        return record(self.connection.get(path_of("state")))

    def sharing(self) -> dict[str, Any]:
        """The shared plan, group by group."""
        return record(self.connection.get(path_of("sharing")))

    def streams(self) -> list[dict[str, Any]]:
        """The streams."""
        return records(self.connection.get(path_of("streams")), "streams")

    def stream(self, name: str) -> dict[str, Any]:
        """One stream, with its paths and what was learned of their values."""
        return record(self.connection.get(path_of("streams", name)))

    def evolution(self, stream: str) -> dict[str, Any]:
        """How a stream has evolved: lanes of paths, and accents with what subscriptions did about them."""
        return record(self.connection.get(path_of("streams", stream, "evolution")))

    def accent(
        self, stream: str, text: str, *, preview: bool = False, partition: int | str | None = None
    ) -> dict[str, Any]:
        """Publish an accent into a stream; with `preview` nothing changes. Gives what subscriptions do, or would do."""
        body = {"accent": text, "partition": partition, "preview": preview}
        return record(self.connection.send("POST", path_of("streams", stream, "accents"), body))

    # --- subscriptions ----------------------------------------------------------------------------------------

    def subscriptions(
        self,
        search: str | None = None,
        *,
        stream: str | None = None,
        kind: str | None = None,
        origin: str | None = None,
        state: str | None = None,
        sort: str | None = None,
        order: str | None = None,
    ) -> Iterator[RemoteSubscription]:
        """The subscriptions that the filters let through; pages are fetched as they are iterated."""
        given = {"search": search, "stream": stream, "kind": kind, "origin": origin, "state": state}
        given |= {"sort": sort, "order": order}
        found = pages(
            lambda after: self.connection.get(path_of("subscriptions"), after=after, limit=_PAGE, **given),
            "subscriptions",
        )
        return (RemoteSubscription(self.connection, entry(each, "name", str), each) for each in found)

    def subscription(self, name: str) -> RemoteSubscription:
        """One subscription."""
        return RemoteSubscription(self.connection, name, record(self.connection.get(path_of("subscriptions", name))))

    def subscribe(
        self,
        query: str,
        name: str,
        *,
        language: str | None = None,
        sink: Mapping[str, Any] | None = None,
        policy: str | None = None,
        from_beginning: bool = False,
    ) -> RemoteSubscription:
        """Register a query; it is durable when this returns, and answers from the next epoch on.

        `sink` has the keys of SITE.toml, as in `{"sink": "files", "path": "out/vela.xml"}`.
        """
        body = asked(query, name=name, language=language, sink=sink, policy=policy, from_beginning=from_beginning)
        reply = self.connection.send("POST", path_of("subscriptions"), body, sent=query)
        return RemoteSubscription(self.connection, entry(reply, "name", str), record(reply))

    def register_all(self, registrations: Sequence[Mapping[str, Any]]) -> list[str]:
        """Register many queries as a whole or not at all; gives their names.

        Each is a registration as in docs/service.md: `{"name": "vela", "query": "for ..."}`.
        """
        bodies = [dict(each) for each in registrations]
        if not bodies:
            return []
        seconds = self._timeout + _SECONDS_EACH * len(bodies)
        texts = {str(each.get("name")): str(each.get("query")) for each in bodies}
        reply = self.connection.send("POST", path_of("subscriptions"), bodies, sent=texts, timeout=seconds)
        return [str(each) for each in entry(reply, "registered", list)]

    # --- queries before they are registered -------------------------------------------------------------------

    def check(self, query: str, *, language: str | None = None) -> dict[str, Any]:
        """What the service makes of a query; raises the error that a local call would, with its place."""
        found = record(self.connection.send("POST", path_of("check"), asked(query, language=language), sent=query))
        if entry(found, "ok", bool):
            return found
        errors = records(found, "errors")
        if not errors:
            raise UsageError("the query is refused")
        raise query_error(errors[0], query)

    def explain(self, query: str, *, language: str | None = None) -> dict[str, Any]:
        """What a query would share with those that run, and what it would cost."""
        return record(self.connection.send("POST", path_of("explain"), asked(query, language=language), sent=query))

    def preview(self, query: str, *, language: str | None = None, items: int = 200) -> dict[str, Any]:
        """The answer of a query over the newest items."""
        body = {**asked(query, language=language), "items": items}
        return record(self.connection.send("POST", path_of("preview"), body, sent=query))

    # --- what was set aside -----------------------------------------------------------------------------------

    def dead_letters(self, stream: str | None = None, subscription: str | None = None) -> Iterator[dict[str, Any]]:
        """What was set aside, with the reason and the raw text."""
        return self._letters("dead-letters", stream=stream, subscription=subscription)

    def late_items(self) -> Iterator[dict[str, Any]]:
        """Items that were too late."""
        return self._letters("late")

    def _letters(self, path: str, **given: str | None) -> Iterator[dict[str, Any]]:
        return pages(lambda after: self.connection.get(path_of(path), after=after, limit=_PAGE, **given), "letters")

    def _repr_html_(self) -> str:
        """The streams, for a notebook."""
        about = self.about()
        title = f"{self.connection.address}: {about.get('site')}, {about.get('state')}"
        title += f", {about.get('subscriptions')} subscriptions"
        keys = ("name", "source", "format", "subscriptions", "items")
        return html_of(title, keys, ([each.get(key, "") for key in keys] for each in self.streams()))
