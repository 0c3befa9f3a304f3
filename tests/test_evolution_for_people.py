"""What people see of a stream's evolution, and accents that they publish; no Spark needed."""

from __future__ import annotations

import gzip
from pathlib import Path
from random import Random

import pytest

from anabranch.cli import main
from anabranch.engine.reports.evolution import StreamCourse
from anabranch.errors import UsageError
from anabranch.site import read_site
from anabranch.site_reports import stream_course
from spark.bare import BareTrunk

NAMESPACE = 'xmlns:s="urn:anabranch:stream"'
QUERY = 'for $i in stream("s")/root/i return $i/s'
DTD = "<!ELEMENT root (i*)><!ELEMENT i (s, t?)><!ELEMENT s (#PCDATA)><!ELEMENT t (#PCDATA)>"
CELSIUS = '<s:accent where="s = 2"><s:alter path="t" by="(. - 32) * 5 div 9"/></s:accent>'
DROP = '<s:accent><s:drop path="t"/></s:accent>'


class Town:
    """A site with one stream, run without Spark."""

    def __init__(self, folder: Path, settings: str = "", **files: str) -> None:
        self.folder = folder
        self.file = folder / "SITE.toml"
        (folder / "in").mkdir()
        (folder / "s.dtd").write_text(DTD)
        for name, text in files.items():
            (folder / "in" / name).write_text(text)
        self.file.write_text(f'[engine]\ncheckpoint = "state"\n[streams.s]\npath = "in"\n{settings}\n')

    @property
    def course(self) -> StreamCourse:
        return stream_course(self.file, "s")

    def run(self, *sizes: int) -> BareTrunk:
        site = read_site(self.file)
        trunk = BareTrunk(site.checkpoint, [site.streams["s"]], Random(0), finite=False)
        trunk.run({"q": QUERY}, sizes or (1 << 30,), (1,))
        return trunk

    def publish(self, text: str, *options: str) -> int:
        return main(["accent", str(self.file), "s", text, *options])

    def files(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in sorted((self.folder / "in").iterdir())}


def item(s: int, t: int) -> str:
    return f"<i><s>{s}</s><t>{t}</t></i>\n"


def declared(text: str) -> str:
    return text.replace("<s:accent", f"<s:accent {NAMESPACE}", 1) + "\n"


# --- schema and history -----------------------------------------------------------------------------------------


def test_the_schema_at_any_place(tmp_path: Path) -> None:
    """Now, behind an epoch, at a byte of a file: paths, units and descriptions there."""
    first = item(1, 70) + item(2, 70)
    town = Town(
        tmp_path, 'dtd = "s.dtd"', a=first + declared(CELSIUS) + item(2, 21), b=declared(DROP) + "<i><s>1</s></i>\n"
    )
    town.run(len(first), 1)
    course = town.course

    def told(at: int | tuple[str, int] | None = None) -> list[tuple[str, ...]]:
        return [(each.path, each.items, each.state, each.unit) for each in course.schema(at)]

    start = [("s", "all items", "declared", ""), ("t", "all items", "declared", "")]
    celsius = [
        ("s", "all items", "declared", ""),
        ("t", "s = 2", "there", ". * 5 div 9 - 160 div 9"),
        ("t", "not(s = 2)", "there", ""),
    ]
    dropped = [("s", "all items", "declared", ""), ("t", "all items", "dropped", "")]
    assert told() == dropped
    assert told(0) == start
    assert told(("a", 0)) == told(("a", len(first))) == start
    assert told(("a", len(first) + 1)) == told(("b", 0)) == celsius
    assert told(("b", 1)) == dropped
    assert str(course.schema(("a", len(first) + 1))).splitlines() == [
        "partition  path  items       state     unit",
        "0          s     all items   declared",
        "0          t     s = 2       there     . * 5 div 9 - 160 div 9",
        "0          t     not(s = 2)  there",
    ]
    assert "not(s = 2)" in course.schema(("b", 0))._repr_html_()


def test_a_place_that_is_none_is_refused(tmp_path: Path) -> None:
    """An epoch to come, a file that nobody has begun, something else."""
    town = Town(tmp_path, a=item(1, 1))
    town.run()
    for at, message in ((7, "no epoch 7"), (("z", 0), "no file 'z'"), ("a", "no place in a stream")):
        with pytest.raises(UsageError, match=message):
            town.course.schema(at)  # type: ignore[arg-type]  # the last is the mistake


def test_the_history_of_a_stream(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What changed, where, since which offset, for which items; what was refused, with the reason."""
    bad = '<s:accent where="s = 1"><s:alter path="t" by=". * ."/></s:accent>'
    closing = f'<s:punctuation {NAMESPACE} where="s = 9"/>\n'
    town = Town(
        tmp_path, a=item(1, 70) + declared(CELSIUS), b=closing + declared(bad) + declared(DROP) + declared(DROP)
    )
    town.run()
    assert main(["history", str(town.file), "s"]) == 0
    shown = capsys.readouterr().out.splitlines()
    at = len(closing), len(closing + declared(bad)), len(closing + declared(bad) + declared(DROP))
    reason = "bad 's:alter': '.' is multiplied by itself at character 3 of the unit change"
    assert [line.split() for line in shown[1:]] == [
        f"0 0 a {len(item(1, 70))} alter t by . * 5 div 9 - 160 div 9 s = 2".split(),
        f"0 0 b {at[0]} 't' is unknown s = 1 refused: {reason}".split(),
        f"0 0 b {at[1]} drop t all items".split(),
        f"0 0 b {at[2]} drop t all items refused: 't' is dropped where it does not exist".split(),
    ]
    assert [each.partition for each in town.course.history()] == [0, 0, 0, 0]
    assert "<script" not in town.course.history()._repr_html_()


def test_a_stream_that_nobody_knows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Is a mistake in the call."""
    town = Town(tmp_path)
    assert main(["history", str(town.file), "t"]) == 2
    assert "has no stream 't'" in capsys.readouterr().err


# --- publishing -------------------------------------------------------------------------------------------------


def test_an_accent_stands_directly_behind_the_newest_file(tmp_path: Path) -> None:
    """What the producer writes next, under names that go on, comes after it; further accents come after this one."""
    town = Town(tmp_path, 'format = "lines"', **{"part-1": item(1, 70), "part-0": item(1, 60)})
    assert town.publish(CELSIUS) == 0
    assert town.publish(DROP) == 0
    (tmp_path / "in" / "part-2").write_text("<i><s>1</s></i>\n")
    assert list(town.files()) == ["part-0", "part-1", "part-1.accent-0001", "part-1.accent-0002", "part-2"]
    assert town.files()["part-1.accent-0001"] == declared(CELSIUS).replace(
        "(. - 32) * 5 div 9", ". * 5 div 9 - 160 div 9"
    )
    trunk = town.run()
    assert trunk.answer("q") == "<s>1</s>" * 3
    assert not list(trunk.log.dead_letters())
    assert [each.change for each in town.course.history()] == ["alter t by . * 5 div 9 - 160 div 9", "drop t"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<s:accent><s:drop/></s:accent>", "'s:drop' needs 'path'"),
        ('<s:accent><s:alter path="t" by="0 - ."/></s:accent>', "must be increasing"),
        ('<s:accent where="t = 1"><s:drop path="t"/></s:accent>', "names 't', the path that evolves"),
        ('<s:accent><s:add path="t"/></s:accent>', "not valid here: 't' is added where it exists"),
        ('<s:accent><s:alter path="u" by=". * 2"/></s:accent>', "'u' is altered where it does not exist"),
        ('<s:punctuation at="5"/>', "no accent"),
        ("<s:accent>", "cannot be read"),
        ('{"$accent": {"drop": {}}}', "needs 'path'"),
    ],
)
def test_what_is_wrong_is_not_published(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    """The reason is told, the exit status is 1, and the stream is as it was."""
    town = Town(tmp_path, 'dtd = "s.dtd"', a=item(1, 70))
    assert town.publish(text) == 1
    assert message in capsys.readouterr().err
    assert town.files() == {"a": item(1, 70)}


def test_validity_is_judged_by_what_is_committed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A path that was dropped cannot be dropped again."""
    town = Town(tmp_path, a=item(1, 70))
    assert town.publish(DROP) == 0
    town.run()
    assert town.publish(DROP) == 1
    assert "'t' is dropped where it does not exist" in capsys.readouterr().err
    assert town.publish('<s:accent><s:add path="t"/></s:accent>') == 0


def test_documents_get_a_document(tmp_path: Path) -> None:
    """A closed document cannot be extended, so the accent is one of its own; one that is still open is."""
    town = Town(tmp_path, a=f"<root>\n{item(1, 70)}</root>\n")
    assert town.publish(DROP) == 0
    assert town.files()["a.accent-0001"] == f"<root>\n{declared(DROP)}</root>\n"
    (tmp_path / "in" / "b").write_text("<root><i><s>1</s></i>\n")
    assert town.publish('<s:accent><s:add path="t"/></s:accent>') == 0
    assert town.files()["b"].startswith(f"<root><i><s>1</s></i>\n<s:accent {NAMESPACE}><s:add")
    trunk = town.run()
    assert trunk.answer("q") == "<s>1</s>" * 2
    assert [each.change for each in town.course.history()] == ["drop t", "add t"]


def test_json_streams_get_json(tmp_path: Path) -> None:
    """In whatever form the accent was given."""
    town = Town(tmp_path, a='{"s": 1, "t": 70}\n')
    assert town.publish('{"$accent": {"where": "s = 1", "drop": {"path": "t"}}}') == 0
    assert town.publish('<s:accent where="s = 2"><s:drop path="t"/></s:accent>') == 0
    assert list(town.files().values())[1:] == [
        '{"$accent": {"where": "s = 1", "drop": {"path": "t"}}}\n',
        '{"$accent": {"where": "s = 2", "drop": {"path": "t"}}}\n',
    ]


def test_a_single_file_is_appended_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where it can be: a line of its own, never in a line that somebody writes, and not behind a closed document."""
    town = Town(tmp_path)
    town.file.write_text(town.file.read_text().replace('"in"', '"one"'))
    one = tmp_path / "one"
    one.write_text(item(1, 70) + item(1, 70).strip())
    assert town.publish(DROP) == 0
    assert one.read_text() == item(1, 70) + item(1, 70) + declared(DROP)
    for text, message in (
        (item(1, 70) + item(1, 70) + "<i><s>1</s", "ends within an element"),
        (f"<root>{item(1, 70)}</root>", "is closed"),
        (f"<root>\n{item(1, 70)}<i><s>", "ends within an element"),
    ):
        one.write_text(text)
        assert town.publish(DROP) == 1
        assert message in capsys.readouterr().err
        assert one.read_text() == text
    one.write_bytes(gzip.compress(item(1, 70).encode()))
    assert town.publish(DROP) == 1
    assert "packed" in capsys.readouterr().err


def test_several_partitions_want_to_be_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An accent acts in its partition alone, so somebody has to say which, or all."""
    town = Town(tmp_path, a=item(1, 70))
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "b").write_text(item(2, 70))
    town.file.write_text(town.file.read_text().replace('"in"', '["in", "more"]'))
    assert town.publish(DROP) == 2
    assert "has 2 partitions" in capsys.readouterr().err
    assert town.publish(DROP, "--partition", "2") == 2
    assert town.publish(DROP, "--partition", "1") == 0
    assert list(town.files()) == ["a"]
    assert town.publish(CELSIUS, "--partition", "all") == 0
    assert list(town.files()) == ["a", "a.accent-0001"]
    assert sorted(path.name for path in (tmp_path / "more").iterdir()) == ["b", "b.accent-0001", "b.accent-0002"]


def test_an_empty_stream_needs_a_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first file decides how a stream is written, and that must not be the accent by chance."""
    town = Town(tmp_path)
    assert town.publish(DROP) == 1
    assert "nobody has said how it is written" in capsys.readouterr().err
    town.file.write_text(town.file.read_text() + 'format = "lines"\n')
    assert town.publish(DROP) == 0
    assert list(town.files().values()) == [declared(DROP)]


# --- settings ---------------------------------------------------------------------------------------------------


def test_domains_are_read_from_the_site(tmp_path: Path) -> None:
    """By path, as texts; all sensors one by one are all items."""
    town = Town(tmp_path, "domains = { s = [1, 2] }", a=item(1, 70))
    assert [(str(path), values) for path, values in town.course.source.domains] == [("s", ("1", "2"))]
    for number in (1, 2):
        town.publish(f'<s:accent where="s = {number}"><s:drop path="t"/></s:accent>')
    town.run()
    assert [(each.path, each.items, each.state) for each in town.course.schema()] == [("t", "all items", "dropped")]


@pytest.mark.parametrize("given", ["[1]", "{ s = 1 }", "{ s = [] }", "{ s = [[1]] }", "{ 's t' = [1] }"])
def test_domains_that_make_no_sense(tmp_path: Path, capsys: pytest.CaptureFixture[str], given: str) -> None:
    """Are refused, with the table they stand in."""
    town = Town(tmp_path, f"domains = {given}", a=item(1, 70))
    assert town.publish(DROP) == 2
    assert "[streams.s]" in capsys.readouterr().err
