"""The ranks of a world have different releases of torch or of the collective library.

## What it finds
Ranks that state different versions.

## Why it matters
What one release says on the wire another may not understand: the world hangs when it meets, fails with an error that
names something else, or works until an operation that changed.

## What it cannot know
Which of them was meant. A version that torch was built with is not always that of the file that is loaded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from diag.api import Answer, CollectiveRank, Evidence, Facts, Finding, Remedy, check

HEAD = (
    '{"schema": "diag/collectives/1", "device": "cuda", "backend": "nccl", "dtype": "bf16", "launcher": "slurm", '
    '"size": 2, '
)
RANK = '{"rank": %d, "host": "node%d", "address": "GPU-%d", "torch": "%s", "library": "%s"}'
LIBRARIES = HEAD + (
    f'"ranks": [{RANK % (0, 1, 1, "2.11.0", "2.28.9")}, {RANK % (1, 2, 2, "2.11.0", "2.27.5")}], "results": [], '
    f'"trouble": '
    '{"kind": "refused", "reason": "the collective library differs: 2.28.9 on rank 0, 2.27.5 on rank 1", "suspects": '
    "[0, 1]}}\n"
)
TORCHES = HEAD + f'"ranks": [{RANK % (0, 1, 1, "2.11.0", "")}, {RANK % (1, 2, 2, "2.10.0", "")}], "results": []}}\n'
SAME = (
    HEAD
    + f'"ranks": [{RANK % (0, 1, 1, "2.11.0", "2.28.9")}, {RANK % (1, 2, 2, "2.11.0", "2.28.9")}], "results": []}}\n'
)


@check(
    "collectives/versions-differ",
    severity="error",
    about="device",
    needs=(CollectiveRank,),
    words={
        "en": {
            "title": "The ranks have different releases",
            "summary": "{what} is {versions}",
            "cause": "The hosts have different images or environments, or one of them loads a library from a folder of "
            "its own.",
        },
        "zh": {
            "title": "各 rank 的版本不一致",
            "summary": "{what} 的版本：{versions}",
            "cause": "各主机的镜像或环境不同，或其中一台从自己的目录加载了通信库。",
        },
    },
    remedies=(
        Remedy(
            key="one-image",
            title={"en": "Start all ranks from one image or environment", "zh": "所有 rank 使用同一镜像或环境"},
            commands=(
                "python -c 'import torch; print(torch.__version__, torch.cuda.nccl.version())'",
                "env | grep -E 'LD_LIBRARY_PATH|LD_PRELOAD|NCCL_SO_PATH'",
            ),
            safety="manual",
            verify="diag comm",
            source="https://docs.vllm.ai/en/latest/serving/parallelism_scaling.html",
        ),
    ),
    sources=(
        "https://docs.vllm.ai/en/latest/serving/parallelism_scaling.html",
        "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html",
    ),
    explains=("collectives/call-failed", "collectives/rank-unreachable"),
    fires=(LIBRARIES, TORCHES),
    silent=(SAME,),
)
def versions_differ(facts: Facts) -> Iterator[Answer]:
    """Group the ranks by what they state."""
    ranks = {one.rank: one for one in facts.all(CollectiveRank)}
    for what, field in (("torch", "torch"), ("the collective library", "library_version")):
        stated: dict[str, list[CollectiveRank]] = defaultdict(list)
        for one in ranks.values():
            if version := getattr(one, field):
                stated[version].append(one)
        if len(stated) > 1:
            versions = (f"{version} ({_numbers(alike)})" for version, alike in stated.items())
            yield Finding(
                subject=what,
                values={"what": what, "versions": ", ".join(versions)},
                evidence=tuple(Evidence.of(alike[0]) for alike in stated.values()),
            )


def _numbers(ranks: list[CollectiveRank]) -> str:
    """The ranks by number; the first of them where they are many."""
    shown = ", ".join(str(one.rank) for one in ranks[:4])
    return f"rank {shown}" + (f" and {len(ranks) - 4} more" if len(ranks) > 4 else "")
