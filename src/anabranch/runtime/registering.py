"""What users declare beside queries: Python functions by name, `distance = "roads:distance"`, and plans of operators.

Modules are found on Python's path, and then beside the file that names them; the name of a module never comes from
data or from a query.
Nothing is imported before `import_all`, so a site can be inspected without running its modules.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from anabranch.algebra.plans.written import read_plan, write_plan
from anabranch.errors import QueryError, StateError, UsageError
from anabranch.language import ast, parse
from anabranch.language.signatures import SIGNATURES
from anabranch.law.calls import ImportedFunction
from anabranch.storage import Location
from anabranch.stream.reading.toml_tables import Table, read_text


def functions_of(table: Table) -> dict[str, ImportedFunction]:
    """The functions of a table `[functions]`."""
    return {name: _function(name, table) for name in list(table.values)}


def _function(name: str, table: Table) -> ImportedFunction:
    given = table.needed(name, 'as in distance = "roads:distance"')
    try:
        return function_named(name, given, table.file.absolute().parent)
    except UsageError as error:
        raise table.wrong(error.message, key=name, hint=error.hint) from None


def plan_of(table: Table) -> tuple[str, Location] | None:
    """The plan of operators that a subscription names, as the builder writes it, and its file; None for a query."""
    file = table.where("plan")
    if file is None:
        return None
    for key in ("query", "text", "language", "from"):
        if key in table.values:
            raise table.wrong(f"a plan has no '{key}'", key=key)
    try:
        return write_plan(read_plan(read_text(file))), file
    except StateError as error:
        hint = "'write_plan' of anabranch.algebra.plans.written gives the text of a plan"
        raise table.wrong(f"'{file}' holds no plan: {error.message}", key="plan", hint=hint) from error


def function_named(name: str, given: str, folder: Path) -> ImportedFunction:
    """The function for a name; `folder` is where its module may be."""
    if name in SIGNATURES or name in ("stream", "doc"):
        raise UsageError(f"the function '{name}' is built in", hint="give it another name")
    if not _can_be_called(name):
        raise UsageError(f"'{name}' is no name that a query can call", hint="use letters and digits")
    module, colon, attribute = given.partition(":")
    if not colon or not all(each.isidentifier() for each in (*module.split("."), *attribute.split("."))):
        raise UsageError(f"the function '{name}' takes 'module:function', not '{given}'")
    return ImportedFunction(module, attribute, str(folder.absolute()))


def _can_be_called(name: str) -> bool:
    try:
        body = parse(f"{name}(1)").body
    except QueryError:
        return False
    return isinstance(body, ast.Call) and body.name == name


def import_all(functions: Mapping[str, ImportedFunction]) -> None:
    """Import all functions, so that errors show before anything starts."""
    for name, function in functions.items():
        _check(name, function)


def _check(name: str, function: ImportedFunction) -> None:
    folder, top = Path(function.folder), function.module.partition(".")[0]
    try:
        found = function.load()
    except ModuleNotFoundError as error:
        if error.name is None or not f"{function.module}.".startswith(f"{error.name}."):
            raise _cannot_import(name, function, error) from error
        raise UsageError(
            f"function '{name}': there is no module '{function.module}'",
            hint=f"put '{function.module.replace('.', '/')}.py' into '{folder}', or install it",
        ) from None
    except AttributeError as error:
        if function.module not in sys.modules:
            raise _cannot_import(name, function, error) from error
        raise UsageError(f"function '{name}': module '{function.module}' has no '{function.attribute}'") from None
    except (Exception, SystemExit) as error:  # whatever the module raises on import
        raise _cannot_import(name, function, error) from error
    if not callable(found):
        raise UsageError(
            f"function '{name}': '{function}' is a {type(found).__name__}, which cannot be called",
        )
    beside = [each for each in (folder / f"{top}.py", folder / top / "__init__.py") if each.exists()]
    where = getattr(sys.modules[top], "__file__", None)
    if beside and (where is None or not Path(where).samefile(beside[0])):
        raise UsageError(
            f"function '{name}': another module '{top}' hides '{beside[0]}'", hint="give the file another name"
        )


def _cannot_import(name: str, function: ImportedFunction, error: BaseException) -> UsageError:
    return UsageError(
        f"function '{name}': module '{function.module}' cannot be imported: {type(error).__name__}: {error}"
    )
