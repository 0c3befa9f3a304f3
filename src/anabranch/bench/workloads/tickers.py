"""The ticker of the history paper, whose quotes are replaced again and again, and its query 2."""

from __future__ import annotations

from anabranch.stream.tree import STREAM_NAMESPACE

RISEN = """
    for $q in stream("tickers")/tickers/ticker
    where $q/quote >= $q/quote#1 * 1.1
    order by ($q/quote - $q/quote#1) div $q/quote
    return <quote>{ $q/name, $q/quote }</quote>"""


def ticker(number: int, quote: int) -> str:
    """A ticker whose quote can be replaced."""
    region = f'<s:mutable id="{number}"><quote>{quote}</quote></s:mutable>'
    return f'<ticker xmlns:s="{STREAM_NAMESPACE}"><name>T{number}</name>{region}</ticker>'


def replacement(number: int, quote: int, at: int) -> str:
    """A new quote."""
    content = f"<quote>{quote}</quote>"
    return f'<s:replace xmlns:s="{STREAM_NAMESPACE}" target="{number}" at="{at}">{content}</s:replace>'
