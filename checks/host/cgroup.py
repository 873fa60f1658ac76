"""What a container's control group may take: the files of version 2 and of version 1 at their usual places.

In a container with a namespace of its own these are its limits; on a host the root group of version 2 has no such
files, which says that nothing is limited there. Values are as the file has them: `max` in version 2 and, for memory in
version 1, the largest number of whole pages (9223372036854771712 with pages of 4 KiB) are no limit.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Capture, Fact, Probe, Setting, probe

ROOT = "/sys/fs/cgroup"


def _file(path: str) -> Probe:
    """The probe of one file, whose base name names what it tells."""
    name = path.rpartition("/")[2]

    def read(capture: Capture) -> Iterator[Fact]:
        line = next((line for line in capture.lines() if line.text.strip()), None)
        value = line.text.strip() if line else ""
        if line and len(value) <= 400 and "No such file" not in value:
            yield Setting(origin=capture.origin(line), kind="cgroup", name=name, value=value)

    return probe(f"cgroup/{name}", tells=(Setting,), path=f"{ROOT}/{path}")(read)


memory_max = _file("memory.max")
memory_high = _file("memory.high")
cpu_max = _file("cpu.max")
cpus_effective = _file("cpuset.cpus.effective")
pids_max = _file("pids.max")
v1_memory_limit = _file("memory/memory.limit_in_bytes")
v1_cpu_quota = _file("cpu/cpu.cfs_quota_us")
v1_cpu_period = _file("cpu/cpu.cfs_period_us")
v1_cpus = _file("cpuset/cpuset.cpus")
