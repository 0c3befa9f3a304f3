"""A picture of sharing: streams on the left, then the flows and joins of the trunk, queries on the right.

Every query has a number and a colour, which mark everything that is done for it; so a glance at a stream shows which
queries share each of its elements.
The lines between the columns say what a query found when it was registered.
Columns are as wide as their contents, and parts that share no stream stand one below the other.

A tree is drawn as in the sharing paper's figures: elements under their parents, a bullet behind what is sent, and
annotations in boxes of their own.
Where several queries use a tree each has a column beside it, with a bullet for every element that it needs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from statistics import fmean as mean

from anabranch.predicate.writing import number_text
from anabranch.sharing.explain.scene import Card, Joined, Scene, SentStream, Use, scene
from anabranch.sharing.explain.svg import curve, document, element, shortened, text, titled, width, wrapped
from anabranch.sharing.explain.text import Explained
from anabranch.sharing.explain.trees import AGGREGATE, JOIN, SELECT, WINDOW, TreeLine, joined_lines, lines
from anabranch.sharing.tree import Steps

_MARGIN, _GAP, _CAPTION = 28, 22, 34
_NEAR, _FAR = 60, 100
"""The distance between columns: more where lines have words, and their width is added."""
_AT = 19
"""The distance from the upper edge of a box to the end of a line."""
_LABEL = 26
"""The most characters of a line's words."""
_NAMED = 4
"""The most queries of a card that are listed by name."""
_HEADS = ("streams", "what the trunk sends", "joins", "queries")
_GREY = "#b9b3a6"


def draw(queries: Sequence[Explained], more: Mapping[str, int] | None = None) -> str:
    """The picture as SVG; `more` queries of each stream are not among those given."""
    parts = [_Part.of(each) for each in scene(queries, more or {}).parts()]
    columns = _columns(parts)
    body: list[str] = []
    y: float = _MARGIN + _CAPTION
    for part in parts:
        placed = part.placed(y)
        body += part.drawn(columns, placed)
        y = max(top + block.height for top, block in chain(*map(zip, placed, part.columns))) + 2 * _GAP
    across = columns[-1].right + _MARGIN
    heads = [
        text(column.left, _MARGIN + 10, head, fill=FAINT, bold=True)
        for column, head in zip(columns, _HEADS, strict=True)
        if column.wide
    ]
    below = legend(across - 2 * _MARGIN)
    body.append(below.at(_MARGIN, y))
    return document((across, y + below.height + _MARGIN), "What queries share", (*heads, *body))


@dataclass(frozen=True, slots=True)
class _Column:
    """The place of a column; an empty one takes no room."""

    left: float
    wide: float
    label: float = 0
    """The width of the words on the lines before it."""

    @property
    def right(self) -> float:
        return self.left + self.wide

    @property
    def turn(self) -> float:
        """Where lines to it become horizontal."""
        return self.left - self.label - 12


def _columns(parts: Sequence[_Part]) -> list[_Column]:
    shared = [each.uses for part in parts for each in chain[SentStream | Joined](part.scene.sent, part.scene.joins)]
    label = max((_label(use).width for uses in shared for use in uses), default=0)
    found: list[_Column] = []
    x: float = _MARGIN
    for at in range(4):
        wide = max((block.width for part in parts for block in part.columns[at]), default=0)
        before = x > _MARGIN
        x += (label + _FAR if at == 3 else _NEAR) if before and wide else 0
        found.append(_Column(x, wide, label))
        x += wide
    return found


@dataclass(frozen=True, slots=True)
class _Part:
    """One part of the scene, as blocks by column."""

    scene: Scene
    columns: tuple[tuple[Block, ...], ...]

    @staticmethod
    def of(shown: Scene) -> _Part:
        more = [
            inset(remark(f"and {each.more:,} more queries of {each.tree.stream}")) for each in shown.sent if each.more
        ]
        streams = [_stream(each.tree.stream) for each in shown.sent]
        cards = [*map(_card, shown.cards), *more]
        return _Part(
            shown, (tuple(streams), tuple(map(_sent, shown.sent)), tuple(map(_joined, shown.joins)), tuple(cards))
        )

    def placed(self, top: float) -> list[list[float]]:
        """The upper edges of all blocks: cards stand one below the other, other blocks beside the cards they serve."""
        streams, sent, joins, cards = self.columns
        right = _spread(cards, [top] * len(cards), top)  # from the top on
        of_card = {card: y + block.height / 2 for card, y, block in zip(self.scene.cards, right, cards, strict=False)}
        wishes = [mean(of_card[use.card] for use in each.uses) for each in self.scene.joins]
        joined = _spread(joins, wishes, top)
        middles = [y + block.height / 2 for y, block in zip(joined, joins, strict=True)]
        of_card |= {use.card: y for each, y in zip(self.scene.joins, middles, strict=True) for use in each.uses}
        left = _spread(sent, [mean(of_card[use.card] for use in each.uses) for each in self.scene.sent], top)
        beside = [y + (block.height - small.height) / 2 for y, block, small in zip(left, sent, streams, strict=True)]
        return [beside, left, joined, right]

    def drawn(self, columns: Sequence[_Column], placed: Sequence[Sequence[float]]) -> Iterator[str]:
        yield from self._lines(columns, placed)
        for at, (column, blocks, tops) in enumerate(zip(columns, self.columns, placed, strict=True)):
            for block, y in zip(blocks, tops, strict=True):
                if at:
                    frame = element("rect", width=column.wide, height=block.height, rx=7, fill="#ffffff", stroke=RULE)
                    block = Block(column.wide, block.height, (frame, *block.parts))
                yield block.at(column.left, y)

    def _lines(self, columns: Sequence[_Column], placed: Sequence[Sequence[float]]) -> Iterator[str]:
        streams, sends, joining, queries = columns
        cards = {card: y + _AT for card, y in zip(self.scene.cards, placed[3], strict=False)}
        joins = {use.card: at for at, each in enumerate(self.scene.joins) for use in each.uses}
        rest = iter(placed[3][len(self.scene.cards) :])
        for at, (sent, block, y) in enumerate(zip(self.scene.sent, self.columns[1], placed[1], strict=True)):
            middle = y + block.height / 2
            start = streams.left + self.columns[0][at].width
            yield curve((start, middle), (sends.left, middle), stroke=_GREY, stroke_width=3)
            for place in dict.fromkeys(joins[use.card] for use in sent.uses if use.card in joins):
                yield curve(
                    (sends.right, middle), (joining.left, placed[2][place] + _AT + 9 * at), stroke=_GREY, stroke_width=2
                )
            direct = [use for use in sent.uses if use.card not in joins]
            turn = joining.left if joining.wide else queries.turn
            yield from _served((sends.right, y, block.height), turn, queries, direct, cards)
            if sent.more:
                end = queries.left, next(rest) + _AT
                yield curve((sends.right, y + block.height - 8), end, stroke=_GREY, stroke_dasharray="4 4")
        for joined, block, y in zip(self.scene.joins, self.columns[2], placed[2], strict=True):
            if joined.beside is not None:
                above = placed[2][self.scene.joins.index(joined.beside)]
                way = f"M{joining.left + 40:.1f} {above + _AT:.1f} V{y:.1f}"
                yield element("path", d=way, stroke=_GREY, stroke_width=2, stroke_dasharray="4 4")
            yield from _served((joining.right, y, block.height), queries.turn, queries, joined.uses, cards)


def _served(
    start: tuple[float, float, float], turn: float, column: _Column, uses: Sequence[Use], cards: Mapping[Card, float]
) -> Iterator[str]:
    """Lines from the right side of a block to cards, level from `turn` on, with the words of each card at its end."""
    x, top, height = start
    for place, use in enumerate(uses):
        y, end = top + height * (place + 1) / (len(uses) + 1), cards[use.card]
        line: dict[str, str | float] = {"stroke": colour(use.card.number), "stroke_width": 2}
        label = _label(use)
        yield curve((x, y), (turn, end), **line)
        yield element("path", d=f"M{turn - 0.5:.1f} {end:.1f} H{column.left:.1f}", **line)
        yield label.at(column.turn + 8, end - label.height)


def _label(use: Use) -> Block:
    """The result of a card's comparison, above its line."""
    rows = [shortened(each, _LABEL) for each in use.says]
    ink = colour(use.card.number)
    words = [text(0, 10 + 14 * at, row, size=11, fill=ink) for at, row in enumerate(rows)]
    return Block(max(width(row, 11) for row in rows), 14 * len(rows) + 2, (titled("".join(words), use.words),))


def _spread(blocks: Sequence[Block], wishes: Sequence[float], top: float) -> list[float]:
    """The upper edges of blocks in a column, each with its middle as near to its wish as the others allow."""
    offsets: list[float] = []
    groups: list[tuple[float, int]] = []  # adjacent blocks: the wish of the first, and their number
    down = 0.0
    for block, wish in zip(blocks, wishes, strict=True):
        offsets.append(down)
        groups.append((wish - block.height / 2 - down, 1))
        while len(groups) > 1 and groups[-2][0] >= groups[-1][0]:
            (second, many), (first, few) = groups.pop(), groups.pop()
            groups.append(((first * few + second * many) / (few + many), few + many))
        down += block.height + _GAP
    starts = [max(start, top) for start, count in groups for _ in range(count)]
    return [start + offset for start, offset in zip(starts, offsets, strict=True)]


# --- the blocks of each column ---------------------------------------------------------------------------------


def _stream(name: str) -> Block:
    shown = shortened(name, 20)
    across = width(shown, 13) + 28
    pill = element("rect", width=across, height=30, rx=15, fill="#4a5560")
    label = text(across / 2, 19.5, shown, size=13, fill="#ffffff", bold=True, anchor="middle")
    return Block(across, 30, (titled(pill + label, f'stream "{name}"'),))


def _sent(sent: SentStream) -> Block:
    count = sum(len(use.card.names) for use in sent.uses)
    whole = f"{count:,}" if not sent.more else f"{count:,} of {count + sent.more:,}"
    title = sent.tree.stream, f"for {whole} {'query' if whole == '1' else 'queries'}"
    return inset(_shared(title, [("", tree_block(lines(sent.tree)))], sent.uses))


def _joined(joined: Joined) -> Block:
    forest = joined.forest
    count = sum(len(use.card.names) for use in joined.uses)
    served = f"{count:,} queries" if count > 1 else "one query"
    trees = [(name, tree_block(each)) for name, each in joined_lines(forest)] if len(joined.uses) > 1 else []
    below = [f"also fires for windows of {' and '.join(map(number_text, each))}" for each in forest.smaller]
    below += [joined.shares] if joined.shares else []
    shown = _shared((f"{forest.kind} join", f"{' ⋈ '.join(forest.streams)}, for {served}"), trees, joined.uses)
    return inset(stacked((shown, *map(remark, below)), 8))


def _shared(title: tuple[str, str], trees: Sequence[tuple[str, TreeBlock]], uses: Sequence[Use]) -> Block:
    """Trees for several cards, under their names, with a column for each card."""
    head = heading(*title)
    x = max(head.width + 20, *(tree.width + 24 for _, tree in trees), 0)
    columns = [tree.columns(x, uses, place) for place, (_, tree) in enumerate(trees)]
    blocks = [
        stacked((remark(name), block), 2) if name else block for (name, _), block in zip(trees, columns, strict=True)
    ]
    badges = [badge(x + COLUMN * at, 8, use.card.number) for at, use in enumerate(uses)]
    block = stacked((head, *blocks), 8)
    return Block(x + COLUMN * (len(uses) - 1) + 8, block.height, (*block.parts, *badges))


def _card(card: Card) -> Block:
    named = card.names[:_NAMED]
    left = len(card.names) - len(named)
    names = ", ".join(named) + (f" and {left:,} more" if left else "")
    if card.forest is None:
        return inset(stacked((heading(names, ""), remark(card.reason or "")), 6))
    ink, forest = colour(card.number), card.forest
    verb = "reads" if len(card.names) == 1 else "read alike"
    if card.joins:
        below = [stacked((remark(name), tree_block(each, ink)), 2) for name, each in joined_lines(forest)]
        small = f"{verb} the {forest.kind} join of {' and '.join(forest.streams)}"
    else:
        below = [tree_block(lines(tree), ink) for tree in forest.trees]
        small = f"{verb} {' and '.join(forest.streams)}"
    return inset(stacked((heading(names, small, card.number), *below), 8), stripe=ink)


# --- blocks: pieces drawn at the origin, with a size, so that they can be stacked, framed and put anywhere --------

COLOURS = (
    *("#3b6ea5", "#c2702f", "#4f8a5b", "#a94f5a", "#7764a8", "#2f8a90"),
    *("#b0628f", "#8a7433", "#5c7a89", "#6d8b3c", "#94594a", "#54549a"),
)
INK, FAINT, RULE = "#2b2b2b", "#77736b", "#d9d4ca"
_SIGNS = {WINDOW: ("#e8f0f5", "#2d6079"), AGGREGATE: ("#f0ebf5", "#6a4c8c"), JOIN: ("#f6eae6", "#94503c")}
_SELECTION = ("#eef2e6", "#566b2c")
_LINE, _NOTE, _INDENT, COLUMN = 19, 15, 15, 20
_LONGEST_NAME, _NOTE_WIDTH, _LONGEST_NOTE, _NOTE_ROWS = 32, 34, 48, 6
_MOST_LINES = 40
"""The most elements of a tree that are shown."""


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


def remark(words: str) -> Block:
    """Small print in several lines."""
    rows = wrapped(words, 40, 4)
    parts = [text(0, 11 + 14 * at, row, size=11, fill=FAINT) for at, row in enumerate(rows)]
    return Block(max(width(row, 11) * 0.9 for row in rows), 14 * len(rows), (titled("".join(parts), words),))


@dataclass(frozen=True, slots=True)
class TreeBlock(Block):
    """A tree, with the place of each element that is sent and where its name ends."""

    rows: tuple[tuple[Steps, float, float], ...] = ()

    def columns(self, x: float, uses: Sequence[Use], place: int = 0) -> Block:
        """The tree with a column from `x` on for each card that uses it, and a bullet for every element it needs."""
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
        for sign, words in line.notes:
            note = _note(sign, words)
            parts.append(note.at(x + 12, y + 1))
            y, across = y + note.height + 4, max(across, x + 12 + note.width)
    if (left := len(compact) - _MOST_LINES) > 0:
        parts.append(text(0, y + 14, f"and {left:,} more elements", size=11, fill=FAINT))
        y, across = y + _LINE, max(across, 160)
    return TreeBlock(across, y, tuple(parts), tuple(rows))


def _compact(lines: Sequence[TreeLine]) -> list[tuple[int, TreeLine]]:
    """Elements with their depths; one without marks and notes that has a single child is joined to it, as in `a/b`."""
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
    """A mark: filled for an element sent completely, a ring for anything less."""
    if mark == "•":
        return element("circle", cx=x, cy=y, r=4.5, fill=ink)
    return element("circle", cx=x, cy=y, r=4, fill="#ffffff", stroke=ink, stroke_width=1.5)


def _note(sign: str, content: str) -> Block:
    """An annotation in its box."""
    paper, ink = _SIGNS.get(sign, _SELECTION)
    rows = wrapped(content, _NOTE_WIDTH, _NOTE_ROWS, _LONGEST_NOTE)
    before = width(sign, 11) + 12
    across = before + max(width(row, 11, mono=True) for row in rows) + 6
    down = _NOTE * len(rows) + 4
    box = element("rect", width=across, height=down, rx=4, fill=paper)
    words = [text(before, 13 + _NOTE * at, row, size=11, mono=True) for at, row in enumerate(rows)]
    markup = "".join((box, text(6, 13, sign, size=11, fill=ink, bold=True), *words))
    return Block(across, down, (titled(markup, f"{sign} {content}"),))


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
    """The legend of the signs, in as many lines as needed."""
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
