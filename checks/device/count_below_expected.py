"""The machine has fewer devices than its user says it must have, or others.

## What it finds
What the user expects (`--expect 8xH200`) against the devices that are listed: fewer of them, or some whose name has not
the expected words.

## Why it matters
A device that is missing, or a machine of another kind, makes a launch fail or a measurement compare the wrong things.

## What it cannot know
Why a device is missing. More devices than expected are no fault.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Accelerator,
    Answer,
    Evidence,
    Expected,
    Facts,
    Finding,
    Listing,
    Remedy,
    Undecided,
    check,
    devices,
    expression,
)

APART = expression(r"[^a-z0-9]+")
CUT = "..."
"""What ends a name that the tool had no room for."""
SOURCE = "https://github.com/NVIDIA/aicr/issues/1858"

TABLE = """\
$ nvidia-smi -L
GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-00000000-0000-0000-0000-000000000000)
GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-00000000-0000-0000-0000-000000000001)
"""
CARD = """\
$ nvidia-smi -L
GPU 0: NVIDIA GeForce RTX 4090 (UUID: GPU-00000000-0000-0000-0000-000000000000)
"""


@check(
    "device/count-below-expected",
    severity="error",
    about="device",
    needs=(Expected,),
    uses=(Accelerator, Listing),
    words={
        "en": {
            "title": "The machine has not the devices that it must have",
            "summary": "expected {expected}; there are {found}",
            "cause": "A device was lost, its driver did not start it, it was not granted to this container or job, "
            "or the machine is another.",
        },
        "zh": {
            "title": "机器的设备与预期不符",
            "summary": "预期 {expected}；实际为 {found}",
            "cause": "设备掉卡、驱动未能启动设备、未分配给该容器或任务，或并非预期的机器。",
        },
    },
    remedies=(
        Remedy(
            key="compare",
            title={
                "en": "Compare the tool's list with the bus and with what the container or job was given",
                "zh": "将工具列表与总线，以及容器或任务所分配的设备进行比较",
            },
            commands=(
                "lspci -nn | grep -iE 'nvidia|amd/ati|huawei|processing accel'",
                "sudo dmesg | grep -iE 'nvrm|amdgpu'",
            ),
            safety="safe",
            verify="nvidia-smi -L || rocm-smi || npu-smi info",
            source=SOURCE,
        ),
    ),
    sources=(SOURCE,),
    fires=(
        CARD + "$ diag env-check --expect 2xRTX4080\n",
        TABLE + "$ diag env-check --expect 8xH100\n",
        TABLE + "$ diag env-check --expect 2xH200\n",
        TABLE + "$ diag env-check --expect 2xH10\n",
    ),
    silent=(
        TABLE + "$ diag env-check --expect 2xH100\n",
        TABLE + "$ diag env-check --expect 1xH100\n",
        CARD + "$ diag env-check --expect 1xRTX4090\n",
        CARD + "$ diag env-check --expect 1x4090\n",
    ),
)
def count_below_expected(facts: Facts) -> Iterator[Answer]:
    """Count the devices whose name has the expected words."""
    listed = [one for one in devices(facts) if one.seen_by != "node"]
    whole = [one for one in facts.all(Listing) if one.kind == "PciDevice"]
    for expected in facts.all(Expected):
        answers = [_named(one, expected.name) for one in listed]
        fits, unsure = answers.count(True), answers.count(None)
        if not listed and not whole:
            yield Undecided(reason="nothing listed the devices of this machine")
        elif fits < expected.count <= fits + unsure:
            yield Undecided(reason="the names of the devices are not told in full")
        elif fits < expected.count:
            yield Finding(
                values={"expected": f"{expected.count}x{expected.name or '*'}", "found": _summed(listed)},
                evidence=(Evidence.of(expected), *map(Evidence.of, listed[:4] or whole[:1])),
            )


def _named(device: Accelerator, expected: str) -> bool | None:
    """Whether the expected words are among those of the device's name and its maker; None where that is not told."""
    wanted = _words(expected)
    cut = device.name.endswith(CUT)
    words = _words(f"{device.vendor} {device.name}")
    known = _runs(words)
    if known.issuperset(wanted) or "".join(wanted) in known:
        return True
    models = {run for run in _runs(words[:-1] if cut else words) if any(map(str.isdigit, run))}
    unsure = cut and (not models or not models.isdisjoint(wanted))
    return None if unsure or not device.name else False


def _words(text: str) -> list[str]:
    return [word for word in APART.split(text.lower()) if word]


def _runs(words: list[str]) -> set[str]:
    """The words, and those that stand side by side as one: `RTX 4090` is `RTX4090` to some."""
    ends = range(1, len(words) + 1)
    return {"".join(words[start:end]) for end in ends for start in range(end)}


def _summed(listed: list[Accelerator]) -> str:
    names = [one.name or one.vendor or "device" for one in listed]
    return ", ".join(f"{names.count(name)}x{name}" for name in dict.fromkeys(names)) or "0"
