"""Tokens in JSON (LAWS 7.6): the same streams in both formats, types that follow what has come, and what is bad."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest

from anabranch.errors import BadItem, DynamicError
from anabranch.law.history.document import EditedDocument
from anabranch.law.history.timeline import answer
from anabranch.stream.elements import Place, StreamElement, StreamToken
from anabranch.stream.limits import Limits
from anabranch.stream.reading.json_items import parse_line, to_json
from anabranch.stream.reading.source import Source
from history.asking import Asked, elements
from history.following import Asking, Followed
from history.hosting import Case, Law, replayed
from history.in_tokens import TokenWriter
from history.test_tokens import MORE_QUERIES
from mass import Mass
from spark.bare import BareTrunk


def read(lines: Iterable[str], name: str = "s") -> list[StreamElement]:
    """Lines of JSON as elements of a stream."""
    return [
        parse_line(line.encode(), Place(name, "text", number), Limits(), "item") for number, line in enumerate(lines)
    ]


def in_json(text: str) -> list[str]:
    """The elements in the content of a root, each as a line of JSON."""
    return list(map(to_json, elements(text)))


class TokenLines(TokenWriter):
    """Streams of tokens that JSON can say: none brings a text beside something else, and items are called `item`."""

    def content(self, depth: int) -> str:
        return self.one(self.number(), self.plain(depth)) if depth > 0 else self.number()

    def element(self, depth: int, attributes: str = "") -> str:
        """An element in a token, or a whole item, which is deeper."""
        return f"<item{attributes}>{self.plain(depth)}</item>" if depth > 1 else self.plain(depth)

    def plain(self, depth: int) -> str:
        """An element with an attribute and elements, or with text."""
        name = self.one("a", "a", "b")
        if depth > 0 and self.likely(0.5):
            return f'<{name} k="{self.number()}">{self.plain(depth - 1)}</{name}>'
        inner = self.region(0) if self.likely(0.3) else self.number()
        return f"<{name}>{inner}</{name}>"

    def region(self, depth: int) -> str:
        self.ids += 1
        self.chains[f"m{self.ids}"] = self.ids
        return f'<s:mutable id="m{self.ids}">{self.number()}</s:mutable>'


def query_of(random: Random) -> str:
    """A random query whose answer is XML: one that shows entries as they are would be JSON over JSON."""
    inner = random.choice(MORE_QUERIES) if random.random() < 0.3 else Asking(random).any_query("s")
    return f"<all>{{ {inner} }}</all>"


def test_both_formats_answer_alike(mass: Mass) -> None:
    """The law shows the same behind each element of a random stream, be it in XML or in JSON."""
    compared = 0
    for seed in mass.cases(2_000):
        random = Random(seed)
        text, query = TokenLines(random).stream(random.choice((10, 20, 30))), query_of(random)
        in_xml, other = Asked(query, s=text), Asked(query, s="")
        for element, line in zip(elements(text), read(in_json(text)), strict=True):
            take(in_xml.documents["s"], element)
            take(other.documents["s"], line)
            assert shown_or_failed(in_xml) == shown_or_failed(other), seed
            compared += 1
        reasons = [[each.reason for each in asked.documents["s"].admission.dead] for asked in (in_xml, other)]
        assert reasons[0] == reasons[1]
    assert compared > 10 * mass.done


def shown_or_failed(asked: Asked) -> str:
    """What the law shows, or why it cannot."""
    try:
        return answer(asked.query, asked.documents).text
    except DynamicError as error:
        return f"{error.code}: {error.message}"


def take(document: EditedDocument, element: StreamElement) -> None:
    """Apply an element, whether good or bad."""
    at = document.admission.reached() if element.at is None else Fraction(element.at)
    assert [*document.take(element, at), *document.admission.dead]


def followed(query: str, lines: Iterable[str]) -> Followed:
    """A query over a stream of JSON, in production and by the law."""
    case = Followed(query, s="")
    case.given = {"s": [read(lines)]}
    return case


@pytest.mark.parametrize("put_away", [False, True])
def test_production_shows_what_the_law_shows(put_away: bool, mass: Mass) -> None:
    """After every token, for random queries, also with the state put away and read again between any two."""
    for seed in mass.cases(1_000):
        random = Random(seed)
        lines = in_json(TokenLines(random).stream(20))
        assert list(followed(query_of(random), lines).run(put_away=put_away)), seed


def test_random_streams_on_a_trunk(mass: Mass, tmp_path: Path) -> None:
    """A trunk shows after every moment what the law shows, however the lines were cut into epochs and shards."""
    for seed in mass.cases(60):
        random, folder = Random(seed), tmp_path / str(seed)
        folder.mkdir()
        lines = in_json(TokenLines(random).stream(40))
        (folder / "s.jsonl").write_text("".join(f"{line}\n" for line in lines))
        source = Source("s", folder / "s.jsonl", "json", updates=True)
        queries = {f"q{number}": query_of(random) for number in range(6)}
        trunk = BareTrunk(folder / "state", [source], Random(seed), finite=True)
        trunk.strands = seed % 4
        trunk.run(queries, [300, 1_000, 5_000], [1, 2, 3])
        for name, query in queries.items():
            law = Law.of(Case(query, {"s": []}), [source])
            assert replayed(trunk.log, name) == law.shown, query
            bad = {(each.place.offset, each.reason) for each in law.bad}
        letters = [each for each in trunk.log.dead_letters() if each.subscription is None]
        assert bad == {(each.place.offset, each.reason) for each in letters}


@pytest.mark.mass
def test_streams_are_hard_enough() -> None:
    """Most lines are good tokens, and something shows."""
    tokens = shown = bad = 0
    for seed in range(30):
        lines = in_json(TokenLines(Random(seed)).stream(30))
        case = followed('<o>{ stream("s")/root/node() }</o>', lines)
        tokens += sum(isinstance(each, StreamToken) for each in case.given["s"][0])
        shown += len({text for _, text in case.run()})
        bad += len(case.law["s"].admission.dead)
    assert (tokens > 500, shown > 300, bad > 10) == (True, True, True)


def test_lines_are_written_as_they_are_read() -> None:
    """The wire gives every token back, with keys and types."""
    lines = [
        '{"$start": {"kind": "mutable", "id": "1", "at": 2}}',
        '{"$open": {"in": "1", "content": [{"@k": 5, "a": "5"}]}}',
        '{"$open": {"in": "1", "content": {"odd key": "5"}}}',
        '{"$append": {"in": "1", "content": "7"}}',
        '{"$append": {"in": "1", "content": true}}',
        '{"$append": {"in": "1", "content": {"b": [1, "2"], "c": {"$mutable": {"id": "3", "content": "4"}}}}}',
        '{"$close": {"in": "1", "name": "odd key", "at": 2.5}}',
        '{"$start": {"kind": "replace", "target": "3", "id": "4"}}',
        '{"$end": {"id": "4"}}',
    ]
    assert [to_json(each) for each in read(lines)] == lines


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"$open": {"content": {}}}', "'s:open' needs exactly one element, which it opens"),
        ('{"$open": {}}', "'s:open' needs exactly one element, which it opens"),
        ('{"$open": {"content": {"a": 1, "b": 2}}}', "'s:open' needs exactly one element, which it opens"),
        ('{"$open": {"content": {"a": [1, 2]}}}', "'s:open' needs exactly one element, which it opens"),
        ('{"$open": {"content": {"$mutable": {"id": "1"}}}}', "'s:open' needs exactly one element, which it opens"),
        ('{"$open": {"content": 5}}', "'s:open' must not hold text"),
        ('{"$open": {"content": {"a": 1, "b": []}}}', "the array of 'b' has no members: send it with its object"),
        ('{"$append": {"content": {"a": []}}}', "the array of 'a' has no members: send it with its object"),
        ('{"$append": {"content": {"@a": 1}}}', "an attribute in the content of '$append'"),
        ('{"$append": {"content": {"$replace": {"target": "1"}}}}',
         "key '$replace' is a reserved key that cannot stand here"),
        ('{"$close": {"content": 1}}', "'s:close' has no attribute 'content'"),
        ('{"$end": {}}', "'s:end' needs 'id'"),
        ('{"a": {"$open": {}}}', "key '$open' is a reserved key that cannot stand here"),
    ],
)  # fmt: skip
def test_bad_lines(line: str, reason: str) -> None:
    """Case 133: each is bad by itself, with the reason."""
    with pytest.raises(BadItem) as failed:
        read([line])
    assert failed.value.message == reason
