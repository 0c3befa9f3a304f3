"""Accents that clients write as objects, `{"where": "s = 2", "alter": {"path": "t", "by": ". * 1000"}}`.

They become the text that would stand in a stream of JSON, so that one reader judges both.
"""

from __future__ import annotations

import json
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from anabranch.errors import UsageError

_Text = Annotated[str, Field(max_length=10_000)]


class AddedPath(BaseModel):
    """A path that items have from now on."""

    model_config = ConfigDict(extra="forbid")

    path: _Text
    type: _Text | None = None


class DroppedPath(BaseModel):
    """A path that items have no longer."""

    model_config = ConfigDict(extra="forbid")

    path: _Text


class AlteredPath(BaseModel):
    """A path in another unit."""

    model_config = ConfigDict(extra="forbid")

    path: _Text
    by: _Text


class AccentObject(BaseModel):
    """An accent; `where` describes the items that it concerns, all where it is missing."""

    model_config = ConfigDict(extra="forbid")

    where: _Text | None = None
    at: float | None = None
    add: AddedPath | None = None
    drop: DroppedPath | None = None
    alter: AlteredPath | None = None


def accent_text(given: AccentObject) -> str:
    """The accent as it would stand in a stream of JSON."""
    changes = [each for each in ("add", "drop", "alter") if getattr(given, each) is not None]
    if len(changes) != 1:
        raise UsageError("an accent has one of 'add', 'drop' and 'alter'")
    return json.dumps({"$accent": given.model_dump(exclude_none=True)})
