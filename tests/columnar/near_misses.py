"""Lines that are nearly items: good ones with a few things put in, taken out or moved where they may not stand."""

from __future__ import annotations

from random import Random

from columnar.streams import NUMBERS, SHAPES, TEXTS, USUAL

OUTSIDE = [
    "<![CDATA[x]]>", "<![CDATA[]]>", "<![CDATA[ ]]>", "<![CDATA[<p>]]>", "<![CDATA[", "]]>", "<![CDATA", "<![", "<!",
    "<!-- c -->", "<!---->", "<!-->", "<!--->", "<!-- - -->", "<!-- -- -->", "<!--", "-->", "<!--a--->",
    "<?i?>", "<?i t?>", "<??>", "<? i?>", "<?i", "?>", "<?xml version='1.0'?>", "<?xml version='1.0' encoding='x'?>",
    "<?xml?>", "<?XML t?>", "<?xmlish t?>", "<?i:j t?>", "<?xml version='1.0' standalone='no'?>",
    "<!DOCTYPE p>", "<!DOCTYPE p [<!ENTITY e 'x'>]>", "<!ELEMENT p ANY>", "<!doctype p>",
    "x", "&amp;", "&#32;", "&#65;", "&e;", "&", "&#0;", "&#xD800;", " ", "\t", "\r", "  \r", "\f", "\v", "\0", "\x01",
    "\x1c", "\x7f", "\u0085", "\u00a0", "\u2028", "\ufeff", "\ufffe", "\uffff", "é", "\U0001f600", ">", "<", "</", "/>",
    "<p/>", "<p", "<p ", "</p>", "<q>", "<q/>", "<all>", "</all>", "<all/>", "</all><all>", "</p><p>",
]  # fmt: skip
"""What may or may not stand before and behind an element."""
INSIDE = [
    *OUTSIDE, " k='v'", " k='v' k='w'", " k=v", " k", " k='<'", " k='>'", " k='&lt;'", " k='a&b'", " k='/'", ' k="',
    "'", "=", "<b/>", "<b / >", "<b/ >", "< b/>", "<b></b >", "<b></ b>", "<b></c>", "<b></b", "<b k='1'/>",
    "<b k='1'l='2'/>", "<b\f/>", "<b\x0b>", "<1/>", "<-/>", "<é/>", "<b.c/>", "<b é='1'/>", "<xml/>", "<xmlns/>",
    "<b xml='1'/>", "xmlns='u'", " n:k='v'", "<n:z/>", "<:z/>", "<z:/>", " xmlns:n='u'", "5", "-1.5", "1e3",
    "<z>7</z>", "<z><z>7</z></z>",
]  # fmt: skip
RAW = [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xc0\xbc", b"\xfe\xff", b"\xff\xfe", b"\xef\xbb\xbf", b"\xf4\x90\x80\x80"]
"""No UTF-8, or a byte order mark."""


def near_miss(random: Random) -> bytes:
    """One line, without its end."""
    x, z = (random.choice(NUMBERS) if random.random() < 0.3 else str(random.randint(-9, 99)) for _ in "xz")
    y = random.choice(TEXTS) if random.random() < 0.3 else "abc"
    shape = USUAL if random.random() < 0.5 else random.choice(SHAPES)
    line = shape.format(x=x, y=y, z=z)
    for _ in range(random.choice((0, 1, 1, 1, 2, 3))):
        match random.randrange(8):
            case 0 | 1:
                line = line + random.choice(OUTSIDE)
            case 2:
                line = random.choice(OUTSIDE) + line
            case 3 | 4:
                at = _border(line, random)
                line = line[:at] + random.choice(INSIDE) + line[at:]
            case 5:
                at = random.randint(0, len(line))
                line = line[:at] + random.choice(INSIDE) + line[at:]
            case 6:
                at = random.randint(0, len(line))
                line = line[:at] + line[at + random.choice((1, 1, 1, 2, 5)) :]
            case _:
                line = line[: random.randint(0, len(line))] if random.random() < 0.5 else line + line
    found = line.replace("\n", " ").encode()
    if random.random() < 0.05:
        at = random.randint(0, len(found))
        found = found[:at] + random.choice(RAW) + found[at:]
    return found


def _border(line: str, random: Random) -> int:
    """A place between two pieces of markup, if there is one."""
    places = [at + (sign == ">") for at, sign in enumerate(line) if sign in "<>"]
    return random.choice(places) if places else 0
