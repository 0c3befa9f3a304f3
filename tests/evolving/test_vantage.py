"""What values and punctuations mean at a place of a partition, in the units of a query's start."""

from __future__ import annotations

from algebra.accented import HERE, alter, closed, item
from anabranch.algebra.accents.evolution import Evolution
from anabranch.law.evolution.vantage import Vantage
from anabranch.stream.affine import parse
from anabranch.stream.description import parse as describe
from anabranch.stream.elements import Accent, DeadLetter, Doubt
from anabranch.stream.path import Path


def behind(*accents: Accent) -> Vantage:
    vantage = Vantage(Evolution())
    for each in accents:
        vantage.take(each)
    return vantage


def told(vantage: Vantage, where: str) -> str:
    return str(vantage.told(closed(where)).where)


def test_units_lead_back_to_the_start() -> None:
    """Only the values that have changed have a map, and it leads to what was meant at the start."""
    vantage = behind(alter("t", ". * 2", "s = 2"), alter("t", ". + 1"))
    assert vantage.units(item("t=5 s=2").tree) == {Path.parse("t"): parse("(. - 1) div 2")}
    assert vantage.units(item("t=5 s=1").tree) == {Path.parse("t"): parse(". - 1")}
    assert vantage.units(item("s=2").tree) == {}
    assert behind().units(item("t=5").tree) == {}


def test_punctuations_are_told_by_values_of_the_start() -> None:
    """LAWS 4.8: their constants are mapped, for the items that were concerned."""
    assert told(behind(), "t < 5") == "t < 5"
    assert told(behind(alter("t", ". * 2")), "t < 10 and s = 1") == "t < 5 and s = 1"
    assert told(behind(alter("u", ". * 2")), "t < 10") == "t < 10"


def test_punctuations_close_what_is_certain() -> None:
    """Where items differ in their units, a comparison is taken for what holds in all of them."""
    partly = behind(alter("t", ". * 2", "s = 2"), alter("t", ". * 4", "s = 4"))
    assert told(partly, "t < 8") == "t < 2"
    assert told(partly, "t > 8 or u = 1") == "t > 8 or u = 1"
    assert told(partly, "not(t >= 8)") == "not(t >= 2)"
    assert told(partly, "t = 8") == "not(true())"
    assert told(partly, "t != 8") == "t != 2 and t != 4 and t != 8"
    assert told(partly, "not(t = 8)") == "not(t = 2 or t = 4 or t = 8)"
    assert told(behind(alter("t", ". * 2")), "t = 'warm' or not(t = 'cold')") == "not(true()) or not(true())"


def test_a_punctuation_ends_what_was_said_of_its_items() -> None:
    """What it closes has no units any more that could matter."""
    vantage = behind(alter("t", ". * 2", "s = 2"))
    said = closed("s = 2 or t < 8")
    vantage.take(said)
    assert str(vantage.told(said).where) == "s = 2 or t < 8"


def test_many_units_are_told_quickly() -> None:
    """A thousand sensors with units of their own: one comparison, not a thousand parts."""
    many = behind(*(alter("t", f". * {2 + number}", f"s = {number}") for number in range(300)))
    assert told(many, "t < 301") == "t < 1"


def test_a_doubt_makes_no_map() -> None:
    """Of what is unknown nobody says what it means: the text stays as it is."""
    vantage = behind(alter("t", ". * 2"))
    vantage.take(DeadLetter(HERE, "?", "", doubts=(Doubt(Path.parse("t"), describe("s = 1")),)))
    assert vantage.units(item("t=4 s=1").tree) == {}
    assert vantage.units(item("t=4 s=2").tree) == {Path.parse("t"): parse(". div 2")}
