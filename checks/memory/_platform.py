"""What vLLM's platform takes for the memory of its first device: its defaults go by that.

Prints `diag/memory-platform/1`. The platform of a plug-in is found as the engine finds it; nothing is allocated. What
the engine and its plug-ins print meanwhile goes to standard error.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any

if __name__ == "__main__":
    sys.path.pop(0)

ENGINE = "vllm"
PAGES = ("SC_PHYS_PAGES", "SC_PAGE_SIZE")


def main() -> None:
    """Print the document."""
    out = os.dup(1)
    os.dup2(2, 1)
    document = {"schema": "diag/memory-platform/1", "engine": ENGINE, **told()}
    os.write(out, json.dumps(document).encode() + b"\n")


def told() -> dict[str, Any]:
    """Its release, its platform and the bytes that this tells, or why it tells none."""
    if find_spec(ENGINE) is None:
        return {"error": f"No module named '{ENGINE}'"}
    found: dict[str, Any] = {"host_total": os.sysconf(PAGES[0]) * os.sysconf(PAGES[1]), "error": ""}
    try:
        found["version"] = str(getattr(import_module(ENGINE), "__version__", ""))
        platform = import_module(f"{ENGINE}.platforms").current_platform
        kind = type(platform)
        found["platform"] = f"{kind.__module__}.{kind.__qualname__}"
        found["total"] = int(platform.get_device_total_memory())
    except Exception as error:
        found["error"] = f"{type(error).__name__}: {' '.join(str(error).split())}"[:500]
    return found


if __name__ == "__main__":
    main()
