"""A device gives results that are not those of the host, or data that are not those it was given.

## What it finds
A product of small whole numbers, which is exact in each type, that differs from the host's in double precision; a copy
within the device, or to it and back, that comes back changed; a kernel that adds one and does not.

## Why it matters
Whatever a model on this device says is worth nothing, and nothing fails: it is seen as bad answers, or as a loss that
does not fall.

## What it cannot know
Whether the device, the link, the memory of the host or the library of kernels errs; of a device that errs once an hour
a test of seconds sees nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from diag.api import (
    Answer,
    DeviceMeasure,
    DeviceMemory,
    DeviceTest,
    Evidence,
    Facts,
    Finding,
    HostLink,
    MatrixProduct,
    Remedy,
    check,
)

# In the form of the child, recorded on a host, by itself and with a torch whose products were spoilt in one element.
SOUND = """\
{"schema": "diag/device/1", "executable": "/opt/venv/bin/python", "devices": [{"device": "cpu", "name": \
"host", "steps": [{"step": "memory by copy", "read": 268435456, "written": 268435456, "correct": true, \
"seconds": 0.046367202, "fastest": 0.039230376, "samples": 5, "calls": 1}, {"step": "memory by kernel", \
"read": 268435456, "written": 268435456, "correct": true, "seconds": 0.038581907, "fastest": 0.037171046, \
"samples": 5, "calls": 1}, {"step": "matrix product in bf16", "type": "bf16", "size": 256, "operations": \
33554432, "wrong": 0, "correct": true, "seconds": 0.029501896, "fastest": 0.025733861, "samples": 5, \
"calls": 1}, {"step": "matrix product in fp16", "type": "fp16", "size": 256, "operations": 33554432, \
"wrong": 0, "correct": true, "seconds": 0.025798376, "fastest": 0.025329066, "samples": 6, "calls": 1}, \
{"step": "matrix product in fp32", "type": "fp32", "size": 1024, "operations": 2147483648, "wrong": 0, \
"correct": true, "seconds": 0.013304306, "fastest": 0.01214823, "samples": 11, "calls": 1}], "phase": \
"done", "error": "", "free": 11712729088, "seconds": 5.72}], "torch": "2.13.0+cpu", "unseen": ""}
"""
SPOILT = """\
{"schema": "diag/device/1", "executable": "/opt/venv/bin/python", "devices": [{"device": "cpu", "name": \
"host", "steps": [{"step": "memory by copy", "read": 268435456, "written": 268435456, "correct": true, \
"seconds": 0.018960637, "fastest": 0.017818503, "samples": 8, "calls": 1}, {"step": "memory by kernel", \
"read": 268435456, "written": 268435456, "correct": true, "seconds": 0.018691941, "fastest": 0.017803766, \
"samples": 8, "calls": 1}, {"step": "matrix product in bf16", "type": "bf16", "size": 256, "operations": \
33554432, "wrong": 1, "correct": false, "seconds": 0.025591426, "fastest": 0.025151195, "samples": 6, \
"calls": 1}, {"step": "matrix product in fp16", "type": "fp16", "size": 256, "operations": 33554432, \
"wrong": 0, "correct": true, "seconds": 0.024626406, "fastest": 0.024367804, "samples": 6, "calls": 1}, \
{"step": "matrix product in fp32", "type": "fp32", "size": 1024, "operations": 2147483648, "wrong": 0, \
"correct": true, "seconds": 0.013068596, "fastest": 0.012334718, "samples": 11, "calls": 1}], "phase": \
"done", "error": "", "free": 11788648448, "seconds": 4.0}], "torch": "2.13.0+cpu", "unseen": ""}
"""


@check(
    "device/numerics-wrong",
    severity="error",
    about="device",
    needs=(DeviceTest,),
    uses=(DeviceMemory, HostLink, MatrixProduct),
    words={
        "en": {
            "title": "A device computes or copies wrongly",
            "summary": "{device} ({name}) errs: {what.en}",
            "cause": "The device, its memory or its link is faulty, or the library that computes was not built for it.",
        },
        "zh": {
            "title": "设备计算或复制结果错误",
            "summary": "{device}（{name}）出错：{what.zh}",
            "cause": "设备、显存或链路有故障，或计算库不是为该设备构建的。",
        },
    },
    remedies=(
        Remedy(
            key="again",
            title={
                "en": "Take it out of use and test again, then with another torch: what stays belongs to the device",
                "zh": "停用该设备并重测，再换一个 torch 测试：仍然出错则属设备故障",
            },
            commands=("diag device --device {device} --budget 60",),
            safety="safe",
            source="https://arxiv.org/abs/2102.11245",
        ),
    ),
    sources=(
        "https://arxiv.org/abs/2102.11245",
        "https://github.com/microsoft/superbenchmark/blob/main/docs/user-tutorial/benchmarks/model-benchmarks.md",
    ),
    explains=("collectives/wrong-result",),
    fires=(SPOILT,),
    silent=(SOUND,),
)
def numerics_wrong(facts: Facts) -> Iterator[Answer]:
    """All steps of a device that were wrong, as one finding."""
    steps: list[DeviceMeasure] = [*chain(facts.all(MatrixProduct), facts.all(DeviceMemory), facts.all(HostLink))]
    for test in facts.all(DeviceTest):
        wrong = [one for one in steps if one.device == test.device and one.correct is False]
        if wrong:
            english, chinese = zip(*map(_what, wrong), strict=True)
            yield Finding(
                subject=test.device,
                values={
                    "device": test.device,
                    "name": test.name,
                    "what.en": ", ".join(english),
                    "what.zh": "、".join(chinese),
                },
                evidence=tuple(map(Evidence.of, wrong)),
            )


def _what(one: DeviceMeasure) -> tuple[str, str]:
    if isinstance(one, MatrixProduct):
        english = f"{one.wrong} elements of a product in {one.dtype} are wrong"
        return english, f"{one.dtype} 矩阵乘有 {one.wrong} 个元素错误"
    if isinstance(one, HostLink):
        return f"data come back changed ({one.direction})", f"传输后数据改变（{one.direction}）"
    return "memory holds something else than was written", "显存内容与写入的不同"
