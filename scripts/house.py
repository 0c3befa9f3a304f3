"""What is out of order in src/: code that nothing reaches, class names that stand twice, rooms and files that are full.

usage: house.py [--all | --tighten]

Reachable is what the command line, the Python API and the benches lead to, definition by definition.
It is found from names alone, without running anything: a definition leads to every name that stands in it; a method is
reached where its class is and some reached code speaks its name; what Python itself calls is always reached.
So it errs on the side of what is used: what it lists is certain to be dead, but for names made of strings.

What is still allowed to be out of order stands in `house_allowed.txt`, line by line; of counts, the largest that is
allowed. That list may only become shorter, and its counts smaller: a line that is not needed any more is out of order,
too, and `--tighten` takes it out; nothing adds to it but a person who can say why.

`--all` prints what is allowed as well. The exit status is 1 where anything else is out of order.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src"
ALLOWED = Path(__file__).resolve().parent / "house_allowed.txt"
MOST_LINES = 500
MOST_FILES = 15
ROOTS = ("anabranch", "anabranch.cli", "anabranch.bench")
API = ("anabranch.engine.live", "anabranch.engine.handles", "anabranch.client.site", "anabranch.client.subscription")
"""What the Python API hands out: its public methods are for callers whom we do not know."""
W3C = "anabranch.language.ast"
"""Its nodes are named after the productions of the W3C's grammar."""


@dataclass
class Definition:
    """A function, class, method or constant: who owns it, and which names stand in it."""

    module: str
    name: str
    line: int
    owner: str | None = None
    names: set[str] = field(default_factory=set)
    called: bool = False
    """Whether somebody outside may call it where its class is reached: a caller of the API, Spark, a notebook."""

    def __str__(self) -> str:
        shown = f"{self.owner}.{self.name}" if self.owner else self.name
        return f"{self.module.replace('.', '/')}.py:{self.line}: {shown}"


@dataclass
class Module:
    """A module: its definitions, what it imports under which name, and the names that stand outside definitions."""

    name: str
    lines: int
    definitions: list[Definition] = field(default_factory=list)
    imported: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)


def main(arguments: list[str], source: Path = SOURCE, allowed: Path = ALLOWED) -> int:
    """Print what is out of order in a tree and not allowed to be."""
    modules = {module.name: module for module in (_module(path, source) for path in sorted(source.rglob("*.py")))}
    found = [*_unreached(modules), *_twice(source), *_full(modules, source)]
    lines = [line for line in allowed.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    limits = {_key(line): _count(line) for line in lines}
    if "--tighten" in arguments:
        now = {_key(line): line for line in found if _key(line) in limits and _count(line) <= limits[_key(line)]}
        head = [line for line in allowed.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
        kept = [now[_key(line)] for line in lines if _key(line) in now]
        allowed.write_text("".join(f"{line}\n" for line in (*head, *kept)), encoding="utf-8")
        return 0
    wrong = [line for line in found if "--all" in arguments or _count(line) > limits.get(_key(line), -1)]
    there = {_key(line) for line in found}
    wrong += [f"allowed, and not there any more: {line}" for line in lines if _key(line) not in there]
    for line in wrong:
        print(line)
    if wrong:
        total = sum(each.lines for each in modules.values())
        print(f"{len(modules)} modules, {total:,} lines; {len(wrong)} things out of order")
    return 1 if wrong else 0


def _key(finding: str) -> str:
    """A finding without what may move: figures, line numbers, the places of a class."""
    return re.sub(r":\d+:|\b\d[\d,]*\b| stands in .*", "", finding)


def _count(finding: str) -> int:
    """The figure of a finding: how many lines or modules, or at how many places; 0 where it has none."""
    if " stands in " in finding:
        return finding.count(",") + 1
    found = re.search(r" has ([\d,]+) ", finding)
    return int(found[1].replace(",", "")) if found else 0


# --- reading ----------------------------------------------------------------------------------------------


def _module(path: Path, source: Path) -> Module:
    name = ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")
    text = path.read_text(encoding="utf-8")
    module = Module(name, text.count("\n"))
    for node in ast.parse(text).body:
        _read(node, module)
    return module


def _read(node: ast.stmt, module: Module) -> None:
    for part in ast.walk(node):
        if isinstance(part, ast.ImportFrom) and part.module:
            for alias in part.names:
                module.imported[alias.asname or alias.name] = (part.module, alias.name)
        elif isinstance(part, ast.Import):
            for alias in part.names:
                module.imported[alias.asname or alias.name.split(".")[0]] = (alias.name, None)
    match node:
        case ast.FunctionDef(decorator_list=[ast.Name(id="overload")]):
            pass  # the definition behind it is the one that is called
        case ast.FunctionDef() | ast.AsyncFunctionDef() if any(map(_registers, node.decorator_list)):
            module.names.update((node.name, *_names(node)))
            module.definitions.append(Definition(module.name, node.name, node.lineno, names=set(_names(node))))
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            module.definitions.append(Definition(module.name, node.name, node.lineno, names=set(_names(node))))
        case ast.ClassDef():
            own = Definition(module.name, node.name, node.lineno)
            module.definitions.append(own)
            for part in (*node.bases, *node.keywords, *node.decorator_list):
                own.names.update(_names(part))
            foreign = any(_is_foreign(base, module) for base in node.bases)
            for part in node.body:
                if isinstance(part, ast.FunctionDef) and not (part.name.startswith("__") and part.name.endswith("__")):
                    public = module.name in API and not part.name.startswith("_")
                    called = foreign or public or part.name == "_repr_html_"
                    method = Definition(module.name, part.name, part.lineno, node.name, set(_names(part)), called)
                    module.definitions.append(method)
                else:
                    own.names.update(_names(part))
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            module.definitions.append(Definition(module.name, name, node.lineno, names=set(_names(node))))
        case ast.Import() | ast.ImportFrom():
            pass
        case _:
            module.names.update(_names(node))


def _registers(decorator: ast.expr) -> bool:
    """Whether a decorator hands a function to somebody who calls it, as in `@router.get("/streams")`."""
    return isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Attribute)


def _is_foreign(base: ast.expr, module: Module) -> bool:
    """Whether a class is derived from one of another project, which may call what it overrides."""
    while isinstance(base, ast.Attribute | ast.Subscript):
        base = base.value
    name = base.id if isinstance(base, ast.Name) else ""
    origin, _ = module.imported.get(name, ("anabranch", None))
    return origin.split(".")[0] not in ("anabranch", "abc", "typing", "enum")


def _names(node: ast.AST) -> Iterator[str]:
    """All names and attributes that stand in a piece of code; texts too, since some name what is looked up later."""
    for part in ast.walk(node):
        match part:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                yield name
            case ast.Constant(value=str() as text) if text.isidentifier():
                yield text
            case ast.MatchClass(kwd_attrs=names):
                yield from names
            case ast.keyword(arg=str() as name):
                yield name


# --- what nothing reaches ---------------------------------------------------------------------------------


def _unreached(modules: dict[str, Module]) -> Iterator[str]:
    by_name: dict[tuple[str, str], Definition] = {}
    methods: dict[tuple[str, str], list[Definition]] = defaultdict(list)
    for module in modules.values():
        for each in module.definitions:
            if each.owner:
                methods[module.name, each.owner].append(each)
            else:
                by_name[module.name, each.name] = each
    spoken: set[str] = set()
    reached: set[int] = set()
    loaded: set[str] = set()
    waiting: list[Definition] = []
    pending: list[Definition] = []

    def speak(module: Module, names: set[str]) -> None:
        spoken.update(names)
        for name in names:
            follow(module.name, name)

    def follow(module: str, name: str) -> None:
        found = by_name.get((module, name))
        if found is not None:
            reach(found)
            return
        origin, original = modules[module].imported.get(name, (None, None))
        if origin is None:
            return
        if original is not None and f"{origin}.{original}" in modules:
            load(f"{origin}.{original}")
        elif origin in modules:
            load(origin)
            if (original is not None and original != name) or (origin, original or "") != (module, name):
                follow(origin, original or "")

    def load(name: str) -> None:
        """The code of a module that runs when it is imported."""
        if name in loaded:
            return
        loaded.add(name)
        speak(modules[name], modules[name].names)

    def reach(each: Definition) -> None:
        if id(each) not in reached:
            reached.add(id(each))
            pending.append(each)

    for root in ROOTS:
        if root not in modules:
            continue
        load(root)
        for each in modules[root].definitions:
            reach(each)
    for name in modules:
        if name.startswith("anabranch.bench."):  # loaded by name
            for wanted in ("measure", "draw", "markdown"):
                if (name, wanted) in by_name:
                    reach(by_name[name, wanted])
    while pending:
        each = pending.pop()
        load(each.module)
        speak(modules[each.module], each.names)
        # A name may be that of a module, through which its parts are spoken of by attribute.
        for name in each.names:
            origin, original = modules[each.module].imported.get(name, (None, None))
            through = f"{origin}.{original}" if original else origin
            if through in modules:
                for other in each.names:
                    if (through, other) in by_name:
                        reach(by_name[through, other])
        if each.owner is None:
            waiting += methods[each.module, each.name]
        if not pending:
            heard = [method for method in waiting if method.called or method.name in spoken]
            waiting = [method for method in waiting if not method.called and method.name not in spoken]
            for method in heard:
                reach(method)
    for module in modules.values():
        for each in module.definitions:
            if id(each) not in reached and each.name != "__all__":
                yield f"{each} is reached by nothing"


# --- names and rooms --------------------------------------------------------------------------------------


def _twice(source: Path) -> Iterator[str]:
    places: dict[str, list[str]] = defaultdict(list)
    for path in sorted(source.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(path.relative_to(source)))
    w3c = W3C.replace(".", "/") + ".py"
    for name, found in sorted(places.items()):
        if len([each for each in found if each != w3c]) > 1:
            yield f"class {name} stands in {', '.join(found)}"


def _full(modules: dict[str, Module], source: Path) -> Iterator[str]:
    for module in modules.values():
        if module.lines > MOST_LINES:
            yield f"{module.name} has {module.lines} lines, more than {MOST_LINES}"
    folders = Counter(path.parent for path in source.rglob("*.py") if path.name != "__init__.py")
    for folder, count in sorted(folders.items()):
        if count > MOST_FILES:
            yield f"{folder.relative_to(source)} has {count} modules, more than {MOST_FILES}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
