"""A device does not come through diag's own test: it hangs, crashes, or raises at every step.

## What it finds
A test in a process of its own that ended by a signal, in which nothing moved for a minute, or of which no step could be
done; with what it was about then, and whether the device's memory came back after it was killed.

## Why it matters
An engine on this device ends the same way, with all other devices waiting for it.

## What it cannot know
Whether the device or its software is at fault. A type that a device does not have is no fault and only listed; a device
whose memory others hold is left undecided.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, DeviceTest, Evidence, Facts, Finding, Remedy, Undecided, check, expression

SOUND = expression(r"(?i)out of memory|busy or unavailable|forked subprocess|no time was left for it")
"""What is said of a device that others use, that must not be used in a fork, or that was not come to."""
RELEASED = 0.95
"""The share of the memory that was free before that must be free again."""

HUNG = """\
{"schema": "diag/device/1", "executable": "/opt/venv/bin/python", "devices": [{"device": "cuda:0", "name": \
"NVIDIA H100 80GB HBM3", "memory_bytes": 85520809984, "address": "", "steps": [{"step": "memory by copy", \
"read": 1073741824, "written": 1073741824, "correct": true, "seconds": 0.000740512, "fastest": 0.000740512, \
"samples": 40, "calls": 3}], "phase": "done", "error": "", "seconds": 9.1}, {"device": "cuda:1", "name": \
"NVIDIA H100 80GB HBM3", "memory_bytes": 85520809984, "address": "", "steps": [{"step": "memory by copy", \
"read": 1073741824, "written": 1073741824, "correct": true, "seconds": 0.000740512, "fastest": 0.000740512, \
"samples": 40, "calls": 3}], "phase": "matrix product in bf16", "error": "nothing moved for 60 s", \
"seconds": 9.1, "free": 84000000000, "after": 41000000000}], "torch": "2.9.1", "unseen": ""}
"""
CRASHED = """\
{"schema": "diag/device/1", "executable": "/opt/venv/bin/python", "devices": [{"device": "cuda:0", "name": \
"NVIDIA H100 80GB HBM3", "memory_bytes": 85520809984, "address": "", "steps": [], "phase": "first use", \
"error": "killed by SIGSEGV", "seconds": 9.1}], "torch": "2.9.1", "unseen": ""}
"""
ILLEGAL = """\
{"schema": "diag/device/1", "executable": "/opt/venv/bin/python", "devices": [{"device": "cuda:0", "name": \
"NVIDIA H100 80GB HBM3", "memory_bytes": 85520809984, "address": "", "steps": [{"step": "memory by copy", \
"error": "RuntimeError: CUDA error: an illegal memory access was encountered"}, {"step": "memory by kernel", \
"error": "RuntimeError: CUDA error: an illegal memory access was encountered"}], "phase": "done", "error": \
"", "seconds": 9.1}], "torch": "2.9.1", "unseen": ""}
"""
FULL = """\
{"schema": "diag/device/1", "executable": "/opt/venv/bin/python", "devices": [{"device": "cuda:0", "name": \
"NVIDIA H100 80GB HBM3", "memory_bytes": 85520809984, "address": "", "steps": [], "phase": "first use", \
"error": "OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 MiB.", "seconds": 9.1}], "torch": \
"2.9.1", "unseen": ""}
"""
NO_BF16 = """\
{"schema": "diag/device/1", "executable": "/opt/venv/bin/python", "devices": [{"device": "cuda:0", "name": \
"NVIDIA H100 80GB HBM3", "memory_bytes": 85520809984, "address": "", "steps": [{"step": "memory by copy", \
"read": 1073741824, "written": 1073741824, "correct": true, "seconds": 0.000740512, "fastest": 0.000740512, \
"samples": 40, "calls": 3}, {"step": "matrix product in bf16", "error": "RuntimeError: not implemented for \
'BFloat16'"}], "phase": "done", "error": "", "seconds": 9.1}], "torch": "2.9.1", "unseen": ""}
"""


@check(
    "device/self-test-fails",
    severity="error",
    about="device",
    needs=(DeviceTest,),
    words={
        "en": {
            "title": "A device does not come through its test",
            "summary": "{device} ({name}): {error} at: {phase}{held.en}",
            "cause": "The device or its driver is in a state that it does not leave by itself, it is faulty, or torch "
            "was not built for it.",
        },
        "zh": {
            "title": "设备未能完成自检",
            "summary": "{device}（{name}）：{error}，当时在：{phase}{held.zh}",
            "cause": "设备或驱动处于无法自行恢复的状态、设备有故障，或 torch 不是为它构建的。",
        },
    },
    remedies=(
        Remedy(
            key="log",
            title={
                "en": "See what the kernel's log says of it, reset it while nothing runs on it, and test it alone",
                "zh": "查看内核日志，在空闲时复位该设备，再单独测试",
            },
            commands=("sudo dmesg | tail -n 50", "diag device --device {device}"),
            safety="disruptive",
            verify="diag device --device {device}",
            source="https://github.com/pytorch/pytorch/issues/110153",
        ),
    ),
    sources=("https://github.com/pytorch/pytorch/issues/110153",),
    fires=(HUNG, CRASHED, ILLEGAL),
    silent=(NO_BF16,),
)
def self_test_fails(facts: Facts) -> Iterator[Answer]:
    """How each test ended."""
    for one in facts.all(DeviceTest):
        said = one.error or ("" if one.done or not one.untold else one.untold[0].partition(": ")[2])
        if SOUND.search(said):
            yield Undecided(reason=f"{one.device}: {said}")
        elif said:
            yield _finding(one, said)


def _finding(one: DeviceTest, said: str) -> Finding:
    held = bool(one.after_bytes and one.free_bytes and one.after_bytes < RELEASED * one.free_bytes)
    lost = (one.free_bytes or 0) - (one.after_bytes or 0)
    return Finding(
        subject=one.device,
        values={
            "device": one.device,
            "name": one.name,
            "error": said,
            "phase": one.phase,
            "held.en": f"; {lost / 2**30:.1f} GiB of its memory did not come back" if held else "",
            "held.zh": f"；{lost / 2**30:.1f} GiB 显存未释放" if held else "",
        },
        evidence=(Evidence.of(one),),
    )
