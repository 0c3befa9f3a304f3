"""A subscription of a service: its answers, in pages or as they come, its display, and its end."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from anabranch.client.connection import ServiceConnection, path_of
from anabranch.client.following import check_position, follow, place_of
from anabranch.client.notebook import html_of, shown
from anabranch.client.refusals import RemoteError
from anabranch.client.shapes import entry, record, records
from anabranch.errors import UsageError

PATIENCE_SECONDS = 600.0
"""How long answers are waited for while their service cannot be reached."""
_PAGE = 200
"""Answers of one page."""
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class RemoteAnswer:
    """One result: its position, an epoch and a number within it, and its text."""

    position: str
    text: str


@dataclass(frozen=True, slots=True)
class RemoteDisplay:
    """What a display shows, or has shown: the time of that moment, if it has one, its text, and the last changes."""

    at: str | None
    text: str
    changes: tuple[Mapping[str, Any], ...] = ()

    def _repr_html_(self) -> str:
        """The display, for a notebook."""
        return f"<pre>{shown(self.text)}</pre>"


@dataclass(frozen=True, eq=False)
class RemoteSubscription:
    """A subscription by its name; iterating gives the answers that are there."""

    connection: ServiceConnection = field(repr=False)
    name: str
    about: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """What the service said of it when it was asked for or listed, as in docs/service.md; `details` asks again."""

    def details(self) -> dict[str, Any]:
        """What is known of it now: its query, state, plan, what it shares with whom."""
        return record(self.connection.get(self._path()))

    def __iter__(self) -> Iterator[RemoteAnswer]:
        return self.answers()

    def answers(
        self, after: str | None = None, follow: bool = False, *, patience: float = PATIENCE_SECONDS
    ) -> Generator[RemoteAnswer, None, str]:
        """Its answers in order, from the first that is kept or behind a position.

        With `follow` it waits for further ones, until the subscription is cancelled or ends; its return value is the
        reason. A connection that is lost is opened again, without a gap and without doubles, for `patience` seconds.
        """
        check_position(after)
        return self._followed(after, patience) if follow else self._paged(after)

    def text(self) -> str:
        """Its whole answer as it is now; of a display, what it shows."""
        if self.is_display():
            return self.display().text
        opening, closing = self.frame()
        return f"{opening}{''.join(each.text for each in self.answers())}{closing}"

    def frame(self) -> tuple[str, str]:
        """What stands in front of its answers, and behind them."""
        page = self.connection.get(self._path("answers"), limit=1)
        return entry(page, "opening", str), entry(page, "closing", str)

    def is_display(self) -> bool:
        """Whether its answer is a display that is corrected."""
        known = self.about if self.about.get("answer") is not None else self.details()
        return known.get("answer") == "display"

    def display(self, moment: int | None = None) -> RemoteDisplay:
        """What it shows now, or what it has shown at a moment, by the number of that."""
        found = self.connection.get(self._path("display"), moment=moment)
        at, changes = record(found).get("at"), found.get("changes")
        shown_changes = tuple(records(found, "changes")) if changes is not None else ()
        return RemoteDisplay(None if at is None else str(at), entry(found, "text", str), shown_changes)

    def change(self, query: str, **more: Any) -> None:
        """Give it another query, which begins another answer; `more` as for `RemoteSite.subscribe`."""
        self.connection.send("PUT", self._path(), asked(query, **more), sent=query)

    def cancel(self) -> None:
        """End it; its answer so far stays readable in the service's log."""
        self.connection.send("DELETE", self._path())

    def _path(self, *more: str) -> str:
        return path_of("subscriptions", self.name, *more)

    def _followed(self, after: str | None, patience: float) -> Generator[RemoteAnswer, None, str]:
        events = follow(self.connection, self._path("answers"), after, patience)
        while True:
            try:
                event = next(events)
            except StopIteration as end:
                return str(end.value)
            yield RemoteAnswer(str(event.id), event.data)

    def _paged(self, after: str | None) -> Generator[RemoteAnswer, None, str]:
        while True:
            page = self.connection.get(self._path("answers"), after=after, limit=_PAGE)
            yield from map(_answer, records(page, "answers"))
            following = record(page).get("next")
            if not entry(page, "more", bool):
                return "there are no more yet"
            if not isinstance(following, str) or (after is not None and not _is_behind(after, following)):
                raise RemoteError("the service has answered with a page that leads nowhere")
            after = following

    def _repr_html_(self) -> str:
        """Its query and its newest answers, for a notebook."""
        found = self.details()
        page = self.connection.get(self._path("answers"), last=_SHOWN)
        newest = [_answer(each) for each in records(page, "answers")]
        title = f"{self.name}, {found.get('state')}: {found.get('answers')} answers"
        rows = [("query", found.get("query")), *((each.position, each.text) for each in newest)]
        return html_of(title, ("", ""), rows)


def asked(
    query: str,
    *,
    name: str | None = None,
    language: str | None = None,
    sink: Mapping[str, Any] | None = None,
    policy: str | None = None,
    from_beginning: bool = False,
) -> dict[str, Any]:
    """A registration as a service takes it."""
    if not isinstance(query, str):
        raise UsageError("a service takes queries as text")
    given: dict[str, Any] = {"name": name, "query": query, "language": language, "policy": policy}
    given |= {"sink": None if sink is None else dict(sink), "from": "beginning" if from_beginning else None}
    return {key: value for key, value in given.items() if value is not None}


def _answer(said: Mapping[str, Any]) -> RemoteAnswer:
    return RemoteAnswer(entry(said, "position", str), entry(said, "text", str))


def _is_behind(before: str, position: str) -> bool:
    first, second = place_of(before), place_of(position)
    return first is not None and second is not None and first < second
