"""The vendor's tool says that a device is not well.

## What it finds
The tool's own word for the state of a device, where it is one of those that mean a fault: `Warning`, `Alarm` and
`Critical` of `npu-smi`, `E` of Kunlunxin's table, `ERR!` in the place of a GPU's memory, name or load in `nvidia-smi`.

## Why it matters
Engines that use the device fail or hang.

## What it cannot know
Why. A word that stands in no table is not judged. Of makers whose tools print no state nothing is known.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Accelerator, Answer, Evidence, Facts, Finding, Reading, Remedy, Undecided, check, device_name

BAD = {"ascend": ("warning", "alarm", "critical"), "kunlun": ("e",), "nvidia": ("err!", "unknown error")}
FINE = {"ascend": ("ok",), "metax": ("available",)}
"""Words in lower case."""
ELSEWHERE = ("Fail: ", "GPU is lost", "Reset", "Reboot", "Drain", "GPU requires reset", "Reset Required")
"""Starts of words that other checks judge."""
SENSORS = ("memory.used", "temperature", "utilization")
"""What `nvidia-smi` prints `ERR!` in the place of; it has no word for a device that is well."""
HANDLE = "Unable to determine the device handle"

KUNLUN = """\
 DEVICES
|   PCI Addr   | Model |        SN        |    INODE   | State | UseRate |     L3     |     Memory     | Power(W) | Temp | Freq(MHz) | Firmware Version | CPLD Version |
| 0000:04:00.0 | K200  | 0000000000000000 | /dev/xpu0  |     E |   100 % | 13 / 16 MB | 1178 / 8064 MB |       39 |   59 |       900 | 0001.0016.0021   |       ce3002 |
"""  # noqa: E501
ASCEND = """\
+------------------------------------------------------------------------------------------------+
| npu-smi 24.1.rc3.7               Version: 24.1.rc3.7                                           |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip  Phy-ID              | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 0     Ascend910           | OK            | 178.8       36                0    / 0             |
| 0     0                   | 0000:9D:00.0  | 0           0    / 0          3397 / 65536         |
+------------------------------------------------------------------------------------------------+
"""
POWER_ERR = """\
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 450.51.05    Driver Version: 450.51.05    CUDA Version: 11.0     |
|-------------------------------+----------------------+----------------------+
|   1  Tesla V100-PCIE...  On   | 00008ED0:00:00.0 Off |                    0 |
| N/A   29C    P0   ERR! / 250W |    593MiB / 16160MiB |      0%      Default |
|                               |                      |                  N/A |
+-------------------------------+----------------------+----------------------+
"""


@check(
    "device/unhealthy",
    severity="error",
    about="device",
    needs=(),
    uses=(Accelerator, Reading),
    words={
        "en": {
            "title": "The vendor's tool says that a device is not well",
            "summary": "{device}: its tool shows {state}",
            "cause": "The device met a fault that its firmware or driver noticed, or a process that hung keeps it "
            "busy.",
        },
        "zh": {
            "title": "厂商工具显示设备状态异常",
            "summary": "{device}：工具显示的状态为 {state}",
            "cause": "设备的固件或驱动检测到故障，或有挂起的进程仍占用该设备。",
        },
    },
    remedies=(
        Remedy(
            key="ascend",
            title={"en": "Read which fault the device reports", "zh": "查询设备报告的故障"},
            commands=("npu-smi info -t health -i {index}",),
            safety="safe",
            verify="npu-smi info",
        ),
        Remedy(
            key="processes",
            title={
                "en": "End what is left of earlier jobs on the device, then reset it with the vendor's tool or reboot",
                "zh": "结束该设备上先前任务的残留进程，然后用厂商工具复位或重启机器",
            },
            commands=("ps -eo pid,stat,etime,cmd | grep -E ' (D|Z)|python' | head",),
            safety="manual",
            verify="nvidia-smi || xpu_smi || npu-smi info",
            source="https://github.com/PaddlePaddle/Paddle/issues/56661",
        ),
        Remedy(
            key="service",
            title={
                "en": "If the state stays after a reboot: ask the vendor",
                "zh": "若重启后状态不变：联系厂商",
            },
            safety="manual",
            verify="sudo dmesg | tail -n 50",
        ),
    ),
    sources=(
        "https://github.com/PaddlePaddle/Paddle/issues/56661",
        "https://github.com/Azure/azhpc-diagnostics/issues/77",
    ),
    fires=(KUNLUN,),
    silent=(ASCEND, POWER_ERR),
)
def unhealthy(facts: Facts) -> Iterator[Answer]:
    """Look the tool's words up."""
    told: dict[str, Reading] = {}
    unknown: list[str] = []
    judged = {one.vendor for one in facts.all(Reading) if one.vendor == "nvidia" and one.name in SENSORS}
    for one in facts.all(Reading):
        if one.name != "health" or one.value.startswith(ELSEWHERE) or HANDLE in one.origin.quote:
            continue
        judged.add(one.vendor)
        if one.value.lower() in BAD.get(one.vendor, ()):
            told.setdefault(device_name(facts, index=one.index, address=one.address, vendor=one.vendor), one)
        elif one.value.lower() not in FINE.get(one.vendor, ()):
            unknown.append(one.value)
    for device, one in told.items():
        yield Finding(
            values={"device": device or one.vendor, "state": one.value, "index": one.index or 0},
            subject=device,
            confidence="medium" if one.value.lower() == "warning" else "high",
            evidence=(Evidence.of(one),),
            remedies=("ascend", "service") if one.vendor == "ascend" else ("processes", "service"),
        )
    listed = {one.vendor for one in facts.all(Accelerator) if one.seen_by == "tool"}
    if unknown:
        yield Undecided(reason=f"nothing is known of the state {unknown[0]}")
    elif not listed or not listed <= judged:
        yield Undecided(reason="no tool told the state of the devices")
