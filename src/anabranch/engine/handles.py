"""Objects that an engine returns: streams, to inspect and to build on, and subscriptions, to read."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from anabranch.algebra.display.display import Edit
from anabranch.algebra.display.replay import DisplayMoment, Replay
from anabranch.algebra.plans import builder
from anabranch.algebra.plans.written import is_plan, read_plan
from anabranch.algebra.reactions.signature import Policy
from anabranch.engine.reports.evolution import History, StreamCourse, StreamSchema
from anabranch.engine.reports.html import display_html, latest, subscription_html
from anabranch.errors import UsageError
from anabranch.spark.answers.log import AnswerFrame
from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.plan.epoch_plan import Registration as Registered
from anabranch.stream.reading.source import Source
from anabranch.visible import visible

if TYPE_CHECKING:
    from anabranch.engine.live import Engine


@dataclass(frozen=True)
class Stream(builder.DerivedStream):
    """A registered stream; operators can be applied to it, and its committed evolution can be read."""

    source: Source
    checkpoint: Checkpoint
    url: str | None = None
    """Where its items are to be sent, if it is pushed."""

    @property
    def name(self) -> str:
        return self.source.name

    def schema(self, at: int | tuple[str, int] | None = None) -> StreamSchema:
        """Paths, units and descriptions now; with `at` behind an epoch, or at a byte of a file, `("a.xml", 120)`."""
        return StreamCourse(self.source, self.checkpoint).schema(at)

    def history(self) -> History:
        """The accents that were read: what changed, where, and for which items."""
        return StreamCourse(self.source, self.checkpoint).history()

    def _repr_html_(self) -> str:
        """Its present paths, for a notebook."""
        return self.schema()._repr_html_()


@dataclass(eq=False)
class LiveSubscription:
    """A running query; iterating gives the pieces of its answer as they are committed, one result each.

    A piece is an element of the answer, or a value or text between elements, and never empty.
    Concatenated, the pieces are the answer: the opening comes with the first result, the closing is a piece by itself
    when the subscription or the engine has ended.
    """

    engine: Engine
    name: str
    text: str
    """The query as printed, or the plan as text."""
    policy: Policy
    """What it does with accents that its answer cannot express."""
    registered: Registered | None = None
    """Its number and first epoch, once it has begun; only the engine sets it."""
    ended: int | None = None
    """The last epoch it may have seen, once it was cancelled."""
    warnings: tuple[str, ...] = ()
    """State that grows with its streams."""

    @property
    def query(self) -> str:
        """The query for people: a plan as its operators, one per line."""
        return str(read_plan(self.text)) if is_plan(self.text) else self.text

    @cached_property
    def frame(self) -> AnswerFrame:
        """The frame of its answer."""
        return AnswerFrame.of(self._unbegun, self.engine.functions)

    @property
    def is_json(self) -> bool:
        """Whether its answer is lines of JSON, as far as is known of its streams (LAWS 7.3)."""
        return not is_plan(self.text) and self.engine.gives_json(self.name, self.text)

    @cached_property
    def shows(self) -> bool:
        """Whether its answer is a display that is corrected; its pieces are an update stream then (LAWS 5.7)."""
        return self._unbegun.shows

    @cached_property
    def _unbegun(self) -> Registered:
        """Its registration before its first epoch."""
        return self.engine.unbegun(self.name, self.text)

    def __iter__(self) -> Iterator[str]:
        return self.pieces()

    def pieces(self, reader: str | None = None) -> Iterator[str]:
        """The pieces from the first on; with the name of a `reader`, from that reader's position.

        A reader's position moves when all pieces of an epoch were taken, and is kept in the checkpoint.
        """
        self.engine.start()
        record = None if reader is None else self.engine.trunk.checkpoint.reader(self.name, reader)
        log = self.engine.log
        before = durable.unsealed(record) if record is not None and durable.exists(record) else None
        owner = self.registered.id if self.registered else None
        frame = self.frame
        begun = before is not None and before["owner"] == owner  # the reader has had the opening
        position = max(0 if before is None else before["next"], *log.manifests.epochs()[:1], 0)
        while self.engine.trunk.beyond(position - 1, lambda: self.ended is not None):
            for epoch in range(position, self.engine.trunk.last + 1):
                if self.ended is not None and epoch > self.ended:
                    break
                manifest = log.manifests.load(epoch)
                for chunk in log.chunks(manifest, self.registered.id) if self.registered else ():
                    text = log.text(chunk)
                    frame = frame.told(text)
                    for result in frame.results(chunk, text):
                        yield result if begun else frame.opening + result
                        begun = True
                position = epoch + 1
                if record is not None and self.registered and begun:
                    durable.replace(record, durable.sealed({"owner": self.registered.id, "next": position}))
            if self.ended is not None and self.engine.trunk.last > self.ended:
                break
        self.engine.trunk.raise_failure()
        end = frame.closing if begun else frame.empty
        if end:
            yield end

    def answer(self) -> str:
        """The committed answer, closed; with `once`, that to all present input."""
        self.engine.start()
        if self.engine.once:
            self.engine.wait()
        self.engine.trunk.raise_failure()
        if self.registered is None:
            return self.engine.log.answer(self._unbegun, self.engine.functions).text()
        return self.engine.log.answer(self.registered, self.engine.functions).text()

    def display(self) -> LiveDisplay:
        """Its answer as a display that changes in place, where it reads streams of updates."""
        return LiveDisplay(self)

    def cancel(self) -> None:
        """End it; its answer so far stays readable."""
        self.engine.cancel(self)

    def _repr_html_(self) -> str:
        """The query, the number of its answers and the newest of them, for a notebook."""
        if self.shows and self.registered is not None:
            pieces = [self.engine.log.shown(self.registered, self.engine.functions)]
        else:
            pieces = latest(self.engine.log, self.registered) if self.registered else []
        return subscription_html(self.name, self.query, self.engine.tally.of(self.registered), pieces)


# --- displays ---------------------------------------------------------------------------------------------------------


class LiveDisplay:
    """The display of a subscription; iterating advances it."""

    def __init__(self, subscription: LiveSubscription) -> None:
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
        """Its edits, in order: `Insert(position, text)` and `Remove(position, length)`."""

    @property
    def text(self) -> str:
        """The display after the latest moment; empty before the first one."""
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
        """The answer after the latest moment, for a notebook."""
        return display_html(self._subscription.name, self.at, self.text)


def _notebook_output(shown: LiveDisplay) -> Any:
    """An output of a notebook that can be updated; None elsewhere."""
    ipython: Any = sys.modules.get("IPython")  # in a notebook it is loaded
    if ipython is None or not hasattr(ipython.get_ipython(), "kernel"):
        return None
    return ipython.display.display(shown, display_id=True)
