"""`diag env-check --quick` against `python -m torch.utils.collect_env` of one environment, in turns.

Exit code 0 where diag takes at most an eighth of the time and a third of the memory, else 1.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from _measured import diag_program, load, peak_pss, timed

LIMITS = {"wall": 1 / 8, "memory": 1 / 3}
ANSWERED = {"diag": (0, 1, 4), "collect_env": (0,)}
"""Exit codes of a run that did its work."""
UNITS = {"wall": "s", "cpu": "s", "memory": "MiB"}


def main() -> int:
    """Measure, print, and judge."""
    options = _options()
    commands = {
        "diag": (options.diag or diag_program(), "env-check", "--quick", "--python", options.python),
        "collect_env": (options.python, "-m", "torch.utils.collect_env"),
    }
    before = load()
    rounds = measured(commands, options.rounds)
    document = {**judged(rounds), "rounds": rounds, "commands": commands, "load": [before, load()]}
    print(json.dumps(document, indent=2) if options.json else _page(document))
    return 0 if document["passed"] else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default="", help="the interpreter that has torch (default: this one)")
    parser.add_argument("--diag", default="", help="the diag to measure (default: that of this environment)")
    parser.add_argument("--rounds", type=int, default=7, help="pairs that count, after one that does not (default: 7)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    if not options.python and importlib.util.find_spec("torch") is None:
        parser.error("this python has no torch: name one that has with --python")
    options.python = options.python or sys.executable
    return options


def measured(commands: Mapping[str, Sequence[str]], rounds: int) -> list[dict[str, dict[str, Any]]]:
    """The rounds, each of both commands; which goes first alternates, and a first round warms up and is dropped."""
    taken: list[dict[str, dict[str, Any]]] = []
    for number in range(rounds + 1):
        names = sorted(commands, reverse=number % 2 == 0)
        times = {name: timed(commands[name]) for name in names}
        memory = {name: peak_pss(commands[name]) for name in names}
        taken.append(
            {
                name: {
                    "exit_code": times[name].exit_code,
                    "wall": times[name].wall_s,
                    "cpu": times[name].cpu_s,
                    "memory": memory[name] / 2**20,
                }
                for name in commands
            }
        )
    return taken[1:]


def judged(rounds: list[dict[str, dict[str, Any]]]) -> dict[str, Any]:
    """Medians, the ratios diag / collect_env of the medians, and whether the goals are met."""
    medians = {name: {unit: median(one[name][unit] for one in rounds) for unit in UNITS} for name in ANSWERED}
    ratios = {unit: medians["diag"][unit] / medians["collect_env"][unit] for unit in UNITS}
    answered = all(one[name]["exit_code"] in codes for one in rounds for name, codes in ANSWERED.items())
    met = {unit: ratios[unit] <= limit for unit, limit in LIMITS.items()}
    return {"medians": medians, "ratios": ratios, "met": met, "passed": answered and all(met.values())}


def _page(document: Mapping[str, Any]) -> str:
    lines = [f"{'':8} {'diag':>12} {'collect_env':>12} {'ratio':>8} {'at most':>8}"]
    for unit, sign in UNITS.items():
        own, other = (document["medians"][name][unit] for name in ANSWERED)
        ratio, limit = document["ratios"][unit], LIMITS.get(unit)
        verdict = f"{limit:8.3f}  {'met' if document['met'][unit] else 'NOT MET'}" if limit else ""
        lines.append(f"{unit:8} {own:8.3f} {sign:3} {other:8.3f} {sign:3} {ratio:8.3f} {verdict}".rstrip())
    codes = {name: sorted({one[name]["exit_code"] for one in document["rounds"]}) for name in ANSWERED}
    lines += [f"medians of {len(document['rounds'])} rounds; exit codes {codes}", f"load averages {document['load']}"]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
