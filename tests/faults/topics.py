"""A site between topics: streams come from some, and all answers go to others.

What comes is settled beforehand, in parts, and lies in files, too: so the reference can be asked what is due, and a
topic shows it if it holds each result once.
Items have times of their own, and the last part brings punctuations that close all windows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from anabranch.algebra.display.replay import Replay
from anabranch.engine.finite import answering
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import prepare
from anabranch.running import committed
from anabranch.spark.answers.log import AnswerLog
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.sinks.pieces import results_in
from anabranch.storage import Location
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source
from brokers import Broker, Record

QUERIES = {
    "hot": '<r>{ for $p in stream("east")/root/p where $p/e > 60 return <hot k="{ $p/k }">{ $p/t, $p/e }</hot> }</r>',
    "means": """<r>{ for $w in stream("east")/root/p |t diff 8 step 4|
        return <mean n="{ count($w) }">{ avg($w/e) }</mean> }</r>""",
    "near": """<r>{ for $x in stream("east")/root/p |t diff 4| for $y in stream("west") |t diff 4|
        where $x/k = $y.k return <near>{ $x/t, $y.t }</near> }</r>""",
    "rows": "SELECT k, e FROM west WHERE e > 50",
    "sums": 'for $p in stream("east")/root/p group by $k := $p/k return <sum k="{ $k }">{ sum($p/e) }</sum>',
    "best": """<best>{ (for $p in stream("east")/root/p group by $k := $p/k let $n := sum($p/e)
        order by $n descending return <sum k="{ $k }">{ $n }</sum>)[position() <= 3] }</best>""",
}
SINKS = {
    "hot": 'topic = "{keyed}"\nkey = "@k"',
    "means": 'topic = "{shared}"',
    "near": 'topic = "{shared}"',
    "rows": 'topic = "{shared}"\nkey = "k"',
    "sums": 'topic = "{updates}"\nchanges = "updates"',
    "best": 'topic = "{upserts}"\nchanges = "upserts"\nkey = "@k"',
}
PARTITIONS = {"east": 2, "west": 1}
_LAST = '<s:punctuation xmlns:s="urn:anabranch:stream" where="true()" at="{}"/>'
_JSON_LAST = '{{"$punctuation": {{"where": "true()", "at": {}}}}}'


@dataclass(frozen=True, slots=True)
class TopicFeed:
    """What comes: by part, the messages of each partition of each stream."""

    parts: tuple[dict[tuple[str, int], list[bytes]], ...]

    @staticmethod
    def of(parts: int, seed: int, items: int) -> TopicFeed:
        """So many parts, with so many items of each partition in each."""
        rng = Random(seed)
        found: list[dict[tuple[str, int], list[bytes]]] = []
        time = 0
        for part in range(parts):
            given: dict[tuple[str, int], list[bytes]] = {}
            for name, count in PARTITIONS.items():
                for partition in range(count):
                    given[name, partition] = [
                        _item(name, (time + number) / 4, rng.randrange(5), rng.randrange(100))
                        for number in range(items)
                    ]
                    if part == parts - 1:
                        last = _LAST if name == "east" else _JSON_LAST
                        given[name, partition] += (last.format(at).encode() for at in (10**6, 10**6 + 1))
            time += items
            found.append(given)
        return TopicFeed(tuple(found))

    def lay(self, site: TopicSite, parts: Iterable[int]) -> None:
        """Let some parts come into the topics, and into the files beside them."""
        for part in parts:
            for (name, partition), values in self.parts[part].items():
                site.broker.write(site.topics[name], values, partition)
                with (site.folder / f"{name}-{partition}").open("ab") as file:
                    file.writelines(value + b"\n" for value in values)


def _item(stream: str, time: float, key: int, energy: int) -> bytes:
    if stream == "east":
        return f"<p><t>{time}</t><k>{key}</k><e>{energy}</e></p>".encode()
    return json.dumps({"t": time, "k": str(key), "e": energy}).encode()


@dataclass(frozen=True, slots=True)
class TopicSite:
    """A folder with a SITE.toml, and its topics."""

    folder: Path
    broker: Broker
    topics: dict[str, str]

    @staticmethod
    def make(folder: Path, broker: Broker) -> TopicSite:
        """A new site, whose topics are empty."""
        folder.mkdir()
        counts = {**PARTITIONS, "keyed": 3, "shared": 1, "updates": 1, "upserts": 1}
        site = TopicSite(folder, broker, {name: broker.topic(name, count) for name, count in counts.items()})
        for name, text in QUERIES.items():
            (folder / f"{name}.{'sql' if text.startswith('SELECT') else 'xq'}").write_text(text)
        return site

    def configure(self, epoch_bytes: int, shards: int) -> None:
        """Let the next run have epochs of about so many bytes, and so many shards."""
        tables = [
            f'[engine]\ncheckpoint = "state"\nepoch_bytes = {epoch_bytes}\nshards = {shards}',
            f'[kafka]\nbrokers = "{self.broker.address}"',
            *(
                f'[streams.{name}]\nsource = "kafka"\ntopic = "{self.topics[name]}"\nformat = "{form}"\ntime = "t"\n'
                f'item = "p"'
                for name, form in (("east", "xml"), ("west", "json"))
            ),
            *(
                f'[subscriptions.{name}]\nquery = "{self.query(name).name}"\nsink = "kafka"\n'
                + sink.format(**self.topics)
                for name, sink in SINKS.items()
            ),
        ]
        self.file.write_text("\n".join(tables))

    def query(self, name: str) -> Path:
        return self.folder / f"{name}.{'sql' if QUERIES[name].startswith('SELECT') else 'xq'}"

    @property
    def file(self) -> Path:
        return self.folder / "SITE.toml"

    @property
    def checkpoint(self) -> Location:
        return Location.of(self.folder / "state")

    @property
    def dead_letters(self) -> Location:
        return Location.of(self.folder / "dead")

    def epochs(self) -> list[int]:
        """The epochs that are committed."""
        return [int(name.removesuffix(".json")) for name in (self.checkpoint / "manifest").names() if name[0] != "."]

    def law(self) -> dict[str, str]:
        """What the reference answers over all that has come, from the files."""
        time = ItemPath.parse("t")
        east, more = self.folder / "east-0", (self.folder / "east-1",)
        inputs = Inputs(
            [
                Source("east", east, "lines", item="p", time=time, more=more),
                Source("west", self.folder / "west-0", "json", item="p", time=time),
            ]
        )
        queries = [prepare(name, text, inputs, "reference") for name, text in QUERIES.items()]
        with answering(queries, inputs) as run:
            return {name: "".join(pieces) for name, pieces in run.answers.items()}

    def check(self, *, law: dict[str, str]) -> int:
        """Topics hold what the answer log holds, each result once and in order, and this is what the law says.

        Gives the number of messages.
        """
        answers = {name: "".join(committed(self.file, name)) for name in QUERIES}
        assert answers == law
        assert not self.dead_letters.exists() or not self.dead_letters.read()
        log = AnswerLog(Checkpoint.open(self.checkpoint))
        read = {name: self.broker.read(self.topics[name]) for name in ("keyed", "shared", "updates", "upserts")}
        logged: dict[str, list[bytes]] = {}
        for name in QUERIES:
            asked = log.subscription(name)
            assert asked is not None
            answer = log.answer(asked)
            logged[name] = [
                result.strip().encode()
                for manifest in log.manifests.since(0)
                for chunk in log.chunks(manifest, asked.id)
                for result in answer.frame.results(chunk, log.text(chunk))
            ]
        for name in ("means", "near", "rows"):
            assert [each.value for each in read["shared"] if _whose(each) == name] == logged[name], name
        assert [each.value for each in read["updates"]] == logged["sums"]
        assert sorted(each.value or b"" for each in read["keyed"]) == sorted(logged["hot"])
        for key in {each.key for each in read["keyed"]}:
            mine = f'k="{(key or b"").decode()}"'.encode()
            assert [each.value for each in read["keyed"] if each.key == key] == [
                each for each in logged["hot"] if mine in each
            ]
        replay = Replay()
        for value in logged["sums"]:
            list(replay.feed(value.decode()))
        assert replay.text == law["sums"]
        best = results_in(law["best"].removeprefix("<best>").removesuffix("</best>"))
        assert sorted(_table(read["upserts"])) == sorted(best)
        return sum(map(len, read.values()))


def _whose(message: Record) -> str:
    return dict(message.headers)["subscription"].decode()


def _table(messages: Iterable[Record]) -> list[str]:
    """What upserts come to; what is taken out must be there, and nothing is told twice."""
    table: dict[bytes | None, bytes] = {}
    for each in messages:
        if each.value is None:
            del table[each.key]
        else:
            assert table.get(each.key) != each.value
            table[each.key] = each.value
    return [value.decode() for value in table.values()]
