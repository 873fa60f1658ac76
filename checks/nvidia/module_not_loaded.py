"""An NVIDIA device is on the bus and the kernel has no NVIDIA module loaded.

## What it finds
A device on the bus whose driver in use, where that is told, is none, and a whole list of modules without NVIDIA's.

## Why it matters
Nothing can use the device: `nvidia-smi` cannot communicate with the driver.

## What it cannot know
Why: a kernel that was upgraded without its module being built (DKMS), a module that Secure Boot refuses, a driver that
was never installed. A device that is kept for virtual machines (`vfio-pci`) is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Accelerator,
    Answer,
    Evidence,
    Facts,
    Finding,
    KernelModule,
    Listing,
    PciDevice,
    Remedy,
    Undecided,
    check,
)

OWN = ("nvidia", "nvgpu", "nova_core")
OTHERS = ("nouveau",)
GIVEN_AWAY = ("vfio-pci", "pci-stub", "vfio_pci")

LSPCI = """\
 lspci -nnk | grep -i nvidia
07:00.0 3D controller [0302]: NVIDIA Corporation TU104GL [Tesla T4] [10de:1eb8] (rev a1)
        Subsystem: NVIDIA Corporation TU104GL [Tesla T4] [10de:12a2]
        Kernel modules: nvidiafb, nouveau
"""
LSMOD = """\
Module                  Size  Used by
overlay                91659  0
iosf_mbi               15582  0
crc32_pclmul           13133  0
ppdev                  17671  0
ghash_clmulni_intel    13273  0
vmw_balloon            18094  0
btusb                  41449  0
aesni_intel           189456  0
btrtl                  12945  1 btusb
btbcm                  14040  1 btusb
btintel                15709  1 btusb
lrw                    13286  1 aesni_intel
bluetooth             548688  5 btbcm,btrtl,btusb,btintel
gf128mul               15139  1 lrw
glue_helper            13990  1 aesni_intel
ablk_helper            13597  1 aesni_intel
cryptd                 21190  3 ghash_clmulni_intel,aesni_intel,ablk_helper
joydev                 17389  0
pcspkr                 12718  0
sg                     40719  0
rfkill                 22391  1 bluetooth
vmw_vmci               67168  0
i2c_piix4              22401  0
parport_pc             28205  0
"""
LOADED = """\
nvidia_uvm           1536000  0
nvidia_drm             86016  2
nvidia_modeset       1159168  3 nvidia_drm
nvidia              40706048  84 nvidia_uvm,nvidia_modeset
"""


@check(
    "nvidia/module-not-loaded",
    severity="error",
    about="nvidia",
    needs=(Accelerator,),
    uses=(KernelModule, Listing, PciDevice),
    words={
        "en": {
            "title": "The NVIDIA kernel module is not loaded",
            "summary": "{count} NVIDIA device(s) on the bus ({address}), no module nvidia among those loaded",
            "cause": "The module was not built for the running kernel, Secure Boot refuses it, or the driver is not "
            "installed.",
        },
        "zh": {
            "title": "NVIDIA 内核模块未加载",
            "summary": "总线上有 {count} 个 NVIDIA 设备（{address}），但已加载的模块中没有 nvidia",
            "cause": "模块没有为当前内核构建、被 Secure Boot 拒绝，或驱动未安装。",
        },
    },
    remedies=(
        Remedy(
            key="load",
            title={
                "en": "Load it and read why it does not load",
                "zh": "加载模块，并查看加载失败的原因",
            },
            commands=(
                "sudo modprobe nvidia",
                "sudo dmesg | grep -iE 'nvrm|nvidia|lockdown|module verification' | tail -n 20",
                "dkms status; uname -r; mokutil --sb-state",
            ),
            safety="safe",
            verify="nvidia-smi",
            source="https://github.com/mattshma/bigdata/issues/133",
        ),
        Remedy(
            key="build",
            title={
                "en": "Where dkms names no module for the running kernel: install its headers and build it",
                "zh": "若 dkms 中没有当前内核的模块：安装内核头文件并重新构建",
            },
            commands=(
                "sudo apt-get install -y linux-headers-$(uname -r)",
                "sudo dkms autoinstall",
                "sudo modprobe nvidia",
            ),
            safety="disruptive",
            verify="nvidia-smi",
            source="https://gist.github.com/espoirMur/65cec3d67e0a96e270860c9c276ab9fa",
        ),
    ),
    sources=(
        "https://github.com/mattshma/bigdata/issues/133",
        "https://gist.github.com/espoirMur/65cec3d67e0a96e270860c9c276ab9fa",
    ),
    explains=("nvidia/driver-silent", "nvidia/driver-missing"),
    fires=(LSPCI + LSMOD,),
    silent=(LSPCI + LOADED,),
)
def module_not_loaded(facts: Facts) -> Iterator[Answer]:
    """Compare the bus with the modules; one that another driver holds is that driver's fault."""
    on_bus = [one for one in facts.all(Accelerator) if one.vendor == "nvidia" and one.seen_by == "pci"]
    drivers = {one.address: one.driver for one in facts.all(PciDevice) if one.driver}
    waiting = [one for one in on_bus if drivers.get(one.address, "") not in GIVEN_AWAY]
    loaded = [one for one in facts.all(KernelModule) if one.name in (*OWN, *OTHERS)]
    listing = facts.listing("KernelModule")
    if not on_bus:
        yield Undecided(reason="no NVIDIA device was seen on the bus")
    elif loaded or not waiting or any(drivers.get(one.address) in (*OWN, *OTHERS) for one in waiting):
        return
    elif listing is None:
        yield Undecided(reason="not all modules were listed")
    else:
        yield Finding(
            values={"count": len({one.address for one in waiting}), "address": waiting[0].address},
            evidence=(Evidence.of(waiting[0]), Evidence.of(listing)),
        )
