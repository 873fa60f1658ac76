"""What can be known of a machine: typed facts, each with the place it was read.

The vocabulary is neutral: a vendor or an engine is a value, never a class. Several sources may tell parts of one thing
(a `Host` from the kernel, another from a pasted report): every part is a fact of its own and nothing is merged behind
the reader's back. A field that was not told is empty or None, which never means "none".
"""

from __future__ import annotations

from diag.facts.bag import F, Facts, devices
from diag.facts.base import Fact, Origin
from diag.facts.device import (
    READINGS,
    Accelerator,
    DeviceProcess,
    DeviceTrial,
    Link,
    MemoryBandwidth,
    Partition,
    Platform,
    Reading,
    SeenBy,
    pci_address,
)
from diag.facts.engine import STATES, Engine, EngineState, LaunchArguments, LaunchCommand, ModelShape
from diag.facts.host import (
    Container,
    DeviceNode,
    HardwareEvent,
    Host,
    Installation,
    KernelModule,
    Mount,
    NetworkPort,
    NumaNode,
    PciDevice,
    Service,
    Setting,
)
from diag.facts.reference import EngineFlag, Reference, RuntimeDriver, Vendor
from diag.facts.software import (
    Driver,
    Library,
    Package,
    PackageList,
    Python,
    Runtime,
    RuntimeKind,
    TorchBuild,
    torch_backend,
)
from diag.facts.text import How, Text, Unavailable

__all__ = [
    "READINGS",
    "STATES",
    "Accelerator",
    "Container",
    "DeviceNode",
    "DeviceProcess",
    "DeviceTrial",
    "Driver",
    "Engine",
    "EngineFlag",
    "EngineState",
    "F",
    "Fact",
    "Facts",
    "HardwareEvent",
    "Host",
    "How",
    "Installation",
    "KernelModule",
    "LaunchArguments",
    "LaunchCommand",
    "Library",
    "Link",
    "MemoryBandwidth",
    "ModelShape",
    "Mount",
    "NetworkPort",
    "NumaNode",
    "Origin",
    "Package",
    "PackageList",
    "Partition",
    "PciDevice",
    "Platform",
    "Python",
    "Reading",
    "Reference",
    "Runtime",
    "RuntimeDriver",
    "RuntimeKind",
    "SeenBy",
    "Service",
    "Setting",
    "Text",
    "TorchBuild",
    "Unavailable",
    "Vendor",
    "devices",
    "pci_address",
    "torch_backend",
]
