"""Modules of the kernel that bear on accelerators, RDMA and virtual machines, as `lsmod` or `/proc/modules` list them.

`modinfo` is not read: it tells of a file, not of what is loaded. The list is whole where the kernel gave it, or where a
paste has so many rows that nobody filtered it (`modules/list`). What this cannot know: what is built into the kernel,
and in a container what the host would show (the list is the host's).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from diag.api import Capture, Fact, KernelModule, Line, Listing, Recognise, expression, probe

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
ANY = expression(r"^\W*\w{2,60}\s{1,40}[0-9]{2,12}\s{1,12}-?[0-9]{1,6}(?:\s.*)?$")
HEAD = expression(r"^\W*Module\s{2,40}Size\s{1,8}Used by")
LIVE = " Live 0x"
"""What the rows of `/proc/modules` hold."""
WHOLE = 20
"""Rows of a paste from which on it is the whole list, if it has its head or comes from the kernel."""


@probe(
    "modules",
    tells=(KernelModule, Listing),
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
    rows: list[Line] = []
    lively = False
    for line in capture.lines():
        lively = lively or LIVE in line.text
        if found := ROW.match(line.text):
            rows.append(line)
            if found["name"] not in told and KNOWN.fullmatch(found["name"]):
                told.add(found["name"])
                yield KernelModule(origin=capture.origin(line), name=found["name"])
    if (lively and len(rows) >= WHOLE) or (rows and capture.kind != "text"):
        yield Listing(origin=capture.origin(rows[0]), kind="KernelModule")


@probe(
    "modules/list",
    tells=(Listing,),
    recognise=Recognise(literals=("Module   ",), pattern=HEAD.pattern, lines=500),
)
def whole_list(capture: Capture) -> Iterator[Fact]:
    """What `lsmod` prints, whose head no `grep` keeps, where so many rows follow that it was not cut either."""
    rows = list(
        takewhile(lambda line: ANY.match(line.text), (one for one in capture.lines() if not HEAD.match(one.text)))
    )
    if len(rows) >= WHOLE:
        yield Listing(origin=capture.origin(rows[0]), kind="KernelModule")
