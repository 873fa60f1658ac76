"""One device is slower than others of the same name on this machine.

## What it finds
In memory, links to the host or matrix products a device that lies beyond the spread of its sisters (of five or more: by
a robust z of 3.5; of three or four: the best is 1.3 times as fast), and below nine tenths of their median, eight of a
link. What it is slowest in is named.

## Why it matters
With tensor parallelism all devices wait for the slowest one at each layer.

## What it cannot know
Whether somebody else used it just then, or a far processor served its link. Two devices that differ accuse neither, and
devices of one board differ by 5 % and more without a fault.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Answer,
    Behind,
    DeviceMeasure,
    DeviceMemory,
    DeviceTest,
    Evidence,
    Facts,
    Finding,
    HostLink,
    MatrixProduct,
    Remedy,
    Undecided,
    behind,
    check,
)

SISTERS = 3

# In the form of the child; busGrind on eight devices, in both directions at once and in one (cuda-samples, issue 357).
THREE_SLOW = """\
{"schema": "diag/device/1", "executable": "/opt/venv/bin/python", "devices": [{"device": "cuda:0", "name": \
"NVIDIA H20", "memory_bytes": null, "address": "", "steps": [{"step": "link to the device, pinned", "bytes": \
268435456, "pinned": true, "way": "to the device", "correct": true, "seconds": 0.002650953, "fastest": \
0.002650953, "samples": 40, "calls": 1}], "phase": "done", "error": "", "seconds": 9.1}, {"device": \
"cuda:1", "name": "NVIDIA H20", "memory_bytes": null, "address": "", "steps": [{"step": "link to the device, \
pinned", "bytes": 268435456, "pinned": true, "way": "to the device", "correct": true, "seconds": \
0.002647815, "fastest": 0.002647815, "samples": 40, "calls": 1}], "phase": "done", "error": "", "seconds": \
9.1}, {"device": "cuda:2", "name": "NVIDIA H20", "memory_bytes": null, "address": "", "steps": [{"step": \
"link to the device, pinned", "bytes": 268435456, "pinned": true, "way": "to the device", "correct": true, \
"seconds": 0.002647292, "fastest": 0.002647292, "samples": 40, "calls": 1}], "phase": "done", "error": "", \
"seconds": 9.1}, {"device": "cuda:3", "name": "NVIDIA H20", "memory_bytes": null, "address": "", "steps": \
[{"step": "link to the device, pinned", "bytes": 268435456, "pinned": true, "way": "to the device", \
"correct": true, "seconds": 0.002648076, "fastest": 0.002648076, "samples": 40, "calls": 1}], "phase": \
"done", "error": "", "seconds": 9.1}, {"device": "cuda:4", "name": "NVIDIA H20", "memory_bytes": null, \
"address": "", "steps": [{"step": "link to the device, pinned", "bytes": 268435456, "pinned": true, "way": \
"to the device", "correct": true, "seconds": 0.003009366, "fastest": 0.003009366, "samples": 40, "calls": \
1}], "phase": "done", "error": "", "seconds": 9.1}, {"device": "cuda:5", "name": "NVIDIA H20", \
"memory_bytes": null, "address": "", "steps": [{"step": "link to the device, pinned", "bytes": 268435456, \
"pinned": true, "way": "to the device", "correct": true, "seconds": 0.006153954, "fastest": 0.006153954, \
"samples": 40, "calls": 1}], "phase": "done", "error": "", "seconds": 9.1}, {"device": "cuda:6", "name": \
"NVIDIA H20", "memory_bytes": null, "address": "", "steps": [{"step": "link to the device, pinned", "bytes": \
268435456, "pinned": true, "way": "to the device", "correct": true, "seconds": 0.03702558, "fastest": \
0.03702558, "samples": 40, "calls": 1}], "phase": "done", "error": "", "seconds": 9.1}, {"device": "cuda:7", \
"name": "NVIDIA H20", "memory_bytes": null, "address": "", "steps": [{"step": "link to the device, pinned", \
"bytes": 268435456, "pinned": true, "way": "to the device", "correct": true, "seconds": 0.027645258, \
"fastest": 0.027645258, "samples": 40, "calls": 1}], "phase": "done", "error": "", "seconds": 9.1}], \
"torch": "2.9.1", "unseen": ""}
"""
EVEN = """\
{"schema": "diag/device/1", "executable": "/opt/venv/bin/python", "devices": [{"device": "cuda:0", "name": \
"NVIDIA H20", "memory_bytes": null, "address": "", "steps": [{"step": "link to the device, pinned", "bytes": \
268435456, "pinned": true, "way": "to the device", "correct": true, "seconds": 0.004778983, "fastest": \
0.004778983, "samples": 40, "calls": 1}, {"step": "link from the device, pinned", "bytes": 268435456, \
"pinned": true, "way": "from the device", "correct": true, "seconds": 0.004723482, "fastest": 0.004723482, \
"samples": 40, "calls": 1}], "phase": "done", "error": "", "seconds": 9.1}, {"device": "cuda:1", "name": \
"NVIDIA H20", "memory_bytes": null, "address": "", "steps": [{"step": "link to the device, pinned", "bytes": \
268435456, "pinned": true, "way": "to the device", "correct": true, "seconds": 0.004775582, "fastest": \
0.004775582, "samples": 40, "calls": 1}, {"step": "link from the device, pinned", "bytes": 268435456, \
"pinned": true, "way": "from the device", "correct": true, "seconds": 0.0046995, "fastest": 0.0046995, \
"samples": 40, "calls": 1}], "phase": "done", "error": "", "seconds": 9.1}, {"device": "cuda:2", "name": \
"NVIDIA H20", "memory_bytes": null, "address": "", "steps": [{"step": "link to the device, pinned", "bytes": \
268435456, "pinned": true, "way": "to the device", "correct": true, "seconds": 0.004775582, "fastest": \
0.004775582, "samples": 40, "calls": 1}, {"step": "link from the device, pinned", "bytes": 268435456, \
"pinned": true, "way": "from the device", "correct": true, "seconds": 0.004697855, "fastest": 0.004697855, \
"samples": 40, "calls": 1}], "phase": "done", "error": "", "seconds": 9.1}, {"device": "cuda:3", "name": \
"NVIDIA H20", "memory_bytes": null, "address": "", "steps": [{"step": "link to the device, pinned", "bytes": \
268435456, "pinned": true, "way": "to the device", "correct": true, "seconds": 0.004776432, "fastest": \
0.004776432, "samples": 40, "calls": 1}, {"step": "link from the device, pinned", "bytes": 268435456, \
"pinned": true, "way": "from the device", "correct": true, "seconds": 0.004697033, "fastest": 0.004697033, \
"samples": 40, "calls": 1}], "phase": "done", "error": "", "seconds": 9.1}, {"device": "cuda:4", "name": \
"NVIDIA H20", "memory_bytes": null, "address": "", "steps": [{"step": "link to the device, pinned", "bytes": \
268435456, "pinned": true, "way": "to the device", "correct": true, "seconds": 0.004778983, "fastest": \
0.004778983, "samples": 40, "calls": 1}, {"step": "link from the device, pinned", "bytes": 268435456, \
"pinned": true, "way": "from the device", "correct": true, "seconds": 0.004848031, "fastest": 0.004848031, \
"samples": 40, "calls": 1}], "phase": "done", "error": "", "seconds": 9.1}, {"device": "cuda:5", "name": \
"NVIDIA H20", "memory_bytes": null, "address": "", "steps": [{"step": "link to the device, pinned", "bytes": \
268435456, "pinned": true, "way": "to the device", "correct": true, "seconds": 0.004778983, "fastest": \
0.004778983, "samples": 40, "calls": 1}, {"step": "link from the device, pinned", "bytes": 268435456, \
"pinned": true, "way": "from the device", "correct": true, "seconds": 0.004839291, "fastest": 0.004839291, \
"samples": 40, "calls": 1}], "phase": "done", "error": "", "seconds": 9.1}, {"device": "cuda:6", "name": \
"NVIDIA H20", "memory_bytes": null, "address": "", "steps": [{"step": "link to the device, pinned", "bytes": \
268435456, "pinned": true, "way": "to the device", "correct": true, "seconds": 0.00478324, "fastest": \
0.00478324, "samples": 40, "calls": 1}, {"step": "link from the device, pinned", "bytes": 268435456, \
"pinned": true, "way": "from the device", "correct": true, "seconds": 0.004837547, "fastest": 0.004837547, \
"samples": 40, "calls": 1}], "phase": "done", "error": "", "seconds": 9.1}, {"device": "cuda:7", "name": \
"NVIDIA H20", "memory_bytes": null, "address": "", "steps": [{"step": "link to the device, pinned", "bytes": \
268435456, "pinned": true, "way": "to the device", "correct": true, "seconds": 0.004781536, "fastest": \
0.004781536, "samples": 40, "calls": 1}, {"step": "link from the device, pinned", "bytes": 268435456, \
"pinned": true, "way": "from the device", "correct": true, "seconds": 0.005014673, "fastest": 0.005014673, \
"samples": 40, "calls": 1}], "phase": "done", "error": "", "seconds": 9.1}], "torch": "2.9.1", "unseen": ""}
"""
# Memory of three RTX 4090 (tinygrad/open-gpu-kernel-modules, issue 6); that one is a third slower is made up.
ALIKE = """\
{"schema": "diag/device/1", "executable": "/opt/venv/bin/python", "devices": [{"device": "cuda:0", "name": \
"NVIDIA GeForce RTX 4090", "memory_bytes": null, "address": "", "steps": [{"step": "memory by copy", "read": \
1073741824, "written": 1073741824, "correct": true, "seconds": 0.002338517, "fastest": 0.002338517, \
"samples": 40, "calls": 3}], "phase": "done", "error": "", "seconds": 9.1}, {"device": "cuda:1", "name": \
"NVIDIA GeForce RTX 4090", "memory_bytes": null, "address": "", "steps": [{"step": "memory by copy", "read": \
1073741824, "written": 1073741824, "correct": true, "seconds": 0.002324947, "fastest": 0.002324947, \
"samples": 40, "calls": 3}], "phase": "done", "error": "", "seconds": 9.1}, {"device": "cuda:2", "name": \
"NVIDIA GeForce RTX 4090", "memory_bytes": null, "address": "", "steps": [{"step": "memory by copy", "read": \
1073741824, "written": 1073741824, "correct": true, "seconds": 0.002324771, "fastest": 0.002324771, \
"samples": 40, "calls": 3}], "phase": "done", "error": "", "seconds": 9.1}], "torch": "2.9.1", "unseen": ""}
"""
ONE_OF_THREE = """\
{"schema": "diag/device/1", "executable": "/opt/venv/bin/python", "devices": [{"device": "cuda:0", "name": \
"NVIDIA GeForce RTX 4090", "memory_bytes": null, "address": "", "steps": [{"step": "memory by copy", "read": \
1073741824, "written": 1073741824, "correct": true, "seconds": 0.002338517, "fastest": 0.002338517, \
"samples": 40, "calls": 3}], "phase": "done", "error": "", "seconds": 9.1}, {"device": "cuda:1", "name": \
"NVIDIA GeForce RTX 4090", "memory_bytes": null, "address": "", "steps": [{"step": "memory by copy", "read": \
1073741824, "written": 1073741824, "correct": true, "seconds": 0.00350896, "fastest": 0.00350896, "samples": \
40, "calls": 3}], "phase": "done", "error": "", "seconds": 9.1}, {"device": "cuda:2", "name": "NVIDIA \
GeForce RTX 4090", "memory_bytes": null, "address": "", "steps": [{"step": "memory by copy", "read": \
1073741824, "written": 1073741824, "correct": true, "seconds": 0.002324771, "fastest": 0.002324771, \
"samples": 40, "calls": 3}], "phase": "done", "error": "", "seconds": 9.1}], "torch": "2.9.1", "unseen": ""}
"""


@check(
    "device/slower-than-sisters",
    severity="warning",
    about="device",
    needs=(DeviceTest,),
    uses=(DeviceMemory, HostLink, MatrixProduct),
    words={
        "en": {
            "title": "One device is slower than its sisters",
            "summary": "{device} ({name}): {what.en} {value}, of the {count} devices like it {usual}",
            "cause": "Its clock is lowered (heat, a power limit), somebody else uses it, its link came up narrower or "
            "leads to the far processor, or the device is faulty.",
        },
        "zh": {
            "title": "某个设备比同机同型号设备慢",
            "summary": "{device}（{name}）：{what.zh} {value}，{count} 个同型号设备为 {usual}",
            "cause": "频率被降低（过热或功率限制）、被他人占用、链路降宽或连到远端处理器，或设备有故障。",
        },
    },
    remedies=(
        Remedy(
            key="compare",
            title={
                "en": "Test it and one of its sisters again while nothing else runs; compare clocks and links",
                "zh": "在无其他任务时将其与一个同型号设备各重测一次，并对比频率与链路",
            },
            commands=("diag device --device {device} --budget 30",),
            safety="safe",
            source="https://github.com/stas00/ml-engineering/blob/master/compute/accelerator/README.md",
        ),
    ),
    sources=(
        "https://github.com/stas00/ml-engineering/blob/master/compute/accelerator/README.md",
        "https://github.com/Azure/ai-infrastructure-on-azure",
        "https://github.com/NVIDIA/cuda-samples/issues/357",
    ),
    explains=("collectives/below-baseline", "collectives/below-typical", "collectives/ranks-uneven"),
    fires=(THREE_SLOW, ONE_OF_THREE),
    silent=(EVEN, ALIKE),
)
def slower_than_sisters(facts: Facts) -> Iterator[Answer]:
    """The devices that stand out, each by what it is slowest in."""
    names = [one.name for one in facts.all(DeviceTest)]
    if not any(names.count(name) >= SISTERS for name in names):
        yield Undecided(reason=f"fewer than {SISTERS} devices of one name were tested")
    for one in behind(facts):
        yield _finding(one)


def _finding(one: Behind) -> Finding:
    measure = one.measure
    english, chinese, unit = _what(measure)
    return Finding(
        subject=measure.device,
        values={
            "device": measure.device,
            "name": measure.name,
            "count": one.sisters,
            "value": f"{measure.best:.4g} {unit}",
            "usual": f"{one.usual:.4g} {unit}",
            "what.en": english,
            "what.zh": chinese,
        },
        confidence="medium",
        evidence=(Evidence.of(measure),),
    )


def _what(one: DeviceMeasure) -> tuple[str, str, str]:
    if isinstance(one, MatrixProduct):
        return f"matrix product in {one.dtype}", f"{one.dtype} 矩阵乘", "TFLOPS"
    if isinstance(one, HostLink):
        return f"link to the host, {one.direction}", f"主机链路（{one.direction}）", "GB/s"
    return "memory", "显存带宽", "GB/s"
