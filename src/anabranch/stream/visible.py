"""Text that somebody else wrote, for one line of a display."""

from __future__ import annotations

import re

_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]")
"""What has no look of its own: control characters, changes of the writing direction, halves of characters."""


def visible(text: str) -> str:
    """The text with what a terminal would act on, or a document may not hold, as a reference."""
    return _UNSEEN.sub(lambda found: f"&#{ord(found[0])};", text)
