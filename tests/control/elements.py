"""Every kind of control element at every place of every kind of stream: what a hostile or careless producer may send.

Each kind is written once, in XML and where JSON can say it in JSON, and put at every place of each stream: before its
items, between them and behind them, inside an item that is there for it alone, deep inside one, and as a document or
line of its own.
None of them speaks of a path that a query of `queries.py` reads, and no item that carries one is counted by itself; so
all answers are those of the streams without them.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Literal, TypeAlias

from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source
from anabranch.stream.schema import Schema
from disk import on_disk

N = 'xmlns:s="urn:anabranch:stream"'

ACCENTS = (
    f'<s:accent {N}><s:add path="z1"/></s:accent>',
    f'<s:accent {N}><s:alter path="z2" by=". * 2"/></s:accent>',
    f'<s:accent {N}><s:drop path="z3"/></s:accent>',
    f'<s:accent {N} where="z4 = 1"><s:alter path="z5" by=". + 1"/></s:accent>',
    f'<s:accent {N} at="0"><s:alter path="z6" by=". * 2"/></s:accent>',
    f'<s:accent {N}><s:add path="z1"/></s:accent>',  # a second time it is not valid
    f'<s:accent {N}><s:alter path="z3" by=". * 2"/></s:accent>',  # what was dropped cannot be altered
    f'<s:accent {N} where="z7 = 1"><s:drop path="z7"/></s:accent>',
    f"<s:accent {N}/>",
    f'<s:accent {N}><s:add path="z1"/><s:drop path="z2"/></s:accent>',
    f"<s:accent {N}>text</s:accent>",
    f"<s:accent {N}><z/></s:accent>",
    f'<s:accent {N}><s:alter path="z8"/></s:accent>',
    f'<s:accent {N}><s:alter path="z8" by="-1 * ."/></s:accent>',
    f'<s:accent {N}><s:alter path="z8" by="@"/></s:accent>',
    f'<s:accent {N}><s:drop path="z8//z"/></s:accent>',
    f'<s:accent {N}><s:drop path="z8" by=". * 2"/></s:accent>',
    f'<s:accent {N} where="z9 =="><s:drop path="z8"/></s:accent>',
    f'<s:accent {N} at="soon"><s:drop path="z8"/></s:accent>',
    f'<s:accent {N} when="0"><s:drop path="z8"/></s:accent>',
    f'<s:accent {N}><s:replace target="1"/></s:accent>',
)
PUNCTUATIONS = (
    f'<s:punctuation {N} where="z1 = 77"/>',
    f'<s:punctuation {N} at="0"/>',
    f'<s:punctuation {N} where="z1 = 78" at="0"/>',
    f"<s:punctuation {N}/>",
    f'<s:punctuation {N} where="("/>',
    f'<s:punctuation {N} at="-1"/>',
    f'<s:punctuation {N} at="0"><z/></s:punctuation>',
)
UPDATES = (
    f'<s:replace {N} target="nobody"/>',
    f'<s:replace {N} target="nobody" id="z" at="0"><z>1</z></s:replace>',
    f'<s:before {N} target="nobody"><z/></s:before>',
    f'<s:after {N} target="nobody" at="0">text</s:after>',
    f"<s:replace {N}/>",
    f'<s:replace {N} target=""/>',
    f'<s:replace {N} target="nobody" at="x"/>',
    f'<s:replace {N} target="nobody" who="me"/>',
    f'<s:replace {N} target="nobody"><s:accent><s:drop path="z8"/></s:accent></s:replace>',
    f'<s:mutable {N} id="z-{{}}"><z>1</z></s:mutable>',
    f'<s:mutable {N} id="z-{{}}" at="0"/>',
    f"<s:mutable {N}><z/></s:mutable>",
    f'<s:mutable {N} id=" "/>',
    f'<s:mutable {N} id="z-{{}}"><s:mutable id="z-{{}}"/></s:mutable>',
    f'<s:mutable {N} id="z-{{}}"><s:punctuation at="0"/></s:mutable>',
    f'<s:mutable {N} id="z-{{}}"><z s:at="1"/></s:mutable>',
)
UNCLOSED = (f"<s:accent {N}>", f"<s:mutable {N} id='z'><z>")
UNKNOWN = (
    f"<s:frobnicate {N}/>",
    f'<s:add {N} path="z1"/>',
    f"<s:p {N}><t>1</t></s:p>",
    '<x:replace xmlns:x="urn:anabranch:stream" target="nobody"/>',
    '<replace xmlns="urn:anabranch:stream" target="nobody"/>',
    "<s:accent/>",
    *UNCLOSED,
)
XML = (*ACCENTS, *PUNCTUATIONS, *UPDATES, *UNKNOWN)
"""Each with `{}` where an id must be new."""

JSON = (
    '{"$accent": {"add": {"path": "z1"}}}',
    '{"$accent": {"alter": {"path": "z2", "by": ". * 2"}}}',
    '{"$accent": {"drop": {"path": "z3"}}}',
    '{"$accent": {"where": "z4 = 1", "alter": {"path": "z5", "by": ". + 1"}}}',
    '{"$accent": {"at": 0, "alter": {"path": "z6", "by": ". * 2"}}}',
    '{"$accent": {"add": {"path": "z1"}}}',
    '{"$accent": {}}',
    '{"$accent": 5}',
    '{"$accent": [1]}',
    '{"$accent": {"alter": {"path": "z8", "by": "@"}}}',
    '{"$accent": {"drop": {"path": "z8"}, "add": {"path": "z1"}}}',
    '{"$accent": {"drop": {"path": "z8"}}, "t": 1}',
    '{"$punctuation": {"where": "z1 = 77"}}',
    '{"$punctuation": {"at": 0}}',
    '{"$punctuation": {}}',
    '{"$punctuation": null}',
    '{"$replace": {"target": "nobody"}}',
    '{"$replace": {"target": "nobody", "id": "z", "at": 0, "content": {"z": 1}}}',
    '{"$replace": {}}',
    '{"$replace": {"target": "nobody", "who": "me"}}',
    '{"$before": {"target": "nobody", "content": 1}}',
    '{"$after": {"target": "nobody", "content": {"z": 1}}}',
    '{"$mutable": {"id": "z-{}", "content": {"z": 1}}}',
    '{"$mutable": {"content": {"z": 1}}}',
    '{"$unknown": {"z": 1}}',
    '{"$": 1}',
    '{"\\u0024replace": {"target": "nobody"}}',
)
"""The same for JSON."""

Place: TypeAlias = Literal["before", "between", "behind", "inside", "deep", "alone"]
PLACES: tuple[Place, ...] = ("before", "between", "behind", "inside", "deep", "alone")

SCHEMA = "<!ELEMENT r (p*)><!ELEMENT p (t,k,v)><!ELEMENT t (#PCDATA)><!ELEMENT k (#PCDATA)><!ELEMENT v (#PCDATA)>"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of stream."""

    name: str
    form: Literal["lines", "document", "json"] = "lines"
    partitions: int = 1
    updates: bool = False
    time: str | None = None
    packed: bool = False
    strict: bool = False
    evolves: bool = True

    def source(self, folder: Path) -> Source:
        paths = [folder / f"{self.name}-{number}" for number in range(self.partitions)]
        return Source(
            self.name,
            paths[0],
            self.form,
            Schema.from_dtd(SCHEMA) if self.strict else None,
            root="r",
            item="e" if self.updates else "p",
            time=ItemPath.parse(self.time) if self.time else None,
            strict=self.strict,
            more=tuple(paths[1:]),
            updates=self.updates,
            evolves=self.evolves,
        )


KINDS = (
    Kind("lines"),
    Kind("timed", time="t"),
    Kind("document", form="document", time="t"),
    Kind("json", form="json"),
    Kind("packed", packed=True, time="t"),
    Kind("partitions", partitions=2),
    Kind("merged", partitions=2, time="t"),
    Kind("strict", strict=True),
    Kind("promised", evolves=False),
    Kind("edited", updates=True),
    Kind("edited_document", form="document", updates=True),
    Kind("edited_json", form="json", updates=True),
    Kind("edited_merged", updates=True, partitions=2, time="when"),
    Kind("alone"),
    Kind("alone_edited", updates=True),
)
"""The streams called 'alone' are those that nobody subscribes to."""


@dataclass(slots=True)
class World:
    """The files of all streams, which grow by what `grow` adds; with or without control elements."""

    folder: Path
    disturbed: bool
    everywhere: bool = False
    """Whether each kind stands at all places of each stream; otherwise at one, another in the next stream."""
    random: Random = field(default_factory=lambda: Random(1))
    ids: int = 0

    def sources(self) -> list[Source]:
        return [kind.source(self.folder) for kind in KINDS]

    def write(self) -> None:
        """Write all streams: some files each, with items and updates, and between them everything else."""
        self.folder.mkdir()
        for kind in KINDS:
            for partition, path in enumerate(kind.source(self.folder).partitions):
                on_disk(path).mkdir()
                for number, elements in enumerate(self._files(kind, partition)):
                    self._file(on_disk(path) / f"{number:03}", kind, elements)

    def _files(self, kind: Kind, partition: int) -> Iterator[list[str]]:
        """The elements of each file, in order."""
        whole = list(_updates(kind, partition) if kind.updates else _items(kind, partition))
        bad = list(self._bad(kind)) if self.disturbed else []
        size = -(-len(whole) // 3)
        for number in range(3):
            good = whole[number * size : (number + 1) * size]
            elements = list(good)
            for place, each in [each for each in bad if each[0] != "alone"][number::3]:
                at = {"before": 0, "behind": len(elements)}.get(place, self.random.randint(0, len(elements)))
                elements.insert(at, each)
            yield elements
        if self.disturbed:
            alone = [each for place, each in bad if place == "alone"]
            yield alone
            yield from ([each] for each in alone[:: len(alone) // 3])
            for each in alone[:: len(alone) // 4] if kind.form == "document" else ():  # as a root, and behind one
                yield from ([f"</r>{each}"], [f"</r>{each}<r>"])

    def _bad(self, kind: Kind) -> Iterator[tuple[Place, str]]:
        """Everything, with its place."""
        for number, place in enumerate(PLACES):
            for which, text in enumerate(JSON if kind.form == "json" else XML):
                if not self.everywhere and (which + KINDS.index(kind)) % len(PLACES) != number:
                    continue
                self.ids += 1
                told = text.replace("{}", f"{self.ids}")
                if kind.form == "document" and text in UNCLOSED and place != "alone":
                    continue  # in a document it takes what follows with it
                if place in ("inside", "deep"):
                    around = self._around(kind, told, place)
                    if around is not None:
                        yield place, around
                else:
                    yield place, told

    def _around(self, kind: Kind, text: str, place: Place) -> str | None:
        """An item that is there for a control element in it alone; None where that would be a good one."""
        if kind.form == "json":
            inner = text if place == "inside" else f'{{"y": [{text}]}}'
            return f'{{"none": {inner}}}' if not kind.updates else f'{{"none": {inner}, "$z": 1}}'
        if kind.updates and "mutable" in text:
            return None  # an entry, and a good one
        inner = text if place == "inside" else f"<x><y>{text}</y></x>"
        return f"<none>{inner}</none>"

    def _file(self, path: Path, kind: Kind, elements: Sequence[str]) -> None:
        text = "".join(f"{each}\n" for each in elements)
        if kind.form == "document":
            text = f"<r>\n{text}</r>\n"
        data = text.encode()
        path.write_bytes(gzip.compress(data) if kind.packed else data)


def _items(kind: Kind, partition: int) -> Iterator[str]:
    for number in range(36):
        t, k, v = number + partition, number % 5, (number * 7 + partition) % 11
        if kind.form == "json":
            yield json.dumps({"t": t, "k": k, "v": v})
        else:
            yield f"<p><t>{t}</t><k>{k}</k><v>{v}</v></p>"


def _updates(kind: Kind, partition: int) -> Iterator[str]:
    """Entries with a region each, which are replaced, removed and put beside later."""
    for number in range(24):
        own = f"{partition}-{number}"
        when = f"<when>{number}</when>" if kind.time else ""
        if kind.form == "json":
            n = {"$mutable": {"id": own, "content": number % 7}}
            yield json.dumps({"m": number % 5, "n": n})
        else:
            region = f'<s:mutable {N} id="{own}"><n>{number % 7}</n></s:mutable>'
            yield f"<e>{when}<m>{number % 5}</m>{region}</e>"
        if number % 3 == 2:
            at, target = f' at="{number}"' if kind.time else "", f"{partition}-{number - 1}"
            if kind.form == "json":
                yield json.dumps({"$replace": {"target": target, "content": number}})
            elif number % 2:
                yield f'<s:replace {N} target="{target}"{at}><n>{number}</n></s:replace>'
            else:
                yield f'<s:after {N} target="{target}"{at}><n>{number}</n></s:after>'
