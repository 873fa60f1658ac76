"""Variables of the environment, of the live machine or as `env`, `export` and the reports of engines show them.

Which are told, and what of their values, is decided in `_environment.py` alone. A value that the shell would still
have to work out (`$HOME/x`) is told as nothing. Whose environment a paste shows, it cannot know.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from diag.api import Capture, Fact, Line, Listing, Recognise, Setting, Unavailable, expression, probe, program

CHILD = str(Path(__file__).resolve().parent / "_environment.py")
SCHEMA = "diag/environment/1"
LITERALS = (
    *("CUDA_", "NVIDIA_", "NCCL_", "NVSHMEM_", "HIP_", "ROCR_", "ROCM_", "HSA_", "MIOPEN_", "ASCEND_", "HCCL_", "ATB_"),
    *("XPU_", "BKCL_", "ONEAPI_", "SYCL_", "CCL_", "ZE_", "UCX_", "GLOO_", "OMP_NUM_THREADS", "MKL_", "KMP_", "TORCH"),
    *("VLLM_", "SGLANG_", "SGL_", "RAY_", "TRITON_", "FLASHINFER_", "TOKENIZERS_", "TRANSFORMERS_", "HF_", "LD_"),
    *("PYTHONPATH=", "VIRTUAL_ENV=", "CONDA_PREFIX=", "MASTER_", "WORLD_SIZE=", "RANK=", "_proxy=", "_PROXY="),
    *(
        "AMD_",
        "TASK_QUEUE_ENABLE=",
        "FAST_RANDOM_SAMPLE=",
        "XMLIR_",
        "MUSA_",
        "MCCL_",
        "MACA_",
        "UR_L0_",
        "ENABLE_MLU_",
    ),
    "ENABLE_FALLBACK_TO_CPU=",
)
ASSIGNED = expression(
    r"^[ \t>|*]{0,12}(?:export\s+|declare -x\s+|ENV\s+)?(?P<name>[A-Za-z_][A-Za-z0-9_]{1,60})="
    r"(?P<value>\"[^\"`$\\]*\"|'[^'`]*'|[^\s\"'`$\\]*)\s*(?:;\s*)?(?:#.*)?$"
)
REQUIRED = expression(
    r"^[ \t>|*]{0,12}(?P<name>NVIDIA_REQUIRE_\w{1,40})=(?P<value>(?:cuda|brand|driver|arch)[<>=!].*)$"
)
"""The one value that holds spaces and stands without quotes."""
PLAIN = re.sub(r"\?P<\w+>", "", REQUIRED.pattern)


@probe("environment", tells=(Setting, Listing), measure=CHILD, recognise=Recognise((f'"schema": "{SCHEMA}"',), lines=0))
def environment(capture: Capture) -> Iterator[Fact]:
    """What the machine's own processes would start with: what NCCL's files set first, for variables outdo it."""
    document = capture.document(SCHEMA)
    if document is None:
        return
    yield Listing(origin=capture.said(SCHEMA), kind="environment")
    files = _object(document.get("files"))
    for file, told in files.items():
        yield from _settings(capture, _object(told), f"{json.dumps({file: told})[1:-1]}")
    variables = _object(document.get("variables"))
    yield from _settings(capture, variables)
    if not (variables or files):
        reason = "none of the variables that bear on accelerators is set"
        yield Unavailable(
            origin=capture.said(reason), what="environment", how="silent", reason=reason, tells=("Setting",)
        )


def _object(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def _settings(capture: Capture, variables: dict[str, object], quote: str = "") -> Iterator[Setting]:
    for name, value in variables.items():
        shown = program(CHILD)["told"](name, str(value))
        if shown is not None:
            origin = capture.said(quote or json.dumps({name: shown})[1:-1])
            yield Setting(origin=origin, name=name, value=shown)


@probe(
    "environment/pasted",
    tells=(Setting,),
    recognise=Recognise(LITERALS, f"{ASSIGNED.pattern}|{PLAIN}", each=True, lines=20),
)
def pasted(capture: Capture) -> Iterator[Fact]:
    """Lines that set one variable each: `env`, `export`, a Dockerfile's `ENV`, the end of vLLM's `collect_env`."""
    for line in capture.lines():
        if found := ASSIGNED.match(line.text) or REQUIRED.match(line.text):
            value = found["value"]
            quoted = value[:1] in ("'", '"') and len(value) > 1
            shown = program(CHILD)["told"](found["name"], value[1:-1] if quoted else value.strip())
            quote = line if shown and shown in line.text else Line(line.number, f"{found['name']}=")
            if shown is not None:
                yield Setting(origin=capture.origin(quote), name=found["name"], value=shown)
