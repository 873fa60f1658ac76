"""Hygon's kernel driver does not fit the DTK.

## What it finds
The loaded driver (`6.3.16-V1.1.0a`: its base, then its release, then a letter) below what the vendor's table asks for
the DTK that is installed, or that torch was built for (`+das.opt1.dtk2604`); for DTK 24.04 also above the newest.

## Why it matters
The thunk library of the DTK and the driver do not fit: "Version mismatch", and no device is found.

## What it cannot know
Which of several toolkits a program uses: where they differ, the one torch was built for counts. A beta driver is not
in the table, nor is a DTK that came later: undecided. What the table asks for is what was tested; where torch says that
its device is available this is silent.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Answer,
    Driver,
    Evidence,
    Fact,
    Facts,
    Finding,
    Package,
    Remedy,
    Runtime,
    RuntimeDriver,
    TorchBuild,
    Undecided,
    check,
    expression,
    local,
)

SHAPE = expression(r"(\d+(?:\.\d+)*)(?:-\d+(?:\.\d+)*)?-[Vv](\d+(?:\.\d+)*)([a-z]?)")
"""Base, release and letter; of drivers of 5.7.1 a number of the kernel's part stands between (`5.7.1-6.2.26-V1.5`)."""
NEWEST = {"24.04": "5.7.1-V1.6.3"}
"""The newest driver that a line of toolkits takes, where the same table has one."""
BUILT = expression(r"dtk([0-9]{2})([0-9]{2})([0-9]?)")
Version = tuple[tuple[int, ...], tuple[int, ...], str]

DTK_26_04 = """\
$ which dcc
/opt/dtk-26.04/llvm/bin/dcc

$ dcc --version
dcc version: 25.10.0-0
clang version 17.0.0
InstalledDir: /opt/dtk-26.04/llvm/bin
"""
SMI = """\
================================= System Management Interface =====
================================================================================================
Driver Version: {driver}
================================================================================================
======================================== End of SMI Log ========================================
"""
OLD = SMI.replace("{driver}", "6.3.13-V1.12.0a")
NEW = SMI.replace("{driver}", "6.3.31-V1.5.0a")
TORCH_24_04_3 = "torch==2.1.0+das.opt2.dtk24043\ntorch_cluster==1.6.0+das.opt1.dtk24043\n"
TORCH_25_04_1 = "torch==2.4.1+das.opt1.dtk25041\nnumpy==1.26.4\n"


@check(
    "hygon/driver-unfit-for-dtk",
    severity="warning",
    about="hygon",
    verdict="known-bad",
    checked="2026-11-30",
    needs=(Driver,),
    uses=(Package, Runtime, RuntimeDriver, TorchBuild),
    words={
        "en": {
            "title": "Hygon's driver does not fit the DTK",
            "summary": "driver {driver}; DTK {dtk} needs {window}",
            "cause": "The image or the toolkit is newer than the host's driver, or much older.",
        },
        "zh": {
            "title": "海光 DCU 驱动与 DTK 不配套",
            "summary": "驱动为 {driver}；DTK {dtk} 要求 {window}",
            "cause": "镜像或工具包比宿主机驱动新，或者旧得多。",
        },
    },
    remedies=(
        Remedy(
            key="driver",
            title={
                "en": "On the host: stop what runs on the devices and install the driver of DTK {dtk} (rock-{shipped})",
                "zh": "在宿主机上：停止设备上的任务，安装 DTK {dtk} 配套的驱动（rock-{shipped}）",
            },
            safety="disruptive",
            verify="hy-smi --showdriverversion",
            source="https://github.com/PaddlePaddle/Paddle/issues/73087",
        ),
        Remedy(
            key="image",
            title={
                "en": "Or take an image with a DTK that this driver fits",
                "zh": "或者改用与该驱动配套的 DTK 版本的镜像",
            },
            safety="manual",
            verify='cat "$ROCM_PATH/.info/rocm_version"',
        ),
    ),
    sources=("https://github.com/PaddlePaddle/Paddle/issues/73087", "https://github.com/gpustack/gpustack/issues/5334"),
    explains=("device/tool-unanswered", "torch/device-unavailable"),
    fires=(OLD + DTK_26_04, NEW + TORCH_24_04_3),
    silent=(NEW + DTK_26_04, OLD + TORCH_25_04_1),
)
def driver_unfit_for_dtk(facts: Facts) -> Iterator[Answer]:
    """Compare the loaded driver with the row of the toolkit."""
    driver = next((one for one in facts.all(Driver) if one.vendor == "hygon" and one.version), None)
    toolkit, dtk = next(_toolkits(facts), (None, ""))
    row = next((one for one in facts.all(RuntimeDriver) if one.vendor == "hygon" and one.version == dtk), None)
    if driver is None or toolkit is None:
        yield Undecided(reason="the driver's version and the DTK that is used are not both told")
        return
    answers = [one.available for one in facts.all(TorchBuild) if one.available is not None]
    if any(answers):
        return
    have = _read(driver.version)
    need = _read(row.compatible_driver) if row else None
    if row is None or need is None or have is None:
        yield Undecided(reason=f"nothing tells which driver DTK {dtk} needs, or what {driver.version} is")
    elif have < need or have > (_read(NEWEST.get(dtk[:5], "")) or have):
        window = f">= {row.compatible_driver}" + (f", <= {NEWEST[dtk[:5]]}" if dtk[:5] in NEWEST else "")
        values = {"driver": driver.version, "dtk": dtk, "window": window, "shipped": row.driver}
        yield Finding(
            values={**values},
            confidence="high" if answers else "medium",
            evidence=tuple(map(Evidence.of, (driver, toolkit))),
        )


def _toolkits(facts: Facts) -> Iterator[tuple[Fact, str]]:
    """What tells the toolkit that programs use, torch's own first, with its release (`26.04`, `25.04.1`)."""
    builds = [(one, one.version) for one in facts.all(TorchBuild)]
    torch = facts.package("torch")
    for fact, version in (*builds, *((one, one.version) for one in (torch,) if one)):
        if found := BUILT.search(local(version)):
            yield fact, f"{found[1]}.{found[2]}" + (f".{found[3]}" if found[3] else "")
    for runtime in facts.all(Runtime):
        if runtime.name == "dtk":
            yield runtime, runtime.version


def _read(version: str) -> Version | None:
    found = SHAPE.fullmatch(version)
    return (_numbers(found[1]), _numbers(found[2]), found[3]) if found else None


def _numbers(dotted: str) -> tuple[int, ...]:
    parts = list(map(int, dotted.split(".")))
    while parts and not parts[-1]:
        parts.pop()
    return tuple(parts)
