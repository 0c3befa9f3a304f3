"""A picture of sharing: streams on the left, then what the trunk sends of them and the joins it makes, queries right.

Every query has a number and a colour, and both stand wherever something is done for it; so a glance at what is sent
tells who shares each element.
The lines between the columns say what a query found when it came.
Columns are as wide as they must be, and what does not hang together stands one below the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean as mean

from anabranch.predicate.writing import number_text
from anabranch.sharing.explain.blocks import (
    COLUMN,
    FAINT,
    Block,
    TreeBlock,
    badge,
    colour,
    framed,
    heading,
    inset,
    legend,
    remark,
    stacked,
    tree_block,
)
from anabranch.sharing.explain.picture import joined_lines, lines
from anabranch.sharing.explain.scene import Card, Joined, Scene, SentStream, Use, scene
from anabranch.sharing.explain.svg import curve, document, element, shortened, text, titled, width
from anabranch.sharing.explain.text import Explained

_MARGIN, _GAP, _CAPTION = 28, 22, 34
_NEAR, _FAR = 60, 100
"""How far columns are apart: more where lines have words, and with the words' width."""
_AT = 19
"""How far below its upper edge a line meets a box."""
_LABEL = 26
"""So many characters of what is said at a line are shown."""
_NAMED = 4
"""So many of the queries that need the same are called by name."""
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
    """Where a column stands; one of nothing takes no room."""

    left: float
    wide: float
    label: float = 0
    """How wide what is said at the lines before it is."""

    @property
    def right(self) -> float:
        return self.left + self.wide

    @property
    def turn(self) -> float:
        """Where lines to it are level at last."""
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
    """What hangs together, as blocks by column."""

    scene: Scene
    columns: tuple[tuple[Block, ...], ...]

    @staticmethod
    def of(shown: Scene) -> _Part:
        more = [_more(each) for each in shown.sent if each.more]
        streams = [_stream(each.tree.stream) for each in shown.sent]
        cards = [*map(_card, shown.cards), *more]
        return _Part(
            shown, (tuple(streams), tuple(map(_sent, shown.sent)), tuple(map(_joined, shown.joins)), tuple(cards))
        )

    def placed(self, top: float) -> list[list[float]]:
        """The upper edges of all blocks: cards stand one below the other, all else beside what it serves."""
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
                shown = framed(block, column.wide) if at else block
                yield shown.at(column.left, y)

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
    """Lines from the right side of a block to cards, level from `turn` on, with what each found above their ends."""
    x, top, height = start
    for place, use in enumerate(uses):
        y, end = top + height * (place + 1) / (len(uses) + 1), cards[use.card]
        line: dict[str, str | float] = {"stroke": colour(use.card.number), "stroke_width": 2}
        label = _label(use)
        yield curve((x, y), (turn, end), **line)
        yield element("path", d=f"M{turn - 0.5:.1f} {end:.1f} H{column.left:.1f}", **line)
        yield label.at(column.turn + 8, end - label.height)


def _label(use: Use) -> Block:
    """What a card found, above its line."""
    rows = [shortened(each, _LABEL) for each in use.says]
    ink = colour(use.card.number)
    words = [text(0, 10 + 14 * at, row, size=11, fill=ink) for at, row in enumerate(rows)]
    return Block(max(width(row, 11) for row in rows), 14 * len(rows) + 2, (titled("".join(words), use.words),))


def _spread(blocks: Sequence[Block], wishes: Sequence[float], top: float) -> list[float]:
    """The upper edges of blocks in a column, each as near to where its middle should be as the others let it be."""
    offsets: list[float] = []
    groups: list[tuple[float, int]] = []  # blocks that touch: where the first would begin, and how many they are
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


# --- blocks -------------------------------------------------------------------------------------------------


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


def _more(sent: SentStream) -> Block:
    return inset(remark(f"and {sent.more:,} more queries of {sent.tree.stream}"))
