"""The PCI Express link of a device runs below its speed although it is under load.

## What it finds
An accelerator that is busy (four fifths of the time or more) and whose link is of a lower generation than device and
slot can do; and an RDMA adapter whose link is slower than it could be and than that of another of the same make.

## Why it matters
Each generation halves the bandwidth.

## What it cannot know
An idle device lowers the speed of its link to save power, and raises it within milliseconds: nothing is said of those.
Whether a slot of an older generation is meant for the adapter it cannot know either.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, PciDevice, Reading, Remedy, Undecided, check, device_name

BUSY = 80.0
ADAPTERS = ("0207", "0c06", "0200", "0280")

BUSY_AT_GEN_1 = """\
index, name, utilization.gpu [%], pcie.link.gen.current, pcie.link.gen.max
0, NVIDIA GeForce RTX 5060 Ti, 96 %, 1, 4
"""
IDLE_AT_GEN_1 = """\
index, name, utilization.gpu [%], pcie.link.gen.current, pcie.link.gen.max
0, NVIDIA GeForce RTX 5060 Ti, 96 %, 4, 4
1, NVIDIA GeForce RTX 5060 Ti, 0 %, 1, 4
"""


@check(
    "host/pcie-speed-below",
    severity="warning",
    about="host",
    needs=(),
    uses=(PciDevice, Reading),
    words={
        "en": {
            "title": "A device's PCI Express link is below its speed",
            "summary": "{device} runs at {speed}; {expected} is possible",
            "cause": "The link fell back while it trained: a riser, a contact or a retimer does not carry the full "
            "speed; or the firmware of the board sets a limit, or a setting keeps the link from rising.",
        },
        "zh": {
            "title": "设备的 PCIe 链路速率低于应有水平",
            "summary": "{device} 以 {speed} 运行，可达 {expected}",
            "cause": "链路训练时降速：转接卡、触点或 retimer 无法承载全速，或主板固件限制了速率，或某项设置阻止提速。",
        },
    },
    remedies=(
        Remedy(
            key="look",
            title={
                "en": "Look at the link from both sides under load; see the slot's speed in the board's firmware",
                "zh": "在负载下从链路两端检查，并查看主板固件中的插槽速率设置",
            },
            commands=("sudo lspci -vv | grep -E '^[0-9a-f]|LnkCap:|LnkSta:|LnkCtl2:'",),
            safety="safe",
            verify="nvidia-smi --query-gpu=index,utilization.gpu,pcie.link.gen.current,pcie.link.gen.max --format=csv",
            source="https://docs.nvidia.com/datacenter/dcgm/latest/reference/diagnostics/plugins/pcie.html",
        ),
    ),
    sources=(
        "https://github.com/Syllo/nvtop/issues/6",
        "https://github.com/local-inference-lab/rtx6kpro/pull/88",
        "https://nvidia.github.io/cuda-python/cuda-core/latest/generated/cuda.core.system.PciInfo.html",
    ),
    explains=("collectives/below-baseline", "collectives/below-typical"),
    fires=(BUSY_AT_GEN_1,),
    silent=(IDLE_AT_GEN_1,),
)
def pcie_speed_below(facts: Facts) -> Iterator[Answer]:
    """Busy accelerators by what is possible, adapters by their equals."""
    readings: dict[tuple[int | None, str, str], dict[str, Reading]] = {}
    for one in facts.all(Reading):
        readings.setdefault((one.index, one.address, one.vendor), {})[one.name] = one
    busy = [told for told in readings.values() if _number(told, "utilization") >= BUSY]
    judged = [told for told in busy if {"pcie.generation", "pcie.generation.max"} <= told.keys()]
    adapters = [one for one in facts.all(PciDevice) if one.class_id in ADAPTERS and one.speed and one.speed_max]
    if not judged and not adapters:
        yield Undecided(reason="no speed of a link is told of a device that is known to be busy")
    for told in judged:
        now, most = told["pcie.generation"], told["pcie.generation.max"]
        if 0 < _number(told, now.name) < _number(told, most.name):
            device = device_name(facts, index=now.index, address=now.address, vendor=now.vendor) or now.vendor
            values = {"device": device, "speed": f"PCIe {now.value}", "expected": f"PCIe {most.value}"}
            yield Finding(
                subject=device,
                values={**values},
                confidence="medium",
                evidence=(Evidence.of(now), Evidence.of(most), Evidence.of(told["utilization"])),
            )
    for adapter in adapters:
        best = max(one.speed or 0 for one in adapters if _make(one) == _make(adapter))
        speed = adapter.speed or 0
        if speed < min(best, adapter.speed_max or best):
            values = {"device": adapter.address, "speed": f"{speed:g} GT/s", "expected": f"{best:g} GT/s"}
            evidence = (Evidence.of(adapter),)
            yield Finding(subject=adapter.address, values={**values}, confidence="medium", evidence=evidence)


def _number(told: dict[str, Reading], name: str) -> float:
    text = told[name].value if name in told else ""
    return float(text) if text.replace(".", "", 1).isdecimal() else 0.0


def _make(device: PciDevice) -> tuple[str, str, str]:
    return device.vendor_id, device.device_id, device.name
