"""How fast one core copies memory: `host_memory.py MIB REPEATS` prints `diag/host-memory/1`.

`seconds` is the fastest of the repeats, each of which copies `bytes` once.
"""

from __future__ import annotations

import json
import sys
import time


def main() -> None:
    """Copy, and print the document."""
    mib, repeats = int(sys.argv[1]), int(sys.argv[2])
    source, target = memoryview(bytearray(mib << 20)), memoryview(bytearray(mib << 20))
    target[:] = source
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        target[:] = source
        best = min(best, time.perf_counter() - start)
    print(json.dumps({"schema": "diag/host-memory/1", "bytes": mib << 20, "repeats": repeats, "seconds": best}))


if __name__ == "__main__":
    main()
