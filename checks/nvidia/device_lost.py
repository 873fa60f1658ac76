"""A GPU no longer answers on the bus.

## What it finds
The kernel's words that a GPU has fallen off the bus (also Xid 79) or is inaccessible, and those of `nvidia-smi` that it
is lost or that its handle cannot be determined: one finding for each device.

## Why it matters
Nothing can use that GPU until the machine was restarted; `nvidia-smi` may refuse to show the others as well.

## What it cannot know
Why: power, heat, the slot, a riser or cable, the card itself. From the log alone, whether it came back since; where the
tool lists the device all the same, the confidence is medium.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Accelerator,
    Answer,
    Evidence,
    Fact,
    Facts,
    Finding,
    HardwareEvent,
    Reading,
    Remedy,
    Text,
    Unavailable,
    Undecided,
    check,
    device_name,
    expression,
    pci_address,
)

CATALOGUE = "https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html"
HANDLE = "Unable to determine the device handle"
NUMBER = expression(r"GPU ?([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])")
LOST = "GPU is lost"
SENSORS = ("memory.used", "temperature", "utilization")
"""What the tool tells of a device that answers."""

TOOL = """\
$ nvidia-smi
Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost. Reboot the system to recover this GPU
"""
UNKNOWN_ERROR = """\
$ nvidia-smi
Unable to determine the device handle for GPU0000:07:00.0: Unknown Error
"""
KERNEL = """\
[ 1843.308145] NVRM: The NVIDIA GPU 0000:b3:00.0
               NVRM: (PCI ID: 10de:26b5) installed in this system has
               NVRM: fallen off the bus and is not responding to commands.
[ 1843.439662] NVRM: The NVIDIA probe routine failed for 1 device(s).
"""
XID = """\
[6781741.548779] NVRM: Xid (PCI:0000:91:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
[6781741.548783] NVRM: GPU 0000:91:00.0: GPU has fallen off the bus.
"""
MONITOR = "XID 79(GPU has fallen off the bus) detected on PCI:0000:ae:00\n"
MEMORY = """\
[Fri Aug  9 13:32:56 2024] NVRM: Xid (PCI:0000:00:08): 94, pid='<unknown>', name=<unknown>, Contained: SM (0x1). \
RST: No, D-RST: No
"""
LISTED = """\
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 525.105.17   Driver Version: 525.105.17   CUDA Version: 12.0     |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|                               |                      |               MIG M. |
|===============================+======================+======================|
|   0  NVIDIA A100-SXM...  Off  | 00000000:AF:00.0 Off |                    0 |
| N/A   32C    P0    42W / 400W |  48770MiB / 81920MiB |      0%      Default |
"""


@check(
    "nvidia/device-lost",
    severity="error",
    about="nvidia",
    needs=(),
    uses=(HardwareEvent, Reading, Unavailable, Accelerator, Text),
    words={
        "en": {
            "title": "A GPU no longer answers on the bus",
            "summary": "{device} is lost: {says}",
            "cause": "The link of the GPU to the machine broke while it ran: too little power or a loose power "
            "cable, heat, a bad slot, riser or cable, or the card itself.",
        },
        "zh": {
            "title": "GPU 掉卡：总线上不再应答",
            "summary": "{device} 已丢失：{says}",
            "cause": "GPU 与机器之间的连接在运行中断开：供电不足或电源线松动、过热、插槽/转接卡/线缆不良，或显卡本身"
            "故障。",
        },
    },
    remedies=(
        Remedy(
            key="power-cycle",
            title={
                "en": "Stop all jobs and power the machine off and on (a warm reboot does not always bring it back)",
                "zh": "停止所有任务并将机器断电后再开机（热重启不一定能恢复）",
            },
            commands=("sudo poweroff",),
            safety="disruptive",
            verify="nvidia-smi; lspci -d 10de:",
            source=CATALOGUE,
        ),
        Remedy(
            key="look",
            title={
                "en": "Before that, keep what the kernel and the board saw around that moment",
                "zh": "在此之前，保存内核与主板当时的记录",
            },
            commands=("sudo dmesg -T | grep -iE 'nvrm|xid|aer|pcie'", "sudo ipmitool sel elist"),
            safety="safe",
            verify="nvidia-smi",
            source=CATALOGUE,
        ),
        Remedy(
            key="hardware",
            title={
                "en": "If it comes back: check power cables, cooling and seating, then have the card replaced",
                "zh": "若再次出现：检查电源线、散热与插接情况，然后更换显卡",
            },
            safety="manual",
            verify="sudo dmesg | grep -i xid",
            source=CATALOGUE,
        ),
    ),
    sources=(
        CATALOGUE,
        "https://github.com/JosephKJ/OWOD/issues/81",
        "https://github.com/NVIDIA/NVSentinel/issues/155",
        "https://github.com/leptonai/gpud/pull/46",
        "https://github.com/leptonai/gpud/issues/604",
    ),
    explains=(
        *("nvidia/driver-silent", "nvidia/no-device-came-up", "nvidia/switch-error", "nvidia/nvlink-error"),
        *("nvidia/gsp-timeout", "nvidia/recovery-action-pending"),
        *(
            "device/driver-does-not-attach",
            "device/missing-from-tool",
            "device/count-below-expected",
            "engine/more-ranks-than-devices",
        ),
        "collectives/rank-silent",
        "collectives/rank-died",
        "collectives/call-failed",
    ),
    fires=(TOOL, UNKNOWN_ERROR, KERNEL, XID, MONITOR),
    silent=(MEMORY, LISTED),
)
def device_lost(facts: Facts) -> Iterator[Answer]:
    """Gather what tool and kernel say, device by device."""
    told: dict[str, list[tuple[str, Fact]]] = {}
    for address, says, fact in sorted(_lost(facts), key=lambda one: LOST not in one[1]):
        told.setdefault(address, []).append((says, fact))
    unnamed = told.pop("", []) if len(told) > 1 else []
    for address, found in told.items():
        device = device_name(facts, address=address, vendor="nvidia")
        certain = any(says != HANDLE for says, _ in found) and not _listed(facts, address)
        yield Finding(
            values={"device": device or "GPU", "says": found[0][0]},
            subject=device,
            confidence="high" if certain else "medium",
            evidence=_shown([fact for _, fact in [*found, *unnamed]]),
        )
    seen = any(one.vendor == "nvidia" and one.name in SENSORS for one in facts.all(Reading))
    if not told and not seen and not facts.read("kernel-log"):
        yield Undecided(reason="neither the kernel's log nor the tool told of this machine's GPUs")


def _lost(facts: Facts) -> Iterator[tuple[str, str, Fact]]:
    """Address, words and fact for everything that says that a device is gone."""
    for event in facts.all(HardwareEvent):
        if event.vendor == "nvidia" and (event.kind == "gpu-lost" or (event.kind, event.code) == ("xid", "79")):
            yield event.address, "it has fallen off the bus", event
        elif event.vendor == "nvidia" and event.kind == "pci-inaccessible":
            yield event.address, "it is inaccessible", event
    for reading in facts.all(Reading):
        if reading.vendor == "nvidia" and reading.name == "health" and reading.value.startswith(LOST):
            yield reading.address, LOST, reading
    for refusal in facts.all(Unavailable):
        if HANDLE in refusal.reason:
            found = NUMBER.search(refusal.reason)
            yield pci_address(found[1]) if found else "", LOST if LOST in refusal.reason else HANDLE, refusal


def _shown(facts: list[Fact]) -> tuple[Evidence, ...]:
    """What proves it, each line once."""
    lines = {(fact.origin.capture, fact.origin.line): fact for fact in reversed(facts)}
    return tuple(Evidence.of(fact) for fact in reversed(lines.values()))[:4]


def _listed(facts: Facts, address: str) -> bool:
    """Whether the tool shows the device all the same."""
    broken = {one.address for one in facts.all(Reading) if one.name == "health"}
    tool = (one for one in facts.all(Accelerator) if one.seen_by == "tool" and one.vendor == "nvidia" and one.name)
    return any(one.address == address and address not in broken for one in tool)
