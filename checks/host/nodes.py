"""Device files and folders that accelerators and their software leave: what is there without any tool of theirs.

Which names matter is a table here and whose they are is data (`nodes` and `folders` of the rows `Vendor`). A device
file can be there without its device (a container keeps those it was started with) and be refused by its rights.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from diag.api import Capture, DeviceNode, Fact, Installation, Recognise, expression, probe

NODES = {
    "": (
        *(
            r"nvidia[0-9]{1,3}",
            "nvidiactl",
            "nvidia-uvm",
            "nvidia-uvm-tools",
            "nvidia-modeset",
            r"nvidia-nvswitch\w{0,6}",
        ),
        *("nvidia-nvlink", "nvidia-caps", "nvidia-caps-imex-channels", "nvhost-gpu", "nvmap", "gdrdrv", "dxg"),
        *("kfd", "mkfd", r"davinci[0-9]{1,3}", "davinci_manager", "devmm_svm", "hisi_hdc"),
        *(r"xpu[0-9]{1,3}", "xpuctrl", r"hl[0-9]{1,3}", r"hl_controlD[0-9]{1,3}", r"accel[0-9]{1,3}", "mxcd", "mxgvm"),
        *(
            r"mtgpu\.?[0-9]{0,3}",
            r"cambricon_dev[0-9]{1,3}",
            "cambricon_ctl",
            r"iluvatar[0-9]{1,3}",
            r"neuron[0-9]{1,3}",
        ),
    ),
    "dri/": (r"renderD[0-9]{1,4}", r"card[0-9]{1,4}"),
    "accel/": (r"accel[0-9]{1,3}",),
    "infiniband/": (r"uverbs[0-9]{1,3}", r"umad[0-9]{1,3}", r"issm[0-9]{1,3}", "rdma_cm"),
    "nvidia-caps-imex-channels/": (r"channel[0-9]{1,4}",),
    "vfio/": (r"[0-9]{1,4}",),
}
"""Patterns of names in each folder of `/dev`."""
KNOWN = expression("|".join(f"{re.escape(folder)}(?:{'|'.join(names)})" for folder, names in NODES.items()))
BARE = {folder: expression("|".join(names)) for folder, names in NODES.items() if folder != "vfio/"}
SOFTWARE = {
    "/opt/": ("rocm", "dtk", "hyhal", "maca", "mxdriver", "tops", "intel/oneapi", "habanalabs", "xre", "nvidia"),
    "/usr/local/": ("cuda", "Ascend", "musa", "neuware", "corex", "dcmi", "xpu"),
}
"""Names of folders, which a version may follow."""
FOLDERS = {root: expression(rf"(?:{'|'.join(names)})(?:-([0-9][\w.\-]{{0,30}}))?") for root, names in SOFTWARE.items()}
PATH = r"/(?:dev|opt|usr/local)/[\w./@+\-]{1,80}"
PATHS = expression(rf"^[\s│|]*{PATH}(?:\s+{PATH}){{0,60}}\s*$")
LONG = expression(
    r"^[\s│|]*(?P<kind>[cdl])[rwxsStT\-]{9}[.+@]?\s{1,9}[0-9]{1,4}\s{1,9}\S{1,40}\s{1,9}\S{1,40}\s{1,30}.{10,60}?\s"
    r"(?P<name>\S{1,120})(?: -> (?P<target>\S{1,200}))?\s*$"
)
VERSIONED = expression(r"-[0-9]|/alternatives/")


@probe(
    "nodes",
    tells=(DeviceNode, Installation),
    command=(
        *("find", "/dev", "/opt", "/usr/local", "-maxdepth", "2", "-path", "/usr/local/*", "-prune", "-print"),
        *("-o", "-path", "/dev/shm", "-prune", "-o", "-path", "/dev/pts", "-prune", "-o", "-print"),
    ),
    recognise=Recognise(
        literals=(
            *("/dev/nvidia", "/dev/kfd", "/dev/mkfd", "/dev/dri/", "/dev/davinci", "/dev/devmm_svm", "/dev/hisi_hdc"),
            *(
                "/dev/xpu",
                "/dev/hl",
                "/dev/accel",
                "/dev/mxcd",
                "/dev/mtgpu",
                "/dev/infiniband/",
                "/dev/vfio/",
                "/dev/dxg",
            ),
            *(
                "/opt/rocm",
                "/opt/dtk",
                "/opt/hyhal",
                "/opt/maca",
                "/usr/local/cuda",
                "/usr/local/Ascend",
                "/usr/local/musa",
            ),
            *("crw-", "drwxr-xr-x", "lrwxrwxrwx"),
        ),
        pattern=f"{PATHS.pattern}|{LONG.pattern}",
        each=True,
        lines=40,
    ),
)
def nodes(capture: Capture) -> Iterator[Fact]:
    """Paths alone on their line, as `find` and `ls -d` print them, and rows of `ls -l`, whose names tell the folder."""
    told: set[str] = set()
    for line in capture.lines():
        paths = line.text.strip(" \t│|").split() if PATHS.match(line.text) else _long(line.text)
        for path in (path for path in paths if path not in told):
            told.add(path)
            if path.startswith("/dev/") and KNOWN.fullmatch(path[5:]):
                yield DeviceNode(origin=capture.origin(line), path=path)
            elif found := _software(path):
                yield Installation(origin=capture.origin(line), path=path, version=found[1] or "")


def _software(path: str) -> re.Match[str] | None:
    return next((FOLDERS[root].fullmatch(path[len(root) :]) for root in FOLDERS if path.startswith(root)), None)


def _long(text: str) -> list[str]:
    """The path of a row of `ls -l`; a bare name is one where it can stand in a single folder only."""
    found = LONG.match(text)
    if not found:
        return []
    name = found["name"]
    if name.startswith("/"):
        return [name]
    if found["kind"] == "c":
        places = [f"/dev/{folder}{name}" for folder, known in BARE.items() if known.fullmatch(name)]
        return places if len(places) == 1 else []
    # A folder of somebody's own may be called so, too.
    if not VERSIONED.search(found["target"] or name):
        return []
    return [f"{root}{name}" for root, known in FOLDERS.items() if known.fullmatch(name)]
