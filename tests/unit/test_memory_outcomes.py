"""What became of public launches, against the plans of them: each right, or told to be of low confidence."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from planning import GIB, planned

from diag.facts import MemoryPlan

HERE = Path(__file__).parent / "memory"
ROWS: list[dict[str, Any]] = [one for one in yaml.safe_load((HERE / "outcomes.yaml").read_text()) if "config" in one]
OUTCOMES = {
    "FAIL_FREE": "refused-free",
    "FAIL_MODEL_LEN": "refused-length",
    "FAIL_MAMBA_BLOCKS": "refused-states",
    "FAIL_NO_KV": "refused-room",
    "OOM": "oom-at-runtime",
}
"""What a report says, by how it begins; all else started."""
FLAGS = {
    "vllm": {
        "gpu_memory_utilization": "gpu-memory-utilization",
        "max_model_len": "max-model-len",
        "max_num_seqs": "max-num-seqs",
        "max_num_batched_tokens": "max-num-batched-tokens",
        "kv_cache_dtype": "kv-cache-dtype",
        "dtype": "dtype",
    },
    "sglang": {
        "mem_fraction_static": "mem-fraction-static",
        "chunked_prefill_size": "chunked-prefill-size",
        "cuda_graph_max_bs": "cuda-graph-max-bs",
        "kv_cache_dtype": "kv-cache-dtype",
    },
}
SWITCHES = {
    "prefix_caching": "enable-prefix-caching",
    "enable_expert_parallel": "enable-expert-parallel",
    "dp_attention": "enable-dp-attention",
}
STARTS = {"vllm": "vllm serve M", "sglang": "python -m sglang.launch_server --model-path M"}
UNTOLD = {
    "v30515-eugr": "the report does not name its model",
    "aic238": "the report names neither the device nor the size of its weights",
}
"""Rows that do not tell what a plan needs."""
TRIED, FEW = 16384, 64
"""Tokens of the longest request, and requests at once, where a report tells what ran and not what was allowed: the
defaults would have been refused, by what it prints of the KV cache."""
SMALL = "v52872-"


def command(row: dict[str, Any]) -> str:
    flags, names = row["flags"], FLAGS[row["engine"]]
    words = [STARTS[row["engine"]], f"--tensor-parallel-size {row['tp']} --pipeline-parallel-size {row['pp']}"]
    words += [f"--{names[key]} {value}" for key, value in flags.items() if key in names and value != "auto"]
    if row["engine"] == "vllm" and "max_model_len" not in flags:
        words.append(f"--max-model-len {min(row['printed'].get('kv_tokens', TRIED), TRIED)}")
    if row["id"].startswith(SMALL):
        words.append(f"--max-num-seqs {FEW}")
    words += [f"--{name}" for key, name in SWITCHES.items() if flags.get(key)]
    words += [f"--data-parallel-size {row['dp']}"] if row["dp"] > 1 else []
    words = ["VLLM_USE_V1=0", *words] if "(V0)" in row["version"] else words
    return " ".join([*words, *(["--quantization fp8"] if row["id"].endswith("qfp8") else [])])


def plan(row: dict[str, Any]) -> MemoryPlan:
    said = row["printed"]
    version = re.match(r"\d+\.\d+(\.\d+)?(rc\d|\.post\d)?", row["version"])
    asked: dict[str, Any] = {"device_bytes": row.get("gpu_mem_gib", 80) * GIB}
    if held := re.search(r"\(([\d.]+)/[\d.]+ GiB\)", row.get("error", "")):
        # Others held a part of it: the device's tool would say so.
        used = (row["gpu_mem_gib"] - float(held[1])) * 1024
        total = row["gpu_mem_gib"] * 1024
        asked["log"] = (
            f"index, name, memory.used [MiB], memory.total [MiB]\n0, NVIDIA H100, {used:.0f} MiB, {total:.0f} MiB\n"
        )
    if "weights_gib" in said:
        asked["weights_bytes"] = said["weights_gib"] * GIB * row["tp"] * row["pp"]
    if version and "x" not in row["version"]:
        asked["release"] = f"{row['engine']}=={version[0]}"
    return planned(command(row), row["config"], **asked)


def right(row: dict[str, Any], told: MemoryPlan) -> bool:
    wanted = next((name for start, name in OUTCOMES.items() if row["outcome"].startswith(start)), "starts")
    return told.starts if wanted == "starts" else told.outcome == wanted


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_the_outcome_is_right_or_of_low_confidence(row: dict[str, Any]) -> None:
    if row["id"] in UNTOLD:
        pytest.skip(UNTOLD[row["id"]])
    told = plan(row)
    assert right(row, told) or told.confidence == "low", (row["outcome"], told.says(), told.doubts)


def test_how_many_are_right(said: list[str]) -> None:
    rows = [one for one in ROWS if one["id"] not in UNTOLD]
    known = [right(row, plan(row)) for row in rows]
    missed = [row["id"] for row, own in zip(rows, known, strict=True) if not own]
    said.append(f"outcomes of {len(rows)} public launches: {sum(known)} right; of low confidence: {', '.join(missed)}")
    assert sum(known) >= 0.85 * len(rows)
