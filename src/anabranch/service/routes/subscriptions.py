"""Subscriptions: listed page by page, registered, changed and cancelled.

A hundred thousand of them are filtered and sorted here, and only those of a page are described.
A subscription is registered as the table that would declare it in SITE.toml (`site_work.py`).
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from bisect import bisect_left, bisect_right
from operator import itemgetter
from typing import Annotated, Any, Literal, TypeAlias

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from anabranch.errors import UsageError
from anabranch.service.access import Subscriber, needs
from anabranch.service.context import Context, ServiceContext
from anabranch.service.refusals import Forbidden
from anabranch.service.routes.queries import ShareAnswer, shared
from anabranch.service.settings import Client
from anabranch.site_work import SubscriptionEntry
from anabranch.spark.plan.epoch_plan import Registration
from anabranch.spark.plan.kinds import KINDS
from anabranch.spark.sinks import Console, Files, Kafka, Parquet, Sink
from anabranch.sql.reading import is_sql

router = APIRouter(prefix="/api/subscriptions", tags=["subscriptions"], dependencies=[needs("read")])

MOST = 1_000
"""Subscriptions on a page."""
_MOST_AT_ONCE = 100_000
"""Subscriptions in one request."""
_NO_SINK = {"text", "query", "plan", "language", "policy", "from", "max_held", "max_overruns"}
"""Keys of a subscription's table that clients cannot set by way of its sink; only a site says what one may take."""
State = Literal["waiting", "running", "ended", "refused"]
Sort = Literal["name", "answers", "first_epoch"]
Rank: TypeAlias = tuple[str] | tuple[int, str]
"""What subscriptions are ordered by; each has its own, for its name is in it."""


class QueryBody(BaseModel):
    """A query and how it is answered, as in SITE.toml."""

    model_config = ConfigDict(extra="forbid")

    query: Annotated[str, Field(max_length=1 << 20)]
    language: Literal["xquery", "sql"] | None = None
    sink: dict[str, Any] | None = None
    policy: str | None = None
    begin: Annotated[Literal["now", "beginning"] | None, Field(alias="from")] = None

    def table(self) -> dict[str, Any]:
        """The table that would declare it."""
        others = {"language": self.language, "policy": self.policy, "from": self.begin}
        table = {"text": self.query} | {key: value for key, value in others.items() if value is not None}
        sink = dict(self.sink or {})
        if "kind" in sink:
            sink["sink"] = sink.pop("kind")
        if not sink.keys().isdisjoint(_NO_SINK):
            raise UsageError("'sink' has keys that are not those of a sink")
        return table | sink


class SubscriptionBody(QueryBody):
    """A subscription that is to be registered."""

    name: Annotated[str, Field(min_length=1, max_length=200)]


class SubscriptionSummary(BaseModel):
    """A subscription in a list."""

    name: str
    origin: Literal["site", "service"]
    language: Literal["xquery", "sql"]
    kind: str | None
    answer: Literal["xml", "json", "display"] | None
    state: State
    streams: list[str]
    first_epoch: int | None
    answers: int
    sink: str | None
    policy: str
    error: str | None


class SubscriptionPage(BaseModel):
    """A page of subscriptions; `total` counts all that the filters let through."""

    total: int
    subscriptions: list[SubscriptionSummary]
    next: str | None


class SubscriptionAnswer(SubscriptionSummary):
    """A subscription by itself."""

    query: str
    printed: str
    registered: str | None
    warnings: list[str]
    position: str | None
    plan: str
    columns: str
    shares: list[ShareAnswer]


class RegisteredNames(BaseModel):
    """The names of subscriptions that were registered together."""

    registered: list[str]


@router.get("")
def listed(
    context: Context,
    after: str | None = None,
    limit: Annotated[int, Query(ge=1, le=MOST)] = 100,
    search: Annotated[str, Query(max_length=1000)] = "",
    stream: str | None = None,
    kind: str | None = None,
    origin: Literal["site", "service"] | None = None,
    state: State | None = None,
    sort: Sort = "name",
    order: Literal["asc", "desc"] = "asc",
) -> SubscriptionPage:
    """A page of the subscriptions."""
    context.check_begun()
    sought = search.casefold()
    found = [
        entry
        for name, entry in context.work.entries.items()
        if (origin is None or entry.origin == origin)
        and (not sought or sought in name.casefold() or sought in entry.declared.text.casefold())
    ]
    if stream is not None or kind is not None or state is not None:
        found = [each for each in found if _fits(context, each, stream, kind, state)]
    ranked = sorted(((_rank(context, each, sort), each) for each in found), key=itemgetter(0))
    reached = None if after is None else _rank_in(after, sort)
    if order == "asc":
        begin = 0 if reached is None else bisect_right(ranked, reached, key=itemgetter(0))
        page, is_last = ranked[begin : begin + limit], begin + limit >= len(ranked)
    else:
        end = len(ranked) if reached is None else bisect_left(ranked, reached, key=itemgetter(0))
        page, is_last = ranked[max(0, end - limit) : end][::-1], end <= limit
    following = None if is_last else _cursor(page[-1][0])
    return SubscriptionPage(
        total=len(found), subscriptions=[summary(context, each) for _, each in page], next=following
    )


@router.post("", status_code=201)
def register(
    context: Context,
    body: SubscriptionBody | Annotated[list[SubscriptionBody], Field(min_length=1, max_length=_MOST_AT_ONCE)],
    client: Subscriber,
) -> SubscriptionAnswer | RegisteredNames:
    """Register a subscription, or several as a whole; durable when it is answered."""
    bodies = body if isinstance(body, list) else [body]
    for each in bodies:
        _check_sink(each, client)
    tables = {each.name: each.table() for each in bodies}
    if len(tables) < len(bodies):
        raise UsageError("two of the subscriptions have the same name")
    entries = context.work.register(tables)
    if isinstance(body, list):
        return RegisteredNames(registered=[each.name for each in entries])
    return described(context, entries[0])


@router.get("/{name:name}")
def one(context: Context, name: str) -> SubscriptionAnswer:
    """A subscription."""
    return described(context, context.entry(name))


@router.put("/{name:name}")
def change(context: Context, name: str, body: QueryBody, client: Subscriber) -> SubscriptionAnswer:
    """Change a registered subscription; another query begins another answer."""
    _check_sink(body, client)
    context.entry(name)
    return described(context, context.work.change(name, body.table()))


@router.delete("/{name:name}", status_code=204)
def cancel(context: Context, name: str, client: Subscriber) -> Response:
    """Cancel a registered subscription; its answer so far stays in the log."""
    context.entry(name)
    context.work.cancel(name)
    return Response(status_code=204)


def _check_sink(body: QueryBody, client: Client) -> None:
    """Refuse a sink to a client that may not have files written."""
    if body.sink is not None and not client.may("administer"):
        raise Forbidden("a sink takes the role 'administer'", hint="answers can be read without one")


# --- descriptions -----------------------------------------------------------------------------------------------------


def summary(context: ServiceContext, entry: SubscriptionEntry) -> SubscriptionSummary:
    """A subscription in a list."""
    return SubscriptionSummary(**_summary(context, entry))


def described(context: ServiceContext, entry: SubscriptionEntry) -> SubscriptionAnswer:
    """A subscription by itself."""
    running = context.registration(entry)
    explained, shares = context.queries.registered(entry, running)
    return SubscriptionAnswer(
        **_summary(context, entry),
        position=_position(context, entry) if running else None,
        plan=explained.text if explained else "",
        columns=explained.columns if explained else "",
        shares=list(map(shared, shares)),
        query=entry.declared.text,
        printed=entry.printed,
        registered=entry.registered,
        warnings=list(entry.warnings),
    )


def _position(context: ServiceContext, entry: SubscriptionEntry) -> str | None:
    """The position of the newest result, None where there is none."""
    asked = context.asked.of(entry.name)
    newest = next(context.feed.backward(asked.source, None), None) if asked.has_begun else None
    return None if newest is None else str(newest[0])


def _summary(context: ServiceContext, entry: SubscriptionEntry) -> dict[str, Any]:
    registration = context.registration(entry)
    ended = registration.aborted if registration else ""
    error = entry.refusal.message if entry.refusal else ended or None
    return {
        "name": entry.name,
        "origin": entry.origin,
        "language": "sql" if is_sql(entry.declared.text, entry.declared.language) else "xquery",
        "kind": None if registration is None else KINDS[registration.kind].label,
        "answer": answer_form(context, entry, registration),
        "state": _state(entry, registration),
        "streams": list(registration.streams) if registration else [],
        "first_epoch": registration.first if registration else None,
        "answers": context.answers(registration),
        "sink": None if entry.declared.sink is None else sink_text(context, entry.declared.sink),
        "policy": entry.declared.policy,
        "error": error,
    }


def answer_form(
    context: ServiceContext, entry: SubscriptionEntry, registration: Registration | None
) -> Literal["xml", "json", "display"] | None:
    """What the answer of a subscription is made of; None before anybody knows."""
    if registration is None:
        return None
    if registration.shows:
        return "display"
    return "json" if context.gives_json(entry) else "xml"


def sink_text(context: ServiceContext, sink: Sink) -> str:
    """A sink in a few words; files are named as they are in the site's folder."""
    folder = f"{context.work.site.file.parent}/"
    match sink:
        case Files(path):
            return f"files {str(path).removeprefix(folder)}"
        case Parquet(path):
            return f"parquet {str(path).removeprefix(folder)}"
        case Kafka():
            return f"kafka {sink.topic}"
        case Console():
            return "console"


def _state(entry: SubscriptionEntry, registration: Registration | None) -> State:
    if entry.refusal is not None:
        return "refused"
    if registration is None:
        return "waiting"
    return "ended" if registration.aborted else "running"


# --- filters and pages ------------------------------------------------------------------------------------------------


def _fits(
    context: ServiceContext, entry: SubscriptionEntry, stream: str | None, kind: str | None, state: State | None
) -> bool:
    registration = context.registration(entry)
    if state is not None and _state(entry, registration) != state:
        return False
    if registration is None:
        return stream is None and kind is None
    return (stream is None or stream in registration.streams) and (
        kind is None or kind in (registration.kind, KINDS[registration.kind].label)
    )


def _rank(context: ServiceContext, entry: SubscriptionEntry, sort: Sort) -> Rank:
    if sort == "name":
        return (entry.name,)
    registration = context.registration(entry)
    if sort == "answers":
        return (context.answers(registration), entry.name)
    return (registration.first if registration else 1 << 62, entry.name)


def _cursor(rank: Rank) -> str:
    """The last of a page, behind whose rank the next one begins, as text that clients need not understand.

    So nobody is left out, or listed twice, because others come and go meanwhile.
    """
    return urlsafe_b64encode(json.dumps(rank).encode()).decode().rstrip("=")


def _rank_in(cursor: str, sort: Sort) -> Rank:
    try:
        found = json.loads(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, RecursionError):
        found = None
    match found:
        case [str() as name] if sort == "name":
            return (name,)
        case [int() as number, str() as name] if sort != "name":
            return (number, name)
    raise UsageError(f"'{cursor}' is no 'next' of a page", hint="begin without 'after'")
