"""Memory of an idle GPU is in use, and no process that holds it is shown.

## What it finds
More than a twentieth of a GPU's memory in use while nothing runs there, where the tool's table of processes was printed
and is empty and no engine runs in the same report.

## Why it matters
A launch finds that much less memory. Either the holder runs where this view does not reach, as always inside a
container, or an engine that crashed left it behind.

## What it cannot know
Which of the two it is: on the host the table is complete, in a container it is not.
"""

from __future__ import annotations

from collections.abc import Iterator

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
    Platform,
    Reading,
    Remedy,
    Text,
    Undecided,
    check,
    device_name,
    devices,
)

SMALL_MIB, SMALL_SHARE = 1024.0, 0.05
THREAD = "https://github.com/vllm-project/vllm/issues/50135"

A40 = """\
Fri Jan 20 08:08:36 2023
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 527.41       Driver Version: 527.41       CUDA Version: N/A      |
|-------------------------------+----------------------+----------------------+
| GPU  Name            TCC/WDDM | Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|                               |                      |               MIG M. |
|===============================+======================+======================|
|   0  NVIDIA A40         WDDM  | 00000000:37:00.0 Off |                  Off |
|  0%   33C    P8    12W / 300W |  48638MiB / 49140MiB |      0%      Default |
|                               |                      |                  N/A |
+-------------------------------+----------------------+----------------------+

+-----------------------------------------------------------------------------+
| Processes:                                                                  |
|  GPU   GI   CI        PID   Type   Process name                  GPU Memory |
|        ID   ID                                                   Usage      |
|=============================================================================|
|  No running processes found                                                 |
+-----------------------------------------------------------------------------+
"""
IDLE = """\
Mon Jun 10 14:09:28 2024
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 555.42.02              Driver Version: 555.42.02      CUDA Version: 12.5     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA H100 PCIe               Off |   00000000:C2:00.0 Off |                    0 |
| N/A   28C    P0             44W /  350W |       1MiB /  81559MiB |      0%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA H100 PCIe               Off |   00000000:D5:00.0 Off |                    0 |
| N/A   29C    P0             49W /  350W |       1MiB /  81559MiB |      0%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+

+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|
|  No running processes found                                                             |
+-----------------------------------------------------------------------------------------+

"""
SERVES = """\
INFO 06-12 08:00:04 [api_server.py:1287] vLLM API server version 0.9.1
INFO 06-12 08:02:04 [gpu_worker.py:232] Available KV cache memory: 52.13 GiB
"""


@check(
    "device/memory-held-unseen",
    severity="info",
    about="nvidia",
    needs=(Reading,),
    uses=(Accelerator, DeviceProcess, Engine, EngineState, LaunchArguments, Platform, Text),
    words={
        "en": {
            "title": "GPU memory is in use by no process that is shown",
            "summary": "{device}: {used} of {total} MiB in use, no process shown",
            "cause": "The holder runs in another container or for another user, or a process that crashed has not "
            "been cleaned up.",
        },
        "zh": {
            "title": "GPU 显存被占用，但未显示任何进程",
            "summary": "{device}：{total} MiB 中已有 {used} MiB 被占用，未显示进程",
            "cause": "占用者运行在其他容器中或属于其他用户，或崩溃的进程尚未清理。",
        },
    },
    remedies=(
        Remedy(
            key="who",
            title={"en": "See on the host who holds the GPU", "zh": "在主机上查看占用该 GPU 的进程"},
            commands=("sudo fuser -v /dev/nvidia*",),
            safety="safe",
            verify="nvidia-smi",
            source=THREAD,
        ),
    ),
    sources=(THREAD, "https://github.com/vllm-project/vllm-omni/issues/276"),
    fires=(A40,),
    silent=(IDLE, A40.replace("     0%", "    96%"), A40 + SERVES),
)
def memory_held_unseen(facts: Facts) -> Iterator[Answer]:
    """Compare what is in use on idle GPUs with what a driver keeps for itself."""
    told = facts.read("device-processes")
    traits = [trait for one in facts.all(Platform) for trait in one.traits]
    if not told or "wsl" in traits:
        yield Undecided(reason="no table shows all processes of the GPUs")
        return
    if facts.first(DeviceProcess) or facts.first(LaunchArguments) or _serves(facts):
        return
    held: dict[float, dict[str, Reading]] = {}
    for one in facts.all(Reading):
        device = next((had for had in devices(facts) if _is(had, one)), None)
        if one.name == "memory.used" and device and _much(one, device) and not _works(facts, one):
            name = device_name(facts, index=one.index, address=one.address, vendor="nvidia")
            held.setdefault(device.memory_mib or 0.0, {})[name] = one
    for total, group in held.items():
        yield _finding(total, group)


def _serves(facts: Facts) -> bool:
    """Whether an engine runs here: it holds the memory, and a container does not show it."""
    return bool(facts.all(EngineState)) or any(one.role == "running" for one in facts.all(Engine))


def _finding(total: float, group: dict[str, Reading]) -> Finding:
    name = next(iter(group)) if len(group) == 1 else ", ".join(one.partition(" (")[0] for one in group)
    figures = sorted({float(one.value) for one in group.values()})
    used = "–".join(f"{figure:g}" for figure in dict.fromkeys((figures[0], figures[-1])))
    return Finding(
        values={"device": name or "GPU", "used": used, "total": f"{total:g}"},
        subject=name,
        confidence="medium",
        evidence=tuple(map(Evidence.of, list(group.values())[:4])),
    )


def _much(used: Reading, device: Accelerator) -> bool:
    total = device.memory_mib or 0.0
    return total > 0 and float(used.value) > max(SMALL_MIB, SMALL_SHARE * total)


def _works(facts: Facts, used: Reading) -> bool:
    """Whether something runs on the device, or whether it is divided, so that its load is not told."""
    same = [one for one in facts.all(Reading) if (one.index, one.address) == (used.index, used.address)]
    busy = any(one.name == "utilization" and one.value != "0" for one in same)
    return busy or any(one.name == "mig.mode" and one.value.startswith("Enabled") for one in same)


def _is(device: Accelerator, reading: Reading) -> bool:
    if device.vendor != reading.vendor or device.vendor != "nvidia":
        return False
    if device.address and reading.address:
        return device.address == reading.address
    return device.index is not None and device.index == reading.index
