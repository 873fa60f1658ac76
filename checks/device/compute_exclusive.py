"""A GPU lets one process at a time compute on it.

## What it finds
Compute mode `Exclusive_Process`, where no server that shares the GPU (MPS) is seen: one finding for all devices.

## Why it matters
A second process on the same GPU fails with "all CUDA-capable devices are busy or unavailable": a second engine, a
measurement beside the engine, or an engine whose parent process opened the GPU before its workers.

## What it cannot know
Whether a scheduler sets it on purpose, as on many clusters.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from diag.api import (
    Answer,
    DeviceProcess,
    Evidence,
    Facts,
    Finding,
    Reading,
    Remedy,
    Shell,
    Undecided,
    check,
    device_name,
)

MODES = "https://github.com/netdata/netdata/issues/15755"
SERVER = "nvidia-cuda-mps-server"

V100 = """\
| NVIDIA-SMI 580.65.06              Driver Version: 580.65.06      CUDA Version: 13.0     |
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  Tesla V100-SXM2-32GB           Off |   00000000:18:00.0 Off |                    0 |
| N/A   32C    P0             41W /  300W |       0MiB /  32768MiB |      0%   E. Process |
|                                         |                        |                  N/A |
"""
T4_MPS = """\
| NVIDIA-SMI 460.32.03    Driver Version: 460.32.03    CUDA Version: 11.2     |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|                               |                      |               MIG M. |
|===============================+======================+======================|
|   0  Tesla T4            On   | 00002C74:00:00.0 Off |                    0 |
| N/A   36C    P8     9W /  70W |     28MiB / 15109MiB |      0%   E. Process |
|                               |                      |                  N/A |
+-------------------------------+----------------------+----------------------+

+-----------------------------------------------------------------------------+
| Processes:                                                                  |
|  GPU   GI   CI        PID   Type   Process name                  GPU Memory |
|        ID   ID                                                   Usage      |
|=============================================================================|
|    0   N/A  N/A    122792      C   nvidia-cuda-mps-server             25MiB |
+-----------------------------------------------------------------------------+
"""


@check(
    "device/compute-exclusive",
    severity="info",
    about="device",
    needs=(Reading,),
    uses=(DeviceProcess,),
    words={
        "en": {
            "title": "A GPU lets one process at a time compute on it",
            "summary": "{device}: compute mode Exclusive_Process",
            "cause": "Somebody, or the cluster's scheduler, set the compute mode so.",
        },
        "zh": {
            "title": "GPU 同一时刻只允许一个进程计算",
            "summary": "{device}：计算模式为 Exclusive_Process",
            "cause": "有人或集群调度器设置了该计算模式。",
        },
    },
    remedies=(
        Remedy(
            key="default",
            title={
                "en": "If several processes are to share the GPU: set the compute mode back to the default",
                "zh": "若需要多个进程共享该 GPU：将计算模式恢复为默认",
            },
            commands=("for gpu in {ids}; do sudo nvidia-smi -i $gpu --compute-mode=DEFAULT; done",),
            safety="safe",
            verify="nvidia-smi --query-gpu=index,compute_mode --format=csv",
            source=MODES,
        ),
    ),
    sources=(MODES,),
    fires=(V100,),
    silent=(T4_MPS,),
)
def compute_exclusive(facts: Facts) -> Iterator[Answer]:
    """Look each device's mode up, and tell of them together."""
    modes = [one for one in facts.all(Reading) if one.name == "compute.mode"]
    shared = any(SERVER in one.name for one in facts.all(DeviceProcess))
    told: dict[str, Reading] = {}
    for one in modes:
        if one.value.startswith("Exclusive") and not shared:
            told.setdefault(device_name(facts, index=one.index, address=one.address, vendor=one.vendor), one)
    if told:
        device = next(iter(told)) if len(told) == 1 else ", ".join(name.partition(" (")[0] for name in told)
        numbers = (one.address or str(one.index or 0) for one in told.values())
        yield Finding(
            values={"device": device or "GPU", "ids": Shell(shlex.join(numbers))},
            subject=device,
            evidence=tuple(map(Evidence.of, list(told.values())[:4])),
        )
    if not modes:
        yield Undecided(reason="no tool told the compute mode")
