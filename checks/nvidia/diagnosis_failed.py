"""NVIDIA's own diagnosis failed on a device.

## What it finds
Tests of `dcgmi diag` that ended with `Fail`: one finding for each device, with the tests.

## Why it matters
The test loads the device as an engine does; what fails there fails, or is slow, in service.

## What it cannot know
Whether another program used the device during the test, which makes some tests fail on a device that is well.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, Reading, Remedy, Text, Undecided, check, device_name

GUIDE = "https://github.com/stas00/ml-engineering/blob/master/compute/accelerator/nvidia/debug.md"
FAILED = "Fail: "

MEMORY = """\
| GPU Memory                | Pass - GPUs: 1, 2, 3, 4, 5, 6, 7               |
|                           | Fail - GPU: 0                                  |
| Warning                   | GPU 0 Thermal violations totaling 13.3 second  |
|                           | s started at 9.7 seconds into the test for GP  |
|                           | U 0 Verify that the cooling on this machine i  |
"""
POWER = """\
| Targeted Stress           | Pass - All                                     |
| Targeted Power            | Pass - GPUs: 0, 2, 3                           |
|                           | Fail - GPU: 1                                  |
| Warning                   | GPU 1 Max power of 224.1 did not reach desire  |
|                           | d power minimum target_power_min_ratio of 224  |
"""
PASSES = """\
| GPU Memory                | Pass - All                                     |
| Diagnostic                | Pass - All                                     |
| EUD Test                  | Skip - All                                     |
"""


@check(
    "nvidia/diagnosis-failed",
    severity="error",
    about="nvidia",
    needs=(),
    uses=(Reading, Text),
    words={
        "en": {
            "title": "NVIDIA's diagnosis failed on a GPU",
            "summary": "{device}: failed in {tests}",
            "cause": "The warning below the result names the reason: memory, heat, power, the link to the host, or "
            "a GPU that was in use during the test.",
        },
        "zh": {
            "title": "NVIDIA 诊断在 GPU 上失败",
            "summary": "{device}：{tests} 测试失败",
            "cause": "结果下方的警告给出了原因：显存、过热、供电、与主机的链路，或测试期间 GPU 正被占用。",
        },
    },
    remedies=(
        Remedy(
            key="again",
            title={
                "en": "Stop everything that uses the GPUs and run the diagnosis again, at its longer level",
                "zh": "停止所有使用 GPU 的进程，并以更长的级别重新运行诊断",
            },
            commands=("nvidia-smi", "dcgmi diag -r 3"),
            safety="disruptive",
            verify="dcgmi diag -r 2",
            source=GUIDE,
        ),
        Remedy(
            key="service",
            title={
                "en": "If it fails again: take the GPU out of service and give the report to your vendor",
                "zh": "若再次失败：停用该 GPU 并将报告提供给厂商",
            },
            commands=("sudo nvidia-bug-report.sh",),
            safety="manual",
            verify="dcgmi diag -r 2",
            source=GUIDE,
        ),
    ),
    sources=(GUIDE, "https://github.com/NVIDIA/go-dcgm/issues/52", "https://github.com/IBM/autopilot/issues/68"),
    fires=(MEMORY, POWER),
    silent=(PASSES,),
)
def diagnosis_failed(facts: Facts) -> Iterator[Answer]:
    """Gather the failed tests, device by device."""
    told: dict[str, list[Reading]] = {}
    for one in facts.all(Reading):
        if one.vendor == "nvidia" and one.name == "health" and one.value.startswith(FAILED):
            told.setdefault(device_name(facts, index=one.index, vendor="nvidia"), []).append(one)
    for device, failed in told.items():
        tests = ", ".join(dict.fromkeys(one.value.removeprefix(FAILED) for one in failed))
        yield Finding(
            values={"device": device or "GPU", "tests": tests},
            subject=device,
            evidence=tuple(map(Evidence.of, failed[:4])),
        )
    if not told and not facts.read("device-diagnosis"):
        yield Undecided(reason="no diagnosis was run")
