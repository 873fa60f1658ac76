"""What NVIDIA's Fabric Manager, and programs that wait for it, say in their logs.

| kind | code | what it is |
|---|---|---|
| `fabric-manager` | `version-mismatch` | it refuses to run beside a driver of another version |
| `fabric-manager` | `no-switch` | it found no NVSwitch |
| `cuda-error` | `802` | CUDA does not start: the system is not yet initialized |

Each is told once; what was said later in the same log is not weighed against it.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Capture, Fact, HardwareEvent, Recognise, expression, probe

SAID = (
    (
        "fabric-manager",
        "version-mismatch",
        expression(
            r"fabric manager NVIDIA GPU driver interface version [0-9.]{3,20} (?:don't|doesn't|don’t) match"
            r"(?: with driver version [0-9.]{3,20})?"
        ),
    ),
    ("fabric-manager", "no-switch", expression(r"query NVSwitch device information .{0,80}NV_WARN_NOTHING_TO_DO")),
    (
        "cuda-error",
        "802",
        expression(
            r"(?:[Ee]rror|CUDA|cuda).{0,200}[Ss]ystem not yet initialized|\bcudaErrorSystemNotReady\b|"
            r"[Ss]ystem not yet initialized \(error 802\)|"
            r"\bCUDA_ERROR_SYSTEM_NOT_READY\b"
        ),
    ),
)


@probe(
    "nvidia/fabric-log",
    tells=(HardwareEvent,),
    recognise=Recognise(
        (
            *("fabric manager NVIDIA GPU driver interface version", "NV_WARN_NOTHING_TO_DO"),
            *("ystem not yet initialized", "cudaErrorSystemNotReady", "CUDA_ERROR_SYSTEM_NOT_READY"),
        ),
        "|".join(words.pattern for _, _, words in SAID),
        each=True,
        lines=20,
    ),
)
def fabric_log(capture: Capture) -> Iterator[Fact]:
    """Each thing that was said, at its first line."""
    told: set[str] = set()
    for line in capture.lines():
        for kind, code, words in SAID:
            if code not in told and (found := words.search(line.text)):
                told.add(code)
                message = found[0][:240]
                yield HardwareEvent(origin=capture.origin(line), kind=kind, vendor="nvidia", code=code, message=message)
