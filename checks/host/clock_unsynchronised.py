"""Nothing keeps this machine's clock in step with others.

## What it finds
The last word of `chronyc tracking`, else of `timedatectl` or of the kernel's own flag, is that the clock is not
synchronised.

## Why it matters
A clock that drifts makes logs of several nodes incomparable, and in the end certificates and tokens invalid.

## What it cannot know
How far the clock is off, and whether a hypervisor or a daemon that does not set the flag keeps it right.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Clock, Evidence, Facts, Finding, Remedy, check

TIMEDATECTL_NO = """\
> timedatectl
               Local time: Sat 2025-03-29 20:37:23 AEDT
           Universal time: Sat 2025-03-29 09:37:23 UTC
                 RTC time: Thu 1970-01-01 01:28:34
                Time zone: Australia/Melbourne (AEDT, +1100)
System clock synchronized: no
              NTP service: active
          RTC in local TZ: no
"""
TIMEDATECTL_YES = """\
core@host-1 ~ $ timedatectl
      Local time: Mon 2015-05-11 21:54:52 UTC
  Universal time: Mon 2015-05-11 21:54:52 UTC
        RTC time: Mon 2015-05-11 21:54:53
       Time zone: UTC (UTC, +0000)
     NTP enabled: no
NTP synchronized: yes
 RTC in local TZ: no
"""
CHRONY_NOT = """\
[centos@host-1 ~]$ chronyc tracking
Reference ID    : 00000000 ()
Stratum         : 0
Ref time (UTC)  : Thu Jan 01 00:00:00 1970
System time     : 0.000000000 seconds fast of NTP time
Last offset     : +0.000000000 seconds
Leap status     : Not synchronised
"""
CHRONY_NORMAL = """\
[centos@host-1 ~]$ chronyc tracking
Reference ID    : C7E9ECE2 (pyramid.latt.net)
Stratum         : 3
Ref time (UTC)  : Thu Dec 21 06:55:09 2017
System time     : 0.000031625 seconds slow of NTP time
Last offset     : -0.000032352 seconds
Leap status     : Normal
"""


@check(
    "host/clock-unsynchronised",
    severity="info",
    about="host",
    needs=(Clock,),
    words={
        "en": {
            "title": "The clock is not kept in step with others",
            "summary": "the clock is not synchronised, by the word of {service}",
            "cause": "No daemon for network time runs, it reaches no server, or it does not tell the kernel.",
        },
        "zh": {
            "title": "系统时钟未与外部同步",
            "summary": "据 {service}，时钟未同步",
            "cause": "没有运行网络时间服务，服务无法访问服务器，或未通知内核。",
        },
    },
    remedies=(
        Remedy(
            key="start",
            title={"en": "Start a daemon for network time", "zh": "启动网络时间服务"},
            commands=("sudo timedatectl set-ntp true",),
            safety="safe",
            verify="timedatectl",
            source="https://github.com/c0m4r/kula/issues/32",
        ),
        Remedy(
            key="look",
            title={"en": "See whether it reaches its servers", "zh": "检查是否能访问时间服务器"},
            commands=("chronyc sources -v",),
            safety="safe",
            verify="chronyc tracking",
            source="https://github.com/balena-os/meta-balena/issues/1852",
        ),
    ),
    sources=("https://github.com/balena-os/meta-balena/issues/1852", "https://github.com/c0m4r/kula/issues/32"),
    fires=(TIMEDATECTL_NO, CHRONY_NOT),
    silent=(TIMEDATECTL_YES, CHRONY_NORMAL, CHRONY_NOT + CHRONY_NORMAL),
)
def clock_unsynchronised(facts: Facts) -> Iterator[Answer]:
    """Whoever measures knows better than the flag; of several words of one, the last."""
    told = [one for one in facts.all(Clock) if one.synchronized is not None]
    measured = [one for one in told if one.origin.capture.startswith("chronyc") or one.origin.quote.startswith("Leap")]
    last = (measured or told)[-1]
    if last.synchronized is False:
        yield Finding(
            values={"service": last.service if measured and last.service else "STA_UNSYNC"},
            confidence="medium" if measured else "low",
            evidence=(Evidence.of(last),),
        )
