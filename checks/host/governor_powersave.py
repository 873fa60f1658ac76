"""The clock of the CPUs is held at its lowest.

## What it finds
The governor `powersave` under a driver of which the kernel chooses the clock (`acpi-cpufreq`, `intel_cpufreq`,
`amd-pstate`, `cppc_cpufreq`). Under `intel_pstate` and `amd-pstate-epp` in their active mode the name means something
else, clocks follow the load, and nothing is found; nor where the lowest clock allowed is the highest there is.

## Why it matters
The engine's scheduler, tokenizers and the launch of kernels run on CPUs at a fraction of their speed.

## What it cannot know
What firmware or a limit of power does to the clock, and other CPUs where the text shows one.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, Remedy, Setting, Undecided, check

OWN_ALGORITHM = ("intel_pstate", "amd-pstate-epp", "amd_pstate_epp")
"""Drivers whose `powersave` is an algorithm of their own."""
CLOCKS = ("scaling_min_freq", "cpuinfo_max_freq")

INTEL_PASSIVE = """\
    /sys/devices/system/cpu/cpu0/cpufreq/scaling_driver    = intel_cpufreq
    /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor  = powersave
    /sys/devices/system/cpu/cpu0/cpufreq/scaling_available_governors = conservative ondemand userspace powersave \
performance schedutil
"""
ACPI_AT_ITS_HIGHEST = """\
analyzing CPU 0:
  driver: acpi-cpufreq
  CPUs which need to switch frequency at the same time: 0
  hardware limits: 600 MHz - 1.50 GHz
  available frequency steps: 1.50 GHz, 1.20 GHz, 1000 MHz, 800 MHz, 600 MHz
  available cpufreq governors: userspace, ondemand, powersave, conservative, performance
  current policy: frequency should be within 1.50 GHz and 1.50 GHz.
                  The governor "powersave" may decide which speed to use
                  within this range.
  current CPU frequency is 1.50 GHz.
"""
PSTATE_POWERSAVE = """\
$ cpupower frequency-info
analyzing CPU 4:
  driver: intel_pstate
  CPUs which run at the same hardware frequency: 4
  CPUs which need to have their frequency coordinated by software: 4
  maximum transition latency:  Cannot determine or is not supported.
  hardware limits: 800 MHz - 5.10 GHz
  available cpufreq governors: performance powersave
  current policy: frequency should be within 800 MHz and 5.10 GHz.
                  The governor "powersave" may decide which speed to use
                  within this range.
"""
EPP_POWERSAVE = """\
/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver    = amd-pstate-epp
/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor  = powersave
/sys/devices/system/cpu/cpu0/cpufreq/scaling_available_governors = performance powersave
/sys/devices/system/cpu/cpu0/cpufreq/scaling_min_freq  =   400000 [kHz]
/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq  =  4463000 [kHz]
"""


@check(
    "host/governor-powersave",
    severity="warning",
    about="host",
    needs=(Setting,),
    words={
        "en": {
            "title": "The CPUs are held at their lowest clock",
            "summary": "the governor is powersave under {driver}, which asks for the lowest clock allowed at all times",
            "cause": "A power profile of the system, or somebody, chose this governor. Under this driver it does not "
            "follow the load.",
        },
        "zh": {
            "title": "CPU 被固定在最低频率",
            "summary": "在驱动 {driver} 下调速器为 powersave，始终请求最低频率",
            "cause": "系统的电源策略或人为设置选择了该调速器；在此驱动下它不随负载变化。",
        },
    },
    remedies=(
        Remedy(
            key="performance",
            title={
                "en": "Choose the governor performance until the next restart",
                "zh": "选择 performance 调速器（重启后恢复）",
            },
            commands=("echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",),
            safety="safe",
            verify="cat /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
            source="https://nvidia.github.io/grace-cpu-benchmarking-guide/platform/index.html",
        ),
    ),
    sources=(
        "https://github.com/torvalds/linux/blob/master/Documentation/admin-guide/pm/cpufreq.rst",
        "https://docs.kernel.org/admin-guide/pm/intel_pstate.html",
        "https://nvidia.github.io/grace-cpu-benchmarking-guide/platform/index.html",
    ),
    fires=(INTEL_PASSIVE,),
    silent=(PSTATE_POWERSAVE, EPP_POWERSAVE, ACPI_AT_ITS_HIGHEST),
)
def governor_powersave(facts: Facts) -> Iterator[Answer]:
    """Look for the governor, and for a driver under which it means the lowest clock."""
    told = [one for one in facts.all(Setting) if one.kind == "kernel"]
    governors = [one for one in told if one.name == "scaling_governor"]
    driver = next((one for one in told if one.name == "scaling_driver"), None)
    chosen = next((one for one in governors if one.value == "powersave"), None)
    if not governors or (chosen and driver is None):
        yield Undecided(reason="the governor and the driver that chooses the clock are not both told")
    elif chosen and driver and driver.value not in OWN_ALGORITHM and not _at_the_highest(told):
        yield Finding(values={"driver": driver.value}, evidence=(Evidence.of(chosen), Evidence.of(driver)))


def _at_the_highest(told: list[Setting]) -> bool:
    """Whether the lowest clock that is allowed is the highest there is."""
    clocks = {one.name: int(one.value) for one in told if one.name in CLOCKS and one.value.isdecimal()}
    lowest, highest = (clocks.get(name) for name in CLOCKS)
    return bool(lowest and highest and lowest >= highest)
