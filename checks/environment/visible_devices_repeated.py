"""A list of visible devices names one twice, which leaves none.

## What it finds
The same number or identifier twice in `CUDA_VISIBLE_DEVICES` or `HIP_VISIBLE_DEVICES`.

## Why it matters
The list is not cleaned up: torch counts no device at all, and the engine does not start.

## What it cannot know
Whether a launcher rewrites the variable for each of its workers.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
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
    check,
)

CHOOSING = {"CUDA_VISIBLE_DEVICES": "nvidia", "HIP_VISIBLE_DEVICES": "amd"}
TWICE = "$ CUDA_VISIBLE_DEVICES=0,0 vllm serve Qwen/Qwen3-8B --tensor-parallel-size 2\n"
EXPORTED = "export CUDA_VISIBLE_DEVICES=0,0,1\nls\nvllm serve Qwen/Qwen3-8B -tp 2\n"
ONCE = "$ CUDA_VISIBLE_DEVICES=1,5 vllm serve Qwen/Qwen3-8B --tensor-parallel-size 2\n"
ENDED = "export CUDA_VISIBLE_DEVICES=0,1,-1,0\n"


@check(
    "environment/visible-devices-repeated",
    severity="error",
    about="host",
    needs=(),
    uses=(LaunchArguments, Platform, Setting, Unavailable),
    words={
        "en": {
            "title": "A list of visible devices names one twice",
            "summary": "{name}={value} names {device} twice, which leaves no device at all",
            "cause": "The list was put together from two others, or one device was meant to take two ranks.",
        },
        "zh": {
            "title": "可见设备列表重复列出同一设备",
            "summary": "{name}={value} 重复列出 {device}，结果是没有任何可见设备",
            "cause": "列表由两个列表拼接而成，或者本想让一个设备承担两个 rank。",
        },
    },
    remedies=(
        Remedy(
            key="name-once",
            title={
                "en": "Name each device once, where the list is set (shell, container, manifest)",
                "zh": "在设置该列表的地方（shell、容器或 manifest）让每个设备只出现一次",
            },
            commands=("export {name}={once}",),
            safety="safe",
            verify='python -c "import torch; print(torch.cuda.device_count())"',
            source="https://github.com/pytorch/pytorch/blob/main/torch/cuda/__init__.py",
        ),
    ),
    sources=("https://github.com/pytorch/pytorch/blob/main/torch/cuda/__init__.py",),
    explains=("torch/device-unavailable",),
    fires=(TWICE, EXPORTED),
    silent=(ONCE, ENDED),
)
def visible_devices_repeated(facts: Facts) -> Iterator[Answer]:
    """Look for a device that stands twice before the list ends."""
    settings = facts.environment()
    absent = {name for one in facts.all(Platform) for name in one.absent if name not in one.poses_as}
    chosen = [settings[name] for name, vendor in CHOOSING.items() if name in settings and vendor not in absent]
    for setting in chosen:
        listed = _listed(setting.value)
        twice = next((word for word in listed if listed.count(word) > 1), "")
        if twice:
            values = {
                "name": setting.name,
                "value": setting.value,
                "device": twice,
                "once": ",".join(dict.fromkeys(listed)),
            }
            yield Finding(subject=setting.name, values={**values}, evidence=(Evidence.of(setting),))
    if not (chosen or facts.whole("environment")):
        yield Undecided(reason="no variable that chooses devices was told, nor a whole environment")


def _listed(value: str) -> list[str]:
    """The devices up to one that ends the list."""
    words = [word.strip() for word in value.split(",")]
    end = next((place for place, word in enumerate(words) if word in ("", "-1")), len(words))
    return words[:end]
