"""Sinks by themselves: tables, consoles, what they take apart and what they refuse; no Spark needed."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.errors import StateError, UsageError
from anabranch.language import check, parse
from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.plan.epoch_plan import Registration
from anabranch.spark.sinks.delivery import ConsoleLines
from anabranch.spark.sinks.growing import GrowingFile
from anabranch.spark.sinks.parquet import SET_ASIDE, ParquetFolder
from anabranch.spark.sinks.pieces import TableRow, rows_alike, take_apart
from anabranch.spark.sinks.tables import check_table, columns
from anabranch.storage import Location
from anabranch.stream.serialize import escape_attribute, escape_text
from anabranch.visible import visible
from papers import Q2, Q3, Q4

HITS = '<hits>{ for $p in stream("s")/root/p return <hit id="{ $p/@id }">{ $p/ra }{ $p/en }</hit> }</hits>'
TEXT = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff") | st.sampled_from("\t\n\r<>&\"'")
)


def query(text: str) -> str:
    """A query over a stream of items, each in turn called `$p`."""
    return f'<all>{{ for $p in stream("s")/root/p return {text} }}</all>'


def hits(number: int, text: str = HITS) -> Registration:
    return Registration(number, "hits", text, 0)


class Tables:
    """A Parquet sink; `opened` is what the next run has of it."""

    def __init__(self, top: Path) -> None:
        self.checkpoint = Checkpoint.make(top / "state")
        self.path = top / "out"
        self.warnings: list[str] = []

    def opened(self) -> ParquetFolder:
        return ParquetFolder(Location.of(self.path), self.checkpoint, self.warnings.append)

    def rows(self, name: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = pq.read_table(self.path / name).to_pylist()
        return found


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    return Tables(tmp_path)


# --- pieces -----------------------------------------------------------------------------------------------


def test_an_answer_is_taken_apart() -> None:
    """Elements, text and comments between them; white space alone is nothing; names are as they are written."""
    answer = '<a x="1>2"/> <b:c><d/>t</b:c>1 2<!-- - --><?p i?><e>é</e>'
    assert [piece.text.strip() for piece in take_apart(answer)] == [
        '<a x="1>2"/>',
        "<b:c><d/>t</b:c>",
        "1 2<!-- - --><?p i?>",
        "<e>é</e>",
    ]
    assert take_apart(" ") == []


@pytest.mark.parametrize(
    ("piece", "row"),
    [
        ('<r a="1" b="&lt;"><x>1.30</x><y/></r>', TableRow("r", {"@a": "1", "@b": "<", "x": "1.30", "y": ""}, None)),
        ('<r xmlns="u" xmlns:p="v" p:a="1"><p:x> 1 </p:x></r>', TableRow("r", {"@p:a": "1", "p:x": " 1 "}, None)),
        ("<r>\n<x>1</x> <!-- --> </r>", TableRow("r", {"x": "1"}, None)),
        ('<r n="2">1.5</r>', TableRow("r", {"@n": "2"}, "1.5")),
        ("<r/>", TableRow("r", {}, "")),
        ("<r><x>1</x><x>2</x></r>", "'x' is there more than once"),
        ("<r><x><y>1</y></x></r>", "'x' has elements of its own"),
        ('<r><x u="1">1</x></r>', "'x' has attributes"),
        ("<r>t<x>1</x></r>", "it has text beside its elements"),
        ("1 2", "it is no element"),
    ],
)
def test_what_is_a_row(piece: str, row: TableRow | str) -> None:
    """Attributes and leaves by name, text to the character; or the reason why not. What comes before has no part."""
    assert [each.row for each in take_apart("<q><x>0</x></q>" + piece)][-1] == row


@given(st.lists(st.tuples(TEXT, TEXT)))
def test_what_was_written_is_read(values: list[tuple[str, str]]) -> None:
    """Whatever text stands in the leaves and attributes of an answer, rows hold it, and pieces are its bytes."""
    written = [f'<r a="{escape_attribute(a)}"><x>{escape_text(x)}</x></r>' for a, x in values]
    found = take_apart("".join(written))
    assert [piece.text for piece in found] == written
    assert [piece.row for piece in found] == [TableRow("r", {"@a": a, "x": x}, None) for a, x in values]


VALUES = st.sampled_from(["", "1", " ", "a.b", "&amp;", ">", "<x>1</x>", "<!-- -->", "\n"])
LOOKS = st.sampled_from(
    [
        '<r a="{}"><x>{}</x><y.z>{}</y.z></r>',
        "<r><x>{}</x><x>{}</x></r>{}",
        "<r><r>{}</r></r><r>{}{}</r>",
        '<r a="{}" b="{}">{}</r>',
        '<r xmlns:p="{}" p:a="{}"><p:x>{}</p:x></r>',
        "<r>{}</r><r/>{}{}",
    ]
)


@given(st.lists(st.tuples(LOOKS, VALUES, VALUES, VALUES), min_size=1, max_size=4))
def test_the_fast_way_is_the_same_way(pieces: list[tuple[str, str, str, str]]) -> None:
    """Rows that look alike are found all at once, and are those that the parser finds; in doubt there are none."""
    text = "".join(look.format(*("1" if "<" in each and '="{}' in look else each for each in v)) for look, *v in pieces)
    fast = rows_alike(text)
    if fast is not None:
        found = [each.row for each in take_apart(text)]
        rows = [
            {**row.values, **({row.name: row.text} if row.text else {})} for row in found if isinstance(row, TableRow)
        ]
        assert len(rows) == len(found)
        assert [dict(zip(fast, row, strict=True)) for row in zip(*fast.values(), strict=True)] == rows


def test_what_the_fast_way_is_for() -> None:
    """Plain rows, with attributes and leaves or with text; one that differs, and it is left to the parser."""
    rows = '<r a="1"><x>2</x><y>3</y></r><r a="4"><x/><y></y></r>'
    assert rows_alike(rows) is None
    assert rows_alike(rows.replace("<x/>", "<x>5</x>")) == {"@a": ("1", "4"), "x": ("2", "5"), "y": ("3", "")}
    assert rows_alike("<n>1</n><n>2</n>") == {"n": ("1", "2")}
    for other in ("<n/>", " ", "<n>&lt;</n>", "<n><n>1</n></n>", "<m>1</m>", "1"):
        assert rows_alike(f"<n>1</n>{other}<n>2</n>") is None


# --- tables -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ('<r a="1" b="{ $p/x }"><x>{ $p/x/text() }</x>{ $p/deep/y }</r>', ("@a", "@b", "x", "y")),
        ("<r>{ $p/@id, $p//y[. > 1] }</r>", ("@id", "y")),
        ("<r>{ if ($p/x) then $p/x else <none/> }{ for $y in $p/y return $y/z }</r>", ("x", "none", "z")),
        ("if ($p/x > 1) then <r>{ $p/x }</r> else ()", ("x",)),
        ("if ($p/x > 1) then <r>{ $p/x }</r> else <r>{ $p/y }</r>", ("x", "y")),
        ('<n of="{ $p/x }">{ $p/x + 1 }</n>', ("@of", "n")),
        ("<n>{ $p/x/text() }</n>", ("n",)),
        ("<n/>", ("n",)),
        ("<r>{ $p }{ let $x := $p/x + 1 return <x>{ $x }</x> }</r>", ("p", "x")),
        ("(let $x := <x><y>{ $p/z }</y></x> return <r>{ $x/y/z }</r>)", ("z",)),
        ("<r>{ $p/* }</r>", ()),
    ],
)
def test_a_query_tells_its_columns(result: str, expected: tuple[str, ...]) -> None:
    """From constructors and paths, in the query's order; an element without leaves is a column itself."""
    text = query(result)
    assert tuple(columns(check(parse(text), text, inputs={"s": None}).query)) == expected


def test_the_papers_have_tables() -> None:
    """Windows and their aggregates as well as selections; the columns are those that the paper's results have."""
    for text, expected in (
        (Q2, ("avg_en",)),
        (Q3, ("ra", "dec", "en", "det_time")),
        (Q4, ("ra", "dec", "phc", "en", "det_time")),
    ):
        assert tuple(columns(check(parse(text), text, inputs={"photons": None}).query)) == expected


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        ("$p", "a result is no element constructor"),
        ("($p/x + 1)", "a result is no element constructor"),
        ("if ($p/x) then <a/> else <b/>", "there are results 'a' and 'b'"),
        ("<r><x><y/></x></r>", "'x' holds the element 'y'"),
        ("<r><x>{ $p/y }</x></r>", "'x' holds the element 'y'"),
        ("<r><x>{ $p/@y }</x></r>", "'x' holds the attribute 'y'"),
        ('<r><x a="1"/></r>', "'x' has attributes"),
        ("<r>{ $p/x }<x/></r>", "'x' stands more than once in 'r'"),
        ("<r>text{ $p/x }</r>", "'r' has text beside its elements"),
    ],
)
def test_a_query_without_a_table_is_refused(result: str, reason: str) -> None:
    """Where the query alone shows that its results are no rows of one table, it says so, with a hint."""
    text = query(result)
    with pytest.raises(
        UsageError, match=f"'q' cannot have a 'parquet' sink: the answer is no table: {reason}"
    ) as raised:
        check_table("q", check(parse(text), text, inputs={"s": None}).query)
    assert raised.value.hint


# --- Parquet ----------------------------------------------------------------------------------------------


def test_an_epoch_is_a_file(tables: Tables) -> None:
    """What is copied is text as it is spelled; what the query names has a column from the first file on, or null."""
    sink = tables.opened()
    sink.take(hits(0), 3, ['<hit id="1"><ra>1.30</ra></hit>', '<hit id="2"><ra/></hit>'])
    sink.take(hits(0), 5, ["<hit><en>&lt;</en><ra>2</ra></hit>"])
    assert sorted(each.name for each in tables.path.iterdir()) == ["epoch-00000003.parquet", "epoch-00000005.parquet"]
    assert tables.rows("epoch-00000003.parquet") == [
        {"@id": "1", "ra": "1.30", "en": None},
        {"@id": "2", "ra": "", "en": None},
    ]
    assert tables.rows("epoch-00000005.parquet") == [{"@id": None, "ra": "2", "en": "<"}]
    assert set(pq.read_schema(tables.path / "epoch-00000003.parquet").types) == {pa.string()}


def test_a_row_without_values_is_a_row(tables: Tables) -> None:
    """An item that has none of what is asked for still gave a result."""
    sink = tables.opened()
    sink.take(hits(0), 0, ["<hit/><hit/>", "<hit><ra>1</ra></hit>"])
    none = {"@id": None, "ra": None, "en": None}
    assert tables.rows("epoch-00000000.parquet") == [none, none, {**none, "ra": "1"}]
    sink.take(hits(1, query("<r>{ $p/* }</r>")), 1, ["<r/>"])
    assert tables.rows("epoch-00000001.parquet") == [{"r": ""}]


def test_a_column_may_come_later(tables: Tables) -> None:
    """What only the data tell of is a column from then on, also for the next run; files go together by name."""
    every = hits(0, query("<r>{ $p/* }</r>"))
    tables.opened().take(every, 0, ["<r><a>1</a></r>"])
    tables.opened().take(every, 1, ["<r><b>2</b><a>3</a></r>"])
    tables.opened().take(every, 2, ["<r><a>4</a></r>"])
    files = sorted(tables.path.glob("*.parquet"))
    assert [pq.read_schema(file).names for file in files] == [["a"], ["a", "b"], ["a", "b"]]
    whole = ds.dataset(tables.path, schema=pa.unify_schemas([pq.read_schema(file) for file in files]))
    assert whole.to_table().to_pylist() == [{"a": "1", "b": None}, {"a": "3", "b": "2"}, {"a": "4", "b": None}]


def test_a_value_alone_is_a_column(tables: Tables) -> None:
    """An average in an element of its own, a double; null where it is empty, in the first row too."""
    sink = tables.opened()
    sink.take(hits(0, query('<avg n="{ $p/n }">{ avg($p/x) }</avg>')), 0, ['<avg n="0"/><avg n="2">1.5</avg>'])
    assert tables.rows("epoch-00000000.parquet") == [{"@n": "0", "avg": None}, {"@n": "2", "avg": 1.5}]


def test_what_is_no_row_is_set_aside(tables: Tables) -> None:
    """It is neither lost nor in the way: a line with the reason, a warning, and a dataset that does not see it."""
    text = ["<hit><ra>1</ra></hit><hit><ra><deg>1</deg></ra></hit>", "<hit><en>2</en><en>3</en></hit>"]
    tables.opened().take(hits(0), 0, text)
    assert ds.dataset(tables.path).to_table().to_pylist() == [{"@id": None, "ra": "1", "en": None}]
    assert list(map(json.loads, (tables.path / SET_ASIDE).read_text().splitlines())) == [
        {"epoch": 0, "reason": "'ra' has elements of its own", "raw": "<hit><ra><deg>1</deg></ra></hit>"},
        {"epoch": 0, "reason": "'en' is there more than once", "raw": "<hit><en>2</en><en>3</en></hit>"},
    ]
    assert tables.warnings == [f"subscription 'hits': 2 results are no rows, see '{tables.path / SET_ASIDE}'"]


def test_a_changed_query_has_a_folder_of_its_own(tables: Tables) -> None:
    """The old one moves aside whole; the new one has its own columns; no file of others is overwritten by that."""
    sink = tables.opened()
    sink.take(hits(0), 0, ["<hit><ra>1</ra></hit>", "text"])
    sink.take(hits(4, query("<n>{ $p/x/text() }</n>")), 1, ["<n>2</n>", "text"])
    assert tables.rows("epoch-00000001.parquet") == [{"n": "2"}]
    aside = tables.path.with_name("out.0")
    assert sorted(each.name for each in aside.iterdir()) == [SET_ASIDE, "epoch-00000000.parquet"]
    assert sorted(each.name for each in tables.path.iterdir()) == [SET_ASIDE, "epoch-00000001.parquet"]
    tables.path.with_name("out.4").mkdir()
    with pytest.raises(StateError, match=r"cannot be moved aside: '.*out.4' exists"):
        sink.take(hits(5), 2, ["<hit/>"])
    assert tables.rows("epoch-00000001.parquet") == [{"n": "2"}]


def test_an_answer_from_before_the_table_is_passed_over(tables: Tables) -> None:
    """A sink that is added together with a query that fits it has nothing to do with the query before."""
    sink = tables.opened()
    sink.take(hits(0, query("$p")), 0, ["<p>1</p>"])
    assert not tables.path.exists()
    sink.take(hits(1), 1, ["<hit><ra>1</ra></hit>"])
    assert [each.name for each in tables.path.iterdir()] == ["epoch-00000001.parquet"]


@pytest.mark.parametrize("begin", [Path.touch, lambda path: (path.mkdir(), (path / "mine").touch())])
def test_what_others_wrote_is_not_touched(tables: Tables, begin: Callable[[Path], object]) -> None:
    """A file, or a folder with files, that the sink did not make is refused; an empty folder is welcome."""
    tables.path.mkdir()
    tables.opened()
    tables.path.rmdir()
    begin(tables.path)
    with pytest.raises(StateError, match="another checkpoint or program wrote it"):
        tables.opened()


def test_no_moment_is_a_bad_one_to_be_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed before and after each file it writes or moves, a sink that goes on gives the same bytes."""
    work = [
        (hits(0), 0, ["<hit><ra>1</ra></hit>", "<hit><ra/><ra/></hit>"]),
        (hits(0), 1, ["<hit><new>2</new></hit>"]),
        (hits(1, query("<n>{ $p/x/text() }</n>")), 2, ["<n>3</n>", "no row"]),
    ]

    class Killed(Exception):
        pass

    def contents(folder: Path) -> dict[str, bytes]:
        return {str(each.relative_to(folder)): each.read_bytes() for each in folder.glob("out*/*")}

    def steps(kill: int) -> bool:
        """Do the work, killed at the step of this number and gone on with; whether there was such a step."""
        count = 0

        def counted(function: Callable[..., Any]) -> Callable[..., Any]:
            def call(*given: Any, **named: Any) -> Any:
                nonlocal count
                count += 2
                if count - 1 == kill:
                    raise Killed
                found = function(*given, **named)
                if count == kill:
                    raise Killed
                return found

            return call

        folder = tmp_path / str(kill)
        tables = Tables(folder)
        with monkeypatch.context() as patch:
            patch.setattr(durable, "replace", counted(durable.replace))
            patch.setattr(GrowingFile, "append", counted(GrowingFile.append))
            patch.setattr(Path, "rename", counted(Path.rename))
            patch.setattr(Path, "mkdir", counted(Path.mkdir))
            try:
                deliver(tables)
            except Killed:
                deliver(tables)
        return count >= kill

    def deliver(tables: Tables) -> None:
        sink = tables.opened()
        for subscription, epoch, texts in work:
            if sink.next <= epoch:
                sink.take(subscription, epoch, texts)

    kills = 0
    while steps(kills):
        assert contents(tmp_path / str(kills)) == contents(tmp_path / "0"), f"killed at step {kills}"
        kills += 1
    assert kills > 20
    assert len(contents(tmp_path / "0")) == 5


def test_leftovers_of_a_kill_are_swept(tables: Tables) -> None:
    """What a writer had begun goes with the next start; other hidden files stay."""
    tables.opened().take(hits(0), 0, ["<hit/>"])
    for name in (".epoch-00000001.parquet.4711", ".hidden"):
        (tables.path / name).touch()
    tables.opened()
    assert sorted(each.name for each in tables.path.iterdir()) == [".hidden", "epoch-00000000.parquet"]


# --- the console ------------------------------------------------------------------------------------------


def test_a_console_has_a_line_for_each_piece() -> None:
    """With the name before it; nothing that a terminal acts on gets there, from the name neither."""
    out = io.StringIO()
    subscription = Registration(0, "q\x1b[2J", "", 0)
    ConsoleLines(out, 0).take(subscription, 0, ["<p>1</p><p>a\nb\u009b\u202e</p>", "2 3"])
    assert out.getvalue() == "q&#27;[2J: <p>1</p>\nq&#27;[2J: <p>a&#10;b&#155;&#8238;</p>\nq&#27;[2J: 2 3\n"


def test_a_console_that_lacks_characters_shows_references() -> None:
    """Data cannot bring a run down because the terminal speaks ASCII."""
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii", newline="")
    ConsoleLines(out, 0).take(Registration(0, "q", "", 0), 0, ["<p>é</p>"])
    assert raw.getvalue() == b"q: <p>&#233;</p>\n"


def test_what_has_a_look_stays_as_it_is() -> None:
    """Letters of all scripts, joined or not, are no control characters."""
    text = "a é \N{ARABIC LETTER BEH}\N{ZERO WIDTH JOINER} 漢 \N{GRINNING FACE}"
    assert visible(text) == text
