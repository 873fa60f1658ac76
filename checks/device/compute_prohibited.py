"""A GPU lets no program compute on it.

## What it finds
Compute mode `Prohibited`: one finding for each device.

## Why it matters
CUDA does not offer the device; an engine sees fewer devices, or none.

## What it cannot know
Who set it, and why.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, Reading, Remedy, Undecided, check, device_name

MODES = "https://github.com/netdata/netdata/issues/15755"

K80 = """\
| NVIDIA-SMI 352.63     Driver Version: 352.63         |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|===============================+======================+======================|
|   2  Tesla K80           On   | 0000:0D:00.0     Off |                    0 |
| N/A   27C    P8    26W / 149W |     55MiB / 11519MiB |      0%   Prohibited |
+-------------------------------+----------------------+----------------------+
|   3  Tesla K80           On   | 0000:0E:00.0     Off |                    0 |
| N/A   25C    P8    28W / 149W |     55MiB / 11519MiB |      0%   E. Process |
+-------------------------------+----------------------+----------------------+
"""
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


@check(
    "device/compute-prohibited",
    severity="error",
    about="device",
    needs=(Reading,),
    words={
        "en": {
            "title": "A GPU lets no program compute on it",
            "summary": "{device}: compute mode Prohibited",
            "cause": "Somebody set the compute mode so, as is done for GPUs that only drive a display.",
        },
        "zh": {
            "title": "GPU 禁止任何程序在其上计算",
            "summary": "{device}：计算模式为 Prohibited",
            "cause": "有人设置了该计算模式，通常用于仅负责显示输出的 GPU。",
        },
    },
    remedies=(
        Remedy(
            key="default",
            title={"en": "Set the compute mode back to the default", "zh": "将计算模式恢复为默认"},
            commands=("sudo nvidia-smi -i {id} --compute-mode=DEFAULT",),
            safety="safe",
            verify="nvidia-smi --query-gpu=index,compute_mode --format=csv",
            source=MODES,
        ),
    ),
    sources=(MODES,),
    explains=("torch/device-unavailable",),
    fires=(K80,),
    silent=(V100,),
)
def compute_prohibited(facts: Facts) -> Iterator[Answer]:
    """Look each device's mode up."""
    modes = [one for one in facts.all(Reading) if one.name == "compute.mode"]
    told: dict[str, Reading] = {}
    for one in modes:
        if one.value == "Prohibited":
            told.setdefault(device_name(facts, index=one.index, address=one.address, vendor=one.vendor), one)
    for device, one in told.items():
        yield Finding(
            values={"device": device or "GPU", "id": one.address or str(one.index or 0)},
            subject=device,
            evidence=(Evidence.of(one),),
        )
    if not modes:
        yield Undecided(reason="no tool told the compute mode")
