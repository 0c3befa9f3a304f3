"""Answers page by page: all pages together are the answer, from any position on, in any sizes, after any restart."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random

import pytest

from mass import some
from service.sites import ENGINE, LINES, ServedSite, served_site, wait_until

pytestmark = pytest.mark.service

DOCUMENTS = """
[streams.x]
source = "files"
path = "documents"
format = "document"

[streams.j]
source = "files"
path = "json"
format = "json"

[streams.board]
source = "files"
path = "board"
format = "lines"
updates = true
"""
QUERIES = {
    "as_it_is": 'for $i in stream("x")/items/i return $i',
    "nested": '<all kind="a&amp;b">{ for $i in stream("x")/items/i return <o><p>{ $i/text() }</p>{ $i/b }</o> }</all>',
    "texts": 'for $i in stream("x")/items/i return string($i/@v)',
    "numbers": '<n>{ for $i in stream("x")/items/i return $i/@n * 2 }</n>',
    "mixed": 'for $i in stream("x")/items/i return ($i/b, string($i/@v), <e/>)',
    "objects": 'for $o in stream("j") return $o',
    "made": 'for $o in stream("j") return { "v": $o.v, "t": $o.t }',
    "show": '<show>{ for $p in stream("board")/root/p return $p }</show>',
    "rare": 'for $i in stream("x")/items/i where $i/@n = 5 return <five/>',
    "never": '<never>{ for $i in stream("x")/items/i where $i/@n = -1 return $i }</never>',
}
JSON = ("objects", "made")
EPOCHS = 8
ENDS = {
    "numbers": ("documents/a", '<i n="999" v=""/>\n', "1998"),
    "objects": ("json/a", '{"v": null, "t": 999}\n', "999"),
    "show": ("board/a", "<p>end of it</p>\n", "end of it"),
}
"""By subscription: a last item, and what it gives."""
N = 'xmlns:s="urn:anabranch:stream"'
TEXTS = (
    "",
    "a",
    " a  b ",
    "line one\nline two",
    "<![CDATA[<raw> & ]]\n]]>",
    "x&#13;y",
    "&lt;&amp;&#10;",
    "\u2028é\U0001f600",
)


def items(random: Random, numbers: range) -> str:
    return "".join(
        f'<i n="{number}" v="{random.choice(("", "one", "two words", "&quot;q&quot;"))}">{random.choice(TEXTS)}'
        f"{f'<b>{random.choice(TEXTS)}<c/></b>' * random.randrange(3)}</i>\n"
        for number in numbers
    )


def objects(random: Random, numbers: range) -> str:
    values = ("1", '"a\\r\\nb"', '"\\u2028"', "[1, {}]", "null", '"two words"')
    return "".join(f'{{"v": {random.choice(values)}, "t": {number}}}\n' for number in numbers)


def edits(random: Random, numbers: range) -> str:
    fresh = "".join(f'<p {N}>{n}<s:mutable id="m{n}"><v>{n}</v></s:mutable></p>\n' for n in numbers)
    texts = [each for each in TEXTS if "\n" not in each]
    targets = (random.randrange(numbers.stop) for _ in range(3))
    return fresh + "".join(
        f'<s:replace {N} target="m{target}"><v>{random.choice(texts)}</v></s:replace>\n' for target in targets
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedSite]:
    """A site whose answers are of all kinds, over several epochs."""
    folder = tmp_path_factory.mktemp("answers")
    for name in ("documents", "json", "board"):
        (folder / name).mkdir()
    (folder / "documents" / "a").write_text("<items>\n")
    random = Random(3)
    with served_site(folder, ENGINE + LINES + DOCUMENTS, QUERIES) as found:
        for epoch in range(EPOCHS):
            numbers = range(epoch * 5, epoch * 5 + random.randrange(1, 6))
            found.add(items(random, numbers), "documents/a")
            found.add(objects(random, numbers), "json/a")
            found.add(edits(random, numbers), "board/a")
            wait_until(partial(is_beyond, found, found.get("/api")["epoch"]))
        for name, (file, text, mark) in ENDS.items():
            found.add(text, file)
            wait_until(partial(has, found, name, mark))
        yield found


def is_beyond(site: ServedSite, epoch: int) -> bool:
    found: int = site.get("/api")["epoch"]
    return found > epoch


def has(site: ServedSite, name: str, mark: str) -> bool:
    return any(mark in text for _, text in site.results(name))


def whole(site: ServedSite, name: str, limit: int) -> str:
    """An answer put together from its pages."""
    page = site.page(name, limit=1)
    end = "\n" if page["opening"] == "" and site.committed(name).frame.told('{"').json and name in JSON else ""
    texts = [f"{text}{end}" for _, text in site.results(name, limit=limit)]
    return f"{page['opening']}{''.join(texts)}{page['closing']}"


@pytest.mark.parametrize("name", [each for each in QUERIES if each != "never"])
def test_all_pages_together_are_the_answer(site: ServedSite, name: str) -> None:
    """To the byte, with pages of any size; of a display, the update stream that makes it."""
    expected = "".join(site.committed(name).pieces())
    for limit in some((3, 1, 2, 7, 1_000)):
        assert whole(site, name, limit) == expected


def test_what_answers_are_made_of(site: ServedSite) -> None:
    """The kind of an answer and what stands around its results."""
    found = {name: site.page(name, limit=1) for name in QUERIES}
    assert {name: page["answer"] for name, page in found.items()} == {
        **dict.fromkeys(QUERIES, "xml"),
        **dict.fromkeys(JSON, "json"),
        "show": "display",
    }
    assert (found["nested"]["opening"], found["nested"]["closing"]) == ('<all kind="a&amp;b">', "</all>")
    assert (found["made"]["opening"], found["objects"]["closing"]) == ("", "")
    never = found["never"]
    assert (never["opening"], never["closing"], never["answers"]) == ("<never>", "</never>", [])
    assert (never["next"], never["more"], never["whole"]) == (None, False, True)


@pytest.mark.parametrize("name", QUERIES)
def test_a_page_begins_at_any_position(site: ServedSite, name: str) -> None:
    """Behind `after`, in front of `before`, and the newest: always the results that are there in the whole answer."""
    every = site.results(name)
    positions = [tuple(map(int, position.split("-"))) for position, _ in every]
    assert positions == sorted(set(positions))
    random = Random(name)
    for number in random.sample(range(len(every)), min(len(every), 6)):
        position, limit = every[number][0], random.randrange(1, 12)
        page = site.page(name, after=position, limit=limit)
        assert given(page) == every[number + 1 : number + 1 + limit]
        assert page["more"] is (number + 1 + limit < len(every))
        assert page["next"] == (given(page)[-1][0] if given(page) else position)
        page = site.page(name, before=position, limit=limit)
        assert given(page) == every[max(0, number - limit) : number]
        assert page["more"] is (number - limit > 0)
        assert page["next"] == (given(page)[-1][0] if given(page) else None)
        assert given(site.page(name, last=limit)) == every[-limit:]
    beyond = site.get("/api")["epoch"] + 5
    assert given(site.page(name, after=f"{beyond}-0")) == []
    assert given(site.page(name, before=f"{beyond}-0", limit=1_000)) == every
    assert given(site.page(name, before="0-0")) == []


def given(page: dict[str, list[dict[str, str]]]) -> list[tuple[str, str]]:
    return [(each["position"], each["text"]) for each in page["answers"]]


@pytest.mark.parametrize("name", [each for each in QUERIES if each != "never"])
def test_events_are_the_pages(site: ServedSite, name: str) -> None:
    """From the beginning and from any position, by header or parameter, whatever line ends are in a text."""
    every = site.results(name)
    assert site.follow(name, len(every)) == every
    for number in Random(name).sample(range(len(every) - 1), min(len(every) - 1, 3)):
        rest = every[number + 1 :]
        assert site.follow(name, len(rest), last=every[number][0]) == rest
        assert site.follow(name, len(rest), after=every[number][0]) == rest


def test_an_index_without_a_result_goes_on_with_the_next_epoch(site: ServedSite) -> None:
    """A position behind the last result of an epoch, or in an epoch without any, begins with the next result."""
    every = site.results("numbers")
    epoch = every[0][0].split("-")[0]
    rest = [each for each in every if int(each[0].split("-")[0]) > int(epoch)]
    assert site.results("numbers", after=f"{epoch}-999999999") == rest
    assert site.follow("numbers", len(rest), last=f"{epoch}-999999999") == rest
    (five,) = site.results("rare")
    assert site.results("rare", after="0-0") == [five]
    assert site.results("rare", after=five[0]) == []


def test_what_cannot_be_asked(site: ServedSite) -> None:
    """Wrong positions and sizes, and two places at once, are refused with 400; an unknown name with 404."""
    path = "/api/subscriptions/numbers/answers"
    wrong = ("", "1", "-1", "1-", "1-2-3", " 1-2", "1-2\n", "x-1", "\uff11-2", "9" * 19 + "-1", "0x1-1", "1--1")
    for text in wrong:
        assert site.ask(path, after=text)[0] == 400
        assert site.ask(path, before=text)[0] == 400
    for query in ({"limit": 0}, {"limit": 1_001}, {"last": 0}, {"limit": "x"}, {"after": "1-1", "last": 3}):
        assert site.ask(path, **query)[0] == 400
    assert site.ask("/api/subscriptions/nobody/answers")[0] == 404
    for header in ("x", "1", "1-1-1", "\x7f"):
        with site.opened(path, {"Accept": "text/event-stream", "Last-Event-ID": header}) as reply:
            assert reply.status == 400
    with site.opened(f"{path}?last=3", {"Accept": "text/event-stream"}) as reply:
        assert reply.status == 400
    with site.opened("/api/subscriptions/nobody/answers", {"Accept": "text/event-stream"}) as reply:
        assert reply.status == 404


def test_positions_are_the_same_after_a_restart(tmp_path: Path) -> None:
    """What was read before is not read again, and nothing is left out: pages and events go on behind a position."""
    query = {"all": '<all>{ for $p in stream("s")/root/p return $p }</all>'}
    with served_site(tmp_path, ENGINE + LINES, query) as site:
        site.add("<p>1</p>\n<p>2</p>\n<p>3</p>\n")
        before = site.follow("all", 3)
    with served_site(tmp_path, ENGINE + LINES, query) as site:
        assert site.results("all") == before
        site.add("<p>4</p>\n<p>5</p>\n")
        more = site.follow("all", 3, last=before[1][0])
        assert [text for _, text in more] == ["<p>3</p>", "<p>4</p>", "<p>5</p>"]
        assert more[0] == before[2]
        assert site.results("all") == [*before, *more[1:]]
        assert site.results("all", after=before[2][0]) == more[1:]


def test_another_query_begins_another_answer(tmp_path: Path) -> None:
    """Positions go on growing, and a position of the former answer begins with the first result of the new one.

    Until its first epoch the new one is empty; a client that follows gets the end of the former and then the new one.
    """
    with served_site(tmp_path, ENGINE + LINES) as site:
        mine = "/api/subscriptions/mine"
        body = {"query": '<a>{ for $p in stream("s")/root/p return <one>{ $p/text() }</one> }</a>'}
        assert site.send("POST", "/api/subscriptions", {"name": "mine", **body})[0] == 201
        waiting = site.page("mine")
        assert (waiting["opening"], waiting["answers"], waiting["whole"]) == ("<a>", [], True)
        with site.events("mine") as events:
            site.add("<p>1</p>\n<p>2</p>\n")
            former = [(event.id or "", event.data) for _, event in zip(range(2), events, strict=False)]
            assert [text for _, text in former] == ["<one>1</one>", "<one>2</one>"]
            other = {"query": 'for $p in stream("s")/root/p return <two>{ $p/text() }</two>'}
            assert site.send("PUT", mine, other)[0] == 200
            assert site.page("mine")["answers"] == []
            site.add("<p>3</p>\n")
            event = next(events)
            assert event.data == "<two>3</two>"
        assert site.results("mine") == [(event.id, event.data)]
        assert site.follow("mine", 1, last=former[0][0]) == [(event.id, event.data)]
        assert site.results("mine", after=former[1][0]) == [(event.id, event.data)]
        assert int((event.id or "").split("-")[0]) > int(former[1][0].split("-")[0])
