"""Answers on standard output: a line for each element, with the subscription's name before it.

A console shows what is committed from its start on and remembers nothing: what a killed run had committed and not yet
shown stays in the answer log.
What a terminal would act on, line ends among it, is written as a reference, so a piece is one line and data cannot
paint on the screen; so is what the terminal has no characters for.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TextIO

from anabranch.spark.plan.epoch_plan import Registration
from anabranch.spark.sinks.pieces import take_apart
from anabranch.visible import visible


class ConsoleLines:
    """Shows the answers of the epochs from `next` on."""

    def __init__(self, out: TextIO | None, next: int) -> None:
        self._out = out
        self.next = next

    def take(self, subscription: Registration, epoch: int, texts: Iterable[str]) -> None:
        """Show what an epoch adds to the answer of a subscription."""
        out = self._out or sys.stdout
        encoding = out.encoding or "utf-8"
        for text in texts:
            for piece in take_apart(text):
                line = f"{visible(subscription.name)}: {visible(piece.text.strip())}\n"
                out.write(line.encode(encoding, "xmlcharrefreplace").decode(encoding))
        out.flush()
