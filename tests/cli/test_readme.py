"""What README shows is what diag says."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCKS = re.findall(r"```console\n\$ diag ([^\n]*)\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


@pytest.mark.parametrize(("typed", "shown"), BLOCKS)
def test_each_console_block_is_what_the_command_prints(typed, shown):
    command = (sys.executable, "-c", "from diag.cli import main; main()", *shlex.split(typed))
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout
    assert [_untimed(line) for line in said.splitlines()] == [_untimed(line) for line in shown.splitlines()]


def _untimed(line: str) -> str:
    return re.sub(r"\d+\.\d\d s", "", line)


def test_readme_shows_at_least_one():
    assert BLOCKS
