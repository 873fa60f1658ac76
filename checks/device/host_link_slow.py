"""A device exchanges data with the host more slowly than its link can.

## What it finds
From pinned memory, in one direction, even the fastest copy below what fails such a machine elsewhere; where no
threshold is published for the model, below six tenths of what its link carries by generation and lanes, which the
published thresholds are (10 of 15.8, 21 of 31.5, 48 of 63 GB/s).

## Why it matters
Loading weights, offloaded layers, a cache in host memory and ranks that exchange through the host all go this way.

## What it cannot know
Whether the copy started on the processor next to the device: diag's own does not choose. Two tools measured 12 GB/s
from the near processor and 4 from the far one. Memory that is not pinned is shown and not judged.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Accelerator,
    Answer,
    DeviceBaseline,
    DeviceModel,
    DeviceTest,
    Evidence,
    Fact,
    Facts,
    Finding,
    HostLink,
    Package,
    Platform,
    Reading,
    Remedy,
    Undecided,
    Vendor,
    check,
    expectation,
    pci_address,
)

LANE = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563}
"""GB/s that a lane of PCI Express carries in one direction, by generation."""
SHARE = 0.6
DIRECTIONS = {"to-device": ("to the device", "写入设备"), "from-device": ("from the device", "从设备读出")}

# In the form of the child; bandwidthTest of a P100 from the far and the near processor (gearshifft, pull request 82).
LINK = """\
{"schema": "diag/nvml/1", "driver": "570.148.08", "cuda": "12.8", "devices": [{"index": 0, "readings": \
{"pcie.generation": 3, "pcie.generation.max": 3, "pcie.width": 16, "pcie.width.max": 16}, "errors": {}, \
"name": "Tesla P100-PCIE-16GB", "address": "00000000:01:00.0", "memory_mib": 16384, "processes": []}]}
"""
FAR = (
    LINK
    + """\
{"schema": "diag/device/1", "executable": "/opt/venv/bin/python", "devices": [{"device": "cuda:0", "name": \
"Tesla P100-PCIE-16GB", "memory_bytes": 17066885120, "address": "0000:01:00.0", "steps": [{"step": "link to \
the device, pinned", "bytes": 268435456, "pinned": true, "way": "to the device", "correct": true, "seconds": \
0.070950853, "fastest": 0.070950853, "samples": 40, "calls": 1}, {"step": "link from the device, pinned", \
"bytes": 268435456, "pinned": true, "way": "from the device", "correct": true, "seconds": 0.105716547, \
"fastest": 0.105716547, "samples": 40, "calls": 1}], "phase": "done", "error": "", "seconds": 9.1}], \
"torch": "2.9.1", "unseen": ""}
"""
)
NEAR = (
    LINK
    + """\
{"schema": "diag/device/1", "executable": "/opt/venv/bin/python", "devices": [{"device": "cuda:0", "name": \
"Tesla P100-PCIE-16GB", "memory_bytes": 17066885120, "address": "0000:01:00.0", "steps": [{"step": "link to \
the device, pinned", "bytes": 268435456, "pinned": true, "way": "to the device", "correct": true, "seconds": \
0.02209218, "fastest": 0.02209218, "samples": 40, "calls": 1}, {"step": "link from the device, pinned", \
"bytes": 268435456, "pinned": true, "way": "from the device", "correct": true, "seconds": 0.020824124, \
"fastest": 0.020824124, "samples": 40, "calls": 1}], "phase": "done", "error": "", "seconds": 9.1}], \
"torch": "2.9.1", "unseen": ""}
"""
)
# nvbandwidth on a machine of Azure with A100: its own results page and its health check disagree on what is sound.
ONE_WAY = """\
{"schema": "diag/device/1", "executable": "/opt/venv/bin/python", "devices": [{"device": "cuda:0", "name": \
"NVIDIA A100-SXM4-80GB", "memory_bytes": 85094825984, "address": "", "steps": [{"step": "link to the device, \
pinned", "bytes": 268435456, "pinned": true, "way": "to the device", "correct": true, "seconds": \
0.010214439, "fastest": 0.010214439, "samples": 40, "calls": 1}, {"step": "link from the device, pinned", \
"bytes": 268435456, "pinned": true, "way": "from the device", "correct": true, "seconds": 0.042812672, \
"fastest": 0.042812672, "samples": 40, "calls": 1}], "phase": "done", "error": "", "seconds": 9.1}], \
"torch": "2.9.1", "unseen": ""}
"""
# busGrind on eight devices behind PCI Express 5 (cuda-samples, issue 357), and what is not pinned.
FULL = """\
{"schema": "diag/device/1", "executable": "/opt/venv/bin/python", "devices": [{"device": "cuda:0", "name": \
"NVIDIA H100 80GB HBM3", "memory_bytes": 85520809984, "address": "", "steps": [{"step": "link to the device, \
pinned", "bytes": 268435456, "pinned": true, "way": "to the device", "correct": true, "seconds": \
0.004778983, "fastest": 0.004778983, "samples": 40, "calls": 1}, {"step": "link from the device, pinned", \
"bytes": 268435456, "pinned": true, "way": "from the device", "correct": true, "seconds": 0.005014673, \
"fastest": 0.005014673, "samples": 40, "calls": 1}, {"step": "link to the device, pageable", "bytes": \
268435456, "pinned": false, "way": "to the device", "correct": true, "seconds": 0.043296041, "fastest": \
0.043296041, "samples": 40, "calls": 1}], "phase": "done", "error": "", "seconds": 9.1}], "torch": "2.9.1", \
"unseen": ""}
"""


@check(
    "device/host-link-slow",
    severity="warning",
    about="device",
    needs=(HostLink,),
    uses=(Accelerator, DeviceBaseline, DeviceModel, DeviceTest, Package, Platform, Reading, Vendor),
    words={
        "en": {
            "title": "A device exchanges data with the host slowly",
            "summary": "{device} ({name}): {value} GB/s {direction.en}; at least {least} are expected",
            "cause": "The copy crosses to the far processor, the link came up with fewer lanes or an older generation, "
            "it shares a switch with something busy, or the machine's IOMMU or hypervisor is in the way.",
        },
        "zh": {
            "title": "设备与主机之间的传输过慢",
            "summary": "{device}（{name}）：{direction.zh} {value} GB/s；至少应达到 {least}",
            "cause": "传输跨到了远端处理器、链路降宽或降代、与繁忙设备共用交换芯片，或受 IOMMU、虚拟化影响。",
        },
    },
    remedies=(
        Remedy(
            key="near",
            title={
                "en": "Test once from each processor: a difference says which one the device is at",
                "zh": "分别绑定到每个处理器各测一次：差异说明设备靠近哪一个",
            },
            commands=(
                "numactl -N 0 -m 0 diag device --device {device}",
                "numactl -N 1 -m 1 diag device --device {device}",
            ),
            safety="safe",
            source="https://github.com/mpicbg-scicomp/gearshifft/pull/82",
        ),
        Remedy(
            key="link",
            title={
                "en": "Compare generation and lanes of the link, under load, with what the device can",
                "zh": "在负载下将链路的代际与宽度与设备能力对比",
            },
            commands=("sudo lspci -vv | grep -E '^[0-9a-f:.]+ |LnkCap:|LnkSta:'",),
            safety="safe",
            source="https://github.com/Azure/azurehpc-health-checks",
        ),
    ),
    sources=(
        "https://github.com/Azure/azurehpc-health-checks",
        "https://github.com/mpicbg-scicomp/gearshifft/pull/82",
        "https://github.com/NVIDIA/cuda-samples/issues/357",
    ),
    explains=("collectives/below-typical", "device/slower-than-sisters"),
    fires=(FAR, ONE_WAY),
    silent=(NEAR, FULL),
)
def host_link_slow(facts: Facts) -> Iterator[Answer]:
    """Each direction of each device beside what its model, or its link, must reach."""
    for one in facts.all(HostLink):
        if one.pinned:
            least, behind = _least(facts, one)
            if not least:
                yield Undecided(reason=f"{one.device}: neither its model nor its link says how fast it must be")
            elif one.best < least:
                yield _finding(one, least, behind)


def _least(facts: Facts, one: HostLink) -> tuple[float, tuple[Fact, ...]]:
    """GB/s that must be reached, and what was read of the link where no threshold is published."""
    if expected := expectation(facts, one, "host-link"):
        return expected.least, ()
    address = next((test.address for test in facts.all(DeviceTest) if test.device == one.device), "")
    told = {
        name: reading
        for name in ("pcie.generation.max", "pcie.width")
        for reading in facts.all(Reading)
        if reading.name == name and address and pci_address(reading.address) == address and reading.value.isdecimal()
    }
    if len(told) < 2:
        return 0.0, ()
    generation, width = (int(reading.value) for reading in told.values())
    return SHARE * LANE.get(generation, 0.0) * width, tuple(told.values())


def _finding(one: HostLink, least: float, behind: tuple[Fact, ...]) -> Finding:
    english, chinese = DIRECTIONS[one.direction]
    return Finding(
        subject=f"{one.device} {one.direction}",
        values={
            "device": one.device,
            "name": one.name,
            "value": f"{one.best:.3g}",
            "least": f"{least:.3g}",
            "direction.en": english,
            "direction.zh": chinese,
        },
        confidence="medium",
        evidence=(Evidence.of(one), *map(Evidence.of, behind)),
    )
