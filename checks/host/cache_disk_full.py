"""A disk that engines write models, compiled kernels or temporary files to is full.

## What it finds
Less than 1 GiB free where such a folder is or would be made; where these were not asked for, on `/`, `/tmp`, `/root`
and `/home` as `df` shows them.

## Why it matters
Downloads and compilations end with "[Errno 28] No space left on device", often far from the folder that is full.

## What it cannot know
Quotas, inodes (`df -i`), and whether the launch writes there at all.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, CacheFolder, Evidence, Fact, Facts, Finding, Mount, Remedy, Undecided, check

FULL = 2**30
PLACES = ("/", "/tmp", "/root", "/home")
SMALL = 8 * 2**30
"""Bytes: a file system below this was made for something small."""

DF_FULL = """\
df -h
Filesystem                                      Size  Used Avail Use% Mounted on
udev                                            252G     0  252G   0% /dev
tmpfs                                            51G  202M   51G   1% /run
/dev/sda2                                       440G  417G     0 100% /
tmpfs                                           252G     0  252G   0% /dev/shm
/dev/sda1                                       487M  3.4M  483M   1% /boot/efi
/dev/sdb1                                       7.0T   30G  6.6T   1% /raid
"""
DF_ROOM = """\
df -h
Filesystem               Size  Used Avail Use% Mounted on
devtmpfs                 7.9G     0  7.9G   0% /dev
tmpfs                    7.9G     0  7.9G   0% /dev/shm
/dev/mapper/fedora-root   11G  1.6G  8.7G  16% /
tmpfs                    7.9G  8.0K  7.9G   1% /tmp
/dev/sda1                477M  130M  319M  29% /boot
"""
CHILD_FULL = """\
{"schema": "diag/caches/1", "folders": [{"purpose": "models", "variable": "HF_HOME", "path": "/data/hf/hub", \
"nearest": "/data/hf", "free_bytes": 73620930560, "writable": true}, {"purpose": "compiled", "variable": "", \
"path": "/root/.cache/vllm", "nearest": "/root/.cache", "free_bytes": 41943040, "writable": true}, \
{"purpose": "temporary", "variable": "", "path": "/tmp", "nearest": "/tmp", "free_bytes": 41943040, "writable": true}]}
"""
CHILD_ROOM = """\
{"schema": "diag/caches/1", "folders": [{"purpose": "models", "variable": "", \
"path": "/root/.cache/huggingface/hub", "nearest": "/root/.cache", "free_bytes": 73620930560, "writable": true}, \
{"purpose": "temporary", "variable": "", "path": "/tmp", "nearest": "/tmp", "free_bytes": 73620930560, \
"writable": true}]}
"""


@check(
    "host/cache-disk-full",
    severity="warning",
    about="host",
    needs=(),
    uses=(CacheFolder, Mount),
    words={
        "en": {
            "title": "A disk that engines write to is full",
            "summary": "{free} MiB are free for {paths}",
            "cause": "Models, compiled kernels and temporary files go below the home folder and /tmp unless variables "
            "say otherwise; the file system that holds them has no room, although another may have.",
        },
        "zh": {
            "title": "推理引擎写入的磁盘已满",
            "summary": "{paths} 所在文件系统仅剩 {free} MiB",
            "cause": "未设置相关变量时，模型、编译缓存和临时文件位于用户主目录与 /tmp 下；即使其他磁盘有空间，"
            "这些目录所在的文件系统也可能已满。",
        },
    },
    remedies=(
        Remedy(
            key="elsewhere",
            title={
                "en": "Let the engine write to a disk with room",
                "zh": "让引擎写入有空间的磁盘",
            },
            commands=(
                "export HF_HOME=<dir> XDG_CACHE_HOME=<dir> TMPDIR=<dir> TRITON_CACHE_DIR=<dir> "
                "TORCHINDUCTOR_CACHE_DIR=<dir>",
            ),
            safety="safe",
            verify="df -h <dir>",
            source="https://github.com/vllm-project/vllm/pull/38552",
        ),
        Remedy(
            key="look",
            title={"en": "See what takes the room", "zh": "查看占用空间的内容"},
            commands=("du -xhd1 ~/.cache 2>/dev/null | sort -h | tail",),
            safety="safe",
            verify="df -h / /tmp ~",
            source="https://github.com/huggingface/diffusers/issues/4957",
        ),
    ),
    sources=(
        "https://github.com/huggingface/diffusers/issues/4957",
        "https://github.com/jade-hpc-gpu/jade-hpc-gpu.github.io/issues/42",
        "https://github.com/vllm-project/vllm/pull/38552",
    ),
    fires=(CHILD_FULL, DF_FULL),
    silent=(CHILD_ROOM, DF_ROOM),
)
def cache_disk_full(facts: Facts) -> Iterator[Answer]:
    """One finding for each disk: folders that have exactly as much room are taken to be on one."""
    folders = [(one.path, one.free_bytes, one) for one in facts.all(CacheFolder) if one.free_bytes is not None]
    told: list[tuple[str, int, Fact]] = [(path, free, one) for path, free, one in folders]
    if not told:
        told = [
            (one.path, one.free_bytes, one) for one in facts.all(Mount) if one.free_bytes is not None and _asks(one)
        ]
    if not told:
        yield Undecided(reason="what is free on the disks that engines write to is not told")
    for free in dict.fromkeys(free for _, free, _ in told if free < FULL):
        there = [one for one in told if one[1] == free]
        paths = list(dict.fromkeys(path for path, _, _ in there))
        yield Finding(
            values={"free": free // 2**20, "paths": ", ".join(paths)},
            subject=paths[0],
            confidence="high" if folders else "medium",
            evidence=tuple(Evidence.of(fact) for _, _, fact in there[:4]),
        )


def _asks(mount: Mount) -> bool:
    """Whether a mount is one that default folders are on, and no small one."""
    return mount.path in PLACES and (mount.size_bytes or 0) >= SMALL
