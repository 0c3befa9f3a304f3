"""Rows that are written alike, read all at once: the fast way to a table.

Most answers are rows of one look, `<hit><ra>..</ra><en>..</en></hit>` again and again, with nothing in them that needs
a parser: no reference, no empty tag, no declaration.
Their look is taken from the first, and one expression then finds the values of all.
Anything else, in whatever row, is left to `pieces.py`, which reads every answer; both give the same rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_NAME = r'[^\s<>/="]+'
_VALUE = r'[^"<&\t\n\r]'
_TEXT = r"[^<&\r]"
"""Characters that stand for themselves, in attributes and in text."""
_ROW = re.compile(rf'<({_NAME})((?: {_NAME}="{_VALUE}*")*)>((?:<({_NAME})>{_TEXT}*</\4>)+|{_TEXT}+)</\1>')
_ATTRIBUTE = re.compile(rf' ({_NAME})="[^"]*"')
_LEAF = re.compile(rf"<({_NAME})>[^<]*</\1>")


def rows_alike(text: str) -> Mapping[str, Sequence[str]] | None:
    """The columns of an answer whose rows all look like the first; None if they do not."""
    first = _ROW.match(text)
    if first is None:
        return None
    attributes, leaves = _ATTRIBUTE.findall(first[2]), _LEAF.findall(first[3])
    names = [*(f"@{name}" for name in attributes), *(leaves or [first[1]])]
    if len(set(names)) < len(names) or any(name.split(":")[0] == "xmlns" for name in attributes):
        return None
    given = "".join(f' {re.escape(name)}="({_VALUE}*)"' for name in attributes)
    inner = "".join(f"<{re.escape(leaf)}>({_TEXT}*)</{re.escape(leaf)}>" for leaf in leaves) or f"({_TEXT}+)"
    row = re.escape(first[1])
    found = re.findall(f"<{row}{given}>{inner}</{row}>", text)
    rows = [(each,) for each in found] if len(names) == 1 else found  # one group alone is given without a tuple
    columns: list[Sequence[str]] = list(zip(*rows, strict=True))
    fixed = len(first[0]) - sum(len(column[0]) for column in columns)
    if len(rows) * fixed + sum(sum(map(len, column)) for column in columns) < len(text):
        return None  # something stands between those that look alike
    return dict(zip(names, columns, strict=True))
