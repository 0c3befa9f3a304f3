"""Whatever comes in, an outcome comes soon: set aside, refused or answered, in bounded time and memory."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from hostile.attacks import every
from hostile.outcomes import MEGABYTES, SECONDS, carried_out
from mass import Mass

ATTACKS = tuple(every())


def test_all_attacks_have_their_outcome(mass: Mass) -> None:
    """What is expected of each, its neighbours unharmed."""
    for number in mass.cases(len(ATTACKS)):
        attack = ATTACKS[number]
        found = carried_out(attack)
        assert found.outcome == attack.expected, (str(attack), found.outcome)
        assert found.seconds < SECONDS, (str(attack), found)
        assert found.megabytes < MEGABYTES, (str(attack), found)


def test_there_are_three_hundred() -> None:
    """Each with a name of its own."""
    names = Counter(map(str, ATTACKS))
    assert len(names) >= 300
    assert max(names.values()) == 1


def test_the_page_lists_them_all() -> None:
    """With what comes of each; `report.py` makes it."""
    page = Path(__file__).parents[2].joinpath("docs/attacks.md").read_text(encoding="utf-8")
    missing = [str(each) for each in ATTACKS if f"| {each.name} | {each.expected} |" not in page]
    assert not missing
