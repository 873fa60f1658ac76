"""A process may open few files, and may not raise that limit itself.

## What it finds
A hard limit of open files of 4096 or less. The servers of vLLM and SGLang raise the soft limit to 65535 when they
start, so that a small soft limit alone is no fault of theirs; old versions, and programs that use the engine as a
library, do not raise it.

## Why it matters
Each connection of a client, each socket between workers and each shard of a model is an open file. Under load requests
fail with "[Errno 24] Too many open files".

## What it cannot know
How many requests will come at once, and whether the engine is started from this shell or by something with other
limits.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, Remedy, Setting, Undecided, check

WANTED = 65535
"""What engines raise the soft limit to."""
FEW = 4096
"""What old distributions give as the hard limit: a benchmark opens as many connections."""

PROC_4096 = """\
Limit                     Soft Limit           Hard Limit           Units
Max cpu time              unlimited            unlimited            seconds
Max core file size        0                    unlimited            bytes
Max processes             9                    99                   processes
Max open files            1024                 4096                 files
Max locked memory         65536                65536                bytes
"""
PROC_20000 = """\
Limit                     Soft Limit           Hard Limit           Units
Max cpu time              unlimited            unlimited            seconds
Max processes             96365                96365                processes
Max open files            20000                20000                files
Max locked memory         8388608              8388608              bytes
"""
VLLM_4096 = """\
(APIServer pid=647998) INFO 02-01 17:03:01 [api_server.py:1272] vLLM API server version 0.14.1
(APIServer pid=647998) WARNING 02-01 17:03:01 [system_utils.py:262] Found ulimit of 4096 and failed to automatically \
increase with error current limit exceeds maximum limit. This can cause fd limit errors like `OSError: [Errno 24] Too \
many open files`. Consider increasing with ulimit -n
"""
VLLM_65530 = """\
(APIServer pid=927159) INFO 11-28 19:08:15 [api_server.py:1977] vLLM API server version 0.11.2
(APIServer pid=927159) WARNING 11-28 19:08:15 [system_utils.py:222] Found ulimit of 65530 and failed to automatically \
increase with error current limit exceeds maximum limit. This can cause fd limit errors like `OSError: [Errno 24] Too \
many open files`. Consider increasing with ulimit -n
"""


@check(
    "host/open-files-few",
    severity="warning",
    about="host",
    needs=(Setting,),
    words={
        "en": {
            "title": "The limit of open files is too small for a server under load",
            "summary": "a process may open {limit} files at most and cannot raise that itself; engines want {wanted}",
            "cause": "The hard limit is that of an old distribution or was set by whoever starts the engine. Each "
            "connection is an open file; above the limit requests fail with 'Too many open files'.",
        },
        "zh": {
            "title": "可打开文件数上限过小，服务在负载下会出错",
            "summary": "进程最多只能打开 {limit} 个文件，且无法自行提高；推理引擎期望 {wanted}",
            "cause": "硬限制来自旧发行版的默认值，或由启动引擎的程序设定。每个连接都是一个打开的文件，"
            "超过上限后请求会以 “Too many open files” 失败。",
        },
    },
    remedies=(
        Remedy(
            key="container",
            title={"en": "Start the container with a higher limit", "zh": "以更高的上限启动容器"},
            commands=("docker run --ulimit nofile=65535:65535 …",),
            safety="disruptive",
            verify="ulimit -Hn",
            source="https://github.com/docker/cli/blob/master/docs/reference/commandline/container_run.md",
        ),
        Remedy(
            key="host",
            title={
                "en": "On the host: raise the hard limit for users, then log in again (a systemd unit needs "
                "LimitNOFILE=65535)",
                "zh": "在主机上：为用户提高硬限制，然后重新登录（systemd 单元需设置 LimitNOFILE=65535）",
            },
            commands=(
                r"printf '* soft nofile 65535\n* hard nofile 65535\n' | sudo tee /etc/security/limits.d/nofile.conf",
            ),
            safety="manual",
            verify="ulimit -Hn",
            source="https://github.com/ray-project/ray/issues/29696",
        ),
    ),
    sources=(
        "https://github.com/vllm-project/vllm/pull/11530",
        "https://github.com/pytorch/pytorch/issues/137695",
        "https://github.com/ray-project/ray/issues/29696",
        "https://github.com/gpustack/gpustack/issues/2011",
    ),
    fires=(PROC_4096, VLLM_4096),
    silent=(PROC_20000, VLLM_65530),
)
def open_files_few(facts: Facts) -> Iterator[Answer]:
    """Look at the hard limit; a soft one that is high enough says that the hard one is."""
    limits = {name: _told(facts, name) for name in ("hard nofile", "nofile")}
    hard, soft = limits["hard nofile"], limits["nofile"]
    if hard is None and (soft is None or _count(soft) <= FEW):
        yield Undecided(reason="the hard limit of open files is not told, and engines raise the soft one up to it")
    elif hard and _count(hard) <= FEW:
        yield Finding(
            values={"limit": hard.value, "wanted": WANTED}, confidence="medium", evidence=(Evidence.of(hard),)
        )


def _told(facts: Facts, name: str) -> Setting | None:
    """The smallest of the limits told under this name."""
    told = (one for one in facts.all(Setting) if one.kind == "limit" and one.name == name)
    return min(told, key=_count, default=None)


def _count(limit: Setting) -> float:
    return float("inf") if limit.value == "unlimited" else int(limit.value) if limit.value.isdecimal() else 0
