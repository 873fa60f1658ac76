"""What the words of an asked set mean as facts: devices by their models, a driver by its maker, the build of torch.

A device goes by its model's whole name where the word stands for one model. A driver is that of the devices' maker, of
the maker of another part, or of the one whose drivers are numbered so. Where torch's runtime is not told it is that of
the build which a plain installation gives, of the torch that the engine pins where none is told: concluded, not read.
Nothing is concluded where a plain installation gives a build for the CPU alone on the host that the device is sold
with.
What this cannot know: a build from another index, an image with libraries of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from diag.api import (
    Accelerator,
    Component,
    ComponentName,
    DeviceModel,
    Driver,
    Fact,
    Facts,
    Host,
    Package,
    Python,
    Release,
    Runtime,
    RuntimeKind,
    TorchBuild,
    TorchWheel,
    Vendor,
    bare_name,
    deduction,
    expression,
    local,
    model_of,
    numbers,
    plain_wheel,
    replace,
    same,
    satisfies,
)

BRACKETED = expression(r"\w[\w .-]* \[(?P<name>\w[^\[\]/]*)\]")
"""A device as the table of PCI ids has it: the chip, and the model in brackets where it is one."""
CUDA = expression(r"cu(\d{2})(\d)")
MOST = 64
"""Devices that are told of one word: what is judged is the same for each."""
KINDS: dict[str, RuntimeKind] = {"toolkit": "toolkit", "runtime": "library"}


@deduction(
    needs=(Component,),
    uses=(ComponentName, DeviceModel, Package, Release, TorchWheel, Vendor),
    tells=(Accelerator, Driver, Host, Python, Runtime, TorchBuild),
)
def meant(facts: Facts) -> Iterator[Fact]:
    """The facts that the words stand for."""
    rows = {one.name: one for one in facts.all(ComponentName)}
    devices = [device for one in facts.all(Component) if one.name == "gpu" for device in _devices(facts, one)]
    yield from devices
    built = None
    for one in facts.all(Component):
        row = rows.get(one.name)
        if row and row.kind == "driver":
            yield Driver(origin=one.origin, vendor=_maker(facts, devices, one.version), version=one.version)
        elif row and row.kind == "python":
            yield Python(origin=one.origin, version=one.version)
        elif row and row.kind == "libc":
            yield Host(origin=one.origin, libc=f"{row.name}-{one.version}")
        elif row and row.kind in ("toolkit", "runtime"):
            yield Runtime(origin=one.origin, name=row.runtime or row.name, version=one.version, kind=KINDS[row.kind])
        elif row and row.kind == "build":
            built = TorchBuild(
                origin=one.origin,
                version=_torch(facts),
                backend=row.runtime or row.name,
                backend_version=one.version,
            )
    built = built or _concluded(facts, devices)
    if built:
        yield built


def _devices(facts: Facts, asked: Component) -> Iterator[Accelerator]:
    """One device, or as many as were asked about."""
    bracketed = BRACKETED.fullmatch(asked.version)
    said = bracketed["name"] if bracketed else asked.version
    device = Accelerator(origin=asked.origin, name=said, seen_by="asked")
    model = model_of(facts, device, tells="vendor") or _squeezed(facts, said)
    short = model and _run(model.names[0]) == _run(bare_name(facts, said))
    whole = model.names[1:] if model and short else ()
    name = whole[0] if len(whole) == 1 and not set("*?[") & set(whole[0]) else said
    starts = [(start, one.vendor) for one in facts.all(Vendor) for start in one.names]
    maker = model.vendor if model else next((vendor for start, vendor in starts if name.startswith(start)), "")
    for number in range(min(asked.count or 1, MOST)):
        index = number if asked.count else None
        architecture = model.architecture if model else ""
        yield replace(device, vendor=maker, name=name, index=index, architecture=architecture)


def _squeezed(facts: Facts, name: str) -> DeviceModel | None:
    """The model whose name this is but for blanks and dashes: `RTX5090`."""
    wanted = _run(bare_name(facts, name))
    return next((one for one in facts.all(DeviceModel) if wanted in map(_run, one.names)), None)


def _run(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).lower()


def _maker(facts: Facts, devices: list[Accelerator], version: str) -> str:
    """Whose driver it is."""
    told = {one.vendor for one in devices if one.vendor} or _makers(facts)
    told = told or {one.vendor for one in facts.all(Vendor) if one.drivers and re.fullmatch(one.drivers, version)}
    return told.pop() if len(told) == 1 else ""


def _makers(facts: Facts) -> set[str]:
    """The makers that the other words tell of: by a part that is theirs, a distribution or a build of theirs."""
    names = {one.name: one.vendor for one in facts.all(ComponentName)}
    told = {names.get(one.name, "") for one in facts.all(Component)}
    for maker in facts.all(Vendor):
        builds = [local(one.version) for one in facts.all(Package)]
        if any(one.name in maker.packages for one in facts.all(Package)) or any(
            word in build for word in maker.locals for build in builds
        ):
            told.add(maker.vendor)
    return told - {""}


def _torch(facts: Facts) -> str:
    torch = facts.package("torch")
    return torch.version if torch else ""


def _concluded(facts: Facts, devices: list[Accelerator]) -> TorchBuild | None:
    """The build that a plain installation gives, where nothing tells of a maker whose builds are others."""
    rows = {(one.package, one.version): one for one in facts.all(Release)}
    version, from_, basis = _planned(facts, rows)
    release = next((one for (name, known), one in rows.items() if name == "torch" and same(known, version)), None)
    if from_ is None or release is None or not release.runtime or local(version):
        return None
    built = CUDA.fullmatch(local(from_.version))
    own = {one.vendor for one in facts.all(ComponentName) if one.kind == "build" and one.name == release.runtime}
    if ({one.vendor for one in devices if one.vendor} | _makers(facts)) - own:
        return None
    if from_.name == release.package and plain_wheel(facts, version, devices):
        return None
    return TorchBuild(
        origin=from_.origin,
        version=version,
        backend=release.runtime,
        backend_version=f"{built[1]}.{built[2]}" if built else release.runtime_version,
        basis=basis,
    )


def _planned(facts: Facts, rows: Mapping[tuple[str, str], Release]) -> tuple[str, Package | None, str]:
    """The torch that is asked about or that another distribution pins, what told it, and how."""
    if torch := facts.package("torch"):
        return torch.version, torch, "the default build"
    for one in facts.all(Package):
        release = next(
            (row for (name, known), row in rows.items() if name == one.name and same(known, one.version)), None
        )
        if release is None or "torch" not in release.pins:
            continue
        if pinned := release.pinned("torch"):
            return pinned, one, f"as {one.name} {one.version} pins it"
        fitting = [known for name, known in rows if name == "torch" and satisfies(known, release.pins["torch"])]
        return max(fitting, key=numbers, default=""), one, f"the newest that {one.name} {one.version} allows"
    return "", None, ""
