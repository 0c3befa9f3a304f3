"""Regular expressions in time linear in the text (LAWS 2.8).

XPath's dialect, that of XML Schema with anchors, groups and reluctant quantifiers, is translated to RE2's, which never
backtracks; so no pattern takes more than time proportional to the text, whoever wrote it.
What RE2 does not have is refused with XPath's own code, FORX0002: back-references, and the blocks of Unicode by name.
`[a-z-[aeiou]]` has no counterpart in RE2 and is computed here, as ranges of characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import product
from typing import Any, TypeAlias

from anabranch.errors import DynamicError
from anabranch.values.numbers import shown

MOST_PATTERN = 2_000
"""Characters that a pattern has at most; RE2 itself bounds the size of the compiled form."""

Span: TypeAlias = tuple[int, int]
Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""Sets of characters: ranges, first and last, in their order."""

_LAST = 0x10FFFF
_QUANTIFIER = re.compile(r"\{([0-9]+)(,([0-9]*))?\}")
_CATEGORY = re.compile(r"L[ultmo]?|M[nce]?|N[dlo]?|P[cdseifo]?|Z[slp]?|S[mcko]?|C[cfon]?")
_SINGLE = {"n": 0xA, "r": 0xD, "t": 0x9, **{each: ord(each) for each in "\\|.?*+(){}-[]^$"}}
_NAME_START: Ranges = (
    *((0x3A, 0x3A), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A), (0xC0, 0xD6), (0xD8, 0xF6), (0xF8, 0x2FF)),
    *((0x370, 0x37D), (0x37F, 0x1FFF), (0x200C, 0x200D), (0x2070, 0x218F), (0x2C00, 0x2FEF), (0x3001, 0xD7FF)),
    *((0xF900, 0xFDCF), (0xFDF0, 0xFFFD), (0x10000, 0xEFFFF)),
)
_NAME_MORE: Ranges = ((0x2D, 0x2E), (0x30, 0x39), (0xB7, 0xB7), (0x300, 0x36F), (0x203F, 0x2040))


def _invalid(pattern: str, why: str) -> DynamicError:
    return DynamicError(f"'{shown(pattern)}' is no regular expression: {why}", code="FORX0002")


# --- sets of characters -----------------------------------------------------------------------------------


def _united(ranges: Sequence[tuple[int, int]]) -> Ranges:
    found: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(last, found[-1][1])
        else:
            found.append((first, last))
    return tuple(found)


def _others(ranges: Ranges) -> Ranges:
    found: list[tuple[int, int]] = []
    at = 0
    for first, last in ranges:
        if first > at:
            found.append((at, first - 1))
        at = last + 1
    if at <= _LAST:
        found.append((at, _LAST))
    return tuple(found)


def _without(ranges: Ranges, others: Ranges) -> Ranges:
    return _others(_united((*_others(ranges), *others)))


@cache
def _categories() -> dict[str, Ranges]:
    """The characters of each category of Unicode, by its two letters."""
    found: dict[str, list[tuple[int, int]]] = {}
    start, before = 0, unicodedata.category("\0")
    for code in range(1, _LAST + 2):
        category = unicodedata.category(chr(code)) if code <= _LAST else ""
        if category != before:
            found.setdefault(before, []).append((start, code - 1))
            start, before = code, category
    return {name: tuple(ranges) for name, ranges in found.items() if name != "Cs"}


@cache
def _category(name: str) -> Ranges:
    return _united([each for key, ranges in _categories().items() if key.startswith(name) for each in ranges])


@cache
def _escaped(letter: str) -> Ranges | None:
    """The characters that `\\d` and kin stand for."""
    match letter.lower():
        case "d":
            found = _category("Nd")
        case "s":
            found = ((0x9, 0xA), (0xD, 0xD), (0x20, 0x20))
        case "w":
            found = _others(_united((*_category("P"), *_category("Z"), *_category("C"))))
        case "i":
            found = _NAME_START
        case "c":
            found = _united((*_NAME_START, *_NAME_MORE))
        case _:
            return None
    return found if letter.islower() else _others(found)


def _spelled(ranges: Ranges) -> str:
    """A set of characters as RE2 writes it."""
    if not ranges:
        return r"[^\x{0}-\x{10FFFF}]"
    parts = (f"\\x{{{first:X}}}" + ("" if first == last else f"-\\x{{{last:X}}}") for first, last in ranges)
    return f"[{''.join(parts)}]"


# --- translation ------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Translator:
    """Reads a pattern of XPath from left to right and writes it for RE2."""

    pattern: str
    dots_match_all: bool
    ignores_space: bool
    at: int = 0
    parents: list[int] = field(default_factory=list)
    open: tuple[int, ...] = ()
    """The groups around the place that is read, 0 for one that captures nothing."""

    def fail(self, why: str) -> DynamicError:
        return _invalid(self.pattern, why)

    def peek(self) -> str:
        if self.ignores_space:
            while self.at < len(self.pattern) and self.pattern[self.at] in " \t\r\n":
                self.at += 1
        return self.pattern[self.at : self.at + 1]

    def next(self) -> str:
        found = self.peek()
        if not found:
            raise self.fail("it ends too early")
        self.at += 1
        return found

    def branches(self) -> str:
        written = self.branch()
        while self.peek() == "|":
            self.at += 1
            written += "|" + self.branch()
        return written

    def branch(self) -> str:
        written = ""
        while (mark := self.peek()) and mark not in "|)":
            written += self.piece()
        if mark == ")" and not self.open:
            raise self.fail("')' closes nothing")
        return written

    def piece(self) -> str:
        mark = self.next()
        match mark:
            case "(":
                atom = self.group()
            case "[":
                atom = self.bracket()
            case ".":
                atom = r"(?s:.)" if self.dots_match_all else r"[^\n\r]"
            case "\\":
                atom = self.escape()
            case "^" | "$":
                atom = f"(?:{mark})"
            case "?" | "*" | "+" | "{" | "}" | "]":
                raise self.fail(f"'{mark}' stands alone")
            case _:
                atom = _spelled(((ord(mark), ord(mark)),))
        return atom + self.quantifier()

    def group(self) -> str:
        captures = True
        if self.peek() == "?":
            if self.pattern[self.at : self.at + 2] != "?:":
                raise self.fail("'(?' begins no group")
            self.at += 2
            captures = False
        around = self.open
        if captures:
            self.parents.append(next((each for each in reversed(around) if each), 0))
        number = len(self.parents) if captures else 0
        self.open = (*around, number)
        inside = self.branches()
        if self.peek() != ")":
            raise self.fail("a group is never closed")
        self.at += 1
        self.open = around
        return f"({f'?P<g{number}>' if captures else '?:'}{inside})"

    def quantifier(self) -> str:
        mark = self.peek()
        if not mark or mark not in "?*+{":
            return ""
        if mark == "{":
            found = _QUANTIFIER.match(self.pattern, self.at)
            if found is None:
                raise self.fail("'{' begins no quantifier")
            least, most = found[1], found[3]
            if most and int(most) < int(least):
                raise self.fail("a quantifier ends before it begins")
            if max(int(each) for each in (least, most or "0")) > 1_000:
                raise self.fail("more than 1,000 repetitions")
            self.at = found.end()
            written = found[0]
        else:
            self.at += 1
            written = mark
        if self.peek() == "?":
            self.at += 1
            written += "?"
        if (more := self.peek()) and more in "?*+{":
            raise self.fail("two quantifiers in a row")
        return written

    def escape(self) -> str:
        letter = self.next()
        if letter in "123456789":
            raise self.fail("back-references are not known: they take time without bound")
        if letter in "pP":
            return f"(?-i:{_spelled(self.property(letter == 'P'))})"
        if letter in _SINGLE:
            return _spelled(((_SINGLE[letter],) * 2,))
        ranges = _escaped(letter)
        if ranges is None:
            raise self.fail(f"'\\{letter}' is not known")
        return _spelled(ranges)

    def property(self, negated: bool) -> Ranges:
        end = self.pattern.find("}", self.at)
        if self.pattern[self.at : self.at + 1] != "{" or end < 0:
            raise self.fail("'\\p' needs a name in braces")
        name = self.pattern[self.at + 1 : end]
        self.at = end + 1
        if self.ignores_space:
            name = "".join(each for each in name if each not in " \t\r\n")
        if not _CATEGORY.fullmatch(name):
            raise self.fail(f"'{name}' is no category of characters that is known")
        return _others(_category(name)) if negated else _category(name)

    def bracket(self) -> str:
        """A class of characters, in which white space counts.

        `[^...]` stays negated in RE2's notation, so that the flag `i` applies before the negation.
        """
        before, self.ignores_space = self.ignores_space, False
        at = self.at
        found = self.character_class()
        self.ignores_space = before
        if self.pattern[at] != "^" or "-[" in self.pattern[at : self.at]:
            return _spelled(found)
        return _spelled(_others(found)).replace("[", "[^", 1) if _others(found) else r"(?s:.)"

    def character_class(self) -> Ranges:
        """What stands behind `[`, up to its `]`."""
        negated = self.peek() == "^"
        self.at += negated
        found: list[tuple[int, int]] = []
        empty = True
        while True:
            mark = self.next()
            if mark == "]" and not empty:
                return self._negated(_united(found), negated)
            if mark == "-" and not empty and self.peek() == "[":
                self.at += 1
                less = self.character_class()
                if self.next() != "]":
                    raise self.fail("what is taken away stands at the end of '[...]'")
                return _without(self._negated(_united(found), negated), less)
            empty = False
            first = self.class_part(mark)
            if isinstance(first, tuple):
                found += first
                continue
            last = first
            if self.peek() == "-" and self.pattern[self.at + 1 : self.at + 2] not in ("]", "["):
                self.at += 1
                end = self.class_part(self.next())
                if isinstance(end, tuple) or end < first:
                    raise self.fail("a range of characters ends before it begins")
                last = end
            elif mark == "-" and self.peek() != "]" and found:
                raise self.fail("'-' stands between characters")
            found.append((first, last))

    def _negated(self, ranges: Ranges, negated: bool) -> Ranges:
        return _others(ranges) if negated else ranges

    def class_part(self, mark: str) -> int | Ranges:
        """One character of a class, or the many that an escape stands for."""
        if mark == "\\":
            letter = self.next()
            if letter in "pP":
                return self.property(letter == "P")
            if letter in _SINGLE:
                return _SINGLE[letter]
            ranges = _escaped(letter)
            if ranges is None:
                raise self.fail(f"'\\{letter}' is not known in '[...]'")
            return ranges
        if mark in "[]":
            raise self.fail(f"'{mark}' stands alone in '[...]'")
        return ord(mark)


@dataclass(frozen=True, slots=True)
class Regular:
    """A pattern as RE2 takes it."""

    text: str
    parents: tuple[int, ...] = ()
    """For each group, the number of the group that it stands in, 0 for none; groups are counted from 1."""
    is_literal: bool = False

    @property
    def groups(self) -> int:
        """How many groups it has."""
        return len(self.parents)

    def found_in(self, text: str) -> bool:
        """Whether some part of a text matches."""
        return self.all_found_in([text])[0]

    def all_found_in(self, texts: list[str]) -> list[bool]:
        """For each of many texts, whether some part of it matches."""
        found: list[bool] = _computed("match_substring_regex", texts, self.text)
        return found

    def split(self, text: str) -> list[str]:
        """The parts between those that match."""
        parts: list[str] = _computed("split_pattern_regex", [text], self.text)[0]
        return parts

    def parts(self, text: str) -> Sequence[str]:
        """All of a text: by turns what stands between matches, and a match."""
        known = set(text)
        mark = next((chr(code) for code in range(_LAST) if chr(code) not in known and not 0xD800 <= code <= 0xDFFF), "")
        if not mark:
            raise DynamicError("the text has all characters that there are", code="FOCH0001")
        return self.replaced(text, f"{mark}\\0{mark}").split(mark)

    def groups_of(self, matches: Sequence[tuple[str, str, str]]) -> list[list[Span | None]]:
        """For each match, where its groups begin and end in it; None for a group that took no part.

        A match comes with the characters before and behind it, if any: what `^` and `$` mean depends on them.
        """
        found: list[list[Span | None]] = [[] for _ in matches]
        for has_before, has_behind in product((False, True), repeat=2):
            places = [
                place
                for place, (before, _, behind) in enumerate(matches)
                if (bool(before), bool(behind)) == (has_before, has_behind)
            ]
            around = [r"(?s:.)" if each else "" for each in (has_before, has_behind)]
            pattern = rf"\A{around[0]}(?:{self.text}){around[1]}\z"
            texts = ["".join(matches[place]) for place in places]
            for place, row in zip(places, _computed("extract_regex_span", texts, pattern), strict=True):
                found[place] = [_span(row[f"g{n}"], *matches[place]) for n in range(1, self.groups + 1)]
        return found

    def replaced(self, text: str, replacement: str) -> str:
        """A text with something, in RE2's notation, in the place of what matches."""
        return self.all_replaced([text], replacement)[0]

    def all_replaced(self, texts: list[str], replacement: str) -> list[str]:
        """Many texts, each with the replacement in the place of what matches."""
        found: list[str] = _computed("replace_substring_regex", texts, self.text, replacement)
        return found


def _span(found: Sequence[int] | None, before: str, match: str, _: str) -> Span | None:
    """Where a group stands in a match, counted in characters; what is found is counted in bytes."""
    if found is None:
        return None
    start, length = found[0] - len(before.encode()), found[1]
    raw = match.encode()
    first = len(raw[:start].decode())
    return first, first + len(raw[start : start + length].decode())


def _computed(function: str, texts: list[str], *arguments: str) -> list[Any]:
    """The result of a function of Arrow over texts; only the first call loads Arrow."""
    import pyarrow
    import pyarrow.compute

    found: list[Any] = getattr(pyarrow.compute, function)(
        pyarrow.array(texts, pyarrow.string()), *arguments
    ).to_pylist()
    return found


@lru_cache(maxsize=1_024)
def regular(pattern: str, flags: str) -> Regular:
    """A pattern of XPath with its flags; raises FORX0001 and FORX0002."""
    if set(flags) - set("smixq"):
        raise DynamicError(f"'{shown(flags)}' are no flags of a regular expression", code="FORX0001")
    if len(pattern) > MOST_PATTERN:
        raise _invalid(pattern, f"it has more than {MOST_PATTERN:,} characters")
    marks = "".join(sorted(set(flags) & set("im")))
    parents: tuple[int, ...] = ()
    if "q" in flags:
        marks = marks.replace("m", "")
        body = "".join(_spelled(((ord(each), ord(each)),)) for each in pattern)
    else:
        translator = _Translator(pattern, "s" in flags, "x" in flags)
        body = translator.branches()
        if translator.peek():
            raise translator.fail("')' closes nothing")
        parents = tuple(translator.parents)
    written = f"(?{marks}:{body})" if marks else body
    found = Regular(written, parents, is_literal="q" in flags)
    try:
        found.found_in("")
    except ValueError:  # Arrow's ArrowInvalid is one
        raise _invalid(pattern, "it is too large") from None
    return found


def replacement_for(found: Regular, text: str) -> str:
    """A replacement of XPath, `$1` and kin, in RE2's notation; raises FORX0004."""
    if found.is_literal:
        return text.replace("\\", "\\\\")
    written: list[str] = []
    at = 0
    while at < len(text):
        mark = text[at]
        at += 1
        if mark == "\\":
            if text[at : at + 1] not in ("\\", "$") or at == len(text):
                raise DynamicError("'\\' stands before '\\' or '$' in a replacement", code="FORX0004")
            written.append("\\\\" if text[at] == "\\" else "$")
            at += 1
        elif mark == "$":
            digits = re.compile("[0-9]+").match(text, at)
            if digits is None:
                raise DynamicError("'$' stands before the number of a group in a replacement", code="FORX0004")
            number = digits[0]
            while len(number) > 1 and int(number) > found.groups:
                number = number[:-1]  # what follows are plain digits
            at += len(number)
            written.append(_group(int(number), found.groups))
        else:
            written.append(mark)
    return "".join(written)


def _group(number: int, groups: int) -> str:
    if number > groups:
        return ""
    if number > 9:
        raise DynamicError("a replacement names the groups 0 to 9", code="FORX0004")
    return f"\\{number}"
