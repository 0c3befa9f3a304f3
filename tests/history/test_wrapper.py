"""The universal wrapper: section 3 by the machinery alone, the slips of LAWS 5.6, and what is remembered."""

from __future__ import annotations

import json
import random
from decimal import Decimal

import pytest

from anabranch.law.history.timeline import answer, arrivals
from anabranch.stream.tree import Name
from history.asking import Asked
from history.tokenized import Applied, events, random_stream, written
from history.writing import Writer
from mass import enough, some
from models.pipeline.combining import Pipeline
from models.pipeline.events import EndRegion, Now, StartElement
from models.pipeline.qualifier import Qualifier
from models.pipeline.showing import Shown
from models.pipeline.steps import Child
from models.pipeline.temporal import SNAPSHOT, Qualified
from models.pipeline.tokens import Tokens
from models.pipeline.totals import Total
from models.pipeline.transformer import Mapped, run

SECTION_3 = """
sS(0,1), sE(1,root), sM(1,2), sE(2,a),
now(1), sM(2,3), sE(3,b), cD(3,X), eE(3,b), eM(2,3),
now(2), sR(3,4), sE(4,b), cD(4,Y), eE(4,b), eR(3,4),
now(3), sR(3,4), sE(4,b), cD(4,Z), eE(4,b), eR(3,4),
eE(2,a), eM(1,2),
now(4), sR(2,5), sE(5,a), sE(5,b), cD(5,W), eE(5,b), eE(5,a), eR(2,5)
"""


def path(text: str) -> tuple[Pipeline, Shown]:
    """The pipeline of a path such as `a#1/b`, and the display at its end."""
    display = Shown()
    stages: list[Mapped | Qualified] = []
    for step in text.split("/"):
        at = min((step.find(mark) for mark in "#?" if mark in step), default=len(step))
        asked = Qualifier.parse(step[at:]) if at < len(step) else SNAPSHOT
        stages += [Mapped(Child(Name(step[:at]))), Qualified(asked)]
    return Pipeline(*stages, display), display


def shown(query: str, stream: str) -> dict[str, str]:
    """By time, what is on display when the last region that came then is complete."""
    pipeline, display = path(query)
    found: dict[str, str] = {}
    now = "0"
    for event in events(stream):
        pipeline.take(event)
        now = f"{event.at:f}" if isinstance(event, Now) else now
        if isinstance(event, EndRegion | Now):
            found[now] = display.text.replace("<b>", "").replace("</b>", " ").strip()
    return found


@pytest.mark.parametrize(
    ("query", "answers"),
    [
        ("a/b", ["X", "Y", "Z", "W"]),
        ("a#1/b", ["", "", "", "Z"]),
        ("a#1/b#2", ["", "", "", "X"]),  # the erratum in LAWS 5.4; the paper has Z
        ("a/b#1", ["", "X", "Y", ""]),
        ("a/b#[1]", ["X", "Y X", "Z Y", "W"]),
    ],
)
def test_section_3(query: str, answers: list[str]) -> None:
    """The table of history 3 at t1 to t4."""
    assert list(shown(query, SECTION_3).values()) == answers


REGION = """
sS(0,0) sE(0,r) now(1) sM(0,1) sE(1,b) cD(1,X) eE(1,b) eM(0,1) now(2) sR(1,2) sE(2,b) cD(2,Y) eE(2,b) eR(1,2) now(5)
"""
NESTED = """
sS(0,0) sE(0,r) now(1) sM(0,1) sE(1,a) sM(1,2) sE(2,b) cD(2,X) eE(2,b) eM(1,2)
now(2) sR(2,3) sE(3,b) cD(3,Y) eE(3,b) eR(2,3) eE(1,a) eM(0,1) now(4) sR(1,4) sE(4,a) eE(4,a) eR(1,4) now(10)
"""
DELETED = """
sS(0,0) sE(0,r) now(1) sM(0,1) sE(1,b) cD(1,X) eE(1,b) eM(0,1) now(3) sR(1,2) eR(1,2)
now(5) sR(1,3) sE(3,b) cD(3,Y) eE(3,b) eR(1,3)
"""
TWICE = """
sS(0,0) sE(0,r) sM(0,1) sE(1,b) cD(1,X) eE(1,b) eM(0,1) sR(1,3) sE(3,b) cD(3,Y) eE(3,b) eR(1,3)
sR(3,3) sE(3,b) cD(3,Z) eE(3,b) eR(3,3)
"""
SIBLINGS = """
sS(0,0) sE(0,r) sE(0,a) sM(0,1) sE(1,b) cD(1,1) eE(1,b) eM(0,1) sM(0,2) sE(2,b) cD(2,2) eE(2,b) eM(0,2) eE(0,a)
sR(2,3) sE(3,b) cD(3,3) eE(3,b) eR(2,3)
"""


@pytest.mark.parametrize(
    ("stream", "query", "at", "answer"),
    [
        # case 26
        (REGION, "b?3", "5", "Y"),
        (REGION, "b?3.5", "5", "X"),
        (REGION, "b?4.5", "5", ""),
        (REGION, "b?[3]", "5", "Y"),
        # case 27
        (NESTED, "a#1/b", "10", "Y"),
        (NESTED, "a#1/b#1", "10", "X"),
        (NESTED, "a#1/b?8.5", "10", "X"),
        (NESTED, "a#1/b?2", "10", ""),
        # case 28
        (DELETED, "b", "3", ""),
        (DELETED, "b#1", "3", "X"),
        (DELETED, "b#1", "5", ""),
        (DELETED, "b#[2]", "5", "Y X"),
        # case 31
        (TWICE, "b", "0", "Z"),
        (TWICE, "b#1", "0", "Y"),
        (TWICE, "b#2", "0", "X"),
        # case 32
        (SIBLINGS, "a/b#1", "0", "2"),
    ],
)
def test_laws_26_to_32(stream: str, query: str, at: str, answer: str) -> None:
    """The cases of LAWS 6 that are about versions, by the machinery alone."""
    assert shown(query, stream)[at] == answer


def test_a_result_outside_of_any_region() -> None:
    """It has version 0 only, and is as old as its arrival (LAWS 5.4)."""
    stream = """
    sS(0,0) sE(0,r) now(1) sE(0,b) cD(0,X) sM(0,1) cD(1,x) eM(0,1) eE(0,b) now(2) sR(1,2) cD(2,y) eR(1,2) now(3)
    """
    assert [shown(query, stream)["3"] for query in ("b", "b#0", "b#[4]", "b#1", "b?2", "b?2.5", "b?[0]")] == [
        *["Xy"] * 3,
        "",
        "Xy",
        "",
        "Xy",
    ]


# --- the slips of LAWS 5.6 ----------------------------------------------------------------------------------


def spans(stream: str) -> dict[str, tuple[int, int]]:
    """The regions on display, with where they stand."""
    display = Shown()
    display.run(events(stream))
    return {id: display.display.span(id) for id in sorted(display.display.names)}


def test_sibling_regions_have_different_orders() -> None:
    """The paper's `sM(i,j): order[j] <- order[i]` makes siblings equal, so `adj` moves none of them for the other.

    Here the first one grows from 1 to 3 characters, and the second moves from 1 to 3.
    """
    stream = "sS(0,0) sM(0,1) cD(1,a) eM(0,1) sM(0,2) cD(2,b) eM(0,2)"
    assert spans(stream) == {"1": (0, 1), "2": (1, 1)}
    assert spans(f"{stream} sR(1,3) cD(3,xyz) eR(1,3)")["2"] == (3, 1)


def test_what_is_inserted_after_the_last_stands_behind_it() -> None:
    """With the paper's defaults, 0 for the least and 1 for the greatest order, `sA` at the last region has the order
    (1 + 0) / 2: before it. `sB` at the first has (1 + 1) / 2: the same as it."""
    stream = "sS(0,0) sM(0,1) cD(1,a) eM(0,1)"
    assert spans(f"{stream} sA(1,2) cD(2,bc) eA(1,2)") == {"1": (0, 1), "2": (1, 2)}
    assert spans(f"{stream} sB(1,2) cD(2,bc) eB(1,2)") == {"1": (2, 1), "2": (0, 2)}


def test_there_is_room_for_more_than_52_insertions() -> None:
    """Halving the distance between two orders ends where doubles end: the 53rd is one of its neighbours.

    Here 200 regions, each put between the last one and the next, keep their places.
    """
    low, high, halvings = 1.0, 2.0, 0
    while low < (low + high) / 2 < high:
        low, halvings = (low + high) / 2, halvings + 1
    assert halvings == 52
    display = Shown()
    display.run(events("sS(0,0) sM(0,0a) cD(0a,<) eM(0,0a) sM(0,z) cD(z,>) eM(0,z)"))
    before = "0a"
    for number in range(200):
        display.run(events(f"sA({before},n{number}) cD(n{number},{number % 10}) eA({before},n{number})"))
        before = f"n{number}"
    assert display.text == "&lt;" + "0123456789" * 20 + "&gt;"


def test_an_insertion_before_adjusts_by_its_own_content() -> None:
    """`eB` adjusts from start[j]; the paper's `adj(j, effective(i), effective(j))` takes the end of the region behind.

    A region of 5 characters, and 2 inserted before it: what follows moves by 2, not from 5 to 2.
    """
    stream = "sS(0,0) sM(0,1) cD(1,abcde) eM(0,1) sM(0,2) cD(2,f) eM(0,2) sB(1,3) cD(3,xy) eB(1,3)"
    assert spans(stream) == {"1": (2, 5), "2": (7, 1), "3": (0, 2)}


def test_a_replacement_adjusts_from_the_last_version() -> None:
    """`eR` adjusts from the chain's last version; the paper's effective(i) is that of the id named, long replaced.

    1, then 3, then 2 characters, both replacements naming the first: what follows is at 2, not 2 + (3 - 1).
    """
    stream = """
    sS(0,0) sM(0,1) cD(1,a) eM(0,1) sM(0,2) cD(2,f) eM(0,2)
    sR(1,3) cD(3,bcd) eR(1,3) sR(1,4) cD(4,ef) eR(1,4)
    """
    assert spans(stream)["2"] == (2, 1)


def test_the_new_version_is_not_dropped() -> None:
    """`enqueue` removes entries 'with timestamp > current_time - t', which are the ones that count.

    With `?[60]` a version that came now shows, and one that ended 61 seconds ago is forgotten.
    """
    stream = "sS(0,0) now(1) sM(0,1,?[60]) cD(1,x) eM(0,1) now(2) sR(1,2) cD(2,y) eR(1,2)"
    for now, text in ("2", "yx"), ("61", "yx"), ("62", "y"), ("500", "y"):
        display = Shown()
        display.run(events(f"{stream} now({now})"))
        assert (now, display.text, len(display.display.names["1"].versions)) == (now, text, len(text))


def test_a_window_ends_with_the_versions_there_are() -> None:
    """`#[v]` of the paper reads end[min(v, size)], one past the last of size versions."""
    display = Shown()
    display.run(events("sS(0,0) sM(0,1,#[5]) cD(1,x) eM(0,1) sR(1,2) cD(2,y) eR(1,2)"))
    assert display.text == "yx"


def test_an_extreme_is_not_adjusted_from_its_value() -> None:
    """`max` of 9, 5, 7 when 9 becomes 1 is 7 (case 30 of LAWS 6): `s1 - s2 + s3` of the maxima would be 9 - 9 + 1."""
    display = Shown()
    pipeline = Pipeline(Total("max"), display)
    stream = "sS(0,0) sM(0,1) cD(1,9) eM(0,1) sM(0,2) cD(2,5) eM(0,2) sM(0,3) cD(3,7) eM(0,3)"
    pipeline.run(events(stream))
    assert display.text == "9"
    pipeline.run(events("sR(1,4) cD(4,1) eR(1,4)"))
    assert display.text == "7"


# --- what is remembered -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("qualifier", "versions"), [("#0", 1), ("#1", 2), ("#[9]", 10), ("?[60]", 7), ("?60", 7), ("?[0]", 1)]
)
def test_no_more_versions_than_needed(qualifier: str, versions: int) -> None:
    """A replacement every ten seconds: `#1` keeps two versions, a snapshot one, `?[60]` what lived in that minute."""
    display = Shown()
    display.run(events(f"sS(0,0) now(0) sM(0,1,{qualifier}) cD(1,x) eM(0,1)"))
    for number in range(1, 40):
        display.run(events(f"now({number * 10}) sR(1,2) cD(2,{number}) eR(1,2)"))
    assert len(display.display.names["1"].versions) == versions


def test_regions_that_nobody_sees_keep_nothing() -> None:
    """`/b` of an element's other children: their regions, those in them and their updates go by unnoticed."""
    step = Mapped(Child(Name("b")))
    given = step.run(
        events("""
        sS(0,0) sE(0,r) sE(0,c) sM(0,1) cD(1,x) sM(1,2) eM(1,2) eM(0,1) eE(0,c) sR(1,3) cD(3,y) eR(1,3) sA(2,4) eA(2,4)
        sE(0,b) sM(0,5) cD(5,z) eM(0,5) eE(0,b)
        """)
    )
    told = [str(each) for each in given if not isinstance(each, Now)]  # their ends are moments, and no more
    assert told == ["sS(0,0)", "sE(0,b)", "sM(0,5)", "cD(5,z)", "eM(0,5)", "eE(0,b)"]
    assert set(step.regions.names) == {"5"}


def test_an_id_that_is_taken_by_something_unseen() -> None:
    """An id names the region that took it last (LAWS 5.3), also where that one does not show."""
    pipeline, display = path("b")
    pipeline.run(
        events("""
        sS(0,0) sE(0,r) sM(0,1) sE(1,b) cD(1,x) eE(1,b) eM(0,1) sA(1,7) sE(7,b) eE(7,b) eA(1,7)
        sE(0,c) sM(0,2) eM(0,2) eE(0,c) sR(2,7) eR(2,7) sR(7,8) sE(8,b) cD(8,wrong) eE(8,b) eR(7,8)
        """)
    )
    assert display.text == "<b>x</b><b/>"


def test_what_had_begun_is_written_to_its_end() -> None:
    """A version counts whole, also if the one around it is replaced before its end; a region in it must have begun."""
    stream = """
    sS(0,0) sM(0,1,#[1]) cD(1,a) sM(1,2) cD(2,b) eM(1,2) eM(0,1) sR(2,3) cD(3,c) sR(1,4) cD(4,d) eR(1,4)
    cD(3,e) sM(3,5) cD(5,f) eM(3,5) eR(2,3)
    """
    display = Shown()
    display.run(events(stream))
    assert display.text == "dace"


def test_what_is_written_when_nobody_asks_for_it_any_more() -> None:
    """A result that comes into a version replaced nine seconds ago is not in `?[1]`, and is not kept."""
    pipeline, display = path("a#[1]/c/b?[1]")
    pipeline.run(
        events("""
        sS(0,0) sE(0,r) sM(0,1) sE(1,a) sM(1,2) eM(1,2) eE(1,a) eM(0,1)
        sR(2,3) sE(3,c) sE(3,b) eE(3,b) sR(1,4) eR(1,4)
        """)
    )
    assert display.text == "<b/>"
    size = display.display.size
    pipeline.run(events("now(9) sE(3,b) cD(3,late) eE(3,b) eE(3,c) eR(2,3)"))
    assert display.text == ""
    assert display.display.size < size


def test_what_is_gone_is_not_changed() -> None:
    """A region in a version that was replaced may be updated; nobody sees it, also not who asks for that version."""
    stream = "sS(0,0) sM(0,1,#[1]) cD(1,a) sM(1,2) cD(2,b) eM(1,2) eM(0,1) sR(1,3) cD(3,c) eR(1,3)"
    display = Shown()
    display.run(events(f"{stream} sR(2,4) cD(4,X) eR(2,4) sA(2,5) cD(5,Y) eA(2,5)"))
    assert display.text == "cab"


@pytest.mark.parametrize("asked", ["#0", "#1", "?[3]"])
def test_the_state_does_not_grow(asked: str) -> None:
    """Hundreds of updates to ten regions, nested ones among them: the state is no larger than after the first few."""
    display = Shown()
    display.run(events("sS(0,0) " + " ".join(f"sM(0,r{n},{asked}) eM(0,r{n})" for n in range(10))))
    sizes: list[int] = []
    for number in range(600):
        region = f"r{number % 10}"
        inner = f"sM(u,{region}n) eM(u,{region}n)"
        display.run(events(f"now({number // 10 + 100}) sR({region},u) cD(u,x) {inner} eR({region},u)"))
        sizes.append(display.display.size + len(display.display.names))
    assert max(sizes[100:]) <= max(sizes[:100])


# --- against the law ----------------------------------------------------------------------------------------

VERSIONS = ("", "#0", "#1", "#1", "#2", "#[1]", "#[3]")
TIMES = ("", "?0", "?0.5", "?1", "?2", "?[0]", "?[1]", "?[2.5]")


class OneTime(Writer):
    """Writes elements of which all comes at one time: the paper's lists have a time for each version, and no other."""

    is_timed = False

    def between(self) -> str:
        self.is_timed = True
        return super().between()

    def at(self, name: str, probability: float = 0.6) -> str:
        was_timed, self.is_timed = self.is_timed, False
        return super().at(name, probability) if was_timed else ""


@pytest.mark.parametrize("qualifiers", [VERSIONS, TIMES], ids=["versions", "times"])
@pytest.mark.parametrize("start", range(0, 60, 20))
def test_paths_about_the_past(start: int, qualifiers: tuple[str, ...]) -> None:
    """Steps and temporal components show what the law answers, after every element of 20 random streams."""
    seen: set[str] = set()
    for seed in some(range(start, start + 20)):
        chance = random.Random(seed)
        steps = range(chance.choice((1, 1, 2, 3)))
        query = "/".join(chance.choice(("a", "b")) + chance.choice(qualifiers) for _ in steps)
        writer = OneTime(chance) if qualifiers is TIMES else Writer(chance)
        asked = Asked(f'stream("s")/root/{query}', s=writer.stream(10))
        pipeline, display = path(query)
        tokens = Tokens()
        pipeline.run([*tokens.start(), StartElement(tokens.root, Name("root"))])
        for arrived in arrivals(asked.documents, asked.streams):
            for _ in asked.documents["s"].take(arrived.element, arrived.at, arrived.partition):
                pass
            pipeline.run([Now(Decimal(arrived.at.numerator) / arrived.at.denominator), *tokens.of(arrived.element)])
            assert display.text == answer(asked.query, asked.documents, name="q").text, seed
            seen.add(display.text)
    assert len(seen) > enough(15)


@pytest.mark.parametrize("seed", some(range(25)))
def test_a_path_over_a_random_stream(seed: int) -> None:
    """`b` of what a stream comes to is what it comes to behind the step, also if the state is read back meanwhile."""
    child = Child(Name("b"))
    step, display, naive = Mapped(child), Shown(), Applied()
    for number, event in enumerate(random_stream(seed, length=60, qualified=seed % 2 == 0)):
        naive.take(event)
        display.run(step.take(event))
        assert display.text == written(run(child, naive.content(), child.initial)[0])
        if number % 9 == 0:
            kept = json.loads(json.dumps(step.encode()))
            step = Mapped(child)
            step.decode(kept)
