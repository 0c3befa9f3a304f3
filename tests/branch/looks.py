"""Streams of items of one look, with others among them, for the tests of what branches do in columns."""

from __future__ import annotations

from fractions import Fraction
from random import Random

from branch.feeding import Stream

USUAL = "<p><t>{t}</t><en>{en}</en><m><phc>{phc}</phc><n>{n}</n></m></p>"
OTHER_ORDER = "<p><t>{t}</t><m><phc>{phc}</phc><n>{n}</n></m><en>{en}</en></p>"
TWO_REFERENCES = "<p><t>{t}</t><t>{en}</t><en>{en}</en><m><phc>{phc}</phc><n>{n}</n></m></p>"
PUNCTUATION = '<s:punctuation xmlns:s="urn:anabranch:stream" where="t &lt; {t}"/>'
HEARTBEAT = '<s:punctuation xmlns:s="urn:anabranch:stream" at="{t}"/>'
STAMPED = '<p xmlns:s="urn:anabranch:stream" s:at="{t}"><t>{en}</t><en>{en}</en><m><phc>{phc}</phc><n>{n}</n></m></p>'
BAD = "<p><t>{t}</t><en>{en}</en><m><phc>{phc}</phc><n>&nope;</n></m></p>"
ODD = [
    OTHER_ORDER,
    TWO_REFERENCES,
    PUNCTUATION,
    HEARTBEAT,
    "<p><t>{t}</t><en>{en}</en><en>{phc}</en><m><phc>{phc}</phc><n>{n}</n></m></p>",
    "<p><t>{t}</t><m><phc>{phc}</phc></m></p>",
    "<p><en>{en}</en><m><phc>{phc}</phc><n>{n}</n></m></p>",  # no reference, no time
    "<p><t>{n}</t><en>{en}</en><m><phc>{phc}</phc><n>{n}</n></m></p>",
    "<p><t>{t}</t><!-- c --><en>{en}</en><m><phc>{phc}</phc><n>{n}</n></m></p>",
    "<p><t>{t}</t><en>many</en><m><phc>{phc}</phc><n>{n}</n></m></p>",
    "<p><t>{t}</t><en>{en}0000000000000000001</en><m><phc>1e1</phc><n>{n}</n></m></p>",
    "<p><t>{t}0000000000000000001</t><en>{en}</en><m><phc>{phc}</phc><n>{n}</n></m></p>",
    "<q><t>{t}</t><en>{en}</en><m><phc>{phc}</phc><n>{n}</n></m></q>",
    STAMPED,
    BAD,
    "<p><t>{t}</t><en>{en}</en><m><phc>{phc}</phc><n>{n}</n></m><m/></p>",
]
"""The same elements otherwise, or elements of other kinds; each is for some query not as easy as the usual."""


def stream(random: Random, name: str, *, timed: bool, partitions: int = 1, items: int = 60) -> Stream:
    """Items of the usual look, other ones among them, in about the order of their values."""
    odd = random.choice((0, 0.02, 0.2, 1)) if random.random() < 0.6 else 0
    slack, back = random.choice(((0, 0), (0, 1.5), (2, 3)))
    t = float(random.randrange(10))
    found: list[str] = []
    for _ in range(random.randrange(items)):
        t += random.choice((0, 0.1, 0.3, 1, 2.25, 4)) if random.random() < 0.97 else 10 ** random.randrange(3, 7)
        shape = random.choice(ODD) if random.random() < odd else USUAL
        value = t - random.random() * back if random.random() < 0.3 else t
        texts = {
            "t": f"{value:.{random.choice((0, 1, 3))}f}",
            "en": f"{random.randrange(25) / 10}",
            "phc": random.randrange(20),
            "n": random.choice(("a", "b", "1.0", "1")),
        }
        found.append(shape.format(**texts))
    return Stream(
        name,
        f"<r>{' '.join(found)}</r>",
        [random.randrange(partitions) for _ in found],
        partitions,
        time="t" if timed else None,
        slack=Fraction(slack),
        origin=Fraction(random.choice((0, 0, 2)) if random.random() < 0.3 else 0),
        late=random.random() < 0.1,
    )
