"""One question in three spellings, with paths, with dots and in SQL, has one answer (LAWS 7, 8).

Plain Python judges all three (`judge.py`), and SaxonC-HE those with paths, as far as it can be asked.
Where SQL and dots are the same query, one computation serves both (LAWS 3.7).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mass import Mass, some
from spellings.asking import Tally, check_case, check_ended
from spellings.elements import check_elements

CASES, ENDED, ELEMENTS = 3_000, 3_000, 2_000


def _none(wrong: list[str]) -> None:
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.mass
@pytest.mark.parametrize("number", some(range(6)))
def test_three_spellings(tmp_path: Path, number: int) -> None:
    """Each spelling gives the rows that Python computes, and sets aside what it cannot say; most can be asked with
    paths, and many queries in SQL are the one with dots."""
    tally = Tally()
    _none(check_case(number, tmp_path, tally))
    assert tally.questions == sum(tally.forms.values()) == 11
    assert tally.by_paths > 0
    assert tally.twins > 0


def test_very_many_questions(tmp_path: Path, mass: Mass) -> None:
    """The same for thousands of records and questions."""
    tally = Tally()
    for number in mass.cases(CASES):
        _none(check_case(number, tmp_path, tally))
    print(tally)
    assert tally.questions == 11 * mass.done or not mass.whole


@pytest.mark.mass
@pytest.mark.parametrize("number", some(range(4)))
def test_streams_that_end(tmp_path: Path, number: int) -> None:
    """The reference and the trunk of this process give the same bytes, and they are what Python computes."""
    _none(check_ended(number, tmp_path, Tally()))


def test_very_many_streams_that_end(tmp_path: Path, mass: Mass) -> None:
    """The same for thousands of records and questions."""
    for number in mass.cases(ENDED):
        _none(check_ended(number, tmp_path, Tally()))


def test_on_spark(tmp_path: Path, spark: SparkSession) -> None:
    """Spark gives the same as this process."""
    _none(check_case(1, tmp_path, Tally(), spark, count=12))


@pytest.mark.mass
@pytest.mark.parametrize("number", some(range(4)))
def test_paths_by_saxon(tmp_path: Path, number: int) -> None:
    """With elements as rows, what paths over lines of JSON find is what SaxonC-HE finds in the elements of XML."""
    asked, wrong = check_elements(number, tmp_path)
    _none(wrong)
    assert asked >= 6


def test_very_many_paths_by_saxon(tmp_path: Path, mass: Mass) -> None:
    """The same for thousands of records and questions."""
    for number in mass.cases(ELEMENTS):
        _none(check_elements(number, tmp_path)[1])
