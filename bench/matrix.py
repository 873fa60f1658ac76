"""`diag matrix check` of an asked set against `python -m torch.utils.collect_env`, in turns; the cache full and empty.

Exit code 0 where the median with a full cache is at most 0.4 s of wall time, else 1.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from _measured import diag_program, load, timed

LIMIT = 0.4
"""Seconds of wall time."""
ASKED = ("gpu=H100", "driver=535.161.08", "vllm==0.15.1", "torch==2.9.1+cu128")
ANSWERED = {"full cache": (0, 1, 4), "empty cache": (0, 1, 4), "collect_env": (0,)}
"""Exit codes of a run that did its work, by what was run."""


def main() -> int:
    """Measure, print, and judge."""
    options = _options()
    check = (options.diag or diag_program(), "matrix", "check", *ASKED)
    peer = (options.python, "-m", "torch.utils.collect_env")
    commands = {"full cache": check, "empty cache": check, "collect_env": peer}
    before = load()
    with tempfile.TemporaryDirectory() as home:
        os.environ["XDG_CACHE_HOME"] = home
        rounds = measured(commands, options.rounds, Path(home))
    document = {**judged(rounds), "rounds": rounds, "commands": commands, "load": [before, load()]}
    print(json.dumps(document, indent=2) if options.json else _page(document))
    return 0 if document["passed"] else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default="", help="the interpreter that has torch (default: this one)")
    parser.add_argument("--diag", default="", help="the diag to measure (default: that of this environment)")
    parser.add_argument("--rounds", type=int, default=9, help="rounds that count, after one that does not (default: 9)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    if not options.python and importlib.util.find_spec("torch") is None:
        parser.error("this python has no torch: name one that has with --python")
    options.python = options.python or sys.executable
    return options


def measured(commands: Mapping[str, Sequence[str]], rounds: int, home: Path) -> list[dict[str, dict[str, Any]]]:
    """The rounds, each of all commands; the order turns from round to round, and a first round is dropped.

    The cache in `home` is emptied before the run that is to find it so, which fills it for the others.
    """
    taken: list[dict[str, dict[str, Any]]] = []
    for number in range(rounds + 1):
        one: dict[str, dict[str, Any]] = {}
        for name in sorted(commands, reverse=number % 2 == 0):
            if name == "empty cache":
                shutil.rmtree(home / "diag", ignore_errors=True)
            run = timed(commands[name])
            one[name] = {"exit_code": run.exit_code, "wall": run.wall_s, "cpu": run.cpu_s}
        taken.append(one)
    return taken[1:]


def judged(rounds: list[dict[str, dict[str, Any]]]) -> dict[str, Any]:
    """Medians of what each took, in seconds, how many times the peer's time that is, and whether the goal is met."""
    medians = {name: {unit: median(one[name][unit] for one in rounds) for unit in ("wall", "cpu")} for name in ANSWERED}
    ratios = {name: medians[name]["wall"] / medians["collect_env"]["wall"] for name in ANSWERED}
    answered = all(one[name]["exit_code"] in codes for one in rounds for name, codes in ANSWERED.items())
    return {"medians": medians, "ratios": ratios, "limit": LIMIT, "passed": _within(medians) and answered}


def _within(medians: Mapping[str, Mapping[str, float]]) -> bool:
    return medians["full cache"]["wall"] <= LIMIT


def _page(document: Mapping[str, Any]) -> str:
    lines = [f"{'':12} {'wall':>9} {'cpu':>9} {'ratio':>8}"]
    for name, taken in document["medians"].items():
        lines.append(f"{name:12} {taken['wall']:7.3f} s {taken['cpu']:7.3f} s {document['ratios'][name]:8.3f}")
    codes = {name: sorted({one[name]["exit_code"] for one in document["rounds"]}) for name in ANSWERED}
    verdict = "met" if _within(document["medians"]) else "NOT MET"
    lines.append(f"diag matrix check, full cache: at most {LIMIT} s of wall time: {verdict}")
    lines += [f"medians of {len(document['rounds'])} rounds; exit codes {codes}", f"load averages {document['load']}"]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
