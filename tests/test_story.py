"""The story of docs/story.md: gauges of two makers in a network, units that change, readings corrected, and an alert.

The session on the page is run, with the files that the demo has; and what the network answers to the same queries is
recomputed from scratch in plain Python, behind each step of the story, and of random rivers like it.
`ANABRANCH_REWRITE_DOCS=1 pytest tests/test_story.py` writes what came out into the page.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from random import Random
from xml.etree import ElementTree

import pytest

from anabranch import network_run
from anabranch.cli import main
from anabranch.demo import river
from anabranch.network.description import Network
from anabranch.peers.running import RunningNetwork
from anabranch.spark.plan.wanted import Epoch
from mass import Mass
from peers.working import bare_network
from test_docs import TOP, blocks, show

PAGE = TOP / "docs/story.md"
SHIPPED = TOP / "src/anabranch/examples/river"
HOUR = 3600
SIZES = (200, 9_000)
"""Bytes that a peer reads in an epoch."""
S = "{urn:anabranch:stream}"


def bare(network: Network, folder: Path, on_epoch: Callable[[str, Epoch], None], **_: object) -> RunningNetwork:
    """Peers that run in this process, without Spark."""
    return bare_network(network, folder, Random(1), (1 << 20,))


def test_the_page_has_the_files_of_the_demo() -> None:
    """All of them, as they are shipped."""
    shown = {each.options["file"].replace("/", "-"): each.text for each in blocks(PAGE) if "file" in each.options}
    assert shown == {each.name: each.read_text().rstrip("\n") for each in SHIPPED.iterdir()}


@pytest.mark.mass
def test_the_session_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The network runs step by step, and answers what the page says."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(network_run, "on_spark", bare)
    river.lay(tmp_path)
    step = 0
    for block in (each for each in blocks(PAGE) if each.kind == "console"):
        lines: list[str] = []
        for command in (line for line in block.text.splitlines() if line.startswith("$ ")):
            if "--once" in command:
                step += 1
                river.bring(tmp_path, step)
            assert main(shlex.split(command)[2:]) == 0
            found = capsys.readouterr()
            lines += [command, *(found.out + found.err).splitlines()]
        show(block, "\n".join(lines))
    assert step == len(river.STEPS)


# --- from scratch ---------------------------------------------------------------------------------------------


@dataclass
class Maker:
    """What a maker's stream says, read from its text alone; levels are in the unit of the beginning, centimetres."""

    gauges: dict[str, Fraction] = field(default_factory=dict)
    """By gauge that measures otherwise: what its values are multiplied by."""
    readings: dict[str, tuple[int, str]] = field(default_factory=dict)
    """By id, in their order: when and where it was read."""
    known: dict[str, list[tuple[int, Fraction]]] = field(default_factory=dict)
    """By id: from when on which level was known."""
    now: int = 0

    def take(self, text: str) -> None:
        """Read the next elements."""
        for element in ElementTree.fromstring(f"<r>{text}</r>"):
            self.now = max(self.now, int(element.findtext("ts") or element.get("at") or 0))
            match element.tag:
                case "reading":
                    region = element.find(f"level/{S}mutable")
                    assert region is not None
                    self.readings[region.attrib["id"]] = self.now, element.findtext("gauge") or ""
                    self._learn(region.attrib["id"], region.text or "")
                case tag if tag == f"{S}replace":
                    self._learn(element.attrib["target"], element.text or "")
                case _:
                    self.gauges[element.attrib["where"].removeprefix("gauge = ")] = Fraction(100)

    def _learn(self, id: str, level: str) -> None:
        _, gauge = self.readings[id]
        self.known.setdefault(id, []).append((self.now, Fraction(level) * self.gauges.get(gauge, 1)))

    def level(self, id: str, at: int) -> Fraction | None:
        """What was known of a reading at a moment; None before it came."""
        return next((level for since, level in reversed(self.known[id]) if since <= at), None)


def highest(aqua: Maker, brook: Maker) -> list[tuple[str, ...]]:
    """What the query of that name asks, up to the moment that both have reached; of equal times, Aqua's come first."""
    most: dict[str, Fraction] = {}
    for maker, reached in ((aqua, min(aqua.now, brook.now)), (brook, min(aqua.now - 1, brook.now))):
        for id, (_, gauge) in maker.readings.items():
            level = maker.level(id, reached)
            if level is not None:
                most[gauge] = max(level, most.get(gauge, level))
    return [(gauge, number(level)) for gauge, level in sorted(most.items())]


def hours(brook: Maker, unit: Fraction) -> list[tuple[str, ...]]:
    """What the query of that name asks, in a unit."""
    found: dict[tuple[int, str], list[Fraction]] = {}
    for id, (at, gauge) in brook.readings.items():
        level = brook.level(id, brook.now)
        assert level is not None
        found.setdefault((at // HOUR * HOUR, gauge), []).append(level)
    by_hour = sorted(found, key=lambda each: each[0])  # groups of an hour stay in the order of their first readings
    return [
        (str(hour), gauge, number(sum(found[hour, gauge]) / len(found[hour, gauge]) / unit)) for hour, gauge in by_hour
    ]


def alerts(brook: Maker, unit: Fraction) -> list[tuple[str, ...]]:
    """What the query of that name asks, in a unit."""
    found: list[tuple[str, ...]] = []
    for id, (at, gauge) in brook.readings.items():
        level, before = brook.level(id, brook.now), brook.level(id, brook.now - HOUR)
        if level is not None and before is not None and level - before >= 10:
            found.append((gauge, str(at), number(level / unit), number(before / unit)))
    return found


def number(value: Fraction | float) -> str:
    return f"{float(value):.9g}"


_VALUE = re.compile(r'"([0-9.]+)"|>([0-9.]+)<')


def answered(answer: str, of: str) -> list[tuple[str, ...]]:
    """The values in each result of an answer."""
    results = re.findall(f"<{of} .*?</{of}>", answer)
    return [tuple(number(Fraction(one or other)) for one, other in _VALUE.findall(each)) for each in results]


def plain(rows: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    return [tuple(number(Fraction(each)) for each in row) for row in rows]


def follow(folder: Path, steps: Iterable[tuple[str, str]], random: Random) -> int:
    """Run the network step by step, and compare; gives how many alerts there were."""
    aqua, brook, seen = Maker(), Maker(), 0
    river.lay(folder)
    file = folder / "NETWORK.toml"
    for step, texts in enumerate(steps):
        for maker, name, text in zip((aqua, brook), river.MAKERS, texts, strict=True):
            (folder / name / f"{step:04}.xml").write_text(text)
            maker.take(text)
        network_run.run(file, once=True, opens=lambda network, place, _: bare_network(network, place, random, SIZES))
        given = {name: "".join(network_run.committed(file, name)) for name in river.QUERIES}
        unit = Fraction(100 if brook.gauges.keys() >= {"3", "4"} else 1)
        assert answered(given["highest"], "gauge") == plain(highest(aqua, brook))
        assert answered(given["hours"], "hour") == plain(hours(brook, unit))
        assert answered(given["alert"], "alert") == plain(alerts(brook, unit))
        seen += len(alerts(brook, unit))
    return seen


def test_each_answer_is_what_comes_from_scratch(tmp_path: Path, mass: Mass) -> None:
    """Behind each step, of the story and of random rivers."""
    for case in mass.cases(40):
        folder = tmp_path / str(case)
        folder.mkdir()
        shipped = [tuple((SHIPPED / f"{maker}-{step}.xml").read_text() for maker in river.MAKERS) for step in (1, 2, 3)]
        random = Random(case)
        seen = follow(folder, random_river(random) if case else shipped, random)  # type: ignore[arg-type]  # pairs
        assert case or seen == 1


def random_river(random: Random) -> Iterator[tuple[str, str]]:
    """Steps of a river: readings, corrections of any of them, and each gauge changes its unit once or never."""
    now, unit = 0, dict.fromkeys("1234", 1)
    read: dict[str, list[tuple[str, str]]] = {maker: [] for maker in river.MAKERS}
    space = 'xmlns:s="urn:anabranch:stream"'
    for _ in range(random.randint(3, 6)):
        lines: dict[str, list[str]] = {maker: [] for maker in river.MAKERS}
        for _ in range(random.randint(3, 9)):
            now += random.choice((1, 300, 900, 1800))
            maker = random.choice(river.MAKERS)
            gauge = random.choice("12" if maker == "aqua" else "34")
            level = random.randrange(15_000, 25_000)
            if read[maker] and random.random() < 0.5:
                id, gauge = random.choice(read[maker])
                lines[maker].append(
                    f'<s:replace {space} target="{id}" at="{now}">{_written(level, unit[gauge])}</s:replace>'
                )
            elif maker == "brook" and unit[gauge] == 1 and random.random() < 0.3:
                unit[gauge] = 100
                alter = '<s:alter path="level" by=". div 100"/>'
                lines[maker].append(f'<s:accent {space} where="gauge = {gauge}" at="{now}">{alter}</s:accent>')
            else:
                id = f"{gauge}.{now}"
                read[maker].append((id, gauge))
                region = f'<s:mutable id="{id}">{_written(level, unit[gauge])}</s:mutable>'
                lines[maker].append(
                    f"<reading><ts>{now}</ts><gauge>{gauge}</gauge><level {space}>{region}</level></reading>"
                )
        yield tuple("".join(f"{line}\n" for line in lines[maker]) for maker in river.MAKERS)  # type: ignore[misc]


def _written(level: int, unit: int) -> str:
    """A level, in hundredths of a centimetre, in its gauge's unit."""
    return f"{level / 100 / unit:.4f}" if unit > 1 else f"{level / 100:.2f}"
