"""Queries over times and durations and items to ask them of, drawn at random.

An expression is of a known type, so that a processor that knows types before it runs finds nothing wrong; what fails
are the texts of items.
Saxon keeps nanoseconds in times, and rounds quotients as no other does, so fractions stay short and divisors small.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

FIELDS = {
    "a": (
        "dateTime",
        "2026-03-01T09:00:00Z 2026-03-01T10:00:00+01:00 2026-03-01T09:00:00 2026-03-01T09:00:00.5Z noon 12",
    ),
    "b": (
        "dateTime",
        "-0044-03-15T12:00:00Z 2026-02-28T24:00:00Z 2024-02-29T23:59:59.999-05:30 1969-12-31T23:59:30Z 2026-03-01 x",
    ),
    "d": ("date", "2026-01-31 0000-03-01 2024-02-29Z 2026-03-01+14:00 2025-12-31-13:59 2026-02-30 2026-1-1"),
    "c": ("time", "00:00:00 23:59:59.25Z 24:00:00 12:30:00+05:30 12:30:00-11:00 25:00:00 noon"),
    "u": ("dayTimeDuration", "PT0S PT90M -P1DT0.125S P3D PT1.5S P1Y PT"),
    "m": ("yearMonthDuration", "P0M P13M -P1Y P1Y2M P1D P"),
    "n": ("integer", "0 1 2 -3 10 1.5 x"),
}
"""By the name of a child: the type that is meant, and texts, the last two of which are none of it."""


def item_values(random: Random) -> list[tuple[str, str]]:
    """The children of an item: each once, and rarely twice; some are missing, or texts of the wrong type, never both.

    Whether an operand fails beside one that is missing is left open by XQuery.
    """
    found = []
    times, wrong = random.choice((((1, 1, 1, 1, 0), 0.0), ((1, 1, 1, 1, 1, 1, 2), 0.15)))
    for name, (_, texts) in FIELDS.items():
        for _ in range(random.choice(times)):
            known = texts.split(" ")
            found.append((name, random.choice(known[-2:] if random.random() < wrong else known[:-2])))
    return found


def xml_item(values: list[tuple[str, str]]) -> str:
    """An item in XML."""
    return f"<i>{''.join(f'<{name}>{text}</{name}>' for name, text in values)}</i>"


def json_item(values: list[tuple[str, str]]) -> str:
    """The same in JSON; what comes twice is an array."""
    texts: dict[str, list[str]] = {}
    for name, text in values:
        texts.setdefault(name, []).append(text)
    return json.dumps({name: each[0] if len(each) == 1 else each for name, each in texts.items()})


@dataclass(frozen=True)
class TimeExpressions:
    """Draws expressions of a type about the item in `$p`."""

    random: Random

    def of(self, kind: str, depth: int) -> str:
        """An expression of a type, so many operators deep at most."""
        makers: dict[str, tuple[Callable[[int], str], ...]] = {
            "dateTime": (self._moved, self._extreme("dateTime"), self._chosen("dateTime"), self._date_time),
            "date": (self._moved_date, self._extreme("date"), self._cast("date", "dateTime"), self._adjusted("date")),
            "time": (self._moved_time, self._extreme("time"), self._cast("time", "dateTime"), self._adjusted("time")),
            "dayTimeDuration": (
                self._difference,
                self._sum("dayTimeDuration"),
                self._scaled("dayTimeDuration"),
                self._zone,
            ),
            "yearMonthDuration": (self._sum("yearMonthDuration"), self._scaled("yearMonthDuration")),
            "integer": (self._component, self._component, self._quotient),
            "boolean": (self._compared, self._compared, self._castable),
            "string": (lambda deep: f"string({self.of(self._any(), deep)})",),
        }
        if depth <= 0 and kind not in ("boolean", "string"):
            return self._leaf(kind)
        return self.random.choice(makers[kind])(depth - 1)

    def _any(self) -> str:
        return self.random.choice(("dateTime", "date", "time", "dayTimeDuration", "yearMonthDuration"))

    def _leaf(self, kind: str) -> str:
        name, texts = self.random.choice([(name, texts) for name, (of, texts) in FIELDS.items() if of == kind])
        if self.random.random() < 0.7:
            return f"xs:{kind}($p/{name})"
        return f'xs:{kind}("{self.random.choice(texts.split(" ")[:-2])}")'

    def _extreme(self, kind: str) -> Callable[[int], str]:
        return lambda deep: f"{self.random.choice(('min', 'max'))}(({self.of(kind, deep)}, {self.of(kind, deep)}))"

    def _chosen(self, kind: str) -> Callable[[int], str]:
        return lambda deep: f"(if ({self.of('boolean', deep)}) then {self.of(kind, deep)} else {self.of(kind, 0)})"

    def _cast(self, kind: str, source: str) -> Callable[[int], str]:
        return lambda deep: f"(({self.of(source, deep)}) cast as xs:{kind}?)"

    def _date_time(self, deep: int) -> str:
        if self.random.random() < 0.5:
            return f"dateTime({self.of('date', deep)}, {self.of('time', deep)})"
        return self._adjusted("dateTime")(deep)

    def _adjusted(self, kind: str) -> Callable[[int], str]:
        zone = self.random.choice(("", ", ()", ', xs:dayTimeDuration("-PT5H30M")'))
        return lambda deep: f"adjust-{kind}-to-timezone({self.of(kind, deep)}{zone})"

    def _moved(self, deep: int) -> str:
        by = self.of(self.random.choice(("dayTimeDuration", "yearMonthDuration")), deep)
        return f"({self.of('dateTime', deep)} {self.random.choice('+-')} {by})"

    def _moved_date(self, deep: int) -> str:
        by = self.of(self.random.choice(("dayTimeDuration", "yearMonthDuration")), deep)
        return f"({self.of('date', deep)} {self.random.choice('+-')} {by})"

    def _moved_time(self, deep: int) -> str:
        return f"({self.of('time', deep)} {self.random.choice('+-')} {self.of('dayTimeDuration', deep)})"

    def _difference(self, deep: int) -> str:
        kind = self.random.choice(("dateTime", "date", "time"))
        return f"({self.of(kind, deep)} - {self.of(kind, deep)})"

    def _sum(self, kind: str) -> Callable[[int], str]:
        def made(deep: int) -> str:
            one, other = self.of(kind, deep), self.of(kind, deep)
            return self.random.choice(
                (f"({one} + {other})", f"({one} - {other})", f"sum(({one}, {other}))", f"avg(({one}, {other}))")
            )

        return made

    def _scaled(self, kind: str) -> Callable[[int], str]:
        by = self.random.choice(("* 2", "* 1.5", "* -0.5", "div 2", "div 5", "* count($p/*)"))
        return lambda deep: f"({self.of(kind, deep)} {by})"

    def _zone(self, deep: int) -> str:
        kind = self.random.choice(("dateTime", "date", "time"))
        return f"timezone-from-{kind}({self.of(kind, deep)})"

    def _component(self, deep: int) -> str:
        kind, parts = self.random.choice(
            (
                ("dateTime", "year month day hours minutes seconds"),
                ("date", "year month day"),
                ("time", "hours minutes seconds"),
                ("dayTimeDuration", "days hours minutes seconds"),
                ("yearMonthDuration", "years months"),
            )
        )
        part = self.random.choice(parts.split(" "))
        return f"{part}-from-{'duration' if 'Duration' in kind else kind}({self.of(kind, deep)})"

    def _quotient(self, deep: int) -> str:
        kind, unit = self.random.choice((("dayTimeDuration", "PT1S"), ("yearMonthDuration", "P1M")))
        return f'({self.of(kind, deep)} div xs:{kind}("{unit}"))'

    def _compared(self, deep: int) -> str:
        operator = self.random.choice(("=", "!=", "<", "<=", ">", ">="))
        kind = self._any()
        right = self.of(kind, deep)
        names = [name for name, (of, _) in FIELDS.items() if of == kind]
        left = f"$p/{self.random.choice(names)}" if self.random.random() < 0.5 else self.of(kind, deep)
        if self.random.random() < 0.2:
            left, right = f"$p/{self.random.choice('ab')}", f"$p/{self.random.choice('ab')}"
        return f"({left} {operator} {right})"

    def _castable(self, deep: int) -> str:
        name = self.random.choice(list(FIELDS))
        return f"($p/{name} castable as xs:{self.random.choice((*FIELDS.values(),))[0]}{self.random.choice(('', '?'))})"


def time_query(random: Random) -> str:
    """A query over the stream `s`: about each item, about their order, or about windows of them."""
    draw = TimeExpressions(random)
    kinds = ("dateTime", "date", "time", "dayTimeDuration", "yearMonthDuration", "integer", "boolean", "string")
    one, other = (draw.of(random.choice(kinds), random.randint(0, 3)) for _ in range(2))
    path, size, spelled = f"$w/{random.choice('abn')}", random.randint(1, 4), '<o>{ string-join($p/*, " ") }</o>'
    key, way = random.choice((one, "$p/a", "$p/b")), random.choice(("", " descending"))
    return random.choice(
        (
            f'for $p in stream("s")/r/i return <o>{{ {one}, {other} }}</o>',
            f'for $p in stream("s")/r/i where {draw.of("boolean", 2)} return <o at="{{ {one} }}"/>',
            f'for $p in stream("s")/r/i[{draw.of("boolean", 1).replace("$p/", "")}] return {spelled}',
            f'for $p in stream("s")/r/i order by {key}{way} return {spelled}',
            f'for $w in stream("s")/r/i|count {size}| return <w>{{ count($w), min({path}), max({path}) }}</w>',
            f'for $w in stream("s")/r/i|count {size}| return '
            f"<w>{{ for $p in $w order by $p/{random.choice('ab')}{way} return <o>{{ {one} }}</o> }}</w>",
        )
    )
