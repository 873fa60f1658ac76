"""Write which families of faults are covered for which vendor, and what is known to be missing, from the rules.

A rule counts for a vendor that it is about, or of whose hardware or software one of its proving texts speaks; for "any"
where it is about none. Rules on versions (the matrix) are not counted.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml
from catalogue import kept

from diag import plugins
from diag.check import Check

HERE = Path(__file__).parent
PLACE = HERE / "knowledge-gaps.md"
MARKS = {
    "nvidia": r"NVIDIA|nvidia|NVRM|\bNCCL\b|CUDA (?:error|driver|out of|version)|\bsm_\d|cu1[123]\d\b",
    "amd": r"ROCm|rocm|\bHIP\b|\bhip[A-Z]|amdgpu|gfx\d|\bHSA_|RCCL|AITER|aiter|MI[23]\d\dX?\b",
    "hygon": r"\bDTK\b|\bdtk|[Hh]ygon|hycu|K100_AI|\bBW\d{3}|\bDCU\b",
    "kunlun": r"[Kk]unlun|\bBKCL|bkcl|xpu_smi|P800|\bXRE\b|XPURT|xpu_kernel|KUNLUN",
    "ascend": r"\bNPU\b|torch_npu|Ascend|ascend|\bCANN\b|HCCL|hccl|\bE[EIJZ]\d{4}\b|npu-smi",
    "intel": r"Level[ -]Zero|level_zero|SYCL|sycl|oneCCL|one(?:API|api)|Gaudi|\bHPU\b|\bi915\b|\bxe 0000|ipex|xccl"
    r"|XPU_FALLBACK",
}
HEAD = """\
# What the rules cover, and what they do not

Made by `make docs` from the rules and `docs/families.yaml`. A number is that of the rules for a family of faults that
are about a vendor, or are proved by a text of its hardware or software; one rule may count for several. Under "any" are
those that are the same for every vendor. `-` is a gap that is named below; an empty cell is no gap: the vendor's
machines do not have such faults, or have those under "any".
"""


def vendors(rule: Check) -> set[str]:
    """The vendors that a rule is for, or "any"."""
    named = {rule.about, rule.id.partition("/")[0]} & MARKS.keys()
    texts = "\n".join(rule.fires)
    return named or {name for name, marks in MARKS.items() if re.search(marks, texts)} or {"any"}


def counted(rules: Iterable[Check], families: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """How many rules each family has for each vendor; a rule of no family is a `ValueError`."""
    table: dict[str, dict[str, int]] = {one["family"]: {} for one in families}
    for rule in rules:
        found = (one["family"] for one in families if any(fnmatchcase(rule.id, sign) for sign in one["rules"]))
        family = next(found, None)
        if family is None:
            raise ValueError(f"{rule.id} is of no family in docs/families.yaml")
        for vendor in vendors(rule):
            table[family][vendor] = table[family].get(vendor, 0) + 1
    return table


def page() -> str:
    """The whole page as Markdown."""
    families = yaml.safe_load((HERE / "families.yaml").read_text("utf-8"))
    rules = [one for one in plugins.load([plugins.bundled()]).checks.values() if one.kind != "matrix"]
    table = counted(rules, families)
    lines = [HEAD, f"| family | {' | '.join(MARKS)} | any |", "|---|" + "---|" * (len(MARKS) + 1)]
    gaps = []
    for one in families:
        count, named, nowhere = table[one["family"]], one.get("gaps", {}), one.get("nowhere", {})
        unnamed = [name for name in MARKS if not count.get(name) and name not in {*named, *nowhere}]
        if unnamed and not one.get("neutral"):
            raise ValueError(f"{one['family']}: neither a rule nor a named gap for {', '.join(unnamed)}")
        cells = [str(count.get(name) or ("-" if name in named else "")) for name in MARKS]
        lines.append(f"| {one['family']} | {' | '.join(cells)} | {count.get('any', '')} |")
        gaps += [f"* **{one['family']}, {name}**: {why}" for name, why in named.items()]
        gaps += [f"* {one['family']}, {name}: {why}" for name, why in nowhere.items()]
    return "\n".join([*lines, "", "## Gaps", "", *gaps]) + "\n"


if __name__ == "__main__":
    sys.exit(kept(page(), PLACE))
