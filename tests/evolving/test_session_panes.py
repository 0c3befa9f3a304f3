"""Sessions that are counted by panes, over accented streams: what a trunk answers is the law's."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path as Folder
from random import Random

from evolving.test_panes import ACCENT, CONDITIONS, SELECTED, SENSORS, sliced
from evolving.windowed import OVER, Law, elements, lay
from mass import Mass, enough, some

SESSIONS = ("|n gap 3|", "|n gap 2.5 by s|", "|n gap 6 by s|", "|n gap 4 by t|", "|n gap 9 by x|")
RESULTS = (
    "<o>{ avg($w/t) }</o>",
    "<o>{ sum($w/t), count($w) }</o>",
    '<o s="{ window-start($w) }" e="{ window-end($w) }">{ max($w/t) }</o>',
    "<o><a>{ avg($w/t) }</a><b>{ max($w/x) }</b><c>{ window-end($w) }</c></o>",
    "<o>{ avg($w/t) * 2 + 1 }</o>",
    '<o m="{ min($w/n) }">{ max($w/n) }</o>',
)
KEYED = (
    '<o k="{ $w[1]/KEY }">{ sum($w/t) }</o>',
    "<o><k>{ distinct-values($w/KEY) }</k><a>{ avg($w/t) }</a></o>",
    '<o k="{ distinct-values($w/KEY) }">{ data($w[1]/KEY), count($w), max($w/x) }</o>',
)


def query(random: Random, gone: str) -> str:
    """Sessions, seen through aggregates of values whose units change, their bounds and keys."""
    window = random.choice([each for each in SESSIONS if not gone or not each.endswith(f"{gone}|")])
    _, _, key = window.strip("|").partition(" by ")
    result = random.choice((*RESULTS, *KEYED) if key else RESULTS).replace("KEY", key)
    return f"{OVER}{random.choice(SELECTED)} {window} {random.choice(CONDITIONS)}return {result}"


def check(folder: Folder, random: Random) -> tuple[int, int]:
    """Compare some queries over one stream; gives how many accents come out, and how many queries are answered."""
    gone = random.choice(("", "", "x"))
    queries = {str(number): query(random, gone) for number in range(5)}
    if gone:
        queries = {name: text for name, text in queries.items() if "[x" not in text}
    slack = random.choice((0, 0, 4))
    source = lay(folder / "in", [elements(random, 30, gone=gone, slack=slack)], domains=SENSORS, slack=Fraction(slack))
    trunk = sliced(folder / "state", [source], random, queries)
    assert trunk.plan is not None
    assert {each.kind for each in trunk.plan.subscriptions} == {"sessions by panes"}
    accents = answered = 0
    for name, text in queries.items():
        due = Law(text, source).read()
        assert trunk.answer(name) == due, text
        accents += due.count(ACCENT)
        answered += bool(due)
    return accents, answered


def test_sessions_in_other_units(tmp_path: Folder) -> None:
    """Values, references and keys whose units change, and accents that come out between sessions."""
    found = [check(tmp_path / str(seed), Random(f"sessions and accents {seed}")) for seed in some(range(6))]
    assert sum(accents for accents, _ in found) >= enough(4)
    assert sum(answered for _, answered in found) > enough(15)


def test_many_sessions_in_other_units(tmp_path: Folder, mass: Mass) -> None:
    """The same, for many streams."""
    for number in mass.cases(400):
        check(tmp_path / str(number), Random(f"many sessions and accents {number}"))
