"""Upserts (LAWS 5.9): a region for each key, replaced, deleted and made again; the judge keeps a table of its own."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from anabranch.stream.reading.source import Source
from history.asking import ask, shown
from mass import Mass
from spark.bare import BareTrunk

NAMESPACE = 'xmlns:s="urn:anabranch:stream"'
CASE_91 = [("a", "<e>1</e>"), ("b", "<e>2</e>"), ("a", "<e>3</e>"), ("a", ""), ("a", "<e>4</e>")]


def upsert(key: str, content: str, at: int) -> str:
    return f'<s:upsert id="{key}" at="{at}">{content}</s:upsert>'


def test_case_91() -> None:
    """A value replaces that of its key where it stands; who comes again behind its deletion stands behind all else."""
    stream = "".join(upsert(*each, at) for at, each in enumerate(CASE_91, 1))
    assert shown('stream("s")/root/*', stream) == [
        ("1", "<e>1</e>"),
        ("2", "<e>1</e><e>2</e>"),
        ("3", "<e>3</e><e>2</e>"),
        ("4", "<e>2</e>"),
        ("5", "<e>2</e><e>4</e>"),
    ]
    assert shown('stream("s")/root/e#1', stream) == [("3", "<e>1</e>"), ("4", "<e>3</e>")]


def test_case_92() -> None:
    """A deletion of what is not there changes nothing; however many keys have come and gone, each may come again."""
    stream = upsert("c", "", 1)
    for number in range(1_001):
        stream += upsert(f"k{number}", f"<e>{number}</e>", 2) + upsert(f"k{number}", "", 2)
    assert ask('stream("s")/root/*', stream + upsert("k0", "<e>again</e>", 3)) == "<e>again</e>"


@pytest.mark.parametrize("form", ["lines", "json"])
def test_upserts_against_a_table(tmp_path: Path, form: str, mass: Mass) -> None:
    """Random keys and values, in epochs and shards of chance: what is shown is what a table of the keys holds, in the
    order in which they came to stay.
    """
    for number in mass.cases(12):
        random = Random(f"{form} {number}")
        table: dict[str, int] = {}
        lines: list[str] = []
        for _ in range(random.choice((20, 200))):
            key, value = random.choice("abcdefgh") * random.choice((1, 1, 2)), random.randint(0, 9)
            gone = random.random() < 0.3
            lines.append(written(form, key, None if gone else value))
            if gone:
                table.pop(key, None)
            else:
                table[key] = value
        folder = tmp_path / f"{form}-{number}"
        folder.mkdir()
        (folder / "in").write_text("".join(f"{each}\n" for each in lines))
        source = Source("s", folder / "in", form, root="r", item="e", updates=True)  # type: ignore[arg-type]
        trunk = BareTrunk(folder / "state", [source], random, finite=False)
        trunk.strands = random.choice((0, None, 3))
        queries = {
            "all": 'for $e in stream("s")/r/e return <o>{ $e/k/text(), ":", $e/v/text() }</o>',
            "sum": '<t>{ sum(stream("s")/r/e/v), count(stream("s")/r/e[v > 4]) }</t>',
            "sorted": 'for $e in stream("s")/r/e order by $e/v descending, $e/k return <o>{ $e/k/text() }</o>',
        }
        trunk.run(queries, (60, 700, 1 << 20), (1, 2, 5))
        ranked = sorted(table, key=lambda key: (-table[key], key))
        assert {name: trunk.answer(name) for name in queries} == {
            "all": "".join(f"<o>{key}:{value}</o>" for key, value in table.items()),
            "sum": f"<t>{sum(table.values())} {sum(each > 4 for each in table.values())}</t>",
            "sorted": "".join(f"<o>{key}</o>" for key in ranked),
        }, f"{form} {number}"


def written(form: str, key: str, value: int | None) -> str:
    """An upsert as a line."""
    if form == "json":
        content = [] if value is None else [{"k": key, "v": value}]
        return json.dumps({"$upsert": {"id": key, "content": content}})
    content_text = "" if value is None else f"<e><k>{key}</k><v>{value}</v></e>"
    return f'<s:upsert {NAMESPACE} id="{key}">{content_text}</s:upsert>'
