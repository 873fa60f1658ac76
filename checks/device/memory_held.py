"""Memory of a device is taken although a launch is still to come.

## What it finds
Memory in use, beyond what a driver keeps for itself, on a device of a machine about whose next launch is asked: the
launch given with the question, or one whose command stands in one text with the tool's table. In such a text a device
counts whose holder is named and is not the engine of the command, or that does nothing and shows no holder. One finding
for all devices of one maker and size with holders of the same name.

## Why it matters
The launch finds less memory than it expects: it refuses to start, or starts with a small KV cache. What an engine that
crashed left behind looks like this.

## What it cannot know
Which of the devices the launch will use, whether the holder is meant to stay beside it, and whether a plain `python` on
as many devices as the command takes is its own engine: that is left undecided, as is a text in which an engine runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from diag.api import (
    Accelerator,
    Answer,
    DeviceProcess,
    Engine,
    EngineState,
    Evidence,
    Facts,
    Finding,
    LaunchArguments,
    Reading,
    Remedy,
    Shell,
    Undecided,
    Vendor,
    check,
    count,
    device_name,
    devices,
    expression,
)

ASKED = "launch"
"""The capture that holds the launch line given with the question."""
SMALL_MIB, SMALL_SHARE = 1024.0, 0.03
THREAD = "https://github.com/vllm-project/vllm-omni/issues/276"
WORKERS = expression(r"(?i)\b(?:EngineCore|Worker_?[TDP]P|ray::)")
UNTELLING = expression(r"(?:\S*/)?(?:python[0-9.]*(?: -c\b.*)?|pt_main_thread)|\W*(?:Not Found|N/A|Unknown|-)?\W*")
"""Names that do not tell what a process is."""
SIZES = ("tensor-parallel-size", "pipeline-parallel-size", "data-parallel-size", "tp-size", "pp-size", "dp-size")
TOOLS = {
    "nvidia": "nvidia-smi",
    "amd": "rocm-smi",
    "hygon": "hy-smi",
    "ascend": "npu-smi info",
    "kunlun": "xpu_smi",
    "metax": "mx-smi",
    "mthreads": "mthreads-gmi",
}

TAKEN = """\
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 525.105.17   Driver Version: 525.105.17   CUDA Version: 12.0     |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|                               |                      |               MIG M. |
|===============================+======================+======================|
|   0  NVIDIA A100-SXM...  Off  | 00000000:AF:00.0 Off |                    0 |
| N/A   32C    P0    42W / 400W |  48770MiB / 81920MiB |      0%      Default |
|                               |                      |             Disabled |
+-------------------------------+----------------------+----------------------+
"""
FREE = TAKEN.replace(" 48770MiB", "     0MiB")
LAUNCH = "$ vllm serve Qwen/Qwen3-8B\n"
PROCESSES = """\

+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|
"""
NOBODY = """\
|  No running processes found                                                             |
"""
OLLAMA = """\
|    0   N/A  N/A         2      C   /usr/bin/ollama                          48760MiB |
"""
PYTHON = """\
|    0   N/A  N/A       999      C   python3                                  48760MiB |
"""
OWN = """\
|    0   N/A  N/A      2153      C   VLLM::EngineCore                         48760MiB |
"""
NPU = """\
+------------------------------------------------------------------------------------------------+
| npu-smi 25.0.rc1.1               Version: 25.0.rc1.1                                           |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 0     910B2C              | OK            | 100.3       59                0    / 0             |
| 0                         | 0000:5A:00.0  | 0           0    / 0          63056/ 65536         |
+===========================+===============+====================================================+
"""


@check(
    "device/memory-held",
    severity="warning",
    about="device",
    needs=(LaunchArguments, Reading),
    uses=(Accelerator, DeviceProcess, Engine, EngineState, Vendor),
    words={
        "en": {
            "title": "Memory of a device is taken before the launch",
            "summary": "{device}: {used} of {total} MiB in use (processes shown: {holders})",
            "cause": "Another program runs there, in another container perhaps, or an engine that crashed left "
            "workers behind.",
        },
        "zh": {
            "title": "启动前设备显存已被占用",
            "summary": "{device}：{total} MiB 中已有 {used} MiB 被占用（列出的进程：{holders}）",
            "cause": "有其他程序在运行（可能在另一个容器中），或崩溃的推理引擎残留了工作进程。",
        },
    },
    remedies=(
        Remedy(
            key="who",
            title={
                "en": "See on the host who holds the device, and end what is left over",
                "zh": "在主机上查看占用该设备的进程，并结束残留进程",
            },
            commands=("sudo fuser -v {nodes}",),
            safety="manual",
            verify="{tool}",
            source=THREAD,
        ),
        Remedy(
            key="other-device",
            title={"en": "Or launch on devices that are free", "zh": "或在空闲的设备上启动"},
            commands=("export {variable}={free}",),
            safety="safe",
            verify="{tool}",
        ),
    ),
    sources=(THREAD, "https://github.com/vllm-project/vllm/issues/50135"),
    explains=("collectives/noisy", "collectives/ranks-uneven"),
    fires=(
        TAKEN + LAUNCH,
        LAUNCH + TAKEN + PROCESSES + NOBODY,
        TAKEN + PROCESSES + OLLAMA + LAUNCH,
        TAKEN + PROCESSES + PYTHON + LAUNCH.replace("8B", "8B -tp 2"),
        NPU + LAUNCH,
    ),
    silent=(
        FREE + LAUNCH,
        TAKEN.replace("   0%", "  96%") + PROCESSES + NOBODY + LAUNCH,
        TAKEN + PROCESSES + OWN + LAUNCH,
    ),
)
def memory_held(facts: Facts) -> Iterator[Answer]:
    """Gather the devices that are held, alike ones together."""
    asked = any(one.origin.capture == ASKED for one in facts.all(LaunchArguments))
    used = _used(facts, asked)
    runs = bool(facts.all(EngineState)) or any(one.role == "running" for one in facts.all(Engine))
    if not used or (runs and not asked):
        running = "an engine runs in the same report, and what it holds is its own"
        yield Undecided(reason=running if used else "no tool told the memory in use together with a launch")
        return
    held = {device: one for device, one in used.items() if _much(facts, one)}
    groups: dict[tuple[str, str, float], dict[str, Reading]] = {}
    unsure = False
    for device, one in held.items():
        holder = "foreign" if asked else _holder(facts, one, held)
        unsure = unsure or holder == "unsure"
        if holder == "foreign":
            names = ", ".join(sorted({process.name for process in _holders(facts, one)}))
            groups.setdefault((one.vendor, names, _total(facts, one)), {})[device] = one
    free = [str(one.index) for device, one in used.items() if device not in held and one.index is not None]
    for (vendor, _, total), group in groups.items():
        yield _finding(facts, vendor, total, group, free, asked)
    if unsure:
        yield Undecided(reason="what holds the memory may be the engine that the command started")


def _used(facts: Facts, asked: bool) -> dict[str, Reading]:
    """The memory in use of each device, told together with a launch, the last time that it was told."""
    texts = {one.origin.capture for one in facts.all(LaunchArguments)}
    return {
        device_name(facts, index=one.index, address=one.address, vendor=one.vendor): one
        for one in facts.all(Reading)
        if one.name == "memory.used" and (asked or one.origin.capture in texts)
    }


def _total(facts: Facts, used: Reading) -> float:
    return next((had.memory_mib or 0.0 for had in devices(facts) if _is(had, used)), 0.0)


def _much(facts: Facts, used: Reading) -> bool:
    total = _total(facts, used)
    return total > 0 and float(used.value) > max(SMALL_MIB, SMALL_SHARE * total)


def _holders(facts: Facts, used: Reading) -> list[DeviceProcess]:
    told = [one for one in facts.all(DeviceProcess) if one.index == used.index]
    return [one for one in told if not one.vendor or one.vendor == used.vendor]


def _holder(facts: Facts, used: Reading, held: dict[str, Reading]) -> str:
    """Whether a device is held by somebody else (`foreign`), by the engine of the command, or by who knows whom."""
    engines = {one.engine for one in facts.all(LaunchArguments)}
    names = [one.name for one in _holders(facts, used)]
    if any(engine in name.lower() for engine in engines for name in names) or any(map(WORKERS.search, names)):
        return "own"
    if any(not UNTELLING.fullmatch(name) for name in names):
        return "foreign"
    if names:
        alike = sum(bool(_holders(facts, one)) for one in held.values())
        return "foreign" if alike < _ranks(facts) else "unsure"
    busy = [
        one.value
        for one in facts.all(Reading)
        if one.name == "utilization" and (one.vendor, one.index, one.address) == (used.vendor, used.index, used.address)
    ]
    if not busy:
        return "unsure"
    return "own" if any(value.strip() not in ("0", "0.0") for value in busy) else "foreign"


def _ranks(facts: Facts) -> int:
    """The devices that the largest of the commands takes."""
    every = ([value for name, value in one.flags if name in SIZES] for one in facts.all(LaunchArguments))
    return max((prod(count(value) or 1 for value in values) for values in every), default=1)


def _finding(
    facts: Facts, vendor: str, total: float, group: dict[str, Reading], free: list[str], asked: bool
) -> Finding:
    row = next((one for one in facts.all(Vendor) if one.vendor == vendor), None)
    figures = sorted({float(one.value) for one in group.values()})
    holders = [process for one in group.values() for process in _holders(facts, one)]
    device = next(iter(group)) if len(group) == 1 else ", ".join(name.partition(" (")[0] for name in group)
    nodes = " ".join(row.container_nodes) if row and row.container_nodes else "/dev/dri/renderD*"
    told = bool(holders) or facts.read("device-processes")
    choosing = bool(row and row.visible and free) and len(free) >= _ranks(facts)
    return Finding(
        values={
            "device": device or vendor,
            "used": "–".join(f"{figure:g}" for figure in dict.fromkeys((figures[0], figures[-1]))),
            "total": f"{total:g}",
            "holders": ", ".join(f"{one.name}[{one.pid}]" for one in holders[:4]) or "0",
            "nodes": Shell(nodes),
            "tool": Shell(TOOLS.get(vendor, f"sudo fuser -v {nodes}")),
            "variable": row.visible[0] if row and row.visible else "",
            "free": ",".join(free),
        },
        subject=device,
        confidence="high" if asked else "medium" if told else "low",
        remedies=("who", "other-device") if choosing else ("who",),
        evidence=tuple(map(Evidence.of, (*list(group.values())[:4], *holders[:3]))),
    )


def _is(device: Accelerator, reading: Reading) -> bool:
    if device.vendor != reading.vendor:
        return False
    if device.address and reading.address:
        return device.address == reading.address
    return device.index is not None and device.index == reading.index
