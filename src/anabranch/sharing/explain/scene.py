"""The contents of a picture of sharing, before it is drawn: the queries, and what each of them uses.

Queries with equal needs are one *card*.
For each stream the picture shows what the trunk sends of it, merged in the order in which the queries were registered;
each card says what its query found in the stream at that time, so a query is compared with one stream, and not with all
queries before it.
Joins that can share their tuples are one.
A picture has room for a few cards of each stream; the other queries are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from anabranch.predicate.writing import number_text
from anabranch.sharing.explain.text import Explained, Verdict, verdicts
from anabranch.sharing.forest import PropertyForest
from anabranch.sharing.match import Lack, is_plain, merge, merge_all, same
from anabranch.sharing.match_joins import SharedWindows, level, merge_all_joins, merge_joins, same_join
from anabranch.sharing.normalize import unjoined, unwindowed
from anabranch.sharing.tree import PropertyTree, Steps

MOST, MOST_CARDS = 12, 60
"""How many cards of a stream are shown, unless another stream needs them too, and how many in all."""


class Room:
    """The room that is left for cards in a picture; `take` reduces it."""

    def __init__(self) -> None:
        self._shown: Counter[str] = Counter()
        self._cards = 0

    def take(self, streams: Iterable[str]) -> bool:
        """Whether there is room for a card that reads these streams."""
        found = set(streams)
        if self._cards == MOST_CARDS or all(self._shown[stream] >= MOST for stream in found):
            return False
        self._shown.update(found)
        self._cards += 1
        return True


@dataclass(frozen=True, slots=True)
class Card:
    """Queries with equal needs; `forest` is None for one that has no property tree, for a reason."""

    number: int
    names: tuple[str, ...]
    forest: PropertyForest | None
    reason: str | None = None

    @property
    def joins(self) -> bool:
        """Whether it is the card of a join."""
        return self.forest is not None and self.forest.kind != "apart"


@dataclass(frozen=True, slots=True)
class Use:
    """A card that uses something shared: its trees, and what it found when it was registered, in short and in full."""

    card: Card
    trees: tuple[PropertyTree, ...]
    says: tuple[str, ...]
    words: str

    def mark(self, place: int, path: Steps) -> str:
        """What the card needs of an element of a tree: all of it (a bullet), some of it (a ring), or nothing."""
        tree = self.trees[place]
        values = [each.path for each in tree.aggregates]
        if path in values or any(each.whole and path[: len(each.path)] == each.path for each in tree.outputs):
            return "•"
        return "◦" if any(each[: len(path)] == path for each in (*values, *(out.path for out in tree.outputs))) else ""


@dataclass(frozen=True, slots=True)
class SentStream:
    """What the trunk sends of a stream; `more` queries that read it are not shown."""

    tree: PropertyTree
    uses: tuple[Use, ...]
    more: int = 0


@dataclass(frozen=True, slots=True)
class Joined:
    """A join with the cards that it serves; `beside` is an earlier join whose windows it shares, `shares` says how."""

    forest: PropertyForest
    uses: tuple[Use, ...]
    beside: Joined | None = None
    shares: str = ""


@dataclass(frozen=True, slots=True)
class Scene:
    """The contents of a picture."""

    cards: tuple[Card, ...]
    sent: tuple[SentStream, ...]
    joins: tuple[Joined, ...]

    def parts(self) -> Iterator[Scene]:
        """The scene divided into parts that have no stream in common; queries that read no stream come last."""
        yield from map(self._of, _together(self.cards))
        if idle := tuple(card for card in self.cards if card.forest is None):
            yield Scene(idle, (), ())

    def _of(self, streams: set[str]) -> Scene:
        cards = [card for card in self.cards if card.forest and streams & set(card.forest.streams)]
        joins = [each for each in self.joins if streams & set(each.forest.streams)]
        order = {use.card: place for place, joined in enumerate(joins) for use in joined.uses}
        cards.sort(key=lambda card: order.get(card, -1))  # those of one join stand together, behind those of none
        return Scene(tuple(cards), tuple(each for each in self.sent if each.tree.stream in streams), tuple(joins))


def scene(queries: Sequence[Explained], more: Mapping[str, int]) -> Scene:
    """The scene of some queries; `more` others of each stream were left out before."""
    left_out = Counter(more)
    cards: list[Card] = []
    room = Room()
    for query in queries:
        streams = set(query.forest.streams) if query.forest else {""}
        place = next((at for at, card in enumerate(cards) if _alike(card.forest, query.forest)), None)
        if place is not None:
            known = cards[place]
            cards[place] = replace(known, names=(*known.names, query.name, *query.alike))
        elif room.take(streams):
            keeps = "; ".join(query.keeps)
            reason = f"{query.reason}: {keeps}" if keeps else query.reason
            cards.append(Card(0, (query.name, *query.alike), query.forest, reason))
        else:
            left_out.update(dict.fromkeys(streams, 1 + len(query.alike)))
    together = {stream: place for place, streams in enumerate(_together(cards)) for stream in streams}
    cards.sort(key=lambda card: together[card.forest.streams[0]] if card.forest else len(together))
    cards = [replace(card, number=number) for number, card in enumerate(cards, 1)]
    if lost := [stream for stream in left_out if stream and stream not in together]:
        cards.append(Card(0, ("and more",), None, f"of streams that are not shown: {', '.join(lost[:MOST])}"))
    return Scene(tuple(cards), tuple(_sent(cards, left_out)), tuple(_joins([card for card in cards if card.joins])))


def _together(cards: Sequence[Card]) -> list[set[str]]:
    """Streams in groups: those that one card reads are in one group."""
    found: list[set[str]] = []
    for card in cards:
        streams = set(card.forest.streams) if card.forest else set()
        touching = [each for each in found if each & streams]
        rest = [each for each in found if not each & streams]
        place = found.index(touching[0]) if touching else len(found)
        found = [*rest[:place], streams.union(*touching), *rest[place:]] if streams else found
    return found


def _alike(first: PropertyForest | None, second: PropertyForest | None) -> bool:
    if first is None or second is None or (first.kind, first.streams) != (second.kind, second.streams):
        return False
    if first.kind != "apart":
        return same_join(first, second)
    return all(same(*pair) for pair in zip(first.trees, second.trees, strict=True))


# --- streams ------------------------------------------------------------------------------------------------


def _sent(cards: Sequence[Card], left_out: Mapping[str, int]) -> Iterator[SentStream]:
    readers: dict[str, list[tuple[Card, PropertyTree]]] = {}
    for card in cards:
        if card.forest:
            needed: dict[str, list[PropertyTree]] = {}
            for tree in unjoined(card.forest) if card.joins else card.forest.trees:
                needed.setdefault(tree.stream, []).append(tree)
            for stream, trees in needed.items():
                readers.setdefault(stream, []).append((card, merge_all(trees)))
    for stream, found in readers.items():
        merged = found[0][1]
        labels = []
        for place, (_, tree) in enumerate(found):
            labels.append(_found(_apart(merged), _apart(tree)) if place else _FIRST)
            merged = merge(merged, tree)
        uses = [
            Use(card, (unwindowed(tree) if is_plain(merged) else tree,), *words)
            for (card, tree), words in zip(found, labels, strict=True)
        ]
        yield SentStream(merged, tuple(uses), left_out.get(stream, 0))


def _apart(tree: PropertyTree) -> PropertyForest:
    return PropertyForest("apart", (tree,))


# --- joins --------------------------------------------------------------------------------------------------


def _joins(cards: Sequence[Card]) -> list[Joined]:
    forests = [card.forest for card in cards if card.forest]
    found: list[Joined] = []
    for served, forest in merge_all_joins(forests):
        merged: PropertyForest | None = forests[served[0]]
        uses: list[Use] = []
        for each in served:
            assert merged is not None
            says, words = _found(merged, forests[each]) if uses else _FIRST if len(served) > 1 else _ALONE
            if forests[each].sizes != forest.sizes:
                says = (*says, f"SELECTJOINRESULT({', '.join(map(number_text, forests[each].sizes))})")
            uses.append(Use(cards[each], forests[each].trees, says, words))
            merged = merge_joins(merged, forests[each])
        beside = next((each for each in found if isinstance(level(each.forest, forest), SharedWindows)), None)
        shares = ""
        if beside is not None:
            words = next(verdicts(beside.forest, forest)).words.removesuffix("; joins by itself")
            shares = f"{words}, with {beside.uses[0].card.names[0]}"
        found.append(Joined(forest, tuple(uses), beside, shares))
    return found


# --- words --------------------------------------------------------------------------------------------------

_FIRST = (("asks first",), "the first to ask for it")
_ALONE = (("has its own join",), "the join serves nobody else")
_SAYS = {
    "path": "adds {}",
    "selection": "widens {}",
    "postselection": "widens the windows",
    "aggregate": "adds {}",
    "window": "relaxes the windows",
    "no window": "opens the windows",
    "join": "opens the join",
}


def _found(stream: PropertyForest, query: PropertyForest) -> tuple[tuple[str, ...], str]:
    """What a query found in a stream, in short and in full."""
    verdict: Verdict = next(verdicts(stream, query))
    short = tuple(_short_words(verdict.lacks)) or ("matches",)
    return (("shares the tuples", *short) if query.kind != "apart" and verdict.lacks else short), verdict.words


def _short_words(lacks: Sequence[Lack]) -> Iterator[str]:
    kinds: dict[str, list[str]] = {}
    for kind, what in lacks:
        # the last step of a path says enough where there is little room; an aggregate is no path
        kinds.setdefault(_SAYS.get(kind, ""), []).append(what if what.endswith(")") else what.rpartition("/")[2])
    for words, whats in kinds.items():
        if words:
            yield words.format(", ".join(dict.fromkeys(whats)))
