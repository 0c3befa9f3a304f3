"""Untrusted text for a display: names, queries and data must not act on a terminal, nor hide in it.

Everything shown to people passes these functions: error messages, notes, reports, the log, the console sink.
Characters without a look of their own are shown as references, `&#155;`, in JSON as escapes, `\\u009b`:

* control characters, C0 and C1 and DEL, which a terminal takes as commands;
* changes of the writing direction, which make a line look like another;
* characters without width: zero-width characters, invisible operators, tags, and joiners that join nothing;
* ends of lines and paragraphs within a line;
* halves of characters, and code points that are no characters.
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
"""Characters without width in the spelling of some scripts: they stay after a character that can be joined."""
_PLAIN = "\x00-\u02ff"
_UNSEEN = re.compile(f"[{_ALWAYS}]|(?<![^{_PLAIN}{_ALWAYS}{_JOINERS}])[{_JOINERS}]")


def visible(text: str) -> str:
    """The text on one line, with invisible and control characters as references."""
    return _UNSEEN.sub(lambda found: f"&#{ord(found[0])};", text)


def visible_lines(text: str) -> str:
    """The text with its lines and tabs, and other invisible characters as references."""
    return _UNSEEN.sub(lambda found: found[0] if found[0] in "\n\t" else f"&#{ord(found[0])};", text)


def visible_json(value: Any, indent: int | None = None) -> str:
    """A value as JSON for a terminal: letters as they are, invisible characters as escapes."""
    return visible_in_json(json.dumps(value, ensure_ascii=False, indent=indent))


def visible_in_json(text: str) -> str:
    """The text of a value in JSON for a terminal, likewise."""
    # JSON strings contain no line ends, so all line ends are those of the layout
    return _UNSEEN.sub(lambda found: found[0] if found[0] == "\n" else json.dumps(found[0])[1:-1], text)


def tell(message: object) -> None:
    """Print to standard error; the lines of an error stay lines."""
    print(f"anabranch: {visible_lines(str(message))}", file=sys.stderr)


def note(message: str) -> None:
    """Print a note to standard error, though nothing is wrong."""
    tell(f"note: {visible(message)}")
