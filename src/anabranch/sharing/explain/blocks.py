"""Pieces of a picture: drawn at the origin, with a size, so that they can be stacked, framed and put anywhere.

A tree is drawn as in the sharing paper's figures: elements under their parents, a bullet behind what is sent, and
annotations in boxes of their own.
Where several queries use a tree each has a column beside it, with a bullet for every element that it needs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from anabranch.sharing.explain.picture import AGGREGATE, JOIN, SELECT, WINDOW, TreeLine
from anabranch.sharing.explain.scene import Use
from anabranch.sharing.explain.svg import element, shortened, text, titled, width, wrapped
from anabranch.sharing.tree import Steps

COLOURS = (
    "#3b6ea5",
    "#c2702f",
    "#4f8a5b",
    "#a94f5a",
    "#7764a8",
    "#2f8a90",
    "#b0628f",
    "#8a7433",
    "#5c7a89",
    "#6d8b3c",
    "#94594a",
    "#54549a",
)
INK, FAINT, RULE = "#2b2b2b", "#77736b", "#d9d4ca"
_SIGNS = {WINDOW: ("#e8f0f5", "#2d6079"), AGGREGATE: ("#f0ebf5", "#6a4c8c"), JOIN: ("#f6eae6", "#94503c")}
_SELECTION = ("#eef2e6", "#566b2c")
_LINE, _NOTE, _INDENT, COLUMN = 19, 15, 15, 20
_LONGEST_NAME, _NOTE_WIDTH, _LONGEST_NOTE, _NOTE_ROWS = 32, 34, 48, 6
_MOST_LINES = 40
"""So many elements of a tree are shown."""


@dataclass(frozen=True, slots=True)
class Block:
    """Markup that fills a place of this size."""

    width: float
    height: float
    parts: tuple[str, ...] = ()

    def at(self, x: float, y: float) -> str:
        """The block at its place."""
        return element("g", *self.parts, transform=f"translate({x:.1f} {y:.1f})")


def stacked(blocks: Iterable[Block], gap: float) -> Block:
    """Blocks one below the other."""
    y = across = 0.0
    parts: list[str] = []
    for block in blocks:
        y += gap if parts else 0
        parts.append(block.at(0, y))
        y, across = y + block.height, max(across, block.width)
    return Block(across, y, tuple(parts))


def framed(block: Block, across: float) -> Block:
    """A block in a frame."""
    frame = element("rect", width=across, height=block.height, rx=7, fill="#ffffff", stroke=RULE)
    return Block(across, block.height, (frame, *block.parts))


def inset(block: Block, *, stripe: str = "") -> Block:
    """A block with room around it for a frame, and a stripe at its left in the colour of a query."""
    down = block.height + 22
    line = element("path", d=f"M3 4 V{down - 4:.1f}", stroke=stripe, stroke_width=4, stroke_linecap="round")
    return Block(block.width + 28, down, (*((line,) if stripe else ()), block.at(14, 11)))


def colour(number: int) -> str:
    """The colour of the card with this number."""
    return COLOURS[(number - 1) % len(COLOURS)]


def badge(x: float, y: float, number: int) -> str:
    """A card's number in its colour, around a point."""
    disc = element("circle", cx=x, cy=y, r=8, fill=colour(number))
    return disc + text(x, y + 3.6, str(number), size=10, fill="#ffffff", bold=True, anchor="middle")


def heading(title: str, below: str, number: int | None = None) -> Block:
    """A title with a line of small print below it, and a card's number before it."""
    shown, small = shortened(title, _LONGEST_NAME), shortened(below, 2 * _LONGEST_NAME)
    x = 0 if number is None else 24
    parts = [] if number is None else [badge(8, 8, number)]
    line = text(x, 13, shown, size=14, bold=True)
    parts.append(line if shown == title else titled(line, title))
    if below:
        line = text(x, 29, small, size=11, fill=FAINT)
        parts.append(line if small == below else titled(line, below))
    return Block(x + max(width(shown, 14) * 1.1, width(small, 11) * 0.9), 34 if below else 18, tuple(parts))


def remark(words: str, most: int = 40) -> Block:
    """Small print in several lines."""
    rows = wrapped(words, most, 4)
    parts = [text(0, 11 + 14 * at, row, size=11, fill=FAINT) for at, row in enumerate(rows)]
    return Block(max(width(row, 11) * 0.9 for row in rows), 14 * len(rows), (titled("".join(parts), words),))


@dataclass(frozen=True, slots=True)
class TreeBlock(Block):
    """A tree, with the place of each element that is sent and where its name ends."""

    rows: tuple[tuple[Steps, float, float], ...] = ()

    def columns(self, x: float, uses: Sequence[Use], place: int = 0) -> Block:
        """The same with a column from `x` on for each card that uses it, with a bullet for what it needs."""
        parts = list(self.parts)
        for path, y, end in self.rows:
            rule = f"M{end + 6:.1f} {y:.1f} H{x - 12:.1f}"
            parts.append(element("path", d=rule, stroke=RULE, stroke_dasharray="1 4", stroke_linecap="round"))
            marks = [(x + COLUMN * at, use, use.mark(place, path)) for at, use in enumerate(uses)]
            parts += [bullet(at, y, mark, colour(use.card.number)) for at, use, mark in marks if mark]
        return Block(x + COLUMN * (len(uses) - 1) + 8, self.height, tuple(parts))


def tree_block(lines: Sequence[TreeLine], ink: str = "") -> TreeBlock:
    """A tree; with bullets if there is a colour for them."""
    parts: list[str] = []
    y = across = 0.0
    rows: list[tuple[Steps, float, float]] = []
    above: dict[int, float] = {}
    compact = _compact(lines)
    for depth, line in compact[:_MOST_LINES]:
        x = _INDENT * depth
        if depth:
            way = f"M{x - 9} {above[depth - 1] + 17:.1f} V{y + 10:.1f} H{x - 2}"
            parts.append(element("path", d=way, fill="none", stroke=RULE))
        above[depth] = y
        name = shortened(line.name, _LONGEST_NAME)
        word = text(x, y + 14, name, mono=True, fill=INK if line.marks else "#55524c")
        parts.append(word if name == line.name else titled(word, line.name))
        end = x + width(name, mono=True)
        if line.marks or any(sign == AGGREGATE for sign, _ in line.notes):
            rows.append((line.path, y + 10, end))
        if line.marks and ink:
            parts.append(bullet(end + 9, y + 10, line.marks[0], ink))
            end += 16
        y, across = y + _LINE, max(across, end)
        for sign, said in line.notes:
            note = _note(sign, said)
            parts.append(note.at(x + 12, y + 1))
            y, across = y + note.height + 4, max(across, x + 12 + note.width)
    if (left := len(compact) - _MOST_LINES) > 0:
        parts.append(text(0, y + 14, f"and {left:,} more elements", size=11, fill=FAINT))
        y, across = y + _LINE, max(across, 160)
    return TreeBlock(across, y, tuple(parts), tuple(rows))


def _compact(lines: Sequence[TreeLine]) -> list[tuple[int, TreeLine]]:
    """Elements with how deep they stand; one that has nothing to it but a single child is written before that."""
    children = Counter(line.path[:-1] for line in lines)
    found: list[tuple[int, TreeLine]] = []
    depths: dict[Steps, int] = {}
    name = ""
    for line in lines:
        depths[line.path] = depths.get(line.path[:-1], -1) + (0 if name else 1) if line.path else 0
        name += line.name
        if children[line.path] == 1 and line.path and not line.marks and not line.notes:
            name += "/"
        else:
            found.append((depths[line.path], replace(line, name=name)))
            name = ""
    return found


def bullet(x: float, y: float, mark: str, ink: str) -> str:
    """What is sent whole is filled."""
    if mark == "•":
        return element("circle", cx=x, cy=y, r=4.5, fill=ink)
    return element("circle", cx=x, cy=y, r=4, fill="#ffffff", stroke=ink, stroke_width=1.5)


def _note(sign: str, said: str) -> Block:
    """An annotation in its box."""
    paper, ink = _SIGNS.get(sign, _SELECTION)
    rows = wrapped(said, _NOTE_WIDTH, _NOTE_ROWS, _LONGEST_NOTE)
    before = width(sign, 11) + 12
    across = before + max(width(row, 11, mono=True) for row in rows) + 6
    down = _NOTE * len(rows) + 4
    box = element("rect", width=across, height=down, rx=4, fill=paper)
    words = [text(before, 13 + _NOTE * at, row, size=11, mono=True) for at, row in enumerate(rows)]
    markup = "".join((box, text(6, 13, sign, size=11, fill=ink, bold=True), *words))
    return Block(across, down, (titled(markup, f"{sign} {said}"),))


_LEGEND = (
    ("•", "sent whole"),
    ("◦", "the element, or a part"),
    (SELECT, "selection"),
    (f"pre-{SELECT}", "what enters a window"),
    (f"post-{SELECT}", "which windows count"),
    (WINDOW, "window"),
    (AGGREGATE, "aggregate"),
    (JOIN, "join"),
)


def legend(across: float) -> Block:
    """What the signs mean, in as many lines as it takes."""
    parts: list[str] = []
    x = y = 0.0
    for sign, meaning in _LEGEND:
        before = 0.9 * width(sign, 11) + 8
        wide = before + 0.9 * width(meaning, 11) + 14
        if x and x + wide > across:
            x, y = 0, y + 18
        letter = text(x, y + 12, sign, size=11, fill=FAINT, bold=True)
        parts.append(bullet(x + 6, y + 8, sign, FAINT) if sign in "•◦" else letter)
        parts.append(text(x + before, y + 12, meaning, size=11, fill=FAINT))
        x += wide
    return Block(across, y + 18, tuple(parts))
