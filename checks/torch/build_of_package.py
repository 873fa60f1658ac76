"""What torch was built for, from the version that a list of packages or a prompt shows: `2.6.0+cu124` is for CUDA 12.4.

A version without a local part, as PyPI serves it, tells nothing by itself; with the runtime that such a torch brings
(`nvidia-cuda-runtime-cu12`) beside it, it is for that CUDA, with other libraries of it (`nvidia-nccl-cu13`) for that
major version. Nothing is concluded where torch told its runtime itself, or where versions in the text contradict each
other. What this cannot know: a build that somebody made and named alike.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Fact, Facts, Package, TorchBuild, deduction, expression, local, minor

CUDA = expression(r"cu(\d{1,2})(\d)(?!\d)")
OTHER = expression(r"(rocm|xpu|cpu)(\d+(?:\.\d+){0,2})?(?![a-z0-9])")
LIBRARY = expression(r"nvidia-(?:nccl|cudnn|cublas|cusparselt|nvshmem)-cu(\d\d)")
RUNTIMES = ("nvidia-cuda-runtime-cu12", "nvidia-cuda-runtime-cu13", "nvidia-cuda-runtime")
Built = tuple[str, str]


@deduction(uses=(Package, TorchBuild), tells=(TorchBuild,))
def build_of_package(facts: Facts) -> Iterator[Fact]:
    """One build, at the place where the version stands."""
    if any(one.backend for one in facts.all(TorchBuild)):
        return
    named: list[Package | TorchBuild] = [one for one in facts.all(TorchBuild) if one.version]
    named += [one for one in facts.all(Package) if one.name == "torch"]
    built = [(one, told) for one in named if (told := _local(one.version))]
    if not built and not any(local(one.version) for one in named):
        built = [(one, told) for one in named if (told := _beside(facts))]
    if len({told for _, told in built}) == 1:
        one, (backend, version) = built[0]
        yield TorchBuild(origin=one.origin, version=one.version, backend=backend, backend_version=version)


def _local(version: str) -> Built | None:
    """The runtime that the local part of a version names, and its version."""
    part = local(version)
    if found := CUDA.match(part):
        return "cuda", f"{found[1]}.{found[2]}"
    found = OTHER.match(part)
    return (found[1], found[2] or "") if found else None


def _beside(facts: Facts) -> Built | None:
    """The one CUDA runtime that stands in the list, else the major version that all of its libraries are for."""
    versions = {minor(one.version) for one in facts.all(Package) if one.name in RUNTIMES}
    majors = {found[1] for one in facts.all(Package) if (found := LIBRARY.fullmatch(one.name))}
    known = versions or majors
    return ("cuda", known.pop()) if len(known) == 1 else None
