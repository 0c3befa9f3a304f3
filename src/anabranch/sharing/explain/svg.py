"""SVG by hand: the few elements that pictures of plans are made of.

All user text is escaped, and characters that XML does not allow are shown as references.
There are no scripts, no styles and no links, neither outwards nor by name, so a picture may be put into any page.
Fonts differ between machines and are not measured: text is assumed to be somewhat wider than it is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from html import escape

from anabranch.visible import visible

MONO = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"
SANS = "system-ui, 'Segoe UI', 'DejaVu Sans', Helvetica, Arial, sans-serif"

_ADVANCE = 0.605
"""The width of a letter of a monospaced font, relative to its size."""
_SANS_ADVANCE = 0.64
"""The approximate width of a letter of a bold sans-serif font, relative to its size."""
_BREAK = re.compile(r" (?=and |or |by |with |; )")


def element(name: str, *content: str, **attributes: str | float) -> str:
    """An element with content that is markup already; `stroke_width` is the attribute `stroke-width`."""
    given = "".join(f' {key.replace("_", "-")}="{_value(value)}"' for key, value in attributes.items())
    return f"<{name}{given}>{''.join(content)}</{name}>" if content else f"<{name}{given}/>"


def _value(value: str | float) -> str:
    return _number(value) if isinstance(value, int | float) else plain(value)


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def plain(text: str) -> str:
    """Text as escaped markup."""
    return escape(visible(text))


def titled(markup: str, title: str) -> str:
    """Markup with a tooltip."""
    return element("g", element("title", plain(title)), markup)


def text(
    x: float,
    y: float,
    content: str,
    *,
    size: float = 12,
    fill: str = "#2b2b2b",
    bold: bool = False,
    mono: bool = False,
    anchor: str = "start",
) -> str:
    """One line of text with its base line at `y`."""
    font: dict[str, str | float] = {"font_family": MONO if mono else SANS, "font_size": size}
    if bold:
        font["font_weight"] = 600
    if anchor != "start":
        font["text_anchor"] = anchor
    return element("text", plain(content), x=x, y=y, fill=fill, **font)


def width(content: str, size: float = 12, *, mono: bool = False) -> float:
    """The largest width that a line of text may have."""
    advance = _ADVANCE if mono else _SANS_ADVANCE
    return size * sum(max(advance, _wide(each)) for each in visible(content))


def _wide(character: str) -> float:
    """Letters of other scripts, and signs, may come from other fonts, which are wider."""
    if character.isascii() or "GREEK" in unicodedata.name(character, ""):
        return 0
    return 0.7 if unicodedata.category(character) in ("Ll", "Lu", "Po", "Pf", "Pi") else 1.1


def shortened(content: str, most: int) -> str:
    """At most `most` characters of a text; an ellipsis ends one that was longer."""
    return content if len(content) <= most else f"{content[: most - 1].rstrip()}…"


def wrapped(content: str, most: int, rows: int, longest: int = 0) -> list[str]:
    """Lines of at most `most` characters, no more than `rows` of them, broken before an `and` or its like.

    What stands between two of these may be as long as `longest`; else it is broken, too.

    >>> wrapped("en >= 1.3 and phc > 50 and det_time > 7", 24, 3)
    ['en >= 1.3 and phc > 50', 'and det_time > 7']
    """
    found = [""]
    for part in _BREAK.split(content):
        for word in [part] if len(part) <= max(most, longest) else part.split(" "):
            if found[-1] and len(found[-1]) + 1 + len(word) > most:
                found.append("")
            found[-1] = f"{found[-1]} {word}" if found[-1] else word
    shown = [shortened(line, max(most, longest)) for line in found[:rows]]
    if len(found) > rows:
        shown[-1] = shortened(f"{shown[-1]} …", max(most, longest))
    return shown


def curve(start: tuple[float, float], end: tuple[float, float], **attributes: str | float) -> str:
    """A line that leaves and arrives level."""
    (x1, y1), (x2, y2) = start, end
    middle = (x1 + x2) / 2
    points = [(x1, y1), (middle, y1), (middle, y2), (x2, y2)]
    a, b, c, d = (f"{_number(x)} {_number(y)}" for x, y in points)
    return element("path", d=f"M{a} C{b} {c} {d}", fill="none", **attributes)


def document(size: tuple[float, float], title: str, parts: Iterable[str]) -> str:
    """A picture of its own, with its own background."""
    across, down = size
    background = element("rect", width=across, height=down, rx=10, fill="#faf8f4")
    body = "".join(f"{line}\n" for line in (background, *parts))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_number(across)} {_number(down)}" '
        f'width="{_number(across)}" height="{_number(down)}" role="img" aria-label="{plain(title)}">\n{body}</svg>\n'
    )
