"""The photon generator: the same bytes everywhere, by the DTD, and spread so that the papers' queries have answers."""

from __future__ import annotations

import hashlib
import re
from decimal import Decimal
from io import StringIO

import pytest
from lxml import etree

from anabranch.stream.path import Path
from anabranch.stream.photons import _generator, photons, photons_dtd, write_photons
from anabranch.stream.schema import Schema


@pytest.fixture(scope="module")
def sample() -> list[dict[str, Decimal]]:
    return [
        {name: Decimal(text) for name, text in re.findall(r"<(\w+)>([-0-9.]+)</", photon)}
        for photon in photons(20_000, 7)
    ]


def test_same_bytes_everywhere() -> None:
    """A seed's photons are pinned: integers only, so no machine or version can differ."""
    text = "\n".join(photons(1_000, 7))
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert digest == "1faac7161f087ea7ea7e869508ebf0d5897f901178c74ccec9403582cc197a1b"


def test_generator_is_splitmix64() -> None:
    """The numbers for seed 1234567 are those of the published algorithm."""
    below = _generator(1234567)
    assert [below(1 << 64) for _ in range(3)] == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_seeds_differ_and_counts_extend() -> None:
    """Another seed gives other photons; a larger count goes on where the smaller one ended."""
    assert list(photons(10, 7)) != list(photons(10, 8))
    assert list(photons(100, 7))[:10] == list(photons(10, 7))
    assert list(photons(0, 7)) == []


def test_document_is_valid_by_the_shipped_dtd() -> None:
    """The document that is written is valid, and has one photon to a line."""
    out = StringIO()
    write_photons(out, 50, 1)
    document = etree.fromstring(out.getvalue())
    assert etree.DTD(StringIO(photons_dtd())).validate(document)
    lines = out.getvalue().splitlines()
    assert (lines[0], len(lines), lines[-1]) == ("<photons>", 52, "</photons>")
    assert lines[1:-1] == list(photons(50, 1))


def test_shipped_dtd_is_figure_2() -> None:
    """Root, items and leaves are those of the sharing paper's figure 2, as the text around it names them."""
    schema = Schema.from_dtd(photons_dtd())
    assert (schema.root, schema.items) == ("photons", ("photon",))
    leaves = {"coord/cel/ra", "coord/cel/dec", "coord/det/dx", "coord/det/dy", "phc", "en", "det_time"}
    assert leaves | {"coord", "coord/cel", "coord/det"} == {str(path) for path in schema.paths("photon")}
    assert schema.has(Path.parse("coord/cel/ra"), "photon")


def test_values_are_in_range(sample: list[dict[str, Decimal]]) -> None:
    """Each value is physically possible, and times never decrease."""
    for photon in sample:
        assert 0 <= photon["ra"] < 360
        assert -90 <= photon["dec"] <= 90
        assert Decimal("0.1") <= photon["en"] <= Decimal("2.4")
        assert 0 <= photon["dx"] < 512
        assert 0 <= photon["dy"] < 512
    times = [photon["det_time"] for photon in sample]
    assert times == sorted(times)
    assert 0 <= times[0] < 10
    assert Decimal("0.05") < times[-1] / len(times) < Decimal("0.5")


def test_papers_queries_have_something_to_find(sample: list[dict[str, Decimal]]) -> None:
    """Vela holds a good part, RX J0852.0-4622 a part of that, with energies on both sides of 1.3 keV."""
    vela = [p for p in sample if 120 <= p["ra"] <= 138 and -49 <= p["dec"] <= -40]
    remnant = [p for p in vela if Decimal("130.5") <= p["ra"] <= Decimal("135.5") and -48 <= p["dec"] <= -45]
    hard = [p for p in remnant if p["en"] >= Decimal("1.3")]
    assert len(sample) * 0.25 < len(vela) < len(sample) * 0.5
    assert len(vela) * 0.3 < len(remnant) < len(vela) * 0.7
    assert len(remnant) * 0.1 < len(hard) < len(remnant) * 0.9


def test_windows_of_query_1_differ(sample: list[dict[str, Decimal]]) -> None:
    """Of the averages of q1 (60 seconds every 40) some reach 1.3 keV and most do not."""
    vela = [p for p in sample if 120 <= p["ra"] <= 138 and -49 <= p["dec"] <= -40]
    last = int(vela[-1]["det_time"]) // 40
    averages = []
    for k in range(last):
        energies = [p["en"] for p in vela if 40 * k <= p["det_time"] < 40 * k + 60]
        averages.append(sum(energies) / len(energies))
    reached = sum(average >= Decimal("1.3") for average in averages)
    assert 0.1 * len(averages) < reached < 0.5 * len(averages)


def test_sky_is_even_over_the_sphere(sample: list[dict[str, Decimal]]) -> None:
    """Away from the sources as many photons fall north of 30 degrees as between 0 and 30: equal areas."""
    away = [p for p in sample if p["ra"] > 140 and not 240 < p["ra"] < 310]
    high = sum(p["dec"] > 30 for p in away)
    low = sum(0 < p["dec"] < 30 for p in away)
    assert 0.9 < high / low < 1.1


def test_channel_follows_energy(sample: list[dict[str, Decimal]]) -> None:
    """The pulse height channel lies within 15 per cent of a hundred times the energy."""
    for photon in sample:
        assert photon["en"] * 85 - 1 <= photon["phc"] <= photon["en"] * 115
        assert photon["phc"] == int(photon["phc"])
