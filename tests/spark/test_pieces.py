"""An answer in pieces, one result each: together they are the answer to the byte, none is empty; no Spark needed."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.spark.answers.log import Frame
from anabranch.spark.sinks.pieces import results_in
from anabranch.stream.reading.source import Source
from spark.bare import BareTrunk

ITEMS = [f"<p><x>{number}</x><w>w{number} of &lt;6></w><y/></p>" for number in range(6)]
OVER = 'for $p in stream("s")/root/p '
QUERIES: dict[str, tuple[str, list[str]]] = {
    "elements": (f"{OVER} return $p/x", [f"<x>{n}</x>" for n in range(6)]),
    "framed": (
        f"<all>{{ {OVER} return $p/x }}</all>",
        ["<all><x>0</x>", *(f"<x>{n}</x>" for n in range(1, 6)), "</all>"],
    ),
    "around": (
        f"<all><front/>{{ {OVER} where $p/x > 3 return <r>{{ $p/x }}</r> }}<back/></all>",
        ["<all><front/><r><x>4</x></r>", "<r><x>5</x></r>", "<back/></all>"],
    ),
    "several": (
        f"{OVER} where $p/x > 3 return ($p/x, $p/y)",
        ["<x>4</x>", "<y/>", "<x>5</x>", "<y/>"],
    ),
    "windows": (
        'for $w in stream("s")/root/p |count 2| return <n>{ sum($w/x) }</n>',
        ["<n>1</n>", "<n>5</n>", "<n>9</n>"],
    ),
    "nothing": (f"{OVER} where $p/x > 9 return $p", []),
    "framed nothing": (f"<all>{{ {OVER} where $p/x > 9 return $p }}</all>", ["<all/>"]),
    "some nothing": (f"{OVER} return if ($p/x mod 3 = 0) then $p/x else ()", ["<x>0</x>", "<x>3</x>"]),
    "numbers": (f"{OVER} return $p/x * 2", ["0", " 2", " 4", " 6", " 8", " 10"]),
    "framed numbers": (f"<all>{{ {OVER} return $p/x * 2 }}</all>", ["<all>0", " 2", " 4", " 6", " 8", " 10", "</all>"]),
    "several numbers": (f"{OVER} where $p/x > 4 return ($p/x * 2, $p/x > 2)", ["10", " true"]),
    "strings": (
        f"{OVER} where $p/x > 3 return string($p/w)",
        ["w4 of &lt;6&gt;", " w5 of &lt;6&gt;"],
    ),
    "no text": (f"<all>{{ {OVER} return $p/y/text() }}</all>", ["<all/>"]),
    "words": (f"{OVER} where $p/x > 3 return concat('a', $p/x)", ["a4", " a5"]),
    "mixed": (f"{OVER} where $p/x > 3 return (1, $p/y, 'b c')", ["1", "<y/>", "b c", " 1", "<y/>", "b c"]),
    "namespaces": (
        f'<a:r xmlns:a="urn:a">{{ {OVER} where $p/x > 3 return <a:i>{{ $p/x }}</a:i> }}</a:r>',
        ['<a:r xmlns:a="urn:a"><a:i><x>4</x></a:i>', "<a:i><x>5</x></a:i>", "</a:r>"],
    ),
}


MERGED = {
    "empty strings": f"<all>{{ {OVER} return string($p/y) }}</all>",
    "texts": f"{OVER} return $p/x/text()",
    "texts and values": f"{OVER} return ($p/w/text(), 'a b', $p/x/text())",
}
"""Queries whose results cannot be told from one another in an answer."""


def pieces(trunk: BareTrunk, name: str) -> list[str]:
    """What iterating a subscription gives, which is all that the engine does with its answer log."""
    subscription = trunk.log.subscription(name)
    assert subscription is not None
    frame = Frame.of(subscription)
    found: list[str] = []
    for manifest in trunk.log.manifests.since(0):
        for chunk in trunk.log.chunks(manifest, subscription.id):
            found += frame.results(chunk, trunk.log.text(chunk))
    if not found:
        return [frame.empty] if frame.empty else []
    return [frame.opening + found[0], *found[1:], *([frame.closing] if frame.closing else [])]


@pytest.mark.parametrize("epoch_bytes", [1, 120, 1 << 20])
def test_a_piece_is_one_result(tmp_path: Path, epoch_bytes: int) -> None:
    """Whatever the epochs: an element, a value, or text between; together they are the answer."""
    (tmp_path / "in").write_text("".join(f"{each}\n" for each in ITEMS))
    trunk = BareTrunk(tmp_path / "state", [Source("s", tmp_path / "in", "lines")], Random(1), finite=False)
    trunk.run({**MERGED, **{name: text for name, (text, _) in QUERIES.items()}}, [epoch_bytes], [1, 2])
    for name in MERGED:
        assert "".join(pieces(trunk, name)) == trunk.answer(name), name
        assert all(pieces(trunk, name)), name
    for name, (_, expected) in QUERIES.items():
        found = pieces(trunk, name)
        assert "".join(found) == trunk.answer(name), name
        assert all(found), name
        assert found == expected, name


def test_a_display_is_in_pieces_too(tmp_path: Path) -> None:
    """Its update stream, element by element."""
    space = 'xmlns:s="urn:anabranch:stream"'
    (tmp_path / "in").write_text(
        f'<s:mutable {space} id="1" at="1"><p><x>1</x></p></s:mutable>\n'
        f'<s:replace {space} id="2" target="1" at="2"><p><x>2</x></p></s:replace>\n'
    )
    source = Source("s", tmp_path / "in", "lines", updates=True)
    trunk = BareTrunk(tmp_path / "state", [source], Random(1), finite=False)
    trunk.run({"q": f"<all>{{ {OVER} return $p/x }}</all>"}, [1 << 20], [1])
    found = pieces(trunk, "q")
    subscription = trunk.log.subscription("q")
    assert subscription is not None
    assert "".join(found) == "".join(trunk.log.answer(subscription).pieces())
    assert len(found) > 4
    assert all(each.strip() for each in found)


PARTS = st.lists(
    st.sampled_from(
        ["<a/>", "<a>1 2<b/></a>", "<!-- c -->", "<?p i?>", "1", " ", "\n", "x y", "é&amp;", "<s:x s:y='1'/>"]
    )
)


@given(PARTS, st.booleans())
def test_nothing_is_lost_between_results(parts: list[str], values: bool) -> None:
    """Results put together are the text, none is empty, and no element is in one with another."""
    text = "".join(parts)
    found = results_in(text, values=values)
    assert "".join(found) == text
    assert all(found)
    assert all(each.strip() for each in found) or len(found) == 1
    markup = [part for part in parts if part.startswith("<")]
    assert [each.strip() for each in found if each.lstrip().startswith("<")] == [each.strip() for each in markup]
