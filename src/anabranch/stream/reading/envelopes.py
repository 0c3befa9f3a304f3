"""Debezium's envelope around a row that has changed: what it was before, what it is after, and what was done to it.

    {"before": null, "after": {"id": 7, "n": 1.50}, "op": "c", "source": {...}, "ts_ms": 1767225600000}
    {"schema": {...}, "payload": {"before": {"id": 7, "n": 1.50}, "after": null, "op": "d", ...}}

Of an upsert only `after` counts: the row as it is now, and nothing where it was deleted.
The row is written again as it came, its numbers in their spelling.
"""

from __future__ import annotations

import json

from anabranch.errors import BadItem
from anabranch.stream.limits import Limits
from anabranch.stream.reading.json_items import Json, is_number, parse_value, write_string

_WRITES = ("c", "r", "u")
"""The operations behind which a row is there: it was created, read for a first snapshot, or updated."""


def unwrapped(raw: bytes, limits: Limits) -> bytes | None:
    """The row in an envelope as it is now; None where it was deleted; BadItem where it is no envelope."""
    found = parse_value(raw, limits)
    if isinstance(found, dict) and "payload" in found:
        found = found["payload"]
    if not isinstance(found, dict) or "op" not in found:
        raise BadItem("no envelope of Debezium: it has no 'op'")
    operation, after = found["op"], found.get("after")
    if operation == "d":
        return None
    if not isinstance(operation, str) or operation not in _WRITES:
        raise BadItem(f"no upsert: the operation is {json.dumps(operation)[:40]}")
    if not isinstance(after, dict):
        raise BadItem("no envelope of Debezium: what the row is after it was written is no object")
    return _written(after).encode()


def _written(value: Json) -> str:
    """A value as JSON, numbers in their spelling."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return str(value) if is_number(value) else write_string(value)
        case list():
            return f"[{', '.join(map(_written, value))}]"
        case dict():
            return f"{{{', '.join(f'{write_string(key)}: {_written(each)}' for key, each in value.items())}}}"
