"""SQL is read where `sqlglotc`, the compiled variant of sqlglot, is installed, too: our parser extends sqlglot's."""

from __future__ import annotations

import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import sqlglot

_ASK = "import anabranch.sql, sqlglot.parser, sqlglot.tokens; print(sqlglot.parser.__file__, sqlglot.tokens.__file__)"


def test_sqlglot_is_loaded_as_python_where_compiled_modules_stand_beside(tmp_path: Path) -> None:
    """A compiled module would go first, and be what cannot be loaded here; the source beside it is what is loaded."""
    package = tmp_path / "sqlglot"
    package.mkdir()
    for name in ("__init__", "parser", "tokens"):
        (package / f"{name}.py").write_text("")
    compiled = package / f"parser{EXTENSION_SUFFIXES[0]}"
    compiled.write_bytes(b"no machine code")
    found = subprocess.run([sys.executable, "-c", _ASK], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert found.stdout.split() == [str(package / "parser.py"), str(package / "tokens.py")], found.stderr
    asked = _ASK.replace("anabranch.sql, ", "")
    refused = subprocess.run([sys.executable, "-c", asked], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "ImportError" in refused.stderr


def test_what_is_loaded_here_is_python() -> None:
    """Whatever is installed, the parser of this process can be extended."""
    from sqlglot.parsers import risingwave

    assert sqlglot.__file__.endswith(".py")
    assert str(risingwave.__file__).endswith(".py")
