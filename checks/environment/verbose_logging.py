"""A variable makes a library print far more than its errors.

## What it finds
Log levels of `kb/reference/variables.yaml` that print what happens on every rank or call.

## Why it matters
Logs grow fast and hide what matters; some libraries say that such traffic slows the service.

## What it cannot know
Whether somebody wants that log. Hence a note.
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
    Platform,
    Remedy,
    Setting,
    Unavailable,
    Undecided,
    Variable,
    check,
    switched,
)

INFO = "NCCL_DEBUG=INFO\nNCCL_SOCKET_IFNAME=eth0\n"
LEVELS = "export VLLM_LOGGING_LEVEL=DEBUG\nexport ASCEND_GLOBAL_LOG_LEVEL=1\n"
VERSION = "NVIDIA_DRIVER_CAPABILITIES=compute,utility\nNCCL_DEBUG=version\nCUDA_HOME=/usr/local/cuda\n"
WARN = 'NCCL_DEBUG=WARN\ndeclare -x NCCL_DEBUG="WARN"\n'
LOGGING = r"\w*LOG\w*|(?:NCCL|BKCL|HCCL)_DEBUG"


@check(
    "environment/verbose-logging",
    severity="info",
    about="host",
    needs=(Variable,),
    uses=(LaunchArguments, Platform, Setting, Unavailable),
    words={
        "en": {
            "title": "A variable makes the log verbose",
            "summary": "{name}={value}: {effect.en}",
            "cause": "It was set to look into something, or an image sets it.",
        },
        "zh": {
            "title": "有环境变量使日志过于冗长",
            "summary": "已设置 {name}={value}：{effect.zh}",
            "cause": "有人为排查问题而设置了它，或由镜像设置。",
        },
    },
    remedies=(
        Remedy(
            key="unset",
            title={
                "en": "Take it out where it is set (shell, service file, nccl.conf, `docker run -e`, compose file, "
                "manifest: `unset` works in a shell alone) and restart the engine",
                "zh": "在设置它的地方删除（shell、服务文件、nccl.conf、`docker run -e`、compose 文件或 manifest；"
                "`unset` 只对 shell 有效），然后重启推理引擎",
            },
            commands=("unset {name}",),
            safety="disruptive",
            verify="env | grep '^{name}=' || echo unset",
            source="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/logging.html",
        ),
    ),
    sources=(
        "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/logging.html",
        "https://docs.vllm.ai/en/latest/usage/troubleshooting.html",
        "https://www.hiascend.com/document/detail/zh/CANNCommunityEdition/910/maintenref/envvar/envref_07_0122.html",
    ),
    fires=(INFO, LEVELS),
    silent=(VERSION, WARN),
)
def verbose_logging(facts: Facts) -> Iterator[Answer]:
    """Compare each log level with those that print everything."""
    rows = [one for one in facts.all(Variable) if one.purpose == "debugging" and re.fullmatch(LOGGING, one.name)]
    found, told = switched(facts, rows)
    for row, setting in found:
        yield _finding(row, setting)
    if not told:
        yield Undecided(reason="none of these variables was told, nor a whole environment")


def _finding(row: Variable, setting: Setting) -> Finding:
    values = {"name": row.name, "value": setting.value, "effect.en": row.effect["en"], "effect.zh": row.effect["zh"]}
    return Finding(subject=row.name, values={**values}, evidence=(Evidence.of(setting),))
