"""The bus has a device that the vendor's tool does not list.

## What it finds
Functions on the PCI bus of the same maker and model as a device that the tool lists, that the tool does not list: one
finding for each.

## Why it matters
The machine has fewer devices than it should: tensor parallelism over all of them does not start.

## What it cannot know
Why: the driver failed on it, the device was lost, or it is kept for a virtual machine. In a container, and in a job of
a cluster's scheduler, a tool lists what was granted: where one of these is seen it is not judged.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Accelerator,
    Answer,
    Evidence,
    Facts,
    Finding,
    PciDevice,
    Platform,
    Remedy,
    Setting,
    Undecided,
    check,
    device_name,
)

THREAD = "https://github.com/NVIDIA/aicr/issues/1858"
PASSED_ON = ("vfio-pci", "pci-stub")
"""Drivers that keep a device for a virtual machine."""

TABLE = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 555.42.02              Driver Version: 555.42.02      CUDA Version: 12.5     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA H100 PCIe               Off |   00000000:C2:00.0 Off |                    0 |
| N/A   28C    P0             44W /  350W |       1MiB /  81559MiB |      0%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA H100 PCIe               Off |   00000000:D5:00.0 Off |                    0 |
| N/A   29C    P0             49W /  350W |       1MiB /  81559MiB |      0%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
"""
THREE = """\
{"schema": "diag/pci/1", "functions": 90, "devices": [{"address": "0000:c2:00.0", "vendor_id": "10de", "device_id": "2331", "class_id": "0302", "driver": "nvidia"}, {"address": "0000:d5:00.0", "vendor_id": "10de", "device_id": "2331", "class_id": "0302", "driver": "nvidia"}, {"address": "0000:e1:00.0", "vendor_id": "10de", "device_id": "2331", "class_id": "0302", "driver": "nvidia"}]}
"""  # noqa: E501
TWO = """\
{"schema": "diag/pci/1", "functions": 90, "devices": [{"address": "0000:c2:00.0", "vendor_id": "10de", "device_id": "2331", "class_id": "0302", "driver": "nvidia"}, {"address": "0000:d5:00.0", "vendor_id": "10de", "device_id": "2331", "class_id": "0302", "driver": "nvidia"}]}
"""  # noqa: E501
NAMES = """\
$ lspci | grep -i nvidia
c2:00.0 3D controller: NVIDIA Corporation GH100 [H100 PCIe] (rev a1)
d5:00.0 3D controller: NVIDIA Corporation GH100 [H100 PCIe] (rev a1)
e1:00.0 3D controller: NVIDIA Corporation GH100 [H100 PCIe] (rev a1)
"""


@check(
    "device/missing-from-tool",
    severity="error",
    about="device",
    needs=(Accelerator, PciDevice),
    uses=(Platform, Setting),
    words={
        "en": {
            "title": "A device on the bus is missing from the vendor's tool",
            "summary": "{device} ({model}) is on the bus; the tool lists {listed} of its kind, not this one",
            "cause": "The driver could not start the device, or lost it while it ran.",
        },
        "zh": {
            "title": "总线上的设备未出现在厂商工具中",
            "summary": "{device}（{model}）在总线上；工具列出了 {listed} 个同型号设备，但不包含它",
            "cause": "驱动无法启动该设备，或在运行中丢失了该设备。",
        },
    },
    remedies=(
        Remedy(
            key="kernel",
            title={"en": "Read what the kernel says of this address", "zh": "查看内核关于该地址的记录"},
            commands=("sudo dmesg | grep -i {slot}", "lspci -vvs {address}"),
            safety="safe",
            verify="nvidia-smi || rocm-smi || npu-smi info",
            source=THREAD,
        ),
        Remedy(
            key="power-cycle",
            title={
                "en": "Power the machine off and on; if the device stays away, have it replaced",
                "zh": "将机器断电后再开机；若设备仍未出现，则更换设备",
            },
            commands=("sudo poweroff",),
            safety="disruptive",
            verify="nvidia-smi || rocm-smi || npu-smi info",
            source=THREAD,
        ),
    ),
    explains=("engine/more-ranks-than-devices", "device/count-below-expected"),
    sources=(
        THREAD,
        "https://github.com/NixOS/nixpkgs/issues/73804",
        "https://github.com/NVIDIA/gpu-operator/issues/643",
    ),
    fires=(THREE + TABLE, NAMES + TABLE),
    silent=(TWO + TABLE, NAMES.partition("e1:00.0")[0] + TABLE),
)
def missing_from_tool(facts: Facts) -> Iterator[Answer]:
    """Compare the addresses of the bus with those of the tool."""
    told = sorted(facts.all(PciDevice), key=lambda one: bool(one.device_id))
    bus = {one.address: one for one in told if one.vendor_id and one.class_id and (one.device_id or one.name)}
    listed = [one for one in facts.all(Accelerator) if one.seen_by == "tool"]
    known = {one.address: one for one in listed if one.address in bus}
    if reason := _granted(facts):
        yield Undecided(reason=reason)
    elif not known or any(not one.address for one in listed):
        yield Undecided(reason="the tool's devices and those on the bus cannot be compared by address")
    else:
        yield from _missing(facts, bus, known)


def _missing(facts: Facts, bus: dict[str, PciDevice], known: dict[str, Accelerator]) -> Iterator[Finding]:
    models = {_model(bus[address]): device for address, device in known.items()}
    for address, function in bus.items():
        device = models.get(_model(function))
        if device and address not in known and function.driver not in PASSED_ON:
            same = sum(_model(bus[one]) == _model(function) for one in known)
            name = device_name(facts, address=address, vendor=device.vendor)
            yield Finding(
                values={
                    "device": name,
                    "model": function.name or device.name or device.vendor,
                    "listed": same,
                    "address": address,
                    "slot": address.partition(":")[2],
                },
                subject=name,
                confidence="medium",
                evidence=(Evidence.of(function), Evidence.of(device)),
            )


def _model(function: PciDevice) -> tuple[str, str, str]:
    """Maker, model and class; the name stands for a model whose number was not asked for (`lspci` without `-nn`)."""
    return function.vendor_id, function.device_id or function.name, function.class_id


def _granted(facts: Facts) -> str:
    """Why the tool may list fewer devices than there are, and nothing is wrong."""
    if any("container" in one.traits for one in facts.all(Platform)):
        return "in a container the tool lists the devices that were granted"
    if any(one.name.endswith("VISIBLE_DEVICES") or one.name.startswith("SLURM_") for one in facts.all(Setting)):
        return "a variable tells that devices were chosen, and the tool may list these alone"
    return ""
