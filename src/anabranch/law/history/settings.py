"""What a query over updates is asked with, beside its streams; as keywords, all of which may be left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from anabranch.law.calls import PythonFunction
from anabranch.law.inputs import Input


class Around(TypedDict, total=False):
    """What is around a query."""

    functions: Mapping[str, PythonFunction] | None
    """Those that the user registered."""
    inputs: Mapping[str, Input] | None
    """What `doc()` reads."""
    name: str | None
    """What dead letters call the query."""
    text: str | None
    """The text that errors point into."""
