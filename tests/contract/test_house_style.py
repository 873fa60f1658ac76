"""The house style, measured: targets are printed at the end of every run, caps fail."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import quantiles

import pytest

from .loaded import REPO

FOLDERS = ("src/diag", "checks", "tests")
CAPS = {"file": 400, "body": 50, "parameters": 6}
PRAGMA = re.compile(r"#\s*(noqa|type:|pragma|fmt:|ruff:|mypy:)")
Function = ast.FunctionDef | ast.AsyncFunctionDef
Node = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """One Python file: its lines and its tree."""

    name: str
    text: str

    @property
    def lines(self) -> int:
        return len(self.text.splitlines())

    @property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    def functions(self) -> Iterator[tuple[str, Function]]:
        for node in ast.walk(self.tree):
            if isinstance(node, Function):
                yield f"{self.name}:{node.lineno} {node.name}", node

    def comments(self) -> int:
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        return sum(one.type == tokenize.COMMENT and not PRAGMA.match(one.string) for one in tokens)


def read(folder: str) -> list[Source]:
    paths = sorted((REPO / folder).rglob("*.py"))
    return [Source(path.relative_to(REPO).as_posix(), path.read_text()) for path in paths]


SOURCES = {folder: read(folder) for folder in FOLDERS}
CODE = [*SOURCES["src/diag"], *SOURCES["checks"]]


def body(function: Function) -> int:
    """Lines of a function's body without its docstring."""
    rest = function.body[ast.get_docstring(function) is not None :]
    return (rest[-1].end_lineno or 0) - rest[0].lineno + 1 if rest else 0


def parameters(function: Function) -> list[ast.arg]:
    given = function.args
    named = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
    return [one for place, one in enumerate(named) if not (place == 0 and one.arg in ("self", "cls"))]


def annotated(function: Function) -> bool:
    return function.returns is not None and all(one.annotation for one in parameters(function))


def public(node: Node, name: str) -> Iterator[tuple[str, Node]]:
    """A module or class and what is public in it."""
    yield name, node
    for one in node.body:
        inner = isinstance(node, ast.Module | ast.ClassDef) and isinstance(one, ast.ClassDef | Function)
        if inner and not one.name.startswith("_"):
            yield from public(one, f"{name}.{one.name}")


def documented(sources: list[Source]) -> dict[str, bool]:
    return {name: ast.get_docstring(node) is not None for one in sources for name, node in public(one.tree, one.name)}


def spread(sizes: list[int]) -> str:
    cuts = quantiles(sizes, n=10, method="inclusive")
    return f"{cuts[4]:5.0f} {cuts[8]:5.0f} {max(sizes):5.0f}"


def row(folder: str, sources: list[Source]) -> str:
    functions = [function for one in sources for _, function in one.functions()]
    told, lines = documented(sources).values(), [one.lines for one in sources]
    shares = (sum(map(annotated, functions)) / len(functions), sum(told) / len(told))
    comments, most = sum(one.comments() for one in sources) / sum(lines), max(len(parameters(one)) for one in functions)
    cells = f"     {spread(lines)} |     {spread([body(one) for one in functions])} |{most:10} |"
    return f"{folder:10}{sum(lines):8} |{cells}{shares[0]:10.0%} |{shares[1]:5.0%} |{comments:5.1%}"


@pytest.fixture(autouse=True, scope="module")
def table(said: list[str]) -> None:
    """The measures, printed whether or not a cap is broken."""
    said.append(
        "house style  lines |  file p50   p90   max |  body p50   p90   max | arguments | annotated | docs | notes"
    )
    said += [row(folder, SOURCES[folder]) for folder in FOLDERS]
    said.append(
        "target             |     <=110 <=250 <=400 |       <=9  <=30  <=50 |    <= 4-6 |      100% | 100% | 2-7 %"
    )


@pytest.mark.parametrize("one", CODE, ids=lambda one: one.name)
def test_caps(one: Source) -> None:
    assert one.lines <= CAPS["file"]
    functions = [*one.functions()]
    assert [name for name, function in functions if body(function) > CAPS["body"]] == []
    assert [name for name, function in functions if len(parameters(function)) > CAPS["parameters"]] == []
    assert [name for name, function in functions if not annotated(function)] == []


@pytest.mark.parametrize("one", SOURCES["src/diag"], ids=lambda one: one.name)
def test_public_names_are_documented(one: Source) -> None:
    assert [name for name, told in documented([one]).items() if not told] == []
