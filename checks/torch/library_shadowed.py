"""torch uses a library of the system although its environment brings its own.

## What it finds
A library of CUDA in the memory of the process that imported torch, from a file outside of the environment, while the
distribution of that library is installed in the environment.

## Why it matters
torch was compiled and tested with the copy its wheel asks for. Another version brings errors such as "cuDNN version
incompatibility", missing symbols, slower kernels, or a fault that was mended in the copy nobody uses.

## What it cannot know
Whether the other copy is meant: one that LD_PRELOAD or VLLM_NCCL_SO_PATH names is taken to be. A torch without these
distributions, as in the containers of vendors, uses the system's libraries by design and stays silent.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Answer,
    Evidence,
    Fact,
    Facts,
    Finding,
    Library,
    Package,
    Remedy,
    Setting,
    Undecided,
    check,
    expression,
)

OWNERS = {
    "libnccl": "nvidia-nccl",
    "libcudart": "nvidia-cuda-runtime",
    "libcublas": "nvidia-cublas",
    "libcublasLt": "nvidia-cublas",
    "libcudnn": "nvidia-cudnn",
    "libnvrtc": "nvidia-cuda-nvrtc",
}
"""Which distribution brings a library; its name may end in the version of CUDA."""
WHEEL = expression(r"/nvidia/(?:cu\d\d|nccl|cudnn|cublas|cuda_runtime|cuda_nvrtc)/lib/[^/]+$")
"""How the path of a wheel's library ends: an environment may be made of links to files that are kept elsewhere."""
MEANT = ("LD_PRELOAD", "VLLM_NCCL_SO_PATH")

PACKAGES = """\
{"schema": "diag/packages/1", "python": "3.12.3", "executable": "/opt/venv/bin/python", "prefix": "/opt/venv", \
"libc": "glibc-2.39", "kernel": "6.8.0-60-generic", "machine": "x86_64", "path": [], "torch": null, "packages": \
[{"name": "nvidia-nccl-cu13", "version": "2.30.4", "location": "/opt/venv/lib/python3.12/site-packages", \
"installer": "pip"}], "faults": []}
"""
SYSTEM = """\
{"schema": "diag/torch-env/1", "executable": "/opt/venv/bin/python", "import_seconds": 3.9, "build": \
{"version": "2.11.0+cu130", "cuda": "13.0", "hip": null, "xpu": null, "debug": false, "git_version": null, \
"nccl": "2.28.9"}, "available": true, "backend": "cuda", "devices": [], "architectures": [], "warnings": [], \
"libraries": ["/usr/lib/x86_64-linux-gnu/libnccl.so.2.28.3"], "versions": {"ncclGetVersion": 22803}}
"""
VARIABLES = """\
{"schema": "diag/environment/1", "variables": {"LD_LIBRARY_PATH": "/usr/local/cuda/lib64:/usr/lib/x86_64-linux-gnu"}}
"""
OWN = SYSTEM.replace(
    "/usr/lib/x86_64-linux-gnu/libnccl.so.2.28.3", "/opt/venv/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2"
)
LINKED = SYSTEM.replace(
    "/usr/lib/x86_64-linux-gnu/libnccl.so.2.28.3", "/uv/cache/archive-v0/abc/nvidia/nccl/lib/libnccl.so.2"
)


@check(
    "torch/library-shadowed",
    severity="warning",
    about="torch",
    needs=(Library, Package),
    uses=(Setting,),
    words={
        "en": {
            "title": "torch loads a library from outside of its environment",
            "summary": "{library} comes from {path}; {package} {version} is installed in {location}",
            "cause": "The other folder is found first: through {through}.",
        },
        "zh": {
            "title": "torch 加载了环境之外的库",
            "summary": "{library} 来自 {path}，而 {location} 中已安装 {package} {version}",
            "cause": "另一目录先被找到：经由 {through}。",
        },
    },
    remedies=(
        Remedy(
            key="path",
            title={
                "en": "Start without the folder in LD_LIBRARY_PATH",
                "zh": "启动时从 LD_LIBRARY_PATH 中去掉该目录",
            },
            commands=("env -u LD_LIBRARY_PATH python -m …",),
            safety="disruptive",
            verify="grep -h {library} /proc/$PID/maps | awk '{print $6}' | sort -u",
            source="https://github.com/pytorch/builder/pull/1150",
        ),
    ),
    sources=(
        "https://github.com/pytorch/builder/pull/1150",
        "https://github.com/pytorch/pytorch/issues/80637",
        "https://github.com/verl-project/verl/pull/6621",
    ),
    fires=(PACKAGES + SYSTEM, PACKAGES + SYSTEM + VARIABLES),
    silent=(PACKAGES + OWN, PACKAGES + LINKED),
)
def library_shadowed(facts: Facts) -> Iterator[Answer]:
    """Compare the file of each library with the folder of the distribution that brings it."""
    known = [one for one in facts.all(Library) if one.name in OWNERS]
    judged = False
    for library in known:
        packages = [one for one in facts.all(Package) if one.location and _brings(one, library.name)]
        inside = _linked(facts, library) or any(library.path.startswith(f"{one.location}/") for one in packages)
        judged = judged or bool(packages)
        if packages and not inside and not _meant(facts, library):
            yield _finding(facts, library, packages[0])
    if not judged:
        yield Undecided(reason="no library in memory is one that a distribution of the environment brings")


def _brings(package: Package, library: str) -> bool:
    base, _, suffix = package.name.rpartition("-cu")
    return OWNERS[library] == (base if suffix.isdecimal() else package.name)


def _linked(facts: Facts, library: Library) -> bool:
    """Whether the file is one of a wheel that no variable leads to, so that only a link of the environment can."""
    return bool(WHEEL.search(library.path)) and _path(facts, library) is None


def _path(facts: Facts, library: Library) -> Setting | None:
    """The variable that leads to the folder of the file."""
    folder = library.path.rpartition("/")[0]
    paths = (one for one in facts.all(Setting) if one.name == "LD_LIBRARY_PATH")
    return next((one for one in paths if folder in one.value.split(":")), None)


def _meant(facts: Facts, library: Library) -> bool:
    return any(library.name in one.value for one in facts.all(Setting) if one.name in MEANT)


def _finding(facts: Facts, library: Library, package: Package) -> Finding:
    setting = _path(facts, library)
    told: tuple[Fact, ...] = (library, package, setting) if setting else (library, package)
    return Finding(
        subject=library.name,
        values={
            "library": library.name,
            "path": library.path,
            "package": package.name,
            "version": package.version,
            "location": package.location,
            "through": f"LD_LIBRARY_PATH={setting.value}" if setting else "LD_LIBRARY_PATH | /etc/ld.so.conf",
        },
        evidence=tuple(map(Evidence.of, told)),
    )
