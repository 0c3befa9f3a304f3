"""Text that somebody else wrote, for a display: names, queries and data must not act on a terminal, nor hide in it.

Everything that is shown to people passes one of these: error messages, notes, reports, the log, the console sink.
Characters that have no look of their own are shown as references, `&#155;`, in JSON as escapes, `\\u009b`:

* control characters, C0 and C1 and DEL, with which a terminal is told what to do;
* changes of the writing direction, with which a line is made to look like another;
* what takes no room: zero-width characters, invisible operators, tags, and joiners that join nothing;
* ends of lines and paragraphs, of which a line has none inside;
* halves of characters, and what is no character.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

_ALWAYS = (
    "\x00-\x1f\x7f-\x9f"  # control characters
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0"  # soft hyphen and fillers
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # direction
    "\u180b-\u180e\u200b\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb"  # no room
    "\u2028\u2029"  # lines and paragraphs
    "\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"  # no characters
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"  # shorthand, music, tags
)
_JOINERS = "\u200c\u200d"
"""They take no room, and belong to the spelling of some scripts: they stay behind what can be joined."""
_PLAIN = "\x00-\u02ff"
_UNSEEN = re.compile(f"[{_ALWAYS}]|(?<![^{_PLAIN}{_ALWAYS}{_JOINERS}])[{_JOINERS}]")


def visible(text: str) -> str:
    """The text on one line, with what a terminal would act on, or a document may not hold, as a reference."""
    return _UNSEEN.sub(lambda found: f"&#{ord(found[0])};", text)


def visible_lines(text: str) -> str:
    """The text with its lines and tabs as they are, and all else that is not seen as references."""
    return _UNSEEN.sub(lambda found: found[0] if found[0] in "\n\t" else f"&#{ord(found[0])};", text)


def visible_json(value: Any, indent: int | None = None) -> str:
    """A value as JSON that can be read on a terminal: letters as they are, what is not seen as escapes."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    # inside strings JSON has no line ends, so those that are there are its own
    return _UNSEEN.sub(lambda found: found[0] if found[0] == "\n" else json.dumps(found[0])[1:-1], text)


def tell(message: object) -> None:
    """Say something on standard error; the lines of an error stay lines."""
    print(f"anabranch: {visible_lines(str(message))}", file=sys.stderr)


def note(message: str) -> None:
    """Say something on standard error that a user should know, though nothing is wrong."""
    tell(f"note: {visible(message)}")
