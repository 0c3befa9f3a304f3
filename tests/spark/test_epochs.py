"""The durable trunk: lists of actions on one checkpoint (write, run, want, kill, look).

On the shared Spark is what depends on how it lets epochs come; the rest is the same on every host.
"""

from __future__ import annotations

import errno
import gzip
import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from anabranch.errors import AnabranchError, StateError, StreamError, UsageError
from anabranch.spark.checkpoint import crash, durable, retention
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Manifests
from anabranch.spark.epoch import trunk as epochs
from anabranch.spark.sinks import Files
from anabranch.storage import Location
from anabranch.stream.settings import Keep
from spark.trunks import ALL, Killed, Site, items, lines, spark_for


@pytest.fixture
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Site:
    """A site with one stream of lines, on Spark for tests that are marked so."""
    site = Site(spark_for(request), tmp_path)
    site.stream("s", "in")
    return site


@pytest.mark.spark
def test_runs_with_other_epochs_give_the_same_answer(site: Site) -> None:
    """Lines, a document that never closes and gzip, grown between runs, in epochs of other sizes: the law's answer."""
    site.stream("d", "docs", form="document")
    site.stream("j", "json", form="json")
    site.subscribe(
        every=ALL,
        odd='<o>{ for $p in stream("s")/root/p where $p mod 2 = 1 return <n>{ $p/text() }</n> }</o>',
        doc='<d>{ for $p in stream("d")/ps/p where $p > 2 return $p }</d>',
        json='<j>{ stream("j")/root/item/n }</j>',
    )
    document = "<ps>" + lines(0, 40).replace("\n", " ")
    site.write("in/a", lines(0, 30))
    site.write("docs/a", document[:123])
    site.run(epoch_bytes=60)
    site.append("in/a", lines(30, 40) + "<p>4")
    site.append("docs/a", document[123:250])
    site.run(epoch_bytes=10_000)
    site.append("in/a", "0</p>\n")
    site.write("in/b.gz", gzip.compress(lines(41, 60).encode()))
    site.write("in/c", "<p>60</p>\n<p>broken\n")
    site.append("docs/a", document[250:])
    site.write("json/a", '{"n": 1}\n{"n": [2, 3]}\n')
    site.run(epoch_bytes=77, epoch_files=1)
    for name in site.wanted.subscriptions:
        assert site.answer(name) == site.law(name)
    assert site.answer("every") == items(0, 61)
    assert site.answer("json") == "<j><n>1</n><n>2</n><n>3</n></j>"
    (letter,) = site.log.dead_letters()
    assert (letter.place.partition, letter.place.offset) == ("c", 10)
    assert [each.manifest.epoch for each in site.seen] == list(range(len(site.seen)))
    assert {each.manifest.run for each in site.seen} == {1, 2, 3}


@pytest.mark.spark
def test_no_moment_is_a_bad_one_to_be_killed(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed at every point of an epoch, one after the other; sinks, dead letters, windows: nothing lost or doubled."""
    site.subscribe(all=ALL, threes='<r>{ for $w in stream("s")/root/p |count 3 step 2| return <w>{ $w }</w> }</r>')
    site.wanted = replace(site.wanted, sinks={"all": Files(site.top / "out")}, dead_letters=site.top / "dead")
    site.write("in/a", lines(0, 40) + "broken\n" + lines(40, 60))
    for turn, name in enumerate(crash.POINTS):

        def die(found: str, epoch: int, name: str = name, turn: int = turn) -> None:
            if (found, epoch) == (name, turn):
                raise Killed(name)

        monkeypatch.setattr(epochs, "point", die)
        with pytest.raises(Killed, match=name):
            site.run(epoch_bytes=60)
    monkeypatch.undo()
    site.run(epoch_bytes=500)
    assert site.answer("all") == items(0, 60)
    assert site.answer("threes") == site.law("threes")
    assert (site.top / "out").read_text() == items(0, 60).removesuffix("</all>")
    (line,) = (site.top / "dead").read_text().splitlines()
    assert json.loads(line)["raw"] == "broken"
    found = list(Manifests(Checkpoint.at(site.top / "state").manifests).since(0))
    assert [each.epoch for each in found] == list(range(len(found)))


@pytest.mark.spark
def test_an_epoch_that_comes_again_is_planned_anew(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was never committed, so it never was: a query that is added in between begins with it."""
    site.subscribe(one=ALL)
    site.write("in/a", lines(0, 10))

    def die(found: str, epoch: int) -> None:
        if found == "plan-written":
            raise Killed

    monkeypatch.setattr(epochs, "point", die)
    with pytest.raises(Killed):
        site.run(epoch_bytes=45)
    monkeypatch.undo()
    site.subscribe(two=ALL)
    site.run(epoch_bytes=1_000)
    assert site.answer("one") == items(0, 10)
    assert site.answer("two") == items(0, 10)


def test_a_run_that_could_not_write_goes_on_later(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """No room for the manifest: an error with a name; with room, the same answer as ever."""
    site.subscribe(all=ALL)
    site.write("in/a", lines(0, 20))
    create = durable.create

    def full(path: Location, data: bytes) -> bool:
        if path.parent.name == "manifest" and path.name.endswith("1.json"):
            with durable.writing(path):
                raise OSError(errno.ENOSPC, "No space left on device")
        return create(path, data)

    monkeypatch.setattr(durable, "create", full)
    with pytest.raises(StateError, match="the disk is full"):
        site.run(epoch_bytes=60)
    monkeypatch.undo()
    assert site.answer("all") == items(0, 7)
    site.run()
    assert site.answer("all") == items(0, 20)


def test_a_hundred_subscriptions_come_and_go_without_a_restart(site: Site) -> None:
    """Each answers from the first element it sees to the last before it was cancelled; epochs and query go on."""
    spans: dict[str, tuple[int, int]] = {}
    count = 0
    with site.trunk() as trunk:
        trunk.want(site.wanted)
        trunk.start(once=False)
        query = trunk.query or pytest.fail("it was started")
        for turn in range(12):
            if turn < 10:
                site.subscribe(**{f"q{turn}-{n}": ALL for n in range(10)})
                spans |= {f"q{turn}-{n}": (count, -1) for n in range(10)}
            if turn >= 2:
                gone = [f"q{turn - 2}-{n}" for n in range(10)]
                site.cancel(*gone)
                spans |= {name: (spans[name][0], count) for name in gone}
            trunk.want(site.wanted)
            site.append("in/a", lines(count, count + 5))
            count += 5
            assert trunk.beyond(turn - 1)
        assert (trunk.query, query.isActive) == (query, True)
    assert [each.manifest.epoch for each in site.seen] == list(range(len(site.seen)))
    assert len(spans) == 100
    for name, (start, end) in spans.items():
        assert site.answer(name) == items(start, end), name


@pytest.mark.spark
def test_a_trunk_gains_and_loses_streams_while_it_runs(site: Site) -> None:
    """A stream that is added is read from its beginning; one that is taken out and put back goes on where it was."""
    site.subscribe(all=ALL)
    with site.trunk() as trunk:
        trunk.want(site.wanted)
        trunk.start(once=False)
        site.write("in/a", lines(0, 5))
        assert trunk.beyond(-1)
        site.stream("t", "more")
        site.write("more/a", "<p>x</p>\n")
        site.subscribe(more='<more>{ stream("t")/root/p }</more>')
        trunk.want(site.wanted)
        assert trunk.beyond(0)
        both = site.wanted
        site.wanted = replace(both, streams={"s": both.streams["s"]})
        site.cancel("more")
        trunk.want(site.wanted)
        site.append("more/a", "<p>y</p>\n")
        site.append("in/a", lines(5, 8))
        assert trunk.beyond(1)
        trunk.want(both)
        assert trunk.beyond(2)
    assert site.answer("all") == items(0, 8)
    assert site.answer("more") == "<more><p>y</p></more>"  # a new subscription: the old one had ended
    assert [each.manifest.epoch for each in site.seen] == list(range(4))


def test_a_changed_query_is_another_subscription_under_the_name(site: Site) -> None:
    """Its answer begins with its first element; in its sink too, where the old answer is moved aside."""
    site.wanted = replace(site.wanted, sinks={"q": Files(site.top / "out")})
    site.subscribe(q=ALL)
    site.write("in/a", lines(0, 5))
    site.run()
    site.subscribe(q='<n>{ for $p in stream("s")/root/p return <i>{ $p/text() }</i> }</n>')
    assert site.answer("q") == items(0, 5)
    site.append("in/a", lines(5, 7))
    site.run()
    assert site.answer("q") == "<n><i>5</i><i>6</i></n>"
    assert (site.top / "out").read_text() == "<n><i>5</i><i>6</i>"
    assert (site.top / "out.0").read_text() == items(0, 5).removesuffix("</all>")


def test_a_sink_that_comes_later_gets_the_answer_from_its_beginning(site: Site) -> None:
    """What the log still holds is delivered first; files of others are not touched."""
    site.subscribe(all=ALL)
    site.write("in/a", lines(0, 5))
    site.run(epoch_bytes=20)
    site.wanted = replace(site.wanted, sinks={"all": Files(site.top / "out")})
    site.run()
    assert (site.top / "out").read_text() == items(0, 5).removesuffix("</all>")
    site.write("other", "mine")
    site.wanted = replace(site.wanted, sinks={"all": Files(site.top / "other")})
    with pytest.raises(StateError, match="another checkpoint or program wrote it"):
        site.run()
    assert (site.top / "other").read_text() == "mine"


def test_two_runs_on_one_checkpoint(site: Site) -> None:
    """The second is refused and the first goes on."""
    site.subscribe(all=ALL)
    site.write("in/a", lines(0, 5))
    with site.trunk() as trunk:
        trunk.want(site.wanted)
        with pytest.raises(StateError, match="another run is at work"):
            site.run()
        trunk.start(once=True)
        trunk.wait()
    assert site.answer("all") == items(0, 5)


def test_the_oldest_epochs_are_dropped(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """With three epochs to keep, the answer is what those hold, and says that it is not whole; runs go on."""
    monkeypatch.setattr(retention, "MIN_EPOCHS", 2)
    site.settings = replace(site.settings, keep=Keep(epochs=3))
    site.subscribe(all=ALL)
    site.write("in/a", lines(0, 10))
    site.run(epoch_bytes=9)
    assert site.answer("all") == items(7, 10)
    found = site.log.subscription("all")
    assert found is not None
    assert not site.log.answer(found).whole
    state = site.top / "state"
    assert sorted(each.name for each in (state / "segments").iterdir()) == [f"{n:08}" for n in (7, 8, 9)]
    assert len(list((state / "plans" / "000001").iterdir())) == 2  # one plan, and the block of its subscriptions
    site.append("in/a", lines(10, 12))
    site.run()
    assert site.answer("all") == items(8, 12)


@pytest.mark.spark
def test_what_spark_wrote_is_not_needed(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed in an epoch, between two, and after the last, with Spark's own files and all else that is local gone."""
    site.subscribe(all=ALL, threes='<r>{ for $w in stream("s")/root/p |count 3 step 2| return <w>{ $w }</w> }</r>')
    site.write("in/a", lines(0, 40))
    for name, number in (("job-done", 1), ("manifest-published", 3), ("epoch-begun", 6)):

        def die(found: str, epoch: int, at: tuple[str, int] = (name, number)) -> None:
            if (found, epoch) == at:
                raise Killed

        monkeypatch.setattr(epochs, "point", die)
        with pytest.raises(Killed):
            site.run(epoch_bytes=50)
        shutil.rmtree(site.top / "state" / "scratch")
    monkeypatch.undo()
    site.run(epoch_bytes=70)
    site.append("in/a", lines(40, 45))
    site.run()
    assert site.answer("all") == items(0, 45)
    assert site.answer("threes") == site.law("threes")


def test_late_files_are_read_with_a_warning(site: Site) -> None:
    """LAWS 1.1: a smaller name that turns up later comes next, and somebody is told."""
    site.subscribe(all=ALL)
    site.write("in/b", lines(0, 2))
    site.run()
    site.write("in/a", lines(2, 4))
    site.run()
    assert site.answer("all") == items(0, 4)
    assert site.warnings == ["stream 's': the file 'a' came after files with larger names; it is read next"]


@pytest.mark.parametrize(
    ("spoil", "error", "message"),
    [
        ("overwrite", StreamError, "has become shorter"),
        ("format", UsageError, "was read as 'lines' until now, not as 'json'"),
        ("manifest", StateError, "00000000.json' is damaged"),
    ],
)
def test_what_cannot_go_on_is_named(site: Site, spoil: str, error: type[AnabranchError], message: str) -> None:
    """Whatever was spoilt between two runs, the second says so and changes nothing."""
    site.subscribe(all=ALL)
    site.write("in/a", lines(0, 5))
    site.run()
    state = site.top / "state"
    match spoil:
        case "overwrite":
            site.write("in/a", lines(0, 2))
        case "format":
            site.stream("s", "in", form="json")
        case "manifest":
            path = state / "manifest" / "00000000.json"
            path.write_bytes(path.read_bytes()[:50])
    before = _contents(state / "manifest")
    with pytest.raises(error, match=message):
        site.run()
    assert _contents(state / "manifest") == before


def _contents(folder: Path) -> Mapping[str, bytes]:
    return {each.name: each.read_bytes() for each in folder.iterdir()}


@pytest.mark.spark
def test_metrics_tell_what_an_epoch_did(site: Site) -> None:
    """Items, bytes, dead letters and matches by subscription."""
    site.subscribe(all=ALL, none='<r>{ for $p in stream("s")/root/p where $p > 100 return $p }</r>')
    site.write("in/a", lines(0, 5) + "broken\n")
    site.run()
    (epoch,) = site.seen
    told = asdict(epoch.metrics)
    assert {key: told[key] for key in ("epoch", "items", "dead_letters", "matched", "matches", "bytes")} == {
        "epoch": 0,
        "items": 5,
        "dead_letters": 1,
        "matched": 5,
        "matches": {"all": 5},
        "bytes": (site.top / "in/a").stat().st_size,
    }
    assert told["job_ms"] > 0


def test_metrics_tell_what_was_read_in_columns_and_what_was_not(site: Site) -> None:
    """Items by template, by the scanner and by the parser; subscriptions in columns and by the law, with the reason."""
    site.subscribe(
        high='<r>{ for $p in stream("s")/root/p where $p/v > 2 return $p/v }</r>',
        higher='<r>{ for $p in stream("s")/root/p where $p/v > 3 return $p/v }</r>',
        siblings='<r>{ for $p in stream("s")/root/p return $p/v/following-sibling::v }</r>',
    )
    items = [*(f"<p><v>{number}</v></p>" for number in range(5)), "<p> <v>3</v></p>", "<p><v>&#52;</v></p>"]
    site.write("in/a", "".join(f"{each}\n" for each in items))
    site.run()
    (epoch,) = site.seen
    assert asdict(epoch.metrics)["streams"] == {
        "s": {
            "items": 7,
            "by_template": 5,
            "by_scanner": 1,
            "by_parser": 1,
            "unclear": 0,
            "in_columns": 2,
            "by_law": 1,
            "reasons": {"a step along the following-sibling axis": 1},
            "bytes": (site.top / "in/a").stat().st_size,
        }
    }


def test_partitions_are_merged_by_their_arrival(site: Site) -> None:
    """Without a time, elements come by epoch, and within it in the order in which the partitions are named."""
    site.stream("t", "one", "two")
    site.subscribe(all='<all>{ stream("t")/root/p }</all>')
    site.write("one/a", lines(0, 2))
    site.write("two/a", lines(10, 12))
    site.run()
    site.append("two/a", lines(12, 14))
    site.append("one/a", lines(2, 3))
    site.run()
    assert site.answer("all") == "<all>" + "".join(f"<p>{n}</p>" for n in (0, 1, 10, 11, 2, 12, 13)) + "</all>"
