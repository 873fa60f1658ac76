"""The kernel's own driver, nouveau, holds an NVIDIA device.

## What it finds
A device of NVIDIA's on the bus whose driver in use is `nouveau`; or that module loaded and NVIDIA's own not, where the
list of modules is whole.

## Why it matters
NVIDIA's driver cannot take the device, and nothing that uses CUDA runs.

## What it cannot know
Whether the device is for a screen alone, beside others that compute.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Accelerator,
    Answer,
    Evidence,
    Fact,
    Facts,
    Finding,
    KernelModule,
    Listing,
    PciDevice,
    Remedy,
    Undecided,
    check,
)

NOUVEAU = "nouveau"
MAKER = "10de"

IN_USE = """\
$ lspci -vv
01:00.0 VGA compatible controller: NVIDIA Corporation GM204 [GeForce GTX 970] (rev a1) (prog-if 00 [VGA controller])
	Kernel driver in use: nouveau
	Kernel modules: nouveau, nvidia_drm, nvidia
"""
NVIDIA_IN_USE = """\
19:00.0 3D controller: NVIDIA Corporation Device 2330 (rev a1)
	Subsystem: NVIDIA Corporation Device 16c1
	Kernel driver in use: nvidia
"""


@check(
    "nvidia/nouveau-loaded",
    severity="error",
    about="nvidia",
    needs=(Accelerator,),
    uses=(KernelModule, Listing, PciDevice),
    words={
        "en": {
            "title": "nouveau holds the NVIDIA device",
            "summary": "the driver in use is nouveau, not NVIDIA's ({device})",
            "cause": "nouveau was loaded first, because NVIDIA's driver is not installed or nouveau is not kept from "
            "loading, often in the initial file system of the boot.",
        },
        "zh": {
            "title": "NVIDIA 设备被 nouveau 驱动占用",
            "summary": "当前使用的驱动是 nouveau，而不是 NVIDIA 驱动（{device}）",
            "cause": "nouveau 先于 NVIDIA 驱动加载：NVIDIA 驱动未安装，或未禁用 nouveau（initramfs 中可能仍包含它）。",
        },
    },
    remedies=(
        Remedy(
            key="blacklist",
            title={
                "en": "Keep nouveau from loading, rebuild the initial file system, reboot",
                "zh": "禁用 nouveau，重建 initramfs，然后重启",
            },
            commands=(
                "printf 'blacklist nouveau\\noptions nouveau modeset=0\\n' | sudo tee "
                "/etc/modprobe.d/blacklist-nouveau.conf",
                "sudo update-initramfs -u || sudo dracut --force",
                "sudo reboot",
            ),
            safety="disruptive",
            verify="lsmod | grep -E '^(nouveau|nvidia) '",
            source="https://gist.github.com/beka/c0e49702382477d4ef80c2ef7f4093fc",
        ),
    ),
    sources=(
        "https://github.com/negativo17/nvidia-driver/issues/73",
        "https://github.com/mattshma/bigdata/issues/133",
        "https://gist.github.com/beka/c0e49702382477d4ef80c2ef7f4093fc",
    ),
    explains=("nvidia/driver-silent", "nvidia/driver-missing"),
    fires=(IN_USE,),
    silent=(NVIDIA_IN_USE,),
)
def nouveau_loaded(facts: Facts) -> Iterator[Answer]:
    """Look at the driver of each device, then at the modules."""
    if not any(one.vendor == "nvidia" and one.seen_by == "pci" for one in facts.all(Accelerator)):
        yield Undecided(reason="no NVIDIA device was seen on the bus")
        return
    held = [one for one in facts.all(PciDevice) if one.vendor_id == MAKER and one.class_id.startswith("03")]
    taken = [one for one in held if one.driver == NOUVEAU]
    for device in taken:
        yield _finding(device.address, device)
    modules = {one.name: one for one in facts.all(KernelModule)}
    whole = facts.whole("KernelModule")
    if not taken and NOUVEAU in modules and "nvidia" not in modules and whole:
        yield _finding("lsmod", modules[NOUVEAU])
    elif not taken and not any(one.driver for one in held) and not whole and "nvidia" not in modules:
        yield Undecided(reason="neither the driver in use nor all modules were told")


def _finding(device: str, fact: Fact) -> Finding:
    subject = f"gpu {device}" if device[0].isdigit() else ""
    return Finding(values={"device": device}, subject=subject, evidence=(Evidence.of(fact),))
