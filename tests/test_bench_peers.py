"""The benches beside peers, and that of latency, measure what they say they do; a few start the peers themselves."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean

import pytest

from anabranch.bench import peers
from anabranch.bench.harness.live import FileLatency
from anabranch.bench.latency import latency_figures
from anabranch.bench.peers import PEERS, building
from anabranch.bench.peers.building import JavaProgram, built, java_home, project_of
from anabranch.bench.peers.joins import check_joins
from anabranch.bench.peers.matching import affordable, check_pairs
from anabranch.bench.peers.peer import PeerEngine, PeerFailure
from anabranch.bench.peers.process import PeerProcess
from anabranch.bench.workloads.conjunctions import (
    PATHS,
    TIME,
    WIRES,
    Conjunction,
    LeafRange,
    PhotonLeaves,
    Wire,
    as_json,
    hits,
    photon_source,
    write_photon_lines,
)
from anabranch.bench.workloads.hopping import HoppingWindow, hopping_windows, values_by_query, window_values
from anabranch.bench.workloads.near_pairs import NearPairs, Pair, near_pairs, pairs_in
from anabranch.engine.reading import read_stream
from anabranch.errors import UsageError
from anabranch.language import check, parse
from anabranch.law import evaluate
from anabranch.stream.limits import Limits
from anabranch.stream.photons import photons

_PHOTONS = list(photons(120, 1))


def _brute(wanted: Conjunction, texts: list[str]) -> bool:
    return all(
        float(low) <= float(texts[each.leaf]) < float(high) for each in wanted.ranges for low, high in [each.bounds]
    )


def _brute_pairs(lines: Sequence[str], asked: NearPairs) -> Iterator[Pair]:
    """The pairs in some photons, without any engine."""
    rows = [[float(each) for each in re.findall(r">(-?[0-9.]+)<", line)] for line in lines]
    for _, _, dx, _, _, en, time in rows:
        for _, _, other_dx, _, _, other_en, other_time in rows:
            is_near = dx == other_dx and abs(time - other_time) <= float(asked.seconds)
            if is_near and en >= other_en + asked.more / 1_000:
                yield en, other_en, time, other_time


def test_conjunctions_are_counted_without_an_engine() -> None:
    """Of all pairs those are found whose values lie between both bounds; as many as there are answers asked for."""
    leaves = PhotonLeaves(_PHOTONS)
    for answers in 1, 10:
        wanted = leaves.conjunctions(40, answers)
        assert {len(each.ranges) for each in wanted} == {2, 3}
        expected = {
            (number, row)
            for number, each in enumerate(wanted)
            for row, texts in enumerate(leaves.texts)
            if _brute(each, texts)
        }
        assert leaves.pairs(wanted, 120) == expected
        assert leaves.count(wanted, 120) == len(expected) == pytest.approx(120 * answers, rel=0.3)
        assert leaves.pairs(wanted, 30) == {(number, row) for number, row in expected if row < 30}
    assert len(leaves.pairs(leaves.conjunctions(1, 1), 120)) == 120


def test_bounds_are_written_as_photons_are() -> None:
    """With all their digits, also below zero, where the whole part is zero, and where a leaf has none."""
    written = [LeafRange(leaf, -5, 12_345).bounds for leaf in (0, 4, 5)]
    assert written == [("-0.0005", "1.2345"), ("-5", "12345"), ("-0.005", "12.345")]
    assert Conjunction((LeafRange(5, 100, 2_400), LeafRange(0, 0, 1))).line == "5 0.100 2.400 0 0.0000 0.0001"


def test_photons_of_json_have_the_same_values() -> None:
    """At the same paths, number for number."""
    found = json.loads(as_json(_PHOTONS[0]), parse_float=str, parse_int=str)
    for path, text in zip(PATHS, PhotonLeaves(_PHOTONS[:1]).texts[0], strict=True):
        value = found
        for step in path.split("/"):
            value = value[step]
        assert value == text


@pytest.mark.parametrize("wire", WIRES)
def test_the_law_finds_the_same(wire: Wire, tmp_path: Path) -> None:
    """The query of a conjunction answers with the values of the photons that were counted, in their order."""
    write_photon_lines(tmp_path / "photons", wire, _PHOTONS[:60])
    given = {"photons": read_stream(photon_source(tmp_path / "photons", wire), Limits()).input}
    leaves = PhotonLeaves(_PHOTONS)
    wanted = leaves.conjunctions(8, 1)
    found = [hits(evaluate(check(parse(each.query), each.query).query, given).text) for each in wanted]
    assert found == leaves.answers(wanted, 60)
    assert sum(map(len, found)) > 30


_ANSWERING = """#!/bin/sh
echo "ready 2000000000 5000 all defaults"
while read -r order count file; do
  case $order in
    match) echo "2500000000 7";;
    write) echo "3000000000 8";;
    run) test -z "$file" || echo "0 2.5" > "$file"; echo "4000000000 1";;
    pairs) echo "0 1" > "$file-0"; echo "2 0" > "$file-1"; echo "1 2";;
  esac
done
"""


def _process(folder: Path, program: str, limits: tuple[float, float] = (20, 20)) -> PeerProcess:
    """A peer whose Java is a script."""
    java = folder / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(program, encoding="utf-8")
    java.chmod(0o755)
    peer = PeerEngine("some", "Some", "none", (("a", "b", "1"),), "Some")
    return PeerProcess(
        JavaProgram(peer, folder / "jdk", "none"), folder / "in", ["0 1 2"], folder / "work", "1g", limits
    )


def test_a_peer_is_asked_for_rounds(tmp_path: Path) -> None:
    """A process that answers as programs do: seconds and matches, and pairs by way of files; it ends when left."""
    with _process(tmp_path, _ANSWERING) as process:
        assert (process.setup.seconds, process.setup.heap_bytes, process.setup.settings) == (2, 5000, "all defaults")
        assert (process.match(10), process.matches) == (2.5, 7)
        assert (process.write(10), process.matches) == (3, 8)
        assert process.pairs(10) == {(0, 1), (2, 0)}
        assert (process.run(10), process.results(10)) == (4, ["0 2.5"])
    assert (tmp_path / "work" / "queries").read_text() == "0 1 2\n"


def test_a_peer_that_fails_says_why(tmp_path: Path) -> None:
    """The line of its errors that names an exception."""
    failing = "#!/bin/sh\necho warning >&2\necho 'Exception: no memory' >&2\necho behind >&2\n"
    with (
        pytest.raises(PeerFailure, match="adding 1 queries failed: Exception: no memory"),
        _process(tmp_path, failing),
    ):
        raise AssertionError("it is never ready")


def test_a_peer_has_a_time_limit(tmp_path: Path) -> None:
    """Behind which it is ended, whatever it is at."""
    with (
        pytest.raises(PeerFailure, match=r"adding 1 queries took longer than 0\.2 s"),
        _process(tmp_path, "#!/bin/sh\nexec sleep 60\n", (0.2, 20)),
    ):
        raise AssertionError("it is never ready")


@pytest.mark.parametrize("missing", ["mvn", "javac"])
def test_peers_need_maven_and_a_jdk(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one of them is missing the bench says so, and what to install."""
    monkeypatch.setattr(building, "which", lambda tool: None if tool == missing else f"/bin/{tool}")
    with pytest.raises(UsageError, match=f"needs '{missing}'") as raised:
        peers.measure(quick=True)
    assert "install" in str(raised.value.hint)


def test_a_newer_jdk_is_found_beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one on the PATH where it will do, or else one next to it; and none where all are older."""
    for name, version in (("a-17", "17.0.15"), ("b-25", "25.0.1")):
        (tmp_path / name / "bin").mkdir(parents=True)
        (tmp_path / name / "bin" / "javac").touch()
        (tmp_path / name / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    monkeypatch.setattr(building, "which", lambda tool: str(tmp_path / "a-17" / "bin" / tool))
    assert [java_home(least).name for least in (11, 17, 21)] == ["a-17", "a-17", "b-25"]
    with pytest.raises(PeerFailure, match="version 26"):
        java_home(26)


def test_a_project_names_all_artifacts() -> None:
    """By group, artifact and version."""
    found = project_of((("g", "a", "1"), ("h", "b", "2")))
    assert "<groupId>g</groupId><artifactId>a</artifactId><version>1</version>" in found
    assert "<groupId>h</groupId><artifactId>b</artifactId><version>2</version>" in found


def test_a_slow_peer_is_given_fewer_items() -> None:
    """So many that a round takes about the seconds it should, at least a batch, and never more than there are."""
    assert affordable(lambda items: items / 1_000, 200_000, 2.0) == 2_000
    assert affordable(lambda items: items / 1_000_000, 200_000, 2.0) == 200_000
    assert affordable(lambda items: items / 10, 200_000, 2.0, least=5_000) == 5_000
    assert affordable(lambda items: items / 10, 100, 2.0, least=5_000) == 100


def test_ratios_are_written_as_tables() -> None:
    """A table for each peer, with a column for each number, and below it what is missing."""
    figures = {
        "ratios": {"some/json-one/1": 0.25, "some/json-one/100": 12.4, "some/xml-one/100": 3.0},
        "peers": {"some": {"title": "Some", "version": "1.2", "java": "17", "settings": "all defaults"}},
        "missing": {"some/json-one/10000": "it could not hold 10,000", "other": "it does not install"},
    }
    assert peers.markdown(figures).splitlines() == [
        "Some 1.2 on Java 17: all defaults.",
        "",
        "| workload | 1 | 100 |",
        "| --- | --- | --- |",
        "| json-one | 0.25 | 12 |",
        "| xml-one |  | 3 |",
        "",
        "No figure for `some/json-one/10000`: it could not hold 10,000.",
        "",
        "No figure for `other`: it does not install.",
    ]


def test_latency_is_compared_with_empty_epochs() -> None:
    """The median and the 99th percentile of small epochs, over the median of the empty ones."""
    small = [FileLatency(100.0 + number, 10, 0, 20, 5, 1) for number in range(101)]
    empty = [FileLatency(75.0, 9, 0, 10, 4, 0), FileLatency(50.0, 8, 0, 9, 3, 0), FileLatency(400.0, 7, 0, 8, 2, 0)]
    found = latency_figures(small, empty)
    assert found["ratios"] == {"p50_over_empty": 2.0, "p99_over_empty": 199 / 75}
    phases = {"found": 8, "plan": 0, "job": 9, "publish": 3, "deliver": 0}
    assert found["empty_ms"] == {"p50": 75.0, "p99": pytest.approx(393.5), "phases": phases}


def test_windows_of_the_law_are_those_of_plain_python(tmp_path: Path) -> None:
    """Every window that begins with the stream or behind it and holds a photon, in their order."""
    leaves = PhotonLeaves(_PHOTONS)
    write_photon_lines(tmp_path / "photons", "xml", _PHOTONS)
    given = {"photons": read_stream(photon_source(tmp_path / "photons", "xml"), Limits()).input}
    for each in hopping_windows(leaves, 6):
        answer = evaluate(check(parse(each.query), each.query).query, given).text
        assert window_values(answer) == pytest.approx(_aggregates(each, leaves), rel=1e-12)


def _aggregates(window: HoppingWindow, leaves: PhotonLeaves) -> list[float]:
    found = []
    for start in range(0, 120_000, window.step):
        inside = [
            float(texts[window.leaf])
            for texts in leaves.texts
            if _brute(window.of, texts) and start <= int(texts[TIME].replace(".", "")) < start + window.size
        ]
        if inside:
            found.append(_FUNCTIONS[window.function](inside))
    return found


_FUNCTIONS: Mapping[str, Callable[[list[float]], float]] = {
    "avg": fmean,
    "max": max,
    "min": min,
    "sum": sum,
    "count": len,
}


@pytest.mark.peers
@pytest.mark.parametrize("name", [each.name for each in PEERS.values() if each.windows])
def test_a_peer_has_the_windows_that_we_have(name: str, tmp_path: Path) -> None:
    """As many for each query, with the same values."""
    leaves = PhotonLeaves(_PHOTONS)
    wanted = hopping_windows(leaves, 6)
    write_photon_lines(tmp_path / "photons", "xml", _PHOTONS)
    program = built(PEERS[name], tmp_path / "program")
    lines, given = [each.line for each in wanted], (tmp_path / "work", "2g", (240.0, 60.0))
    with PeerProcess(program, tmp_path / "photons", lines, *given, streamed=PEERS[name].windows) as process:
        found = values_by_query(process.results(120), 6)
        assert process.matches == sum(map(len, found)) > 6
    for each, values in zip(wanted, found, strict=True):
        assert values == pytest.approx(_aggregates(each, leaves), rel=1e-9)


def test_near_pairs_of_the_law_are_those_of_plain_python(tmp_path: Path) -> None:
    """All pairs in the same column within the interval, the edge of which no pair is on."""
    lines = list(photons(150, 1))
    write_photon_lines(tmp_path / "photons", "xml", lines)
    given = {"photons": read_stream(photon_source(tmp_path / "photons", "xml"), Limits()).input}
    (asked,) = near_pairs(1)
    found = pairs_in(evaluate(check(parse(asked.query), asked.query).query, given).text)
    assert found == Counter(_brute_pairs(lines, asked))
    assert found.total() > 3


@pytest.mark.peers
@pytest.mark.parametrize("name", [each.name for each in PEERS.values() if each.joins])
def test_a_peer_has_the_pairs_that_there_are(name: str, tmp_path: Path) -> None:
    """For two joins, told by the time of the first photon."""
    lines, asked = list(photons(600, 1)), near_pairs(2)
    write_photon_lines(tmp_path / "photons", "xml", lines)
    program = built(PEERS[name], tmp_path / "program")
    given = [each.line for each in asked], tmp_path / "work", "2g", (240.0, 60.0)
    with PeerProcess(program, tmp_path / "photons", *given, streamed=PEERS[name].joins) as process:
        found = values_by_query(process.results(600), 2)
    expected = [Counter(round(1_000 * pair[2]) for pair in _brute_pairs(lines, each)) for each in asked]
    assert check_joins(expected, found, PEERS[name].title) > 40


@pytest.mark.peers
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("name", list(PEERS))
def test_a_peer_matches_what_we_do(name: str, wire: Wire, tmp_path: Path) -> None:
    """Each conjunction and each photon, over JSON and XML; and rounds have as many matches."""
    leaves = PhotonLeaves(_PHOTONS)
    wanted = leaves.conjunctions(20, 10)
    write_photon_lines(tmp_path / "photons", wire, _PHOTONS)
    program = built(PEERS[name], tmp_path / "program")
    lines = [each.line for each in wanted]
    with PeerProcess(program, tmp_path / "photons", lines, tmp_path / "work", "2g", (240, 60)) as process:
        assert check_pairs(process, wanted, leaves, 120, PEERS[name].title) > 600
        for timed in process.match, process.write:
            assert timed(100) > 0
            assert process.matches == leaves.count(wanted, 100)
