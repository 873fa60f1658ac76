"""Several parts of GPUs (MIG) are listed for one process, which sees the first.

## What it finds
`CUDA_VISIBLE_DEVICES` with two or more `MIG-…` names, in the environment or before a command.

## Why it matters
CUDA offers one part to a process. Tensor parallelism over the parts fails with "invalid device ordinal", or all ranks
land on one part.

## What it cannot know
Whether the driver at hand lifts the limit, as later ones may.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Fact, Facts, Finding, LaunchArguments, Remedy, Setting, Undecided, check

THREAD = "https://github.com/pytorch/pytorch/pull/92315"
VARIABLE = "CUDA_VISIBLE_DEVICES"

TWO = """\
CUDA_VISIBLE_DEVICES=MIG-00000000-0000-0000-0000-000000000001,MIG-00000000-0000-0000-0000-000000000002 python -c "import torch; print(torch.cuda.device_count()); print(torch.randn(1).cuda(1))"
1
Traceback (most recent call last):
  File "<string>", line 1, in <module>
RuntimeError: CUDA error: invalid device ordinal
"""  # noqa: E501
ONE = """\
CUDA_VISIBLE_DEVICES=MIG-00000000-0000-0000-0000-000000000001 python -c "import torch; print(torch.cuda.device_count())"
1
"""


@check(
    "device/several-parts-visible",
    severity="error",
    about="device",
    needs=(),
    uses=(Setting, LaunchArguments),
    words={
        "en": {
            "title": "Several MIG parts are listed for a process that can use one",
            "summary": "{variable} lists {count} MIG parts; CUDA offers the first alone",
            "cause": "CUDA enumerates one MIG part in a process, however many the variable names.",
        },
        "zh": {
            "title": "为一个进程列出了多个 MIG 分片，但只能使用一个",
            "summary": "{variable} 列出了 {count} 个 MIG 分片；CUDA 只提供第一个",
            "cause": "无论变量中写了多少个，CUDA 在一个进程中只枚举一个 MIG 分片。",
        },
    },
    remedies=(
        Remedy(
            key="one-each",
            title={
                "en": "Start one engine for each part, without tensor parallelism",
                "zh": "为每个分片单独启动一个推理引擎，且不使用张量并行",
            },
            commands=("CUDA_VISIBLE_DEVICES=MIG-… vllm serve … --tensor-parallel-size 1",),
            safety="safe",
            verify='python -c "import torch; print(torch.cuda.device_count())"',
            source=THREAD,
        ),
        Remedy(
            key="whole",
            title={
                "en": "Or end all work on the GPU, turn MIG off (this removes its parts) and use it whole",
                "zh": "或结束该 GPU 上的所有任务，关闭 MIG（会删除其分片）并使用整卡",
            },
            commands=("sudo nvidia-smi -mig 0",),
            safety="disruptive",
            verify="nvidia-smi -L",
            source=THREAD,
        ),
    ),
    sources=(THREAD,),
    fires=(TWO,),
    silent=(ONE,),
)
def several_parts_visible(facts: Facts) -> Iterator[Answer]:
    """Count the parts in each value of the variable."""
    values: dict[str, Fact] = {}
    for value, fact in _values(facts):
        values.setdefault(value, fact)
    for value, fact in values.items():
        parts = [word for word in value.split(",") if word.strip().startswith("MIG-")]
        if len(parts) > 1:
            yield Finding(
                values={"variable": VARIABLE, "count": len(parts)}, confidence="medium", evidence=(Evidence.of(fact),)
            )
    if not values:
        yield Undecided(reason=f"nothing tells {VARIABLE}")


def _values(facts: Facts) -> Iterator[tuple[str, Fact]]:
    for setting in facts.all(Setting):
        if setting.name == VARIABLE:
            yield setting.value, setting
    for launch in facts.all(LaunchArguments):
        yield from ((value, launch) for name, value in launch.environment if name == VARIABLE)
