"""The user may not open a device file of an accelerator that is there.

## What it finds
The tool's own "Permission denied"; or a device file that the user may not read and write: measured, or by its rights
and the groups that the user is in.

## Why it matters
No program of this user sees the device, though those of root do.

## What it cannot know
Access that is given by a list (ACL) or to whoever sits at the machine; and what a container's control group forbids,
which is another error (`Operation not permitted`). Group numbers of an image and of the host may bear other names.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from diag.api import (
    Answer,
    DeviceNode,
    Evidence,
    Fact,
    Facts,
    Finding,
    Platform,
    Remedy,
    Unavailable,
    Undecided,
    User,
    Vendor,
    check,
    expression,
    present_makers,
)

DENIED = {
    expression(r"(/dev/[\w/]{2,40})\S* .{0,40}Permission denied"): "",
    expression(r"Insufficient Permissions"): "/dev/nvidiactl",
    expression(r"is not member of \S{1,40} group, the default DRM access group"): "/dev/kfd",
}
"""A tool's words, and the device file that it opens where the words do not name one."""
ROOT = "root"
INTEGRATED = {"amd", "intel"}
"""Makers of graphics inside a processor, which need not be open to anybody beside another maker's device."""

ROCM_TERMINAL = """\
$ docker run -it --rm --device=/dev/kfd --device=/dev/dri --group-add video --ipc=host --shm-size 16G \
rocm/rocm-terminal:latest
# rocminfo
ROCk module is loaded
Unable to open /dev/kfd read-write: Permission denied
Failed to get user name to check for video group membership
# groups
rocm-user sudo video
"""
NO_MEMBER = """\
root is not member of "nogroup" group, the default DRM access group. Users must be a member of the "nogroup" group or \
another DRM access group in order for ROCm applications to run successfully.
"""
ROOT_ALONE = """\
$ ls -la /dev | grep kfd
crw-------   1 root    root    234,   0 Mai 21 05:13 kfd
$ id
uid=65534(nobody) gid=65534(nogroup) groups=65534(nogroup)
"""
MEASURED = """\
{"schema": "diag/device-nodes/1", "listed": true, "nodes": [{"path": "/dev/kfd", "mode": "crw-rw----", "owner": \
"root", "group": "render", "accessible": false}, {"path": "/dev/dri/renderD128", "mode": "crw-rw----", "owner": \
"root", "group": "render", "accessible": false}]}
"""
MAY = MEASURED.replace("false", "true")


@check(
    "host/device-refused",
    severity="error",
    about="host",
    needs=(),
    uses=(DeviceNode, Platform, Unavailable, User, Vendor),
    words={
        "en": {
            "title": "The user may not open the accelerator's device file",
            "summary": "{path} may not be opened by {user.en} ({rights})",
            "cause": "The user is not in the group that the device file belongs to; in a container the group must be "
            "given by its number on the host.",
        },
        "zh": {
            "title": "当前用户无权打开加速器的设备文件",
            "summary": "{user.zh} 无法打开 {path}（{rights}）",
            "cause": "用户不在该设备文件所属的组中；在容器里必须按宿主机上的组号加入该组。",
        },
    },
    remedies=(
        Remedy(
            key="host",
            title={
                "en": "On the host: add the user to the groups, and log in anew",
                "zh": "在宿主机上：将用户加入相应的组，然后重新登录",
            },
            commands=("sudo usermod -a -G render,video $LOGNAME",),
            safety="safe",
            verify="id; test -r {path} -a -w {path} && echo OK",
            source="https://github.com/ROCm/ROCT-Thunk-Interface/",
        ),
        Remedy(
            key="container",
            title={
                "en": "Of a container: add the group that owns the file on the host, by its number",
                "zh": "对于容器：按宿主机上的组号加入设备文件所属的组",
            },
            commands=("docker run --group-add $(stat -c %g {path}) --group-add video …",),
            safety="disruptive",
            verify="test -r {path} -a -w {path} && echo OK",
            source="https://github.com/ROCm/ROCm-docker/issues/116",
        ),
        Remedy(
            key="rule",
            title={
                "en": "Where the file belongs to root alone: set its group by a rule of udev",
                "zh": "若设备文件只属于 root：用 udev 规则设置其所属组",
            },
            commands=(
                'echo \'KERNEL=="kfd", MODE="0660", GROUP="render"\' | sudo tee /etc/udev/rules.d/70-kfd.rules',
                "sudo udevadm control --reload && sudo udevadm trigger",
            ),
            safety="safe",
            verify="ls -l {path}",
            source="https://github.com/ROCm/ROCT-Thunk-Interface/issues/36",
        ),
        Remedy(
            key="nvidia",
            title={
                "en": "NVIDIA's files are open to all unless a distribution sets NVreg_DeviceFileMode: join the group "
                "that owns them",
                "zh": "NVIDIA 设备文件默认对所有人开放，除非发行版设置了 NVreg_DeviceFileMode：加入其所属组",
            },
            commands=("ls -l /dev/nvidia*", "sudo usermod -a -G video $LOGNAME"),
            safety="safe",
            verify="nvidia-smi",
            source="https://build.opensuse.org/projects/SUSE:SLE-15-SP5:GA/packages/nvidia-open-driver-G06-signed/files/modprobe.nvidia.install",
        ),
    ),
    sources=(
        "https://github.com/ROCm/ROCm-docker/issues/116",
        "https://github.com/ROCm/ROCm-docker/issues/90",
        "https://github.com/Firstbober/rocm-pytorch-gfx803-docker/issues/4",
        "https://github.com/ROCm/ROCT-Thunk-Interface/",
        "https://github.com/ROCm/ROCT-Thunk-Interface/issues/36",
        "https://github.com/NVIDIA/nvidia-docker/issues/1718",
    ),
    explains=(
        *("device/tool-unanswered", "torch/device-unavailable"),
        *("amd/runtime-does-not-open-device", "nvidia/driver-silent"),
    ),
    fires=(ROCM_TERMINAL, NO_MEMBER, ROOT_ALONE, MEASURED),
    silent=(MAY,),
)
def device_refused(facts: Facts) -> Iterator[Answer]:
    """Take a refusal as it was printed, else judge each device file that matters."""
    user = next((one for one in facts.all(User)), None)
    for denied in facts.all(Unavailable):
        if path := _denied(denied.reason):
            yield _finding(path, user, denied.reason, denied, _node(facts, path))
            return
    verdicts: dict[str, bool | None] = {}
    nodes = _nodes(facts)
    for node in nodes:
        may = _may(node, user)
        verdicts[node.path] = may if verdicts.get(node.path) is None else verdicts[node.path]
    refused = next((one for one in nodes if verdicts[one.path] is False and one.mode), None)
    if refused:
        yield _finding(refused.path, user, f"{refused.mode} {refused.owner} {refused.group}", refused, None)
    elif not verdicts or None in verdicts.values():
        yield Undecided(reason="not every device file was told with its rights, or nothing tells who asks")


def _denied(reason: str) -> str:
    """The device file that was refused."""
    tries = ((words.search(reason), path) for words, path in DENIED.items())
    return next((path or found[1] for found, path in tries if found), "")


def _node(facts: Facts, path: str) -> DeviceNode | None:
    return next((one for one in facts.all(DeviceNode) if one.path == path and one.mode), None)


def _nodes(facts: Facts) -> list[DeviceNode]:
    """The device files that the makers of this machine open."""
    present = present_makers(facts)
    present = present - INTEGRATED or present
    makers = [one for one in facts.all(Vendor) if one.vendor in present] or list(facts.all(Vendor))
    patterns = {pattern for one in makers for pattern in (one.container_nodes if present else one.nodes)}
    return [one for one in facts.all(DeviceNode) if any(fnmatchcase(one.path, pattern) for pattern in patterns)]


def _may(node: DeviceNode, user: User | None) -> bool | None:
    """Whether the user may read and write it; None where it is not told."""
    if node.accessible is not None or len(node.mode) < 10:
        return node.accessible
    if node.mode[7:9] == "rw":
        return True
    if user is None:
        return None
    if user.uid == 0 or user.name == ROOT or (user.name == node.owner and node.mode[1:3] == "rw"):
        return True
    if node.group in user.groups:
        return node.mode[4:6] == "rw"
    named = node.group.isdecimal() == all(one.isdecimal() for one in user.groups)
    return False if user.groups and (named or node.mode[4:6] != "rw") else None


def _finding(path: str, user: User | None, rights: str, seen: Fact, more: Fact | None) -> Finding:
    groups = " ".join(user.groups) if user else ""
    who = (user.name or (f"uid {user.uid}" if user.uid is not None else "")) if user else ""
    evidence = tuple(Evidence.of(one) for one in (seen, more, user) if one is not None)
    if path.startswith("/dev/nvidia"):
        remedies: tuple[str, ...] = ("nvidia",)
    else:
        remedies = ("rule",) if rights.endswith(f"{ROOT} {ROOT}") else ("host", "container")
    values = {
        "path": path,
        "rights": rights,
        "user.en": (who or "this user") + (groups and f", in the groups {groups}"),
        "user.zh": (who or "当前用户") + (groups and f"（所属组：{groups}）"),
    }
    return Finding(values={**values}, remedies=remedies, evidence=evidence)
