"""Modules of the kernel that bear on accelerators, RDMA and virtual machines, as `lsmod` or `/proc/modules` list them.

`modinfo` is not read: it tells of a file, not of what is loaded. What this cannot know: what is built into the kernel,
and in a container what the host would show (the list is the host's).
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Capture, Fact, KernelModule, Recognise, expression, probe

STARTS = (
    *("nvidia", "nv_peer_mem", "nvgpu", "nouveau", "nova_core", "gdrdrv", "knem", "xpmem"),
    *("amdgpu", "amdkcl", "amdttm", "amdkfd", "amdxcp", "hycu", "hydcu", "radeon"),
    *("drv_davinci", "drv_devmm", "drv_pcie", "davinci", "ascend", "kunlun", "xpu", "mtgpu", "metax", "cambricon"),
    *("i915", "habanalabs", "iluvatar", "bi_driver", "enflame"),
    *("ib_", "mlx4_", "mlx5_", "rdma_", "iw_", "irdma", "bnxt_re", "erdma", "hns_roce", "qedr", "peermem"),
    *("vfio", "iommufd", "kvm", "vhost", "openvswitch"),
)
KNOWN = expression(rf"(?:{'|'.join(STARTS)})\w*|xe|efa")
ROW = expression(r"^\W*(?P<name>[a-z0-9_]{2,40})\s{1,40}[0-9]{2,12}\s{1,12}-?[0-9]{1,6}(?:\s.*)?$")
HEAD = expression(r"^\W*Module\s{2,40}Size\s{1,8}Used by")


@probe(
    "modules",
    tells=(KernelModule,),
    path="/proc/modules",
    recognise=Recognise(
        literals=(
            *(
                "Module   ",
                " Live 0x",
                "nvidia   ",
                "nvidia_uvm   ",
                "nvidia_drm   ",
                "nvidia_modeset   ",
                "nvidia_peermem   ",
            ),
            *(
                "nv_peer_mem   ",
                "nouveau   ",
                "gdrdrv   ",
                "amdgpu   ",
                "ib_core   ",
                "ib_uverbs   ",
                "mlx5_ib   ",
                "mlx5_core   ",
            ),
            *("rdma_cm   ", "vfio_pci   ", "vfio   ", "habanalabs   ", "drv_davinci", "drv_pcie", "mtgpu   "),
        ),
        pattern=f"{HEAD.pattern}|{ROW.pattern}",
        each=True,
        lines=250,
    ),
)
def modules(capture: Capture) -> Iterator[Fact]:
    """A module a line."""
    told: set[str] = set()
    for line in capture.lines():
        found = ROW.match(line.text)
        name = found["name"] if found else ""
        if name not in told and KNOWN.fullmatch(name):
            told.add(name)
            yield KernelModule(origin=capture.origin(line), name=name)
