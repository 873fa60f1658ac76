"""Two ranks of a world hold the same device.

## What it finds
Ranks on one host whose device has the same address or UUID.

## Why it matters
NCCL refuses it ("Duplicate GPU detected"); other libraries wait for ever, or share the device at half its speed, with
the memory of two.

## What it cannot know
A device that is cut into parts (MIG, virtual functions) on purpose: its parts have UUIDs of their own, and are told
apart where torch tells them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from diag.api import Answer, CollectiveRank, Evidence, Facts, Finding, Remedy, check

HEAD = (
    '{"schema": "diag/collectives/1", "device": "cuda", "backend": "nccl", "dtype": "bf16", "launcher": "torchrun", '
    '"size": 2, '
)
RANK = (
    '{"rank": %d, "host": "node1", "pid": %d, "device": "NVIDIA A100-SXM4-80GB", "address": "GPU-%s", "torch": '
    '"2.11.0"}'
)
TWICE = HEAD + (
    f'"ranks": [{RANK % (0, 71, "5f7f0e5d")}, {RANK % (1, 72, "5f7f0e5d")}], "results": [], "trouble": '
    f'{{"kind": "refused", '
    '"reason": "ranks 0 and 1 hold the same device GPU-5f7f0e5d of node1", "suspects": [0, 1]}}\n'
)
EACH = HEAD + f'"ranks": [{RANK % (0, 71, "5f7f0e5d")}, {RANK % (1, 72, "9c1b2a3d")}], "results": []}}\n'


@check(
    "collectives/device-held-twice",
    severity="error",
    about="device",
    needs=(CollectiveRank,),
    words={
        "en": {
            "title": "Several ranks hold the same device",
            "summary": "ranks {ranks} hold the device {address} of {host}",
            "cause": "The ranks were started without a local number (LOCAL_RANK), more ranks than devices were "
            "started, or "
            "each process sees one device only and all see the same.",
        },
        "zh": {
            "title": "多个 rank 占用同一设备",
            "summary": "rank {ranks} 同时占用 {host} 上的设备 {address}",
            "cause": "启动时没有本地编号（LOCAL_RANK）、rank 数多于设备数，或每个进程只看到一个设备且都是同一个。",
        },
    },
    remedies=(
        Remedy(
            key="one-each",
            title={
                "en": "Start one rank a device, with a launcher that numbers them on each host",
                "zh": "每个设备启动一个 rank，并使用会为每台主机编号的启动器",
            },
            commands=(
                "torchrun --nproc-per-node gpu PROGRAM",
                "env | grep -E 'LOCAL_RANK|SLURM_LOCALID|OMPI_COMM_WORLD_LOCAL_RANK|VISIBLE_DEVICES'",
            ),
            safety="safe",
            verify="diag comm",
            source="https://docs.pytorch.org/docs/stable/elastic/run.html",
        ),
    ),
    sources=(
        "https://docs.pytorch.org/docs/stable/elastic/run.html",
        "https://github.com/vllm-project/vllm/issues/2422",
    ),
    explains=(
        "nccl/device-shared-by-ranks",
        "collectives/call-failed",
    ),
    fires=(TWICE,),
    silent=(EACH,),
)
def device_held_twice(facts: Facts) -> Iterator[Answer]:
    """Group the ranks by host and address."""
    held: dict[tuple[str, str], list[CollectiveRank]] = defaultdict(list)
    for one in {one.rank: one for one in facts.all(CollectiveRank)}.values():
        if one.address:
            held[one.host, one.address].append(one)
    for (host, address), ranks in held.items():
        if len(ranks) > 1:
            yield Finding(
                subject=f"{host} {address}",
                values={"ranks": ", ".join(str(one.rank) for one in ranks), "host": host, "address": address},
                evidence=tuple(map(Evidence.of, ranks[:4])),
            )
