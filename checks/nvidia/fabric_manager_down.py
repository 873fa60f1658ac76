"""The Fabric Manager does not run on a machine whose devices are joined by an NVSwitch.

## What it finds
The unit `nvidia-fabricmanager` failed, stopped or absent, where an NVSwitch stands on the bus or has a device file, or
where the matrix of links cannot be had without one: three devices or more, each joined to each by twelve links at
least. Eight devices of a kind that is sold on such boards alone count as one; a name that was cut counts where the unit
failed.

## Why it matters
Until the devices are registered with the switches CUDA does not start: error 802, "system not yet initialized".

## What it cannot know
Whether something else runs the daemon, as the GPU Operator does in a container: a node that runs `kubelet`, and devices
that say they are registered, leave it undecided. In a virtual machine the switches may be the host's to run, hence the
lower confidence where they are not on the bus. A device without NVSwitch needs none, however its unit fares.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Accelerator,
    Answer,
    DeviceNode,
    Evidence,
    Fact,
    Facts,
    Finding,
    Link,
    Listing,
    PciDevice,
    Reading,
    Remedy,
    Service,
    Undecided,
    check,
    devices,
    expression,
)

UNIT = "nvidia-fabricmanager"
DOWN = ("failed", "inactive")
SWITCH = ("10de", "0680")
NODE = expression(r"/dev/nvidia-nvswitch[0-9]{1,3}")
KIND = expression(r"NV([0-9]{1,3})")
DIRECT = 12
"""Links of a device from which on it has none left for a third one."""
BOARDS = expression(r"V100-SXM3|A[18]00[- ]SXM|H[128]00(?! PCIe| NVL)|H20\b|B[23]00")
FULL = 8

SWITCHES = """\
$ lspci | grep -i nvidia
07:00.0 Bridge: NVIDIA Corporation Device 22a3 (rev a1)
08:00.0 Bridge: NVIDIA Corporation Device 22a3 (rev a1)
09:00.0 Bridge: NVIDIA Corporation Device 22a3 (rev a1)
0a:00.0 Bridge: NVIDIA Corporation Device 22a3 (rev a1)
1b:00.0 3D controller: NVIDIA Corporation Device 2330 (rev a1)
"""
FAILED = """\
# systemctl status nvidia-fabricmanager.service
× nvidia-fabricmanager.service - NVIDIA fabric manager service
     Loaded: loaded (/usr/lib/systemd/system/nvidia-fabricmanager.service; enabled; preset: enabled)
     Active: failed (Result: exit-code) since Fri 2026-01-30 11:58:43 UTC; 2 weeks 4 days ago
        CPU: 7.387s
"""
INACTIVE = """\
$ systemctl status nvidia-fabricmanager
○ nvidia-fabricmanager.service - NVIDIA fabric manager service
     Loaded: loaded (/lib/systemd/system/nvidia-fabricmanager.service; disabled; vendor preset: enabled)
     Active: inactive (dead)
"""
RUNNING = """\
$ systemctl status nvidia-fabricmanager
● nvidia-fabricmanager.service - NVIDIA fabric manager service
     Loaded: loaded (/usr/lib/systemd/system/nvidia-fabricmanager.service; enabled; preset: enabled)
     Active: active (running) since Thu 2026-08-27 07:13:21 UTC; 17h ago
   Main PID: 31082 (nv-fabricmanage)
"""
GEFORCE = """\
  [root@host ~]#  systemctl start nvidia-fabricmanager
  Job for nvidia-fabricmanager.service failed because the control process exited with error code.
  See "systemctl status nvidia-fabricmanager.service" and "journalctl -xe" for details.
  [root@host ~]#  modinfo -F version nvidia
  510.47.03
  | NVIDIA-SMI 510.47.03    Driver Version: 510.47.03    CUDA Version: 11.6     |
  |   0  NVIDIA GeForce ...  Off  | 00000000:05:00.0 Off |                  N/A |
  | N/A   51C    P0    15W /  N/A |      0MiB /  4096MiB |      0%      Default |
"""
EIGHT = "".join(
    f"GPU {number}: NVIDIA H100 80GB HBM3 (UUID: GPU-00000000-0000-0000-0000-00000000000{number})\n"
    for number in range(8)
)


@check(
    "nvidia/fabric-manager-down",
    severity="error",
    about="nvidia",
    needs=(Service,),
    uses=(Accelerator, DeviceNode, Link, Listing, PciDevice, Reading),
    words={
        "en": {
            "title": "The NVSwitch machine's Fabric Manager does not run",
            "summary": "{unit} is {state.en}; {proof}",
            "cause": "The daemon that sets up the NVSwitch fabric is stopped, failed to start, or was never installed, "
            "often because its version differs from the driver's.",
        },
        "zh": {
            "title": "NVSwitch 机器的 Fabric Manager 未运行",
            "summary": "{unit} 当前{state.zh}；{proof}",
            "cause": "负责配置 NVSwitch 互联的守护进程已停止、启动失败或从未安装，常见原因是其版本与驱动版本不一致。",
        },
    },
    remedies=(
        Remedy(
            key="start",
            title={
                "en": "Start it and see what it says; it must be of exactly the driver's version",
                "zh": "启动服务并查看其输出；其版本必须与驱动版本完全一致",
            },
            commands=(
                "cat /proc/driver/nvidia/version",
                "nv-fabricmanager --version",
                "sudo systemctl enable --now nvidia-fabricmanager",
                "sudo journalctl -u nvidia-fabricmanager -n 50 --no-pager",
            ),
            safety="disruptive",
            verify="systemctl is-active nvidia-fabricmanager; nvidia-smi -q | grep -A 3 Fabric",
            source="https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide",
        ),
    ),
    sources=(
        "https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide",
        "https://github.com/NVIDIA/NVSentinel/issues/883",
        "https://github.com/NVIDIA/gpu-operator/issues/356",
        "https://github.com/NVIDIA/gpu-operator/issues/610",
    ),
    explains=("nvidia/fabric-not-registered", "nvidia/system-not-initialized", "torch/device-unavailable"),
    fires=(SWITCHES + FAILED, EIGHT + INACTIVE),
    silent=(SWITCHES + RUNNING, GEFORCE, EIGHT.replace("80GB HBM3", "PCIe") + INACTIVE),
)
def fabric_manager_down(facts: Facts) -> Iterator[Answer]:
    """Find out whether there is a switch, then what the unit does."""
    units = [one for one in facts.all(Service) if one.name == UNIT and one.state]
    state = units[-1].state if units else ""
    if state and state not in DOWN:
        return
    proof = _switch(facts) or (_boards(facts, state) if state else None)
    if proof is None:
        if not _cannot_have_one(facts):
            yield Undecided(reason="nothing tells whether there is an NVSwitch")
        return
    absent = facts.listing("Service")
    witness = units[-1] if units else absent
    if witness is None:
        yield Undecided(reason=f"nothing tells what {UNIT} does")
    elif state != "failed" and _elsewhere(facts):
        yield Undecided(reason=f"{UNIT} does not run here, and the daemon may run in a container")
    else:
        shown, sure = proof
        yield Finding(
            values={
                "unit": UNIT,
                "state.en": state or "not installed",
                "state.zh": f"状态为 {state}" if state else "未安装",
                "proof": _words(shown),
            },
            confidence="high" if sure and state == "failed" and not _registered(facts) else "medium",
            evidence=(Evidence.of(witness), Evidence.of(shown)),
        )


def _words(proof: Fact) -> str:
    """What proves the switch, in words of every language."""
    if isinstance(proof, PciDevice):
        return f"NVSwitch {proof.address}"
    if isinstance(proof, Link):
        return f"{proof.first}-{proof.second} {proof.kind}"
    return proof.path if isinstance(proof, DeviceNode) else f"{FULL} x {proof.told().get('name', '')}"


def _switch(facts: Facts) -> tuple[Fact, bool] | None:
    """What proves an NVSwitch, and whether it stands in this machine for certain."""
    for device in facts.all(PciDevice):
        if (device.vendor_id, device.class_id) == SWITCH:
            return device, True
    for node in facts.all(DeviceNode):
        if NODE.fullmatch(node.path):
            return node, True
    links = [one for one in facts.all(Link) if one.first.startswith("GPU") and one.second.startswith("GPU")]
    ends = {end for one in links for end in (one.first, one.second)}
    joined = [one for one in links if (found := KIND.fullmatch(one.kind)) and int(found[1]) >= DIRECT]
    whole = len(ends) * (len(ends) - 1) // 2
    return (joined[0], False) if len(ends) > 2 and len(joined) == whole else None


def _boards(facts: Facts, state: str) -> tuple[Fact, bool] | None:
    """Eight devices of a kind that stands on boards with a switch; only a unit that failed makes do with a cut name."""
    found = [one for one in devices(facts) if one.vendor == "nvidia" and BOARDS.search(one.name)]
    found = [one for one in found if state == "failed" or not one.name.endswith("...")]
    return (found[0], False) if len(found) >= FULL else None


def _cannot_have_one(facts: Facts) -> bool:
    """Whether all devices have whole names, none of a kind that is sold with a switch."""
    names = [one.name for one in devices(facts) if one.vendor == "nvidia"]
    return (
        bool(names)
        and all(("GeForce" in one or not one.endswith("...")) and one for one in names)
        and not any(map(BOARDS.search, names))
    )


def _registered(facts: Facts) -> bool:
    states = [one.value for one in facts.all(Reading) if one.name == "fabric.state"]
    return bool(states) and all(one == "Completed" for one in states)


def _elsewhere(facts: Facts) -> bool:
    """Whether the daemon may run outside of this system's units."""
    kubelet = any(one.name == "kubelet" and one.state == "active" for one in facts.all(Service))
    return kubelet or _registered(facts)
