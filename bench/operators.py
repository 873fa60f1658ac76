"""The detectors of `diag ops` against the time and memory of `import torch` alone, in turns.

On torch's own tables for the CPU, and on the device of tests/backend, which is built where it is not yet (a minute).
A detector's own part is what it takes beyond the import.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from _measured import load, peak_pss, timed

HERE = Path(__file__).resolve().parents[1]
CHILD = HERE / "src/diag/measure/operators.py"
BACKEND = HERE / "tests/backend"
LEAVES = HERE / "kb/reference/operators.yaml"
HOSTDEV = {"device": "hostdev", "imports": ["hostdev"]}
BRIEF = {"parts": ["sampler"], "batch": 8, "budget": 0, "limit": 60}


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has torch (default: this one)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds that count, after one that does not (default: 5)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    os.environ["PYTHONPATH"] = str(BACKEND)
    commands, before = asked(options.python), load()
    medians = measured(commands, options.rounds)
    told = {"medians": medians, "commands": commands, "load": [before, load()]}
    print(json.dumps(told, indent=2) if options.json else page(medians))
    return 0


def asked(python: str) -> dict[str, Sequence[str]]:
    """The commands, by what they do."""
    requests: dict[str, dict[str, Any]] = {
        "every operator of ATen, static": {"how": ["static"], "device": "cpu"},
        "the leaves of engines, static": {"how": ["static"], "device": "cpu", "operators": list(leaves())},
        "on the device: the way of env-check": {"how": ["static", "dynamic"], **HOSTDEV, **BRIEF},
        "on the device: 15 launches": {
            "how": ["static", "dynamic", "timing"],
            **HOSTDEV,
            **BRIEF,
            "parts": [],
            "steps": ["penalties", "top-k-top-p"],
            "budget": 10,
        },
    }
    children = {name: (python, str(CHILD), json.dumps(one)) for name, one in requests.items()}
    imported = {"import torch": "import torch", "import of the device": "import torch, hostdev"}
    return {**{name: (python, "-c", code) for name, code in imported.items()}, **children}


def leaves() -> Sequence[str]:
    """The operators that steps of engines need a kernel for."""
    import yaml

    rows = yaml.safe_load(LEAVES.read_text())["rows"]
    return [f"{one['operator']}.{one.get('overload', '')}".rstrip(".") for one in rows if not one.get("calls")]


def measured(commands: Mapping[str, Sequence[str]], rounds: int) -> dict[str, dict[str, float]]:
    """Medians of wall and CPU seconds of each command, taken in turns after a first round; one look at the memory."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name in sorted(commands, reverse=number % 2 == 0):
            run = timed(commands[name])
            taken[name] += [(run.wall_s, run.cpu_s)] if number else []
    return {
        name: {
            "wall": median(wall for wall, _ in runs),
            "cpu": median(cpu for _, cpu in runs),
            "memory": peak_pss(commands[name]),
        }
        for name, runs in taken.items()
    }


def page(medians: Mapping[str, Mapping[str, float]]) -> str:
    """The figures for people."""
    alone = medians["import torch"]
    lines = [f"{'':38} {'wall s':>8} {'cpu s':>8} {'MB':>6} {'of import torch':>16}"]
    for name, one in medians.items():
        ratio = f"{one['wall'] / alone['wall']:.2f}"
        lines.append(f"{name:38} {one['wall']:8.2f} {one['cpu']:8.2f} {one['memory'] / 1e6:6.0f} {ratio:>16}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
