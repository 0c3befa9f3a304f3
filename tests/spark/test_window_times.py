"""Windows and sessions over times, generated: by the law, recomputed from scratch, and in trunks of any epochs.

Values are plain numbers, dateTimes near 1970 and far from it, numbers of a unit, and all of these side by side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from random import Random

from anabranch.language import check, parse
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.path import TimeUnit
from anabranch.stream.reading.source import Source
from mass import Mass
from spark.bare import BareTrunk
from spark.law import law_of

PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000, None: 1}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Reading:
    """An item: its time as it is written, a key and a number."""

    time: str
    user: str | None = None
    number: int = 0

    @property
    def line(self) -> bytes:
        user = "" if self.user is None else f"<u>{self.user}</u>"
        return f"<i><t>{self.time}</t>{user}<n>{self.number}</n></i>\n".encode()


@dataclass(frozen=True)
class Declared:
    """What is declared of a stream's time; slack and origin are in seconds."""

    unit: TimeUnit | None = None
    slack: Fraction = Fraction(0)
    origin: Fraction = Fraction(0)
    timed: bool = True

    def source(self, folder: Path, parts: Sequence[Sequence[Reading]], name: str = "s") -> Source:
        """A stream of these partitions on disk."""
        folder.mkdir(parents=True, exist_ok=True)
        paths = [folder / f"{name}-{number}" for number in range(len(parts))]
        for path, part in zip(paths, parts, strict=True):
            path.write_bytes(b"".join(each.line for each in part))
        time = ItemPath.parse("t").counting(self.unit) if self.timed else None
        timing = {"time": time, "slack": self.slack, "origin": self.origin}
        return Source(name, paths[0], "lines", root="r", more=tuple(paths[1:]), **timing)  # type: ignore[arg-type]

    @property
    def many(self) -> int:
        """How many units are a second."""
        return PER_SECOND[self.unit]

    def value(self, text: str) -> tuple[Fraction, bool] | None:
        """Where a text stands, in units, and whether it is a time; read by Python's own calendar."""
        try:
            return Fraction(text), self.unit is not None
        except ValueError:
            pass
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            return None
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return Fraction((moment - _EPOCH) // timedelta(microseconds=1), 1_000_000) * self.many, True


@dataclass(frozen=True)
class Held:
    """An item that windows may hold: its value from the origin on, whether that is a time, and what it says."""

    value: Fraction
    is_time: bool
    reading: Reading


def in_time(declared: Declared, readings: Sequence[Reading]) -> Iterator[Held]:
    """What is not late, of one partition."""
    many = declared.many
    largest: Fraction | None = None
    for each in readings:
        if (found := declared.value(each.time)) is None:
            continue
        value, is_time = found[0] - declared.origin * many, found[1]
        if largest is None or value >= largest - declared.slack * many:
            yield Held(value, is_time, each)
        largest = value if largest is None else max(value, largest)


def windows_from_scratch(
    held: Sequence[Held], size: Fraction, step: Fraction
) -> list[tuple[Fraction, Fraction, list[Held]]]:
    """All windows in their order, with their bounds: each number that any of them may have is tried."""
    if not held:
        return []
    found: list[tuple[Fraction, Fraction, list[Held]]] = []
    first, last = (min(each.value for each in held) - size) // step, max(each.value for each in held) // step
    for k in range(first, last + 1):
        inside = [each for each in held if k * step <= each.value < k * step + size and (each.is_time or k >= 0)]
        if inside:
            found.append((k * step, k * step + size, inside))
    return found


def sessions_from_scratch(
    held: Sequence[Held], gap: Fraction, *, by_user: bool
) -> list[tuple[Fraction, Fraction, list[Held]]]:
    """All sessions in the order of their ends, with their bounds: near items are joined until nothing changes."""
    label = list(range(len(held)))
    for _ in held:
        for a, one in enumerate(held):
            for b, other in enumerate(held):
                is_near = abs(one.value - other.value) < gap
                if is_near and (not by_user or one.reading.user == other.reading.user):
                    label[a] = label[b] = min(label[a], label[b])
    groups = [[each for each, mine in zip(held, label, strict=True) if mine == number] for number in sorted({*label})]
    values = [[each.value for each in group] for group in groups]
    found = [(min(mine), max(mine) + gap, group) for mine, group in zip(values, groups, strict=True)]
    return sorted(found, key=lambda session: session[1])  # groups are in the order of their first items


def spelled(number: Fraction, is_time: bool, many: int) -> str:
    """A bound, by Python's own calendar."""
    if not is_time:
        text = f"{float(number):.9f}".rstrip("0").rstrip(".")
        return "0" if text == "-0" else text
    moment = _EPOCH + timedelta(microseconds=int(number / many * 1_000_000))
    text = moment.replace(tzinfo=None).isoformat()
    return f"{text.rstrip('0') if '.' in text else text}Z"


def shown(windows: Sequence[tuple[Fraction, Fraction, Sequence[Held]]], origin: Fraction, many: int) -> str:
    """What the query below makes of windows."""
    texts = []
    for start, end, content in windows:
        is_time = any(each.is_time for each in content)
        first, last = (spelled(each + origin, is_time, many) for each in (start, end))
        texts.append(f'<w s="{first}" e="{last}">{" ".join(str(each.reading.number) for each in content)}</w>')
    return "".join(texts)


SHOW = '<w s="{ window-start($w) }" e="{ window-end($w) }">{ for $i in $w return string($i/n) }</w>'


# --- cases -----------------------------------------------------------------------------------------------------


def spelled_time(random: Random, seconds: Fraction, style: str) -> str:
    """A moment as a dateTime in some zone, as a date where it is one, or as a number of some unit."""
    if style in PER_SECOND or style == "plain":
        number = seconds * PER_SECOND.get(style, 1)
        return str(int(number)) if number.denominator == 1 else str(float(number))
    moment = _EPOCH + timedelta(microseconds=int(seconds * 1_000_000))
    if random.random() < 0.2 and moment.time().isoformat() == "00:00:00":
        return moment.date().isoformat()
    hours = random.choice((None, 0, 0, 2, -5))
    zoned = moment + timedelta(hours=hours or 0)
    text = zoned.replace(tzinfo=None).isoformat()
    return f"{text}{'' if hours is None else 'Z' if hours == 0 else f'{hours:+03d}:00'}"


@dataclass(frozen=True)
class TimedCase:
    """A stream, and queries over it by name."""

    declared: Declared
    parts: list[list[Reading]]
    sizes: tuple[Fraction, Fraction]
    """The size and step of windows, and the gap is the step; in units."""
    queries: Mapping[str, str]


def timed_case(random: Random, partitions: int = 1) -> TimedCase:
    """Some case."""
    unit: TimeUnit | None = random.choice((None, None, "s", "ms", "us"))
    many = PER_SECOND[unit]
    base = Fraction(random.choice((0, 0, -20, 1_767_225_600)))
    slack = Fraction(random.choice((0, 0, 2, 7)))
    origin = Fraction(random.choice((0, 0, 0, 5))) + base * random.choice((0, 1))
    declared = Declared(unit, slack, origin, timed=unit is not None or partitions > 1 or random.random() < 0.5)
    kinds = random.choice((("iso",), ("iso",), (unit or "plain",), ("iso", unit or "plain")))
    now, parts = base, [list[Reading]() for _ in range(partitions)]
    for number in range(random.randint(1, 25)):
        now += random.choice((Fraction(0), Fraction(1, 2), Fraction(1), Fraction(3), Fraction(9)))
        seconds = now - random.choice((0, 0, 0, 1, 4))
        text = spelled_time(random, seconds, random.choice(kinds)) if random.random() < 0.95 else "soon"
        parts[random.randrange(partitions)].append(Reading(text, random.choice((None, "a", "a", "b", "1.0")), number))
    seconds_of_size, seconds_of_step = random.choice((10, 4)), random.choice((4, 2, 10, 13))
    size, step = f"PT{seconds_of_size}S", f"PT{seconds_of_step}S"
    if random.random() < 0.4:
        size, step = str(seconds_of_size * many), str(seconds_of_step * many)
    way = f"for $w in stream('s')/r/i|t diff {size} step {step}|"
    narrow = f"for $w in stream('s')/r/i[n mod 3 != 1]|t diff {step}|"
    queries = {
        "windows": f"{way} return {SHOW}",
        "counts": f"{way} return <n>{{ count($w), sum($w/n), max($w/n) }}</n>",
        "narrow": f"{narrow} return <n>{{ count($w), avg($w/n) }}</n>",
        "groups": f"{way} for $i in $w group by $u := $i/u return <g u='{{ $u }}'>{{ count($i), sum($i/n) }}</g>",
        "narrow groups": f"{narrow} for $i in $w where $i/n > 2 group by $u := $i/u return <g>{{ $u, max($i/n) }}</g>",
        "counted bounds": f"{way} return <n s='{{ window-start($w) }}' e='{{ window-end($w) }}'>{{ count($w) }}</n>",
        "bounds of groups": f"{way} for $i in $w group by $u := $i/u "
        "return <g s='{ window-start($w) }' u='{ $u }'>{ sum($i/n), window-end($w) }</g>",
        "narrow bounds": f"{narrow} let $s := window-start($w) where count($w) > 1 return ($s, max($w/n))",
        "bounds of some": f"{narrow} for $i in $w where $i/n > 2 group by $u := $i/u "
        "return <g>{ $u, window-end($w), count($i) }</g>",
        "late ones": f"{way} where count($w) > 1 return ($w/n, window-end($w))",
        "sessions": f"for $w in stream('s')/r/i|t gap {step}| return {SHOW}",
        "sessions by user": f"for $w in stream('s')/r/i|t gap {step} by u| return {SHOW}",
        "sums of sessions": f"for $w in stream('s')/r/i[n mod 3 != 1]|t gap {step} by u| return <n>{{ sum($w/n) }}</n>",
        "visits": f"for $w in stream('s')/r/i|t gap {step} by u| return "
        "<v u='{ $w[1]/u }' s='{ window-start($w) }' e='{ window-end($w) }'>{ count($w), sum($w/n) }</v>",
        "counted sessions": f"for $w in stream('s')/r/i[n mod 2 = 0]|t gap {size}| "
        "where count($w) > 1 return <v><e>{ window-end($w) }</e>{ max($w/n) }</v>",
        "join": f"for $x in stream('s')/r/i|t diff {size} step {step}|, $y in stream('s')/r/i|t diff {step}| "
        "where $x/n < $y/n return <p>{ $x/n, $y/n }</p>",
    }
    sizes = Fraction(seconds_of_size * many), Fraction(seconds_of_step * many)
    return TimedCase(declared, parts, sizes, queries)


def check_law(folder: Path, case: TimedCase) -> int:
    """Compare the law with what is found from scratch; gives how many windows there are."""
    (readings,) = case.parts
    source = case.declared.source(folder, case.parts)
    held = list(in_time(case.declared, readings))
    many = case.declared.many
    size, step = case.sizes
    found = {
        "windows": windows_from_scratch(held, size, step),
        "sessions": sessions_from_scratch(held, step, by_user=False),
        "sessions by user": sessions_from_scratch(held, step, by_user=True),
    }
    for name, windows in found.items():
        query = case.queries[name]
        law = law_of(check(parse(query), query, inputs={"s": None}).query, [source], endless=False)
        assert law.text == shown(windows, case.declared.origin * many, many), name
    return sum(map(len, found.values()))


def test_the_law_is_what_is_found_from_scratch(tmp_path: Path, mass: Mass) -> None:
    """Windows and sessions hold what they should, with their bounds, whatever their values are."""
    assert sum(check_law(tmp_path / str(number), timed_case(Random(number))) for number in mass.cases(400)) > 0


SHARDS = (1, 2, 5)


def check_trunk(folder: Path, random: Random) -> None:
    """Compare a trunk of any epochs, shards and tasks with the law, for a stream that has an end."""
    case = timed_case(random, random.choice((1, 1, 2, 3)))
    source = case.declared.source(folder, case.parts)
    size = source.size
    trunk = BareTrunk(folder / "state", [source], random, finite=True)
    trunk.run(case.queries, (size // 7 + 1, size // 3 + 1, size + 1), SHARDS)
    dead: Counter[object] = Counter()
    late: set[str] = set()
    for name, query in case.queries.items():
        law = law_of(check(parse(query), query, inputs={"s": None}).query, [source], endless=False, name=name)
        assert trunk.answer(name) == law.text, f"{name}: {query}"
        dead.update(law.dead)
        late |= law.late
    assert Counter(trunk.log.dead_letters()) == dead
    assert trunk.late() == late


def test_trunks_answer_what_the_law_says(tmp_path: Path, mass: Mass) -> None:
    """Answers, dead letters and late items are those of the law, by panes, in columns, and item by item."""
    for number in mass.cases(150):
        check_trunk(tmp_path / str(number), Random(f"trunk {number}"))


_CLOSING = b'<s:punctuation xmlns:s="urn:anabranch:stream" where="true()" at="4000000000"/>\n' * 2
"""Closes all windows; the second lets the merge take the first of the other partitions."""


def check_late(folder: Path, random: Random) -> None:
    """Compare a subscription that comes late with the law over what it sees, and one that was there with the whole."""
    case = timed_case(random, 1)
    readings = [each for each in case.parts[0] if each.time != "soon"]
    border = random.randint(1, len(readings)) if readings else 0
    source = case.declared.source(folder, [readings[:border]])
    rest = case.declared.source(folder / "law", [readings[border:]])
    size = 40 * len(readings) + 200
    trunk = BareTrunk(folder / "state", [source], random, finite=False)
    first = {f"first {name}": query for name, query in case.queries.items()}
    trunk.run(first, (size // 7, size), SHARDS)
    for path in (source.partitions[0], rest.partitions[0]):
        before = b"" if path == rest.path else path.read()
        seen = b"".join(each.line for each in readings[border:])
        path.put(before + seen + _CLOSING)
    trunk.run({**first, **case.queries}, (size // 7, size), SHARDS)
    for name, query in case.queries.items():
        checked = check(parse(query), query, inputs={"s": None}).query
        whole = law_of(checked, [source], endless=True)
        assert trunk.answer(f"first {name}") == whole.text, f"{name}: {query}"
        law = law_of(checked, [rest], endless=True, late={"s"} if border else ())
        assert trunk.answer(name) == law.text, f"{name}, late: {query}"


def test_late_subscriptions_leave_out_what_reaches_back(tmp_path: Path, mass: Mass) -> None:
    """LAWS 3.6 and 3.9: windows and sessions that begin before what a subscription sees are not its own."""
    for number in mass.cases(100):
        check_late(tmp_path / str(number), Random(f"late {number}"))
