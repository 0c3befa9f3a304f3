from __future__ import annotations

from collections.abc import Mapping

import pytest

import papers
from anabranch.stream.photons import photons
from oracle.compare import difference, reference, saxon
from oracle.saxon import canonical

BOOKS = """<library>
<biblio><publisher>Wiley</publisher>
  <books><title>A</title><author><lastname>Smith</lastname></author><price>100</price></books>
  <books><title>B</title><author><lastname>Smith</lastname></author><price>99.50</price></books>
  <books><title>C</title><author><lastname>Jones</lastname></author><price>1</price></books>
</biblio>
<biblio><publisher>Elsevier</publisher>
  <books><title>D</title><author><lastname>Smith</lastname></author><price>2</price></books>
</biblio>
<shelf><biblio><publisher>Wiley</publisher>
  <books><title>E</title><author><lastname>Jones</lastname></author><author><lastname>Smith</lastname></author></books>
  <books><title>F</title><author><lastname>Smith</lastname></author><price>sold out</price></books>
  <books><title>G</title><author><lastname>Smith</lastname></author><price>9.5</price></books>
</biblio></shelf>
</library>"""


def observation(count: int, seed: int) -> str:
    """A document of made-up photons."""
    return f"<photons>{''.join(photons(count, seed))}</photons>"


def agree(query: str, inputs: Mapping[str, str], least: int) -> None:
    """Both give the same, and at least so many elements that it says something."""
    times = dict.fromkeys(inputs, "det_time")
    ours, theirs = reference(query, inputs, times), saxon(query, inputs, times)
    assert ours == theirs, f"reference: {ours[:10_000]}\nsaxon:     {theirs[:10_000]}"
    assert ours.count("</") > least


@pytest.mark.parametrize("name", ["q1", "q2", "q3", "q4"])
def test_queries_over_one_stream(name: str) -> None:
    """Figure 3 of the sharing paper: the reference answers as Saxon does."""
    agree(papers.SHARING[name], {"photons": observation(500, seed=7)}, least=3)


@pytest.mark.parametrize("name", ["q5", "q6", "q7", "q8"])
def test_step_joins(name: str) -> None:
    """Figure 10 of the sharing paper: the reference answers as Saxon does."""
    agree(papers.SHARING[name], {"photon1": observation(60, seed=1), "photon2": observation(60, seed=2)}, least=30)


@pytest.mark.mass
def test_interval_join() -> None:
    """Figure 11 of the sharing paper, as rebuilt: the reference answers as Saxon does."""
    inputs = {"photon1": observation(60, seed=1), "photon2": observation(60, seed=2)}
    agree(papers.INTERVAL_JOIN, inputs, least=100)


def test_books_are_sorted_by_price() -> None:
    """Query 1 of the history paper: no price first, prices as numbers, then text (LAWS 2.3)."""
    assert difference(papers.BOOKS, {"books": BOOKS}) is None
    books = (("E", None), ("G", "9.5"), ("B", "99.50"), ("A", "100"), ("F", "sold out"))
    expected = "".join(
        f"<book><title>{title}</title>{f'<price>{price}</price>' if price else ''}</book>" for title, price in books
    )
    assert reference(papers.BOOKS, {"books": BOOKS}) == canonical(f"<books>{expected}</books>")


def test_snapshot_path() -> None:
    """`./a/b` gives the `b` of its one input, in their order."""
    inputs = {"s": "<a><b>X</b><c><b>no</b></c><b>Y</b></a>"}
    assert difference(papers.SNAPSHOT, inputs) is None
    assert reference(papers.SNAPSHOT, inputs) == canonical("<b>X</b><b>Y</b>")
