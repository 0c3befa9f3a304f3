"""What is written never comes in the way of what is read: in sites, networks, and finite queries; no Spark needed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from anabranch.cli import main
from anabranch.errors import UsageError
from anabranch.network.description import read_network
from anabranch.network.topology import topology
from anabranch.peers.links import Link
from anabranch.running import run
from anabranch.site import read_site
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.sinks import Console, Files, Parquet
from anabranch.spark.sinks.claims import check_sinks, settled
from anabranch.stream.files import Claim, called, check_claims, is_file_name
from anabranch.stream.reading.source import Source

QUERY = 'for $p in stream("s")/root/p return <r>{ $p/x }</r>'
SITE = """\
[engine]
checkpoint = "state"
[streams.s]
path = "in"
format = "lines"
dtd = "s.dtd"
[subscriptions.a]
query = "a.xq"
[subscriptions.b]
query = "b.xq"
"""


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what the site needs, which is the working directory."""
    monkeypatch.chdir(tmp_path)
    for name in ("in", "out", "state"):
        Path(name).mkdir()
    Path("in/a").write_text("<p><x>1</x></p>\n")
    Path("s.dtd").write_text("<!ELEMENT root (p*)><!ELEMENT p (x)><!ELEMENT x (#PCDATA)>")
    for name in "ab":
        Path(f"{name}.xq").write_text(QUERY)
    os.symlink("in", "also_in")
    os.symlink("out", "also_out")
    os.symlink("../out/linked.xml", "in/linked")
    os.symlink("state", "also_state")
    Path("out/hard.xml").touch()
    os.link("out/hard.xml", "in/hard")
    return tmp_path


def write_site(engine: str = "", a: str = "", b: str = "") -> Path:
    """A site with these settings of the engine and of its two subscriptions."""
    text = SITE.replace('"state"\n', f'"state"\n{engine}\n').replace('"a.xq"\n', f'"a.xq"\n{a}\n')
    Path("site.toml").write_text(text.replace('"b.xq"\n', f'"b.xq"\n{b}\n'))
    return Path("site.toml")


def file(path: str) -> str:
    return f'sink = "files"\npath = "{path}"'


def table(path: str) -> str:
    return f'sink = "parquet"\npath = "{path}"'


IN_STREAM = "it lies in the folder that the stream 's' reads"


@pytest.mark.parametrize(
    ("engine", "a", "b", "reason"),
    [
        ("", file("in/o.xml"), "", f"the sink of 'a' cannot be '.*in/o.xml': {IN_STREAM}"),
        ("", file("in/deep/o.xml"), "", IN_STREAM),
        ("", file("out/../in/o.xml"), "", IN_STREAM),
        ("", file("also_in/o.xml"), "", IN_STREAM),
        ("", file("in"), "", IN_STREAM),
        ("", table("in"), "", r"the stream 's' cannot be '.*in': it lies in '.*in', the sink of 'a'"),
        ("", table("in/table"), "", IN_STREAM),
        ("", table("."), "", "it lies in '.*', the sink of 'a'"),
        ("", file("out/linked.xml"), "", "that is a file of the stream 's', too"),
        ("", file("out/hard.xml"), "", "that is a file of the stream 's', too"),
        ("", file("o.xml"), file("o.xml"), "'.*o.xml' would be written twice over: two sinks write to it, 'a' and 'b'"),
        ("", file("o.xml"), file("out/../o.xml"), "would be written twice over"),
        ("", file("out/o.xml"), file("also_out/o.xml"), "would be written twice over"),
        ("", file("new/o.xml"), file("new/../new/o.xml"), "would be written twice over"),
        ("", table("out/t"), file("out/t/o.xml"), "it lies in '.*out/t', the sink of 'a'"),
        ("", table("out/t"), table("also_out/t"), "would be written twice over"),
        ("", table("out/t"), table("out/t/u"), "it lies in '.*out/t', the sink of 'a'"),
        ("", file("a.xq"), "", "the sink of 'a' cannot be '.*a.xq': that is the query of 'a'"),
        ("", file("out/../b.xq"), "", "that is the query of 'b'"),
        ("", file("site.toml"), "", "that is the site file"),
        ("", file("s.dtd"), "", "that is the DTD of 's'"),
        ("", file("state/o.xml"), "", "it lies in '.*state', the checkpoint"),
        ("", file("also_state/sinks/o.xml"), "", "it lies in '.*state', the checkpoint"),
        ("", table("state"), "", "would be written twice over"),
        ('log = "in/log"', "", "", f"the log cannot be '.*in/log': {IN_STREAM}"),
        ('log = "a.xq"', "", "", "the log cannot be '.*a.xq': that is the query of 'a'"),
        ('log = "state/log"', "", "", "it lies in '.*state', the checkpoint"),
        ('dead_letters = "in/dead"', "", "", f"the file for dead letters cannot be '.*in/dead': {IN_STREAM}"),
        (
            'dead_letters = "out/../o"\nlate = "o"',
            "",
            "",
            "by the file for dead letters and by the file for late items",
        ),
        ('late = "o.xml"', file("out/../o.xml"), "", "would be written twice over: by the sink of 'a' and by"),
        ('late = "site.toml"', "", "", "that is the site file"),
    ],
)
def test_a_site_whose_files_meet_is_refused(top: Path, engine: str, a: str, b: str, reason: str) -> None:
    """Whatever the spelling, links among it: refused by name, with a hint, when the site is read."""
    site = write_site(engine, a, b)
    with pytest.raises(UsageError, match=reason) as raised:
        read_site(site)
    assert raised.value.hint
    assert re.match(r"'site.toml', line \d+, \[", raised.value.message)


@pytest.mark.parametrize("checkpoint", ["in", "in/../in", "also_in"])
def test_no_stream_reads_the_checkpoint(top: Path, checkpoint: str) -> None:
    """Nor does the checkpoint lie in the place of a stream."""
    site = write_site()
    site.write_text(site.read_text().replace('"state"', f'"{checkpoint}"'))
    with pytest.raises(UsageError, match=r"the stream 's' cannot be '.*in': it lies in '.*in', the checkpoint"):
        read_site(site)
    site.write_text(SITE.replace('path = "in"', 'path = "state/order"'))
    Path("state/order").mkdir()
    with pytest.raises(UsageError, match=r"the stream 's' cannot be '.*state/order': it lies in '.*state'"):
        read_site(site)


def test_what_is_apart_is_accepted(top: Path) -> None:
    """Files side by side, a table beside them, and a folder in which a file is called after its subscription."""
    site = read_site(write_site('log = "log"\nlate = "late"', file("out"), table("out/b")))
    assert site.subscriptions["a"].sink == Files(top / "out/a.xml")
    assert site.subscriptions["b"].sink == Parquet(top / "out/b")


@pytest.mark.parametrize("name", ["../x", "..", "a/b", "/x", "", "a\nb", "a\x9b", "x" * 300])
def test_a_name_is_not_a_way_to_another_folder(top: Path, name: str) -> None:
    """A subscription whose file is called after it needs a name that can be one; else its file is to be named."""
    escaped = name.replace("\n", "\\n").replace("\x9b", "\\u009b")
    site = Path("site.toml")
    text = SITE.replace("[subscriptions.a]", f'[subscriptions."{escaped}"]')
    site.write_text(text.replace('"a.xq"', f'"a.xq"\n{file("out")}'))
    with pytest.raises(UsageError, match=r"cannot give its name to a file in '.*out'") as raised:
        read_site(site)
    assert "as in path =" in (raised.value.hint or "")
    site.write_text(text.replace('"a.xq"', f'"a.xq"\n{file("out/mine.xml")}'))
    assert read_site(site).subscriptions[name].sink == Files(top / "out/mine.xml")
    assert not is_file_name(name)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--dead-letter", "in/dead"], f"the file for dead letters cannot be '.*in/dead': {IN_STREAM}"),
        (["--late", "also_in/late"], f"the file for late items cannot be '.*also_in/late': {IN_STREAM}"),
        (["--late", "out/../out/a.xml"], "would be written twice over: by the sink of 'a' and by"),
        (["--late", "x", "--dead-letter", "out/../x"], "would be written twice over"),
        (["--dead-letter", "a.xq"], "that is the query of 'a'"),
        (["--dead-letter", "site.toml"], "that is the site file"),
        (["--dead-letter", "state/dead"], "it lies in '.*state', the checkpoint"),
    ],
)
def test_files_of_the_command_line_are_checked(
    top: Path, capsys: pytest.CaptureFixture[str], options: list[str], reason: str
) -> None:
    """`run` refuses them before it begins anything: nothing is written."""
    site = write_site('log = "log"', file("out"))
    before = sorted(Path().rglob("*")), site.read_text()
    assert main(["run", "site.toml", "--once", *options]) == 2
    shown = capsys.readouterr().err
    with pytest.raises(UsageError, match=reason):
        raise UsageError(shown)
    assert "hint: " in shown
    assert (sorted(Path().rglob("*")), site.read_text()) == before


def test_a_stream_may_be_what_another_query_answers(top: Path) -> None:
    """LAWS 5.7: a sink's file can be a stream of the same run, but not one that its own answer depends on."""
    Path("o.xml").touch()
    Path("p.xml").touch()
    again = '[streams.t]\npath = "o.xml"\n[streams.u]\npath = "out/../p.xml"\n'
    for reads_a, reads_b, fine in (("s", "t", True), ("t", "s", False), ("u", "t", False), ("s", "u", False)):
        Path("a.xq").write_text(QUERY.replace('"s"', f'"{reads_a}"'))
        Path("b.xq").write_text(QUERY.replace('"s"', f'"{reads_b}"'))
        site = write_site("", file("o.xml"), file("p.xml"))
        site.write_text(site.read_text() + again)
        if fine:
            assert read_site(site).subscriptions["a"].sink == Files(top / "o.xml")
        else:
            with pytest.raises(UsageError, match=r"cannot be '.*[op].xml': that is the stream '[tu]'"):
                read_site(site)


def test_a_trunk_checks_what_it_is_told(top: Path) -> None:
    """What the Python API asks for is refused in the same words; a plan of operators reads streams as a query does."""
    source = Source("s", top / "in")
    checks: list[tuple[Callable[[], object], str]] = [
        (lambda: {"a": Files(top / "in/o.xml")}, IN_STREAM),
        (lambda: {"a": Files(top / "o"), "b": Files(top / "out/../o")}, "two sinks write to it, 'a' and 'b'"),
        (lambda: {"a": Parquet(top / "t"), "b": Files(top / "t/x")}, "it lies in '.*t', the sink of 'a'"),
        (lambda: {"a": Files(top / "state/x")}, "the checkpoint"),
    ]
    for sinks, reason in checks:
        with pytest.raises(UsageError, match=reason):
            check_sinks(
                {"s": source},
                {"a": QUERY, "b": QUERY},
                sinks(),  # type: ignore[arg-type]  # of one type each
                checkpoint=top / "state",
                files={},
            )
    check_sinks({"s": source}, {"a": QUERY}, {"a": Console()}, checkpoint=top / "state", files={})


def test_sinks_from_python_are_settled(top: Path) -> None:
    """A path is a file; in a folder the file is called after the subscription; paths are made absolute."""
    assert settled("o.xml", "a") == Files(top / "o.xml")
    assert settled(Path("out"), "a") == Files(top / "out/a.xml")
    assert settled(Files(Path("out")), "a") == Files(top / "out/a.xml")
    assert settled(Parquet(Path("out")), "../a") == Parquet(top / "out")
    assert settled(None, "../a") is None
    with pytest.raises(UsageError, match=r"the subscription '\.\./a' cannot give its name to a file"):
        settled("out", "../a")


# --- queries over finite inputs -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--stream", "s=in", "--out", "in"], f"the answer to 'a' cannot be 'in/a.xml': {IN_STREAM}"),
        (["--stream", "s=also_in", "--out", "in"], IN_STREAM),
        (["--stream", "s=a.xml", "--out", "."], "the answer to 'a' cannot be 'a.xml': that is the stream 's'"),
        (["--stream", "s=in/a", "--dead-letter", "in/a"], "that is the stream 's'"),
        (["--stream", "s=in/a", "--dead-letter", "out/../a.xq"], "that is the query 'a'"),
        (["--stream", "s=in/a", "--doc", "d=a.xml", "--dead-letter", "a.xml"], "that is the document 'd'"),
        (["--stream", "s=in/a", "--dtd", "s=s.dtd", "--dead-letter", "s.dtd"], "that is the DTD of 's'"),
        (["--stream", "s=in/a", "--out", "out", "--dead-letter", "also_out/a.xml"], "would be written twice over"),
        (["--stream", "s=in", "--timeline", "--out", "in"], IN_STREAM),
    ],
)
def test_no_answer_is_written_over_what_is_read(
    top: Path, capsys: pytest.CaptureFixture[str], options: list[str], reason: str
) -> None:
    """`query` refuses it before it answers: what was there stays as it was."""
    Path("a.xml").write_text("<root><p><x>1</x></p></root>")
    kept = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    assert main(["query", "a.xq", "--engine", "reference", *options]) == 2
    with pytest.raises(UsageError, match=reason):
        raise UsageError(capsys.readouterr().err)
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == kept


def test_no_picture_is_drawn_over_a_query(top: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`explain --svg` writes to a file of its own."""
    assert main(["explain", "a.xq", "--svg", "out/../a.xq"]) == 2
    assert "the picture cannot be 'out/../a.xq': that is a file that is explained" in capsys.readouterr().err
    assert Path("a.xq").read_text() == QUERY
    assert main(["explain", "a.xq", "--svg", "a.svg"]) == 0


# --- networks -----------------------------------------------------------------------------------------------

NETWORK = """\
[network]
topology = "line"
peers = 2
checkpoint = "state"
{settings}
[streams.s]
at = "SP0"
path = "in"
format = "lines"
[subscriptions.a]
at = "SP1"
query = "a.xq"
"""


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ('log = "in/log"', f"the log cannot be '.*in/log': {IN_STREAM}"),
        ('dead_letters = "also_in/dead"', IN_STREAM),
        ('log = "out/../x"\ndead_letters = "x"', "would be written twice over"),
        ('dead_letters = "a.xq"', "that is the query of 'a'"),
        ('log = "network.toml"', "that is the network file"),
        ('log = "state/log"', "it lies in '.*state', the checkpoint"),
    ],
)
def test_a_network_whose_files_meet_is_refused(top: Path, settings: str, reason: str) -> None:
    """As a site is."""
    Path("network.toml").write_text(NETWORK.format(settings=settings))
    with pytest.raises(UsageError, match=reason):
        read_network(Path("network.toml"))


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["network", "run", "network.toml", "--once", "--dead-letter", "in/dead"], IN_STREAM),
        (["network", "run", "network.toml", "--once", "--dead-letter", "log"], "would be written twice over"),
        (["network", "show", "network.toml", "--svg", "a.xq"], "that is the query of 'a'"),
    ],
)
def test_files_of_a_networks_commands_are_checked(
    top: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], reason: str
) -> None:
    """Before any peer begins."""
    Path("network.toml").write_text(NETWORK.format(settings='log = "log"'))
    assert main(arguments) == 2
    assert reason in capsys.readouterr().err
    assert list(Path("state").iterdir()) == []


@pytest.mark.parametrize("name", ["", ".", "..", "x" * 250, "\ud800"])
def test_a_super_peer_has_a_name_for_a_folder(name: str) -> None:
    """Its checkpoint lies in a folder of that name, and nowhere else."""
    with pytest.raises(UsageError, match="a super-peer cannot be called") as raised:
        topology(("SP0", name), [("SP0", name)])
    assert raised.value.hint
    assert topology(("a/b", "c"), [("a/b", "c")]).peers == ("a/b", "c")


def test_a_link_of_any_name_has_a_folder_of_its_own(tmp_path: Path) -> None:
    """However long the names of streams are, and whatever they hold."""
    names = ["...1", "../../x.1", "a/b.1", "x" * 300 + ".1", "x" * 300 + ".2"]
    links = [Link.of(tmp_path, name) for name in names]
    for each in links:
        each.make()
        assert each.folder.parent == tmp_path
    assert len({each.folder for each in links}) == len(names)
    assert len(list(tmp_path.iterdir())) == len(names)


# --- claims -------------------------------------------------------------------------------------------------


def test_readers_of_a_subscription_do_not_share_a_position(tmp_path: Path) -> None:
    """Where their names and those of subscriptions have blanks; names without stay where they were."""
    checkpoint = Checkpoint.at(tmp_path)
    assert checkpoint.reader("a b", "c") != checkpoint.reader("a", "b c")
    assert checkpoint.reader("a", "b").name.startswith("a b-")


@pytest.mark.mass
def test_a_thousand_files_are_checked_quickly(tmp_path: Path) -> None:
    """Each is looked at once, not once for every other."""
    claims = [Claim(tmp_path / str(number), f"the sink of '{number}'") for number in range(20_000)]
    check_claims([Claim(tmp_path / "in", "the stream 's'")], claims)
    with pytest.raises(UsageError, match="two sinks write to it, '7' and 'again'"):
        check_claims([], [*claims, Claim(tmp_path / "x/../7", "the sink of 'again'")])


def test_links_that_lead_in_circles_are_no_harm(tmp_path: Path) -> None:
    """They are files like others until they are written."""
    os.symlink("b", tmp_path / "a")
    os.symlink("a", tmp_path / "b")
    check_claims([Claim(tmp_path / "in", "the stream 's'", whole=True)], [Claim(tmp_path / "a", "the log")])
    assert called(tmp_path, "a b.c", ".xml", "the query") == tmp_path / "a b.c.xml"


def test_a_run_that_is_refused_makes_nothing(top: Path) -> None:
    """The Python side of the command, too."""
    site = write_site("", file("in/o.xml"))
    with pytest.raises(UsageError, match=IN_STREAM):
        run(site, once=True)
    assert list(Path("state").iterdir()) == []


def test_two_streams_of_one_file_are_both_looked_at(top: Path) -> None:
    """That one of them may be fed by a sink says nothing of the other."""
    Path("o.xml").touch()
    Path("b.xq").write_text(QUERY.replace('"s"', '"u"'))
    site = write_site("", file("o.xml"))
    site.write_text(site.read_text() + '[streams.t]\npath = "o.xml"\n[streams.u]\npath = "out/../o.xml"\n')
    assert read_site(site).subscriptions["a"].sink == Files(top / "o.xml")
    Path("a.xq").write_text(QUERY.replace('"s"', '"t"'))
    with pytest.raises(UsageError, match=r"that is the stream 't'"):
        read_site(site)


def test_a_reload_is_checked(top: Path) -> None:
    """What a site that runs is changed to is refused as a whole, in the same words as at the start."""
    from anabranch.run_control import Log
    from anabranch.site_work import Outputs, SiteAtWork

    outputs, log = Outputs(top / "dead", None, None), Log(None, None)
    good = write_site("", file("o.xml"))
    work = SiteAtWork(good, read_site(good), outputs, log)
    assert work.entries["a"].declared.sink == Files(top / "o.xml")
    bad = write_site("", file("out/../dead"))
    with pytest.raises(UsageError, match="would be written twice over"):
        SiteAtWork(bad, read_site(bad), outputs, log)
    with pytest.raises(UsageError, match="would be written twice over"):
        work.take(read_site(bad))
    assert work.site.subscriptions["a"].sink == Files(top / "o.xml")
