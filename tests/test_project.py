from __future__ import annotations

import ast
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

TOP = Path(__file__).parent.parent
PURE = (
    "errors",
    "logic",
    "stream",
    "predicate",
    "values",
    "aggregates",
    "language",
    "algebra",
    "sharing",
    "law",
    "runtime",
    "columnar",
    "branch",
    "network",
)
"""What lies below `spark` or beside it; ARCHITECTURE.md promises that it knows no Spark."""

IMPORT_ALL = f"""
import importlib, pkgutil, sys
import anabranch

def load(path, prefix):
    for module in pkgutil.iter_modules(path, prefix):
        if module.name.split(".")[1] in {PURE!r}:
            loaded = importlib.import_module(module.name)
            if module.ispkg:
                load(loaded.__path__, module.name + ".")

load(anabranch.__path__, "anabranch.")
print("anabranch.stream.tree" in sys.modules, "pyspark" in sys.modules)
"""


@pytest.mark.mass
def test_pure_packages_load_without_pyspark() -> None:
    """Importing every module that is not about Spark leaves pyspark out, also through other modules."""
    done = subprocess.run([sys.executable, "-c", IMPORT_ALL], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "True False\n"


def test_every_dependency_is_pinned() -> None:
    """Each requirement in pyproject.toml has one line in constraints.txt, with a version that it allows."""
    project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
    wanted = [Requirement(each) for each in project["dependencies"] + project["optional-dependencies"]["dev"]]
    lines = [line for line in (TOP / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    pins = {canonicalize_name(name): version for name, version in (line.split("==") for line in lines)}
    assert len(pins) == len(lines)
    refused = [each for each in wanted if not each.specifier.contains(pins.get(canonicalize_name(each.name), "0"))]
    missing = [each.name for each in wanted if canonicalize_name(each.name) not in pins]
    assert (refused, missing) == ([], [])


@pytest.mark.mass
def test_every_test_says_what_is_expected() -> None:
    """Each test function, also one in a class, has a docstring."""
    bodies = [ast.parse(path.read_text(encoding="utf-8")).body for path in (TOP / "tests").rglob("test_*.py")]
    bodies += [node.body for body in bodies for node in body if isinstance(node, ast.ClassDef)]
    nodes = [node for body in bodies for node in body if isinstance(node, ast.FunctionDef)]
    tests = [node for node in nodes if node.name.startswith("test_")]
    assert len(tests) > 10
    assert [node.name for node in tests if not ast.get_docstring(node)] == []


def layers() -> list[list[str]]:
    """The packages as import-linter has them, those that may import all others first."""
    contracts = tomllib.loads((TOP / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (found,) = [each["layers"] for each in contracts if each["name"] == "imports go downwards only"]
    return [[name.strip("() ") for name in layer.split("|")] for layer in found]


def test_the_layers_are_told_as_they_are() -> None:
    """Those in CONTRIBUTING.md are those that are checked, and there is such a package or module for each of them."""
    text = (TOP / "CONTRIBUTING.md").read_text().partition("## Imports go downwards only")[2]
    told = [[name.strip() for name in line.split("|")] for line in text.split("```")[1].strip().splitlines()]
    assert told == layers()
    there = {path.stem for path in (TOP / "src/anabranch").iterdir() if path.suffix == ".py" or any(path.glob("*.py"))}
    assert sorted(name for layer in told for name in layer) == sorted(there - {"__init__"})


def test_the_map_goes_downwards() -> None:
    """ARCHITECTURE.md names each package once, none before one that may import it."""
    text = (TOP / "ARCHITECTURE.md").read_text().partition("## The map")[2].partition("## ")[0]
    told = [
        name.removesuffix("/").removesuffix(".py") for name in re.findall(r"^\| `([\w./]+)` \|", text, re.MULTILINE)
    ]
    depth = {name: number for number, layer in enumerate(layers()) for name in layer}
    assert sorted(told) == sorted([*depth, "examples"])
    depths = [depth[name] for name in told if name in depth]
    assert depths == sorted(depths)


def test_modules_that_documents_name_are_there() -> None:
    """A file named in a document or a docstring, as `branch/intake/merge.py`, ends the path of one in the project."""
    files = [path for folder in ("src", "tests", "scripts") for path in (TOP / folder).rglob("*.py")]
    paths = [f"/{path.relative_to(TOP)}" for path in files]
    texts = [*TOP.glob("*.md"), *(TOP / "docs").rglob("*.md"), *files]
    named = {
        (text.name, name) for text in texts for name in re.findall(r"`([\w./]+\.py)`", text.read_text(encoding="utf-8"))
    }
    assert len(named) > 100
    assert sorted(each for each in named if not any(path.endswith(f"/{each[1]}") for path in paths)) == []


def test_what_is_out_of_order_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A finding, a count that grows and an allowance for nothing are told; `make check` has it look at our own code."""
    house = runpy.run_path(str(TOP / "scripts/house.py"))
    (tmp_path / "anabranch").mkdir()
    (tmp_path / "anabranch/__init__.py").write_text("def used() -> None: ...\n")
    (tmp_path / "anabranch/one.py").write_text("class Twice: ...\n" + 501 * "#\n")
    (tmp_path / "anabranch/two.py").write_text("class Twice: ...\n")
    allowed = tmp_path / "allowed.txt"
    allowed.write_text(
        "# why\nanabranch.one has 502 lines, more than 500\nanabranch.two has 600 lines, more than 500\n"
    )
    assert house["main"]([], tmp_path, allowed) == 1
    told = capsys.readouterr().out.splitlines()
    assert told[:-1] == [
        "anabranch/one.py:1: Twice is reached by nothing",
        "anabranch/two.py:1: Twice is reached by nothing",
        "class Twice stands in anabranch/one.py, anabranch/two.py",
        "allowed, and not there any more: anabranch.two has 600 lines, more than 500",
    ]
    allowed.write_text("\n".join(["# why", *told[:3], "anabranch.one has 900 lines, more than 500", "gone"]))
    assert house["main"](["--tighten"], tmp_path, allowed) == 0
    assert allowed.read_text().splitlines() == ["# why", *told[:3], "anabranch.one has 502 lines, more than 500"]
    assert house["main"]([], tmp_path, allowed) == 0


def test_the_four_lives_name_what_is_there() -> None:
    """Each step in ARCHITECTURE.md names a file and a function or class in it; a life has a dozen steps at most."""
    text = (TOP / "ARCHITECTURE.md").read_text().partition("## Four lives")[2].partition("\n## ")[0]
    lives = text.split("\n### ")[1:]
    assert [len(re.findall(r"^\d+\. ", life, re.MULTILINE)) <= 12 for life in lives] == [True] * 4
    named = re.findall(r"`([\w/]+\.py)` `([\w.]+)`", text)
    assert len(named) > 40
    assert [each for each in named if not _is_defined(*each)] == []


def _is_defined(file: str, name: str) -> bool:
    path = TOP / "src" / "anabranch" / file
    body = ast.parse(path.read_text(encoding="utf-8")).body if path.exists() else []
    for part in name.split("."):
        found = [each for each in body if isinstance(each, ast.FunctionDef | ast.ClassDef) and each.name == part]
        if not found:
            return False
        body = found[0].body
    return True
