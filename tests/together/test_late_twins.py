"""Subscriptions that come late with a query that is there already share its state as soon as they can (LAWS 3.6, 3.7).

One query is subscribed to again at every phase of its streams, and some of these subscriptions leave again.
Each is given what a trunk gives it that shares nothing, and what the reference says; and most of them end up in one
branch.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import TypeAlias

from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import prepare
from anabranch.runtime.chains import RESULTS
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.plan.files import Plans
from anabranch.stream.elements import DeadLetter
from anabranch.stream.reading.source import Source
from mass import Mass
from spark.law import law_of
from together.crowds import Crowd, Life
from together.streams import Look, lay

Dealt: TypeAlias = tuple[tuple[tuple[bytes, ...], ...], ...]
QUERIES = {
    "windows by panes": (
        'for $w in stream("s")/r/i|t diff 5 step 2.5| return <w>{ avg($w/n), max($w/c/n), count($w) }</w>',
        'for $w in stream("s")/r/i[n > 2]|t diff 4 step 6| let $a := sum($w/n) where $a > 1 return <w>{ $a }</w>',
        'for $w in stream("s")/r/i|t diff 5| return count($w)',
        'for $w in stream("s")/r/i|count 4 step 2| return <w>{ sum($w/c/n) }</w>',
        'for $w in stream("s")/r/i|count 2| return <w>{ min($w/n), median($w/c/n) }</w>',
    ),
    "groups by panes": (
        'for $w in stream("s")/r/i|t diff 5 step 2.5| return for $o in $w group by $k := $o/s '
        "return <g>{ $k, count($o), sum($o/n) }</g>",
    ),
    "sessions by panes": (
        'for $w in stream("s")/r/i|t gap 3 by s| return <s>{ count($w), sum($w/n) }</s>',
        'for $w in stream("s")/r/i[n > 3]|t gap 2| return <s>{ max($w/n) }</s>',
    ),
    "windows": (
        'for $w in stream("s")/r/i|t diff 5 step 2.5| return <w>{ $w/n }</w>',
        'for $w in stream("s")/r/i[n > 2]|t diff 5| return $w[1]/t',
        'for $w in stream("s")/r/i|count 4 step 2| return <w>{ $w/t }</w>',
    ),
    "sessions": ('for $w in stream("s")/r/i|t gap 3 by s| return <s>{ $w/n }</s>',),
    "items in order": ('for $x in stream("s")/r/i where $x/n > 3 return string($x/n)',),
    "step join": (
        'for $x in stream("s")/r/i|t diff 5 step 2.5| for $y in stream("u")/r/i|t diff 4| where $x/s = $y/s '
        "return <p>{ $x/t, $y/t }</p>",
        'for $x in stream("s")/r/i|count 4 step 2| for $y in stream("u")/r/i|t diff 2.5| return <p>{ $x/n, $y/n }</p>',
    ),
    "interval join": (
        'for $x in stream("s")/r/i for $y in stream("u")/r/i where $x/t >= $y/t - 2.5 and $x/t <= $y/t + 1 '
        "and $x/n > $y/n return <p>{ $x/t, $y/t }</p>",
    ),
    "chain": (
        'for $w in (for $x in stream("s")/r/i where $x/n >= 1 return <m>{ $x/t, $x/n }</m>)|t diff 5 step 2.5| '
        "return <w>{ sum($w/n), count($w) }</w>",
        'for $w in (for $x in stream("s")/r/i where $x/n >= 1 return <m>{ $x/n }</m>)|count 4 step 2| '
        "return <w>{ $w/n }</w>",
        'for $w in (for $x in stream("s")/r/i for $y in stream("u")/r/i where $x/t >= $y/t - 2.5 and '
        "$x/t <= $y/t + 1 and $x/n > $y/n return <p>{ $x/t, $y/s }</p>)|count 2| return <w>{ $w/t, $w/s }</w>",
    ),
    "keyed join": (
        'for $x in stream("s")/r/i for $y in stream("u")/r/i where $x/s = $y/s return <p>{ $x/t, $y/t, $x/s }</p>',
    ),
}
KINDS = list(QUERIES)
CHANGES = (
    b'<s:accent%s><s:alter path="n" by=". * 2"/></s:accent>',
    b'<s:accent%s where="s = \'b\'"><s:alter path="c/n" by=". + 1"/></s:accent>',
    b'<s:accent%s><s:alter path="a" by=". div 2"/></s:accent>',
    b'<s:punctuation%s where="t &lt; 10"/>',
    b'<s:punctuation%s where="t &lt; 20"/>',
    b"<s:punctuation%s where=\"s = 'none'\"/>",
)
"""What comes between the items of streams that evolve; many of them concern nobody."""
_NAMES = b' xmlns:s="urn:anabranch:stream"'


def crowd_of(random: Random, text: str, *, timed: bool, evolving: bool) -> Crowd:
    """The query from each of some phases on, and some of them not to the end."""
    phases, plain = random.randint(8, 12), random.random() < 0.6
    partitions = random.choice((1, 1, 2)) if timed else 1
    look = Look(timed, plain, partitions, phases, False, random.choice(("lines", "document")), False, False)
    streams = tuple(lay(name, look, random) for name in "su")
    if evolving:
        streams = tuple(replace(each, dealt=_with_changes(random, each.dealt)) for each in streams)
    query = prepare("q", text, Inputs([each.source(Path()) for each in streams]), "spark").checked.query
    lives = [
        Life(
            f"q{first}", text, query, first, phases - 1 if random.random() < 0.75 else random.randint(first, phases - 1)
        )
        for first in range(phases - 1)
    ]
    return Crowd(look, streams, tuple(lives))


def _with_changes(random: Random, dealt: Dealt) -> Dealt:
    """A stream with some accents and punctuations in it, most of them early on."""
    found = [[list(phase) for phase in partition] for partition in dealt]
    for _ in range(random.randint(1, 4)):
        phase = random.choice(random.choice(found)[: random.choice((3, 3, 8))])
        phase.insert(random.randint(0, len(phase)), random.choice(CHANGES) % _NAMES)
    return tuple(tuple(map(tuple, partition)) for partition in found)


class RetainedCrowd(Crowd):
    """One whose streams are retained for a time only."""

    def sources(self, folder: Path) -> list[Source]:
        return [replace(each, retain=Fraction(4)) for each in super().sources(folder)]


def test_late_twins_share_and_nobody_sees_it(tmp_path: Path, mass: Mass) -> None:
    """Answers, dead letters and late items equal those of a trunk that shares nothing, and the reference's."""
    tried, joined = 0, 0
    for case in mass.cases(360):
        tried += 1
        joined += check(tmp_path / str(case), KINDS[case % len(KINDS)], Random(f"late twins {case}"))
    assert joined or tried < len(KINDS)  # in few cases nobody may have had the time


def check(folder: Path, kind: str, random: Random) -> int:
    """Try one case; gives how many subscriptions have joined the branch of an earlier one."""
    timed = kind in ("interval join", "keyed join", "chain", "items in order") or random.random() < 0.6
    evolving = random.random() < 0.4
    in_order = timed or kind != "step join"  # without times, streams meet as they happen to arrive
    crowd = crowd_of(random, random.choice(QUERIES[kind]), timed=timed, evolving=evolving)
    if kind == "keyed join":
        crowd = RetainedCrowd(crowd.look, crowd.streams, crowd.lives)
    label = f"{crowd.lives[0].text} over {crowd.look}"
    apart = crowd.run(folder / "apart", crowd.lives, Random(2), sharing=False)
    shared = crowd.run(folder / "shared", crowd.lives, random)
    for life in crowd.lives:
        assert shared.given[life] == apart.given[life], f"{life.name}: {label}"
    assert (shared.bad.keys(), _of_streams(shared.late)) == (apart.bad.keys(), _of_streams(apart.late)), label
    for life in crowd.lives:
        if (
            kind != "keyed join"
            and crowd.look.plain
            and in_order
            and not evolving
            and life.last == crowd.look.phases - 1
        ):
            found, (answer, dead) = shared.given[life], due(folder, crowd, life)
            if kind == "chain":  # windows over results are closed by results; the reference closes all at the end
                answer = answer[: len(found.answer or "")]
            assert (found.answer or "", found.dead) == (answer, dead), label
    plans = Plans(Checkpoint.at(folder / "shared" / "state")).newest_first()
    return len({each.id for plan in plans for each in plan.subscriptions if each.begins is not None})


def _of_streams(late: set[str]) -> set[str]:
    """Late items without late results of loops, whose places count from the beginning of their branch."""
    return {each for each in late if RESULTS not in each}


def due(folder: Path, crowd: Crowd, life: Life) -> tuple[str, Counter[DeadLetter]]:
    """What the reference answers over the rest of the streams; it knows of no forgetting, and of nothing before."""
    place = folder / f"law-{life.first}"
    place.mkdir()
    seen = [each.seen(place, life.first) for each in crowd.streams]
    law = law_of(life.query, seen, endless=True, late={each.name for each in crowd.streams if each.begun(life.first)})
    return law.text, Counter(replace(each, subscription=None) for each in law.dead.elements() if each.subscription)
