"""A question written in SQL."""

from __future__ import annotations

from spellings.questions import (
    Aggregate,
    All,
    Among,
    Applied,
    Bound,
    Choice,
    Compared,
    Computed,
    Condition,
    Constant,
    Either,
    Expression,
    Field,
    FirstOf,
    Groups,
    Joined,
    Key,
    Like,
    Lookups,
    Missing,
    Negated,
    Pairs,
    Question,
    Rows,
    United,
    Unless,
    Window,
    Within,
)


def names(count: int) -> list[str]:
    """The names of the columns of an answer."""
    return [f"c{number}" for number in range(count)]


class Sql:
    """Writes questions in SQL."""

    def __init__(self, dated: bool) -> None:
        self._dated = dated
        self._qualified = False
        """Whether columns need the names of their tables."""

    def question(self, question: Question) -> str:
        self._qualified = isinstance(question, Pairs | Lookups)
        match question:
            case Rows(columns, where, window, order, limit, offset):
                text = self._select(columns, self._from(window), where)
                if order:
                    text += f" ORDER BY {', '.join(map(self._key, order))}"
                text += "" if limit is None else f" LIMIT {limit}"
                return text + (f" OFFSET {offset}" if offset else "")
            case Groups(keys, columns, where, having, window):
                by = [*map(self.value, keys), *(["window_start"] if window is not None else [])]
                text = self._select(columns, self._from(window), where)
                text += f" GROUP BY {', '.join(by)}" if by else ""
                return text + ("" if having is None else f" HAVING {self.value(having)}")
            case Pairs(columns, where, within):
                length = f"INTERVAL '{within} SECONDS'" if self._dated else str(within)
                met = f"s JOIN u ON s.k = u.k AND u.t BETWEEN s.t AND s.t + {length}"
                return self._select(columns, met, where)
            case Lookups(columns, where, outer):
                return self._select(columns, f"s {'LEFT JOIN' if outer else 'JOIN'} p ON s.k = p.k", where)
            case United(first, second):
                return f"{self.question(first)} UNION ALL {self.question(second)}"

    def _select(self, columns: tuple[Expression, ...], source: str, where: Condition | None) -> str:
        shown = (f"{self.value(each)} AS {name}" for each, name in zip(columns, names(len(columns)), strict=True))
        return f"SELECT {', '.join(shown)} FROM {source}" + ("" if where is None else f" WHERE {self.value(where)}")

    def _from(self, window: Window | None) -> str:
        if window is None:
            return "s"
        if window.gap:
            return f"SESSION(s, t, {self._size(window.gap)}{'' if window.key is None else f', {window.key}'})"
        if window.size == window.step:
            return f"TUMBLE(s, t, {self._size(window.size)})"
        return f"HOP(s, t, {self._size(window.step)}, {self._size(window.size)})"

    def _size(self, seconds: int) -> str:
        return f"INTERVAL '{seconds} SECONDS'" if self._dated else str(seconds)

    def _key(self, key: Key) -> str:
        nulls = "" if key.nulls is None else f" NULLS {key.nulls.upper()}"
        return f"{self.value(key.value)}{' DESC' if key.descending else ''}{nulls}"

    def value(self, expression: Expression) -> str:
        """An expression or condition."""
        match expression:
            case Field(path, _, member, table):
                place = "" if member is None else f"[{member}]"
                return f"{f'{table}.' if self._qualified else ''}{'.'.join(path)}{place}"
            case Constant(text, "number"):
                return text
            case Constant(text):
                return "'" + text.replace("'", "''") + "'"
            case Bound(which):
                return f"window_{which}"
            case Computed(operator, left, right):
                return f"({self.value(left)} {operator} {self.value(right)})"
            case Applied("position", value, (part,)):
                return f"POSITION({self.value(part)} IN {self.value(value)})"
            case Applied(function, value, others):
                return f"{function.upper()}({', '.join(map(self.value, (value, *others)))})"
            case Joined(parts):
                return f"({' || '.join(map(self.value, parts))})"
            case Choice(condition, value, other):
                otherwise = "" if other is None else f" ELSE {self.value(other)}"
                return f"CASE WHEN {self.value(condition)} THEN {self.value(value)}{otherwise} END"
            case FirstOf(values):
                return f"COALESCE({', '.join(map(self.value, values))})"
            case Unless(value, other):
                return f"NULLIF({self.value(value)}, {self.value(other)})"
            case Aggregate(function, argument, distinct, where):
                taken = "*" if argument is None else f"{'DISTINCT ' if distinct else ''}{self.value(argument)}"
                some = "" if where is None else f" FILTER (WHERE {self.value(where)})"
                return f"{function.upper()}({taken}){some}"
            case _:
                return self._condition(expression)

    def _condition(self, condition: Condition) -> str:
        match condition:
            case Compared(operator, left, right):
                return f"{self.value(left)} {'<>' if operator == '!=' else operator} {self.value(right)}"
            case All(conditions):
                return f"({' AND '.join(map(self.value, conditions))})"
            case Either(conditions):
                return f"({' OR '.join(map(self.value, conditions))})"
            case Negated(Missing(value)):
                return f"{self.value(value)} IS NOT NULL"
            case Negated(Within() | Among() | Like() as inner):
                return self._ranged(inner, "NOT ")
            case Negated(inner):
                return f"NOT ({self.value(inner)})"
            case Missing(value):
                return f"{self.value(value)} IS NULL"
            case Within() | Among() | Like():
                return self._ranged(condition, "")
            case Field():
                return self.value(condition)

    def _ranged(self, condition: Within | Among | Like, negation: str) -> str:
        match condition:
            case Within(value, low, high):
                return f"{self.value(value)} {negation}BETWEEN {self.value(low)} AND {self.value(high)}"
            case Among(value, constants):
                return f"{self.value(value)} {negation}IN ({', '.join(map(self.value, constants))})"
            case Like(value, parts):
                marks = {None: "%", "": "_"}
                texts = (marks.get(each) or _escaped(str(each)) for each in parts)
                return f"{self.value(value)} {negation}LIKE {self.value(Constant(''.join(texts), 'text'))}"


def _escaped(text: str) -> str:
    return "".join(f"\\{each}" if each in "\\%_" else each for each in text)
