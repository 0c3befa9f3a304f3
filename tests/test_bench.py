"""The benches measure what they say they do."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pyarrow as pa
import pytest

import papers
from anabranch.bench import BENCHES, evolution, ingest, joins, memory, network, sharing, start, windows
from anabranch.bench import run as run_bench
from anabranch.bench.harness import live
from anabranch.bench.harness.timing import Figures, Rounds, compare
from anabranch.bench.parts import silence, steady
from anabranch.bench.parts.photon_networks import Asked, NetworkScale, PhotonNetwork, compared, spread_of
from anabranch.bench.workloads.paper import SPREADS, placed
from anabranch.bench.workloads.photons import Q1, Q2, Q5, write_files
from anabranch.bench.workloads.subscriptions import SCHEMA, Sky
from anabranch.errors import StateError, UsageError
from anabranch.language import check, parse
from anabranch.law import evaluate, text_input
from anabranch.network.description import STRATEGIES
from anabranch.site import read_site
from anabranch.stream.photons import photons
from anabranch.stream.settings import Keep
from mass import some

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_two_things_are_timed_in_turns() -> None:
    """After the warm-up come pairs of turns ABBA; the figure is the median of the pairs' ratios."""
    turns: list[str] = []

    def clock(name: str, seconds: Callable[[int], float]) -> Callable[[], float]:
        numbers = count()

        def turn() -> float:
            turns.append(name)
            return seconds(next(numbers))

        return turn

    found = compare(clock("a", lambda _: 1.0), clock("b", lambda number: 2.0 + number), Rounds(2, 3))
    assert "".join(turns) == "abab" + 3 * "abba"
    assert list(found.second) == [4, 5, 6, 7, 8, 9]
    assert list(found.ratios) == [4.5, 6.5, 8.5]
    assert found.ratio == 6.5


@pytest.mark.parametrize("start_tag", ["<photon>", "<photon><!-- seen -->"])
def test_seven_leaves_of_each_photon_come_in(tmp_path: Path, start_tag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task gives seven numbers for each photon in its ranges, wherever the file is cut, with and without comments."""
    monkeypatch.setattr(ingest, "_RANGE", 1_000)
    path = tmp_path / "photons"
    path.write_text("".join(photon.replace("<photon>", start_tag) + "\n" for photon in photons(60, 1)))
    ranges = ingest._ranges(path)
    assert len(ranges) > 5
    ids = pa.RecordBatch.from_pydict({"id": list(range(len(ranges)))})
    wanted = ingest._wanted(next(photons(1, 1)))
    rows = pa.Table.from_batches(ingest._shred(str(path), ranges, wanted, [ids])).to_pylist()
    expected = [photon.replace("<", ">").split(">") for photon in photons(60, 1)]
    assert [row["ra"] for row in rows] == [float(parts[parts.index("ra") + 1]) for parts in expected]
    assert [row["det_time"] for row in rows] == [float(parts[parts.index("det_time") + 1]) for parts in expected]


def test_the_queries_are_those_of_the_paper() -> None:
    """What is measured is the paper's text to the letter."""
    assert (Q1, Q2, Q5) == (papers.Q1, papers.Q2, papers.Q5)


def test_files_are_one_observation(tmp_path: Path) -> None:
    """Cut into files, photons are what they are in one piece, so times go on; several streams get them in turn."""
    write_files([tmp_path / "one", tmp_path / "two"], 3, 20)
    for number, name in enumerate(("one", "two")):
        files = sorted((tmp_path / name).iterdir())
        assert [len(file.read_text().splitlines()) for file in files] == [20, 20, 20]
        lines = [line for file in files for line in file.read_text().splitlines()]
        assert lines == list(photons(120, 1))[number::2]


def test_levels_of_a_run() -> None:
    """The first quarter is warm-up; a level is a median, and growth is that of the last quarter over the second."""
    rising = memory.levels([9, 1, 9, 1, 10, 10, 10, 50, 11, 11, 11, 11, 12, 12, 12, 0])
    assert rising == {"second_quarter": 10, "median": 11, "last_quarter": 12, "most": 50, "growth": 1.2}


def test_memory_is_that_of_the_processes_a_run_has_started(tmp_path: Path) -> None:
    """The driver, its JVM and all Python below it count; whoever else is there does not, whatever its name."""

    def process(pid: int, name: str, parent: int, pages: int) -> None:
        (tmp_path / str(pid)).mkdir()
        rest = " ".join("0" for _ in range(19))
        (tmp_path / str(pid) / "stat").write_text(f"{pid} ({name}) S {parent} {rest} {pages} 0 0\n")

    process(50, "anabranch", 1, 1_000)
    process(60, "java", 50, 20_000)
    process(20, "python3 (a) b", 60, 300)  # a smaller number than its parent's
    process(21, "python3", 20, 400)
    process(70, "java", 1, 7)
    process(71, "python3", 70, 7)
    driver, workers, jvm = memory.resident(50, tmp_path)
    assert (workers / driver, jvm / driver) == pytest.approx((0.7, 20))
    assert driver > 4


def test_the_site_of_the_memory_bench_is_one(tmp_path: Path) -> None:
    """Three queries over three streams that have a time, with the newest epochs kept only."""
    for name in ("photons", "photon1", "photon2"):
        (tmp_path / name).mkdir()
    site = read_site(memory.write_site(tmp_path))
    assert {name: each.text for name, each in site.subscriptions.items()} == {
        "q1": papers.Q1,
        "q2": papers.Q2,
        "q5": papers.Q5,
    }
    assert {name: str(each.time) for name, each in site.streams.items()} == dict.fromkeys(site.streams, "det_time")
    assert site.settings.keep == Keep(epochs=100)


@pytest.mark.mass
@pytest.mark.parametrize(("count", "answers"), some([(12, 5), (1, 1), (12, 1)]))
def test_subscriptions_share_the_photons_out(count: int, answers: int) -> None:
    """Each selects its share of the photons, whatever its shape, so their number does not change that of answers."""
    lines = list(photons(400, 1))
    stream = text_input(f"<photons>{''.join(lines)}</photons>", name="photons")
    found = Sky(lines).subscriptions(count, answers / count)
    texts = [evaluate(check(parse(each.text), each.text).query, {"photons": stream}).text for each in found]
    assert sum(text.count("<hit>") for text in texts) == pytest.approx(400 * answers, rel=0.02)
    assert all(text.count("<hit>") == pytest.approx(400 * answers / count, abs=3) for text in texts)
    if count > 1:
        assert any(" or " in each.query for each in found)
        assert any('"' in each.query for each in found)


def test_registering_is_timed_one_by_one() -> None:
    """One time for each that is new."""
    queries = [each.text for each in Sky(photons(50, 1)).subscriptions(8, 0.1)]
    assert len(sharing.registering(queries[:5], queries[5:])) == 3


def test_accented_photons_are_the_same_photons(tmp_path: Path) -> None:
    """An accent before each so many, the energies behind it in its unit: what a query finds in them is the same."""
    write_files([tmp_path / "plain"], 2, 20)
    assert evolution.write_accented(tmp_path / "plain", tmp_path / "accented", 10) == 4
    query = 'for $p in stream("photons")/photons/photon return $p/en'
    found = []
    for name in ("plain", "accented"):
        lines = "".join(file.read_text() for file in sorted((tmp_path / name).iterdir()))
        stream = text_input(f"<photons>{lines}</photons>", name="photons")
        found.append(list(evolution.energies(evaluate(check(parse(query), query).query, {"photons": stream}).text)))
    assert len(found[0]) == 40
    assert found[0] == pytest.approx(found[1], rel=1e-12)
    raw = (tmp_path / "accented" / "photons-00000").read_text()
    assert raw.count("<s:accent") == 2
    assert list(evolution.energies(raw)) == pytest.approx(found[0][:20], rel=1e-12)
    assert {"windows", "q0", "q9"} <= evolution.queries_of(tmp_path / "plain").keys()


def test_silence_is_that_around_the_evolution() -> None:
    """From the last output before it on; rows that are missing are lost, those that do not belong there are wrong."""
    rows = [row for file in range(2) for row in silence.readings(file) if row[2] >= 71]
    exact = silence.SilenceRun.of([0.0, 5.0, 6.0, 8.0, 9.0], 7.0, rows, 2)
    assert (exact.silence, exact.steady, exact.rows, exact.wrong, exact.lost) == (2.0, 5.0, len(rows), 0, 0)
    (at, sensor, degrees), *others = rows
    other = silence.SilenceRun.of([0.0, 1.0, 4.0], 0.5, [*others, others[0], (at, sensor, degrees + 1)], 2)
    assert (other.silence, other.wrong, other.lost) == (3.0, 2, 1)


@pytest.mark.mass
def test_updates_without_end_leave_a_state_as_large_as_the_regions() -> None:
    """Sixty updates of each region, in sixty epochs: a state that kept them would be many times as large."""
    course = steady.steady(regions=12, updates=720, epoch=12)
    assert [each.updates for each in course.points] == list(range(72, 721, 72))
    sizes = [each.state_kb for each in course.points]
    assert course.growth("state_kb") == max(sizes[5:]) / max(sizes[1:5]) < 1.3  # a state knows its last 64 epochs
    assert sizes[-1] < 10
    assert min(each.seconds_per_100k for each in course.points) > 0


def test_every_bench_can_be_run() -> None:
    """Each name on the command line stands for a module that measures."""
    for name in BENCHES:
        assert callable(import_module(f"anabranch.bench.{name}").measure)


def test_the_network_is_drawn() -> None:
    """Bars of the paper, of each spread, and of peers and links, and curves; only what was measured."""
    spread = {"mean": 11.1, "least": 9.0, "most": 13.2}
    table: Figures = {
        key: {"sharing": spread, "widening": {"mean": 5.2, "least": 4.9, "most": 5.5}}
        for key in ("traffic_percent", "cpu_percent", "shared_queries")
    }
    found: Figures = {
        "seeds": {f"spread_{each}": table for each in SPREADS},
        "queries": {"n4": table, "n8": table},
        "figure_14": {
            "peers": {key: {"SP0": 2.0, "SP1": 1.0} for key in STRATEGIES},
            "links": {key: {"SP0-SP1": 2000000, "SP1-SP0": 500000} for key in STRATEGIES},
        },
    }
    rows = {"seeds": {"5.2", "12.2", "6.4", "70.6", "53.5"}, "queries": {"4", "8"}, "figure_14": {"0-1", "SP1"}}
    for name, expected in rows.items():
        picture = ElementTree.fromstring(network.draw({"paper": network.PAPER, name: found[name]}))
        words = {each.text for each in picture.iter("{http://www.w3.org/2000/svg}text")}
        assert expected <= words
    ElementTree.fromstring(network.draw({"paper": network.PAPER, **found}))
    with pytest.raises(UsageError, match="draws nothing"):
        run_bench("parse", svg_file=Path("parse.svg"))


def test_figures_of_seeds_have_their_spread() -> None:
    """Of each figure the mean, the least and the most."""
    found = [{"traffic_percent": {"sharing": value, "widening": 5.0}} for value in (10.0, 13.0, 16.0)]
    assert spread_of(found) == {
        "traffic_percent": {
            "sharing": {"mean": 13.0, "least": 10.0, "most": 16.0},
            "widening": {"mean": 5.0, "least": 5.0, "most": 5.0},
        }
    }


def test_queries_are_spread_over_a_network() -> None:
    """Each peer has as many, the order is another for each seed."""
    peers = tuple("abcdefgh")
    found = placed(1, 32, peers)
    assert {each: found.count(each) for each in peers} == dict.fromkeys(peers, 4)
    assert found != placed(2, 32, peers)
    assert len(placed(1, 100, peers)) == 100


@pytest.mark.mass
def test_a_network_is_measured(tmp_path: Path) -> None:
    """Shipping sends the stream for each query, widening a part of it once; both answer alike, and both work."""
    measured = PhotonNetwork(None, tmp_path / "network", NetworkScale(1, 4, 1, 300))
    ran = measured.run_all()
    shipped, widened = ran["shipping"], ran["widening"]
    size = sum(map(len, measured.lines))
    assert shipped.traffic == pytest.approx(2 * size, rel=0.01)
    assert 0 < widened.traffic < 0.7 * size
    assert min(shipped.cpu, widened.cpu) > 0
    assert shipped.shared == 0
    assert compared(ran)["traffic_percent"]["widening"] < 35
    assert len(measured.plan("sharing")) == 4


@pytest.mark.mass
@pytest.mark.parametrize("asked", ["items", "windows", "joins"])
def test_a_network_is_measured_with_an_accent(tmp_path: Path, asked: Asked) -> None:
    """Of items, windows and tuples as much travels if accents are possible, and again behind one that is followed."""
    found = network.evolving(tmp_path / "network", NetworkScale(1, 3, 2, 300, asked=asked))
    assert found["accents_possible"] == pytest.approx(1.0, abs=0.02)
    assert found["behind_an_accent"] == pytest.approx(1.0, abs=0.1)


def test_a_network_on_spark_sends_the_same(spark: SparkSession, tmp_path: Path) -> None:
    """The bytes over each link are those of a network in this process, which the bench checks itself."""
    found = network.measure_on_spark(spark, tmp_path / "network", NetworkScale(1, 4, 1, 300))
    assert found["queries"] == 4


def test_averages_equal_those_of_plain_spark(spark: SparkSession, tmp_path: Path) -> None:
    """Both sides of the bench on windows do the same, and small epochs are timed one by one, without the warm-up."""
    write_files([tmp_path / "photons"], 3, 400)
    assert windows.check_same(spark, tmp_path / "photons", tmp_path / "check") >= 20
    assert len(windows.small_epochs(spark, tmp_path / "small", 4, 50)) == 2


def test_pairs_are_about_as_many_as_those_of_plain_spark(spark: SparkSession, tmp_path: Path) -> None:
    """The interval that Spark joins by gives nearly as many pairs as the windows of q5."""
    write_files([tmp_path / "photon1", tmp_path / "photon2"], 3, 400)
    ours, theirs = joins.count_pairs(spark, tmp_path, tmp_path / "check")
    assert ours > 10_000
    assert ours == pytest.approx(theirs, rel=0.1)


def test_subscriptions_are_fed_as_queries_of_plain_spark_are(spark: SparkSession, tmp_path: Path) -> None:
    """A trunk that stays at work and Spark's own queries read the same file again, and select the same photons."""
    write_files([tmp_path / "photons"], 1, 300)
    (file,) = (tmp_path / "photons").iterdir()
    found = Sky(file.read_text().splitlines()).subscriptions(8, 0.2)
    rows = spark.read.text(str(file)).selectExpr(f"from_xml(value, '{SCHEMA}') as p").selectExpr("p.*")
    expected = sum(rows.where(each.sql).count() for each in found)
    assert expected == pytest.approx(8 * 60, rel=0.05)
    with live.LiveTrunk(spark, tmp_path / "ours", {each.sql: each.text for each in found}, file) as trunk:
        for _ in range(2):
            assert trunk.round() > 0
            assert trunk.answers == expected
    assert live.SparkQueries(spark, tmp_path / "theirs", found[:2], file, file).round() > 0


@pytest.mark.spark
def test_a_run_is_watched_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run in a process of its own reads every photon, and there are figures on all that it holds."""
    monkeypatch.setattr(memory, "_SECONDS", 0.05)
    write_files([tmp_path / name for name in ("photons", "photon1", "photon2")], 1, 300)
    found = memory.watched(memory.write_site(tmp_path, epoch_bytes=60_000), 900)
    assert found["items"] == 900
    for name in ("driver_mb", "workers_mb", "jvm_mb", "state_kb", "held"):
        level = found[name]
        assert isinstance(level, Mapping)
        assert level["median"] > 0  # type: ignore[operator]  # a figure, not figures


@pytest.mark.mass
def test_starting_is_timed_by_real_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Help, a refused query and answered ones are commands of their own; one that fails is told, not timed."""
    monkeypatch.setattr(start, "_ENGINES", ("reference", "local"))
    monkeypatch.setattr(start, "_QUICK_SIZES", ())
    seconds = start.measure(quick=True)["seconds"]
    assert isinstance(seconds, Mapping)
    assert set(seconds) == {"help", "refused", "reference", "local"}
    assert all(isinstance(each, float) and each > 0.1 for each in seconds.values())
    with pytest.raises(StateError, match="ended with 2"):
        start._seconds(("query",), 0)


@pytest.mark.parametrize("share", some([0.2, 0.78, 0.95]))
def test_a_fine_window_gives_as_many_answers_as_it_is_asked_for(share: float) -> None:
    """Windows of a fraction of the gap between photons: those that hold one are the share of photons asked for."""
    found = re.search(r"diff ([0-9.]+)\|", windows.fine_query(share))
    assert found
    times = [float(each) for text in photons(20_000, 1) for each in re.findall(r"<det_time>([^<]*)", text)]
    assert len({time // float(found[1]) for time in times}) / len(times) == pytest.approx(share, rel=0.02)
