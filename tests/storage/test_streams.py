"""Streams, queries, documents and sinks whose files are in an object store."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from anabranch import Engine, Parquet
from anabranch.cli import main
from anabranch.errors import AnabranchError, StreamError, UsageError
from anabranch.running import committed
from anabranch.storage import Location
from s3 import S3Server

ALL = '<all>{ stream("s")/root/p }</all>'


@pytest.fixture(params=["objects on a disk", pytest.param("s3", marks=pytest.mark.s3)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    """A folder for everything."""
    if request.param == "s3":
        server: S3Server = request.getfixturevalue("s3_server")
        return server.folder(tmp_path.name)
    return Location.of(f"file+object://{tmp_path}/store")


def lines(start: int, end: int) -> bytes:
    return "".join(f"<p>{number}</p>\n" for number in range(start, end)).encode()


def items(start: int, end: int) -> str:
    return f"<all>{lines(start, end).decode().replace(chr(10), '')}</all>"


def run(store: Location, stream: Location, text: str = ALL, epoch_bytes: int = 40, **settings: str) -> str:
    """The answer of a run to the end of what is there; the next goes on."""
    with Engine(local=True, checkpoint=store / "state", once=True, epoch_bytes=epoch_bytes) as engine:
        engine.stream("s", stream, **settings)  # type: ignore[arg-type]  # texts only
        return engine.subscribe(text, "q").answer()


def test_a_folder_grows_by_objects(store: Location) -> None:
    """Lines, gzip, lines again, in epochs smaller than an object, a smaller name later; hidden and empty left out."""
    folder = store / "in"
    (folder / "a").put(lines(0, 30))
    (folder / "b.gz").put(gzip.compress(lines(30, 50)))
    (folder / ".hidden").put(b"<p>no</p>\n")
    (folder / "empty").put(b"")
    (folder / "below" / "x").put(b"<p>no</p>\n")
    assert run(store, folder) == items(0, 50)
    (folder / "c d%é+#").put(lines(50, 60).rstrip(b"\n"))
    (folder / "e").put(lines(60, 61))
    assert run(store, folder) == items(0, 61)
    (folder / "d").put(lines(61, 64))
    assert run(store, folder) == items(0, 64)


def test_documents_are_cut_in_the_midst_of_items(store: Location) -> None:
    """A document read in epochs of forty bytes, then the next, by ranges of objects."""
    folder = store / "in"
    for number in range(3):
        data = b"<?xml version='1.0'?>\n<root>" + lines(20 * number, 20 * number + 20) + b"</root>"
        (folder / f"{number}.xml").put(data)
        assert run(store, folder) == items(0, 20 * number + 20)


def test_an_object_may_be_replaced_by_a_longer_one(store: Location) -> None:
    """As a file may grow; not by a shorter one, and not by one that begins otherwise."""
    one = store / "in" / "one"
    one.put(lines(0, 10))
    assert run(store, one, format="lines") == items(0, 10)
    one.put(lines(0, 40))
    assert run(store, one, format="lines") == items(0, 40)
    one.put(b"<q/>\n" * 200)
    with pytest.raises(StreamError, match="was overwritten"):
        run(store, one, format="lines")
    one.put(lines(0, 3))
    with pytest.raises(StreamError, match="has become shorter"):
        run(store, one, format="lines")


def test_json_and_tables(store: Location) -> None:
    """Objects with a record in each line, joined with a document that is in the store, too, and changes there."""
    (store / "in" / "0").put(b'{"k": 1}\n{"k": 2}\n')
    (store / "t.xml").put(b"<t><row><k>1</k><v>one</v></row><row><k>2</k><v>two</v></row></t>")
    query = 'for $i in stream("s") for $r in doc("t")/t/row where $r/k = $i.k return { "v": string($r/v) }'

    def answer() -> str:
        with Engine(local=True, checkpoint=store / "state", once=True) as engine:
            engine.document("t", store / "t.xml")
            engine.stream("s", store / "in", format="json")
            return engine.subscribe(query, "q").answer()

    assert answer() == '{"v": "one"}\n{"v": "two"}\n'
    (store / "t.xml").put(b"<t><row><k>1</k><v>eins</v></row></t>")
    (store / "in" / "1").put(b'{"k": 1}\n')
    assert answer() == '{"v": "one"}\n{"v": "two"}\n{"v": "eins"}\n'


def test_sinks_are_folders_of_parts(store: Location) -> None:
    """An epoch that adds something adds a part; a query that changes has a folder of its own; nothing is moved."""
    folder, query = store / "in", '<r>{ for $p in stream("s")/root/p return <n at="{ $p }">{ $p + 1 }</n> }</r>'
    other = query.replace("+ 1", "+ 2")
    for number, text in enumerate((query, query, other)):
        (folder / str(number)).put(lines(number * 10, number * 10 + 10))
        with Engine(local=True, checkpoint=store / "state", once=True, epoch_bytes=50) as engine:
            engine.stream("s", folder)
            engine.subscribe(text, "file", sink=str(store / "out.xml"))
            engine.subscribe(text, "table", sink=Parquet(store / "table"))
            engine.wait()
    out, table = store / "out.xml", store / "table"
    numbers = sorted({name.partition("/")[0] for name in out.names(below=True)}, key=int)
    assert len(numbers) == 2
    parts = {each: [name for name in out.names(below=True) if name.startswith(f"{each}/")] for each in numbers}
    first, second = ("".join((out / name).read().decode() for name in parts[each]) for each in numbers)
    assert first == "<r>" + "".join(f'<n at="{n}">{n + 1}</n>' for n in range(20))
    assert second == "<r>" + "".join(f'<n at="{n}">{n + 2}</n>' for n in range(20, 30))
    assert len(parts[numbers[0]]) > 2
    assert all(name.endswith(".xml") for each in parts.values() for name in each)
    rows = []
    for name in table.names(below=True):
        with (table / name).open() as file:
            rows += pq.read_table(file).column("n").to_pylist()
    assert rows == [*range(1, 21), *range(22, 32)]


def test_what_others_wrote_is_not_touched(store: Location) -> None:
    """A sink whose folder has something in it already is refused."""
    (store / "in" / "0").put(lines(0, 3))
    (store / "out.xml" / "letters").put(b"x")
    with Engine(local=True, checkpoint=store / "state", once=True) as engine:
        engine.stream("s", store / "in")
        with pytest.raises(AnabranchError, match="another checkpoint or program wrote it"):
            engine.subscribe(ALL, "q", sink=store / "out.xml")


def test_no_sink_may_lie_in_what_is_read(store: Location) -> None:
    """By names, since there are no links: in a stream's folder, in the checkpoint, in another sink."""
    (store / "in" / "0").put(lines(0, 3))
    with Engine(local=True, checkpoint=store / "state", once=True) as engine:
        engine.stream("s", store / "in")
        engine.subscribe(ALL, "first", sink=store / "out.xml")
        for wrong in ("in/out.xml", "state/out.xml", "out.xml/inner.xml", "out.xml"):
            with pytest.raises(UsageError, match=r"cannot be|written twice"):
                engine.subscribe(ALL, f"q {wrong}", sink=store / wrong)


SITE = """
[engine]
checkpoint = "{0}/state"
dead_letters = "{0}/dead.jsonl"
epoch_bytes = 60

[streams.s]
path = "{0}/in"
format = "lines"
root = "root"

[subscriptions.all]
query = "{0}/all.xq"
sink = "files"
path = "{0}/out/all.xml"
"""


def test_the_commands_of_a_site(
    store: Location, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`accent`, `history`, `state` and `answer` with everything but SITE.toml in the store."""
    file = tmp_path / "SITE.toml"
    file.write_text(SITE.format(store))
    (store / "all.xq").put(ALL.encode())
    (store / "in" / "0").put(lines(0, 5))
    run_locally(file)
    accent = '<s:accent><s:add path="u"/></s:accent>'
    assert main(["accent", str(file), "s", accent]) == 0
    assert "published in" in capsys.readouterr().err
    (store / "in" / "1").put(lines(5, 7) + b"broken\n")
    run_locally(file)
    assert main(["answer", str(file), "all"]) == 0
    answer = capsys.readouterr().out
    assert answer.count("<p>") == 7
    assert '<s:add path="u"/>' in answer
    assert main(["history", str(file), "s"]) == 0
    assert "add u" in capsys.readouterr().out
    assert main(["state", str(file)]) == 0
    dead = store / "dead.jsonl"
    (letter,) = "".join((dead / name).read().decode() for name in dead.names()).splitlines()
    assert json.loads(letter)["raw"] == "broken"
    assert "".join(committed(file, "all")) == answer.rstrip("\n")


def run_locally(file: Path) -> None:
    """What `anabranch run --once` does, without Spark."""
    from anabranch.running import run

    run(file, once=True, local=True)


@pytest.mark.parametrize("engine", ["local", "reference"])
def test_query_reads_and_writes_there(store: Location, capsys: pytest.CaptureFixture[str], engine: str) -> None:
    """Query, stream, DTD, dead letters and answers in the store; printed, it is the same."""
    (store / "in" / "0.xml").put(b"<root><p>1</p><p>2</p></root>")
    (store / "in" / "1.gz").put(gzip.compress(b"<root><p>3</p><p>4</p><p><q></root>"))
    (store / "root.dtd").put(b"<!ELEMENT root (p*)><!ELEMENT p (#PCDATA)>")
    (store / "q.xq").put(b'<r>{ for $p in stream("s")/root/p where $p > 1 return $p }</r>')
    given = ["query", f"{store}/q.xq", "--stream", f"s={store}/in", "--dtd", f"s={store}/root.dtd", "--engine", engine]
    assert main(given) == 0
    printed = capsys.readouterr().out
    assert printed == "<r><p>2</p><p>3</p><p>4</p></r>\n"
    assert main([*given, "--out", f"{store}/out", "--dead-letter", f"{store}/dead"]) == 0
    assert (store / "out" / "q.xml").read().decode() == printed
    assert len((store / "dead").read().splitlines()) == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda store: f"{store}/nothing", "has no file or directory"),
        (lambda store: "ftp://host/x", "files at 'ftp://' are not known"),
        (lambda store: "s3://", "names no bucket"),
        (lambda store: f"{store}/../x", "mean nothing in an object store"),
    ],
)
def test_what_is_not_there_is_named(
    store: Location, capsys: pytest.CaptureFixture[str], make: Callable[[Location], str], message: str
) -> None:
    """And an address that cannot be one."""
    (store / "q.xq").put(ALL.encode())
    assert main(["query", f"{store}/q.xq", "--stream", f"s={make(store)}"]) == 2
    assert message in capsys.readouterr().err


def test_a_table_is_a_dataset(store: Location, tmp_path: Path) -> None:
    """What a reader of Parquet makes of the folder of a subscription, fetched to a disk."""
    (store / "in" / "0").put(lines(0, 9))
    with Engine(local=True, checkpoint=store / "state", once=True, epoch_bytes=30) as engine:
        engine.stream("s", store / "in", format="lines")
        engine.subscribe('for $p in stream("s")/root/p return <n>{ count($p) }</n>', "t", sink=Parquet(store / "t"))
        engine.wait()
    (number,) = {name.partition("/")[0] for name in (store / "t").names(below=True)}
    for name in (store / "t" / number).names():
        (tmp_path / "fetched").mkdir(exist_ok=True)
        (tmp_path / "fetched" / name).write_bytes((store / "t" / number / name).read())
    assert ds.dataset(tmp_path / "fetched").to_table().to_pylist() == [{"n": 1}] * 9
