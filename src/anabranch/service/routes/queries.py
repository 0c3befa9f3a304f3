"""Queries before they are registered: checked, explained beside those that run, tried, and spelled in another way."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from anabranch.errors import AnabranchError, DynamicError, QueryError, UsageError
from anabranch.service.access import needs
from anabranch.service.context import Context
from anabranch.service.queries.checking import AnswerKind, error_of
from anabranch.service.queries.preview import DEFAULT_ITEMS, MOST_ITEMS
from anabranch.service.queries.sharing import QueryShare, SharedPart
from anabranch.service.queries.spelling import SpellingName
from anabranch.service.refusals import TooMany

router = APIRouter(prefix="/api", tags=["queries"], dependencies=[needs("read")])

MOST_CHARACTERS = 1 << 20


class AskedQuery(BaseModel):
    """A query that is not registered."""

    model_config = ConfigDict(extra="forbid")

    query: Annotated[str, Field(max_length=MOST_CHARACTERS)]
    language: Literal["xquery", "sql"] | None = None


class QueryMistake(BaseModel):
    """What is wrong with a query, and where; the place is null where it is the query as a whole."""

    message: str
    line: int | None
    column: int | None
    length: int | None
    hint: str | None
    code: str | None


class QueryAccepted(BaseModel):
    """A query that could be registered, and what is known of it."""

    ok: Literal[True] = True
    language: Literal["xquery", "sql"]
    kind: str
    answer: AnswerKind
    streams: list[str]
    warnings: list[str]
    printed: str
    columns: str


class QueryRefused(BaseModel):
    """A query that registering would refuse."""

    ok: Literal[False] = False
    errors: list[QueryMistake]


class ShareAnswer(BaseModel):
    """One thing that a query has in common with others: how many, and a few of their names."""

    what: SharedPart
    message: str
    count: int
    names: list[str]


class CostAnswer(BaseModel):
    """What a query would cost beside those that run."""

    model_config = ConfigDict(populate_by_name=True)

    passes: Annotated[str, Field(alias="pass")]
    per_item: str
    state: str


class ExplainAnswer(BaseModel):
    """A query beside those that run."""

    text: str
    shares: list[ShareAnswer]
    cost: CostAnswer
    columns: str
    warnings: list[str]


class TriedQuery(AskedQuery):
    """A query to be answered over the newest items."""

    items: Annotated[int, Field(ge=1, le=MOST_ITEMS)] = DEFAULT_ITEMS


class PreviewLetter(BaseModel):
    """What was set aside while a query was tried."""

    stream: str
    reason: str
    code: str | None
    raw: str


class PreviewAnswer(BaseModel):
    """The answer of a query over the newest items of its streams, and what has to be said of it."""

    answers: list[str]
    more: bool
    items: dict[str, int]
    dead_letters: list[PreviewLetter]
    notes: list[str]
    ms: int


class RespelledQuery(AskedQuery):
    """A query to be written in another way: as XQuery with paths, with dots, or as SQL."""

    to: SpellingName


class SpellingAnswer(BaseModel):
    """The query in another spelling; `exact` says that it is read into the same tree."""

    query: str
    exact: bool


@router.post("/check")
def check(context: Context, body: AskedQuery) -> QueryAccepted | QueryRefused:
    """The verdict that registering the query would give."""
    context.check_begun()
    try:
        checked, explained = context.queries.check(body.query, body.language)
    except (QueryError, DynamicError, UsageError) as error:
        if isinstance(error, TooMany):
            raise
        return QueryRefused(errors=[mistake(error)])
    return QueryAccepted(
        language=checked.language,
        kind=checked.query.label,
        answer=checked.answer,
        streams=list(checked.query.streams),
        warnings=list(checked.warnings),
        printed=checked.printed,
        columns=explained.columns,
    )


@router.post("/explain")
def explain(context: Context, body: AskedQuery) -> ExplainAnswer:
    """What a query would share with those that run, and what it would cost."""
    context.check_begun()
    found = context.queries.explain(body.query, body.language)
    cost = CostAnswer(passes=found.cost.streams, per_item=found.cost.per_item, state=found.cost.state)
    return ExplainAnswer(
        text=found.explained.text,
        shares=list(map(shared, found.shares)),
        cost=cost,
        columns=found.explained.columns,
        warnings=list(found.checked.warnings),
    )


@router.post("/preview")
def preview(context: Context, body: TriedQuery) -> PreviewAnswer:
    """The answer of a query over the newest items of its streams; nothing of the run changes."""
    context.check_begun()
    found = context.queries.preview(body.query, body.language, body.items)
    return PreviewAnswer(
        answers=found.answers,
        more=found.more,
        items=found.items,
        dead_letters=[PreviewLetter(**each) for each in found.dead_letters],
        notes=found.notes,
        ms=found.ms,
    )


@router.post("/spelling")
def spelling(context: Context, body: RespelledQuery) -> SpellingAnswer:
    """The query in another spelling; one that has none is refused."""
    context.check_begun()
    found = context.queries.spell(body.query, body.language, body.to)
    return SpellingAnswer(query=found.query, exact=found.exact)


def shared(share: QueryShare) -> ShareAnswer:
    """A share for clients."""
    return ShareAnswer(what=share.what, message=share.message, count=share.count, names=list(share.names))


def mistake(error: AnabranchError) -> QueryMistake:
    """An error in a query for clients."""
    found: dict[str, Any] = error_of(error)
    return QueryMistake(**found)
