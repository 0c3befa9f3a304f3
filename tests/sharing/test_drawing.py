"""The picture of sharing, `anabranch explain --svg`: what it shows, to whom it says what, and that it is well made."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from random import Random
from xml.etree import ElementTree

import pytest

import papers
from anabranch.cli import main
from anabranch.sharing.explain.drawing import draw
from anabranch.sharing.explain.scene import MOST, MOST_CARDS, scene
from anabranch.sharing.explain.svg import shortened, wrapped
from anabranch.sharing.explain.text import Explained
from anabranch.sharing.rules.derive import derive_forest
from sharing.making import checked, query

TOP = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"
TAGS = {"svg", "g", "title", "rect", "text", "path", "circle"}
Box = tuple[float, float, float, float]


def explained(**texts: str) -> list[Explained]:
    """Queries by name, without schemas."""
    return [Explained(name, derive_forest(checked(text), {}, text)) for name, text in texts.items()]


def words(picture: str) -> list[str]:
    """All lines of text that a picture shows."""
    return ["".join(each.itertext()) for each in ElementTree.fromstring(picture).iter(f"{SVG}text")]


def boxes(picture: str) -> Iterator[Box]:
    """The frames of a picture: left, upper, right and lower edge."""
    root = ElementTree.fromstring(picture)
    for group in root.findall(f"{SVG}g[@transform]"):
        frame = group.find(f"{SVG}rect[@stroke]")
        if frame is not None:
            x, y = map(float, re.findall(r"[\d.]+", group.attrib["transform"]))
            yield x, y, x + float(frame.attrib["width"]), y + float(frame.attrib["height"])


def assert_well_made(picture: str) -> None:
    """It is XML, has no more than it needs, and its frames lie inside and apart."""
    root = ElementTree.fromstring(picture)
    assert {each.tag.removeprefix(SVG) for each in root.iter()} <= TAGS
    names = {name for each in root.iter() for name in each.attrib}
    assert not [name for name in names if name.startswith("on") or "href" in name or name == "style"]
    _, _, across, down = map(float, root.attrib["viewBox"].split())
    found = list(boxes(picture))
    assert found
    for left, top, right, bottom in found:
        assert 0 < left < right < across
        assert 0 < top < bottom < down
    for first, second in combinations(found, 2):
        beside = first[2] <= second[0] or second[2] <= first[0]
        below = first[3] <= second[1] or second[3] <= first[1]
        assert beside or below


def test_the_papers_selections() -> None:
    """q1 to q4: one tree for all, every element with a bullet for each that needs it, and what each found."""
    queries = explained(**{name: papers.SHARING[name] for name in ("q1", "q2", "q3", "q4")})
    picture = draw(queries)
    assert_well_made(picture)
    assert {"q1", "q2", "q3", "q4", "for 4 queries"} <= set(words(picture))
    [sent] = scene(queries, {}).sent
    assert [use.says for use in sent.uses] == [
        ("asks first",),
        ("relaxes the windows", "widens avg(en)"),
        ("opens the windows",),
        ("adds phc",),
    ]
    item = ("photons", "photon")
    assert ["".join(use.mark(0, (*item, name)) for use in sent.uses) for name in ("en", "phc")] == ["••••", "•"]


def test_the_papers_joins() -> None:
    """q5 and q6 share a join, and the joins of q7 and q8 its windows."""
    picture = draw(explained(**{name: papers.SHARING[name] for name in ("q5", "q6", "q7", "q8")}))
    assert_well_made(picture)
    shown = words(picture)
    assert shown.count("step join") == 3
    assert shown.count("has its own join") == 2
    assert {"shares the tuples", "widens en", "adds det_time"} <= set(shown)
    assert sum(line.startswith("shares windows of") for line in shown) == 2


def test_a_join_over_larger_windows() -> None:
    """Who keeps a part of the tuples has SELECTJOINRESULT at its line, and the join says when else it fires."""
    larger = papers.Q6.replace("diff 10 step 5", "diff 20 step 5")
    shown = words(draw(explained(q5=papers.Q5, larger=larger)))
    assert "SELECTJOINRESULT(10, 20)" in shown
    assert "also fires for windows of 10 and 20" in shown


def test_a_match_is_said() -> None:
    """The other way round q3 finds all it needs in what q4 asked for."""
    assert "matches" in words(draw(explained(q4=papers.Q4, q3=papers.Q3)))


def test_equal_queries_stand_together() -> None:
    """Queries that need the same are one card, however their conditions are written and their answers look."""
    swapped = papers.Q3.replace("$p/en >= 1.3\n    and ", "").replace("  return", "    and $p/en >= 1.3\n  return")
    texts = {"q3": papers.Q3, "q4": papers.Q4, "swapped": swapped, "q5": papers.Q5, "twin": papers.Q5}
    picture = draw(explained(**texts))
    assert_well_made(picture)
    assert {"q3, swapped", "q5, twin", "read alike photons", "for 3 queries", "for 2 queries"} <= set(words(picture))


def test_many_queries_are_counted() -> None:
    """Of thirty queries a dozen are drawn, and the others have a card together; so have those left out before."""
    text = "for $p in stream('photons')/photons/photon where $p/en > {} return $p/phc"
    queries = explained(**{f"query-{number}": text.format(number) for number in range(30)})
    picture = draw(queries, {"photons": 9_970})
    assert_well_made(picture)
    shown = words(picture)
    assert [name for name in shown if name.startswith("query-")] == [f"query-{number}" for number in range(MOST)]
    assert {f"for {MOST} of 10,000 queries", "and 9,988 more queries of photons"} <= set(shown)


def test_a_stream_is_shown_beside_a_full_one() -> None:
    """A join is drawn for the sake of a stream that has room, and where there is none at all its streams are named."""
    text = "for $p in stream('photon1')/photons/photon where $p/en > {} return $p/phc"
    queries = explained(**{f"query-{number}": text.format(number) for number in range(15)}, q5=papers.Q5)
    picture = draw(queries)
    assert_well_made(picture)
    assert {"q5", "photon2", "and 3 more queries of photon1"} <= set(words(picture))
    single = {f"s{n}": f"for $p in stream('s{n}')/r/i return $p/a" for n in range(MOST_CARDS + 2)}
    shown = words(draw(explained(**single)))
    assert f"of streams that are not shown: s{MOST_CARDS}, s{MOST_CARDS + 1}" in " ".join(shown)


def test_streams_that_have_nothing_to_do_with_each_other() -> None:
    """Each has its own part of the picture, and a query without a tree says why."""
    other = papers.Q4.replace('stream("photons")', 'stream("others")')
    queries = [*explained(q3=papers.Q3, other=other), Explained("none", None, "a reason")]
    picture = draw(queries)
    assert_well_made(picture)
    assert {"photons", "others", "a reason"} <= set(words(picture))
    assert len(list(scene(queries, {}).parts())) == 3


def test_a_join_and_a_query_of_one_of_its_streams() -> None:
    """They hang together, and the query's line passes the join by."""
    one = papers.Q4.replace('stream("photons")', 'stream("photon1")')
    queries = explained(q5=papers.Q5, interval=papers.INTERVAL_JOIN, one=one)
    assert_well_made(draw(queries))
    [part] = scene(queries, {}).parts()
    assert [card.names for card in part.cards] == [("one",), ("q5",), ("interval",)]


def test_the_whole_stream_is_needed_in_part() -> None:
    """Where everything is sent, those that need some of it have a ring."""
    [sent] = scene(explained(part=papers.Q3, whole="stream('photons')"), {}).sent
    assert [use.mark(0, ()) for use in sent.uses] == ["◦", "•"]
    assert sent.uses[1].says == ("adds everything",)


def test_names_and_strings_are_text() -> None:
    """Whatever a user writes is shown and does nothing; what no document may hold stands there as a reference."""
    name = "<script>&\"'</script>]]>\x07\u202e\ud800\ufffe"
    text = "for $p in stream('<i>&amp;')/r/i[k = '<script>alert(1)</script> ]]&gt;'] return $p/a"
    [query] = explained(query=text)
    picture = draw([Explained(name, query.forest), Explained("none", None, "<b>"), *explained(other=text + "[. > 3]")])
    assert_well_made(picture)
    picture.encode()
    shown = words(picture)
    titles = [each.text for each in ElementTree.fromstring(picture).iter(f"{SVG}title")]
    visible = "<script>&\"'</script>]]>&#7;&#8238;&#55296;&#65534;"
    assert visible in titles or visible in shown
    assert any("<script>alert(1)</script>" in line for line in shown)
    assert "<b>" in shown
    assert "<i>&" in shown


def test_long_texts_are_cut_and_kept() -> None:
    """What has no room is cut, and is there in full for whoever points at it."""
    condition = " or ".join(f"$p/a_long_name_for_an_element > {number}" for number in range(40))
    texts = {"q": f"for $p in stream('s')/r/i where {condition} return $p/{'x' * 100}"}
    picture = draw(explained(**texts))
    assert_well_made(picture)
    assert max(map(len, words(picture))) < 60
    titles = [each.text or "" for each in ElementTree.fromstring(picture).iter(f"{SVG}title")]
    assert any("x" * 100 in title for title in titles)
    assert any(title.count("a_long_name_for_an_element") == 40 for title in titles)


def test_a_wide_tree_is_bounded() -> None:
    """Of a hundred elements forty are drawn."""
    picture = draw(explained(q=f"for $p in stream('s')/r/i return ({', '.join(f'$p/e{n}' for n in range(100))})"))
    assert_well_made(picture)
    assert "and 61 more elements" in words(picture)


def test_random_queries() -> None:
    """Pictures of all kinds of queries are well made and always the same."""
    random = Random(5)
    for _ in range(6):
        texts = {f"q{number}": query(random) for number in range(random.randrange(2, 9))}
        picture = draw(explained(**texts))
        assert_well_made(picture)
        assert picture == draw(explained(**texts))
        shown = " ".join(words(picture))
        assert all(re.search(rf"\b{name}\b", shown) or "more" in shown for name in texts)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a and b", ["a and b"]),
        ("aaaa > 1 and bbbb > 2", ["aaaa > 1", "and bbbb > 2"]),
        ("aaaaaa bbbbbb cccccc", ["aaaaaa", "bbbbbb …"]),
        ("x" * 30, ["x" * 11 + "…"]),
        ("a > 1 or bbbb > 2 or c > 3 or ddddd > 4", ["a > 1", "or bbbb > 2…"]),
        ("", [""]),
    ],
)
def test_wrapping(text: str, lines: Sequence[str]) -> None:
    """Lines are broken before a connective, else between words, and never longer than they may be."""
    found = wrapped(text, 12, 2)
    assert found == lines
    assert all(len(line) <= 12 for line in found)
    assert shortened("abcdef", 4) == "abc…"


def test_the_command_draws_and_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--svg` adds a picture to what is printed; a place that cannot be written to is an error of usage."""
    file = tmp_path / "q4.xq"
    file.write_text(papers.Q4, encoding="utf-8")
    target = tmp_path / "out.svg"
    assert main(["explain", str(file), "--svg", str(target)]) == 0
    assert 'q4: stream "photons"' in capsys.readouterr().out
    assert_well_made(target.read_text(encoding="utf-8"))
    assert main(["explain", str(file), "--svg", str(tmp_path)]) == 2
    assert "cannot write" in capsys.readouterr().err


def test_the_pictures_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each picture in docs/explain.md is what its command draws, and the queries are the paper's."""
    monkeypatch.chdir(TOP)
    page = Path("docs/explain.md").read_text(encoding="utf-8")
    commands = re.findall(r"```sh\nanabranch (explain .*?)\n```", page, re.S)
    assert len(commands) == 2
    for number, command in enumerate(commands):
        *arguments, target = command.replace("\\\n", " ").split()
        files = [str(file) for each in arguments for file in (sorted(Path().glob(each)) if "[" in each else [each])]
        fresh = tmp_path / f"{number}.svg"
        assert main([*files, str(fresh)]) == 0
        assert fresh.read_bytes() == Path(target).read_bytes()
        assert f"({Path(target).relative_to('docs')})" in page
    for name, text in papers.SHARING.items():
        assert Path(f"docs/queries/{name}.xq").read_text(encoding="utf-8") == text
