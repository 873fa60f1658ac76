"""The memory of a device is much slower than that of its model.

## What it finds
A copy and a kernel on the device of which even the fastest call moves less than three quarters of what a sound device
of this model was published with, or, where nobody published one, less than three quarters of the smallest share of the
maker's figure that any was. Bytes read and bytes written both count.

## Why it matters
A decode reads all weights for each token: it is as much slower as the memory is.

## What it cannot know
Why. A part of a device, or one of two dies that are listed as devices, is not compared with the whole.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Accelerator,
    Answer,
    DeviceBaseline,
    DeviceMemory,
    DeviceModel,
    DeviceTest,
    Evidence,
    Facts,
    Finding,
    Package,
    Platform,
    Remedy,
    Undecided,
    Vendor,
    best_memory,
    check,
    expectation,
)

# In the form of the child; 2.90 TB/s are BabelStream's copy on ND H100 v5 (Azure/AI-benchmarking-guide).
SOUND = """\
{"schema": "diag/device/1", "executable": "/opt/venv/bin/python", "devices": [{"device": "cuda:0", "name": \
"NVIDIA H100 80GB HBM3", "memory_bytes": 85520809984, "address": "", "steps": [{"step": "memory by copy", \
"read": 1073741824, "written": 1073741824, "correct": true, "seconds": 0.000740512, "fastest": 0.000740512, \
"samples": 40, "calls": 3}, {"step": "memory by kernel", "read": 1073741824, "written": 1073741824, \
"correct": true, "seconds": 0.000740512, "fastest": 0.000740512, "samples": 40, "calls": 3}], "phase": \
"done", "error": "", "seconds": 9.1}], "torch": "2.9.1", "unseen": ""}
"""
# No measurement of a broken one was found: the same, half as fast. A slow copy alone is its engine's, not the memory's.
HALF = """\
{"schema": "diag/device/1", "executable": "/opt/venv/bin/python", "devices": [{"device": "cuda:0", "name": \
"NVIDIA H100 80GB HBM3", "memory_bytes": 85520809984, "address": "", "steps": [{"step": "memory by copy", \
"read": 1073741824, "written": 1073741824, "correct": true, "seconds": 0.001481023, "fastest": 0.001481023, \
"samples": 40, "calls": 3}, {"step": "memory by kernel", "read": 1073741824, "written": 1073741824, \
"correct": true, "seconds": 0.001481023, "fastest": 0.001481023, "samples": 40, "calls": 3}], "phase": \
"done", "error": "", "seconds": 9.1}], "torch": "2.9.1", "unseen": ""}
"""
COPY_ENGINE = """\
{"schema": "diag/device/1", "executable": "/opt/venv/bin/python", "devices": [{"device": "cuda:0", "name": \
"NVIDIA H100 80GB HBM3", "memory_bytes": 85520809984, "address": "", "steps": [{"step": "memory by copy", \
"read": 1073741824, "written": 1073741824, "correct": true, "seconds": 0.001481023, "fastest": 0.001481023, \
"samples": 40, "calls": 3}, {"step": "memory by kernel", "read": 1073741824, "written": 1073741824, \
"correct": true, "seconds": 0.000740512, "fastest": 0.000740512, "samples": 40, "calls": 3}], "phase": \
"done", "error": "", "seconds": 9.1}], "torch": "2.9.1", "unseen": ""}
"""


@check(
    "device/memory-bandwidth-low",
    severity="warning",
    about="device",
    needs=(DeviceMemory,),
    uses=(Accelerator, DeviceBaseline, DeviceModel, DeviceTest, Package, Platform, Vendor),
    words={
        "en": {
            "title": "The memory of a device is slower than its model's",
            "summary": "{device} ({name}): its memory moves {value} GB/s; of this model at least {least} are expected",
            "cause": "Its memory clock is lowered (heat, a power limit), others use it meanwhile, or the device or its "
            "memory is faulty.",
        },
        "zh": {
            "title": "设备显存带宽低于同型号应有水平",
            "summary": "{device}（{name}）：显存带宽 {value} GB/s；该型号至少应达到 {least}",
            "cause": "显存频率被降低（过热或功率限制）、测量时被他人占用，或设备、显存有故障。",
        },
    },
    remedies=(
        Remedy(
            key="again",
            title={
                "en": "Test again while nothing else runs, and look at its clocks meanwhile",
                "zh": "在无其他任务时重新测试，并同时观察其频率",
            },
            commands=("diag device --device {device}",),
            safety="safe",
            verify="diag device --device {device}",
            source="https://github.com/stas00/ml-engineering/blob/master/compute/accelerator/README.md",
        ),
    ),
    sources=(
        "https://github.com/Azure/AI-benchmarking-guide",
        "https://github.com/FlagOpen/FlagPerf/tree/main/base/benchmarks/main_memory-bandwidth",
        "https://github.com/NVIDIA/DCGM/blob/master/nvvs/diag-skus.yaml.in",
        "https://github.com/NVIDIA/nvbandwidth/issues/48",
    ),
    explains=("collectives/below-typical", "device/slower-than-sisters"),
    fires=(HALF,),
    silent=(SOUND, COPY_ENGINE),
)
def memory_bandwidth_low(facts: Facts) -> Iterator[Answer]:
    """The faster way of each device beside what its model must reach."""
    for one in best_memory(facts):
        expected = expectation(facts, one, "memory")
        if expected is None:
            yield Undecided(reason=f"{one.device}: nothing is known of how fast this memory must be")
        elif one.best < expected.least:
            yield Finding(
                subject=one.device,
                values={
                    "device": one.device,
                    "name": one.name,
                    "value": round(one.best),
                    "least": round(expected.least),
                },
                confidence="medium",
                evidence=(Evidence.of(one),),
                source=expected.row.source,
                checked=expected.row.checked,
            )
