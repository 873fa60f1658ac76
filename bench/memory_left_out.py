"""The plan's constants fitted anew without each model in turn, and how far the KV cache of that model is then off.

What is fitted: two constants of activations, the sampler's bytes, what is not torch's on one rank and on several.
Against the start-ups of vLLM 0.19 that `tests/unit/memory` holds, with printed weights.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "unit"))
USUAL = {"base": 0.13, "residual": 4.25, "sampled": 14.0, "alone": 0.25, "together": 2.1}
STEPS = (-0.2, -0.1, -0.05, -0.02, 0.0, 0.02, 0.05, 0.1, 0.2)
SWEEPS = 4


def off(row: Mapping[str, Any], constants: Mapping[str, float]) -> float:
    """By what part the room of a start-up is off."""
    from test_memory import RELEASE, case

    from diag.estimate import profiled, work
    from diag.estimate.memory import GIB

    work.RESIDUAL, profiled.BASE = constants["residual"], constants["base"]
    rules = replace(RELEASE, **{name: constants[name] for name in ("sampled", "alone", "together")})
    asked = replace(case(dict(row)), rules=rules)
    return abs(rules.divide(asked).room / GIB / row["printed"]["kv_gib"] - 1)


def fitted(rows: list[Mapping[str, Any]]) -> dict[str, float]:
    """Constants that make the sum of errors least, from half of the usual ones."""
    found = {name: value * 0.7 for name, value in USUAL.items()}
    for _ in range(3 * SWEEPS):
        for name in USUAL:
            tried = [{**found, name: found[name] * (1 + step)} for step in STEPS]
            found = min(tried, key=lambda one: sum(off(row, one) for row in rows))
    return found


def main() -> int:
    """Print a line for each model, the worst first."""
    from test_memory import ROWS

    told = []
    for name in sorted({row["config"] for row in ROWS}):
        constants = fitted([row for row in ROWS if row["config"] != name])
        told.append((max(off(row, constants) for row in ROWS if row["config"] == name), name, constants))
    print("model left out".ljust(52), "worst", *(name.rjust(9) for name in USUAL))
    for worst, name, constants in sorted(told, key=lambda one: -one[0]):
        print(name.ljust(52), f"{worst:.2%}", *(f"{constants[one]:9.3f}" for one in USUAL))
    errors = sorted(one[0] for one in told)
    print(f"\n{len(told)} models: median {median(errors):.2%}, 90 % within {errors[int(0.9 * len(errors))]:.2%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
