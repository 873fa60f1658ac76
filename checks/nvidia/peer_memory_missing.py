"""Adapters for RDMA stand beside NVIDIA devices and the module that lets them reach the devices' memory is not loaded.

## What it finds
A port of an RDMA adapter that is active, a device, and a whole list of modules without `nvidia_peermem` and
`nv_peer_mem`, on a kernel that has no DMA-BUF for devices (older than 5.12).

## Why it matters
GPUDirect RDMA is off: what goes to another node is copied through the host's memory, which takes bandwidth and CPU.
NVSHMEM (DeepEP) does not start without it.

## What it cannot know
Whether this machine ever talks to another. On a newer kernel with NVIDIA's open modules DMA-BUF does the same without
the module, which NVIDIA recommends: where the kernel is new enough nothing is found, and it stays undecided unless the
driver is known to be the open one.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Accelerator,
    Answer,
    Driver,
    Evidence,
    Facts,
    Finding,
    Host,
    KernelModule,
    Listing,
    NetworkPort,
    Remedy,
    Undecided,
    check,
    numbers,
)

MODULES = ("nvidia_peermem", "nv_peer_mem")
DMA_BUF = (5, 12)
OPEN = "Open Kernel Module"

PORT = """\
CA 'mlx5_0'
	CA type: MT4129
	Number of ports: 1
	Port 1:
		State: Active
		Physical state: LinkUp
		Rate: 400
"""
GPU = """\
GPU 0: NVIDIA A10 (UUID: GPU-f15ae561-21b1-6003-c768-861fc285203b)
"""
KERNEL = """\
Linux host-1 3.10.0-1062.1.2.el7.x86_64 #1 SMP Mon Sep 30 14:19:46 UTC 2019 x86_64 x86_64 x86_64 GNU/Linux
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
PEERMEM = """\
    nvidia_peermem         16384  0
    ib_core               434176  9 rdma_cm,ib_ipoib,nvidia_peermem,iw_cm,ib_umad,rdma_ucm,ib_uverbs,mlx5_ib,ib_cm
    nvidia              56717312  550 nvidia_uvm,nvidia_peermem,nvidia_modeset
"""


@check(
    "nvidia/peer-memory-missing",
    severity="warning",
    about="nvidia",
    needs=(Accelerator, NetworkPort),
    uses=(Driver, Host, KernelModule, Listing),
    words={
        "en": {
            "title": "RDMA cannot reach the memory of the NVIDIA devices",
            "summary": "{ports} active RDMA port(s), kernel {kernel} without DMA-BUF, and neither nvidia_peermem nor "
            "nv_peer_mem is loaded",
            "cause": "The module comes with the driver and is not loaded by itself; it is left out of the build where "
            "the driver was installed before the RDMA stack.",
        },
        "zh": {
            "title": "RDMA 网卡无法直接访问 NVIDIA 设备显存",
            "summary": "有 {ports} 个活动的 RDMA 端口，内核 {kernel} 不支持 DMA-BUF，"
            "且未加载 nvidia_peermem 或 nv_peer_mem",
            "cause": "该模块随驱动提供但不会自动加载；若驱动先于 RDMA 软件栈安装，则不会构建该模块。",
        },
    },
    remedies=(
        Remedy(
            key="load",
            title={
                "en": "Load the module, now and at each boot; where it does not exist, reinstall the driver after the "
                "RDMA stack",
                "zh": "立即加载该模块并设为开机加载；若模块不存在，请在安装 RDMA 软件栈之后重新安装驱动",
            },
            commands=(
                "sudo modprobe nvidia_peermem",
                "echo nvidia_peermem | sudo tee /etc/modules-load.d/nvidia-peermem.conf",
            ),
            safety="safe",
            verify="lsmod | grep peermem",
            source="https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpu-operator-rdma.html",
        ),
    ),
    sources=(
        "https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpu-operator-rdma.html",
        "https://docs.nvidia.com/networking/display/GPUDirectRDMAv18/System+Requirements+and+Recommendations",
        "https://github.com/deepseek-ai/DeepEP/issues/223",
    ),
    explains=("collectives/below-baseline", "collectives/below-typical"),
    fires=(KERNEL + GPU + PORT + LSMOD,),
    silent=(KERNEL + GPU + PORT + PEERMEM,),
)
def peer_memory_missing(facts: Facts) -> Iterator[Answer]:
    """Look for the module, then for what stands in for it."""
    ports = [one for one in facts.all(NetworkPort) if one.state.lower() == "active"]
    device = next((one for one in facts.all(Accelerator) if one.vendor == "nvidia"), None)
    if not ports or device is None or any(one.name in MODULES for one in facts.all(KernelModule)):
        return
    listing = facts.listing("KernelModule")
    host = next((one for one in facts.all(Host) if one.kernel), None)
    if listing is None or host is None:
        yield Undecided(reason="all modules and the version of the kernel are not both told")
    elif numbers(host.kernel)[:2] >= DMA_BUF:
        if not any(OPEN in one.origin.quote for one in facts.all(Driver)):
            yield Undecided(reason="DMA-BUF may do without the module, if NVIDIA's modules are the open ones")
    else:
        yield Finding(
            values={"ports": len({(one.device, one.port) for one in ports}), "kernel": host.kernel},
            confidence="medium",
            evidence=(Evidence.of(listing), Evidence.of(ports[0]), Evidence.of(host), Evidence.of(device)),
        )
