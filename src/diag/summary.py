"""The machine in a few lines, made from facts: what it is, never whether that is good."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from diag.facts import (
    Accelerator,
    Driver,
    Engine,
    Facts,
    Host,
    MemoryBandwidth,
    Mount,
    Python,
    Runtime,
    TorchBuild,
    Unavailable,
    devices,
)
from diag.report import MachineRow

LABELS = {
    "accelerators": {"en": "Accelerators", "zh": "加速器"},
    "driver": {"en": "Driver", "zh": "驱动"},
    "runtime": {"en": "Toolkit", "zh": "工具包"},
    "torch": {"en": "torch", "zh": "torch"},
    "engine": {"en": "Engine", "zh": "推理引擎"},
    "python": {"en": "Python", "zh": "Python"},
    "host": {"en": "System", "zh": "系统"},
    "processor": {"en": "Processor", "zh": "处理器"},
    "memory": {"en": "Memory", "zh": "内存"},
    "mount": {"en": "Shared memory", "zh": "共享内存"},
    "copy": {"en": "Memory copy", "zh": "内存复制"},
}
NONE_SEEN = {"en": "none seen", "zh": "未发现"}
NOT_KNOWN = {"en": "not known ({why})", "zh": "未知（{why}）"}
OFFERS = {"en": "offers {offers}", "zh": "提供 {offers}"}
CPUS = {"en": "{model}, {count} CPUs", "zh": "{model}，{count} 个 CPU"}
ROLES = {
    "installed": {"en": "installed", "zh": "已安装"},
    "running": {"en": "running", "zh": "运行中"},
    "planned": {"en": "planned", "zh": "计划启动"},
}
GIB = 2**30


def machine(facts: Facts, language: str) -> list[MachineRow]:
    """The rows of the machine summary, scope by scope."""
    rows = []
    for scope in facts.scopes():
        view = facts.within(scope)
        for name, value in _rows(view, language):
            rows.append(MachineRow(label=LABELS[name][language], value=value, scope=scope))
    return rows


def _rows(facts: Facts, language: str) -> Iterator[tuple[str, str]]:
    if facts.first(Accelerator):
        yield "accelerators", ", ".join(_counted(devices(facts)))
    elif failed := [one for one in facts.all(Unavailable) if "Accelerator" in one.tells and one.how == "failed"]:
        yield "accelerators", NOT_KNOWN[language].format(why=f"{failed[0].what}: {failed[0].reason}")
    elif facts.first(Unavailable):
        yield "accelerators", NONE_SEEN[language]
    rows = [("driver", {_driver(one, language) for one in facts.all(Driver)})]
    rows.append(("runtime", {f"{one.name} {one.version}" for one in facts.all(Runtime)}))
    rows.append(("torch", {_torch(one) for one in facts.all(TorchBuild) if one.version} or _packaged(facts)))
    rows.append(("engine", {_engine(one, language) for one in facts.all(Engine)}))
    rows.append(("python", {f"{one.version} {one.executable}".strip() for one in facts.all(Python)}))
    host = {name: facts.field(Host, name) or "" for name in ("os", "kernel", "machine", "libc")}
    rows.append(("host", {", ".join(filter(None, host.values()))}))
    count, model = facts.field(Host, "cpus"), facts.field(Host, "cpu") or ""
    rows.append(("processor", {CPUS[language].format(model=model, count=count) if count and model else model}))
    if memory := facts.field(Host, "memory_bytes"):
        rows.append(("memory", {f"{memory / GIB:.1f} GiB"}))
    rows.append(("mount", {_mount(one) for one in facts.all(Mount) if one.path == "/dev/shm" and one.size_bytes}))
    copies = facts.all(MemoryBandwidth)[-1:]
    rows.append(("copy", {f"{one.gbps:.1f} GB/s ({one.subject})" for one in copies}))
    for name, values in rows:
        if text := "; ".join(sorted(filter(None, values))):
            yield name, text


def _counted(found: tuple[Accelerator, ...]) -> Iterator[str]:
    """The devices by kind: `8 x NAME, 139.8 GiB`."""
    kinds = Counter((device.name or device.vendor, _gib(device.memory_mib)) for device in found)
    for (name, memory), count in kinds.items():
        yield f"{count} x {name}" + (f", {memory}" if memory else "")


def _gib(mib: float | None) -> str:
    return f"{mib / 1024:.1f} GiB" if mib else ""


def _driver(driver: Driver, language: str) -> str:
    offers = OFFERS[language].format(offers=driver.offers) if driver.offers else ""
    return ", ".join(filter(None, (f"{driver.vendor} {driver.version}".strip(), offers)))


def _engine(engine: Engine, language: str) -> str:
    return f"{' '.join(filter(None, (engine.name, engine.version)))} ({ROLES[engine.role][language]})"


def _torch(torch: TorchBuild) -> str:
    built = f"{torch.backend} {torch.backend_version}".strip()
    return torch.version + (f" ({built})" if built else "")


def _packaged(facts: Facts) -> set[str]:
    package = facts.package("torch")
    return {package.version} if package else set()


def _mount(mount: Mount) -> str:
    size = mount.size_bytes or 0
    return f"{size / GIB:.1f} GiB" if size >= GIB else f"{size / 2**20:.0f} MiB"
