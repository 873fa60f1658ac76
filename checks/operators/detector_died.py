"""A step of an engine, or one operator, kills the process that diag runs it in, hangs there, or eats its memory.

## What it finds
What a detector of `diag ops` was about when its process ended by a signal, when nothing moved any more, or when it held
more of the host's memory than such work needs. What came before and after is answered all the same.

## Why it matters
An engine that does the same dies the same way, for all of its requests.

## What it cannot know
Whether the device or its software is at fault.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Answer,
    Evidence,
    Facts,
    Finding,
    OperatorDeath,
    OperatorScan,
    Remedy,
    Undecided,
    check,
    unaccelerated,
)

# In the form of the child, recorded on a backend made for such tests; steps and operators of no interest left out.
KILLED = """\
{"schema": "diag/operators/1", "detectors": ["dynamic"], "torch": "2.13.0+cpu", "device": "hostdev", "how": \
"dynamic", "operators": [], "steps": [{"step": "greedy", "part": "sampler", "batch": 8, "vocabulary": 512, \
"profiled_seconds": 0.00018, "host": {"aten::argmax.out": 30, "aten::view": 5}}, {"step": "exponential-draw", \
"error": "killed by SIGSEGV", "printed": [], "died": true, "host": {}}], "seconds": 0.58}
"""
HUNG = """\
{"schema": "diag/operators/1", "detectors": ["dynamic"], "torch": "2.13.0+cpu", "device": "hostdev", "how": \
"dynamic", "operators": [], "steps": [{"step": "greedy", "part": "sampler", "batch": 8, "vocabulary": 512, \
"profiled_seconds": 0.00021, "host": {"aten::argmax.out": 32, "aten::view": 8}}, {"step": "exponential-draw", \
"error": "nothing moved for 8 s", "printed": [], "died": true, "host": {}}], "seconds": 8.06}
"""
ATE = """\
{"schema": "diag/operators/1", "detectors": ["dynamic"], "torch": "2.13.0+cpu", "device": "hostdev", "how": \
"dynamic", "operators": [], "steps": [{"step": "greedy", "part": "sampler", "batch": 8, "vocabulary": 512, \
"profiled_seconds": 0.000282, "host": {"aten::argmax.out": 40, "aten::view": 9}}, {"step": "exponential-draw", \
"error": "killed: it held more than 1536 MiB of memory", "printed": [], "died": true, "host": {}}], "seconds": \
2.83}
"""
SOUND = """\
{"schema": "diag/operators/1", "detectors": ["dynamic"], "torch": "2.13.0+cpu", "device": "hostdev", "how": \
"dynamic", "operators": [{"name": "aten::_softmax", "overload": "out", "placement": "native", "calls": 1, \
"copying": 0, "bytes_down": 0, "bytes_up": 0, "microseconds": 43, "steps": ["exponential-draw"]}], "steps": \
[{"step": "exponential-draw", "part": "sampler", "batch": 8, "vocabulary": 152064, "profiled_seconds": 0.037717, \
"host": {"aten::_softmax.out": 43, "aten::exponential_": 31}}], "seconds": 1.72}
"""


@check(
    "operators/detector-died",
    severity="error",
    about="device",
    applies=unaccelerated,
    needs=(OperatorScan,),
    uses=(OperatorDeath,),
    words={
        "en": {
            "title": "What engines do on the accelerator ends the process that does it",
            "summary": "{device}: the process that ran {at} ended: {error}{said}",
            "cause": "A kernel or the driver ends the process or never answers, or the maker's layer of torch holds "
            "memory of the host without bound. It was not tried again.",
        },
        "zh": {
            "title": "引擎在加速器上的操作导致所在进程终止",
            "summary": "{device}：运行 {at} 的进程终止：{error}{said}",
            "cause": "内核函数或驱动使进程终止或不再响应，或厂商的 torch 适配层无限占用主机内存。未再次尝试。",
        },
    },
    remedies=(
        Remedy(
            key="alone",
            title={
                "en": "See what the kernel's log says, test the device alone, and take another release of the maker's "
                "torch",
                "zh": "查看内核日志，单独测试该设备，并更换厂商 torch 的版本",
            },
            commands=("sudo dmesg | tail -n 50", "diag device"),
            safety="safe",
            verify="diag ops",
            source="https://github.com/pytorch/pytorch/issues/110153",
        ),
    ),
    sources=("https://github.com/pytorch/pytorch/issues/110153",),
    fires=(KILLED, HUNG, ATE),
    silent=(SOUND,),
)
def detector_died(facts: Facts) -> Iterator[Answer]:
    """Each death."""
    if {one.detector for one in facts.all(OperatorScan)} == {"static"}:
        yield Undecided(reason="nothing was executed")
    for one in facts.all(OperatorDeath):
        yield Finding(
            subject=f"{one.device} {one.at}",
            values={
                "device": one.device,
                "at": one.at,
                "error": one.error,
                "said": f": {one.said[-1]}" if one.said else "",
            },
            evidence=(Evidence.of(one),),
        )
