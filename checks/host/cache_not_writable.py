"""A folder that engines compile into, or put temporary files in, may not be written to.

## What it finds
A folder for compiled kernels or temporary files that the user who asked may not write to, nor make where it is not
there yet.

## Why it matters
The engine ends while it starts: "[Errno 13] Permission denied: '/.cache'".

## What it cannot know
Whether the engine runs as this user and with these variables, and whether the launch compiles anything.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, CacheFolder, Evidence, Facts, Finding, Remedy, Undecided, check

PURPOSES = ("compiled", "temporary")

ARBITRARY_USER = """\
{"schema": "diag/caches/1", "folders": [{"purpose": "models", "variable": "HF_HOME", "path": "/data/hub", \
"nearest": "/data", "free_bytes": 73620930560, "writable": true}, {"purpose": "compiled", "variable": "", \
"path": "/.cache/vllm", "nearest": "/", "free_bytes": 73620930560, "writable": false}, {"purpose": "compiled", \
"variable": "", "path": "/.triton/cache", "nearest": "/", "free_bytes": 73620930560, "writable": false}, \
{"purpose": "temporary", "variable": "", "path": "/tmp", "nearest": "/tmp", "free_bytes": 73620930560, \
"writable": true}]}
"""
ROOT = """\
{"schema": "diag/caches/1", "folders": [{"purpose": "models", "variable": "", \
"path": "/root/.cache/huggingface/hub", "nearest": "/root/.cache", "free_bytes": 73620930560, "writable": true}, \
{"purpose": "compiled", "variable": "", "path": "/root/.cache/vllm", "nearest": "/root/.cache", \
"free_bytes": 73620930560, "writable": true}, {"purpose": "temporary", "variable": "", "path": "/tmp", \
"nearest": "/tmp", "free_bytes": 73620930560, "writable": true}]}
"""


@check(
    "host/cache-not-writable",
    severity="error",
    about="host",
    needs=(CacheFolder,),
    words={
        "en": {
            "title": "Engines cannot write to a folder they compile into",
            "summary": "{paths}: this user may not write there",
            "cause": "The container runs as a user without a home folder of its own, so that caches fall to '/'; or "
            "the folder is another user's, or mounted read-only.",
        },
        "zh": {
            "title": "推理引擎无法写入编译缓存或临时目录",
            "summary": "当前用户无权写入：{paths}",
            "cause": "容器以没有主目录的用户运行，缓存因此落到 '/'；或者该目录属于其他用户，或以只读方式挂载。",
        },
    },
    remedies=(
        Remedy(
            key="elsewhere",
            title={
                "en": "Point home and caches to a folder this user may write to",
                "zh": "将主目录与缓存指向当前用户可写的目录",
            },
            commands=(
                "export HOME=<dir> HF_HOME=<dir>/huggingface VLLM_CACHE_ROOT=<dir>/vllm XDG_CACHE_HOME=<dir> "
                "TRITON_CACHE_DIR=<dir>/triton TORCHINDUCTOR_CACHE_DIR=<dir>/inductor",
            ),
            safety="safe",
            verify="touch <dir>/x && rm <dir>/x",
            source="https://github.com/vllm-project/vllm/pull/38552",
        ),
    ),
    sources=(
        "https://github.com/vllm-project/vllm/issues/20127",
        "https://github.com/vllm-project/vllm/issues/10185",
        "https://github.com/ai-dynamo/dynamo/pull/13040",
    ),
    fires=(ARBITRARY_USER,),
    silent=(ROOT,),
)
def cache_not_writable(facts: Facts) -> Iterator[Answer]:
    """One finding for all of them: the way out is the same."""
    told = [one for one in facts.all(CacheFolder) if one.purpose in PURPOSES and one.writable is not None]
    refused = [one for one in told if not one.writable]
    if not told:
        yield Undecided(reason="whether the folders may be written to is not told")
    elif refused:
        paths = ", ".join(dict.fromkeys(one.path for one in refused))
        yield Finding(values={"paths": paths}, confidence="medium", evidence=tuple(map(Evidence.of, refused)))
