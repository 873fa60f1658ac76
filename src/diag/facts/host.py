"""The machine: its system, its limits, what is on its buses, and what its kernel reported."""

from __future__ import annotations

from typing import Any, Literal

from diag.facts.base import Fact, Passing


class Host(Fact, frozen=True, kw_only=True):
    """The machine and its operating system; memory in bytes, `libc` as `glibc-2.36`.

    `virtual` is what it runs in, in the words of the kernel or `lscpu` (`kvm`, `wsl`, …); `product` is the name of the
    system or board as the firmware gives it.
    """

    name: str = ""
    os: str = ""
    kernel: str = ""
    machine: str = ""
    libc: str = ""
    cpu: str = ""
    cpus: int | None = None
    memory_bytes: int | None = None
    virtual: str = ""
    product: str = ""

    def identity(self) -> tuple[str, str] | None:
        """A machine has one name."""
        return ("host", self.name) if self.name else None


class Mount(Fact, frozen=True, kw_only=True):
    """A mounted file system: its size and what is free, in bytes."""

    path: str
    kind: str = ""
    size_bytes: int | None = None
    free_bytes: int | None = None

    def lasting(self) -> dict[str, Any]:
        """All but what is free."""
        return {name: value for name, value in self.told().items() if name != "free_bytes"}


class Setting(Passing, frozen=True, kw_only=True):
    """A named value that somebody can change.

    `environment`: a variable; `kernel`: a parameter of the kernel, from its command line or `sysctl`; `limit`: of a
    process, under the name that PAM gives it (`memlock`, `nofile`), `unlimited` or a number in the unit that the text
    has; `cgroup`: a file of a control group (`memory.max`). `unit` is told of limits alone: `KiB`, `B`, or empty where
    it is a count or the text does not tell.
    """

    name: str
    value: str
    kind: Literal["environment", "kernel", "limit", "cgroup"] = "environment"
    unit: Literal["", "KiB", "B"] = ""


class HostName(Passing, frozen=True, kw_only=True):
    """Where the table of hosts leads the machine's own name: `loopback`, an address of this host alone, or `away`."""

    leads: Literal["loopback", "away"]
    address: str = ""


class User(Passing, frozen=True, kw_only=True):
    """Who asked: name, number, and the groups it is in, by name or, where there is none, by number."""

    name: str = ""
    uid: int | None = None
    groups: tuple[str, ...] = ()


class Clock(Passing, frozen=True, kw_only=True):
    """Whether the clock is kept in step with others, by whom, and how far it is off in seconds (positive: ahead)."""

    synchronized: bool | None = None
    service: str = ""
    offset_seconds: float | None = None


class SharedSegment(Passing, frozen=True, kw_only=True):
    """A file in `/dev/shm`: its size in bytes, seconds since it was last written, and whether a process has it open.

    `pid` is the process that its name tells of, `alive` whether that one still runs; None where nothing was told.
    """

    path: str
    size_bytes: int | None = None
    age_seconds: float | None = None
    pid: int | None = None
    alive: bool | None = None
    open: bool | None = None


class CacheFolder(Passing, frozen=True, kw_only=True):
    """A folder that an engine writes to: what for (`models`, `compiled`, `temporary`), and what is free, in bytes.

    `variable` is the variable that named it, empty where it is the default; a folder that is not there yet is told by
    what its nearest parent has. `writable` is for the user who asked.
    """

    path: str
    purpose: str
    variable: str = ""
    free_bytes: int | None = None
    writable: bool | None = None


class Listing(Passing, frozen=True, kw_only=True):
    """All facts of this kind that there are on the machine were told: what is not among them is not there.

    `kind` is the name of their class (`DeviceNode`, `PciDevice`, `KernelModule`, `NetworkInterface`), or `environment`
    for the variables that bear on accelerators and engines.
    """

    kind: str


class Container(Passing, frozen=True, kw_only=True):
    """A container: its runtime (`docker`, `podman`, `kubernetes`, …), and how it was started where that was told.

    `inside`: the text was taken in it. `devices` are paths of the host; `gpus` is what it was given through its runtime
    (`all`, a count, ids); `mounts` are paths inside it that something of the host is mounted on, `groups` those added
    to its user.
    """

    runtime: str = ""
    inside: bool = True
    name: str = ""
    image: str = ""
    privileged: bool | None = None
    ipc: str = ""
    shm_bytes: int | None = None
    devices: tuple[str, ...] = ()
    gpus: str = ""
    mounts: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


class NumaNode(Fact, frozen=True, kw_only=True):
    """A NUMA node: its number, its CPUs as the kernel lists them (`0-31,64-95`), memory in bytes."""

    node: int
    cpus: str = ""
    memory_bytes: int | None = None
    free_bytes: int | None = None

    def lasting(self) -> dict[str, Any]:
        """All but what is free."""
        return {name: value for name, value in self.told().items() if name != "free_bytes"}


class KernelModule(Fact, frozen=True, kw_only=True):
    """A module that the kernel has loaded; its version where the text tells it."""

    name: str
    version: str = ""


class Service(Passing, frozen=True, kw_only=True):
    """A unit of systemd, without `.service`: active state (`active`, `failed`, …), sub-state, whether it is enabled."""

    name: str
    state: str = ""
    sub: str = ""
    enabled: str = ""


class HardwareEvent(Passing, frozen=True, kw_only=True):
    """Something that hardware or the kernel reported, once for each line.

    `kind` is the field's word in lower case (`xid`, `sxid`, `aer`, `ras`, `mce`, `oom-killer`, …), `code` its number or
    class where it has one, `address` the PCI address with domain, `process` whom it names, `at` the stamp as printed.
    """

    kind: str
    vendor: str = ""
    code: str = ""
    address: str = ""
    process: str = ""
    at: str = ""
    message: str = ""


class DeviceNode(Fact, frozen=True, kw_only=True):
    """A device file that is there (`/dev/kfd`): its rights as `ls -l` prints them, its owner and group.

    `accessible`: the user who asked may read and write it.
    """

    path: str
    mode: str = ""
    owner: str = ""
    group: str = ""
    accessible: bool | None = None


class Installation(Fact, frozen=True, kw_only=True):
    """A folder that software is installed into, and the version where it is told: `/opt/rocm-6.4.1`."""

    path: str
    version: str = ""


class PciDevice(Fact, frozen=True, kw_only=True):
    """A function on the PCI bus; numbers in hexadecimal of four digits, the address with its domain.

    `class_id` is of four digits (`0302`, `1200`); `speed` in GT/s and `width` in lanes are of the link as it runs,
    `speed_max` and `width_max` as it could; `acs` are the ACS controls that are on, None where the text does not tell.
    """

    address: str
    vendor_id: str = ""
    device_id: str = ""
    class_id: str = ""
    name: str = ""
    driver: str = ""
    numa_node: int | None = None
    speed: float | None = None
    width: int | None = None
    speed_max: float | None = None
    width_max: int | None = None
    acs: tuple[str, ...] | None = None


class NetworkPort(Fact, frozen=True, kw_only=True):
    """A port of a network adapter that can do RDMA: `state` and `physical_state` as printed, the rate in Gb/s.

    `layer` is `InfiniBand` or `Ethernet`; `interface` the network interface of the kernel; `mtu` and `mtu_max` the
    payload in bytes of a packet, as it is and as it could be.
    """

    device: str
    port: int = 1
    state: str = ""
    physical_state: str = ""
    rate_gbps: float | None = None
    layer: str = ""
    firmware: str = ""
    board: str = ""
    interface: str = ""
    mtu: int | None = None
    mtu_max: int | None = None

    def lasting(self) -> dict[str, Any]:
        """All but the states."""
        return {name: value for name, value in self.told().items() if name not in ("state", "physical_state")}


class Gid(Fact, frozen=True, kw_only=True):
    """A row of a port's table of GIDs: `kind` is `IB/RoCE v1` or `RoCE v2` as the kernel prints it."""

    device: str
    port: int = 1
    index: int = 0
    gid: str = ""
    kind: str = ""
    interface: str = ""


class NetworkInterface(Passing, frozen=True, kw_only=True):
    """A network interface of the kernel: its state (`up`, `down`, `unknown`), MTU in bytes, speed in Mb/s.

    `addressed`: it has an address other than one that only this link can use.
    """

    name: str
    state: str = ""
    mtu: int | None = None
    speed_mbps: int | None = None
    addressed: bool | None = None
