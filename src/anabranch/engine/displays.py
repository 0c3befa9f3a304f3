"""The display of a subscription over streams of updates: an answer that changes in place (history paper, section 9).

    shown = engine.subscribe('stream("tickers")//ticker[quote > 100]').display()
    for moment in shown:
        print(moment.at, shown.text)

Iterating follows it moment by moment, as epochs are committed; `follow` draws it, in a terminal in place and in a
notebook as one output.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from anabranch.algebra.display.display import Edit
from anabranch.algebra.display.replay import DisplayMoment, Replay
from anabranch.engine.reports.html import display_html
from anabranch.errors import UsageError
from anabranch.visible import visible

if TYPE_CHECKING:
    from anabranch.engine.handles import Subscription


class Display:
    """What a subscription shows; whoever iterates moves it on."""

    def __init__(self, subscription: Subscription) -> None:
        if not subscription.shows:
            raise UsageError(
                f"the answer of '{subscription.name}' only grows, so there is nothing to correct on a display",
                hint="iterate the subscription itself",
            )
        self._subscription = subscription
        self._replay = Replay()
        self._moments = self._follow()
        self.at: Decimal | None = None
        """The time of the latest moment."""
        self.changes: tuple[Edit, ...] = ()
        """What that has changed, one edit after the other: `Insert(position, text)` and `Remove(position, length)`."""

    @property
    def text(self) -> str:
        """What is on display after the latest moment; empty before the first one."""
        return self._replay.text

    def __iter__(self) -> Iterator[DisplayMoment]:
        return self._moments

    def _follow(self) -> Iterator[DisplayMoment]:
        frame, registered = self._subscription.frame, self._subscription.registered
        if registered is not None:
            self._subscription.engine.log.check_followed(registered)
        front = frame.opening  # comes with the first piece
        for piece in self._subscription.pieces():
            text, front = piece.removeprefix(front), ""
            if text != frame.closing:
                for moment in self._replay.feed(text):
                    self.at, self.changes = moment.at, moment.edits
                    yield moment

    def follow(self, console: Console | None = None) -> None:
        """Show it, changing in place, until the subscription or the engine ends."""
        handle = _notebook_output(self)
        if handle is not None:
            for _ in self:
                handle.update(self)
            return
        with Live(self._drawn(), console=console or Console(), auto_refresh=False) as live:
            for _ in self:
                live.update(self._drawn(), refresh=True)

    def _drawn(self) -> Text:
        return Text("\n".join(map(visible, self.text.split("\n"))))

    def _repr_html_(self) -> str:
        """What a notebook shows: the answer after the latest moment."""
        return display_html(self._subscription.name, self.at, self.text)


def _notebook_output(shown: Display) -> Any:
    """An output of a notebook that can be changed; None elsewhere."""
    ipython: Any = sys.modules.get("IPython")  # whoever is in a notebook has loaded it
    if ipython is None or not hasattr(ipython.get_ipython(), "kernel"):
        return None
    return ipython.display.display(shown, display_id=True)
