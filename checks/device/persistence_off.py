"""NVIDIA's driver does not keep its state while nothing uses the GPUs.

## What it finds
Persistence mode off on a machine with several GPUs for data centers.

## Why it matters
When the last program ends, the driver lets the GPUs go, and the next start waits seconds for each of them; clocks and
power limits that somebody set are lost.

## What it cannot know
Whether a program that always runs holds the driver in its place.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, Reading, Remedy, Undecided, check, devices

DOCUMENT = "https://docs.nvidia.com/deploy/driver-persistence/persistence-daemon.html"
DESKTOP = ("GeForce", "RTX", "GTX", "TITAN", "Quadro")

OFF = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA H100 80GB HBM3          Off |   00000000:18:00.0 Off |                    0 |
| N/A   28C    P0             88W /  700W |       0MiB /  81559MiB |      0%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA H100 80GB HBM3          Off |   00000000:2A:00.0 Off |                    0 |
| N/A   31C    P0             83W /
"""
ON = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA A100-PCIE-40GB          On  |   00000000:0A:00.0 Off |                    0 |
| N/A   55C    P0            121W /  250W |     495MiB /  40960MiB |    100%   E. Process |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA A100-PCIE-40GB          On  |   00000000:AE:00.0 Off |                    0 |
| N/A   38C    P0             62W /  250W |      38MiB /  40960MiB |      0%   E. Process |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
"""


@check(
    "device/persistence-off",
    severity="info",
    about="nvidia",
    needs=(Reading,),
    words={
        "en": {
            "title": "Persistence mode of the GPUs is off",
            "summary": "persistence mode is off on {count} of {all} GPUs",
            "cause": "The persistence daemon of the driver does not run; it is off by default.",
        },
        "zh": {
            "title": "GPU 的持久模式已关闭",
            "summary": "{all} 块 GPU 中有 {count} 块关闭了持久模式",
            "cause": "驱动的持久化守护进程没有运行；默认为关闭。",
        },
    },
    remedies=(
        Remedy(
            key="daemon",
            title={"en": "Start the persistence daemon", "zh": "启动持久化守护进程"},
            commands=("sudo systemctl enable --now nvidia-persistenced",),
            safety="safe",
            verify="nvidia-smi --query-gpu=index,persistence_mode --format=csv",
            source=DOCUMENT,
        ),
    ),
    sources=(DOCUMENT, "https://docs.nvidia.com/deploy/driver-persistence/overview.html"),
    fires=(OFF,),
    silent=(ON,),
)
def persistence_off(facts: Facts) -> Iterator[Answer]:
    """Count the devices whose mode is off, where it matters."""
    modes = {
        one.address or str(one.index): one
        for one in facts.all(Reading)
        if one.name == "persistence" and one.vendor == "nvidia"
    }
    off = [one for one in modes.values() if one.value == "Off"]
    names = [one.name for one in devices(facts) if one.vendor == "nvidia" and one.name]
    server = any(not any(word in name for word in DESKTOP) for name in names)
    if off and len(modes) > 1 and server:
        yield Finding(values={"count": len(off), "all": len(modes)}, evidence=tuple(map(Evidence.of, off[:3])))
    elif not modes:
        yield Undecided(reason="no tool told the persistence mode")
