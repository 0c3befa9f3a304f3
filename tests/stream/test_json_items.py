"""JSON items: the mapping to trees, control objects, hostile records, and the round trip."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.errors import BadItem, StreamError
from anabranch.stream.elements import Accent, Item, Place, Punctuation, Region, StreamElement, Update
from anabranch.stream.limits import Limits
from anabranch.stream.reading import wire
from anabranch.stream.reading.json_items import parse_line, to_json
from anabranch.stream.reading.parse import parse_item
from anabranch.stream.serialize import serialize
from anabranch.stream.tree import STREAM_NAMESPACE
from odd_keys import any_attribute, any_key

HERE = Place("p", "f", 0)
SMALL = Limits(item_bytes=20_000, depth=10, nodes=100, attributes=5)
S = f'xmlns:s="{STREAM_NAMESPACE}"'


def read(text: str | bytes, limits: Limits = SMALL) -> StreamElement:
    return parse_line(text.encode() if isinstance(text, str) else text, HERE, limits, "item")


def tree(text: str) -> str:
    item = read(text)
    assert isinstance(item, Item)
    return serialize(item.tree)


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ("{}", "<item/>"),
        ('{"a": 1}', "<item><a>1</a></item>"),
        ('{"a": 1.30, "b": 1E5, "c": -0}', "<item><a>1.30</a><b>1E5</b><c>-0</c></item>"),
        (f'{{"a": {"9" * 5000}}}', f"<item><a>{'9' * 5000}</a></item>"),
        ('{"a": true, "b": false, "c": null}', "<item><a>true</a><b>false</b><c/></item>"),
        ('{"a": "<&>", "b": ""}', "<item><a>&lt;&amp;&gt;</a><b/></item>"),
        ('{"a": [1, null, {"b": 2}], "c": []}', "<item><a>1</a><a/><a><b>2</b></a></item>"),
        (
            '{"a": [[1.0, []], [], [[{"b": [[2]]}]]]}',
            "<item><a><member>1.0</member><member/></a><a/>"
            "<a><member><member><b><member>2</member></b></member></member></a></item>",
        ),
        ('{"a": {"b": {"c": "x"}}}', "<item><a><b><c>x</c></b></a></item>"),
        ('{"x": 1, "@id": "7", "@n": 1.0}', '<item id="7" n="1.0"><x>1</x></item>'),
        ('{"a": {"@unit": "C", "b": 1}}', '<item><a unit="C"><b>1</b></a></item>'),
        ('{"é": "\\u00e9\\ud83d\\ude00"}', "<item><é>é😀</é></item>"),
        ('{"z": 1, "a": 2}', "<item><z>1</z><a>2</a></item>"),
        ("  {\t} \r", "<item/>"),
        ('{"a b": {"2026": 1}, "": []}', "<item><a_x0020_b><_x0032_026>1</_x0032_026></a_x0020_b></item>"),
        (
            '{"p:a": 1, "a><b": [2, 3]}',
            "<item><p_x003A_a>1</p_x003A_a><a_x003E__x003C_b>2</a_x003E__x003C_b>"
            "<a_x003E__x003C_b>3</a_x003E__x003C_b></item>",
        ),
        ('{"@": 1, "@a b": 2, "@xmlns": "u"}', '<item _x_="1" a_x0020_b="2" _x0078_mlns="u"/>'),
        ('{"' + "k" * 1_000 + '": 1}', f"<item><{'k' * 1_000}>1</{'k' * 1_000}></item>"),
        ('{"@' + "k " * 125 + '": 1}', f'<item {"k_x0020_" * 125}="1"/>'),
        ('{"$foo": {"$bar": 1}}', "<item><_x0024_foo><_x0024_bar>1</_x0024_bar></_x0024_foo></item>"),
        ('{"@$at": 1, "\\u0024ref": 2}', '<item _x0024_at="1"><_x0024_ref>2</_x0024_ref></item>'),
        (
            '{"t": {"$mutable": {"id": 1, "content": 5}}}',
            f'<item><t><s:mutable {S} id="1">5</s:mutable></t></item>',
        ),
        (
            '{"t": [{"$mutable": {"id": "1", "content": {"a": {"$mutable": {"id": "2"}}}}}, 3]}',
            f'<item><t><s:mutable {S} id="1"><a><s:mutable id="2"/></a></s:mutable></t><t>3</t></item>',
        ),
    ],
)
def test_records_become_trees(record: str, expected: str) -> None:
    """Keys are children in their order, arrays repeat, numbers keep their spelling."""
    assert tree(record) == expected


def test_items_time() -> None:
    """`$at` is the item's time and no part of it."""
    item = read('{"$at": 12.50, "a": 1}')
    assert isinstance(item, Item)
    assert (item.at, serialize(item.tree)) == (Decimal("12.5"), "<item><a>1</a></item>")


@pytest.mark.parametrize(
    ("record", "same"),
    [
        (
            '{"$accent": {"where": "s = 2", "alter": {"path": "t", "by": "(. - 32) * 5 div 9"}}}',
            f'<s:accent {S} where="s = 2"><s:alter path="t" by="(. - 32) * 5 div 9"/></s:accent>',
        ),
        ('{"$accent": {"drop": {"path": "t"}, "at": 3}}', f'<s:accent {S} at="3"><s:drop path="t"/></s:accent>'),
        ('{"$punctuation": {"where": "ts <= 5"}}', f'<s:punctuation {S} where="ts &lt;= 5"/>'),
        ('{"$punctuation": {"at": 12.5}}', f'<s:punctuation {S} at="12.5"/>'),
        (
            '{"$replace": {"target": "1", "id": "2", "at": 12.5, "content": {"b": [1, 2]}}}',
            f'<s:replace {S} target="1" id="2" at="12.5"><b>1</b><b>2</b></s:replace>',
        ),
        ('{"$replace": {"target": "1", "content": null}}', f'<s:replace {S} target="1"/>'),
        ('{"$before": {"target": "1", "content": "x"}}', f'<s:before {S} target="1">x</s:before>'),
        ('{"$after": {"target": "1", "content": 7}}', f'<s:after {S} target="1">7</s:after>'),
        ('{"$mutable": {"id": "1", "content": {"item": {}}}}', f'<s:mutable {S} id="1"><item/></s:mutable>'),
    ],
)
def test_control_objects_mean_the_xml_forms(record: str, same: str) -> None:
    """A control object is the same element as its XML form."""
    element = read(record)
    assert isinstance(element, Accent | Punctuation | Update | Region)
    assert wire.write(element) == wire.write(wire.element_of(parse_item(same.encode(), Limits()), HERE))


DEEP = 100_000


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ("", "not JSON: expecting value at character 1"),
        ("{", "not JSON: expecting property name"),
        ('{"a": 1,}', "not JSON"),
        ("{'a': 1}", "not JSON"),
        ('{"a": 1} {"b": 2}', "not JSON: extra data at character 10"),
        ('{"a": 01}', "not JSON"),
        ('{"a": NaN}', "not JSON: 'NaN' is not a number"),
        ('{"a": [-Infinity]}', "not JSON: '-Infinity' is not a number"),
        ('{"a": "x\ny"}', "not JSON: invalid control character"),
        ('{"a": "x', "not JSON: unterminated string"),
        ("[1, 2]", "a record must be a JSON object"),
        ("5", "a record must be a JSON object"),
        ("null", "a record must be a JSON object"),
        ('{"a": 1, "b": 2, "a": 3}', "key 'a' twice in one object"),
        ('{"x": {"a": 1, "a": 1}}', "key 'a' twice in one object"),
        ('{"a b": 1, "a\\u0020b": 2}', "key 'a b' twice in one object"),
        ('{"@a b": 1, "@a b": 2}', "key '@a b' twice in one object"),
        ('{"a": ' + "[" * 11 + "]" * 11 + "}", "nested too deep"),
        ('{"$open": {"content": {"a": [[]]}}}', "an array in an array is not opened: append it as a whole"),
        ('{"$open": {"content": {"a": [[1], 2]}}}', "an array in an array is not opened: append it as a whole"),
        ('{"$mutable": {"id": "1", "content": [[1]]}}', "an array in the place of the value of 'content'"),
        ('{"@a": {"b": 1}}', "the value of '@a' must not be an object or array"),
        ('{"@a": [1]}', "the value of '@a' must not be an object or array"),
        ('{"a": "\\u0000"}', "character U+0000 in 'a'"),
        ('{"a": "\\ud800"}', "character U+D800 in 'a'"),
        ('{"@a": "\\uffff"}', "character U+FFFF in '@a'"),
        ('{"\\ud800": 1}', "character U+D800 in key '\\ud800'"),
        ('{"a\\u0001": 1}', "character U+0001 in key 'a\\u0001'"),
        ('{"a": {"@\\uffff": 1}}', "character U+FFFF in key '@\\uffff'"),
        ('{"\\u0000": []}', "character U+0000 in key '\\u0000'"),
        ('{"' + "k" * 1_001 + '": 1}', f"key '{'k' * 80}' has a name of more than 1,000 characters"),
        ('{"a": {"@' + "k " * 126 + '": 1}}', "has a name of more than 1,000 characters"),
        (b'{"a": "\xff"}', "not UTF-8: bad byte at byte 7"),
        (b'{"a": "\xed\xa0\x80"}', "not UTF-8"),
        (b'{"a": "\xc0\xaf"}', "not UTF-8"),
        (b"\xef\xbb\xbf{}", "a byte order mark in front of a record"),
        ('{"a": 1}'.encode("utf-16"), "not UTF-8"),
        ('{"a": "' + "x" * 20_000 + '"}', "more than 20,000 bytes"),
        ('{"a": [' + "1," * 60 + "1]}", "more than 100 nodes"),
        ("{" + ",".join(f'"@a{n}": 1' for n in range(6)) + "}", "more than 5 attributes"),
        ('{"a":' * 10 + "1" + "}" * 10, "nested too deep"),
        ('{"a": {"$at": 1}}', "key '$at' is a reserved key that cannot stand here"),
        ('{"a": {"$replace": {"target": "1"}}}', "key '$replace' is a reserved key that cannot stand here"),
        ('{"$at": "soon"}', "'soon' is not a time"),
        ('{"$at": [1]}', "the value of '$at' must not be an object or array"),
        ('{"$accent": {"drop": {"path": "a"}}, "b": 1}', "'$accent' must be the only key of its object"),
        ('{"a": {"$mutable": {"id": 1}, "b": 1}}', "'$mutable' must be the only key of its object"),
        ('{"$accent": 5}', "the value of '$accent' must be an object"),
        ('{"$accent": {"drop": "a"}}', "the value of '$drop' must be an object"),
        ('{"$accent": {}}', "needs exactly one of add, drop and alter, this has 0"),
        ('{"$accent": {"add": {"path": "a"}, "drop": {"path": "a"}}}', "this has 2"),
        ('{"$accent": {"drop": {"path": "a", "content": 1}}}', "'s:drop' has no attribute 'content'"),
        ('{"$punctuation": {}}', "'s:punctuation' needs 'where' or 'at'"),
        ('{"$punctuation": {"at": -1}}', "'-1' is not a time"),
        ('{"$punctuation": {"at": 1, "content": 2}}', "has no attribute 'content'"),
        ('{"$replace": {"content": 1}}', "'s:replace' needs 'target'"),
        ('{"$replace": {"target": "1", "content": [[1]]}}', "an array in the place of the value of 'content'"),
        ('{"a": {"$mutable": {"id": "1", "content": [1]}}}', "an array in the place of the value of 'content'"),
        ('{"$replace": {"target": "1", "content": {"@id": 1}}}', "an attribute in the content of '$replace'"),
        ('{"$mutable": {"content": 1}}', "'s:mutable' needs 'id'"),
    ],
)
def test_bad_records(record: str | bytes, reason: str) -> None:
    """A record that is no JSON, or no item, is set aside with the reason."""
    with pytest.raises(BadItem) as caught:
        read(record)
    assert reason in caught.value.message


@pytest.mark.parametrize(
    "record",
    [
        "[" * DEEP,
        '{"a":' * DEEP,
        '{"a":' + "[" * DEEP + "]" * DEEP + "}",
        '{"a": "]]]]", "b":' + "[{" * DEEP,
        '{"a":' * 500 + "1" + "}" * 500,
    ],
    ids=["arrays", "objects", "closed", "brackets in strings", "over Python's own depth"],
)
def test_nesting_cannot_exhaust_the_stack(record: str) -> None:
    """Nesting is counted before anything recursive meets it; caps set too high are still no way to crash."""
    for limits in (Limits(), Limits(depth=1_000_000)):
        with pytest.raises(BadItem, match=r"nested too deep|not JSON"):
            read(record, limits)


def test_brackets_in_strings_do_not_count() -> None:
    """Text full of brackets and escapes is just text."""
    text = '[{"\\' * 50
    assert read(json.dumps({"a": text})) is not None


def test_element_depth_is_what_counts() -> None:
    """Arrays take no depth of their own, so JSON may be nested as deep as XML."""
    record = '{"a":[' * 9 + "1" + "]}" * 9
    assert tree(record) == "<item>" + "<a>" * 9 + "1" + "</a>" * 9 + "</item>"


# --- writing ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("xml", "expected"),
    [
        ("<item/>", "{}"),
        ("<item><a>1.30</a><a>x</a><b/></item>", '{"a": [1.30, "x"], "b": null}'),
        ("<item><a>007</a><b>true</b><c>1.</c></item>", '{"a": "007", "b": true, "c": "1."}'),
        ('<item k="v"><a u="1"><b>é"</b></a></item>', '{"@k": "v", "a": {"@u": 1, "b": "é\\""}}'),
        (f'<item {S} s:at="1.5"/>', '{"$at": 1.5}'),
        (
            f'<item {S}><a><s:mutable id="1" at="2">5</s:mutable></a></item>',
            '{"a": {"$mutable": {"id": "1", "at": 2, "content": 5}}}',
        ),
        (
            f'<s:accent {S} where="a = 1"><s:drop path="b"/></s:accent>',
            '{"$accent": {"where": "a = 1", "drop": {"path": "b"}}}',
        ),
        (f'<s:replace {S} target="1"/>', '{"$replace": {"target": "1"}}'),
        ('<item a_x0020_b="1"><_x_/><a_x0041_>2</a_x0041_></item>', '{"@a b": 1, "": null, "a_x0041_": 2}'),
    ],
)
def test_writes(xml: str, expected: str) -> None:
    """The shortest JSON that means the element; numbers as they are spelled."""
    assert to_json(wire.element_of(parse_item(xml.encode(), Limits()), HERE)) == expected


@pytest.mark.parametrize(
    ("xml", "reason"),
    [
        ("<item>5</item>", "text or comments beside the children or attributes of 'item'"),
        ("<item><a>x<b/></a></item>", "text or comments beside the children or attributes of 'a'"),
        ('<item><a u="1">5</a></item>', "text or comments beside the children or attributes of 'a'"),
        ("<item><!--c--></item>", "text or comments"),
        ("<item><a/><b/><a/></item>", "equal children of 'item' with others between them"),
        ('<item xmlns:p="urn:p"><p:a/></item>', "the name 'p:a'"),
        ("<item><a_x005F_b/></item>", "the name 'a_x005F_b'"),
        ("<item><_x0024_at>1</_x0024_at></item>", "the name '_x0024_at'"),
        ("<item><a><_x0024_after>1</_x0024_after></a></item>", "the name '_x0024_after'"),
        ("<item><_x0040_id>1</_x0040_id></item>", "the name '_x0040_id'"),
        (f'<item {S}><s:mutable id="1">x</s:mutable></item>', "the name 's:mutable'"),
        (f'<item {S}><a><s:replace target="1">x</s:replace></a></item>', "'s:replace' inside"),
    ],
)
def test_refuses_what_json_cannot_say(xml: str, reason: str) -> None:
    """Nothing is left out silently."""
    with pytest.raises(StreamError) as caught:
        to_json(wire.element_of(parse_item(xml.encode(), Limits()), HERE))
    assert reason in caught.value.message


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.decimals(-9, 9, places=2).map(float)
    | st.text("a<&\"'\\\n ]}", max_size=5)
)


def with_regions(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    elements = st.dictionaries(st.sampled_from(["a", "b", "é", "x-1"]) | any_key, inner, max_size=3)
    attributes = st.dictionaries(st.sampled_from(["@k", "@l"]) | any_attribute, scalars, max_size=2)
    return st.one_of(
        st.lists(inner, max_size=3),
        st.builds(lambda left, right: left | right, attributes, elements),
        st.builds(lambda content: {"$mutable": {"id": "1", "content": content}}, elements | scalars),
    )


values = st.recursive(scalars, with_regions, max_leaves=8)
contents = st.dictionaries(st.sampled_from(["a", "b"]) | any_key, values, max_size=3) | scalars
records = st.one_of(
    st.dictionaries(st.sampled_from(["a", "b", "c"]) | any_key, values, max_size=3),
    st.builds(lambda body: {"$at": 1.5, "a": body}, values),
    st.builds(lambda body: {"$replace": {"target": "1", "at": 3, "content": body}}, contents),
    st.builds(lambda body: {"$mutable": {"id": "é", "content": body}}, contents),
)


@given(records)
def test_round_trip(record: dict[str, object]) -> None:
    """What was read from JSON can be written as JSON, and is read again as the same element."""
    element = read(json.dumps(record), Limits())
    again = read(to_json(element), Limits())
    assert wire.write(again) == wire.write(element)


@given(records)
def test_both_formats_say_the_same(record: dict[str, object]) -> None:
    """An element read from JSON, written as XML and read from there, is the same XML; only JSON has types."""
    element = read(json.dumps(record), Limits())
    by_xml = wire.element_of(parse_item(wire.write(element).encode(), Limits()), HERE)
    assert wire.write(by_xml) == wire.write(element)


@pytest.mark.parametrize(
    "line",
    [
        '{"$at": 1.5, "a": {"$mutable": {"id": "1", "content": "5"}}, "b": []}',
        '{"b": [{"$mutable": {"id": "2", "content": 5}}, 1]}',
        '{"$replace": {"target": "1", "content": null}}',
        '{"$replace": {"target": "1"}}',
        '{"$replace": {"target": "1", "content": ""}}',
        '{"$replace": {"target": "1", "content": {"a": [], "b": ["x"], "c": {}}}}',
        '{"$mutable": {"id": "1", "content": {"$mutable": {"id": "2", "content": 1.0}}}}',
        '{"$before": {"target": "1", "id": "2", "at": 2, "content": [{"a": []}, 5, "5", null]}}',
        '{"$mutable": {"id": "1", "content": [{"a": {"$mutable": {"id": "2", "content": true}}}]}}',
        '{"a": [[{"$mutable": {"id": "2", "content": {"b": [[], [1.0, "1"]]}}}, []], 2]}',
        '{"$replace": {"target": "1", "content": {"a": [[[null]]]}}}',
        '{"$append": {"content": {"a": [[1], {}]}}}',
    ],
)
def test_regions_and_updates_keep_types(line: str) -> None:
    """What regions hold is written as it was read, items in an array among it (LAWS 7.4, 7.5)."""
    assert to_json(read(line, Limits())) == line
