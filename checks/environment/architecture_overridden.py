"""The ROCm runtime takes every device for another architecture than it has.

## What it finds
`HSA_OVERRIDE_GFX_VERSION` in the environment or in a launch command.

## Why it matters
Kernels of another architecture run on the device: they abort (more registers than it has, illegal instructions), hang,
or compute something else. The variable counts for all devices of the machine.

## What it cannot know
Whether the two architectures happen to agree. Where a device tells one that differs, the finding is sure.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Accelerator,
    Answer,
    Evidence,
    Facts,
    Finding,
    LaunchArguments,
    Platform,
    Remedy,
    Setting,
    Unavailable,
    Undecided,
    Variable,
    check,
    switched,
)

OVERRIDE = "export HSA_OVERRIDE_GFX_VERSION=10.3.0\nexport HIP_VISIBLE_DEVICES=0\n"
EMPTY = "HSA_OVERRIDE_GFX_VERSION=\nHIP_VISIBLE_DEVICES=0\n"
CHILD = """\
{"schema": "diag/environment/1", "variables": {"HIP_VISIBLE_DEVICES": "0,1", "HSA_FORCE_FINE_GRAIN_PCIE": "1"}}
"""


@check(
    "environment/architecture-overridden",
    severity="warning",
    about="host",
    needs=(Variable,),
    uses=(Accelerator, LaunchArguments, Platform, Setting, Unavailable),
    words={
        "en": {
            "title": "A variable makes the device pose as another architecture",
            "summary": "{name}={value}: the runtime takes every device{devices.en} for {architecture}",
            "cause": "It was set because the libraries were not built for this device, and stayed when they were.",
        },
        "zh": {
            "title": "有环境变量使设备冒充其他架构",
            "summary": "{name}={value}：运行时把所有设备{devices.zh}都当作 {architecture}",
            "cause": "由于软件库没有为该设备构建而设置了它，之后即使库已支持也没有取消。",
        },
    },
    remedies=(
        Remedy(
            key="unset",
            title={
                "en": "Take it out where it is set (shell, container, manifest), and install "
                "a torch and an engine that were built for the device",
                "zh": "在设置它的地方（shell、容器或 manifest）删除该变量，并安装为该设备构建的 torch 和推理引擎",
            },
            commands=("unset {name}", "rocminfo | grep gfx"),
            safety="disruptive",
            verify='python -c "import torch; print(torch.cuda.get_arch_list(), torch.ones(1, device=0) + 1)"',
            source="https://github.com/cubiq/ComfyUI_InstantID/issues/71",
        ),
    ),
    sources=(
        "https://github.com/cubiq/ComfyUI_InstantID/issues/71",
        "https://github.com/ROCm/ROCm/issues/3065",
    ),
    fires=(OVERRIDE,),
    silent=(EMPTY, CHILD),
)
def architecture_overridden(facts: Facts) -> Iterator[Answer]:
    """Look for the variable, and for what the devices say they are."""
    rows = [one for one in facts.all(Variable) if one.purpose == "override"]
    found, told = switched(facts, rows)
    for row, setting in found:
        yield _finding(row, setting, facts)
    if not told:
        yield Undecided(reason="the variable was not told, nor a whole environment")


def _finding(row: Variable, setting: Setting, facts: Facts) -> Finding:
    posed = _architecture(setting.value)
    told = [one for one in facts.all(Accelerator) if one.architecture.startswith("gfx")]
    names = ", ".join(sorted({one.architecture for one in told}))
    other = [one for one in told if one.architecture != posed]
    return Finding(
        subject=row.name,
        values={
            "name": row.name,
            "value": setting.value,
            "architecture": posed,
            "devices.en": names and f" ({names})",
            "devices.zh": names and f"（{names}）",
        },
        confidence="high" if other else "medium",
        evidence=(Evidence.of(setting), *map(Evidence.of, other[:1])),
    )


def _architecture(version: str) -> str:
    """The name of an architecture from its version: 9.0.10 is gfx90a."""
    major, *rest = (int(part) for part in version.split("."))
    return f"gfx{major}" + "".join(f"{part:x}" for part in rest)
