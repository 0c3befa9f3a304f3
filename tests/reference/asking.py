"""What the tests of the reference share: a query over small streams, given as text."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from anabranch.errors import DynamicError
from anabranch.language import check, parse
from anabranch.law import Answer, Input, evaluate, text_input
from anabranch.law.calls import PythonFunction


def ask(
    query: str,
    inputs: Mapping[str, str | Input] | None = None,
    *,
    functions: Mapping[str, PythonFunction] | None = None,
    time: str | None = None,
) -> Answer:
    """The answer of a query; streams are given as documents, whose items have their time at `time`."""
    given = {
        name: text_input(each, name=name, time=time) if isinstance(each, str) else each
        for name, each in (inputs or {}).items()
    }
    checked = check(parse(query), query, inputs=dict.fromkeys(given), functions=tuple(functions or ()))
    return evaluate(checked.query, given, functions=functions, name="q")


def value(query: str) -> str:
    """The answer of a query that reads nothing."""
    return ask(query).text


def error(query: str) -> str | None:
    """The code of the error that a query without input ends in."""
    with pytest.raises(DynamicError) as caught:
        ask(query)
    return caught.value.code


def stream(*contents: str) -> str:
    """The document `<r><i>...</i>...</r>`."""
    return f"<r>{''.join(f'<i>{each}</i>' for each in contents)}</r>"


def leaves(name: str, *values: object) -> str:
    """A stream of items with one child each."""
    return stream(*(f"<{name}>{each}</{name}>" for each in values))
