from __future__ import annotations

import re
from pathlib import Path

TOP = Path(__file__).parent.parent


def rules() -> set[str]:
    """The numbers of all laws: sections (`3`) and the rules in them (`3.2`)."""
    found: set[str] = set()
    section = ""
    for line in (TOP / "docs/laws.md").read_text(encoding="utf-8").splitlines():
        if heading := re.match(r"## (\d+)\. ", line):
            section = heading[1]
            found.add(section)
        elif rule := re.match(r"(\d+)\. ", line):
            found.add(f"{section}.{rule[1]}")
    return found


def test_the_laws_keep_their_numbers() -> None:
    """Comments cite laws by number, so each section has the rules 1 to n, and none is lost."""
    counts = {"1": 6, "2": 9, "3": 13, "4": 9, "5": 12, "7": 6, "8": 8}
    assert rules() == {"6", *counts} | {f"{each}.{n}" for each, last in counts.items() for n in range(1, last + 1)}


def test_the_cases_keep_their_numbers() -> None:
    """Tests are named after the cases of section 6, so their numbers grow, none stands twice, and each row has cells.

    Numbers may be left out, where they were set apart for cases that did not come.
    """
    cells = [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in (TOP / "docs/laws.md").read_text(encoding="utf-8").splitlines()
        if re.match(r"\| \d", line)
    ]
    numbers = [int(row[0]) for row in cells]
    assert numbers == sorted(set(numbers))
    assert {len(row) for row in cells} == {3}
    assert len(cells) >= 74


def test_every_cited_law_exists() -> None:
    """A citation such as `LAWS 2.3`, in code, tests or documents, leads to a rule of docs/laws.md."""
    known = rules()
    files = [*(TOP / "src").rglob("*.py"), *(TOP / "tests").rglob("*.py"), *TOP.glob("*.md"), *TOP.glob("docs/**/*.md")]
    cited = [
        (path.name, number)
        for path in files
        for citation in re.findall(r"\bLAWS (\d+(?:\.\d+)?(?:(?:, | and | to )\d+\.\d+)*)", path.read_text("utf-8"))
        for number in re.findall(r"\d+(?:\.\d+)?", citation)
    ]
    assert len(cited) > 10
    assert [each for each in cited if each[1] not in known] == []
