"""How long the document of a stream of updates is kept for who comes late (LAWS 3.6)."""

from __future__ import annotations

import re
from dataclasses import replace as changed
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest

from anabranch.errors import UsageError
from anabranch.site import read_site
from anabranch.spark.plan.branches import keeper_of
from anabranch.stream.reading.source import Source, seconds_of
from history.test_hosted import Lines, S, region, replace
from history.writing import Writer
from mass import some
from spark.bare import BareTrunk

BEAT = '<s:punctuation {} at="{}"/>'
ALL = 'stream("s")/root/b'


class Retained(Lines):
    """A stream whose document is kept for some seconds."""

    def __init__(self, folder: Path, retain: str, seed: int = 1) -> None:
        super().__init__(folder, seed)
        source = changed(self.source, retain=Fraction(retain))
        self.trunk = BareTrunk(folder / "retained", [source], Random(seed), finite=False)

    @property
    def entries(self) -> int:
        """How many the keeper has."""
        manifests = self.trunk.log.manifests
        return manifests.load(manifests.epochs()[-1]).states[keeper_of("s")].held


def test_what_has_not_changed_for_so_long_is_not_shown_to_who_comes_late(tmp_path: Path) -> None:
    """An entry stays by its latest change, not by its arrival; who was there before still sees everything."""
    stream = Retained(tmp_path, "10")
    early = {"early": ALL}
    old = region("1", "<b>1</b>", 1), region("2", "<b>2</b>", 2), region("3", "<b>3</b>", 3)
    stream.add(*old, replace("2", "<b>two</b>", 9), BEAT.format(S, 13), queries=early)
    assert stream.entries == 1
    more = replace("1", "<b>one</b>", 14), replace("2", "<b>zwei</b>", 15), region("4", "<b>4</b>", 16)
    stream.add(*more, queries={**early, "late": ALL})
    assert stream.trunk.answer("early") == "<b>one</b><b>zwei</b><b>3</b><b>4</b>"
    assert stream.trunk.answer("late") == "<b>zwei</b><b>4</b>"
    assert list(stream.trunk.log.dead_letters()) == []  # the ids of what is gone are known


def test_an_element_that_changes_an_old_entry_keeps_it(tmp_path: Path) -> None:
    """Time moves with the elements, so it is the next one that shows that an entry is old, unless it changes it."""
    stream = Retained(tmp_path, "10")
    stream.add(region("1", "<b>1</b>", 1), region("2", "<b>2</b>", 1), replace("1", "<b>one</b>", 50), queries={})
    stream.add(replace("2", "<b>two</b>", 51), queries={"late": ALL})
    assert stream.trunk.answer("late") == "<b>one</b>"


@pytest.mark.parametrize("seed", some(range(2)))
def test_epochs_do_not_show(tmp_path: Path, seed: int) -> None:
    """What a late query sees does not depend on how the stream was cut into epochs before it came."""
    writer = Writer(Random(seed))
    written = filter(None, (writer.between() for _ in range(16)))
    lines = [re.sub(r"^<([\w:]+)", rf"<\1 {S}", each) for each in written]
    found = []
    for number, size in enumerate((40, 300, 5_000)):
        (tmp_path / str(number)).mkdir()
        stream = Retained(tmp_path / str(number), "2.5", seed)
        stream.add(*lines, queries={}, sizes=(size,))
        stream.add(BEAT.format(S, 1_000), queries={"late": '<all>{ stream("s")/root/* }</all>'}, sizes=(size,))
        found.append((stream.trunk.answer("late"), stream.entries))
    assert found[0] == found[1] == found[2]


def test_how_it_is_written(tmp_path: Path) -> None:
    """Seconds, or a time with a unit; of a stream of items it is how long joins by keys hold them."""
    assert [seconds_of(each) for each in (90, "90", "90 s", "1.5min", "2 h", "1 d")] == [90, 90, 90, 90, 7200, 86400]
    for wrong in ("", "soon", "-1", 0, True, "nan", "1e99 d", "1e999999999", "1 week"):
        with pytest.raises(UsageError, match="'retain' takes a number of seconds, or a time"):
            seconds_of(wrong)
    (tmp_path / "in").mkdir()
    site = tmp_path / "SITE.toml"
    stream = '[streams.{}]\npath = "in"\nretain = "{}"\n{}'
    site.write_text(
        '[engine]\ncheckpoint = "state"\n'
        + stream.format("s", "1 h", "updates = true\n")
        + stream.format("t", "1 h", "")
    )
    retained: dict[str, Source] = dict(read_site(site).streams)
    assert (retained["s"].retain, retained["t"].retain) == (Fraction(3_600), Fraction(3_600))
    site.write_text('[engine]\ncheckpoint = "state"\n' + stream.format("s", "soon", "updates = true\n"))
    with pytest.raises(UsageError, match=r"\[streams.s\]: 'retain' takes"):
        read_site(site)
