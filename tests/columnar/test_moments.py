"""DateTimes in columns: read as the law reads them or left to it, and compared without it (LAWS 2.3, 2.7)."""

from __future__ import annotations

from fractions import Fraction
from json import dumps
from random import Random

import numpy as np
import pytest

from anabranch.columnar.expressions.texts import TextColumn
from anabranch.columnar.expressions.tree import Kind
from anabranch.columnar.expressions.values import UNCLEAR, ColumnValue, ticks_of
from anabranch.columnar.moments import NO_ZONE, read_zones, spell_moments
from anabranch.values.instants import moment_seconds
from anabranch.values.times import DateTime
from columnar.streams import Stream, check_by_law, item_queries
from mass import some

QUERIES = (
    'where $p/a < xs:dateTime("2026-03-01T09:00:00.25Z") return $p/n',
    'where xs:dateTime("2026-03-01T11:00:00+02:00") = $p/a return $p/n',
    "where xs:dateTime($p/b) >= xs:dateTime($p/a) return <o>{ $p/n }</o>",
    'let $t := xs:dateTime($p/b) where $t != xs:dateTime("2026-03-01T09:00:00Z") return $p/n',
    'return <o n="{ $p/n }">{ $p/a <= xs:dateTime($p/b), if ($p/a > xs:dateTime($p/b)) then "late" else () }</o>',
    'where some $e in $p/e satisfies $e > xs:dateTime("2026-03-01T09:00:00Z") return $p/n',
    'where $p/e > xs:dateTime("2026-03-01T09:00:00Z") or $p/n = 3 return $p/n',
    "where (if ($p/n > 20) then xs:dateTime($p/a) else xs:dateTime($p/b)) < xs:dateTime($p/a) return $p/n",
)
PLAIN = ("2026-03-01T09:00:00Z", "2026-03-01T10:00:00.5+01:00", "2026-03-01T09:00:00", "2026-02-28T23:59:59.999999999Z")
ODD = (
    "2026-02-28T24:00:00Z",
    " 2026-03-01T09:00:00Z ",
    "noon",
    "",
    "2026-03-01T09:00:00.0000000001Z",
    "-0044-03-15T00:00:00Z",
)


def document(random: Random, texts: tuple[str, ...], json: bool) -> bytes:
    """Items, one in a line, whose times are some of these texts."""
    lines = []
    for number in range(60):
        a, b, *e = (random.choice(texts) for _ in range(2 + random.randrange(3)))
        if json:
            lines.append(dumps({"n": number, "a": a, "b": b, "e": e}))
        else:
            inside = "".join(f"<e>{each}</e>" for each in e)
            lines.append(f"<i><n>{number}</n><a>{a}</a><b>{b}</b>{inside}</i>")
    return "".join(f"{line}\n" for line in lines).encode()


@pytest.mark.mass
@pytest.mark.parametrize("json", some([False, True]), ids=some(["xml", "json"]))
def test_comparisons_go_through_columns(json: bool) -> None:
    """What items write plainly needs no law; anything else is left to it, and the answers are the same."""
    texts = {
        f"q{number}": f'for $p in stream("s")/r/{"item" if json else "i"} {each}' for number, each in enumerate(QUERIES)
    }
    for odd in (False, True):
        stream = Stream(item_queries(texts), "json" if json else "lines", root="<r>")
        random = Random(odd)
        check_by_law(stream, document(random, PLAIN + ODD * odd, json), random)
        assert bool(stream.left_to_law) == odd


@pytest.mark.parametrize(
    "query",
    [
        "return <o>{ xs:dateTime($p/a) }</o>",
        'return <o at="{ xs:dateTime($p/a) }"/>',
        "where xs:dateTime($p/a) return $p/n",
        "return <o>{ for $e in $p/e order by xs:dateTime($e) return $e }</o>",
        "return <o>{ for $e in $p/e order by $e descending return $e }</o>",
        "return <o>{ max($p/e), min(($p/a, $p/b)), $p/a < $p/b, $p/a castable as xs:dateTime }</o>",
        "return <o>{ concat(xs:dateTime($p/a), ''), count(xs:dateTime($p/a)), string(xs:dateTime($p/b)) }</o>",
        'where xs:dateTime($p/a) + xs:dayTimeDuration("PT1S") > xs:dateTime($p/b) return $p/n',
        'where xs:dateTime($p/a) = "2026-03-01T09:00:00Z" or $p/n = 7 return $p/n',
    ],
)
def test_what_is_more_than_compared_is_answered_as_by_law(query: str) -> None:
    """Nobody takes a moment in columns for a number or a text."""
    random = Random(1)
    stream = Stream(item_queries({"q": f'for $p in stream("s")/r/i {query}'}), "lines", root="<r>")
    check_by_law(stream, document(random, PLAIN + ODD, json=False), random)


def test_texts_are_read_as_the_law_reads_them() -> None:
    """Nanoseconds are those of the exact seconds, and no dateTime of the usual form is left over."""
    random = Random(7)
    texts = []
    for _ in range(20_000):
        year = random.choice((1700, 1970, 2024, 2200, random.randrange(1700, 2201)))
        date = f"{year}-{random.randrange(14):02}-{random.randrange(33):02}"
        clock = f"{random.randrange(24):02}:{random.randrange(61):02}:{random.randrange(61):02}"
        part = random.choice(("", ".5", ".1234567", "."))
        text = f"{date}T{clock}{part}{random.choice(('Z', '', '+01:00', '-14:00', '+14:01', 'z'))}"
        at = random.randrange(4, 2 * len(text))
        texts.append(text if at >= len(text) else f"{text[:at]}{random.choice(':-T.Z0x')}{text[at + 1 :]}")
    ticks, state = ticks_of(ColumnValue(Kind.UNTYPED, texts=TextColumn.of(*(each.encode() for each in texts))))
    assert state is not None
    for text, tick, left in zip(texts, ticks.tolist(), (state == UNCLEAR).tolist(), strict=True):
        seconds = moment_seconds(text)
        assert (None if left else tick) == (None if seconds is None else seconds * 10**9), text
    assert 0.1 < np.mean(state == UNCLEAR) < 0.9


def test_moments_are_written_as_the_law_writes_them() -> None:
    """Whatever the time, the fraction and the zone; the zone is the one that is read from it again."""
    random = Random(3)
    ticks = [random.randrange(-(10**18), 10**18) // 10**each * 10**each for each in range(10) for _ in range(20)]
    zones = [random.choice([NO_ZONE, 0, 60, -90, 840, -840, 330]) for _ in ticks]
    data, starts, ends = spell_moments(np.array(ticks), np.array(zones))
    expected = [
        str(DateTime(Fraction(tick, 10**9) + 60 * (0 if zone == NO_ZONE else zone), None if zone == NO_ZONE else zone))
        for tick, zone in zip(ticks, zones, strict=True)
    ]
    spans = zip(starts.tolist(), ends.tolist(), strict=True)
    assert [data[start:end].tobytes().decode() for start, end in spans] == expected
    found = np.empty(len(zones), np.int64)
    read_zones(data, starts, ends, found)
    assert found.tolist() == zones
