"""Downloads are switched off, and a launch names its model as a repository of the Hub.

## What it finds
`HF_HUB_OFFLINE` or `TRANSFORMERS_OFFLINE` beside a launch command whose model is `owner/name` and not a folder.

## Why it matters
The engine finds the model only if every file of it is in the cache already; else it stops before it loads anything.

## What it cannot know
What the cache holds. Hence a note.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from diag.api import (
    Answer,
    Evidence,
    Facts,
    Finding,
    LaunchArguments,
    Remedy,
    Setting,
    Undecided,
    Variable,
    check,
    expression,
)

REPOSITORY = expression(r"[A-Za-z0-9][\w.-]{0,95}/[\w.-]{1,96}")
OTHER_HUBS = ("VLLM_USE_MODELSCOPE", "SGLANG_USE_MODELSCOPE")
BY_NAME = "$ HF_HUB_OFFLINE=1 vllm serve Qwen/Qwen3-8B --tensor-parallel-size 2\n"
BY_PATH = """\
export HIP_VISIBLE_DEVICES=0,1
export HF_HUB_OFFLINE=1
export OMP_NUM_THREADS=8
python3 -u -m vllm.entrypoints.openai.api_server --model /model --served-model-name qwen38-vllm021-bf16 --port 18680
"""
ONLINE = "$ HF_HUB_OFFLINE=0 vllm serve Qwen/Qwen3-8B --tensor-parallel-size 2\n"


@check(
    "environment/offline",
    severity="info",
    about="host",
    needs=(LaunchArguments, Variable),
    uses=(Setting,),
    words={
        "en": {
            "title": "Downloads are off and the model is named by repository",
            "summary": "{name}={value}, and the launch asks for {model}: it must be in the cache, whole",
            "cause": "Nothing is fetched from the Hub; what is not in the cache is not found.",
        },
        "zh": {
            "title": "已禁用下载，而模型以仓库名指定",
            "summary": "{name}={value}，而启动命令使用 {model}：其全部文件必须已在缓存中",
            "cause": "不会从 Hub 下载任何文件，缓存中没有的文件无法找到。",
        },
    },
    remedies=(
        Remedy(
            key="fetch",
            title={
                "en": "Fetch the model into the cache where downloads are allowed, or name its folder",
                "zh": "在允许下载的环境中先将模型下载到缓存，或改用其目录路径",
            },
            commands=("env -u {name} hf download {model}",),
            safety="safe",
            verify="HF_HUB_OFFLINE=1 hf download {model}",
            source="https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables",
        ),
    ),
    sources=("https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables",),
    fires=(BY_NAME,),
    silent=(BY_PATH, ONLINE),
)
def offline(facts: Facts) -> Iterator[Answer]:
    """Compare the variables with those that stop downloads, and the models with the form of a repository's name."""
    settings = facts.environment()
    rows = [one for one in facts.all(Variable) if one.purpose == "offline"]
    asked = [one for one in facts.all(LaunchArguments) if one.subcommand == "serve" and one.model]
    named = {one.model: one for one in asked if REPOSITORY.fullmatch(one.model)}
    elsewhere = any(name in settings for name in OTHER_HUBS)
    for row in rows:
        setting = settings.get(row.name)
        if setting and re.fullmatch(row.values, setting.value) and not elsewhere:
            yield from (_finding(row, setting, launch) for launch in named.values())
    if not asked or not any(row.name in settings for row in rows):
        yield Undecided(reason="no launch with a model was told beside a variable about downloads")


def _finding(row: Variable, setting: Setting, launch: LaunchArguments) -> Finding:
    values = {"name": row.name, "value": setting.value, "model": launch.model}
    evidence = (Evidence.of(setting), Evidence.of(launch))
    return Finding(subject=launch.model, values={**values}, evidence=evidence)
