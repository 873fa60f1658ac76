"""A container has lost its NVIDIA devices: NVML answers "Unknown Error".

## What it finds
That answer of NVML, in a container, or where nothing tells what the text was taken in.

## Why it matters
Programs that run in the container fail at their next call, and none can start, while the host is in order.

## What it cannot know
What took them: most often `systemctl daemon-reload` on the host, after which systemd writes the rules of the
container's control group anew, without the devices that the hook of NVIDIA's toolkit had added. An old toolkit on
control groups of version 2 fails so from the start.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Container, Driver, Evidence, Facts, Finding, Remedy, Unavailable, Undecided, check

ANSWER = "Failed to initialize NVML: Unknown Error"

RELOADED = """\
(container) $ nvidia-smi -L
Failed to initialize NVML: Unknown Error
"""
ANSWERS = """\
{"schema": "diag/container/1", "marks": [{"mark": "/.dockerenv", "runtime": "docker"}]}
$ nvidia-smi
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 510.68.02    Driver Version: 510.68.02    CUDA Version: 11.6     |
|-------------------------------+----------------------+----------------------+
"""


@check(
    "container/lost-devices",
    severity="error",
    about="nvidia",
    needs=(),
    uses=(Container, Driver, Unavailable),
    words={
        "en": {
            "title": "The container has lost its NVIDIA devices",
            "summary": "nvidia-smi: {reason}",
            "cause": "systemd wrote the container's control group anew (a daemon-reload, a package upgrade), without "
            "the devices that NVIDIA's hook had added to it.",
        },
        "zh": {
            "title": "容器失去了 NVIDIA 设备",
            "summary": "nvidia-smi 报告：{reason}",
            "cause": "systemd 重写了容器的 cgroup（由 daemon-reload 或软件包升级触发），"
            "其中不再包含 NVIDIA 钩子加入的设备。",
        },
    },
    remedies=(
        Remedy(
            key="recreate",
            title={
                "en": "Delete the container and start it anew (what is only inside it is lost)",
                "zh": "删除并重新创建容器（仅保存在容器内的数据会丢失）",
            },
            commands=("docker stop CONTAINER", "docker rm CONTAINER", "docker run --gpus all …"),
            safety="disruptive",
            verify="docker exec CONTAINER nvidia-smi",
            source="https://github.com/NVIDIA/nvidia-container-toolkit/issues/48",
        ),
        Remedy(
            key="keep",
            title={
                "en": "So that it does not happen again: name the devices to docker itself, or make the links that "
                "runc looks for, or let docker manage the control groups",
                "zh": "避免再次发生：显式向 docker 传递设备，或创建 runc 所需的符号链接，或改用 cgroupfs 驱动",
            },
            commands=(
                "docker run --gpus all --device /dev/nvidiactl --device /dev/nvidia-uvm --device /dev/nvidia0 …",
                "sudo nvidia-ctk system create-dev-char-symlinks --create-all",
                '# or in /etc/docker/daemon.json: "exec-opts": ["native.cgroupdriver=cgroupfs"]',
            ),
            safety="manual",
            verify="sudo systemctl daemon-reload && docker exec CONTAINER nvidia-smi",
            source="https://github.com/NVIDIA/nvidia-container-toolkit/issues/48",
        ),
    ),
    sources=(
        "https://github.com/NVIDIA/nvidia-container-toolkit/issues/48",
        "https://github.com/NVIDIA/nvidia-container-toolkit/issues/1227",
        "https://github.com/NVIDIA/nvidia-docker/issues/1730",
        "https://github.com/dstackai/dstack/issues/2601",
    ),
    explains=("nvidia/driver-silent",),
    fires=(RELOADED,),
    silent=(ANSWERS,),
)
def lost_devices(facts: Facts) -> Iterator[Answer]:
    """Look for the answer, and for what tells a container."""
    tries = [one for one in facts.all(Unavailable) if one.what == "nvidia-smi"]
    lost = next((one for one in tries if one.reason.startswith(ANSWER)), None)
    host = any(one.what == "container" for one in facts.all(Unavailable))
    inside = any(one.inside for one in facts.all(Container))
    if lost is None:
        if not any(one.vendor == "nvidia" and one.version for one in facts.all(Driver)):
            yield Undecided(reason="nvidia-smi was not asked")
    elif host and not inside:
        yield Undecided(reason="nothing tells that this is a container")
    else:
        yield Finding(
            values={"reason": lost.reason},
            confidence="high" if inside else "medium",
            evidence=(Evidence.of(lost),),
        )
