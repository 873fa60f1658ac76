"""Device files and folders that accelerators and their software leave: what is there without any tool of theirs.

Which names matter is a table here and whose they are is data (`nodes` and `folders` of the rows `Vendor`). A device
file can be there without its device (a container keeps those it was started with) and be refused by its rights. A list
of paths that holds what every `/dev` holds is taken to be whole; one that `ls` did not find is told as missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from diag.api import (
    Capture,
    DeviceNode,
    Fact,
    Installation,
    Line,
    Listing,
    Recognise,
    Unavailable,
    expression,
    probe,
    replace,
)

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
    r"^[\s│|]*(?P<mode>(?P<kind>[cdl])[rwxsStT\-]{9})[.+@]?\s{1,9}[0-9]{1,4}\s{1,9}(?P<owner>\S{1,40})\s{1,9}"
    r"(?P<group>\S{1,40})\s{1,30}.{10,60}?\s"
    r"(?P<name>\S{1,120})(?: -> (?P<target>\S{1,200}))?\s*$"
)
VERSIONED = expression(r"-[0-9]|/alternatives/")
ABSENT = expression(
    r"^[\s│|]*(?:/\S{1,20}/)?ls: (?:cannot access |无法访问 ?)?['‘\"]?/dev/(?P<absent>[\w./*?\[\]\-]{1,60})['’\"]?"
    r"(?:: No such file|: 没有那个文件)"
)
GLOB = expression(r"(?:\[[0-9\-]{1,5}\])?\*|\?|\[[0-9\-]{1,5}\]")
EVERYWHERE = {"/dev/fd", "/dev/full", "/dev/null", "/dev/tty", "/dev/urandom", "/dev/zero"}
"""What is in every `/dev`, of a container, too: a list that holds all of it was not filtered."""
FIRST = {"/dev", "/dev/autofs", "/dev/console", "/dev/core"}
"""One of these stands before all that matters, so that the list was not cut above."""


@probe(
    "nodes",
    tells=(DeviceNode, Installation, Listing),
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
            *("/dev/autofs", "/dev/console", "/dev/core", *sorted(EVERYWHERE), "ls: "),
        ),
        pattern=f"{PATHS.pattern}|{LONG.pattern}|{ABSENT.pattern}",
        each=True,
        lines=40,
    ),
)
def nodes(capture: Capture) -> Iterator[Fact]:
    """Paths alone on their line, as `find` and `ls -d` print them, and rows of `ls -l`, whose names tell the folder."""
    told: set[tuple[str, str]] = set()
    alone: dict[str, Line] = {}
    for line in capture.lines():
        paths, rights = _listed(line)
        alone.update({} if rights else dict.fromkeys([*paths, line.text.strip()], line))
        for path in paths:
            node = path.startswith("/dev/") and bool(KNOWN.fullmatch(path[5:]))
            key = (path, rights.get("mode", "") if node else "")
            if key in told:
                continue
            told.add(key)
            if node:
                yield replace(DeviceNode(origin=capture.origin(line), path=path), **rights)
            elif found := _software(path):
                yield Installation(origin=capture.origin(line), path=path, version=found[1] or "")
        if (absent := ABSENT.match(line.text)) and KNOWN.fullmatch(GLOB.sub("0", absent["absent"])):
            reason = line.text.strip(" \t│|")
            origin = capture.origin(line)
            yield Unavailable(origin=origin, what="nodes", reason=reason, how="missing", tells=("DeviceNode",))
    if alone.keys() >= EVERYWHERE and alone.keys() & FIRST:
        yield Listing(origin=capture.origin(alone["/dev/null"]), kind="DeviceNode")
        if alone.keys() >= {"/opt", "/usr/local"}:
            yield Listing(origin=capture.origin(alone["/opt"]), kind="Installation")


def _listed(line: Line) -> tuple[list[str], dict[str, str]]:
    """The paths of a line, and the rights where it is a row of `ls -l`."""
    if PATHS.match(line.text):
        return line.text.strip(" \t│|").split(), {}
    found = LONG.match(line.text)
    return _long(found), {name: found[name] for name in ("mode", "owner", "group")} if found else {}


def _software(path: str) -> re.Match[str] | None:
    return next((FOLDERS[root].fullmatch(path[len(root) :]) for root in FOLDERS if path.startswith(root)), None)


def _long(found: re.Match[str] | None) -> list[str]:
    """The path of a row of `ls -l`; a bare name is one where it can stand in a single folder only."""
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
