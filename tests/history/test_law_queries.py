"""Queries 1 and 2 of the history paper's section 4 on generated streams: what is on display after every update.

What must be there is kept in plain Python dictionaries beside the stream, and written from the paper's words.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from random import Random

from history.asking import Asked
from papers import BOOKS, TICKERS

PUBLISHERS = ("Wiley", "Wiley", "Elsevier")
AUTHORS = ("Smith", "Smith", "Jones")


def displays(query: str, name: str, steps: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """After each step of a stream what is on display, beside what is expected."""
    asked = Asked(query, **{name: "".join(text for text, _ in steps)})
    shown = {int(at): text for at, text in asked.timeline()}
    display = ""
    for number, (_, expected) in enumerate(steps, 1):
        display = shown.get(number, display)
        yield display, expected
    assert not asked.documents[name].admission.dead
    assert not asked.dead


class Books:
    """Publishers with books; each book's author and price, each publisher's name, and each book may change."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.time = 0
        self.publishers: dict[str, str] = {}
        self.books: dict[str, tuple[str, str, int] | None] = {}

    def steps(self, length: int) -> Iterator[tuple[str, str]]:
        yield self.biblio(0), self.expected()
        yield self.biblio(1), self.expected()
        for _ in range(length):
            yield self.update(), self.expected()

    def at(self) -> str:
        self.time += 1
        return f's:at="{self.time}"'

    def biblio(self, number: int) -> str:
        at = self.at()
        self.publishers[f"p{number}"] = self.random.choice(PUBLISHERS)
        books = "".join(
            f'<s:mutable id="b{number}{each}">{self.book(f"b{number}{each}", 0)}</s:mutable>' for each in range(3)
        )
        name = self.publishers[f"p{number}"]
        return f'<biblio {at}><s:mutable id="p{number}"><publisher>{name}</publisher></s:mutable>{books}</biblio>'

    def book(self, key: str, edition: int) -> str:
        """A book with two regions, whose ids say which edition they are in."""
        author, price = self.random.choice(AUTHORS), self.random.randint(5, 120)
        self.books[key] = (f"{key}e{edition}", author, price)
        return (
            f"<books><title>{key}e{edition}</title>"
            f'<author><s:mutable id="{key}e{edition}a"><lastname>{author}</lastname></s:mutable></author>'
            f'<s:mutable id="{key}e{edition}p"><price>{price}</price></s:mutable></books>'
        )

    def update(self) -> str:
        at = self.at().removeprefix("s:")
        kind = self.random.choice(("publisher", "author", "author", "price", "price", "price", "edition", "delete"))
        if kind == "publisher":
            key = self.random.choice(list(self.publishers))
            self.publishers[key] = self.random.choice(PUBLISHERS)
            return f'<s:replace target="{key}" {at}><publisher>{self.publishers[key]}</publisher></s:replace>'
        key = self.random.choice(list(self.books))
        book = self.books[key]
        if kind == "delete" and book is not None:
            self.books[key] = None
            return f'<s:replace target="{key}" {at}/>'
        if kind == "edition" or book is None:
            return f'<s:replace target="{key}" {at}>{self.book(key, self.time)}</s:replace>'
        title, author, price = book
        if kind == "author":
            author = self.random.choice(AUTHORS)
            self.books[key] = title, author, price
            return f'<s:replace target="{title}a" {at}><lastname>{author}</lastname></s:replace>'
        price = self.random.randint(5, 120)
        self.books[key] = title, author, price
        return f'<s:replace target="{title}p" {at}><price>{price}</price></s:replace>'

    def expected(self) -> str:
        """Wiley's books by Smith, in the order of their prices, equal prices in the order of the stream."""
        chosen = [
            book
            for key, book in sorted(self.books.items())
            if book is not None and book[1] == "Smith" and self.publishers[f"p{key[1]}"] == "Wiley"
        ]
        rows = [
            f"<book><title>{title}</title><price>{price}</price></book>"
            for title, _, price in sorted(chosen, key=lambda book: book[2])
        ]
        return f"<books>{''.join(rows)}</books>" if rows else "<books/>"


def test_query_1() -> None:
    """Books move with their price, and come and go with author, publisher and edition."""
    for seed in range(3):
        steps = list(Books(Random(seed)).steps(30))
        assert len({expected for _, expected in steps}) > 8
        for display, expected in displays(BOOKS, "books", steps):
            assert display == expected


class Tickers:
    """Stocks whose quotation changes."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.quotes: dict[str, list[Decimal]] = {}

    def steps(self, length: int) -> Iterator[tuple[str, str]]:
        for time in range(1, length + 1):
            quote = Decimal(self.random.randint(80, 130))
            if time <= 5:
                name = f"n{time}"
                self.quotes[name] = [quote]
                region = f'<s:mutable id="{name}"><quote>{quote}</quote></s:mutable>'
                yield f'<ticker s:at="{time}"><name>{name}</name>{region}</ticker>', self.expected()
            else:
                name = self.random.choice(list(self.quotes))
                self.quotes[name].append(quote)
                yield f'<s:replace target="{name}" at="{time}"><quote>{quote}</quote></s:replace>', self.expected()

    def expected(self) -> str:
        """Those that rose by a tenth since last time, in the order of their rate of change."""
        risen = [
            (name, quotes[-1], quotes[-2])
            for name, quotes in self.quotes.items()
            if len(quotes) > 1 and quotes[-1] >= quotes[-2] * Decimal("1.1")
        ]
        risen.sort(key=lambda each: (each[1] - each[2]) / each[1])
        return "".join(f"<quote><name>{name}</name><quote>{quote}</quote></quote>" for name, quote, _ in risen)


def test_query_2() -> None:
    """Quotes come, go and move as the quotation changes; only the latest pair of each counts."""
    for seed in range(3):
        steps = list(Tickers(Random(seed)).steps(40))
        assert len({expected for _, expected in steps}) > 8
        for display, expected in displays(TICKERS, "tickers", steps):
            assert display == expected
