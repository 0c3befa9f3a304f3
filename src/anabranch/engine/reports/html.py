"""Small tables for notebooks, without scripts: an engine, its subscriptions and what they share.

All text of users and streams is escaped, and characters without a look of their own (control characters, changes of
the writing direction) are shown as references, so neither a name nor data can be anything but text.
Colours are the notebook's, light or dark; only the thin lines between rows have one, half transparent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from html import escape

from anabranch.spark.answers.log import AnswerFrame, AnswerLog
from anabranch.spark.epoch.metrics import MOST_NAMED, Metrics, StreamNumbers
from anabranch.spark.plan.epoch_plan import Registration
from anabranch.spark.sinks.pieces import lines_in, take_apart
from anabranch.stream.reading.source import Source
from anabranch.visible import visible

_MOST_PIECES = 5
"""The most pieces that are shown."""
_MOST_EPOCHS = 100
"""The most epochs that are searched for them."""
_LONGEST = 300
_LINE = "border:0;border-bottom:1px solid rgba(128,128,128,.35);padding:.2em 1.2em .2em 0;background:none;"
_CELL = f"{_LINE}text-align:left;vertical-align:top;"
_NUMBER = f"{_LINE}text-align:right;vertical-align:top;font-variant-numeric:tabular-nums;"


class Tally:
    """The numbers of committed answers, which grow with the epochs; dropped epochs stay counted."""

    def __init__(self, log: AnswerLog) -> None:
        self._log = log
        self._next = 0
        self._answers: Counter[int] = Counter()
        self.items = 0

    def now(self) -> Tally:
        """The same, updated by new epochs."""
        for manifest in self._log.manifests.since(self._next):
            self._next = manifest.epoch + 1
            self.items += manifest.items
            self._answers.update(self._log.index(manifest).entries().by_subscription())
        return self

    def of(self, subscription: Registration | None) -> int:
        """The number of answers to one subscription, 0 before it began."""
        return self._answers[subscription.id] if subscription else 0


def latest(log: AnswerLog, subscription: Registration) -> list[str]:
    """The newest pieces of an answer, oldest first."""
    found: list[str] = []
    frame = AnswerFrame.of(subscription)
    for epoch in reversed(log.manifests.epochs()[-_MOST_EPOCHS:]):
        for chunk in reversed(log.chunks(log.manifests.load(epoch), subscription.id)):
            text = log.text(chunk)
            pieces = lines_in(text) if frame.is_json(text) else [piece.text for piece in take_apart(text)]
            found += reversed(pieces)
            if len(found) >= _MOST_PIECES:
                return found[:_MOST_PIECES][::-1]
    return found[::-1]


def engine_html(
    state: str,
    streams: Mapping[str, Source],
    answers: Mapping[str, tuple[str, int]],
    items: int,
    metrics: Metrics | None,
) -> str:
    """An engine: its streams, its subscriptions with query and number of answers, its newest epoch."""
    parts = [f"<b>Engine</b>, {escape(state)}: {items:,} items in all"]
    places = [(name, ", ".join(map(str, each.partitions)), each.format) for name, each in streams.items()]
    parts.append(_table(("stream", "read from", "format"), places))
    most = sorted(answers, key=lambda name: -answers[name][1])[:MOST_NAMED]
    parts.append(_table(("subscription", "query", "answers"), [(name, *answers[name]) for name in most]))
    if len(answers) > len(most):
        parts.append(f"and {len(answers) - len(most):,} more subscriptions")
    if metrics is not None:
        names = ("epoch", "items", "bytes", "matched", "dead_letters", "late_items", "job_ms")
        parts.append(_table([name.replace("_", " ") for name in names], [[getattr(metrics, name) for name in names]]))
        parts.append(_columns_table(metrics.streams))
    return _framed(parts)


def _columns_table(streams: Mapping[str, StreamNumbers]) -> str:
    """How much of each stream was parsed and answered in columns."""
    names = (
        "stream",
        "items",
        "in columns",
        "by parser",
        "unclear",
        "subscriptions in columns",
        "by the law",
        "because of",
    )
    rows = [
        (
            name,
            each.items,
            each.by_template + each.by_scanner,
            each.by_parser,
            each.unclear,
            each.in_columns,
            each.by_law,
            next(iter(each.reasons), ""),
        )
        for name, each in streams.items()
    ]
    return _table(names, rows)


def subscription_html(name: str, text: str, answers: int, pieces: Sequence[str]) -> str:
    """A subscription: its query, the number of its answers, the newest of them."""
    lines = "".join(f"<div><code>{_shown(each)}</code></div>" for each in pieces)
    query = "\n".join(_shown(line, None) for line in text.split("\n"))
    return _framed(
        (
            f"<b>{_shown(name)}</b>: {answers:,} answers",
            f'<pre style="background:none;margin:.4em 0;white-space:pre-wrap">{query}</pre>',
            *((f"newest:{lines}",) if lines else ()),
        )
    )


def explanation_html(
    streams: Sequence[tuple[str, int, int, int, int]],
    branches: Sequence[tuple[int, str, str, int]],
    remarks: Iterable[str],
    picture: str,
) -> str:
    """The work of a trunk, and the picture of sharing, which is markup already."""
    parts = [
        _table(("stream", "subscriptions", "different queries", "shapes", "branches"), streams),
        _table(("branch", "does", "for", "different queries"), branches),
        *(escape(each) for each in remarks),
        f'<div style="overflow:auto;max-height:60em">{picture}</div>',
    ]
    return _framed(part for part in parts if part)


def display_html(name: str, at: Decimal | None, text: str) -> str:
    """A display: its text, and its time."""
    since = "" if at is None else f", since {at:f}"
    shown = "\n".join(_shown(line, None) for line in text.split("\n"))
    return _framed(
        (f"<b>{_shown(name)}</b>{since}", f'<pre style="background:none;white-space:pre-wrap">{shown}</pre>')
    )


def titled_table(title: str, names: Sequence[str], rows: Sequence[Sequence[str | int]]) -> str:
    """A table with a line above it."""
    return _framed((f"<b>{_shown(title)}</b>", _table(names, rows)))


def _framed(parts: Iterable[str]) -> str:
    return f"<div>{''.join(f'<div>{part}</div>' for part in parts)}</div>"


def _table(names: Sequence[str], rows: Sequence[Sequence[str | int]]) -> str:
    """A table; numbers are aligned to the right, with their heads."""
    if not rows:
        return ""
    heads = "".join(
        f'<th style="{_CELL if isinstance(value, str) else _NUMBER}">{escape(name)}</th>'
        for name, value in zip(names, rows[0], strict=True)
    )
    lines = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f'<table style="border-collapse:collapse;margin:.4em 0"><tr>{heads}</tr>{lines}</table>'


def _cell(value: str | int) -> str:
    if isinstance(value, int):
        return f'<td style="{_NUMBER}">{value:,}</td>'
    return f'<td style="{_CELL}">{_shown(value, 100)}</td>'


def _shown(text: str, longest: int | None = _LONGEST) -> str:
    """Text in one line, as text and nothing else."""
    cut = text if longest is None or len(text) <= longest else f"{text[:longest]}…"
    return escape(visible(cut))
