"""How the kernel was started and set: its command line, and the settings that bear on devices and memory.

Of the command line only the parameters of a table are told, so that no identifier of a disk leaves with it. What GRUB
is configured with (`GRUB_CMDLINE_LINUX`) is told as well: it holds from the next start on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from diag.api import Capture, Fact, Probe, Recognise, Setting, expression, probe

PARAMETERS = {
    *("iommu", "intel_iommu", "amd_iommu", "iommu.passthrough", "iommu.strict", "vfio-pci.ids"),
    *("pci", "pcie_acs_override", "pcie_aspm", "pcie_aspm.policy", "pcie_port_pm", "pcie_ports", "swiotlb", "cma"),
    *("numa", "numa_balancing", "mitigations", "nosmt", "isolcpus", "nohz_full", "rcu_nocbs", "idle", "nokaslr"),
    *("hugepages", "hugepagesz", "default_hugepagesz", "transparent_hugepage", "init_on_alloc"),
    *("processor.max_cstate", "intel_idle.max_cstate", "intel_pstate", "amd_pstate", "cpufreq.default_governor"),
    *("nomodeset", "modprobe.blacklist", "module_blacklist", "rd.driver.blacklist", "rdblacklist"),
    *("systemd.unified_cgroup_hierarchy", "cgroup_enable", "cgroup_no_v1", "lockdown", "module.sig_enforce"),
}
MODULES = (
    *("nvidia.", "nvidia-drm.", "nvidia_drm.", "nvidia-uvm.", "nvidia_uvm.", "nvidia-modeset.", "nvidia_modeset."),
    *(
        "nouveau.",
        "amdgpu.",
        "amdttm.",
        "ttm.",
        "i915.",
        "xe.",
        "mlx5_core.",
        "vfio.",
        "vfio_pci.",
        "vfio-pci.",
        "kvm.",
    ),
)
"""Starts of parameters that are a module's options."""
OPENED = (
    r"^.{0,80}?\bBOOT_IMAGE=\S|^\W*GRUB_CMDLINE_LINUX(?:_DEFAULT)?="
    r"|^\W*[a-z][\w.\-]{1,40}(?:=\S{1,300})?\s(?:\S{1,300}\s){0,60}?(?:root=(?:/dev|UUID|PARTUUID|LABEL)|console=tty)\S"
)
"""A command line: of a boot loader that names the image, of GRUB's file, or known by the root or console it names."""


@probe(
    "proc/cmdline",
    tells=(Setting,),
    path="/proc/cmdline",
    recognise=Recognise(("BOOT_IMAGE=", "GRUB_CMDLINE_LINUX", " root=", " console="), OPENED, each=True, lines=5),
)
def cmdline(capture: Capture) -> Iterator[Fact]:
    """The parameters of interest; one without a value is told with an empty one."""
    for line in capture.lines():
        told: dict[str, str] = {}
        for word in line.text.replace('"', " ").replace("'", " ").split():
            name, _, value = word.removeprefix("GRUB_CMDLINE_LINUX_DEFAULT=").partition("=")
            if name in PARAMETERS or name.startswith(MODULES):
                told[name] = f"{told[name]} {value}" if told.get(name) else value
        for name, value in told.items():
            yield Setting(origin=capture.origin(line), kind="kernel", name=name, value=value[:400])


SYSCTL = (
    *("kernel.numa_balancing", "kernel.yama.ptrace_scope", "kernel.shmmax", "vm.overcommit_memory"),
    *("vm.nr_hugepages", "vm.zone_reclaim_mode", "vm.swappiness", "vm.max_map_count", "fs.file-max"),
)
LISTED = expression(r"^\W*(?P<name>[a-z][\w.\-]{3,60}) = (?P<value>[0-9]{1,20})\s*$")


@probe(
    "sysctl",
    tells=(Setting,),
    recognise=Recognise(tuple(f"{name} = " for name in SYSCTL), LISTED.pattern, each=True, lines=10),
)
def sysctl(capture: Capture) -> Iterator[Fact]:
    """What `sysctl` prints of those settings."""
    for line in capture.lines():
        if (found := LISTED.match(line.text)) and found["name"] in SYSCTL:
            yield Setting(origin=capture.origin(line), kind="kernel", name=found["name"], value=found["value"])


WARNED = expression(r"^.{0,200}\bWARNING: NUMA balancing is enabled, which may cause errors\. ")


@probe(
    "aiter-numa-warning",
    tells=(Setting,),
    recognise=Recognise(("NUMA balancing is enabled, which",), WARNED.pattern, each=True, lines=0),
)
def aiter_numa_warning(capture: Capture) -> Iterator[Fact]:
    """What AMD's kernel library says of that setting when it is imported."""
    for line in capture.lines():
        if WARNED.match(line.text):
            yield Setting(origin=capture.origin(line), kind="kernel", name="kernel.numa_balancing", value="1")
            return


def _file(path: str, name: str) -> Probe:
    """The probe of a file with one value; of several to choose from, the one in brackets."""

    def read(capture: Capture) -> Iterator[Fact]:
        line = next((line for line in capture.lines() if line.text.strip()), None)
        value = line.text.strip() if line else ""
        chosen = re.search(r"\[(\w{1,40})\]", value)
        if line and (chosen or re.fullmatch(r"[\w.\-]{1,40}", value)):
            value = chosen[1] if chosen else value
            yield Setting(origin=capture.origin(line), kind="kernel", name=name, value=value)

    return probe(f"kernel/{name}", tells=(Setting,), path=path)(read)


numa_balancing = _file("/proc/sys/kernel/numa_balancing", "kernel.numa_balancing")
overcommit = _file("/proc/sys/vm/overcommit_memory", "vm.overcommit_memory")
huge_pages = _file("/proc/sys/vm/nr_hugepages", "vm.nr_hugepages")
zone_reclaim = _file("/proc/sys/vm/zone_reclaim_mode", "vm.zone_reclaim_mode")
transparent = _file("/sys/kernel/mm/transparent_hugepage/enabled", "transparent_hugepage/enabled")
governor = _file("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "scaling_governor")
driver = _file("/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", "scaling_driver")
lowest = _file("/sys/devices/system/cpu/cpu0/cpufreq/scaling_min_freq", "scaling_min_freq")
highest = _file("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "cpuinfo_max_freq")
