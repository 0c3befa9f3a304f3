"""The law of update streams: the history paper's examples and the cases of LAWS 5."""

from __future__ import annotations

import pytest

from history.asking import Asked, ask, shown

SECTION_2 = (
    '<s:mutable id="1">x</s:mutable><s:replace target="1" id="2">y</s:replace>'
    '<s:after target="2" id="3">z</s:after><s:before target="1" id="3">w</s:before>'
)
SECTION_3 = """
<s:mutable id="2"><a>
  <s:mutable id="3" at="1"><b>X</b></s:mutable>
  <s:replace target="3" id="4" at="2"><b>Y</b></s:replace>
  <s:replace target="3" id="4" at="3"><b>Z</b></s:replace>
</a></s:mutable>
<s:replace target="2" id="5" at="4"><a><b>W</b></a></s:replace>
"""


def region(key: str, content: str, at: str = "1") -> str:
    return f'<s:mutable id="{key}" at="{at}">{content}</s:mutable>'


def replaced(key: str, content: str, at: str = "1") -> str:
    return f'<s:replace target="{key}" at="{at}">{content}</s:replace>'


def heartbeat(at: str) -> str:
    return f'<s:punctuation at="{at}"/>'


# --- the paper ------------------------------------------------------------------------------------------------


def test_section_2() -> None:
    """What was inserted stands around what was replaced: w y z."""
    assert ask('for $t in stream("s")/root/text() return string($t)', SECTION_2) == "w y z"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("a/b", [("1", "<b>X</b>"), ("2", "<b>Y</b>"), ("3", "<b>Z</b>"), ("4", "<b>W</b>")]),
        ("a#1/b", [("4", "<b>Z</b>")]),
        ("a#1/b#2", [("4", "<b>X</b>")]),  # the paper's Z is a slip (LAWS 5.4)
        ("a/b#1", [("2", "<b>X</b>"), ("3", "<b>Y</b>"), ("4", "")]),
        ("a/b#[1]", [("1", "<b>X</b>"), ("2", "<b>Y</b><b>X</b>"), ("3", "<b>Z</b><b>Y</b>"), ("4", "<b>W</b>")]),
    ],
)
def test_section_3(query: str, expected: list[tuple[str, str]]) -> None:
    """The table of section 3: also while `a` and its region are still open."""
    assert shown(f'stream("s")/root/{query}', SECTION_3) == expected


# --- LAWS, cases 26 to 32 -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("qualifier", "expected"), [("?3", "<e>Y</e>"), ("?3.5", "<e>X</e>"), ("?4.5", ""), ("?[3]", "<e>Y</e>")]
)
def test_case_26(qualifier: str, expected: str) -> None:
    """A version lives from its update's time until just before its replacement's; nothing lives before it came."""
    stream = region("1", "<e>X</e>", "1") + replaced("1", "<e>Y</e>", "2") + heartbeat("5")
    assert ask(f'stream("s")/root/e{qualifier}', stream) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [("a#1/b", "<b>Y</b>"), ("a#1/b#1", "<b>X</b>"), ("a#1/b?8.5", "<b>X</b>"), ("a#1/b?2", "")],
)
def test_case_27(query: str, expected: str) -> None:
    """A nested life is cut to its parent's, and inside an old version the newest that lived in it shows."""
    stream = region("a", "<a>" + region("b", "<b>X</b>") + "</a>") + replaced("b", "<b>Y</b>", "2")
    stream += replaced("a", "<a/>", "4") + heartbeat("10")
    assert ask(f'stream("s")/root/{query}', stream) == expected


def test_case_28() -> None:
    """A deletion is a version without content, and counts."""
    deleted = region("1", "<e>X</e>", "1") + replaced("1", "", "3")
    assert ask('stream("s")/root/e', deleted) == ""
    assert ask('stream("s")/root/e#1', deleted) == "<e>X</e>"
    again = deleted + replaced("1", "<e>Y</e>", "5")
    assert ask('stream("s")/root/e#1', again) == ""
    assert ask('stream("s")/root/e#[2]', again) == "<e>Y</e><e>X</e>"


def test_case_29() -> None:
    """Of several insertions at one anchor the latest stands nearest, whatever version shows."""
    stream = region("x", "<e>x</e>")
    stream += '<s:after target="x" id="z1"><e>z1</e></s:after><s:after target="x" id="z2"><e>z2</e></s:after>'
    stream += '<s:before target="x" id="w1"><e>w1</e></s:before><s:before target="x" id="w2"><e>w2</e></s:before>'
    stream += replaced("x", "<e>y</e>")
    assert ask('for $e in stream("s")/root/e return string($e)', stream) == "w1 w2 y z2 z1"


def test_case_30() -> None:
    """A maximum goes back to the largest of the others when its own element changes."""
    stream = region("1", "<n>9</n>", "1") + "<n>5</n><n>7</n>" + replaced("1", "<n>1</n>", "2")
    assert shown('max(stream("s")/root/n)', stream) == [("1", "9"), ("2", "7")]


def test_case_31() -> None:
    """A replacement that names any id of the chain replaces its newest version; equal times do not matter."""
    stream = '<s:mutable id="3"><b>X</b></s:mutable><s:replace target="3" id="4"><b>Y</b></s:replace>'
    stream += '<s:replace target="3"><b>Z</b></s:replace>'
    answers = [ask(f'stream("s")/root/{query}', stream) for query in ("b", "b#1", "b#2", "b#3")]
    assert answers == ["<b>Z</b>", "<b>Y</b>", "<b>X</b>", ""]


def test_case_32() -> None:
    """Qualifiers work chain by chain: a chain that was not replaced has no earlier version to show."""
    stream = "<a>" + region("1", "<b>1</b>") + region("2", "<b>2</b>") + "</a>" + replaced("2", "<b>3</b>")
    assert ask('stream("s")/root/a/b#1', stream) == "<b>2</b>"


# --- which chains count (LAWS 5.4) ----------------------------------------------------------------------------


def test_a_result_outside_any_chain_has_version_0_only() -> None:
    """It is there for `#0` and windows, and for a time at which it had come."""
    stream = f'<b s:at="2">1</b>{heartbeat("5")}'
    answers = [ask(f'stream("s")/root/b{each}', stream) for each in ("#0", "#[3]", "?[1]", "?3", "#1", "?4")]
    assert answers == ["<b>1</b>"] * 4 + [""] * 2


def test_a_chain_inside_a_result_does_not_count() -> None:
    """What changes inside a `b` makes no version of it, also where it is a `b` itself."""
    stream = "<b>" + region("1", "<b>X</b>") + "</b>" + replaced("1", "<b>Y</b>", "2")
    assert ask('count(stream("s")//b#1)', stream) == "0"
    assert ask('stream("s")//b#0', stream) == ask('stream("s")//b', stream) == "<b><b>Y</b></b><b>Y</b>"


def test_a_result_inside_another_goes_with_it() -> None:
    """An old version is seen through the path: its inner results are there, as they last were."""
    inner = "<b>o" + region("2", "<b>i</b>") + "</b>"
    stream = region("1", inner) + replaced("2", "<b>j</b>", "2") + replaced("1", "<b/>", "3")
    assert ask('for $b in stream("s")//b#1 return string($b)', stream) == "oj j"


def test_a_version_is_seen_through_the_path() -> None:
    """What else was in a version does not show, and predicates before the qualifier hold for each version."""
    stream = region("1", "<a>1</a><b>2</b><c><b>no</b></c>") + replaced("1", "<b>9</b>", "2")
    assert ask('stream("s")//b#1', stream) == "<b>2</b>"
    assert ask('stream("s")/root/b[. > 5]#1', stream) == ""
    assert ask('stream("s")/root/b[. < 5]#[1]', stream) == "<b>2</b>"


def test_chains_directly_around_one_another_each_give_their_version() -> None:
    """A region around others that was never replaced hides nothing; one that was gives its own old version too."""
    stream = region("all", region("1", "<t>A</t>") + region("2", "<t>B</t>")) + replaced("2", "<t>C</t>", "2")
    assert ask('stream("s")/root/t#1', stream) == "<t>B</t>"
    stream += replaced("all", region("3", "<t>D</t>", "3"), "3")
    assert ask('stream("s")/root/t#1', stream) == "<t>A</t><t>C</t>"
    stream += replaced("3", "<t>E</t>", "4")
    assert ask('stream("s")/root/t#1', stream) == "<t>D</t><t>A</t><t>C</t>"
    assert ask('stream("s")/root/t?1.5', stream) == "<t>A</t><t>C</t>"


def test_an_update_of_what_is_gone_is_never_seen() -> None:
    """A region in a replaced version is known and may be updated; it lived no longer."""
    stream = region("a", "<a>" + region("b", "<b>X</b>") + "</a>") + replaced("a", "<a/>", "2")
    asked = Asked('(stream("s")/root/a#1/b, stream("s")/root/a#1/b#1)', s=stream + replaced("b", "<b>Y</b>", "3"))
    assert asked.answer() == "<b>X</b>"
    assert not asked.documents["s"].admission.dead


def test_variables_and_the_context_item_have_versions() -> None:
    """`$x#1` is what stood in the chain around it before, under the same name."""
    stream = region("1", "<t>1</t>") + "<t>2</t>" + replaced("1", "<u/><t>3</t>", "2")
    assert (
        ask('for $t in stream("s")/root/t return <p>{ $t, $t#1 }</p>', stream)
        == "<p><t>3</t><t>1</t></p><p><t>2</t></p>"
    )
    assert ask('stream("s")/root/t[.#1 = 1]', stream) == "<t>3</t>"
    assert ask('for $t in stream("s")/root/t return $t#0', stream) == "<t>3</t><t>2</t>"


def test_versions_of_an_entry_are_entries() -> None:
    """From an old version a step may lead to the newest one; that is given once, whoever led there."""
    stream = region("1", "<t>1</t><t>2</t>") + replaced("1", "<t>3</t>", "2")
    assert ask('stream("s")/root/t#1/self::t#0', stream) == "<t>3</t>"
    assert ask('stream("s")/root/t#1/self::t#[1]', stream) == "<t>3</t><t>1</t><t>2</t>"
    assert ask('stream("s")/root/t#[1]/self::t?0', stream) == "<t>3</t>"
    assert ask('(stream("s")/root/t#1)?[0]', stream) == "<t>3</t>"


def test_attributes_live_with_their_element() -> None:
    """An attribute stands in no chain of its own."""
    stream = region("1", '<t k="1"/>') + replaced("1", '<t k="2"/>', "2") + heartbeat("3")
    assert ask('for $k in stream("s")/root/t#1/@k return string($k)', stream) == "1"
    assert ask('count(stream("s")/root/t/@k#1)', stream) == "0"
    assert ask('count(stream("s")/root/t/@k?1.5)', stream) == "0"
    assert ask('count(stream("s")/root/t/@k?1)', stream) == "1"


def test_text_has_versions() -> None:
    """A region may stand around text."""
    stream = "<q>" + region("1", "10") + "</q>" + replaced("1", "12", "2")
    assert ask('for $q in stream("s")/root/q return <c>{ $q/text(), "-", $q/text()#1 }</c>', stream) == "<c>12-10</c>"
    assert ask('stream("s")/root/q[. >= text()#1 * 1.1]', stream) == "<q>12</q>"


# --- what is no path ------------------------------------------------------------------------------------------


def test_an_expression_over_the_document_of_then() -> None:
    """`(e)?t` is what `e` was, with its variables as they were; what had not come is not there."""
    stream = region("1", "<n>1</n>", "1") + replaced("1", "<n>5</n>", "2") + '<n s:at="3">7</n>' + heartbeat("4")
    assert ask('(sum(stream("s")/root/n))?1', stream) == "12"
    assert ask('(sum(stream("s")/root/n))?1.5', stream) == "5"
    assert ask('(sum(stream("s")/root/n))?2.5', stream) == "1"
    assert ask('(sum(stream("s")/root/n))?4', stream) == "0"
    asking = 'for $n in stream("s")/root/n return <was>{ (string($n))?1.5 }</was>'
    assert ask(asking, stream) == "<was>5</was><was/>"
    inside = "<q>" + region("2", "<n>1</n>", "1") + "</q>" + replaced("2", "<n>5</n>", "2") + heartbeat("3")
    assert ask('for $q in stream("s")/root/q return <was>{ ($q/n + 1)?1.5 }</was>', inside) == "<was>2</was>"
    assert ask('stream("s")/root/q[(n + 1)?1.5 = 2]', inside) == "<q><n>5</n></q>"
    assert ask('(count(stream("s")/root/q/n#1))?1', inside) == "1"
    assert ask('(count(stream("s")/root/q/n#1))?1.5', inside) == "0"


# --- copies ---------------------------------------------------------------------------------------------------


def test_copies_show_the_current_content() -> None:
    """Without regions, and without their namespace; declarations on a region or an update go with its content."""
    stream = "<a>" + region("1", "<b>1</b>") + "<c/></a>"
    stream += '<s:replace target="1" xmlns:p="urn:p" at="2"><p:b k="2"/></s:replace>'
    assert ask('stream("s")/root/a', stream) == '<a><p:b xmlns:p="urn:p" k="2"/><c/></a>'
    assert ask('<x>{ stream("s")/root/* }</x>', stream) == '<x><a><p:b xmlns:p="urn:p" k="2"/><c/></a></x>'


def test_an_old_version_is_copied_as_it_last_was() -> None:
    """Not as it began, and not with what came when it was gone."""
    stream = region("a", "<a>" + region("b", "<b>X</b>") + "</a>") + replaced("b", "<b>Y</b>", "2")
    assert ask('stream("s")/root/a#1', stream + replaced("a", "<a/>", "3")) == "<a><b>Y</b></a>"


# --- errors (LAWS 2.4) ----------------------------------------------------------------------------------------


def test_an_error_concerns_one_entry() -> None:
    """What cannot be computed for one entry comes out for the others, and the dead letters say why."""
    stream = region("1", "<i><n>1</n></i>") + "<i><n>x</n></i><i><n>3</n></i>"
    for query in ('for $i in stream("s")/root/i return $i/n + 1', 'for $i in stream("s")/root/i#0 return $i/n + 1'):
        asked = Asked(query, s=stream)
        assert asked.answer() == "2 4"
        assert [(each.place.offset, each.code, each.subscription) for each in asked.dead] == [(1, "FORG0001", "q")]
    asked = Asked('stream("s")/root/i[n + 1 > 0]/n', s=stream)
    assert asked.answer() == "<n>1</n><n>3</n>"
    assert len(asked.dead) == 1


def test_an_error_heals_with_an_update() -> None:
    """The display follows: gone while it fails, back when it does not."""
    stream = region("1", "<n>1</n>", "1") + replaced("1", "<n>x</n>", "2") + replaced("1", "<n>2</n>", "3")
    asked = Asked('for $n in stream("s")/root/n return $n + 1', s=stream)
    assert [text for _, text in asked.timeline()] == ["2", "", "3"]
    assert len(asked.dead) == 1
    whole = Asked('sum(stream("s")/root/n)', s=stream)
    assert [text for _, text in whole.timeline()] == ["1", "", "2"]
    assert [each.code for each in whole.dead] == ["FORG0001"]


def test_what_fails_in_entries_is_told_also_where_the_whole_fails() -> None:
    """An attribute alone cannot be shown, so nothing is; the entry that has failed is set aside all the same."""
    query = '(for $x in stream("s")/root/a return $x/v + 1, stream("s")/root/a/@k)'
    asked = Asked(query, s='<a k="1" s:at="1"><v>x</v></a>')
    assert asked.timeline() == []
    assert [each.code for each in asked.dead] == ["FORG0001", "SENR0001"]


def test_an_error_in_a_pair_concerns_the_pair() -> None:
    """Only the pair that fails is set aside, under its last entry."""
    asked = Asked(
        'for $x in stream("x")/root/i#0, $y in stream("y")/root/i#0 return <p>{ $x div $y }</p>',
        x="<i>1</i><i>2</i>",
        y="<i>0</i><i>2</i>",
    )
    assert asked.answer() == "<p>INF</p><p>0.5</p><p>INF</p><p>1</p>"
    asked = Asked(
        'for $x in stream("x")/root/i#0, $y in stream("y")/root/i#0 where $x < 2 or $y < 5 return <p>{ $x + $y }</p>',
        x="<i>1</i><i>2</i>",
        y="<i>u</i><i>4</i>",
    )
    assert asked.answer() == "<p>5</p><p>6</p>"
    assert [str(each.place) for each in asked.dead] == ["y/text at byte 0", "y/text at byte 0"]


# --- several streams ------------------------------------------------------------------------------------------


def test_now_is_the_time_of_the_latest_element() -> None:
    """Of all streams that a query reads."""
    asked = Asked(
        '(stream("x")/root/e?1, stream("y")/root/e?1)',
        x=region("1", "<e>X</e>", "1") + replaced("1", "<e>Z</e>", "4"),
        y='<e s:at="3">Y</e>',
    )
    assert [(str(at), text) for at, text in asked.timeline()] == [("3", "<e>X</e>"), ("4", "<e>X</e><e>Y</e>")]


def test_partitions_are_merged_and_have_ids_of_their_own() -> None:
    """An id means a region of its own partition; entries come in the order of their times."""
    one = region("1", "<e>a</e>", "1") + replaced("1", "<e>b</e>", "4")
    two = region("1", "<e>c</e>", "2") + replaced("1", "<e>d</e>", "3")
    asked = Asked('for $e in stream("s")/root/e return string($e)', s=[one, two])
    assert [(str(at), text) for at, text in asked.timeline()] == [("1", "a"), ("2", "a c"), ("3", "a d"), ("4", "b d")]
