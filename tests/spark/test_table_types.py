"""The types of a table's columns: told from the query, kept in the files, exact in the values; no Spark needed."""

from __future__ import annotations

import math
import struct
from decimal import Decimal
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.algebra.plans.builder import linear, stream
from anabranch.algebra.plans.written import is_plan, write_plan
from anabranch.errors import DynamicError
from anabranch.language import check, parse, print_query
from anabranch.language.value_types import ValueTypes
from anabranch.law import document_input, evaluate
from anabranch.spark.answers.log import AnswerLog
from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.plan.epoch_plan import Registration
from anabranch.spark.sinks import Parquet
from anabranch.spark.sinks.delivery import Sinks
from anabranch.spark.sinks.parquet import SET_ASIDE, ParquetFolder
from anabranch.spark.sinks.tables import columns
from anabranch.storage import Location
from anabranch.stream.reading.parse import parse_document
from anabranch.stream.reading.source import Source
from anabranch.values.sequences import NODES
from spark.bare import BareTrunk

OVER = '<all>{{ for $p in stream("s")/root/p return {} }}</all>'
WINDOWS = '<all>{{ for $w in stream("s")/root/p |count 2| let $a := avg($w/x) return {} }}</all>'


def types(result: str, around: str = OVER, prolog: str = "") -> dict[str, str]:
    """The columns of a query that gives these results, with their types."""
    text = prolog + around.format(result)
    return dict(columns(check(parse(text), text, inputs={"s": None}).query))


def one(expression: str, around: str = OVER) -> str:
    """The type of a column that holds an expression, which is the same in a leaf, in a row by itself, and below let."""
    leaf = types(f"<r><c>{{ {expression} }}</c></r>", around)["c"]
    assert types(f"<c>{{ {expression} }}</c>", around)["c"] == leaf
    assert types(f"let $v := {expression} return <r><c>{{ $v }}</c></r>", around)["c"] == leaf
    return leaf


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("count($p/x)", "integer"),
        ("string-length($p/x)", "integer"),
        ("1", "integer"),
        ("if ($p/x) then 1 else 0", "integer"),
        ("9223372036854775807", "integer"),
        ("9223372036854775808", "number"),
        ("1.0", "number"),
        ("1e3", "number"),
        ("-1", "number"),
        ("$p/x + 1", "number"),
        ("$p/x * $p/y", "number"),
        ("-$p/x", "number"),
        ("count($p/x) + 1", "number"),
        ("sum($p/x)", "number"),
        ("avg($p/x)", "number"),
        ("min($p/x)", "number"),
        ("max($p/x/text())", "number"),
        ("max(($p/x, 3))", "number"),
        ("max(($p/x, 'a'))", "text"),
        ("max((2, 3.5))", "number"),
        ("number($p/x)", "number"),
        ("xs:integer($p/x)", "integer"),
        ("$p/x cast as xs:integer", "integer"),
        ("$p/x castable as xs:integer", "boolean"),
        ("xs:double($p/x) + 1", "number"),
        ("year-from-dateTime($p/x)", "integer"),
        ("seconds-from-dateTime($p/x)", "number"),
        ("xs:dateTime($p/x)", "text"),
        ("xs:dateTime($p/x) - xs:dateTime($p/y)", "text"),
        ("xs:dayTimeDuration($p/x) * 2", "text"),
        ("sum(for $t in $p/x return xs:dayTimeDuration($t))", "text"),
        ("max((xs:date($p/x), xs:date($p/y)))", "text"),
        ("if ($p/x) then 1 else xs:date($p/y)", "text"),
        ("max((true(), false()))", "boolean"),
        ("round($p/x)", "number"),
        ("abs(count($p/x))", "number"),
        ("if ($p/x) then 1 else 0.5", "number"),
        ("if ($p/x) then $p/x + 1 else ()", "number"),
        ("data($p/x + 1)", "number"),
        ("(($p/x + 1)[. > 3])", "number"),
        ("$p/x > 1", "boolean"),
        ("$p/x = 'a' and not($p/y)", "boolean"),
        ("exists($p/x)", "boolean"),
        ("contains($p/x, 'a')", "boolean"),
        ("some $x in $p/x satisfies $x > 1", "boolean"),
        ("true()", "boolean"),
        ("if ($p/x) then $p/x > 1 else false()", "boolean"),
        ("'1'", "text"),
        ("string($p/x)", "text"),
        ("string($p/x + 1)", "text"),
        ("concat('1', '2')", "text"),
        ("name($p)", "text"),
        ("$p/x/text()", "text"),
        ("data($p/x)", "text"),
        ("distinct-values($p/x)", "text"),
        ("min(('a', 'b'))", "text"),
        ("min($p/node())", "text"),
        ("(1, 2)", "text"),
        ("($p/x + 1, ())", "number"),
        ("for $x in $p/x return $x + 1", "text"),
        ("if ($p/x) then 1 else 'none'", "text"),
        ("if ($p/x) then 1 else true()", "text"),
        ("if ($p/x) then $p/x/text() else $p/x + 1", "text"),
    ],
)
def test_a_column_has_the_type_of_its_expression(expression: str, expected: str) -> None:
    """Counts are integers, other numbers doubles, conditions booleans; copies, texts and mixtures are text."""
    assert one(expression) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [("$a", "number"), ("count($w)", "integer"), ("max($w/x) - min($w/x)", "number"), ("$a >= 2", "boolean")],
)
def test_windows_have_types(expression: str, expected: str) -> None:
    """Aggregates of a window, also those that have a name."""
    assert one(expression, WINDOWS) == expected


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ('<r a="{ count($p/x) }" b="{ $p/x }" c="n{ 1 }" d="1" e=""/>', "integer text text text text text"),
        ("<r>{ $p/x }<y>{ $p/x + 1 }</y>{ $p/@id }</r>", "text number text"),
        ("<r><x>1</x><y>{ 1 }{ 2 }</y><z>{ 1 } km</z><u/></r>", "text text text text"),
        ("<r><x><!-- one -->{ 1 }</x></r>", "integer"),
        ("if ($p/x) then <r><n>{ 1 }</n></r> else <r><n>{ $p/x + 1 }</n></r>", "number"),
        ("if ($p/x) then <r><n>{ 1 }</n></r> else <r><n/></r>", "integer"),
        ("if ($p/x) then <r><n>{ 1 }</n></r> else <r><n>none</n></r>", "text"),
        ("if ($p/x) then <r><x>{ 1 }</x></r> else <r>{ $p/x }</r>", "text"),
        ("<r>{ if ($p/x) then <n>{ 1 }</n> else <n>{ 0.5 }</n> }</r>", "number"),
        ("<r>{ if ($p/x) then <n>{ 1 }</n> else $p/n }</r>", "text"),
        ('<r a="{ 1 }"><n>{ 1 }</n>{ $p/* }</r>', "integer text"),
        ('<r a="{ 1 }"><n>{ 1 }</n>{ $p/x/@* }</r>', "text integer"),
        ("if ($p/x) then <r><n>{ 1 }</n></r> else <r>{ $p/* }</r>", "text"),
        ("<r><n>{ 1 }</n>{ $p/s:x }</r>", "text"),
        ("<r>{ let $n := <n>{ count($p/x) }</n> return ($n, $p/y) }</r>", "integer text"),
        ("<r>{ for $x in $p/x return <n>{ $x + 1 }</n> }</r>", "number"),
        ("let $m := <m><n>{ 1 }</n></m> return <r>{ $m/n }</r>", "text"),
    ],
)
def test_a_column_may_come_from_several_places(result: str, expected: str) -> None:
    """With one type it has that, an integer among numbers is a number, all else is text; so is what data may bring."""
    prolog = 'declare namespace s = "urn:s"; '
    assert list(types(result, prolog=prolog).values()) == expected.split()


def test_functions_have_types() -> None:
    """A declared function by its body and arguments; one that is in Python may give anything."""
    prolog = "declare function local:f($x) { if ($x > 1) then $x + 1 else 0 };"
    prolog += "declare function local:g($x) { local:f($x) > 1 }; declare function local:h($x) { <n>{ $x }</n> };"
    result = "<r><a>{ local:f($p/x) }</a><b>{ local:g($p/x) }</b></r>"
    assert types(result, prolog=prolog) == {"a": "number", "b": "boolean"}
    assert types("<r><a>{ 1 }</a>{ local:h(1) }</r>", prolog=prolog)["a"] == "text"  # it could be called 'a', too
    text = OVER.format("<c>{ dist($p/x) }</c>")
    query = check(parse(text), text, inputs={"s": None}, functions={"dist": abs}).query
    assert columns(query) == {"c": "text"}


def test_many_functions_cost_little() -> None:
    """Functions that call each other twice are looked at once each."""
    prolog = "declare function local:f0($x) { $x + 1 };"
    for number in range(1, 60):
        prolog += f"declare function local:f{number}($x) {{ local:f{number - 1}($x) + local:f{number - 1}($x) }};"
    query = parse(prolog + OVER.format("<c>{ if ($p/x) then local:f59($p/x) else local:f59(1) }</c>"))
    assert columns(query) == {"c": "number"}


# --- soundness ----------------------------------------------------------------------------------------------

ATOMS = [
    "$p/x",
    "$p/y",
    "$p/@id",
    "$p/x/text()",
    "$p/node()",
    "1",
    "2.5",
    "1e2",
    "'a'",
    "'7'",
    "()",
    "$n",
    "$s",
    "<x/>",
]
FORMS = [
    *("{} + {}", "-{}", "{} div {}", "{} > {}", "{} = {} and {}", "not({})", "count({})", "sum({})", "avg({})"),
    *("min({})", "max({})", "abs({})", "floor({})", "round({})", "number({})", "string({})", "data({})"),
    *("distinct-values({})", "string-length({})", "concat({}, {})", "exists({})", "({}, {})", "({})[. > 1]"),
    *("if ({}) then {} else {}", "(for $f in {} return {})", "(let $l := {} return ({}, $l))", "normalize-space({})"),
    *("some $q in {} satisfies {}", "local:f({})"),
]
PROLOG = "declare function local:f($x) { if (count($x) > 1) then count($x) else $x };"
EXPRESSIONS = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: st.tuples(st.sampled_from(FORMS), inner, inner, inner).map(
        lambda drawn: drawn[0].format(*(f"({each})" for each in drawn[1:]))
    ),
    max_leaves=8,
)
ITEM = '<p id="3"><!--c--><x>1</x><x>5</x>t<y>abc</y></p>'


@given(EXPRESSIONS)
def test_values_are_what_their_types_say(expression: str) -> None:
    """Whatever an expression gives where it fails not: no value of another kind, and several only where it is said."""
    text = f'{PROLOG} let $p := doc("d")/p let $n := count($p/x) let $s := string($p/y) return ({expression}, ())'
    query = check(parse(text), text, inputs={"d": None}).query
    told = ValueTypes({each.name: each for each in query.functions}).of(query.body, {})
    try:
        values = evaluate(query, {"d": document_input(parse_document(ITEM.encode()))}).values
    except DynamicError:
        return
    assert told.many or len(values) <= 1
    assert told.nodes or not any(isinstance(each, NODES) for each in values)
    fits: dict[str, Any] = {"integer": int, "number": (int, float, Decimal), "boolean": bool}
    fits["number or boolean"] = fits["number"]
    if told.kind in fits:
        assert all(isinstance(each, fits[told.kind]) for each in values), told
        assert "boolean" in told.kind or not any(isinstance(each, bool) for each in values)
    assert told.kind != "nothing" or not values
    assert told.kind != "string" or all(type(each) is str for each in values)


# --- files ----------------------------------------------------------------------------------------------------

TYPED = OVER.format('<r n="{ count($p/x) }" b="{ $p/x > 1 }">{ $p/x }<y>{ $p/x * 2 }</y></r>')
EXPECTED = {"@n": pa.int64(), "@b": pa.bool_(), "x": pa.string(), "y": pa.float64()}


class Folder:
    """A Parquet sink; `opened` is what the next run has of it."""

    def __init__(self, top: Path) -> None:
        self.checkpoint = Checkpoint.make(top / "state")
        self.path = top / "out"
        self.warnings: list[str] = []

    def opened(self, at_work: Registration | None = None) -> ParquetFolder:
        return ParquetFolder(Location.of(self.path), self.checkpoint, self.warnings.append, at_work)

    def rows(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = ds.dataset(self.path).to_table().to_pylist()
        return found

    def as_before(self, owner: int, texts: dict[str, list[str | None]], epoch: int = 0) -> None:
        """The folder and its record as they were written before columns had types."""
        self.path.mkdir(exist_ok=True)
        table = pa.table({name: pa.array(values, pa.string()) for name, values in texts.items()})
        pq.write_table(table, self.path / f"epoch-{epoch:08}.parquet")
        record = self.checkpoint.sink(self.path, ".parquet")
        durable.replace(record, durable.sealed({"owner": owner, "next": epoch + 1, "columns": list(texts)}))


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def subscription(number: int, text: str = TYPED) -> Registration:
    return Registration(number, "q", text, 0, "plan" if is_plan(text) else "items")


def test_files_have_the_types(folder: Folder) -> None:
    """In all files, also those without a value; null where a row has none; both ways to read rows give the same."""
    sink = folder.opened()
    sink.take(
        subscription(0), 0, ['<r n="1" b="true"><x>1.30</x><y>2.6</y></r><r n="0" b="false"><x>a</x><y>5</y></r>']
    )
    sink.take(subscription(0), 1, ['<r n="1" b="true"><x>&lt;</x><y>2.6</y></r>', '<r n="2" b=""><x/><y/></r>'])
    sink.take(subscription(0), 2, ['<r n="0" b="false"><y/></r>'])
    for file in folder.path.iterdir():
        assert {each.name: each.type for each in pq.read_schema(file)} == EXPECTED
    assert folder.rows() == [
        {"@n": 1, "@b": True, "x": "1.30", "y": 2.6},
        {"@n": 0, "@b": False, "x": "a", "y": 5.0},
        {"@n": 1, "@b": True, "x": "<", "y": 2.6},
        {"@n": 2, "@b": None, "x": "", "y": None},
        {"@n": 0, "@b": False, "x": None, "y": None},
    ]


@given(st.lists(st.floats(), min_size=1, max_size=5))
def test_numbers_are_exact(values: list[float]) -> None:
    """What is stored is the double that the answer spells, infinities, NaN and the sign of zero among it."""
    text = OVER.format("<y>{ $p/x * 2 }</y>")
    with TemporaryDirectory() as top:
        folder = Folder(Path(top))
        spelled = []
        for value in values:
            query = f'number("{_lexical(value)}")'
            spelled.append(evaluate(check(parse(query), query).query, {}).text)
        folder.opened().take(subscription(0, text), 0, ["".join(f"<y>{each}</y>" for each in spelled)])
        found = [row["y"] for row in folder.rows()]
    assert [struct.pack("d", each) for each in found if not math.isnan(each)] == [
        struct.pack("d", each) for each in values if not math.isnan(each)
    ]
    assert [math.isnan(each) for each in found] == [math.isnan(each) for each in values]


def _lexical(value: float) -> str:
    return "NaN" if math.isnan(value) else repr(value).upper()


def test_what_has_another_type_is_set_aside(folder: Folder) -> None:
    """Never a type guessed, never a run that ends: the row is kept beside the table, with the reason."""
    row = '<r n="{}" b="true"><x>1</x><y>{}</y></r>'
    folder.opened().take(subscription(0), 0, [row.format(1, 2) + row.format("1.5", 2) + row.format(1, "1_0")])
    assert [each["y"] for each in folder.rows()] == [2.0]
    aside = (folder.path / SET_ASIDE).read_text()
    assert "'1.5' is no integer" in aside
    assert "'1_0' is no number" in aside


def test_a_folder_of_text_is_moved_aside(folder: Folder) -> None:
    """As when a query changes: it is kept under another name, and the typed one begins with the first epoch kept."""
    before: dict[str, list[str | None]] = {"@n": ["1", "2"], "@b": ["true", None], "x": ["1", "2"], "y": ["2", "4"]}
    folder.as_before(3, before, 5)
    sink = folder.opened(subscription(3))
    assert sink.next == 0
    aside = folder.path.with_name("out.3")
    assert pq.read_table(aside / "epoch-00000005.parquet").to_pydict() == before
    assert "have other types now" in folder.warnings[0]
    sink.take(subscription(1, OVER.format("<old/>")), 0, ["<old/>"])  # long gone, and not delivered again
    sink.take(subscription(3), 5, ['<r n="1" b="true"><x>1</x><y>2</y></r>'])
    again = folder.opened(subscription(3))
    assert again.next == 6
    again.take(subscription(3), 6, ['<r n="2" b="false"><x>2</x><y>4</y></r>'])
    assert [row["y"] for row in folder.rows()] == [2.0, 4.0]
    again.take(subscription(4, OVER.format("<n>{ 1 }</n>")), 7, ["<n>1</n>"])  # two folders of subscription 3 are aside
    assert folder.rows() == [{"n": 1}]
    assert sorted(each.name for each in folder.path.parent.glob("out*")) == ["out", "out.3", "out.3.1"]


def test_a_folder_of_text_that_is_only_found_out_later(folder: Folder) -> None:
    """Where nobody has said who is at work, its first epoch tells; nothing of two types comes into one folder."""
    folder.as_before(0, {"@n": ["1"], "@b": ["true"], "x": ["1"], "y": ["2"]})
    (folder.path / SET_ASIDE).write_text("{}\n")
    set_aside = folder.checkpoint.sink(folder.path / SET_ASIDE)
    durable.replace(set_aside, durable.sealed({"owner": 0, "next": 1, "length": 3}))
    folder.opened().take(subscription(0), 1, ['<r n="1" b="true"><x>1</x><y>2</y></r>', "no row"])
    assert [row["y"] for row in folder.rows()] == [2.0]
    assert "no row" in (folder.path / SET_ASIDE).read_text()
    assert (folder.path.with_name("out.0") / SET_ASIDE).read_text() == "{}\n"


def test_files_decide_and_not_the_record(folder: Folder) -> None:
    """A record with types beside files without: the files are what readers meet."""
    folder.opened().take(subscription(0), 0, ['<r n="1" b="true"><x>1</x><y>2</y></r>'])
    table = pq.read_table(folder.path / "epoch-00000000.parquet")
    text = pa.table({name: table[name].cast(pa.string()) for name in table.column_names})
    pq.write_table(text, folder.path / "epoch-00000000.parquet")
    assert folder.opened(subscription(0)).next == 0
    assert folder.path.with_name("out.0").exists()


def test_a_folder_of_text_that_is_right_stays(folder: Folder) -> None:
    """Where all that a query gives is text, nothing changes."""
    text = OVER.format("<r>{ $p/x }{ $p/* }</r>")
    folder.as_before(0, {"x": ["1"], "other": ["2"]})
    sink = folder.opened(subscription(0, text))
    assert sink.next == 1
    sink.take(subscription(0, text), 1, ["<r><x>3</x><other>4</other></r>"])
    assert folder.rows() == [{"x": "1", "other": "2"}, {"x": "3", "other": "4"}]
    assert folder.warnings == []


@pytest.mark.parametrize("kill", range(1, 12))
def test_moving_aside_survives_a_kill(folder: Folder, kill: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each step; who goes on has the same files in the end."""
    folder.as_before(0, {"@n": ["1"], "@b": ["true"], "x": ["1"], "y": ["2"]})

    class Killed(Exception):
        pass

    count = 0

    def counted(function: Any) -> Any:
        def call(*given: Any, **named: Any) -> Any:
            nonlocal count
            count += 1
            if count == kill:
                raise Killed
            return function(*given, **named)

        return call

    def deliver() -> None:
        sink = folder.opened(subscription(0))
        for epoch in (0, 1):
            if sink.next <= epoch:
                sink.take(subscription(0), epoch, [f'<r n="{epoch}" b="true"><x>1</x><y>2</y></r>'])

    with monkeypatch.context() as patch:
        patch.setattr(durable, "replace", counted(durable.replace))
        for name in ("rename", "unlink", "mkdir"):
            patch.setattr(Path, name, counted(getattr(Path, name)))
        try:
            deliver()
        except Killed:
            deliver()
    assert [row["@n"] for row in folder.rows()] == [0, 1]
    assert [each.name for each in folder.path.with_name("out.0").iterdir()] == ["epoch-00000000.parquet"]


# --- through a trunk ------------------------------------------------------------------------------------------


def test_an_old_folder_is_written_again_from_the_answer_log(tmp_path: Path) -> None:
    """All epochs that are kept, with types, when the sink is next asked for; and plans of operators have types too."""
    lines = "".join(f"<p><x>{number}</x><k>{number % 2}</k></p>\n" for number in range(6))
    (tmp_path / "in").write_text(lines)
    source = Source("s", tmp_path / "in", "lines")
    text = OVER.format("<r>{ $p/x }<y>{ $p/x * 2 }</y></r>")
    made = stream("s").construct("r", {"x": "x", "y": linear({"x": 2})})
    queries = {"q": print_query(check(parse(text), text, inputs={"s": None}).query), "plan": write_plan(made.plan)}
    trunk = BareTrunk(tmp_path / "state", [source], Random(1), finite=False)
    trunk.run(queries, [40], [1])
    assert trunk.epochs > 2
    checkpoint = Checkpoint.open(tmp_path / "state")
    log = AnswerLog(checkpoint)
    for name in queries:
        found = log.subscription(name)
        assert found is not None
        folder = Folder(tmp_path / name)
        folder.checkpoint = checkpoint
        folder.as_before(found.id, {"x": ["0"], "y": ["0"]}, trunk.epochs - 1)
        warnings: list[str] = []
        Sinks(checkpoint, {}, warnings.append).set({name: Parquet(folder.path)}, None)
        assert [(row["x"], row["y"]) for row in folder.rows()] == [(str(n), 2.0 * n) for n in range(6)]
        assert folder.path.with_name(f"out.{found.id}").exists()
        assert len(warnings) == 1


def test_plans_of_operators_have_types(folder: Folder) -> None:
    """What they compute: numbers of windows, aggregates, linear fields; what they copy is text."""
    readings = stream("s").window("ts", size=10).aggregate(by=["k", "wid"], avg=["t"], count=["u"]).select("t > 1")
    row = "<p><k>1</k><wid>0</wid><t>2.5</t><u>3</u></p>"
    folder.opened().take(subscription(0, write_plan(readings.plan)), 0, [row])
    assert folder.rows() == [{"wid": 0, "t": 2.5, "u": 3, "k": "1"}]
    both = readings.union(readings.construct("p", {"t": "t", "wid": "wid", "k": "u"}))
    folder.opened().take(subscription(1, write_plan(both.plan)), 1, [row])
    assert folder.rows() == [{"wid": 0, "t": 2.5, "k": "1", "u": "3"}]
    joined = readings.join(stream("s"), on="k")
    folder.opened().take(subscription(2, write_plan(joined.plan)), 2, [row])
    assert folder.rows() == [{"k": "1", "wid": "0", "t": "2.5", "u": "3"}]
