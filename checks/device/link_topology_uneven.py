"""One device is not joined to its equals as they are joined to each other.

## What it finds
In the matrix of links: a few devices that have no fast link, or fewer lanes, to others that are all joined alike by a
fast one (every pair NV18, XGMI, HCCS …). The others are at least three and twice as many.

## Why it matters
Tensor parallelism over all devices goes at the pace of the slow pair, and the fast kernels of the engines, which want
every pair joined, are not used.

## What it cannot know
What is no full mesh by design (bridged pairs, cubes of older boards) tells nothing here. A display card beside the
accelerators has another name; where no names are told, only boards of eight or more are judged, with low confidence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, Link, Remedy, Undecided, check, device_name, devices, expression

FAST = expression(r"NV\d{1,3}|XGMI|HCCS\w{0,4}")
DEVICE = expression(r"[GNX]PU\d{1,3}|[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
FEW, BOARD = 3, 8

HEAD = "        GPU0    GPU1    GPU2    GPU3    GPU4    GPU5    GPU6    GPU7    CPU Affinity    NUMA Affinity\n"
GPU3_BESIDE = (
    HEAD
    + """\
GPU0     X      NV12    NV12    SYS     NV12    NV12    NV12    NV12    48-63,176-191   3
GPU1    NV12     X      NV12    SYS     NV12    NV12    NV12    NV12    48-63,176-191   3
GPU2    NV12    NV12     X      SYS     NV12    NV12    NV12    NV12    16-31,144-159   1
GPU3    SYS     SYS     SYS      X      SYS     SYS     SYS     SYS     16-31,144-159   1
GPU4    NV12    NV12    NV12    SYS      X      NV12    NV12    NV12    112-127,240-255 7
GPU5    NV12    NV12    NV12    SYS     NV12     X      NV12    NV12    112-127,240-255 7
GPU6    NV12    NV12    NV12    SYS     NV12    NV12     X      NV12    80-95,208-223   5
GPU7    NV12    NV12    NV12    SYS     NV12    NV12    NV12     X      80-95,208-223   5
"""
)
ALL_ALIKE = (
    HEAD
    + """\
GPU0     X      NV18    NV18    NV18    NV18    NV18    NV18    NV18    0-51,104-155    0
GPU1    NV18     X      NV18    NV18    NV18    NV18    NV18    NV18    0-51,104-155    0
GPU2    NV18    NV18     X      NV18    NV18    NV18    NV18    NV18    0-51,104-155    0
GPU3    NV18    NV18    NV18     X      NV18    NV18    NV18    NV18    0-51,104-155    0
GPU4    NV18    NV18    NV18    NV18     X      NV18    NV18    NV18    52-103,156-207  1
GPU5    NV18    NV18    NV18    NV18    NV18     X      NV18    NV18    52-103,156-207  1
GPU6    NV18    NV18    NV18    NV18    NV18    NV18     X      NV18    52-103,156-207  1
GPU7    NV18    NV18    NV18    NV18    NV18    NV18    NV18     X      52-103,156-207  1
"""
)
NO_FAST_LINK = """\
        GPU0    GPU1    GPU2    GPU3    NIC0    NIC1    NIC2    NIC3    CPU Affinity    NUMA Affinity   GPU NUMA ID
GPU0     X      NODE    SYS     SYS     NODE    NODE    SYS     SYS     0-31    0               N/A
GPU1    NODE     X      SYS     SYS     NODE    NODE    SYS     SYS     0-31    0               N/A
GPU2    SYS     SYS      X      NODE    SYS     SYS     NODE    NODE    32-63   1               N/A
GPU3    SYS     SYS     NODE     X      SYS     SYS     NODE    NODE    32-63   1               N/A
"""


@check(
    "device/link-topology-uneven",
    severity="warning",
    about="device",
    needs=(Link,),
    words={
        "en": {
            "title": "A device is not joined to the others as they are to each other",
            "summary": "{device} is joined to the other devices by {slow}; they are joined by {fast}",
            "cause": "The links of that device, or the switch they lead to, did not come up.",
        },
        "zh": {
            "title": "某一设备与其他设备的互联方式不一致",
            "summary": "{device} 与其他设备之间为 {slow}，其余设备之间均为 {fast}",
            "cause": "该设备的链路或其连接的交换芯片未正常建立。",
        },
    },
    remedies=(
        Remedy(
            key="look",
            title={
                "en": "Look at the links and the fabric's service; restart the node",
                "zh": "检查链路状态与互联服务，并重启节点",
            },
            commands=("nvidia-smi nvlink -s", "systemctl status nvidia-fabricmanager", "sudo reboot"),
            safety="disruptive",
            verify="nvidia-smi topo -m",
            source="https://docs.nvidia.com/health-validation/reference/checks/nvlink",
        ),
    ),
    sources=(
        "https://docs.nvidia.com/health-validation/reference/checks/nvlink",
        "https://github.com/NVIDIA/nccl/issues/1182",
        "https://github.com/Azure/azhpc-images/issues/443",
    ),
    explains=("collectives/below-baseline", "collectives/below-typical"),
    fires=(GPU3_BESIDE,),
    silent=(ALL_ALIKE, NO_FAST_LINK),
)
def link_topology_uneven(facts: Facts) -> Iterator[Answer]:
    """Look for the devices without which all pairs are alike."""
    pairs = {
        frozenset((one.first, one.second)): one
        for one in facts.all(Link)
        if DEVICE.fullmatch(one.first) and DEVICE.fullmatch(one.second) and not one.kind.startswith("P2P-")
    }
    members = {part for pair in pairs for part in pair}
    if len(members) < 2:
        yield Undecided(reason="no matrix of links between devices is told")
        return
    kind = next(
        (kind for kind, _ in Counter(one.kind for one in pairs.values()).most_common() if FAST.fullmatch(kind)), ""
    )
    odd = {
        part: [one for pair, one in pairs.items() if part in pair and one.kind != kind]
        for part in members
        if sum(one.kind != kind for pair, one in pairs.items() if part in pair) * 2 > len(members) - 1
    }
    mesh = len(members) - len(odd)
    alike = all(one.kind == kind for pair, one in pairs.items() if not pair & odd.keys())
    if not kind or mesh < max(FEW, 2 * len(odd)) or not alike:
        return
    names = {name: one.name for one in devices(facts) for name in (f"GPU{one.index}", f"NPU{one.index}", one.address)}
    common = Counter(names.get(part, "") for part in members - odd.keys()).most_common(1)[0][0]
    for part, links in sorted(odd.items()):
        if names.get(part, "") == common and (common or len(members) >= BOARD):
            yield _finding(facts, part, links, (kind, common))


def _finding(facts: Facts, part: str, links: list[Link], common: tuple[str, str]) -> Finding:
    index = int(part[3:]) if part[1:3] == "PU" else None
    address = "" if index is not None else part
    device = device_name(facts, index=index, address=address, vendor=links[0].vendor) or part
    slow = ", ".join(dict.fromkeys(one.kind for one in links))
    return Finding(
        subject=device,
        values={"device": device, "slow": slow, "fast": common[0]},
        confidence="high" if common[1] else "low",
        evidence=tuple(map(Evidence.of, links[:3])),
    )
