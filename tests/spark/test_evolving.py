"""Accents in a trunk, without Spark: whatever the epochs, ranges and tasks, every range knows what stands before it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Literal

import pytest

from anabranch.algebra.accents.events import Announced, is_change, judged
from anabranch.algebra.accents.evolution import Evolution, Row
from anabranch.algebra.accents.items import values
from anabranch.errors import StateError
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Manifests
from anabranch.spark.epoch import task
from anabranch.spark.epoch.job import Job, Outbox
from anabranch.spark.evolution import views as evolution_views
from anabranch.spark.evolution.log import EvolutionLogs, Logged, LoggedEvent, read_log
from anabranch.spark.evolution.rerun import search
from anabranch.spark.evolution.views import known_log
from anabranch.spark.intake import ranges, storage
from anabranch.spark.intake.ranges import Range
from anabranch.spark.intake.sources import file_bytes
from anabranch.spark.plan.epoch_plan import Plan
from anabranch.spark.plan.files import PlanFile
from anabranch.storage import Location
from anabranch.stream.description import parse
from anabranch.stream.elements import Accent, DeadLetter, Item, Place, Punctuation
from anabranch.stream.limits import Limits
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.parse import parse_item
from anabranch.stream.reading.source import KnownStream, Source, StreamForm, domains_of
from anabranch.stream.reading.wire import element_of
from anabranch.stream.schema import Schema
from anabranch.stream.tree import Element
from partitions import read_partitions
from spark.bare import BareTrunk

N, S = (ItemPath((name,)) for name in "ns")
NAMESPACE = 'xmlns:s="urn:anabranch:stream"'
QUERIES = {
    "items": 'for $i in stream("s")/r/i return <o id="{$i/@id}"/>',
    "few": 'for $i in stream("s")/r/i where $i/s = 2 return <o id="{$i/@id}"/>',
    "panes": 'for $w in stream("s")/r/i|n diff 10| return <w>{ count($w) }</w>',
    "fed": 'for $w in stream("s")/r/i|count 3| return <w>{ for $i in $w return <o>{ string($i/@id) }</o> }</w>',
}
"""None of them reads what accents change here, so what they answer tells which items were good."""


def accent(evolution: str, where: str = "") -> str:
    told = f' where="{where}"' if where else ""
    return f"<s:accent {NAMESPACE}{told}><s:{evolution}/></s:accent>"


def closing(where: str) -> str:
    return f'<s:punctuation {NAMESPACE} where="{where}"/>'


def elements(random: Random, count: int) -> list[str]:
    """A stream that goes through much, some of it wrong."""
    found: list[str] = []
    for number in range(count):
        if random.random() < 0.08:
            where = random.choice(("", "s = 1", "s = 2", "t &gt; 20", "k = 'x'", "not(k = 'x')"))
            what = random.choice(
                (
                    'alter path="t" by=". * 2"',
                    'alter path="t" by=". - 10"',
                    'drop path="p"',
                    'add path="p"',
                    'alter path="p" by=". * 3"',
                    'alter path="t" by=". * ."',
                    'drop path="c"',
                )
            )
            found.append(accent(what, where))
        if random.random() < 0.04:
            found.append(closing(random.choice((f"n &lt; {number - 30}", f"s = 3 and n &lt; {number + 9}", "k = 'y'"))))
        p = f"<p>{random.choice((1, 5, 7))}</p>" if random.random() < 0.6 else ""
        c = "<c><d>1</d></c>" if random.random() < 0.05 else ""
        k = random.choice("xxzz") if random.random() < 0.98 else "y"
        s, t, n = random.choice((1, 2, 3)), random.randint(0, 40), number - random.choice((0, 0, 0, 0, 40))
        found.append(f'<i id="{number}"><s>{s}</s><t>{t}</t><n>{n}</n><k>{k}</k>{p}{c}</i>')
    return found


@dataclass
class Expected:
    """What comes of a stream that is read by itself, from its front to its end."""

    items: list[list[Element]]
    dead: Counter[DeadLetter]
    schemas: list[tuple[Row, ...]]
    changes: int


def expected(source: Source) -> Expected:
    _, partitions = read_partitions(source, Limits())
    found = Expected([], Counter(), [], 0)
    for partition in partitions:
        evolution, items = Evolution.of(source), []
        for each in partition:
            found.changes += is_change(each)
            match judged(each, evolution):
                case DeadLetter() as letter:
                    found.dead[DeadLetter(letter.place, letter.reason, letter.raw)] += 1
                case Item(tree):
                    items.append(tree)
                case _:
                    pass
        found.items.append(items)
        found.schemas.append(evolution.schema())
    return found


def windows(items: Sequence[Element]) -> list[int]:
    """How many items windows of ten hold, without those that are late."""
    found: Counter[int] = Counter()
    largest = -1000
    for item in items:
        n = int(values(item, N)[0])
        if n >= max(0, largest):
            found[n // 10] += 1
        largest = max(largest, n)
    return [found[number] for number in sorted(found)]


def lay(folder: Path, parts: Sequence[Sequence[str]], form: str, **settings: object) -> Source:
    """A directory of some files, one partition."""
    folder.mkdir(parents=True)
    for number, part in enumerate(parts):
        text = "".join(f"{each}\n" for each in part)
        (folder / f"{number:03}").write_text(f"<r>{text}</r>" if form == "document" else text)
    return Source("s", folder, form, root="r", **settings)  # type: ignore[arg-type]


def newest(folder: Path) -> tuple[Checkpoint, Logged | None]:
    checkpoint = Checkpoint.open(folder)
    manifests = Manifests(checkpoint.manifests)
    return checkpoint, manifests.load(manifests.epochs()[-1]).evolution.get("s")


@pytest.mark.parametrize("number", range(3))
@pytest.mark.mass
def test_no_split_shows(tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Good items, dead letters and the schema at the end are those of the stream as a whole, for any kind of query."""
    random = Random(number)
    monkeypatch.setattr(ranges, "SMALLEST_RANGE", random.choice((300, 900, 1 << 20)))
    given = elements(random, 90)
    borders = sorted(random.sample(range(len(given)), random.choice((0, 1, 6))))
    parts = [given[a:b] for a, b in zip([0, *borders], [*borders, len(given)], strict=True)]
    source = lay(tmp_path / "in", parts, random.choice(("lines", "lines", "document")))
    due = expected(source)
    size = source.size

    trunk = BareTrunk(tmp_path / "state", [source], random, finite=True)
    trunk.run(QUERIES, (size // 7 + 1, size // 2 + 1, size + 1), (1, 3))

    (items,) = due.items
    ids = [each.get("id") for each in items]
    assert trunk.answer("items") == "".join(f'<o id="{each}"/>' for each in ids)
    assert trunk.answer("few") == "".join(f'<o id="{each.get("id")}"/>' for each in items if values(each, S) == ["2"])
    threes = (ids[first : first + 3] for first in range(0, len(ids) - 2, 3))
    assert trunk.answer("fed") == "".join(f"<w>{''.join(f'<o>{each}</o>' for each in three)}</w>" for three in threes)
    assert trunk.answer("panes") == "".join(f"<w>{each}</w>" for each in windows(items))
    assert Counter(each for each in trunk.log.dead_letters() if each.subscription is None) == due.dead
    checkpoint, logged = newest(tmp_path / "state")
    plan = KnownStream.of(source, StreamForm("lines", "<r/>"))
    assert known_log(checkpoint.evolution, plan, logged).evolutions[0].schema() == due.schemas[0]
    assert logged is None or len(read_log(checkpoint.evolution, logged)) == due.changes
    assert trunk.jobs <= 4 * trunk.epochs
    assert not any(name.endswith(".met") for name in checkpoint.evolution.names())


class _Steady(Random):
    """Chance that kills nothing and gives each range a task of its own as far as it can."""

    def random(self) -> float:
        return 0.5

    def randint(self, a: int, b: int) -> int:
        return (a + b) // 2


def run(folder: Path, source: Source, epoch_bytes: int = 1 << 30, query: str = QUERIES["items"]) -> BareTrunk:
    trunk = BareTrunk(folder, [source], _Steady(), finite=False)
    trunk.run({"q": query}, (epoch_bytes,), (1,))
    return trunk


ITEM = '<i id="{}"><s>1</s><t>{}</t></i>'


def test_a_stream_without_accents_is_read_once(tmp_path: Path) -> None:
    """Nothing is written for it, nothing is searched, and no job runs twice, also where there are heartbeats."""
    heartbeat = f'<s:punctuation {NAMESPACE} at="5"/>'
    parts = [[ITEM.format(number, 1), heartbeat] for number in range(6)]
    trunk = run(tmp_path / "state", lay(tmp_path / "in", parts, "lines"), 100)
    assert (trunk.jobs, trunk.searches) == (
        trunk.epochs,
        0,
    ) or trunk.jobs > trunk.epochs  # some are killed and run again
    assert trunk.searches == 0
    assert newest(tmp_path / "state")[1] is None
    assert not (tmp_path / "state" / "evolution").exists()


def test_a_surprise_costs_one_more_job_and_then_a_search(tmp_path: Path) -> None:
    """An accent that a later range had to know has the job run again; in the epochs behind it, it is searched for."""
    folder = tmp_path / "in"
    source = lay(folder, [[ITEM.format(0, 1)], [accent('drop path="t"')], [ITEM.format(1, 1)]], "lines")
    trunk = BareTrunk(tmp_path / "state", [source], _Steady(), finite=False)
    trunk.run({"q": QUERIES["items"]}, (1 << 30,), (1,))
    assert (trunk.epochs, trunk.jobs, trunk.searches) == (1, 2, 0)
    assert trunk.answer("q") == '<o id="0"/>'
    for number, each in enumerate(
        (accent('add path="t"'), ITEM.format(2, 1), accent('drop path="t"'), ITEM.format(3, 1))
    ):
        (folder / f"{number + 3:03}").write_text(each + "\n")
    trunk.run({"q": QUERIES["items"]}, (1 << 30,), (1,))
    assert (trunk.epochs, trunk.jobs, trunk.searches) == (2, 3, 1)
    assert trunk.answer("q") == '<o id="0"/><o id="2"/>'


def test_an_accent_behind_everything_surprises_nobody(tmp_path: Path) -> None:
    """What only the next epoch has to know is logged, and no job runs twice."""
    source = lay(tmp_path / "in", [[ITEM.format(0, 1)], [accent('drop path="t"')]], "lines")
    trunk = BareTrunk(tmp_path / "state", [source], _Steady(), finite=False)
    trunk.run({"q": QUERIES["items"]}, (1 << 30,), (1,))
    assert (trunk.epochs, trunk.jobs, trunk.searches) == (1, 1, 0)
    (tmp_path / "in" / "9").write_text(ITEM.format(1, 1) + "\n")
    trunk.run({"q": QUERIES["items"]}, (1 << 30,), (1,))
    assert (trunk.epochs, trunk.jobs, trunk.searches) == (2, 2, 0)
    assert trunk.answer("q") == '<o id="0"/>'
    (letter,) = trunk.log.dead_letters()
    assert (letter.place.partition, letter.reason) == ("9", "it carries 't', which was dropped")


def test_a_void_attempt_leaves_no_answers_behind(tmp_path: Path) -> None:
    """The segments of a job that did not know enough are removed: no manifest will ever name them."""
    source = lay(tmp_path / "in", [[ITEM.format(0, 1), accent('drop path="t"')], [ITEM.format(1, 1)]], "lines")
    trunk = BareTrunk(tmp_path / "state", [source], _Steady(), finite=False)
    trunk.run({"q": QUERIES["items"]}, (1 << 30,), (1,))
    checkpoint = Checkpoint.open(tmp_path / "state")
    manifest = Manifests(checkpoint.manifests).load(0)
    files = {*checkpoint.segments.names(below=True)}
    assert files == {each.name for each in manifest.segments}


def test_a_bad_accent_leaves_its_path_unknown(tmp_path: Path) -> None:
    """One that cannot be read, or is not valid, is a dead letter; for the items described the unit is unknown."""
    bad = accent('alter path="t" by=". * ."', "s = 1"), accent('alter path="s" by=". + 1"', "s = 1")
    source = lay(tmp_path / "in", [[*bad, ITEM.format(0, 1)]], "lines")
    trunk = run(tmp_path / "state", source)
    assert [each.reason for each in trunk.log.dead_letters()] == [
        "bad 's:alter': '.' is multiplied by itself at character 3 of the unit change",
        "the description names 's', the path that evolves",
    ]
    checkpoint, logged = newest(tmp_path / "state")
    rows = known_log(checkpoint.evolution, KnownStream.of(source), logged).evolutions[0].schema()
    unknown = {str(each.path): str(each.where) for each in rows if each.state.unit is None}
    assert unknown == {"t": "s = 1", "s": "true()"}


def test_declared_paths_and_domains_count(tmp_path: Path) -> None:
    """The DTD says which paths there are, domains what covers all; a strict stream takes what an accent announces."""
    schema = Schema.from_dtd(
        "<!ELEMENT r (i*)><!ELEMENT i (s, t?)><!ATTLIST i id CDATA #IMPLIED>"
        "<!ELEMENT s (#PCDATA)><!ELEMENT t (#PCDATA)>"
    )
    new = '<i id="{}"><s>1</s><p>3</p></i>'
    given = [
        new.format(0),
        accent('add path="t"'),
        accent('add path="p"', "s = 1"),
        accent('add path="p"', "s = 2"),
        new.format(1),
        accent('alter path="p" by=". * 2"'),
        new.format(2),
    ]
    source = lay(tmp_path / "in", [given], "lines", schema=schema, strict=True, domains=domains_of({"s": [1, 2]}))
    trunk = run(tmp_path / "state", source)
    assert trunk.answer("q") == '<o id="1"/><o id="2"/>'
    assert [each.reason for each in trunk.log.dead_letters()] == [
        "the path 'p' is not declared",
        "'t' is added where it exists",
    ]


def test_partitions_evolve_by_themselves(tmp_path: Path) -> None:
    """An accent acts in its own partition (LAWS 4.5), in whichever epoch and task the others are read."""
    source = lay(tmp_path / "in", [[accent('drop path="t"')], [ITEM.format(0, 1)]], "lines")
    other = lay(tmp_path / "more", [[ITEM.format(1, 1)], [ITEM.format(2, 1), accent('drop path="t"')]], "lines")
    both = replace(source, more=(other.path,))
    trunk = run(tmp_path / "state", both)
    assert trunk.answer("q") == '<o id="1"/><o id="2"/>'
    (tmp_path / "more" / "9").write_text(ITEM.format(3, 1) + "\n")
    trunk.run({"q": QUERIES["items"]}, (1 << 30,), (1,))
    assert [each.place.partition for each in trunk.log.dead_letters()] == ["001", "9"]


# --- the log --------------------------------------------------------------------------------------------------


PLAN = KnownStream.of(Source("s", Path("s"), root="r", item="i"))


def change(number: int, text: str) -> LoggedEvent:
    """An accent, or a punctuation of what a description describes."""
    place = Place("s", "f", number)
    event = (
        element_of(parse_item(text.encode(), Limits()), place)
        if text.startswith("<")
        else Punctuation(parse(text), place)
    )
    assert isinstance(event, Accent | Punctuation)
    return LoggedEvent(Announced("s", 0, event), 0, number)


def evolution_of(folder: Location, logged: Logged) -> Evolution:
    return known_log(folder, PLAN, logged).evolutions[0]


def logged_one_by_one(folder: Location, changes: Sequence[LoggedEvent]) -> Logged:
    logs, logged = EvolutionLogs(folder), None
    for each in changes:
        logged = logs.append("s", logged, [each], -1)
    assert logged is not None
    return logged


def test_punctuations_do_not_fill_the_log(tmp_path: Path) -> None:
    """Many that say more and more leave few lines and one file, and the same state; accents all stay."""
    changes = [change(number, f"s = {number % 7} and t < {number}") for number in range(400)]
    changes.insert(200, change(1_000, accent('alter path="u" by=". * 2"')))
    logged = logged_one_by_one(Location.of(tmp_path), changes)
    assert len(logged.parts) < 12
    kept = read_log(Location.of(tmp_path), logged)
    assert len(kept) < 200
    assert [type(each.announced.event) for each in kept].count(Accent) == 1
    whole = Evolution.of(PLAN.source)
    for each in changes:
        judged(each.announced.event, whole)
    assert list(evolution_of(Location.of(tmp_path), logged).forbidden()) == list(whole.forbidden())


def test_punctuations_that_may_have_purged_something_stay(tmp_path: Path) -> None:
    """Whoever began between two of them must find what was in force there, whatever came after."""
    told = change(0, accent('alter path="u" by=". * 2"', "s = 3"))
    changes = [told, *(change(number, f"t < {number}") for number in range(1, 200))]
    assert read_log(Location.of(tmp_path), logged_one_by_one(Location.of(tmp_path), changes)) == changes


def test_a_worker_reads_what_is_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a log that grows, each change is read and applied once; nothing is quadratic."""
    applied = 0
    plain = Evolution.apply

    def counted(self: Evolution, accent: Accent) -> object:
        nonlocal applied
        applied += 1
        return plain(self, accent)

    monkeypatch.setattr(Evolution, "apply", counted)
    logs, logged = EvolutionLogs(Location.of(tmp_path)), None
    for number in range(100):
        text = accent('alter path="t" by=". * 2"', f"s = {number}")
        logged = logs.append("s", logged, [change(number, text)], -1)
        evolution_of(Location.of(tmp_path), logged)
    assert applied == 100


def test_what_was_never_published_does_not_count(tmp_path: Path) -> None:
    """An attempt that was killed behind its append leaves lines that the next one writes over; so does a new driver."""
    first, second, third = (change(number, accent(f'drop path="{name}"')) for number, name in enumerate("abc"))
    logged = EvolutionLogs(Location.of(tmp_path)).append("s", None, [first], -1)
    EvolutionLogs(Location.of(tmp_path)).append("s", logged, [second], -1)  # killed
    assert read_log(Location.of(tmp_path), logged) == [first]
    again = EvolutionLogs(Location.of(tmp_path)).append("s", logged, [third], -1)
    assert read_log(Location.of(tmp_path), again) == [first, third]
    evolution_of(Location.of(tmp_path), again)
    assert len(evolution_of(Location.of(tmp_path), logged).schema()) == 1  # an older place is read from the front


def test_a_damaged_log_is_refused(tmp_path: Path) -> None:
    """By name, by the driver and by tasks, and never read as another one."""
    logged = EvolutionLogs(Location.of(tmp_path)).append("s", None, [change(0, "t < 5")], -1)
    file = tmp_path / logged.parts[0].file
    file.write_bytes(file.read_bytes().replace(b"5", b"6"))
    evolution_views._known.clear()
    for read in (lambda: read_log(Location.of(tmp_path), logged), lambda: evolution_of(Location.of(tmp_path), logged)):
        with pytest.raises(StateError, match="damaged"):
            read()


# --- searching ------------------------------------------------------------------------------------------------


JSON = (
    '{"s": 1, "t": "accent"}',
    '{"$accent": {"where": "s = 1", "drop": {"path": "t"}}}',
    r'{"\u0024accent": {"drop": {"path": "u"}}}',
    '{"$punctuation": {"where": "s = 3"}}',
    '{"$punctuation": {"at": 5}}',
    '{"$accent": {"alter": {"path": "t", "by": "."}, "drop": {"path": "u"}}}',
)
XML = (
    ITEM.format(1, "accent"),
    accent('drop path="t"', "s = 1"),
    f'<accent xmlns="urn&#58;anabranch:stream"><drop path="u"/></accent>{" " * 70_000}',
    closing("s = 3"),
    f'<s:punctuation {NAMESPACE} at="5"/>',
    accent('alter path="t" by=". * ."'),
    "<i>" + "x" * 100_000 + "</i>",
    f"<!-- {closing('v = 3')} -->",
)


@pytest.mark.parametrize("form", ["lines", "json", "document"])
@pytest.mark.parametrize("number", range(3))
def test_searching_finds_what_reading_finds(
    tmp_path: Path, form: Literal["lines", "json", "document"], number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same changes at the same places, however elements are spelled and wherever the bytes are cut."""
    random = Random(f"{form} {number}")
    size = random.choice((150_000, 1 << 20))
    monkeypatch.setattr(
        file_bytes, "pieces", lambda path, start, end, _, **kind: storage.pieces(path, start, end, size, **kind)
    )
    monkeypatch.setattr(storage, "_LOOK_BYTES", 10_000)
    given = [random.choice(JSON if form == "json" else XML) for _ in range(40)]
    ends = random.choice(("\n", "\r\n"))
    text = ends.join(given) + random.choice((ends, ""))
    path = tmp_path / "in"
    path.write_bytes((f"<r>{text}</r>" if form == "document" else "\ufeff" + text).encode())
    checkpoint = Checkpoint.make(tmp_path / "state")
    stream = KnownStream.of(Source("s", path, form, root="r"), StreamForm(form, "<r/>"))
    logged = EvolutionLogs(checkpoint.evolution).append("s", None, [], 0)
    plan = PlanFile.save(Plan((stream,), (), Limits(), 0), checkpoint.plans)
    job = Job(plan, checkpoint, 1, {}, evolution={"s": logged})
    reach = Range("s", "0", 0, "in", str(path), 0, path.stat().st_size, last=True, packed=False, sequence=0)
    found = search(job, [reach]).changes["s"]
    assert found == task.work(job, [reach], Outbox()).changes["s"]
    assert {type(each.announced.event) for each in found} == {Accent, Punctuation, DeadLetter}
