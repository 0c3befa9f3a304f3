"""SITE.toml: documents behind `doc()`, and streams that are answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from anabranch.algebra.plans import builder
from anabranch.algebra.plans.written import write_plan
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import Checking
from anabranch.engine.publishing import publication
from anabranch.engine.reports.evolution import StreamCourse
from anabranch.errors import StreamError, UsageError
from anabranch.network.description import read_network
from anabranch.site import SiteDescription, printed_of, read_site
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.storage import Location

HEAD = '[engine]\ncheckpoint = "state"\n[streams.s]\npath = "in"\nformat = "lines"\nroot = "r"\n'
QUERY = 'for $p in stream("s")/r/p where $p/k = doc("t")/t/k return $p'


def site(folder: Path, rest: str, query: str = QUERY, head: str = HEAD) -> SiteDescription:
    """What a site says that has a subscription 'q'."""
    (folder / "in").mkdir(exist_ok=True)
    (folder / "q.xq").write_text(query)
    (folder / "site.toml").write_text(f'{head}[subscriptions.q]\nquery = "q.xq"\n{rest}')
    return read_site(folder / "site.toml")


def test_documents(tmp_path: Path) -> None:
    """A document has a path, relative to the file, and names for what is in JSON."""
    (found,) = site(tmp_path, '[documents.t]\npath = "t.json"\nroot = "t"\n').documents.values()
    assert (found.path, found.root, found.item) == (Location.of(tmp_path / "t.json"), "t", "item")


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ("[documents.t]\n", "'path' is missing"),
        ('[documents.t]\npath = "ftp://bucket/t.xml"\n', "files at 'ftp://' are not known"),
        ('[http]\ntoken_file = "s3://bucket/t"\n', "'token_file' takes a path on a disk, not 's3://bucket/t'"),
        ('[documents.t]\npath = "t.xml"\nrot = "t"\n', "'rot' is unknown"),
        ('[documents.s]\npath = "t.xml"\n', "'s' is a stream already"),
        ('[streams.a]\nsource = "answer"\n', "'of' is missing"),
        ('[streams.a]\nsource = "answer"\nof = "p"\n', "there is no subscription 'p'"),
        ('[streams.a]\nsource = "pigeons"\nof = "q"\n', "the source 'pigeons' is unknown"),
        ('[streams.a]\nsource = "answer"\nof = "q"\npath = "in"\n', "'path' is unknown"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, rest: str, message: str) -> None:
    """With the table and the line it stands in."""
    with pytest.raises(UsageError, match=message):
        site(tmp_path, rest)


def test_a_plan_in_the_place_of_a_query(tmp_path: Path) -> None:
    """Its file holds the text that `write_plan` gives, however it is laid out; what is none is named."""
    text = write_plan(builder.stream("s").select("k > 3").plan)
    (tmp_path / "p.json").write_text(json.dumps(json.loads(text), indent=2))
    declared = '[subscriptions.p]\nplan = "p.json"\n'
    found = site(tmp_path, declared, 'stream("s")/r/p')
    checking = Checking(Inputs(tuple(found.streams.values())))
    assert printed_of("p", found.subscriptions["p"], checking) == text
    with pytest.raises(UsageError, match="a plan has no 'query'"):
        site(tmp_path, f'{declared}query = "q.xq"\n')
    (tmp_path / "p.json").write_text('{"operator": "sort"}')
    with pytest.raises(UsageError, match="holds no plan: the text of a plan is damaged"):
        site(tmp_path, declared)
    (tmp_path / "p.json").write_text(write_plan(builder.stream("t").select("k > 3").plan))
    unknown = site(tmp_path, declared, 'stream("s")/r/p').subscriptions["p"]
    with pytest.raises(UsageError, match="the plan 'p' reads the stream 't', which is not registered"):
        printed_of("p", unknown, checking)


def test_an_answer_that_depends_on_itself(tmp_path: Path) -> None:
    """It is refused by name."""
    with pytest.raises(UsageError, match="the stream 'a' is the answer of 'q', which depends on 'a'"):
        site(tmp_path, '[streams.a]\nsource = "answer"\nof = "q"\n', 'stream("a")/answer/p')


def test_the_answer_of_a_display_is_a_stream_of_updates(tmp_path: Path) -> None:
    """Nobody has to say so, also where it is the answer of an answer; that of items is one of items."""
    head = HEAD + "updates = true\n"
    (tmp_path / "second.xq").write_text('count(stream("a")//p)')
    rest = (
        '[streams.a]\nsource = "answer"\nof = "q"\n[streams.b]\nsource = "answer"\nof = "second"\n'
        '[subscriptions.second]\nquery = "second.xq"\n'
    )
    found = site(tmp_path, rest, 'stream("s")/r/p', head).streams
    assert [found[name].updates for name in "sab"] == [True, True, True]
    found = site(tmp_path, rest.replace('of = "second"', 'of = "q"'), 'stream("s")/r/p').streams
    assert [found[name].updates for name in "sab"] == [False, False, False]


def test_a_site_in_an_object_store(tmp_path: Path) -> None:
    """Checkpoint, streams and documents may be there, and what is pushed is there with the checkpoint."""
    head = HEAD.replace('"state"', '"s3://bucket/state"').replace('"in"', '"s3://bucket/in"')
    found = site(tmp_path, '[documents.t]\npath = "s3://bucket/t.xml"\n[streams.a]\nsource = "http"\n', head=head)
    assert str(found.streams["s"].path) == "s3://bucket/in"
    assert str(found.documents["t"].path) == "s3://bucket/t.xml"
    assert str(found.streams["a"].path).startswith("s3://bucket/state/spool/a-")


def test_the_files_of_a_network_are_on_a_disk(tmp_path: Path) -> None:
    """A stream in an object store is refused by name."""
    (tmp_path / "net.toml").write_text(
        '[network]\ntopology = "line"\npeers = 2\n[streams.s]\nat = "SP0"\npath = "s3://bucket/in"\n'
    )
    with pytest.raises(UsageError, match="'path' takes a path on a disk, not 's3://bucket/in'"):
        read_network(tmp_path / "net.toml")


def test_a_network_has_documents_and_no_streams_of_other_sources(tmp_path: Path) -> None:
    """What it does not have is refused by name."""
    (tmp_path / "in").mkdir()
    text = (
        '[network]\ntopology = "line"\npeers = 2\n[streams.s]\nat = "SP0"\npath = "in"\n[documents.t]\npath = "t.xml"\n'
    )
    (tmp_path / "network.toml").write_text(text)
    assert read_network(tmp_path / "network.toml").documents["t"].path == Location.of(tmp_path / "t.xml")
    for kind in ("answer", "http"):
        (tmp_path / "network.toml").write_text(text + f'[streams.a]\nat = "SP0"\nsource = "{kind}"\nof = "q"\n')
        with pytest.raises(UsageError, match=f"the source '{kind}' cannot be read here yet"):
            read_network(tmp_path / "network.toml")


def test_nobody_publishes_into_an_answer(tmp_path: Path) -> None:
    """Its documents are the run's own; an accent comes by way of what the answer depends on."""
    found = site(tmp_path, '[streams.a]\nsource = "answer"\nof = "q"\n', 'stream("s")/r/p')
    course = StreamCourse(found.streams["a"], Checkpoint.make(found.checkpoint))
    accent = '<s:accent><s:alter path="t" by=". * 2"/></s:accent>'
    with pytest.raises(StreamError, match="the stream 'a' is the answer of 'q'"):
        publication(course, accent, 0)
