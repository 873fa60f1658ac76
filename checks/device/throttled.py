"""A device lowers its clock because of heat, or because its power supply asks for it.

## What it finds
Reasons for a lower clock that are active now and mean heat or the power brake, and thermal violations that a diagnosis
counted: one finding for each device.

## Why it matters
The device is slower than its peers, by half or more; with tensor parallelism all wait for it, and every measurement is
wrong.

## What it cannot know
How long it lasts: a reading is a moment. A clock that a power limit, a user or idleness lowers is no fault and not
reported. `hw_slowdown` alone may also be a change of clock caught in the act: confidence medium.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, Reading, Remedy, Text, Undecided, check, device_name

REASONS = "https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksThrottleReasons.html"
FIELDS = "https://docs.nvidia.com/datacenter/dcgm/2.4/dcgm-api/dcgm-api-field-constants.html"
EITHER = "hw_slowdown"
HEAT = ("hw_thermal_slowdown", "sw_thermal_slowdown", "thermal_violation")
POWER = ("hw_power_brake_slowdown", "hw_power_braking")

DIAGNOSIS = """\
| GPU Memory                | Pass - GPUs: 1, 2, 3, 4, 5, 6, 7               |
|                           | Fail - GPU: 0                                  |
| Warning                   | GPU 0 Thermal violations totaling 13.3 second  |
|                           | s started at 9.7 seconds into the test for GP  |
|                           | U 0 Verify that the cooling on this machine i  |
"""
LIBRARY = """\
{"schema": "diag/nvml/1", "driver": "570.148.08", "cuda": "12.8", "devices": [{"index": 0, "readings": \
{"utilization": 98, "temperature": 88, "throttle": ["hw_slowdown", "hw_thermal_slowdown"]}, "errors": {}, "name": \
"NVIDIA L40S", "address": "00000000:01:00.0", "memory_mib": 46068, "processes": []}]}
"""
ROW = """\
| Warning                   | GPU 0 Thermal violations totaling 13.3 second  |
|                           | s started at 9.7 seconds into the test for GP  |
"""
WATCHED = """\
ERROR [1514002:1514004] [[Health]] Detected a WARNING in health system Thermal: 'Detected clocks event due to thermal \
violation in GPU 2. Verify that the cooling on this machine is functional, including external, thermal material \
interface, fans, and any other components.
"""
COUNTERS = """\
==============NVSMI LOG==============
Driver Version                            : 580.95.05
CUDA Version                              : 13.0
GPU 0000000F:01:00.0
    Performance State                     : P0
    Clocks Event Reasons
        SW Power Cap                      : Not Active
        HW Slowdown                       : Not Active
        SW Thermal Slowdown               : Not Active
    Clocks Event Reasons Counters
        SW Power Capping                  : 165687 us
        SW Thermal Slowdown               : 903158 us
        HW Thermal Slowdown               : 0 us
"""


@check(
    "device/throttled",
    severity="warning",
    about="device",
    needs=(),
    uses=(Reading, Text),
    words={
        "en": {
            "title": "A device lowers its clock because of heat or power",
            "summary": "{device}: its clock is lowered ({reasons})",
            "cause": "Cooling does not keep up (a fan, dust, the air in the rack, a heat sink), or the power supply "
            "signals that it is overloaded.",
        },
        "zh": {
            "title": "设备因过热或供电而降频",
            "summary": "{device}：频率被降低（{reasons}）",
            "cause": "散热不足（风扇、积灰、机柜通风或散热器），或电源发出过载信号。",
        },
    },
    remedies=(
        Remedy(
            key="heat",
            title={
                "en": "Watch temperature and clock under load, and bring fans and air of this machine in order",
                "zh": "在负载下观察温度与频率，并检修该机器的风扇与通风",
            },
            commands=("nvidia-smi dmon -s pct -d 5",),
            safety="manual",
            verify="nvidia-smi -q -d PERFORMANCE",
            source=FIELDS,
        ),
        Remedy(
            key="power",
            title={
                "en": "Check the power supplies, their cables and their redundancy, and the machine's power cap (BMC)",
                "zh": "检查电源、线缆与冗余，以及机器（BMC）的功率上限",
            },
            commands=("sudo ipmitool sdr type 'Power Supply'",),
            safety="manual",
            verify="nvidia-smi -q -d PERFORMANCE",
            source=FIELDS,
        ),
    ),
    sources=(
        REASONS,
        FIELDS,
        "https://github.com/stas00/ml-engineering/blob/master/compute/accelerator/nvidia/debug.md",
        "https://github.com/ollama/ollama/issues/13552",
        "https://github.com/NVIDIA/DCGM/issues/270",
    ),
    explains=(
        "nvidia/diagnosis-failed",
        "collectives/below-baseline",
        "collectives/below-typical",
        "collectives/ranks-uneven",
        "device/matrix-product-slow",
        "device/memory-bandwidth-low",
        "device/slower-than-sisters",
    ),
    fires=(DIAGNOSIS, ROW, WATCHED, LIBRARY),
    silent=(COUNTERS,),
)
def throttled(facts: Facts) -> Iterator[Answer]:
    """Gather the active reasons, device by device."""
    told: dict[str, dict[str, Reading]] = {}
    for one in facts.all(Reading):
        if one.name == "throttle" and one.value in (EITHER, *HEAT, *POWER):
            device = device_name(facts, index=one.index, address=one.address, vendor=one.vendor)
            told.setdefault(device, {}).setdefault(one.value, one)
    for device, reasons in told.items():
        keys = [key for key, words in (("heat", HEAT), ("power", POWER)) if not set(words).isdisjoint(reasons)]
        first = next(iter(reasons.values()))
        yield Finding(
            values={"device": device or first.vendor, "reasons": ", ".join(reasons)},
            subject=device,
            confidence="high" if keys else "medium",
            evidence=tuple(map(Evidence.of, reasons.values())),
            remedies=tuple(keys),
        )
    if not told and not facts.read("clock-reasons"):
        yield Undecided(reason="no tool told why the clock of a device is lowered")
