"""The Fabric Manager refuses to run beside a driver of another version.

## What it finds
Its own words in the journal: the version it was built for and the driver's that it met. A driver that was told with the
version that it asked for has been put right since.

## Why it matters
It ends at once, the NVSwitch fabric is not set up, and CUDA does not start.

## What it cannot know
Whether the log is of this boot.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Answer,
    Driver,
    Evidence,
    Facts,
    Finding,
    HardwareEvent,
    Remedy,
    Service,
    Undecided,
    check,
    expression,
)

VERSIONS = expression(r"interface version ([0-9.]{3,20}) \S+ match(?: with driver version ([0-9.]{3,20}))?")

MISMATCH = """\
# systemctl status nvidia-fabricmanager
Nov 05 13:55:26 node1 systemd[1]: Starting NVIDIA fabric manager service...
Nov 05 13:55:26 node1 nv-fabricmanager[104230]: fabric manager NVIDIA GPU driver interface version 550.127.05 don't \
match with driver version 550.120. Please update with matching NVIDIA driver package.
Nov 05 13:55:26 node1 systemd[1]: nvidia-fabricmanager.service: Control process exited, code=exited, status=1/FAILURE
"""
CONTAINER = """\
fabric manager NVIDIA GPU driver interface version 590.48.01 don't match with driver version 580.126.09.
Please update with matching NVIDIA driver package.
"""
STARTED = """\
$ systemctl status nvidia-fabricmanager
● nvidia-fabricmanager.service - NVIDIA fabric manager service
     Loaded: loaded (/usr/lib/systemd/system/nvidia-fabricmanager.service; enabled; preset: enabled)
     Active: active (running) since Thu 2026-08-27 07:13:21 UTC; 17h ago
   Main PID: 31082 (nv-fabricmanage)
"""


@check(
    "nvidia/fabric-manager-version",
    severity="error",
    about="nvidia",
    needs=(),
    uses=(Driver, HardwareEvent, Service),
    words={
        "en": {
            "title": "Fabric Manager and driver are of different versions",
            "summary": "the Fabric Manager is built for driver {manager}; the driver is {driver}",
            "cause": "The two were installed from different repositories, or an upgrade took one of them along; they "
            "must be of exactly the same version.",
        },
        "zh": {
            "title": "Fabric Manager 与驱动版本不一致",
            "summary": "Fabric Manager 面向驱动 {manager}，而当前驱动为 {driver}",
            "cause": "两者来自不同的软件源，或升级时只更新了其中之一；两者版本必须完全一致。",
        },
    },
    remedies=(
        Remedy(
            key="same",
            title={
                "en": "Install the Fabric Manager of the driver's version and keep both from being upgraded alone",
                "zh": "安装与驱动版本一致的 Fabric Manager，并防止其单独被升级",
            },
            commands=(
                "cat /proc/driver/nvidia/version",
                "apt list -a 'nvidia-fabricmanager*' 2>/dev/null | grep {driver}",
                "sudo systemctl restart nvidia-fabricmanager",
            ),
            safety="disruptive",
            verify="systemctl is-active nvidia-fabricmanager",
            source="https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide",
        ),
        Remedy(
            key="reboot",
            title={
                "en": "Where the packages are of one version, the old module is still loaded: reboot",
                "zh": "若软件包版本已一致，则是旧的内核模块仍在运行：重启机器",
            },
            commands=("sudo reboot",),
            safety="disruptive",
            verify="systemctl is-active nvidia-fabricmanager",
            source="https://github.com/NVIDIA/gpu-operator/issues/544",
        ),
    ),
    sources=(
        "https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide",
        "https://github.com/NVIDIA/gpu-operator/issues/544",
        "https://github.com/NVIDIA/gpu-driver-container/issues/735",
        "https://github.com/akash-network/website/pull/632",
    ),
    explains=("nvidia/fabric-manager-down", "nvidia/fabric-not-registered", "nvidia/system-not-initialized"),
    fires=(MISMATCH, CONTAINER),
    silent=(STARTED,),
)
def fabric_manager_version(facts: Facts) -> Iterator[Answer]:
    """Read the two versions in the daemon's own words."""
    said = next((one for one in facts.all(HardwareEvent) if one.code == "version-mismatch"), None)
    if said is None:
        units = (one for one in facts.all(Service) if one.name == "nvidia-fabricmanager")
        if not any(one.state == "active" for one in units):
            yield Undecided(reason="the Fabric Manager's log was not seen")
        return
    found = VERSIONS.search(said.message)
    manager, met = (found[1], found[2] or "") if found else ("", "")
    drivers = [one.version for one in facts.all(Driver) if one.vendor == "nvidia" and one.version]
    if manager and manager not in drivers:
        driver = (met or next(iter(drivers), "another")).rstrip(".")
        yield Finding(values={"manager": manager, "driver": driver}, evidence=(Evidence.of(said),))
