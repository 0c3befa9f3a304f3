"""Ask XMark's queries of `anabranch query`, over `stream("auction")`: `python scripts/xmark.py PATH`.

PATH is a checkout of github.com/w3c/qt3tests, whose set `app-XMark` has the document, the queries and their results.
`scripts/qt3.py` evaluates these queries by the law, in its own process; here the command answers them, as a user would
ask it: each from a file of its own, all in one run.
What they take for their input, `/`, is the stream; nothing else in them is changed.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from qt3 import QT3, canonical, query_text, tests

from anabranch.language import ast, parse, print_query
from anabranch.language.rewrite import with_input

COMMAND = Path(sys.executable).with_name("anabranch")
DOCUMENT = "XMark/XMarkAuction.xml"
_AUCTION = ast.Source("stream", "auction")


def main(arguments: list[str]) -> int:
    """Ask the queries, and print which answers are the suite's results; the status is 1 where one is not."""
    (root,) = arguments
    results: dict[str, str] = {}
    with TemporaryDirectory() as place:
        queries, answers = Path(place, "queries"), Path(place, "answers")
        queries.mkdir()
        for _, test, folder, _ in tests(Path(root), ["app-XMark"]):
            name = test.get("name", "")
            query = with_input(parse(query_text(test, folder)), _AUCTION)
            (queries / f"{name}.xq").write_text(print_query(query), encoding="utf-8")
            (expected,) = test.iterfind(f"{QT3}result/{QT3}assert-xml")
            results[name] = (
                (folder / expected.get("file", "")).read_text("utf-8-sig")
                if expected.get("file")
                else (expected.text or "")
            )
            document = folder / DOCUMENT
        files = [str(queries / f"{name}.xq") for name in results]
        asked = [str(COMMAND), "query", *files, "--stream", f"auction={document}", "--out", str(answers)]
        subprocess.run(asked, check=True)
        wrong = [name for name, result in results.items() if not _is_answer(answers / f"{name}.xml", result)]
    for name in results:
        print(f"{name:<12} {'wrong' if name in wrong else 'as the suite has it'}")
    print(f"{len(results) - len(wrong)} of {len(results)} answers are the suite's results")
    return 1 if wrong else 0


def _is_answer(file: Path, result: str) -> bool:
    return file.exists() and canonical(file.read_text("utf-8")) == canonical(result)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
