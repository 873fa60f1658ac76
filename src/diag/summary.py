"""The machine in a few lines, made from facts: what it is, never whether that is good."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from diag.facts import (
    CommandEnd,
    Container,
    Driver,
    Engine,
    EngineState,
    Facts,
    HardwareEvent,
    Host,
    LaunchArguments,
    Link,
    MemoryBandwidth,
    ModelShape,
    Mount,
    NetworkPort,
    NumaNode,
    Partition,
    Platform,
    Python,
    Reading,
    Runtime,
    TorchBuild,
    Unavailable,
    devices,
)
from diag.report import MachineRow
from diag.text import cut

Words = Mapping[str, str]

WORDS: Mapping[str, Words] = {
    "en": {
        "accelerators": "Accelerators",
        "platform": "Platform",
        "links": "Links",
        "driver": "Driver",
        "toolkit": "Toolkit",
        "torch": "torch",
        "collectives": "Collectives",
        "engine": "Engine",
        "states": "Engine says",
        "launch": "Launch",
        "model": "Model",
        "layers": "layers",
        "hidden size": "hidden size",
        "experts": "experts",
        "python": "Python",
        "host": "System",
        "processor": "Processor",
        "memory": "Memory",
        "network": "Network",
        "containers": "Containers",
        "health": "Health",
        "events": "Events",
        "command": "Command",
        "exit code": "{program}: exit code {end}",
        "signal": "{program}: {end}",
        "more": "and {count} more kinds",
        "none seen": "none seen",
        "not known": "not known ({why})",
        "offers": "offers {offers}",
        "cpus": "{count} CPUs",
        "numa": "{count} NUMA nodes",
        "shared": "shared memory {size}",
        "ports": "{count} ports",
        "copies": "copies {gbps:.1f} GB/s ({subject})",
        "poses": "{vendor}, which torch and tools take for {others}",
        "parts": "parts: {count}",
        "installed": "installed",
        "running": "running",
        "planned": "planned",
        "unknown flags": "flags that no compared version takes: {flags}",
        "wsl": "WSL",
        "virtual": "virtual machine",
        "container": "container",
        "unified-memory": "memory shared with the host",
        "partitioned": "partitioned",
        "loaded": "loaded",
        "compiled": "compiled against",
    },
    "zh": {
        "accelerators": "加速器",
        "platform": "平台",
        "links": "互连",
        "driver": "驱动",
        "toolkit": "工具包",
        "torch": "torch",
        "collectives": "集合通信",
        "engine": "推理引擎",
        "states": "引擎输出",
        "launch": "启动",
        "model": "模型",
        "layers": "层",
        "hidden size": "隐藏维度",
        "experts": "专家",
        "python": "Python",
        "host": "系统",
        "processor": "处理器",
        "memory": "内存",
        "network": "网络",
        "containers": "容器",
        "health": "健康状态",
        "events": "事件",
        "command": "命令",
        "exit code": "{program}：退出码 {end}",
        "signal": "{program}：{end}",
        "more": "另有 {count} 种",
        "none seen": "未发现",
        "not known": "未知（{why}）",
        "offers": "提供 {offers}",
        "cpus": "{count} 个 CPU",
        "numa": "{count} 个 NUMA 节点",
        "shared": "共享内存 {size}",
        "ports": "{count} 个端口",
        "copies": "复制 {gbps:.1f} GB/s（{subject}）",
        "poses": "{vendor}（torch 和工具会将其当作 {others}）",
        "parts": "{count} 个分区",
        "installed": "已安装",
        "running": "运行中",
        "planned": "计划启动",
        "unknown flags": "所比较的版本都不接受的参数：{flags}",
        "wsl": "WSL",
        "virtual": "虚拟机",
        "container": "容器",
        "unified-memory": "与主机共用内存",
        "partitioned": "已分区",
        "loaded": "已加载",
        "compiled": "编译时",
    },
}
GIB = 2**30
REASON_CAP = 160
"""Characters of a reason that are shown."""
SHOWN = ("memory.weights", "memory.kv-cache", "kv.tokens", "kv.concurrency", "memory.graphs", "attention")
"""Names of an engine's states that are shown."""
EVENTS_CAP = 6
"""Kinds of events that are shown; the number of the others is."""
LAUNCH_CAP = 200
"""Characters of a launch line that are shown."""
COLLECTIVES = ("nccl", "rccl", "hccl", "xccl", "bkcl", "ccl")


def machine(facts: Facts, language: str) -> list[MachineRow]:
    """The rows of the machine summary, scope by scope."""
    words = WORDS[language]
    rows = []
    for scope in facts.scopes():
        view = facts.within(scope)
        for name, told in ROWS.items():
            if value := "; ".join(dict.fromkeys(filter(None, told(view, words)))):
                rows.append(MachineRow(label=words[name], value=value, scope=scope))
    return rows


def _platform(facts: Facts, words: Words) -> Iterator[str]:
    """Who the machine is, where that is not plain from its devices' names."""
    for one in facts.all(Platform):
        if one.poses_as:
            yield words["poses"].format(vendor=", ".join(one.present), others=", ".join(one.poses_as))
        yield ", ".join(words[trait] for trait in one.traits)


def _accelerators(facts: Facts, words: Words) -> Iterator[str]:
    """The devices by kind: `8 x NAME, 139.8 GiB`; where there are none, why."""
    kinds = Counter((device.name or device.vendor, _gib(device.memory_mib)) for device in devices(facts))
    for (name, memory), count in kinds.items():
        yield f"{count} x {name}" + (f", {memory}" if memory else "")
    if parts := facts.all(Partition):
        yield words["parts"].format(count=len(parts))
    if not kinds:
        untold = [one for one in facts.all(Unavailable) if "Accelerator" in one.tells]
        failed = next((one for one in untold if one.how in ("failed", "unstarted")), None)
        if failed:
            yield words["not known"].format(why=f"{failed.what}: {cut(failed.reason, REASON_CAP)}")
        elif untold:
            yield words["none seen"]


def _gib(mib: float | None) -> str:
    return f"{mib / 1024:.1f} GiB" if mib else ""


def _links(facts: Facts, words: Words) -> Iterator[str]:
    """The links between accelerators, by kind; those to adapters are left to who asks for them."""
    kinds = Counter(link.kind for link in facts.all(Link) if _device(link.first) and _device(link.second))
    yield ", ".join(f"{kind} x {count}" for kind, count in kinds.most_common())


def _device(name: str) -> bool:
    return name.rstrip("0123456789").upper() in ("GPU", "NPU", "XPU", "DCU", "HCU", "CARD", "PHY-ID", "DEVICE")


def _driver(facts: Facts, words: Words) -> Iterator[str]:
    """Each driver once; what it offers may stand in another text than its version."""
    told = facts.all(Driver)
    for one in told:
        known = any((other.vendor, other.version) == (one.vendor, one.version) and other.offers for other in told)
        if one.offers or not known:
            offers = words["offers"].format(offers=one.offers) if one.offers else ""
            yield ", ".join(filter(None, (f"{one.vendor} {one.version}".strip(), offers)))


def _toolkit(facts: Facts, words: Words) -> Iterable[str]:
    found = (one for one in facts.all(Runtime) if one.name not in COLLECTIVES)
    return sorted({_runtime(one, words) for one in found})


def _collectives(facts: Facts, words: Words) -> Iterable[str]:
    found = (one for one in facts.all(Runtime) if one.name in COLLECTIVES)
    return sorted({_runtime(one, words) for one in found})


def _runtime(one: Runtime, words: Words) -> str:
    kind = words[one.kind] if one.kind in ("loaded", "compiled") else ""
    return f"{one.name} {one.version}" + (f" ({kind})" if kind else "")


def _torch(facts: Facts, words: Words) -> Iterator[str]:
    builds = [one for one in facts.all(TorchBuild) if one.version]
    known = {one.version for one in builds if one.backend}
    for one in (one for one in builds if one.backend or one.version not in known):
        built = f"{one.backend} {one.backend_version}".strip()
        yield one.version + (f" ({built})" if built else "")
    if not builds and (package := facts.package("torch")):
        yield package.version


def _engine(facts: Facts, words: Words) -> Iterable[str]:
    named = (f"{' '.join(filter(None, (one.name, one.version)))} ({words[one.role]})" for one in facts.all(Engine))
    return sorted(set(named))


def _launch(facts: Facts, words: Words) -> Iterator[str]:
    """The engine, the model and the flags; those that only name the model again are left out."""
    for one in facts.all(LaunchArguments):
        flags = (f"--{name} {value}".strip() for name, value in one.flags if value != one.model)
        line = " ".join(filter(None, (one.engine, one.subcommand, one.model, *flags)))
        yield cut(line, LAUNCH_CAP)
        if one.unknown:
            yield words["unknown flags"].format(flags=", ".join(f"--{name}" for name in one.unknown))


def _command(facts: Facts, words: Words) -> Iterator[str]:
    """How a command ended that diag ran, after how long, and with how much memory."""
    for one in facts.all(CommandEnd):
        end = words["signal" if one.signal else "exit code"].format(
            program=one.program, end=one.signal or one.exit_code
        )
        took = f"{one.seconds:g} s" if one.seconds is not None else ""
        yield ", ".join(filter(None, (end, took, _gib(one.memory / 2**20) if one.memory else "")))


def _model(facts: Facts, words: Words) -> Iterator[str]:
    for one in facts.all(ModelShape):
        sizes = (("layers", one.layers), ("hidden size", one.hidden_size), ("experts", one.experts))
        counted = (f"{count} {words[name]}" for name, count in sizes if count)
        yield ", ".join(filter(None, (one.architecture or one.model_type, *counted, one.dtype, one.quantization)))


def _python(facts: Facts, words: Words) -> Iterable[str]:
    return sorted({f"{one.version} {one.executable}".strip() for one in facts.all(Python)})


def _host(facts: Facts, words: Words) -> Iterator[str]:
    told = (facts.field(Host, name) or "" for name in ("product", "os", "kernel", "machine", "libc"))
    images = {one.image for one in facts.all(Container) if one.inside}
    yield ", ".join(filter(None, (*told, *sorted(images))))


def _processor(facts: Facts, words: Words) -> Iterator[str]:
    count, nodes = facts.field(Host, "cpus"), {one.node for one in facts.all(NumaNode)}
    cpus = words["cpus"].format(count=count) if count else ""
    numa = words["numa"].format(count=len(nodes)) if len(nodes) > 1 else ""
    yield ", ".join(filter(None, (facts.field(Host, "cpu") or "", cpus, numa)))


def _memory(facts: Facts, words: Words) -> Iterator[str]:
    total = facts.field(Host, "memory_bytes")
    shared = (_size(one.size_bytes) for one in facts.all(Mount) if one.path == "/dev/shm" and one.size_bytes)
    parts = [f"{total / GIB:.1f} GiB" if total else "", *(words["shared"].format(size=size) for size in shared)]
    parts += [words["copies"].format(gbps=one.gbps, subject=one.subject) for one in facts.all(MemoryBandwidth)[-1:]]
    yield ", ".join(filter(None, parts))


def _size(size: int) -> str:
    return f"{size / GIB:.1f} GiB" if size >= GIB else f"{size / 2**20:.0f} MiB"


def _network(facts: Facts, words: Words) -> Iterator[str]:
    ports = {(one.device, one.port): one for one in facts.all(NetworkPort)}
    kinds = Counter((one.rate_gbps, one.layer, one.state) for one in ports.values())
    for (rate, layer, state), count in kinds.items():
        speed = f"{rate:g} Gb/s" if rate else ""
        told = " ".join(filter(None, (speed, layer, state)))
        yield f"{count} x {told}" if told else words["ports"].format(count=count)


def _containers(facts: Facts, words: Words) -> Iterator[str]:
    """Containers that a text shows from outside: how each is started."""
    for one in facts.all(Container):
        if not one.inside:
            shared = words["shared"].format(size=_size(one.shm_bytes)) if one.shm_bytes else ""
            ipc, gpus = (f"{name} {value}" if value else "" for name, value in (("ipc", one.ipc), ("gpus", one.gpus)))
            yield ", ".join(filter(None, (one.runtime, one.name, one.image, ipc, gpus, shared)))


def _health(facts: Facts, words: Words) -> Iterator[str]:
    """What the tool says of the devices' state, by its own words."""
    kinds = Counter(one.value for one in facts.all(Reading) if one.name == "health")
    yield ", ".join(f"{count} x {value}" for value, count in kinds.most_common(6))


def _states(facts: Facts, words: Words) -> Iterator[str]:
    """The first of each of the figures that an engine prints of its memory, and its back end."""
    told: dict[str, str] = {}
    for one in facts.all(EngineState):
        if one.name in SHOWN:
            told.setdefault(one.name, f"{one.value} {one.unit}".strip())
    yield ", ".join(f"{name} {told[name]}" for name in SHOWN if name in told)


def _events(facts: Facts, words: Words) -> Iterator[str]:
    kinds = Counter(f"{one.kind} {one.code}".strip() for one in facts.all(HardwareEvent))
    shown = [f"{count} x {kind}" for kind, count in kinds.most_common(EVENTS_CAP)]
    more = len(kinds) - len(shown)
    yield ", ".join((*shown, *([words["more"].format(count=more)] if more else ())))


ROWS: Mapping[str, Callable[[Facts, Words], Iterable[str]]] = {
    "platform": _platform,
    "accelerators": _accelerators,
    "links": _links,
    "driver": _driver,
    "toolkit": _toolkit,
    "torch": _torch,
    "collectives": _collectives,
    "engine": _engine,
    "command": _command,
    "launch": _launch,
    "model": _model,
    "states": _states,
    "python": _python,
    "host": _host,
    "processor": _processor,
    "memory": _memory,
    "network": _network,
    "containers": _containers,
    "health": _health,
    "events": _events,
}
"""The rows in their order; one that nothing was told of is left out."""
