"""Which ids are known: those that a region may still be named by, and the latest of the others (LAWS 5.8)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from fractions import Fraction
from random import Random

import pytest

from anabranch.algebra.display.publishing import Published
from anabranch.branch.display.continuous import ContinuousQuery
from anabranch.branch.display.strands import spreads
from anabranch.law.history import register
from anabranch.law.history.document import EditedDocument
from anabranch.law.history.timeline import arrivals
from anabranch.stream.elements import Item, Punctuation
from anabranch.stream.reading.parse import implied_root
from anabranch.stream.reading.wire import tree_of
from anabranch.stream.tree import STREAM_NAMESPACE, Child, Element, Text
from history.asking import elements
from history.following import Followed, ids_of, items, random_case, replaced
from history.late import begun_at, late_start
from history.test_strands import StrandBranch
from history.writing import Writer
from mass import Mass, enough, some


def taken(text: str) -> EditedDocument:
    """A document that has taken all elements."""
    document = EditedDocument(implied_root("root"))
    for each in elements(text):
        list(document.take(each, document.now))
    return document


def replace(target: object, content: str = "<e/>", own: object = None) -> str:
    return f'<s:replace target="{target}"{"" if own is None else f" id={chr(34)}{own}{chr(34)}"}>{content}</s:replace>'


def after(target: object, own: object, content: str = "<e/>") -> str:
    return f'<s:after target="{target}" id="{own}">{content}</s:after>'


def reasons(document: EditedDocument) -> list[str]:
    return [letter.reason for letter in document.admission.dead]


X = '<s:mutable id="1"><e>X</e></s:mutable>'


@pytest.mark.parametrize("style", ["first", "newest"])
def test_case_39(style: str) -> None:
    """A chain answers to its first id and its newest, and to the thousand before that; older ones are forgotten."""
    updates = "".join(replace(1 if style == "first" else each - 1, own=each) for each in range(2, 2_002))
    document = taken(X + updates)
    assert reasons(document) == []
    assert set(document.admission.register.of(0)) == {"1", "2001", *map(str, range(1_001, 2_001))}
    document = taken(X + updates + replace(1) + replace(2001) + replace(1001) + replace(500) + replace(1000))
    assert reasons(document) == ["no region is called '500'", "no region is called '1000'"]


@pytest.mark.parametrize(("own", "bad"), [(None, ["no region is called 'a'"]), ("a", [])])
def test_case_40(own: str | None, bad: list[str]) -> None:
    """A deleted insertion is known until a thousand others have become past; one that is empty for now stays known."""
    come_and_gone = "".join(after(1, f"n{each}") + replace(f"n{each}", "") for each in range(1_000))
    document = taken(X + after(1, "a") + replace("a", "", own) + come_and_gone + replace("a"))
    assert reasons(document) == bad
    document = taken(X + after(1, "a") + replace("a", "") + come_and_gone[: come_and_gone.index("<s:after", 9)])
    assert reasons(document) == []
    list(document.take(elements(replace("a"))[0], document.now))
    assert reasons(document) == []


FEW = [
    # streams, of whose past ids two are known, and what is known behind them
    (X + replace(1, own=2) + replace(1, own=3) + replace(1, own=4) + replace(1, own=5), "1 3 4 5"),
    (X + replace(1, own=2) + replace(2, own=2) + replace(2, own=3), "1 2 3"),
    (X + replace(1, own=2) + replace(1, own=3) + replace(1, own=2) + replace(1, own=4), "1 2 3 4"),
    # what stands in a version that is replaced
    ('<s:mutable id="1"><a><s:mutable id="2"/></a></s:mutable>' + replace(1), "1 2"),
    ('<s:mutable id="1"><s:mutable id="2"/><s:mutable id="3"/><s:mutable id="4"/></s:mutable>' + replace(1), "1 3 4"),
    ('<s:mutable id="1"><s:mutable id="2"><s:mutable id="3"/></s:mutable></s:mutable>' + replace(1), "1 2 3"),
    ('<s:mutable id="1"><s:mutable id="2"/></s:mutable>' + replace(1, replace(2) + '<s:mutable id="3"/>'), "1 2 3"),
    (X + "".join(replace(1, f'<s:mutable id="{n}"/>') for n in (2, 3, 4)) + replace(3, own=5), "1 3 4 5"),
    # a mutable that is empty is no less known, an insertion is when it is deleted
    ("".join(f'<s:mutable id="{n}">x</s:mutable>' + replace(n, "") for n in range(5)), "0 1 2 3 4"),
    (X + "".join(after(1, n) for n in "abc"), "1 a b c"),
    (X + "".join(after(1, n) + replace(n, "") for n in "abc"), "1 b c"),
    (X + "".join(after(1, n, "") for n in "abc"), "1 a b c"),
    (X + after(1, "a") + replace("a", "") + replace("a") + after(1, "b") + replace("b", "", "c"), "1 a b c"),
    (X + "".join(after(1, n) + replace(n, "", n) for n in "abc"), "1 a b c"),
    (X + "".join(after(1, n) + replace(n, "") for n in "abc") + after(1, "b"), "1 b c"),
    # an insertion goes with what its anchor stands in
    ('<s:mutable id="1"><s:mutable id="2"/></s:mutable>' + after(2, 3) + after(3, 4) + replace(1), "1 3 4"),
    ('<s:mutable id="1"><s:mutable id="2"/></s:mutable><s:after target="2"><s:mutable id="3"/></s:after>', "1 2 3"),
    (
        '<s:mutable id="1"><s:mutable id="2"/></s:mutable><s:after target="2"><s:mutable id="3"/></s:after>'
        + replace(1) + replace(1, own=4) + replace(1, own=5),
        "1 3 4 5",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), FEW, ids=range(len(FEW)))
def test_what_is_known(monkeypatch: pytest.MonkeyPatch, text: str, expected: str) -> None:
    """The first and the newest id of what may still change, and the two that became past last."""
    monkeypatch.setattr(register, "MOST_PAST", 2)
    document = taken(text)
    assert (reasons(document), " ".join(sorted(document.admission.register.of(0)))) == ([], expected)


def test_a_forgotten_id_names_another_region(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also that of a `mutable`, which nobody could take before; so content may come again and again with its ids."""
    monkeypatch.setattr(register, "MOST_PAST", 0)
    inner = '<a><s:mutable id="2"><b>Z</b></s:mutable></a>'
    stream = f'<s:mutable id="1">{inner}</s:mutable>' + replace(1, "<a/>") + replace(1, inner) + replace(2, "<b>W</b>")
    followed = Followed('stream("s")/root/a', s=stream)
    assert followed.end() == "<a><b>W</b></a>"
    assert followed.law["s"].admission.dead == followed.machine.kept["s"].admission.dead == []


@dataclass(eq=False)
class Region:
    """What the rule has to know of a region."""

    inserted: bool
    between: bool
    place: tuple[Region, int] | None
    """The region that it stands in, and in which of its versions."""
    versions: int = 1
    first: str | None = None
    newest: str | None = None
    deleted: bool = False

    @property
    def over(self) -> bool:
        return self.place is not None and (self.place[0].over or self.place[1] < self.place[0].versions)


class Model:
    """The rule by itself, read off what is written; of ids that become past at once any may be forgotten first."""

    def __init__(self) -> None:
        self.names: dict[str, Region] = {}
        self.past: dict[str, int] = {}
        """The past ids, and which act has made them so."""
        self.acts = 0

    def look(self, node: Child, between: bool, place: tuple[Region, int] | None) -> None:
        """Go through a good element."""
        if not isinstance(node, Element):
            return
        if node.name.uri == STREAM_NAMESPACE:
            region = self.act(node, between, place)
            between, place = region.between, (region, region.versions)
        else:
            between = False
        for child in node.children:
            self.look(child, between, place)

    def act(self, written: Element, between: bool, place: tuple[Region, int] | None) -> Region:
        own, target = written.get("id"), self.names.get(written.get("target") or "")
        match written.name.local:
            case "mutable":
                region = Region(False, between, place, first=own)
            case "replace":
                assert target is not None
                region = target
                region.versions += 1
                keeps = own is not None and self.names.get(own) is region
                region.deleted = region.inserted and not keeps and not any(map(region_has(region), written.children))
            case _:
                assert target is not None
                region = Region(True, target.between, target.place, first=own)
        if own is not None:
            if self.names.get(own) not in (None, region):
                self.lose(own)
            self.names[own] = region
            region.newest = own
        self.acts += 1
        for name, each in self.names.items():
            if each.over or each.deleted or name not in (each.first, each.newest):
                self.past.setdefault(name, self.acts)
            else:
                self.past.pop(name, None)
        return region

    def lose(self, name: str) -> None:
        region = self.names.pop(name)
        self.past.pop(name, None)
        region.first = None if region.first == name else region.first
        region.newest = None if region.newest == name else region.newest

    def forget(self, known: Collection[str], most: int) -> int:
        """Compare with what is known behind an element, and forget the rest; gives how many those are."""
        forgotten = {name: since for name, since in self.past.items() if name not in known}
        assert self.names.keys() - forgotten.keys() == set(known)
        assert len(forgotten) == max(0, len(self.past) - most)
        stay = [since for name, since in self.past.items() if name not in forgotten]
        assert max(forgotten.values(), default=0) <= min(stay, default=self.acts)
        for name in forgotten:
            self.lose(name)
        return len(forgotten)


def region_has(region: Region) -> Callable[[Child], bool]:
    """Whether something that is written in a region stays there."""

    def stays(child: Child) -> bool:
        if isinstance(child, Element) and child.name.uri == STREAM_NAMESPACE:
            return child.name.local == "mutable"
        return not (region.between and isinstance(child, Text) and not child.value.strip())

    return stays


def test_the_rule_by_itself(mass: Mass, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind every element of random streams what is known is what the rule says, and what is bad changes nothing."""
    forgotten = bad = 0
    for number in mass.cases(3_000):
        monkeypatch.setattr(register, "MOST_PAST", number % 5)
        random = Random(f"rule {number}")
        document, model = EditedDocument(implied_root("root")), Model()
        for element in elements(Writer(random).stream(random.choice((5, 10, 20)))):
            dead = len(document.admission.dead)
            list(document.take(element, document.admission.reached()))
            if len(document.admission.dead) == dead and not isinstance(element, Punctuation):
                model.look(element.tree if isinstance(element, Item) else tree_of(element), True, None)
            bad += len(document.admission.dead) - dead
            forgotten += model.forget(document.admission.register.of(0), number % 5)
    assert min(forgotten, bad) > mass.done / 4 or mass.done < mass.total


@pytest.mark.parametrize("most", [0, 1, 2])
@pytest.mark.mass
def test_queries_show_what_the_law_says_where_ids_are_forgotten(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """After every moment, whatever of their state was put away; and they know the same ids, in the same order."""
    monkeypatch.setattr(register, "MOST_PAST", most)
    bad = 0
    for number in range(100_000, 100_040):
        case = random_case(number, (6, 12))
        for _ in case.run(put_away=number % 2 == 0):
            pass
        bad += sum(len(document.admission.dead) for document in case.law.values())
    assert bad > 0


def test_very_many_random_queries(mass: Mass, monkeypatch: pytest.MonkeyPatch) -> None:
    """As above, with thousands of cases, in strands too."""
    for number in mass.cases(4_000):
        monkeypatch.setattr(register, "MOST_PAST", number % 4)
        case = random_case(200_000 + number, (4, 8, 12, 20))
        if number % 2 and len(case.given) == 1 and spreads(case.machine.part):
            StrandBranch(case, Random(number)).run()
        else:
            for _ in case.run(put_away=number % 3 == 0):
                pass


def test_a_late_query_knows_what_the_others_know(monkeypatch: pytest.MonkeyPatch) -> None:
    """It begins with the document and the ids of then, and from there on knows the same as all."""
    late = 0
    for number in some(range(60)):
        monkeypatch.setattr(register, "MOST_PAST", number % 4)
        case = random_case(300_000 + number, (6, 12))
        early = case.law
        for place, each in enumerate(arrivals(early, case.given)):
            list(early[each.stream].take(each.element, each.at, each.partition))
            if place == 3:
                now = max(document.now for document in early.values())
                case.law = {name: begun_at(document, now) for name, document in early.items()}
                case.machine.begin({name: late_start(document, now) for name, document in early.items()})
            elif place > 3:
                list(case.law[each.stream].take(each.element, each.at, each.partition))
                list(case.machine.take(each.stream, each.element, each.at, each.partition))
                assert case.machine.text == case.by_law()
                assert ids_of(case.machine.kept[each.stream]) == ids_of(case.law[each.stream])
                late += 1
    assert late > enough(60)


def test_an_answer_names_nothing_that_its_readers_have_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who reads an answer as a stream of updates, and knows no past id at all, sees the answer and nothing bad."""
    read = 0
    for number in some(range(400_000, 400_060)):
        monkeypatch.setattr(register, "MOST_PAST", 1_000)
        case = random_case(number, (6, 12))
        machine = ContinuousQuery(case.query, {name: implied_root("root") for name in "st"}, display=Published)
        reader = Followed('stream("s")/root/node()', s="")
        for each in arrivals(case.law, case.given):
            monkeypatch.setattr(register, "MOST_PAST", 1_000)
            list(case.law[each.stream].take(each.element, each.at, each.partition))
            changes = list(machine.take(each.stream, each.element, each.at, each.partition))
            monkeypatch.setattr(register, "MOST_PAST", 0)
            assert isinstance(machine.display, Published)
            for element in elements(
                "".join(machine.display.wire(hidden=machine.failure is not None)) if changes else ""
            ):
                list(reader.law["s"].take(element, reader.law["s"].now))
                read += 1
            assert reasons(reader.law["s"]) == []
            assert reader.by_law().replace(" ", "") == machine.text.replace(" ", "")
    assert read > enough(100)


def test_a_part_that_is_empty_for_now_is_told_so() -> None:
    """It takes its id again, so that it is not deleted, and has the same when it comes back."""
    stream = items(2) + replaced(1, 9) + replaced(1, 1) + replaced(1, 8)
    query = 'if (max(stream("s")//v) > 5) then <high/> else ()'
    case = Followed(query, s=stream)
    machine = ContinuousQuery(case.query, {"s": implied_root("root")}, display=Published)
    told: list[str] = []
    for each in case.given["s"][0]:
        list(machine.take("s", each, Fraction(0)))
        assert isinstance(machine.display, Published)
        told += machine.display.wire()
    xmlns = f'xmlns:s="{STREAM_NAMESPACE}"'
    shown = f'<s:replace {xmlns} target="s0"><high/></s:replace>'
    assert told[-3:] == [shown, f'<s:replace {xmlns} target="s0" id="s0"/>', shown]
