"""The folder that models are downloaded to may not be written to.

## What it finds
A folder for models that the user who asked may not write to, nor make where it is not there yet.

## Why it matters
A model that is not there yet cannot be downloaded, and the hub's library cannot lock one that is.

## What it cannot know
Whether the models are there already and the launch is told to stay offline: then a folder mounted read-only serves.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, CacheFolder, Evidence, Facts, Finding, Remedy, Setting, Undecided, check

OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
ON = ("1", "ON", "YES", "TRUE")

READ_ONLY = """\
{"schema": "diag/caches/1", "folders": [{"purpose": "models", "variable": "", \
"path": "/.cache/huggingface/hub", "nearest": "/", "free_bytes": 73620930560, "writable": false}, \
{"purpose": "temporary", "variable": "", "path": "/tmp", "nearest": "/tmp", "free_bytes": 73620930560, \
"writable": true}]}
"""
COMPILED_ONLY = """\
{"schema": "diag/caches/1", "folders": [{"purpose": "models", "variable": "HF_HOME", "path": "/data/hub", \
"nearest": "/data", "free_bytes": 73620930560, "writable": true}, {"purpose": "compiled", "variable": "", \
"path": "/.cache/vllm", "nearest": "/", "free_bytes": 73620930560, "writable": false}]}
"""


@check(
    "host/model-cache-not-writable",
    severity="warning",
    about="host",
    needs=(CacheFolder,),
    uses=(Setting,),
    words={
        "en": {
            "title": "The folder for downloaded models cannot be written to",
            "summary": "{path}: this user may not write there",
            "cause": "The container runs as a user without a home folder of its own, the folder is another user's, or "
            "it is mounted read-only. Without a variable that names a folder, it is below the home folder.",
        },
        "zh": {
            "title": "模型下载目录不可写",
            "summary": "当前用户无权写入 {path}",
            "cause": "容器以没有主目录的用户运行，该目录属于其他用户，或以只读方式挂载。"
            "未设置变量时，该目录位于用户主目录下。",
        },
    },
    remedies=(
        Remedy(
            key="elsewhere",
            title={
                "en": "Name a folder this user may write to",
                "zh": "指定当前用户可写的目录",
            },
            commands=("export HF_HOME=<dir>",),
            safety="safe",
            verify="touch <dir>/x && rm <dir>/x",
            source="https://github.com/vllm-project/vllm/issues/20127",
        ),
        Remedy(
            key="offline",
            title={
                "en": "Where the models are there already, say so",
                "zh": "若模型已在其中，则声明离线",
            },
            commands=("export HF_HUB_OFFLINE=1",),
            safety="safe",
            verify="echo $HF_HUB_OFFLINE",
            source="https://github.com/OpenShift-Fleet/rehor/pull/229",
        ),
    ),
    sources=("https://github.com/vllm-project/vllm/issues/20127", "https://github.com/kserve/kserve/issues/3562"),
    fires=(READ_ONLY,),
    silent=(COMPILED_ONLY,),
)
def model_cache_not_writable(facts: Facts) -> Iterator[Answer]:
    """One finding for each folder; none where the launch is to stay offline."""
    told = [one for one in facts.all(CacheFolder) if one.purpose == "models" and one.writable is not None]
    if not told:
        yield Undecided(reason="whether the folder for models may be written to is not told")
    elif not any(one.name in OFFLINE and one.value.upper() in ON for one in facts.all(Setting)):
        for folder in told:
            if not folder.writable:
                yield Finding(
                    values={"path": folder.path},
                    subject=folder.path,
                    confidence="medium",
                    evidence=(Evidence.of(folder),),
                )
