"""Fast links of a device to its peers are down.

## What it finds
A device some of whose links are inactive while others run: one that is soldered to its board (its name says SXM, HBM3,
H200, B200 …), whose links are all in use by design, or one with fewer running links than its equals.

## Why it matters
The collective goes at the pace of the device with the fewest links, or around it over PCI Express.

## What it cannot know
Which peer the link led to. A card with bridges has inactive links by design, and where the links of a device are all
down its fabric is not started, which is another fault.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, Link, Remedy, Undecided, check, device_name, devices, expression

LANE = expression(r"NVLink\d{1,3}")
DOWN = "inactive"
SOLDERED = expression(r"SXM|HBM3|\bH200\b(?! NVL)|\bG?B[23]00\b")
"""In the names of devices whose links are all wired on their board."""

TWO_OF_SIX = """\
nvidia-smi nvlink -s
GPU 3: Tesla V100-SXM2-32GB (UUID: GPU-00000000-0000-0000-0000-000000000003)
         Link 0: 25.781 GB/s
         Link 1: 25.781 GB/s
         Link 2: 25.781 GB/s
         Link 3: <inactive>
         Link 4: 25.781 GB/s
         Link 5: <inactive>
"""
CARDS = """\
# nvidia-smi nvlink -s
GPU 0: NVIDIA H100 PCIe (UUID: GPU-00000000-0000-0000-0000-000000000000)
         Link 0: 26.562 GB/s
         Link 1: 26.562 GB/s
         Link 4: <inactive>
         Link 5: <inactive>
GPU 1: NVIDIA H100 PCIe (UUID: GPU-00000000-0000-0000-0000-000000000001)
         Link 0: 26.562 GB/s
         Link 1: 26.562 GB/s
         Link 4: <inactive>
         Link 5: <inactive>
"""


@check(
    "device/link-inactive",
    severity="warning",
    about="device",
    needs=(Link,),
    words={
        "en": {
            "title": "Links of a device to its peers are down",
            "summary": "{device}: {count} of {all} links are inactive ({numbers})",
            "cause": "A link failed to train: the device, a switch or the board is faulty, or a reset is outstanding.",
        },
        "zh": {
            "title": "设备间高速链路未激活",
            "summary": "{device}：{all} 条链路中有 {count} 条未激活（{numbers}）",
            "cause": "链路训练失败：设备、交换芯片或基板故障，或者需要复位。",
        },
    },
    remedies=(
        Remedy(
            key="reset",
            title={
                "en": "Stop what runs on the node, reset the device; then restart the node; then have it serviced",
                "zh": "停止节点上的任务并复位设备；无效则重启节点；仍无效则报修",
            },
            commands=("nvidia-smi nvlink -e", "sudo nvidia-smi --gpu-reset", "sudo reboot"),
            safety="disruptive",
            verify="nvidia-smi nvlink -s",
            source="https://docs.nvidia.com/health-validation/reference/checks/nvlink",
        ),
    ),
    sources=(
        "https://docs.nvidia.com/health-validation/reference/checks/nvlink",
        "https://github.com/Azure/azhpc-diagnostics/issues/73",
    ),
    explains=("collectives/below-baseline", "collectives/below-typical"),
    fires=(TWO_OF_SIX,),
    silent=(CARDS,),
)
def link_inactive(facts: Facts) -> Iterator[Answer]:
    """Compare the links of each device with what its make and its equals have."""
    lanes: dict[str, dict[str, Link]] = {}
    for link in facts.all(Link):
        if LANE.fullmatch(link.second):
            lanes.setdefault(link.first, {})[link.second] = link
    if not lanes:
        yield Undecided(reason="the state of single links is not told")
    names = {f"GPU{one.index}": one.name for one in devices(facts) if one.index is not None}
    running = {first: sum(one.kind != DOWN for one in told.values()) for first, told in lanes.items()}
    for first, told in lanes.items():
        down = [one for one in told.values() if one.kind == DOWN]
        name = names.get(first, "")
        equals = [running[one] for one in lanes if name and names.get(one, "") == name]
        if not down or not running[first]:
            continue
        if SOLDERED.search(name) or (len(equals) > 2 and running[first] < max(equals)):
            device = device_name(facts, index=int(first[3:]), vendor=down[0].vendor) or first
            numbers = ", ".join(one.second.removeprefix("NVLink") for one in down)
            values: dict[str, str | int] = {"device": device, "count": len(down), "all": len(told), "numbers": numbers}
            yield Finding(subject=device, values={**values}, evidence=tuple(map(Evidence.of, down[:4])))
        elif not name:
            yield Undecided(reason=f"{first} has inactive links, and what device it is is not told")
