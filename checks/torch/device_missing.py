"""torch sees fewer devices than the vendor's tool lists.

## What it finds
At least one device in torch's own list, more in that of the tool, and no variable that chooses among them.

## Why it matters
An engine with a rank for each device does not start; one that is counted on stays idle.

## What it cannot know
Why. A device that is lost, set to another compute mode, or that a container passes only in part.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Accelerator,
    Answer,
    Evidence,
    Facts,
    Finding,
    Partition,
    Reading,
    Remedy,
    Setting,
    Undecided,
    check,
)

TOOL = """\
$ nvidia-smi -L
GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-00000000-0000-0000-0000-000000000001)
GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-00000000-0000-0000-0000-000000000002)
"""
ONE = """\
{"schema": "diag/torch-env/1", "executable": "/opt/venv/bin/python", "extensions": {}, "import_seconds": 3.9, "build": \
{"version": "2.7.1+cu128", "cuda": "12.8", "hip": null, "xpu": null, "debug": false}, "available": true, "backend": \
"cuda", "devices": [{"index": 0, "name": "NVIDIA A100-SXM4-80GB", "architecture": "sm_80"}], "architectures": \
["sm_80"], "warnings": [], "libraries": [], "versions": {}, "trials": [{"index": 0, "answer": 0.21}]}
"""
TWO = ONE.replace(
    '"architecture": "sm_80"}]', '"architecture": "sm_80"}, {"index": 1, "name": "NVIDIA A100-SXM4-80GB"}]'
)
CHOOSING = "VISIBLE_DEVICES"
OTHERS = ("ZE_AFFINITY_MASK", "ONEAPI_DEVICE_SELECTOR", "GPU_DEVICE_ORDINAL")


@check(
    "torch/device-missing",
    severity="warning",
    about="torch",
    needs=(Accelerator,),
    uses=(Partition, Reading, Setting),
    words={
        "en": {
            "title": "torch sees fewer devices than there are",
            "summary": "torch lists {seen} of the {listed} devices that the tool lists",
            "cause": "A device is lost or kept for another process, or the container passes some device files only.",
        },
        "zh": {
            "title": "torch 看到的设备少于实际数量",
            "summary": "工具列出 {listed} 个设备，而 torch 只看到 {seen} 个",
            "cause": "某个设备已丢失或被其他进程独占，或容器只传入了部分设备文件。",
        },
    },
    remedies=(
        Remedy(
            key="compare",
            title={
                "en": "Ask for each device by itself; the one that is refused says why",
                "zh": "逐个访问设备；被拒绝的设备会给出原因",
            },
            commands=(
                'for i in $(seq 0 $(({listed} - 1))); do CUDA_VISIBLE_DEVICES=$i python -c "import torch; '
                'print(torch.ones(1, device=0) + 1)"; done',
            ),
            safety="safe",
            verify='python -c "import torch; print(torch.cuda.device_count())"',
        ),
    ),
    sources=("https://github.com/pytorch/pytorch/blob/main/torch/cuda/__init__.py",),
    fires=(TOOL + ONE,),
    silent=(TOOL + TWO,),
)
def device_missing(facts: Facts) -> Iterator[Answer]:
    """Compare the two lists, where nothing chooses among the devices."""
    seen = {one.index: one for one in facts.all(Accelerator) if one.seen_by == "torch" and one.index is not None}
    tool = {one.index: one for one in facts.all(Accelerator) if one.seen_by == "tool" and one.index is not None}
    names = {one.name for one in facts.all(Setting) if one.kind == "environment"}
    if not seen or not tool:
        yield Undecided(reason="no list of torch beside one of the vendor's tool")
    elif _divided(facts) or any(CHOOSING in name for name in names) or not names.isdisjoint(OTHERS):
        yield Undecided(reason="a variable or a partition chooses among the devices")
    elif len(seen) < len(tool) and {one.vendor for one in tool.values()} == {next(iter(tool.values())).vendor}:
        yield Finding(
            values={"seen": len(seen), "listed": len(tool)},
            confidence="medium",
            evidence=(Evidence.of(seen[max(seen)]), Evidence.of(tool[max(tool)])),
        )


def _divided(facts: Facts) -> bool:
    """Whether a device is divided, or set to be."""
    modes = {one.value.partition(" ")[0] for one in facts.all(Reading) if one.name == "mig.mode"}
    return bool(facts.first(Partition)) or "Enabled" in modes
