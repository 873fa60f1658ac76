"""torch sees a device, and not even a kernel over one element runs on it.

## What it finds
A trial of torch on a device that raised, crashed, hung or computed something else.

## Why it matters
Whatever an engine does on this device ends in the same way, mostly later and with a message that names another cause.

## What it cannot know
Which part is at fault; torch's own words are quoted. A device whose memory others hold, or that another process has for
itself, is left undecided: it may be sound.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, DeviceTrial, Evidence, Facts, Finding, Remedy, Undecided, check, device_name, expression

TRIED = """\
{"schema": "diag/torch-env/1", "executable": "/opt/venv/bin/python", "extensions": {}, "import_seconds": 3.9, "build": \
{"version": "2.7.1+rocm6.3", "cuda": null, "hip": "6.3.42131-fa1d09cbd", "xpu": null, "debug": false}, "available": \
true, "backend": "cuda", "devices": [{"index": 0, "name": "AMD Radeon RX 7900 XT", "architecture": "gfx1100", \
"memory_bytes": 21458059264}], "architectures": ["gfx900", "gfx906"], "warnings": [], "libraries": [], "versions": {}, \
"trials": [{"index": 0, "answer": 0.21}]}
"""
FUNCTION = TRIED.replace('"answer": 0.21', '"error": "RuntimeError: HIP error: invalid device function"')
CRASH = TRIED.replace('"answer": 0.21', '"error": "killed by SIGSEGV"')
TAKEN = expression(r"(?i)out of memory|busy or unavailable")
"""How torch fails on a device that others use."""


@check(
    "torch/kernel-fails",
    severity="error",
    about="torch",
    needs=(DeviceTrial,),
    words={
        "en": {
            "title": "No kernel runs on this device",
            "summary": "torch cannot add one and one on {backend}:{index}: {error}",
            "cause": "torch was built for other architectures, its runtime does not fit the driver, or the device is "
            "in a state that it does not leave by itself.",
        },
        "zh": {
            "title": "该设备无法运行任何内核",
            "summary": "torch 在 {backend}:{index} 上连一加一都无法计算：{error}",
            "cause": "torch 不是为该架构构建的、其运行时与驱动不匹配，或设备处于无法自行恢复的异常状态。",
        },
    },
    remedies=(
        Remedy(
            key="ask",
            title={
                "en": "Compare what torch was built for with the device, then see what the kernel's log says of it",
                "zh": "先核对 torch 的构建架构与设备是否一致，再查看内核日志中关于该设备的信息",
            },
            commands=(
                'python -c "import torch as t; print(t.cuda.get_arch_list(), t.cuda.get_device_properties({index}))"',
                "sudo dmesg | tail -n 50",
            ),
            safety="safe",
            verify='python -c "import torch; print(torch.ones(1, device={index}) + 1)"',
            source="https://github.com/pytorch/pytorch/issues/110153",
        ),
    ),
    sources=("https://github.com/pytorch/pytorch/issues/110153",),
    explains=("device/self-test-fails",),
    fires=(FUNCTION, CRASH),
    silent=(TRIED,),
)
def kernel_fails(facts: Facts) -> Iterator[Answer]:
    """Look at what became of each trial."""
    for trial in facts.all(DeviceTrial):
        if not trial.ok and TAKEN.search(trial.error):
            yield Undecided(reason=f"{trial.backend}:{trial.index} is taken by others: {trial.error}")
        elif not trial.ok:
            yield Finding(
                subject=device_name(facts, index=trial.index),
                values={"backend": trial.backend, "index": trial.index, "error": trial.error or "no answer"},
                evidence=(Evidence.of(trial),),
            )
