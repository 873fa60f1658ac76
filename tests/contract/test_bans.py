"""What no file may do: the promises of the architecture that the types cannot keep."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from diag import plugins

from .loaded import REPO

VENDORS = re.compile(r"(?<![a-z])(nvidia|amd(gpu)?|hygon|kunlun|ascend|vllm|sglang)(?![a-z0-9])", re.IGNORECASE)
CORE = sorted((REPO / "src/diag").rglob("*.py"))
PLUGINS = sorted(path for path in (REPO / "checks").rglob("*.py") if "/_" not in path.as_posix())
QUIET = [path for path in CORE if path.relative_to(REPO / "src/diag").parts[0] not in ("cli", "measure")]
ENDS = {"exit", "quit", "print", "breakpoint", "input"}
STREAMS = {"sys.exit", "sys.stdout", "sys.stderr", "sys.__stdout__", "sys.__stderr__", "os._exit", "os.abort"}


def name(path: Path) -> str:
    return path.relative_to(REPO).as_posix()


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield f"{'.' * node.level}{node.module or ''}"


def loud(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Name) and node.id in ENDS:
            yield f"{node.id} in line {node.lineno}"
        elif isinstance(node, ast.Raise) and "SystemExit" in ast.unparse(node):
            yield f"SystemExit in line {node.lineno}"
        elif isinstance(node, ast.Attribute) and ast.unparse(node) in STREAMS:
            yield f"{ast.unparse(node)} in line {node.lineno}"
        elif isinstance(node, ast.ImportFrom) and node.module in ("sys", "os"):
            yield from (f"{node.module}.{one.name}" for one in node.names if f"{node.module}.{one.name}" in STREAMS)


def test_the_scanners_see_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("from os import _exit\nimport sys\nprint(1)\nsys.exit(2)\nraise SystemExit\n")
    assert len(list(loud(tmp_path / "x.py"))) == 4
    seen = [bool(VENDORS.search(word)) for word in ("nvidia-smi", "amd_x", "AMD GPU", "vLLM", "amd64", "descending")]
    assert seen == [True, True, True, True, False, False]


@pytest.mark.parametrize("path", PLUGINS, ids=name)
def test_plugins_import_the_api_and_the_standard_library(path: Path) -> None:
    allowed = {"diag.api", "__future__"}
    strange = [one for one in imported(path) if one not in allowed and one.split(".")[0] not in sys.stdlib_module_names]
    assert strange == []


@pytest.mark.parametrize("path", [*QUIET, *PLUGINS], ids=name)
def test_only_the_command_line_prints_and_exits(path: Path) -> None:
    assert list(loud(path)) == []


@pytest.mark.parametrize("path", CORE, ids=name)
def test_the_core_names_no_vendor_and_no_engine(path: Path) -> None:
    lines = enumerate(path.read_text().splitlines(), 1)
    assert [f"line {number}: {line.strip()}" for number, line in lines if VENDORS.search(line)] == []


def test_only_measure_imports_torch() -> None:
    users = {name(path) for path in CORE for one in imported(path) if one.split(".")[0] == "torch"}
    assert [one for one in users if not one.startswith("src/diag/measure/")] == []


def test_measure_imports_the_standard_library_and_torch_and_one_program_ray() -> None:
    programs = [path for path in CORE if "measure" in path.parts]
    allowed = {"torch", "__future__", *sys.stdlib_module_names}
    strange = {(path.name, one) for path in programs for one in imported(path) if one.split(".")[0] not in allowed}
    assert strange == {("ray_ranks.py", "ray")}


def test_knowledge_holds_no_code() -> None:
    files = [path for path in (REPO / "kb").rglob("*") if path.is_file()]
    assert files
    assert [name(path) for path in files if path.suffix not in (".yaml", ".md")] == []
    assert [name(path) for path in files if path.stat().st_mode & 0o111 or "!!python" in path.read_text()] == []


def test_loading_is_silent(capfd: pytest.CaptureFixture[str]) -> None:
    plugins.load(plugins.roots())
    assert capfd.readouterr() == ("", "")


def test_programs_for_other_interpreters_are_not_imported(tmp_path: Path) -> None:
    (tmp_path / "checks/acme/_inner").mkdir(parents=True)
    for place in ("_reader.py", "_inner/x.py"):
        (tmp_path / "checks/acme" / place).write_text("raise RuntimeError('imported')\n")
    assert plugins.load([tmp_path]).broken == ()
    (tmp_path / "checks/acme/reader.py").write_text("raise RuntimeError('imported')\n")
    assert len(plugins.load([tmp_path]).broken) == 1
