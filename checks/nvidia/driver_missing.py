"""A device of the vendor is on the PCI bus and no driver for it is there.

## What it finds
A device that `lspci` names, where `nvidia-smi` was tried and does not exist, and nothing told of a loaded driver.

## Why it matters
Nothing can use the device.

## What it cannot know
Whether the driver is there without its tool: `/proc/driver/nvidia/version` tells, and where it was read this stays
silent. In a container started without the vendor's runtime the host may be in order.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Accelerator, Answer, Driver, Evidence, Facts, Finding, Remedy, Unavailable, Undecided, check

BUS = """\
$ lspci -nn | grep -i nvidia
02:00.0 VGA compatible controller [0300]: NVIDIA Corporation GF110 [GeForce GTX 570] [10de:1081](rev a1)
"""
NO_TOOL = """\
$ nvidia-smi
bash: line 9: nvidia-smi: command not found
"""
SMI_525 = """\
$ nvidia-smi
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 525.105.17   Driver Version: 525.105.17   CUDA Version: 12.0     |
|-------------------------------+----------------------+----------------------+
"""


@check(
    "nvidia/driver-missing",
    severity="error",
    about="nvidia",
    needs=(Accelerator,),
    uses=(Driver, Unavailable),
    words={
        "en": {
            "title": "No NVIDIA driver for the device on the bus",
            "summary": "{count} NVIDIA device(s) on the PCI bus, and no driver: {reason}",
            "cause": "The driver is not installed here, or this is a container that was started without the devices.",
        },
        "zh": {
            "title": "PCI 总线上有 NVIDIA 设备，但没有驱动",
            "summary": "PCI 总线上有 {count} 个 NVIDIA 设备，但没有驱动：{reason}",
            "cause": "此处未安装驱动，或者容器启动时没有挂载设备。",
        },
    },
    remedies=(
        Remedy(
            key="install",
            title={"en": "On an Ubuntu host: install the driver", "zh": "在 Ubuntu 主机上：安装驱动"},
            commands=("sudo ubuntu-drivers install --gpgpu",),
            safety="disruptive",
            verify="nvidia-smi",
            source="https://documentation.ubuntu.com/server/how-to/graphics/install-nvidia-drivers/",
        ),
        Remedy(
            key="container",
            title={
                "en": "In a container: start it with the devices",
                "zh": "在容器中：启动时挂载设备",
            },
            commands=("docker run --gpus all …",),
            safety="disruptive",
            verify="nvidia-smi",
        ),
    ),
    sources=(
        "https://github.com/RunGp/Nvidiux/issues/4",
        "https://github.com/Quansight/open-gpu-server/pull/85",
    ),
    fires=(BUS + NO_TOOL,),
    silent=(BUS + SMI_525,),
)
def driver_missing(facts: Facts) -> Iterator[Answer]:
    """Look for a device on the bus and the absence of its tool."""
    on_bus = [one for one in facts.all(Accelerator) if one.vendor == "nvidia" and one.seen_by == "pci"]
    tool = next((one for one in facts.all(Unavailable) if one.what == "nvidia-smi" and one.how == "missing"), None)
    loaded = any(one.vendor == "nvidia" for one in facts.all(Driver))
    if not on_bus or not (tool or loaded):
        yield Undecided(reason="a device on the bus and the vendor's tool were not both looked for")
    elif tool and not loaded:
        yield Finding(
            values={"count": len(on_bus), "reason": tool.reason},
            confidence="medium",
            evidence=(Evidence.of(on_bus[0]), Evidence.of(tool)),
        )
