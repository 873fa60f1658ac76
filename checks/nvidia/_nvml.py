"""What NVML tells through `pynvml` (of nvidia-ml-py), in a process of its own that may hang or die of it.

Prints `diag/nvml/1`. Each field is asked for on its own: one that a device or an older library does not know is named
under `errors` with the library's words. Where the module or the library is not there, `error` says so of the whole.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

if __name__ == "__main__":
    sys.path.pop(0)

MIB = 2**20
MODES = ("Disabled", "Enabled")
COMPUTE = ("Default", "Exclusive_Thread", "Prohibited", "Exclusive_Process")
REASONS = (
    *((0x4, "sw_power_cap"), (0x8, "hw_slowdown"), (0x10, "sync_boost"), (0x20, "sw_thermal_slowdown")),
    *((0x40, "hw_thermal_slowdown"), (0x80, "hw_power_brake_slowdown"), (0x100, "display_clock_setting")),
)
Ask = Callable[[Any, Any], Any]
DEVICE: dict[str, Ask] = {
    "name": lambda n, h: text(n.nvmlDeviceGetName(h)),
    "address": lambda n, h: text(n.nvmlDeviceGetPciInfo(h).busId),
    "memory_mib": lambda n, h: n.nvmlDeviceGetMemoryInfo(h).total // MIB,
    "architecture": lambda n, h: "sm_{}{}".format(*n.nvmlDeviceGetCudaComputeCapability(h)),
}
READINGS: dict[str, Ask] = {
    "memory.used": lambda n, h: n.nvmlDeviceGetMemoryInfo(h).used // MIB,
    "memory.free": lambda n, h: n.nvmlDeviceGetMemoryInfo(h).free // MIB,
    "utilization": lambda n, h: n.nvmlDeviceGetUtilizationRates(h).gpu,
    "temperature": lambda n, h: n.nvmlDeviceGetTemperature(h, n.NVML_TEMPERATURE_GPU),
    "power": lambda n, h: n.nvmlDeviceGetPowerUsage(h) / 1000,
    "power.limit": lambda n, h: n.nvmlDeviceGetEnforcedPowerLimit(h) / 1000,
    "power.limit.default": lambda n, h: n.nvmlDeviceGetPowerManagementDefaultLimit(h) / 1000,
    "clock.sm": lambda n, h: n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_SM),
    "clock.sm.max": lambda n, h: n.nvmlDeviceGetMaxClockInfo(h, n.NVML_CLOCK_SM),
    "clock.memory": lambda n, h: n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_MEM),
    "persistence": lambda n, h: ("Off", "On")[n.nvmlDeviceGetPersistenceMode(h)],
    "compute.mode": lambda n, h: COMPUTE[n.nvmlDeviceGetComputeMode(h)],
    "mig.mode": lambda n, h: MODES[n.nvmlDeviceGetMigMode(h)[0]],
    "ecc.mode": lambda n, h: MODES[n.nvmlDeviceGetEccMode(h)[0]],
    "ecc.uncorrected": lambda n, h: ecc(n, h, "UNCORRECTED", "VOLATILE"),
    "ecc.corrected": lambda n, h: ecc(n, h, "CORRECTED", "VOLATILE"),
    "ecc.uncorrected.total": lambda n, h: ecc(n, h, "UNCORRECTED", "AGGREGATE"),
    "ecc.corrected.total": lambda n, h: ecc(n, h, "CORRECTED", "AGGREGATE"),
    "retired.pending": lambda n, h: pending(n, h),
    "remapped.failure": lambda n, h: ("No", "Yes")[n.nvmlDeviceGetRemappedRows(h)[3]],
    "throttle": lambda n, h: reasons(n.nvmlDeviceGetCurrentClocksThrottleReasons(h)),
    "pcie.generation": lambda n, h: n.nvmlDeviceGetCurrPcieLinkGeneration(h),
    "pcie.generation.max": lambda n, h: n.nvmlDeviceGetMaxPcieLinkGeneration(h),
    "pcie.width": lambda n, h: n.nvmlDeviceGetCurrPcieLinkWidth(h),
    "pcie.width.max": lambda n, h: n.nvmlDeviceGetMaxPcieLinkWidth(h),
    "firmware": lambda n, h: text(n.nvmlDeviceGetVbiosVersion(h)),
}


def text(said: Any) -> str:
    """Words of the library, which older modules give as bytes."""
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)


def ecc(nvml: Any, handle: Any, kind: str, since: str) -> int:
    """A count of memory errors."""
    counted = nvml.nvmlDeviceGetTotalEccErrors(
        handle, getattr(nvml, f"NVML_MEMORY_ERROR_TYPE_{kind}"), getattr(nvml, f"NVML_{since}_ECC")
    )
    return int(counted)


def pending(nvml: Any, handle: Any) -> str:
    """Whether pages or rows wait for a reset; a device has the one or the other."""
    try:
        return ("No", "Yes")[nvml.nvmlDeviceGetRemappedRows(handle)[2]]
    except nvml.NVMLError:
        return ("No", "Yes")[nvml.nvmlDeviceGetRetiredPagesPendingStatus(handle)]


def reasons(mask: int) -> list[str]:
    """The reasons for a lower clock that are active, but for idleness and a chosen clock."""
    return [name for bit, name in REASONS if mask & bit]


def processes(nvml: Any, handle: Any) -> list[dict[str, Any]]:
    """The processes that compute on a device; of other users' only what the library tells."""
    found = []
    for one in nvml.nvmlDeviceGetComputeRunningProcesses(handle):
        name, _ = guarded(partial(nvml.nvmlSystemGetProcessName, one.pid))
        used = one.usedGpuMemory
        found.append({"pid": one.pid, "name": text(name or ""), "memory_mib": used // MIB if used else None})
    return found


def guarded(ask: Callable[[], Any]) -> tuple[Any, str]:
    """An answer of the library, or what it said instead."""
    try:
        return ask(), ""
    except Exception as error:
        return None, text(error) or type(error).__name__


def device(nvml: Any, index: int) -> dict[str, Any]:
    """One device: what it is, what it reads, and what could not be asked."""
    told: dict[str, Any] = {"index": index, "readings": {}, "errors": {}}
    handle, error = guarded(partial(nvml.nvmlDeviceGetHandleByIndex, index))
    if handle is None:
        return {**told, "error": error}
    for fields, into in ((DEVICE, told), (READINGS, told["readings"])):
        for name, ask in fields.items():
            value, error = guarded(partial(ask, nvml, handle))
            if error:
                told["errors"][name] = error
            else:
                into[name] = value
    told["processes"], error = guarded(partial(processes, nvml, handle))
    return {**told, "errors": {**told["errors"], **({"processes": error} if error else {})}}


def asked(document: dict[str, Any]) -> None:
    """Fill the document, as far as the module and the library are there."""
    try:
        pynvml = import_module("pynvml")
    except Exception as refusal:
        document["error"] = f"{type(refusal).__name__}: {refusal}"
        return
    if refused := guarded(pynvml.nvmlInit)[1]:
        document["error"] = refused
        return
    document["driver"], _ = guarded(lambda: text(pynvml.nvmlSystemGetDriverVersion()))
    cuda, _ = guarded(pynvml.nvmlSystemGetCudaDriverVersion)
    document["cuda"] = f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else None
    count, error = guarded(pynvml.nvmlDeviceGetCount)
    document["devices"] = [device(pynvml, index) for index in range(count or 0)]
    document.update({"error": error} if error else {})


def main() -> None:
    """Print the document."""
    document: dict[str, Any] = {"schema": "diag/nvml/1"}
    asked(document)
    print(json.dumps(document))  # noqa: T201


if __name__ == "__main__":
    main()
