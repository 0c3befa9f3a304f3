"""Displays over HTTP: as they are, as they were at any moment, and what had changed; judged by the log's own replay."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.algebra.display.display import Edit, Insert, Remove
from anabranch.service.answers import displays as module
from anabranch.service.answers.displays import DisplayHistory, MomentStretch, StretchStore
from anabranch.service.answers.epochs import EpochIndex
from anabranch.service.answers.text_changes import TextChange, applied, changes_of
from anabranch.service.refusals import NotFound
from anabranch.site_work import NotReady
from anabranch.spark.answers.log import AnswerLog
from anabranch.spark.checkpoint.folder import Checkpoint
from service.sites import ENGINE, ServedSite, served_site, wait_until

pytestmark = pytest.mark.service

BOARD = """
[streams.board]
source = "files"
path = "in"
format = "lines"
updates = true

[streams.numbers]
source = "files"
path = "numbers"
format = "json"
"""
QUERIES = {
    "show": '<show>{ for $p in stream("board")/root/p order by $p/v return $p }</show>',
    "total": 'sum(stream("board")/root/p/v)',
    "best": '(for $o in stream("numbers") order by $o.t descending return { "t": $o.t })[position() <= 3]',
    "grows": 'for $o in stream("numbers") return $o.t',
}
SHOWN = ("show", "total", "best")
N = 'xmlns:s="urn:anabranch:stream"'


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedSite]:
    """A site with displays in XML and JSON that were edited over several epochs."""
    folder = tmp_path_factory.mktemp("displays")
    (folder / "numbers").mkdir()
    random = Random(5)
    with served_site(folder, ENGINE + BOARD, QUERIES) as found:
        for epoch in range(4):
            known = found.get("/api")["epoch"]
            found.add(board(random, epoch))
            found.add("".join(f'{{"t": {random.randrange(1_000)}}}\n' for _ in range(4)), "numbers/a")
            wait_until(lambda known=known: found.get("/api")["epoch"] > known)  # type: ignore[misc]
        found.add(f'<p {N} s:at="999"><v>0</v>end of it</p>\n')
        wait_until(lambda: "end of it" in found.get("/api/subscriptions/show/display")["text"])
        wait_until(lambda: len(found.results("grows")) == 16)
        yield found


def board(random: Random, epoch: int) -> str:
    begin = epoch * 4
    new = (
        f'<p {N} s:at="{begin + n}.25"><s:mutable id="m{begin + n}"><v>{n}</v></s:mutable>é\U0001f600</p>\n'
        for n in range(4)
    )
    targets = (random.randrange(begin + 4) for _ in range(5))
    return "".join(new) + "".join(
        f'<s:replace {N} target="m{target}" at="{begin + 4}.5"><v>{random.randrange(100)}</v></s:replace>\n'
        for target in targets
    )


def path(name: str, what: str) -> str:
    return f"/api/subscriptions/{name}/{what}"


@pytest.mark.parametrize("name", SHOWN)
def test_every_moment_is_what_it_was(site: ServedSite, name: str) -> None:
    """The displays are those of a replay of the log, one after the other, and changes lead from each to the next."""
    log = AnswerLog(Checkpoint.at(site.folder / "state"))
    registration = log.subscription(name)
    assert registration is not None
    page = site.get(path(name, "moments"), limit=1_000)
    assert page["next"] is None
    assert [each["number"] for each in page["moments"]] == list(range(page["total"]))
    found, text = [], ""
    for moment in page["moments"]:
        shown = site.get(path(name, "display"), moment=moment["number"])
        assert shown["at"] == moment["at"]
        assert moment["edits"] > 0
        text = changed(text, shown["changes"])
        assert text == shown["text"]
        check_marks(shown)
        found.append((float(shown["at"]), text))
    expected = [(float(each.at), each.text) for each in log.moments(registration)]
    assert len(expected) > 5
    assert without_repeats(found) == expected
    now = site.get(path(name, "display"))
    assert (now["text"], now["changes"]) == (log.answer(registration).text(), [])
    assert now["at"] == page["moments"][-1]["at"]


def without_repeats(found: list[tuple[float, str]]) -> list[tuple[float, str]]:
    """Without moments that have changed nothing in the end."""
    return [each for before, each in zip([(0.0, ""), *found], found, strict=False) if each[1] != before[1]]


def changed(text: str, changes: list[dict[str, object]]) -> str:
    """A text after changes, applied in turn."""
    for each in changes:
        position, changed_text = each["position"], each["text"]
        assert isinstance(position, int)
        assert isinstance(changed_text, str)
        assert each["length"] == len(changed_text) > 0
        if each["kind"] == "insert":
            text = text[:position] + changed_text + text[position:]
        else:
            assert text[position:].startswith(changed_text)
            text = text[:position] + text[position + len(changed_text) :]
    return text


def check_marks(shown: dict[str, object]) -> None:
    """What came can be marked in the text as it is in the end, by the positions that are told."""
    text, changes = shown["text"], shown["changes"]
    assert isinstance(text, str)
    assert isinstance(changes, list)
    for each in changes:
        if each["kind"] == "insert":
            assert text[each["position"] : each["position"] + each["length"]] == each["text"]


def test_moments_page_by_page(site: ServedSite) -> None:
    """Behind any number, as many as asked for; `next` leads on, and is null at the end."""
    every = site.get(path("show", "moments"))["moments"]
    found, after = [], None
    while True:
        page = site.get(path("show", "moments"), after=after, limit=4)
        assert page["total"] == len(every)
        found += page["moments"]
        after = page["next"]
        if after is None:
            break
        assert after == found[-1]["number"]
    assert found == every
    assert site.get(path("show", "moments"), after=len(every) + 5)["moments"] == []
    assert [each["epoch"] for each in every] == sorted(each["epoch"] for each in every)


def test_what_cannot_be_shown(site: ServedSite) -> None:
    """An answer that only grows has no display (400), there are no moments but those that were (404)."""
    total = site.get(path("show", "moments"))["total"]
    status, told = site.ask(path("show", "display"), moment=total)
    assert (status, told["hint"]) == (404, f"there are 0 to {total - 1}")
    for query in ({"moment": -1}, {"moment": "x"}, {"moment": 1 << 60}):
        assert site.ask(path("show", "display"), **query)[0] == 400
    for what in ("display", "moments"):
        status, told = site.ask(path("grows", what))
        assert (status, told["message"]) == (400, "'grows' has no display: its answer only grows")
        assert site.ask(path("nobody", what))[0] == 404


def test_a_display_before_its_first_moment(tmp_path: Path) -> None:
    """It shows the answer over empty streams and has no moments, also where dead letters are in the log."""
    (tmp_path / "numbers").mkdir()
    with served_site(tmp_path, ENGINE + BOARD, {"show": QUERIES["show"], "total": QUERIES["total"]}) as site:
        site.add("<bad\n")
        wait_until(lambda: site.get("/api/dead-letters")["letters"])
        body = {"name": "mine", "query": QUERIES["total"]}
        assert site.send("POST", "/api/subscriptions", body)[0] == 201
        assert site.get(path("mine", "display")) == {"at": None, "text": "0", "changes": []}
        assert site.get(path("show", "display"))["text"] == "<show/>"
        for name in ("show", "mine"):
            assert site.get(path(name, "moments")) == {"total": 0, "moments": [], "next": None}
        assert site.ask(path("mine", "display"), moment=0)[0] == 404


def test_a_past_whose_beginning_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where retention has dropped it, moments are refused with a hint at what still works: the display as it is."""
    monkeypatch.setattr("anabranch.spark.checkpoint.retention.MIN_EPOCHS", 2)
    (tmp_path / "numbers").mkdir()
    toml = f"{ENGINE}keep = 2\n{BOARD}"
    with served_site(tmp_path, toml, {"total": QUERIES["total"]}) as site, site.events("total") as events:
        for number in range(5):
            site.add(f'<p {N} s:at="{number}"><v>1</v></p>\n')
            while "punctuation" not in next(events).data:
                pass
        for what, query in (("moments", {}), ("display", {"moment": 0})):
            status, told = site.ask(path("total", what), **query)
            assert (status, told["message"]) == (
                404,
                "the beginning of 'total' is no longer kept, and so its past is not",
            )
            assert told["hint"] == "without 'moment', its display is shown as it is now"
        assert site.get(path("total", "display")) == {"at": "4", "text": "5", "changes": []}


def test_a_history_goes_on_where_it_was(tmp_path: Path) -> None:
    """Moments that come later are found without those before being replayed, and a cancelled display stays."""
    (tmp_path / "numbers").mkdir()
    with served_site(tmp_path, ENGINE + BOARD) as site:
        assert site.send("POST", "/api/subscriptions", {"name": "mine", "query": QUERIES["total"]})[0] == 201
        for number in range(3):
            site.add(f'<p {N} s:at="{number}"><v>1</v></p>\n')
            wait_until(lambda number=number: site.get(path("mine", "moments"))["total"] > number)  # type: ignore[misc]
            assert site.get(path("mine", "display"))["text"] == f"{number + 1}"
        assert [site.get(path("mine", "display"), moment=each)["text"] for each in range(3)] == ["1", "2", "3"]
        assert site.send("DELETE", "/api/subscriptions/mine")[0] == 204
        assert site.get(path("mine", "display")) == {"at": "2", "text": "3", "changes": []}
        assert site.get(path("mine", "display"), moment=1)["text"] == "2"


# --- bounds -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [1, 3_000])
def test_stretches_that_were_dropped_are_made_again(
    site: ServedSite, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With next to no memory every moment is still what it was; with stretches of any length."""
    history, expected = history_of(site, StretchStore(most))
    monkeypatch.setattr(module, "_STRETCH_EDITS", 7)
    history.advance()
    for number in Random(1).sample(range(history.total), history.total):
        shown = history.at(number)
        assert (shown.at, shown.text) == (expected[number]["at"], expected[number]["text"])


def test_the_oldest_moments_are_forgotten(site: ServedSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the newest are kept, under the numbers that they have always had."""
    history, expected = history_of(site, StretchStore())
    monkeypatch.setattr(module, "_STRETCH_EDITS", 7)
    monkeypatch.setattr(module, "MOST_MOMENTS", 10)
    monkeypatch.setattr(module, "_TRIMMED", 3)
    history.advance()
    total = history.total
    assert total == len(expected)
    assert [each.number for each in history.moments(-1, 100)] == list(range(total - 10, total))
    for number in range(total - 10, total):
        assert history.at(number).text == expected[number]["text"]
    with pytest.raises(NotFound, match=f"has no moment {total - 11}"):
        history.at(total - 11)


def test_a_long_replay_is_done_by_several_requests(site: ServedSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request replays for some time and says then that it is not done; the next one goes on, and nothing is lost."""
    history, expected = history_of(site, StretchStore())
    monkeypatch.setattr(module, "_SECONDS", -1.0)
    refused = 0
    while history.total < len(expected):
        with pytest.raises(NotReady, match="the past of 'show' is being replayed"):
            history.advance()
        refused += 1
    history.advance()
    assert refused == len(expected)
    assert [history.at(number).text for number in range(history.total)] == [each["text"] for each in expected]


def history_of(site: ServedSite, store: StretchStore) -> tuple[DisplayHistory, list[dict[str, str]]]:
    """A history by itself, and what the service shows at each moment."""
    log = AnswerLog(Checkpoint.at(site.folder / "state"))
    registration = log.subscription("show")
    assert registration is not None
    index = EpochIndex(log, lambda: log.manifests.epochs()[-1])
    total = site.get(path("show", "moments"))["total"]
    expected = [site.get(path("show", "display"), moment=number) for number in range(total)]
    return DisplayHistory(log, index, store, registration), expected


def test_a_store_keeps_so_many_bytes() -> None:
    """The stretches that were used longest ago go first, and all of a display when it is forgotten."""
    store = StretchStore(2_500)
    for first in range(4):
        stretch = MomentStretch.begun(first, "")
        stretch.add((Insert(0, "x" * 400),))
        store.put(1, stretch)
    assert (store.get(1, 0), store.get(1, 1)) == (None, None)
    assert store.get(1, 2) is not None
    assert 0 < store.bytes <= 2_500
    store.forget(1)
    assert (store.get(1, 3), store.bytes) == (None, 0)


# --- changes ----------------------------------------------------------------------------------------------------------


@st.composite
def edited(draw: st.DrawFn) -> tuple[str, list[Edit]]:
    """A text, and edits that fit it one after the other."""
    text = draw(st.text("abcé", max_size=8))
    edits: list[Edit] = []
    size = len(text)
    for _ in range(draw(st.integers(0, 8))):
        position = draw(st.integers(0, size))
        if position < size and draw(st.booleans()):
            removed = Remove(position, draw(st.integers(1, size - position)))
            edits.append(removed)
            size -= removed.length
        else:
            come = draw(st.text("xyz", min_size=1, max_size=4))
            edits.append(Insert(position, come))
            size += len(come)
    return text, edits


@given(edited(), st.sampled_from([0, 2_000]))
def test_changes_are_the_edits_in_one_order(given_edits: tuple[str, list[Edit]], most: int) -> None:
    """Applied in turn they give the text after the edits, from left to right, each at its place in that text."""
    before, edits = given_edits
    after = applied(before, edits)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("anabranch.service.answers.text_changes._MOST_EDITS", most)
        changes = changes_of(before, after, edits)
    text = before
    reached = 0
    for each in changes:
        assert each.position >= reached
        assert each.text
        if each.kind == "insert":
            text = text[: each.position] + each.text + text[each.position :]
            assert after[each.position :].startswith(each.text)
            reached = each.position + len(each.text)
        else:
            assert text[each.position :].startswith(each.text)
            text = text[: each.position] + text[each.position + len(each.text) :]
            reached = each.position
    assert text == after
    assert (changes == []) is (before == after) or most


def test_what_went_and_came_back_is_no_change() -> None:
    """An entry that is replaced by an equal one has not changed; another one is told as what went and what came."""
    assert changes_of("a1b", "a1b", [Remove(1, 1), Insert(1, "1")]) == []
    assert changes_of("a1b", "a2b", [Remove(1, 1), Insert(1, "2")]) == [
        TextChange("remove", 1, "1"),
        TextChange("insert", 1, "2"),
    ]
