"""This machine's clock is off by a second or more.

## What it finds
An offset of a second or more between the clock and network time, as the daemon that keeps it measured last.

## Why it matters
Nodes of a cluster refuse each other's credentials, leases and certificates, and their logs cannot be put in order.

## What it cannot know
Whether the daemon is about to correct it: it moves a clock that is far off only slowly.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Clock, Evidence, Facts, Finding, Remedy, Undecided, check

LIMIT = 1.0
"""Seconds."""

CHRONY_7_SECONDS = """\
# chronyc tracking
Reference ID    : D9723B42 (ns0.luns.net.uk)
Stratum         : 3
Ref time (UTC)  : Sat Dec 04 15:37:15 2021
System time     : 7.810536861 seconds slow of NTP time
Last offset     : -0.243152961 seconds
RMS offset      : 0.166965380 seconds
Leap status     : Normal
"""
CHRONY_WELL = """\
chronyc tracking
Reference ID    : 55C7D664 (85.199.214.100)
Stratum         : 2
Ref time (UTC)  : Fri Dec 13 19:38:44 2019
System time     : 0.000052616 seconds slow of NTP time
Last offset     : -0.000193872 seconds
RMS offset      : 0.000803415 seconds
Leap status     : Normal
"""


@check(
    "host/clock-off",
    severity="warning",
    about="host",
    needs=(Clock,),
    words={
        "en": {
            "title": "The clock is off by a second or more",
            "summary": "the clock is off by {seconds} s (positive: ahead), as {service} measures it",
            "cause": "The daemon cannot hold the clock: the machine slept, its oscillator is far off, or the clock was "
            "set by hand. It moves the clock slowly unless it is told to step.",
        },
        "zh": {
            "title": "系统时钟偏差达到一秒或以上",
            "summary": "据 {service} 测量，时钟偏差为 {seconds} s（正数为快）",
            "cause": "时间服务无法稳住时钟：机器曾休眠、晶振偏差过大，或时钟被手动修改。"
            "未要求跳变时，服务只会缓慢校正。",
        },
    },
    remedies=(
        Remedy(
            key="step",
            title={
                "en": "Set the clock at once, while no job runs (programs see a jump)",
                "zh": "在没有任务运行时立即校正时钟（程序会看到时间跳变）",
            },
            commands=("sudo chronyc makestep",),
            safety="disruptive",
            verify="chronyc tracking",
            source="https://www.github.com/chusiang/chrony.ansible.role",
        ),
    ),
    sources=(
        "https://github.com/omniosorg/omnios-build/issues/2576",
        "https://www.github.com/chusiang/chrony.ansible.role",
    ),
    fires=(CHRONY_7_SECONDS,),
    silent=(CHRONY_WELL,),
)
def clock_off(facts: Facts) -> Iterator[Answer]:
    """Compare the last measured offset with a second."""
    measured = [one for one in facts.all(Clock) if one.offset_seconds is not None]
    if not measured:
        yield Undecided(reason="nobody measured how far the clock is off")
        return
    last, offset = measured[-1], measured[-1].offset_seconds or 0.0
    if abs(offset) >= LIMIT:
        values = {"seconds": f"{offset:+.3g}", "service": last.service or "chronyd"}
        yield Finding(values={**values}, evidence=(Evidence.of(last),))
