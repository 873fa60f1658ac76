"""Variables of the environment that bear on accelerators, engines and collectives: prints `diag/environment/1`.

Only names of this list are told, never one that may hold a secret, and of a value never what may be one: this file is
the one place that decides it, for the live machine and for a paste (`told`). `files` are the variables that NCCL reads
from its configuration files, each file below the ones that it yields to.
"""

from __future__ import annotations

import json
import os
import re
import sys

PREFIXES = (
    *("CUDA_", "CUDNN_", "CUBLAS_", "NVIDIA_", "NCCL_", "NVSHMEM_", "NVCC_", "NVTE_", "NIXL_"),
    *("HIP_", "ROCR_", "ROCM_", "HSA_", "RCCL_", "MIOPEN_", "AMD_", "AITER_", "HIPBLASLT_", "DTK"),
    *("ASCEND_", "HCCL_", "ATB_", "NPU_", "ACL_", "ACLNN_", "XPU_", "BKCL_", "KUNLUN_", "XMLIR_", "XDNN_"),
    *("ONEAPI_", "SYCL_", "CCL_", "ZE_", "ZES_", "ONEDNN_", "DNNL_", "IPEX_", "MUSA_", "MCCL_", "MACA_", "MCPYTORCH_"),
    *("UR_L0_", "ENABLE_MLU_"),
    *("UCX_", "GLOO_", "FI_", "MLX5_", "IBV_", "SHARP_", "OMP_", "GOMP_", "MKL_", "KMP_", "OPENBLAS_"),
    *("TORCH_", "TORCHINDUCTOR_", "TORCHDYNAMO_", "TORCHELASTIC_", "PYTORCH_", "TRITON_", "FLASHINFER_", "XFORMERS_"),
    *("VLLM_", "SGLANG_", "SGL_", "LMDEPLOY_", "LMCACHE_", "MOONCAKE_", "RAY_", "TRANSFORMERS_", "TOKENIZERS_"),
)
NAMES = frozenset(
    (
        *("LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV"),
        *(
            "HF_HOME",
            "HF_HUB_OFFLINE",
            "HF_ENDPOINT",
            "HF_HUB_CACHE",
            "HF_HUB_ENABLE_HF_TRANSFER",
            "HF_HUB_DISABLE_XET",
        ),
        *("HUGGINGFACE_HUB_CACHE", "MODELSCOPE_CACHE", "XDG_CACHE_HOME", "TMPDIR", "MAX_JOBS", "GPU_DEVICE_ORDINAL"),
        *("GPU_MAX_HW_QUEUES", "GPU_ARCHS", "MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "LOCAL_RANK"),
        *("LOCAL_WORLD_SIZE", "NODE_RANK", "GROUP_RANK", "TP_SOCKET_IFNAME", "TASK_QUEUE_ENABLE", "CPU_AFFINITY_CONF"),
        *("FAST_RANDOM_SAMPLE", "ENABLE_FALLBACK_TO_CPU"),
    )
)
PROXIES = frozenset(("http_proxy", "https_proxy", "all_proxy", "no_proxy"))
"""Told to be set, in whichever case they are written; never to what."""
OPEN_TO_ALL = frozenset(("localhost", "127.0.0.1", "127.0.0.0/8", "::1", "0.0.0.0", "*"))
"""The words of a `no_proxy` that are told: they are the same on every machine."""
CONFIGURATION = ("/etc/nccl.conf", "~/.nccl.conf")
CONFIGURATION_CAP = 2**16
SECRET = re.compile(r"TOKEN|KEY|SECRET|PASS|PWD|CREDENTIAL|AUTH|COOKIE|PRIVATE|SIGNATURE|(?:^|_)(?:PAT|DSN|SAS)(?:_|$)")
NOT_SECRET = "TOKENIZERS"
SECRET_VALUE = re.compile(
    r"(?i)(?:token|key|secret|passw|pwd|credential|auth|bearer)\w*[\"']?\s*[:=\s]\s*[\"']?\w"
    r"|\b(?:hf|ghp|gho|ghs|glpat|sk|xox[abp]|nvapi)[_\-][A-Za-z0-9_\-]{16,}|\bAKIA[0-9A-Z]{12,}|\beyJ[\w\-]{16,}"
)
URL = re.compile(r"(?P<scheme>[a-zA-Z][a-zA-Z0-9+.\-]{0,20}://)(?:[^\s/?#]*@)?(?P<rest>[^\s?#@]*)(?P<tail>\S*)")
LOGIN = re.compile(r"[^\s/:@]:[^\s/@]+@")
MASK = "***"
VALUE_CAP = 2000


def told(name: str, value: str) -> str | None:
    """What may be told of a variable's value, None where the variable is not told at all."""
    if name.lower() == "no_proxy":
        words = [word.strip().lower() for word in value.split(",")]
        return ",".join(word for word in words if word in OPEN_TO_ALL) or (MASK if value else "")
    if name.lower() in PROXIES:
        return MASK if value else ""
    if not (name in NAMES or name.startswith(PREFIXES)) or SECRET.search(name.upper().replace(NOT_SECRET, "")):
        return None
    shown = URL.sub(_bare, value)
    return MASK if SECRET_VALUE.search(shown) or LOGIN.search(shown) else shown[:VALUE_CAP]


def _bare(url: re.Match[str]) -> str:
    """An address without who logs in and what is asked; nothing but its scheme where that is in doubt."""
    return url["scheme"] + (MASK if "@" in url["tail"] else url["rest"])


def configured() -> dict[str, dict[str, str]]:
    """What NCCL's configuration files set: that of the system, and the user's, or the one that a variable names."""
    named = os.environ.get("NCCL_CONF_FILE")
    files = {one: os.path.expanduser(one) for one in CONFIGURATION[: 1 if named else 2]}
    if named:
        files["NCCL_CONF_FILE"] = named
    read = {name: shown(assigned(path)) for name, path in files.items()}
    return {name: variables for name, variables in read.items() if variables}


def assigned(path: str) -> dict[str, str]:
    """The lines `NAME=value` of a file as NCCL reads them; none where it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read(CONFIGURATION_CAP).split("\n")
    except (OSError, ValueError):
        return {}
    pairs = (line.partition("=") for line in lines if not line.startswith("#"))
    return {name: value for name, equals, value in pairs if equals}


def shown(variables: dict[str, str]) -> dict[str, str]:
    """What may be told of variables."""
    told_of = {name: told(name, value) for name, value in sorted(variables.items())}
    return {name: value for name, value in told_of.items() if value is not None}


def main() -> None:
    """Print the document."""
    document = {"schema": "diag/environment/1", "variables": shown(dict(os.environ))}
    if files := configured():
        document["files"] = files
    sys.stdout.write(json.dumps(document) + "\n")


if __name__ == "__main__":
    main()
