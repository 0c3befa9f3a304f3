"""What is reckoned from a sample is what the sample's own flow has, in bytes."""

from __future__ import annotations

from fractions import Fraction

import pytest

import papers
from anabranch.bench.workloads.paper import workload
from anabranch.law import text_input
from anabranch.network.estimates import PROGRESS, YES, Estimates, Sample, judged_value
from anabranch.network.needs import need_of, whole
from anabranch.predicate import Compare, Operator, Path, Term, and_, compare, difference, not_, or_
from anabranch.sharing.render import render
from anabranch.sharing.tree import PropertyTree
from network.making import SCHEMA, document, sample
from network.simulation import alone

ESTIMATES = Estimates({name: sample(name, seed) for seed, name in ((1, "photons"), (1, "photon1"), (2, "photon2"))})


def tree(text: str) -> PropertyTree:
    """What a query needs of its one stream."""
    [found] = need_of(text, {"photons": SCHEMA}).inputs
    return found


def test_a_stream_as_it_comes_in() -> None:
    """All bytes of its items, at the pace of their times."""
    photons = sample()
    size = len(document(1, 400)) - len("<photons></photons>")
    assert ESTIMATES.rate(whole("photons")) == pytest.approx(size / 400 * photons.rate + PROGRESS)
    assert 3.5 < photons.rate < 4.5


@pytest.mark.parametrize("text", [papers.Q3, papers.Q4, *workload(4, 2)])
def test_items(text: str) -> None:
    """Over the sample itself the estimate is exact: the bytes that the abstract query gives."""
    form = tree(text)
    given = alone(render(form), {"photons": document(1, 400)})
    size = len(given.removeprefix("<photons>").removesuffix("</photons>"))
    assert ESTIMATES.rate(form) - PROGRESS == pytest.approx(size / 400 * sample().rate)


def test_predicates_that_hang_together() -> None:
    """Where one follows from the other, both together hold as often as the narrower; opposites hold for all."""
    photons = sample()
    en = Term("", Path(("photons", "photon", "en")))
    low, high = compare(en, ">=", 1), compare(en, ">=", 2)
    assert photons.sent(and_(low, high)).sum() == photons.sent(high).sum() < photons.sent(low).sum()
    assert photons.sent(or_(low, not_(low))).all()


def test_verdicts_are_those_of_the_law() -> None:
    """No value is a no, a word an error, and one value of several is enough (LAWS 2.4)."""
    items = "<a>1</a>", "", "<a>x</a>", "<a>x</a><a>9</a>", "<a>1</a><b>4</b>"
    arrivals = text_input(f"<r>{''.join(f'<i>{each}</i>' for each in items)}</r>").arrivals
    found = Sample("s", [each.item for each in arrivals])
    a, b = (Term("", Path(("r", "i", name))) for name in "ab")
    assert found.verdicts(compare(a, ">", 5)).tolist() == [0, 0, 1, YES, 0]
    assert found.verdicts(not_(compare(a, ">", 5))).tolist() == [YES, YES, 1, 0, YES]
    assert found.verdicts(compare(a, "=", "x")).tolist() == [0, 0, YES, YES, 0]
    assert found.verdicts(difference(b, ">=", a)).tolist() == [0, 0, 0, 0, YES]
    assert found.verdicts(difference(b, "<", a, 2)).tolist() == [0, 0, 0, 1, 0]
    assert found.verdicts(difference(b, "<=", a, 3)).tolist() == [0, 0, 0, 1, YES]


def test_windows() -> None:
    """q2 has a window each ten seconds, q1 one in forty: their bytes do not depend on the photons in them."""
    q1, q2 = (ESTIMATES.rate(tree(text)) - PROGRESS for text in (papers.Q1, papers.Q2))
    assert q2 == pytest.approx(4 * q1, rel=0.02)
    assert q2 < 10


def test_windows_that_are_mostly_empty_come_more_seldom() -> None:
    """A photon of a rare kind fills few of many short windows."""
    often, seldom = (
        tree(papers.Q2.replace("diff 20 step 10", "diff 1 step 1").replace("ra >= 120.0", f"ra >= {ra}"))
        for ra in ("120.0", "137.9")
    )
    assert ESTIMATES.rate(seldom) - PROGRESS < (ESTIMATES.rate(often) - PROGRESS) / 4


def test_joins() -> None:
    """Tuples are about as many as the join makes of the samples in their time."""
    schemas = {"photon1": SCHEMA, "photon2": SCHEMA}
    streams = {"photon1": document(1, 50), "photon2": document(2, 50)}
    short = papers.Q6.replace("diff 10 step 5", "diff 3 step 1").replace("diff 20 step 10", "diff 2 step 1")
    for text in (short, papers.INTERVAL_JOIN.replace("10", "2")):
        join = need_of(text, schemas).join
        assert join is not None
        made = alone(text, streams).count("<result>") / (50 / sample().rate)
        assert ESTIMATES.tuples_per_second(join) == pytest.approx(made, rel=0.4)


def test_nothing_is_known_of_an_empty_sample() -> None:
    """A flow of a stream without items has its progress, and no more."""
    empty = Estimates({"photons": Sample("photons", ())})
    assert empty.rate(tree(papers.Q1)) == empty.rate(tree(papers.Q3)) == PROGRESS


def test_comparisons_by_rank_are_those_by_the_law() -> None:
    """Whatever is at a path, one number or several, words or nothing, each item is judged as it is alone."""
    values = ("1", "1.0", "2.5", "-3", "1e2", "INF", "NaN", "much", "", "0.1")
    items = [f"<i><v>{each}</v></i>" for each in values] + [
        "<i/>",
        "<i><v>1</v><v>7</v></i>",
        "<i><v>7</v><v>x</v></i>",
    ]
    known = [each.item for each in text_input(f"<r>{''.join(items)}</r>").arrivals]
    found = Sample("s", known)
    texts = found.texts(("r", "i", "v"))
    operators: tuple[Operator, ...] = ("=", "!=", "<", "<=", ">", ">=")
    for operator in operators:
        for constant in (Fraction(1), Fraction(5, 2), Fraction(-3), Fraction(1, 3), Fraction(200)):
            atom = compare(Term("", Path(("r", "i", "v"))), operator, constant)
            assert isinstance(atom, Compare)
            assert found.verdicts(atom).tolist() == [judged_value(atom, each) for each in texts]
