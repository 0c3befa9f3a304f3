"""`anabranch accent`: what a stream cannot take is refused, what would come of one is told, typos are found."""

from __future__ import annotations

import gzip
from pathlib import Path
from random import Random

import pytest

from anabranch.cli import main
from anabranch.site import read_site
from spark.bare import BareTrunk

SITE = """\
[engine]
checkpoint = "state"
{engine}

[streams.items]
path = "items"
format = "lines"
time = "ts"

[streams.two]
path = ["two-a", "two-b"]
format = "lines"

[streams.edited]
path = "edited"
format = "lines"
updates = true
domains = {{ s = [1, 2] }}

[subscriptions.shows]
query = "shows.xq"
[subscriptions.where]
query = "where.xq"
[subscriptions.averages]
query = "averages.xq"
[subscriptions.display]
query = "display.xq"
[subscriptions.others]
query = "others.xq"
"""
QUERIES = {
    "shows": 'for $i in stream("items")/root/i return <o>{ $i/t }</o>',
    "where": 'for $i in stream("items")/root/i where $i/t > 3 return <o>{ $i/s }</o>',
    "averages": 'for $w in stream("items")/root/i|ts diff 10| return <o>{ avg($w/t) }</o>',
    "display": 'for $i in stream("items")/root/i return <o>{ $i/t }{ count(stream("edited")/root/e) }</o>',
    "others": 'for $i in stream("items")/root/i return <o>{ $i/s }</o>',
}
DROP = '<s:accent><s:drop path="t"/></s:accent>'
ITEMS = "".join(f"<i><ts>{n}</ts><s>{n % 2}</s><t>{n}</t></i>\n" for n in range(5))


class Folder:
    """A site on disk, run without Spark."""

    def __init__(self, top: Path, engine: str = "") -> None:
        self.top, self.file = top, top / "SITE.toml"
        for name in ("items", "two-a", "two-b", "edited"):
            (top / name).mkdir()
            (top / name / "a").write_text("<e/>\n<e/>\n" if name == "edited" else ITEMS)
        for name, text in QUERIES.items():
            (top / f"{name}.xq").write_text(text)
        self.file.write_text(SITE.format(engine=engine))

    def accent(self, stream: str, text: str, *options: str) -> int:
        return main(["accent", str(self.file), stream, text, *options])

    def run(self) -> BareTrunk:
        site = read_site(self.file)
        trunk = BareTrunk(site.checkpoint, list(site.streams.values()), Random(0), finite=False)
        trunk.resume()
        trunk.run(QUERIES, (1 << 20,), (1,))
        return trunk

    def files(self) -> dict[str, bytes]:
        found = (path for path in self.top.rglob("*") if path.is_file() and "state" not in path.parts)
        return {str(path.relative_to(self.top)): path.read_bytes() for path in found}


@pytest.mark.parametrize(
    ("engine", "stream", "text", "options", "message"),
    [
        ("", "edited", DROP.replace('"t"', '"s"'), (), "'s' does not evolve in a stream of updates"),
        ("accents = false", "items", DROP, (), "accents are turned off here"),
        ("", "two", DROP.replace(">", ' at="5">', 1), ("--partition", "all"), "several partitions and no time"),
        ("", "items", '<s:replace target="1"/>', (), "no accent"),
    ],
)
def test_what_a_stream_cannot_take_is_refused_beforehand(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    engine: str,
    stream: str,
    text: str,
    options: tuple[str, ...],
    message: str,
) -> None:
    """The reason is told, and no file has changed; also where it is only tried."""
    folder = Folder(tmp_path, engine)
    before = folder.files()
    for more in ((), ("--dry-run",)):
        assert folder.accent(stream, text, *options, *more) == 1
        assert message in capsys.readouterr().err
    assert folder.files() == before


def test_all_partitions_are_looked_at_before_one_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where the second cannot take it now, the first stays as it was."""
    folder = Folder(tmp_path)
    (tmp_path / "two-b" / "a").write_text("<i><ts>1</ts><s>")
    before = folder.files()
    assert folder.accent("two", DROP, "--partition", "all") == 1
    assert "ends within an element" in capsys.readouterr().err
    assert folder.files() == before


@pytest.mark.parametrize("has_run", [False, True])
def test_a_dry_run_says_what_each_would_do(tmp_path: Path, capsys: pytest.CaptureFixture[str], has_run: bool) -> None:
    """Whom it concerns, with the reason where one would end; nothing is published, and then it comes out so."""
    folder = Folder(tmp_path)
    if has_run:
        folder.run()
    before = folder.files()
    assert folder.accent("items", DROP, "--dry-run") == 0
    told = capsys.readouterr()
    published, *lines = told.out.splitlines()
    assert published.startswith("would be published in ")
    assert lines[:2] == ["passes it on: shows, averages", "reckons with it: display"]
    assert lines[2].startswith("ends: where: 'where' cannot do without 't'")
    assert lines[3:] == ["not concerned: others"]
    assert folder.files() == before
    assert folder.accent("items", DROP) == 0
    (tmp_path / "items" / "b").write_text("<i><ts>12</ts><s>7</s></i>\n")
    trunk = folder.run()
    assert trunk.plan is not None
    aborted = list(trunk.log.manifests.since(0))[-1].aborted
    assert {each.name for each in trunk.plan.subscriptions if each.id in aborted} == {"where"}
    assert trunk.answer("others").endswith("<o><s>7</s></o>")


def test_what_has_ended_is_not_told_of_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A subscription that an earlier accent ended does nothing about the next one."""
    folder = Folder(tmp_path)
    folder.run()
    assert folder.accent("items", DROP) == 0
    folder.run()
    capsys.readouterr()
    assert folder.accent("items", '<s:accent><s:add path="t"/></s:accent>', "--dry-run") == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "passes it on: shows, averages",
        "reckons with it: display",
        "not concerned: others",
    ]


@pytest.mark.parametrize("form", ["lines", "packed", "document", "json"])
def test_a_path_that_no_item_has_had_is_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    """The warning says what was looked at; the accent is valid, so it is published all the same."""
    folder = Folder(tmp_path)
    text = {
        "lines": ITEMS,
        "packed": ITEMS,
        "document": f"<root>{ITEMS}</root>",
        "json": '{"ts": 1, "s": 1, "t": 5}\n' * 5,
    }[form]
    (tmp_path / "items" / "a").write_bytes(gzip.compress(text.encode()) if form == "packed" else text.encode())
    written = "lines" if form == "packed" else form
    named = '\nitem = "i"' if form == "json" else ""  # what the queries call a record
    folder.file.write_text(SITE.format(engine="").replace('"lines"', f'"{written}"{named}', 1))
    misspelt = '<s:accent where="r = 2"><s:alter path="tt" by=". * 2"/></s:accent>'
    assert folder.accent("items", misspelt, "--dry-run") == 0
    assert capsys.readouterr().err.splitlines() == [
        "anabranch: warning: no item has had 'tt': the newest 5 were looked at, in 'a'",
        "anabranch: warning: no item has had 'r': the newest 5 were looked at, in 'a'",
    ]
    assert folder.accent("items", DROP) == 0
    assert "warning" not in capsys.readouterr().err


def test_paths_that_were_announced_are_not_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What an accent has added need not have come yet; an added path is new, so nothing is said of it."""
    folder = Folder(tmp_path)
    assert folder.accent("items", '<s:accent><s:add path="p"/></s:accent>') == 0
    folder.run()
    assert folder.accent("items", '<s:accent where="s = 1"><s:alter path="p" by=". * 2"/></s:accent>') == 0
    assert "warning" not in capsys.readouterr().err


def test_the_newest_items_are_looked_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a long stream not all is read: a path that was there long ago is warned of, and from where on is told."""
    folder = Folder(tmp_path)
    (tmp_path / "items" / "a").write_text("<i><ts>0</ts><old>1</old></i>\n")
    for name in ("b", "c"):
        (tmp_path / "items" / name).write_text("<i><ts>1</ts><t>2</t></i>\n" * 600)
    assert folder.accent("items", '<s:accent><s:drop path="old"/></s:accent>', "--dry-run") == 0
    assert "no item has had 'old': the newest 1,000 were looked at, in 'b' to 'c'" in capsys.readouterr().err
