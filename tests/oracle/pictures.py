"""Random calls of the functions with pictures, of `analyze-string()` and of `parse-ietf-date()`, and Saxon's answers.

Left out is where Saxon departs from XQuery's text, or where that leaves the choice: groups behind the point of a number
or beside an exponent, `e` as a suffix, percent beside an exponent, the least doubles; names of what has none and the
usual case of names; widths of letters and words, which it fills with no characters at all; Roman years beyond 9,999.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from random import Random

from saxonche import PySaxonProcessor

from reference.asking import ask

_NUMBERS = (
    *("0", "1", "-1", "0.5", "-0.5", "1.5", "2.5", "12345.6789", "-1234567.891", "0.000123456", "999.995", "9.995"),
    *("0.29e0", "2.675e0", "2.665e0", "1e23", "1.5e-7", "123456789012345678901234567890", "-0e0", "()", "0.07e0"),
    *("xs:double('INF')", "xs:double('-INF')", "xs:double('NaN')", "99.99e0", "9.99e0", "0.95", "1e-300", "100", "1e5"),
    *("1.7976931348623157e308", "123.456e0", "0.1e0", "xs:untypedAtomic('1.30')"),
)
_WHOLE = ("0", "#", "#,##0", "#,###", "##0", "00", "#,##,##0", "0,000", "###,#0", "", ",000", "00,0,00", "0,0")
_FRACTIONS = ("", ".", ".0", ".00", ".0#", ".##", ".#", ".####", ".000")
_EXPONENTS = ("", "", "", "e0", "e00", "e000", "e#")
_BEFORE, _BEHIND = ("", "", "$", "a b ", "(", "-", "%", "EUR "), ("", "", ")", "%", "\u2030", " kg", "!", "%%")
_DAYS = (
    *("2026-03-01", "2026-03-21", "2025-12-31", "2024-02-29", "2027-01-01", "0999-06-30", "1970-01-01", "2026-04-22"),
    *("2026-04-21", "2026-04-23", "9026-09-09", "2026-02-28", "2005-10-01"),
)
_CLOCKS = ("00:00:00", "12:00:00", "23:59:59.999", "09:05:07.05", "12:34:56.789", "01:00:00.120", "11:59:59")
_ZONES = ("", "", "Z", "-05:00", "+05:30", "+14:00", "-00:30", "-12:00", "+01:00")
_STYLES = (
    "",
    "",
    "1",
    "01",
    "001",
    "0001",
    "i",
    "I",
    "a",
    "A",
    "w",
    "W",
    "Ww",
    "1o",
    "wo",
    "#1",
    "##01",
    "0",
    "\u0660\u0661",
    "$",
)
_ZONE_STYLES = (
    "",
    "",
    "N",
    "n",
    "Z",
    "0",
    "00",
    "0000",
    "000",
    "0:00",
    "00:00",
    "00.00",
    "0t",
    "00:00t",
    "\u0660\u0660:\u0660\u0660",
)
_PATTERNS = (
    *("(a)(b)?", "a|b", "(a|(b))c", "([a-c])([0-9]*)", "(x)?y", "((a)(b))c?", r"(\w+)\s(\w+)", "^(a)", "(.)$", "é(.)?"),
    *("a(?:b(c))", "(a+)(a)", "(a+?)(a)", "[^a]+", "(a)|(b)|(c)", "a()", r"(\d+)-(\d+)", "(?:(a)|b)c", "(a(b(c)))"),
)
_PIECES = ("a", "b", "c", "ab", "abc", "x", "y", "1", "2-3", " ", "é", "日", "𝄞", "&#10;", "A", "B")
_DEPARTS = re.compile(
    r"\[[FCE]\s*(,|\])|\[[CE]|\[P\s*[^NnW,\]]|\[[^FMPCEzZ] *[Nn]|.*[aAiIwW]o?,|\[f\s*0#"  # the parts of times
)


def number_call(random: Random) -> str:
    """A call of `format-number()`."""
    number = (
        random.choice(_NUMBERS)
        if random.random() < 0.7
        else f"{random.uniform(-1e3, 1e3)!r}e{random.randrange(-8, 20)}"
    )
    parts = [_number_part(random) for _ in range(1 if random.random() < 0.8 else 2)]
    return f"format-number({number}, '{';'.join(parts)}')"


def _number_part(random: Random) -> str:
    while True:
        digits = "".join(map(random.choice, (_WHOLE, _FRACTIONS, _EXPONENTS)))
        if random.random() < 0.1:
            place = random.randrange(len(digits) + 1)
            digits = digits[:place] + random.choice("0#.,x") + digits[place:]
        part = random.choice(_BEFORE) + digits + random.choice(_BEHIND)
        groups_behind = "." in digits and "," in digits[digits.find(".") :]
        if not groups_behind and not digits.endswith("e") and not ("e" in digits and set(part) & set(",%\u2030")):
            return part


def time_call(random: Random) -> str:
    """A call of `format-dateTime()`, `format-date()` or `format-time()`."""
    kind = random.choice(("dateTime", "date", "time"))
    day, clock, zone = random.choice(_DAYS), random.choice(_CLOCKS), random.choice(_ZONES)
    text = {"dateTime": f"{day}T{clock}", "date": day, "time": clock}[kind] + zone
    picture = "".join(_time_part(random) for _ in range(random.choice((1, 1, 2))))
    if kind == "dateTime" and random.random() < 0.1:  # elsewhere which error is found first is open
        picture += random.choice(("[", "]", "[]", "[Y,]", "[Y,0-2]", "[D,3-2]", "[D,a]", "[[x]]", "é"))
    more = random.choice(("", "", "", ", 'en', (), ()", ", 'en-GB', 'AD', ()", ", 'de', 'ISO', ()", ", 'fr', 'OS', ()"))
    return f"format-{kind}(xs:{kind}('{text}'), '{picture}'{more})"


def _time_part(random: Random) -> str:
    while True:
        letter = random.choice("YMDdFWwHhPmsfZzCE")
        style = random.choice(_ZONE_STYLES if letter in "Zz" else _STYLES)
        if letter == "f":
            style = random.choice(("", "1", "01", "001", "0001", "1##"))
        if letter in "FMP" and random.random() < 0.6:
            style = random.choice(("N", "n", "Nn"))
        least, most = (
            random.choice(("*", "1", "2", "3", "5", "12")),
            random.choice(("*", "1", "2", "3", "4", "8", "12")),
        )
        fits = "*" in (least, most) or int(least) <= int(most)
        widths = "" if random.random() < 0.65 else f",{least}-{most}" if fits else f",{least}"
        part = f"[{letter}{random.choice(('', '', '', ' '))}{style}{widths}]"
        if not _DEPARTS.match(part) and "$" not in part:
            return random.choice(("", "", " ", ":", "T")) + part


def analysis_call(random: Random) -> str:
    """A call of `analyze-string()`."""
    text = "".join(random.choice(_PIECES) for _ in range(random.randrange(9)))
    flags = random.choice(("", "i", "m", "s", "x", "q", "im", "ms"))
    return f"<x>{{ analyze-string('{text}', '{random.choice(_PATTERNS)}', '{flags}') }}</x>"


def ietf_call(random: Random) -> str:
    """A call of `parse-ietf-date()`, mostly of what it takes."""
    day = random.choice(("", "", "Wed, ", "Wednesday ", "wed,  ", "Wed,"))
    dash = random.choice((" ", "  ", "-", " - ", "/"))
    number, month = random.choice(("6", "06", "31", "29", "0")), random.choice(("Jun", "JUN", "feb", "Dec", "June"))
    year = random.choice(("1994", "94", "2024", "994"))
    clock = random.choice(("07:29:35", "7:29", "07:29:35.250", "24:00:00", "25:00", "07:29:60", "7:2"))
    zone = random.choice(
        ("", " GMT", "EST", " pdt", " +0500", " +5", "-500", " -05:00 (EST)", " +5:3", " CET", " +14:30")
    )
    if "." in clock:
        zone = zone or " UT"  # Saxon refuses digits behind the point without a zone
    space = random.choice(("", "", " "))
    if random.random() < 0.7:
        return f"parse-ietf-date('{space}{day}{number}{dash}{month}{dash}{year} {clock}{zone}{space}')"
    return f"parse-ietf-date('{space}{day}{month}{dash}{number} {clock}{zone} {year}{space}')"


# --- answers ----------------------------------------------------------------------------------------------


def ours(calls: Sequence[str]) -> list[str]:
    """What the law gives for each call: its value, or the code of its error."""
    tried = (f"<c>{{ try {{ {each} }} catch * {{ substring-after($err:code, ':') }} }}</c>" for each in calls)
    return _contents(ask(f"<all>{{ {', '.join(tried)} }}</all>").text)


def saxons(calls: Sequence[str]) -> list[str]:
    """The same by Saxon."""
    tried = (f"<c>{{ try {{ {each} }} catch * {{ local-name-from-QName($err:code) }} }}</c>" for each in calls)
    query = _processor().new_xquery_processor()
    declared = 'declare namespace err = "http://www.w3.org/2005/xqt-errors";'
    query.set_query_content(f"{declared} <all>{{ {', '.join(tried)} }}</all>")
    return _contents(str(query.run_query_to_string()))


@cache
def _processor() -> PySaxonProcessor:
    return PySaxonProcessor(license=False)


def _contents(text: str) -> list[str]:
    return re.findall(r"<c>(.*?)</c>|<c/>", text, re.DOTALL)
