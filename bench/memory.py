"""What a request takes of a KV cache: as vLLM prints it, by diag, and by hf-mem and kvfit from the same `config.json`.

The truth is the printed size of the cache by the printed number of requests of the full length, on one device. Peers
run in an environment of their own: `python -m venv P; P/bin/pip install hf-mem kvfit`, then `--peers P/bin/python`.
Exit code 0 where diag answers all and nobody's 90th percentile is below its own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

TESTS = Path(__file__).parents[1] / "tests" / "unit"
sys.path.insert(0, str(TESTS))
GIB = 2**30
STATED = {
    "Qwen--Qwen3.8-27B": (262144, 65536.0, 16 * 4 * 256 * 2 * 2),
    "zai-org--GLM-5.2-FP8": (32768, 100_205.0, 0),
}
"""Tokens of a request, and the bytes of a token that a report or CI prints."""
PEERS = """
import json, sys
from hf_mem.safetensors.kv_cache import compute_safetensors_kv_cache_size
from kvfit.architectures import estimate_cache
def text(config):
    return next((config[one] for one in ("text_config", "llm_config") if isinstance(config.get(one), dict)), config)
types = {1: "F8_E4M3", 2: "BF16", 4: "F32"}
told = []
for config, length, width in json.load(sys.stdin):
    row = {}
    for name, ask in (
        ("hf-mem", lambda: compute_safetensors_kv_cache_size(text(config), types[width], length)),
        ("kvfit", lambda: estimate_cache(config, context_tokens=length, kv_bytes=float(width)).total_bytes),
    ):
        try:
            row[name] = ask()
        except Exception as error:
            row[name] = None
    told.append(row)
print(json.dumps(told))
"""


def main() -> int:
    """Compare, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", help="a Python with hf-mem and kvfit")
    options = parser.parse_args()
    rows = cases()
    asked = [(row["document"], row["length"], row["width"]) for row in rows]
    peers = [{} for _ in rows]
    if options.peers:
        done = subprocess.run([options.peers, "-c", PEERS], input=json.dumps(asked), capture_output=True, text=True)
        peers = json.loads(done.stdout)
    names = ["diag", *(peers[0] if peers else ())]
    print("GiB of one request".ljust(46), "tokens".rjust(8), "truth".rjust(8), *(name.rjust(16) for name in names))
    errors: dict[str, list[float | None]] = {name: [] for name in names}
    for row, told in zip(rows, peers, strict=True):
        cells = []
        for name, value in (("diag", row["own"]), *told.items()):
            off = None if value is None else value / row["truth"] - 1
            errors[name].append(off)
            cells.append("no answer" if off is None else f"{value / GIB:8.3f} {off:+7.1%}")
        print(
            row["name"][:46].ljust(46),
            f"{row['length']:8}",
            f"{row['truth'] / GIB:8.3f}",
            *(one.rjust(16) for one in cells),
        )
    print()
    for name, found in errors.items():
        known = sorted(abs(one) for one in found if one is not None)
        high = known[int(0.9 * len(known))]
        print(
            f"{name}: {len(known)} of {len(found)}, median {median(known):.2%}, 90 % within {high:.1%}, "
            f"worst {known[-1]:.0%}"
        )
    highs = {name: sorted(1.0 if one is None else abs(one) for one in found) for name, found in errors.items()}
    least = min(highs, key=lambda name: highs[name][int(0.9 * len(rows))])
    return int(None in errors["diag"] or least != "diag")


def cases() -> list[dict[str, Any]]:
    """The start-ups on one device that print both, one of each model and type, and what else is stated."""
    from test_memory_outcomes import UNTOLD
    from test_pool import VLLM, config, model, pooled, widths

    from diag.estimate.memory import Launch
    from diag.estimate.pool import Shares, Widths, pool
    from diag.estimate.slots import cell

    found: dict[Any, dict[str, Any]] = {}
    for row in VLLM:
        said, flags = row["printed"], row["flags"]
        if row["tp"] * row["pp"] > 1 or not {"max_concurrency", "kv_gib"} <= said.keys() or row.get("draft_layers"):
            continue
        if "max_model_len" not in flags or row["id"] in UNTOLD:
            continue
        length, width = flags["max_model_len"], widths(flags).cache
        cut = pooled(row)
        own = cut.request(length, flags.get("max_num_batched_tokens", 0)) * cut.bytes
        truth = said["kv_gib"] * GIB / said["max_concurrency"]
        found.setdefault(
            (row["config"], width),
            {"name": row["config"], "document": config(row["config"]), "length": length, "width": width}
            | {"own": own, "truth": truth},
        )
    for name, (length, each, _) in STATED.items():
        row = {"config": name}
        own = model(row)
        if own.state:
            cut = pool(own, 64 * GIB, Shares(), Widths())
            value = cut.request(length) * cut.bytes - cut.groups["linear"] * cut.bytes
        else:
            value = cell(own, Launch(8192, 1, length)) * length
        found[name, 2] = {"name": name, "document": config(name), "length": length, "width": 2} | {
            "own": value,
            "truth": each * length,
        }
    return list(found.values())


if __name__ == "__main__":
    sys.exit(main())
