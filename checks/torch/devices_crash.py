"""The process dies, or hangs, when torch looks at the devices.

## What it finds
A torch that was imported and whose process, asked for its devices, was killed by a signal or did not answer in time.

## Why it matters
Every engine does the same as its first step.

## What it cannot know
Whether the driver, the runtime or a device is at fault. The signal is quoted.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, Remedy, TorchBuild, Unavailable, Undecided, check

DEAD = """\
{"schema": "diag/torch-env/1", "executable": "/opt/venv/bin/python", "extensions": {}, "import_seconds": 3.924, \
"build": {"version": "2.5.1+cu124", "cuda": "12.4", "hip": null, "xpu": null, "debug": false, "architectures": []}, \
"backend": "", "devices": [], "unseen": "killed by SIGSEGV", "trials": []}
"""
LATE = DEAD.replace("killed by SIGSEGV", "no answer within 45 s")
ANSWERED = """\
{"schema": "diag/torch-env/1", "executable": "/opt/venv/bin/python", "import_seconds": 3.924, "build": {"version": \
"2.13.0+cpu", "cuda": null, "hip": null, "xpu": null, "debug": false, "git_version": \
"cf30153c4c131c8164ee7798e5022d810682e2cb", "architectures": []}, "available": false, "backend": "", "devices": []}
"""


@check(
    "torch/devices-crash",
    severity="error",
    about="torch",
    needs=(TorchBuild,),
    uses=(Unavailable,),
    words={
        "en": {
            "title": "Looking at the devices kills the process",
            "summary": "torch {version}, asked for its devices: {reason}",
            "cause": "The driver's library crashes or does not come back: driver and libraries of different versions, "
            "or a device that no longer answers.",
        },
        "zh": {
            "title": "查询设备时进程崩溃或无响应",
            "summary": "torch {version} 查询设备时：{reason}",
            "cause": "驱动库崩溃或不返回：驱动与库版本不一致，或某个设备已无应答。",
        },
    },
    remedies=(
        Remedy(
            key="look",
            title={
                "en": "See whether the vendor's tool answers, and what the kernel's log says",
                "zh": "检查厂商工具是否有应答，并查看内核日志",
            },
            commands=("sudo dmesg | tail -n 50",),
            safety="safe",
            verify='python -X faulthandler -c "import torch; print(torch.cuda.device_count())"',
            source="https://github.com/pytorch/pytorch/issues/110153",
        ),
    ),
    sources=("https://github.com/pytorch/pytorch/issues/110153",),
    explains=("torch/device-unavailable",),
    fires=(DEAD, LATE),
    silent=(ANSWERED,),
)
def devices_crash(facts: Facts) -> Iterator[Answer]:
    """Look for the death of the process that was asked."""
    dead = next((one for one in facts.all(Unavailable) if one.what == "torch/devices"), None)
    builds = facts.all(TorchBuild)
    if dead:
        values = {"version": builds[0].version, "reason": dead.reason}
        yield Finding(values={**values}, evidence=(Evidence.of(dead), Evidence.of(builds[0])))
    elif all(one.available is None for one in builds):
        yield Undecided(reason="torch was not asked for its devices")
