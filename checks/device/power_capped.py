"""A device may draw less power than it was delivered with.

## What it finds
A power limit below the device's default, where the tool tells both: one finding for each device.

## Why it matters
Under load the clock follows the limit: prefill and every measurement are slower than on the same device elsewhere.

## What it cannot know
Whether somebody wants it so: data centers lower the limit on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, Reading, Remedy, Undecided, check, device_name

REASONS = "https://docs.nvidia.com/deploy/nvml-api/api/group__nvmlClocksEventReasons.html"
SLACK_WATTS = 1.0

CAPPED = """\
{"schema": "diag/nvml/1", "driver": "570.148.08", "cuda": "12.8", "devices": [{"index": 0, "readings": \
{"power": 248.1, "power.limit": 250, "power.limit.default": 350, "throttle": ["sw_power_cap"]}, "errors": {}, "name": \
"NVIDIA L40S", "address": "00000000:01:00.0", "memory_mib": 46068, "processes": []}]}
"""
FULL = """\
{"schema": "diag/nvml/1", "driver": "570.148.08", "cuda": "12.8", "devices": [{"index": 0, "readings": \
{"power": 348.1, "power.limit": 350, "power.limit.default": 350, "throttle": ["sw_power_cap"]}, "errors": {}, "name": \
"NVIDIA L40S", "address": "00000000:01:00.0", "memory_mib": 46068, "processes": []}]}
"""


@check(
    "device/power-capped",
    severity="warning",
    about="device",
    needs=(Reading,),
    words={
        "en": {
            "title": "A device's power limit is below its default",
            "summary": "{device}: {limit} W instead of {default} W",
            "cause": "Somebody lowered the limit, or a service does so at every boot.",
        },
        "zh": {
            "title": "设备的功率上限低于默认值",
            "summary": "{device}：上限为 {limit} W，默认值为 {default} W",
            "cause": "有人降低了上限，或某个服务在每次启动时将其降低。",
        },
    },
    remedies=(
        Remedy(
            key="default",
            title={
                "en": "If nobody wants it so: set the limit back to the default",
                "zh": "若并非有意为之：将上限恢复为默认值",
            },
            commands=("sudo nvidia-smi -i {id} --power-limit={default}",),
            safety="manual",
            verify="nvidia-smi -q -i {id} -d POWER",
        ),
    ),
    sources=(REASONS,),
    explains=("collectives/ranks-uneven", "device/matrix-product-slow", "device/slower-than-sisters"),
    fires=(CAPPED,),
    silent=(FULL,),
)
def power_capped(facts: Facts) -> Iterator[Answer]:
    """Compare the limit with the default, device by device."""
    told: dict[str, dict[str, Reading]] = {}
    for one in facts.all(Reading):
        if one.name in ("power.limit", "power.limit.default"):
            device = device_name(facts, index=one.index, address=one.address, vendor=one.vendor)
            told.setdefault(device, {}).setdefault(one.name, one)
    whole = {device: found for device, found in told.items() if len(found) == 2}
    for device, found in whole.items():
        limit, default = found["power.limit"], found["power.limit.default"]
        if float(limit.value) + SLACK_WATTS < float(default.value):
            yield Finding(
                values={
                    "device": device or limit.vendor,
                    "limit": f"{float(limit.value):g}",
                    "default": f"{float(default.value):g}",
                    "id": limit.address or str(limit.index or 0),
                },
                subject=device,
                evidence=(Evidence.of(limit), Evidence.of(default)),
            )
    if not whole:
        yield Undecided(reason="no tool told a power limit and its default")
