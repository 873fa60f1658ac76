"""All faults, in the order of the page."""

from __future__ import annotations

from .interpreters import INTERPRETERS, LIBRARIES, TORCHES
from .machines import LIMITS, MACHINES, OUTPUTS, SHORT
from .tools import TOOLS

GROUPS = {
    "A tool on PATH": TOOLS,
    "The torch that is examined": TORCHES,
    "The interpreter that is examined": INTERPRETERS,
    "The driver's library": LIBRARIES,
    "The machine": MACHINES,
    "What the system grants": LIMITS,
    "Where the report goes": OUTPUTS,
    "Short children that share a process": SHORT,
}
FAULTS = tuple(fault for group in GROUPS.values() for fault in group)
