"""Plans of the builder in a trunk: what the interpreter says, whatever the epochs, shards, partitions and restarts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from heapq import merge
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

import anabranch
from algebra.accented import HERE
from algebra.evolving import Planner, stream
from anabranch.algebra.accents.items import values
from anabranch.algebra.plans import builder
from anabranch.algebra.plans.interpret import Plan
from anabranch.algebra.plans.written import streams_of, write_plan
from anabranch.branch.members import BranchMember
from anabranch.branch.plans.plans import PlanBranch
from anabranch.engine.evolved import Answered, Fed, NoSpill, fed, run_branch
from anabranch.engine.reading import read_stream
from anabranch.engine.reports.evolution import StreamCourse
from anabranch.errors import UsageError
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.epoch import trunk as epochs
from anabranch.spark.epoch.finite import run_queries
from anabranch.spark.hosts.spark_host import SparkHost
from anabranch.stream.elements import Item, StreamElement
from anabranch.stream.limits import Limits
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.parse import parse_item
from anabranch.stream.reading.source import Source
from anabranch.stream.reading.wire import element_of, write
from anabranch.stream.settings import Settings
from evolving.judging import across, plain
from evolving.questions import TIME, timed
from models.canonical import canonical
from models.interpreter import run
from spark.bare import BareTrunk
from spark.trunks import Killed, Site

NAMES = {"a": ["s", "t", "x"], "a2": ["s", "t", "x"], "b": ["s", "y"]}
TIMES = {"a": TIME, "a2": TIME, "b": ItemPath.parse("at")}
N = 'xmlns:s="urn:anabranch:stream"'


def answer_plan(plan: Plan, name: str, streams: Mapping[str, Fed]) -> Answered:
    """A plan of the builder over whole streams, by one branch that is never saved."""
    out, needed = Answered(), {stream: streams[stream] for stream in streams_of(plan)}
    inputs = {stream: each.stream for stream, each in needed.items()}
    branch = PlanBranch(BranchMember("", name, plan, out), inputs, None, NoSpill())
    run_branch(branch, needed)
    out.aborted = branch.aborted.get("")
    return out


class World:
    """Accented streams on disk, each of some partitions, with times; and plans over them."""

    def __init__(self, folder: Path, random: Random, plans: int) -> None:
        self.goes = random.random() < 0.3
        self.streams: dict[str, Sequence[Sequence[StreamElement]]] = {}
        self.sources: list[Source] = []
        for name, paths in NAMES.items():
            comes, time = name != "b", TIMES[name]
            parts = [
                _renamed(time, timed(random, stream(random, paths, 7, comes=comes, goes=comes and self.goes)))
                for _ in range(random.choice((1, 2, 3, 4)))
            ]
            self.streams[name] = parts
            files = [folder / f"{name}-{number}" for number in range(len(parts))]
            for file, part in zip(files, parts, strict=True):
                file.write_text("".join(f"{write(each)}\n" for each in part))
            more, slack = tuple(files[1:]), Fraction(10**6)
            self.sources.append(Source(name, files[0], "lines", None, "r", "i", time, slack, more=more))
        self.plans: dict[str, Plan] = {}
        for index in range(plans):
            planner = Planner(random, goes=self.goes)
            for _ in range(random.randint(1, 5)):
                planner.grow(random.choice(planner.possible()))
            self.plans[f"q{index}"] = planner.plan
        self.texts = {name: write_plan(plan) for name, plan in self.plans.items()}

    def check(self, answers: Mapping[str, str]) -> int:
        """Judge the answers: by the branch at one go, and by the square; gives how often the latter."""
        read = {source.name: fed(read_stream(source, Limits())) for source in self.sources}
        squares = 0
        for name, plan in self.plans.items():
            found = answer_plan(plan, name, read)
            assert answers[name] == "".join(found.pieces), plan
            if found.aborted is None:
                law = [plain(each.tree) for each in run(plan, self._canonical(plan)) if isinstance(each, Item)]
                assert sorted(filter(None, across(answers[name]))) == sorted(law), plan
                squares += 1
        return squares

    def _canonical(self, plan: Plan) -> list[tuple[str, Item]]:
        """The canonical items of all streams in one order."""
        found: list[list[tuple[str, Item]]] = [
            [(name, each) for each in canonical(part) if isinstance(each, Item)]
            for name in streams_of(plan)
            for part in self.streams[name]
        ]
        return list(merge(*found, key=lambda each: Fraction(values(each[1].tree, TIMES[each[0]])[0])))


def _renamed(time: ItemPath, elements: Sequence[StreamElement]) -> Sequence[StreamElement]:
    """The elements with another path for their times: what is joined has no path in common but the key."""
    if time == TIME:
        return elements
    texts = (write(each).replace("ts>", f"{time}>").replace('"ts"', f'"{time}"') for each in elements)
    return [element_of(parse_item(text.encode(), Limits()), HERE) for text in texts]


@pytest.mark.mass
def test_nothing_of_a_trunk_shows_in_the_answer_of_a_plan(tmp_path: Path) -> None:
    """Without Spark, in random epochs and shards: the branch at one go, and the square with the interpreter."""
    squares = 0
    for seed in range(2):
        random = Random(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        world = World(folder, random, 4)
        trunk = BareTrunk(folder / "state", world.sources, random, finite=True)
        trunk.run(world.texts, (300, 700), (1, 2, 4))
        squares += world.check({name: trunk.answer(name) for name in world.plans})
    assert squares > 5


def test_the_history_tells_what_plans_did(tmp_path: Path) -> None:
    """They pass an accent on, reckon with it until they can, or end; who does not look at its path is not named."""
    sensors = builder.stream("sensors")
    asked = {
        "shows": sensors.project("s", "t"),
        "hides": sensors.project("t"),
        "averages": sensors.window("ts", size=10).aggregate(by=["s", "wid"], avg=["t"]),
        "renames": sensors.construct("o", {"heat": "t", "k": "s"}),
        "selects": sensors.select("t > 3").construct("o", {"k": "s"}),
        "other": sensors.aggregate(by=["s"], all="max", exclude=["t"]),
    }
    (tmp_path / "in").write_text(
        reading(1, 1, 4) + accent("s = 2", TO_CELSIUS, 1) + accent("true()", '<s:drop path="t"/>', 1)
    )
    source = Source("sensors", tmp_path / "in", "lines", time=TIME)
    trunk = BareTrunk(tmp_path / "state", [source], Random(1), finite=False)
    trunk.run({name: write_plan(each.plan) for name, each in asked.items()}, (1 << 20,), (2,))
    told = StreamCourse(source, Checkpoint.at(tmp_path / "state")).history()
    assert [{each.deed: each.subscriptions for each in event.reactions} for event in told] == [
        {"passes it on": ("shows", "averages", "renames"), "reckons with it": ("hides", "selects")},
        {"passes it on": ("shows", "hides", "averages", "renames"), "ends": ("selects",)},
    ]


def test_equal_plans_are_run_once(tmp_path: Path) -> None:
    """Who subscribes to an equal plan together with another shares its branch, under the same policy; answers agree."""
    plan = write_plan(builder.stream("s").select("t > 3").construct("o", {"k": "s"}).plan)
    other = write_plan(builder.stream("s").select("t > 4").construct("o", {"k": "s"}).plan)
    (tmp_path / "in").write_text(reading(1, 1, 4) + reading(2, 2, 9))
    trunk = BareTrunk(tmp_path / "state", [Source("s", tmp_path / "in", "lines")], Random(1), finite=False)
    trunk.policies = {"strict": "abort"}
    trunk.run({"one": plan, "two": plan, "strict": plan, "other": other}, (1 << 20,), (2,))
    assert trunk.plan is not None
    branches = {name: each.branch for name, each in trunk.plan.by_name.items()}
    assert branches["one"] == branches["two"]
    assert len(set(branches.values())) == 3
    assert {name: trunk.answer(name) for name in branches} == {
        "one": "<o><k>1</k></o><o><k>2</k></o>",
        "two": "<o><k>1</k></o><o><k>2</k></o>",
        "strict": "<o><k>1</k></o><o><k>2</k></o>",
        "other": "<o><k>2</k></o>",
    }


def test_plans_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    """The same on Spark: pipelines of up to five operators, many at once, over one to four partitions each."""
    squares = 0
    for seed, shards in ((77, 3), (78, 2)):
        folder = tmp_path / str(seed)
        folder.mkdir()
        world = World(folder, Random(seed), 50)
        outcome = run_queries(
            SparkHost(spark), world.sources, world.texts, folder / "work", Settings(epoch_bytes=5_000, shards=shards)
        )
        squares += world.check({name: answer.text() for name, answer in outcome.answers.items()})
    assert squares > 50


# --- through the engine -------------------------------------------------------------------------------------------

CELSIUS = "(. - 32) * 5 div 9"


def reading(ts: int, sensor: int, t: object, more: str = "") -> str:
    return f"<i><ts>{ts}</ts><s>{sensor}</s><t>{t}</t>{more}</i>\n"


def accent(where: str, evolution: str, at: int) -> str:
    return f'<s:accent {N} at="{at}" where="{where}">{evolution}</s:accent>\n'


TO_CELSIUS = f'<s:alter path="t" by="{CELSIUS}"/>'


def test_a_plan_is_subscribed_to_like_a_query(spark: SparkSession, tmp_path: Path) -> None:
    """The handle of a stream is what plans are built on; explained, shown, iterated over, delivered and cancelled."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "0").write_text(
        reading(1, 1, 68)
        + accent("s = 2", TO_CELSIUS, 1)
        + reading(2, 2, 20)
        + reading(3, 2, 30, "<q>9</q>")
        + "<i><broken></i>\n"
        + reading(11, 1, 50)
    )
    with anabranch.Engine(spark, once=True, shards=2) as engine:
        sensors = engine.stream("sensors", folder, time="ts")
        windows = sensors.window("ts", size=10)
        by_sensor = engine.subscribe(windows.aggregate(by=["s", "wid"], all="avg", exclude=["q", "ts"]), "averages")
        warm = engine.subscribe(sensors.select("t > 68").project("t"), "warm", sink=tmp_path / "warm.xml")
        absorbed = engine.subscribe(sensors.project("t"), policy="absorb")
        text = engine.subscribe('for $i in stream("sensors")/root/i where $i/t > 68 return $i/s')
        with pytest.raises(UsageError, match="'other', which is not registered"):
            engine.subscribe(sensors.union(builder.stream("other")))
        with pytest.raises(UsageError, match="already"):
            engine.subscribe(sensors, "warm")
        assert warm.answer() == "<i><t>86</t></i>"
        assert (tmp_path / "warm.xml").read_text() == warm.answer()
        told = '<s:accent xmlns:s="urn:anabranch:stream" where="s = 2"><s:alter path="t" by=". * 5 div 9 - 160 div 9"/>'
        assert by_sensor.answer() == (
            f"{told}</s:accent><i><s>1</s><wid>0</wid><t>68</t></i><i><s>2</s><wid>0</wid><t>25</t></i>"
        )
        assert absorbed.answer() == "<i><t>68</t></i><i><t>68</t></i><i><t>86</t></i><i><t>50</t></i>"
        assert text.answer() == "<s>2</s>"
        assert "".join(by_sensor) == by_sensor.answer()
        assert "branch 0: plan of sensors for averages" in str(engine.explain())
        assert "project t; select t &gt; 68; stream sensors" in engine.explain()._repr_html_()
        assert "select t &gt; 68" in warm._repr_html_()
        assert "select t &gt; 68" in engine._repr_html_()
        assert [each.reason for each in engine.log.dead_letters()] != []
        warm.cancel()
        assert warm.answer() == "<i><t>86</t></i>"


def test_a_plan_goes_on_after_a_kill(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two streams, one of two partitions; windows, a join and a union, killed before and behind the manifest.

    One that comes later sees what is in force for a part of the items first (LAWS 3.6).
    """
    site = Site(spark, tmp_path)
    site.stream("sensors", "a", "b", time="ts")
    site.stream("places", "p", time="at")
    sensors, places = builder.stream("sensors"), builder.stream("places")
    plans = {
        "averages": sensors.window("ts", size=10).aggregate(by=["s", "wid"], all="avg", exclude=["ts"]),
        "placed": sensors.join(places, on="s").select("l = 'A'").construct("o", {"l": "l", "heat": "t"}),
        "both": sensors.select("s = 1").union(sensors.select("s = 2")).project("s", "t"),
    }
    texts = {name: write_plan(each.plan) for name, each in plans.items()}
    site.wanted = replace(site.wanted, subscriptions=texts)
    late = {"late": write_plan(sensors.project("s", "t").plan)}
    for turn, (one, other) in enumerate(((68, 68), (50, 20), (10, 20))):
        start = 10 * turn
        told = accent(f"s = {3 - turn}", TO_CELSIUS, start) if turn else ""
        for folder, sensor, heat in (("a", 1, one), ("b", 2, other)):
            text = told + reading(start, sensor, heat) + reading(start + 5, sensor, heat)
            site.write(f"{folder}/{turn}", text)
        site.write(f"p/{turn}", f"<i><at>{start + 1}</at><s>{turn % 2 + 1}</s><l>A</l></i>\n")
    for turn, name in enumerate(("job-done", "manifest-published")):

        def die(found: str, epoch: int, name: str = name, turn: int = turn) -> None:
            if (found, epoch) == (name, turn):
                raise Killed(name)

        monkeypatch.setattr(epochs, "point", die)
        with pytest.raises(Killed, match=name):
            site.run(epoch_files=3)
    monkeypatch.undo()
    site.wanted = replace(site.wanted, subscriptions={**texts, **late})
    site.run(epoch_files=3)
    read = {each.name: fed(read_stream(each, Limits())) for each in site.wanted.streams.values()}
    for name, each in plans.items():
        law, found = "".join(answer_plan(each.plan, name, read).pieces), site.answer(name)
        assert law.startswith(found), name
        assert len(found) > len(law) / 2, name
    assert "<wid>1</wid>" in site.answer("averages")
    assert site.answer("late").startswith("<s:accent")
