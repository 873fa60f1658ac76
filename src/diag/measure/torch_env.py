"""What torch says of itself and its devices, in a process of its own that may die of it.

Prints `diag/torch-env/1`. A torch that raises on import is an answer, too: `error` names the exception.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

if __name__ == "__main__":
    sys.path.pop(0)


def build(torch: Any) -> dict[str, Any]:
    """The build: version, the runtimes it was built for, architectures."""
    words = torch.version
    return {
        "version": torch.__version__,
        "cuda": getattr(words, "cuda", None),
        "hip": getattr(words, "hip", None),
        "xpu": getattr(words, "xpu", None),
        "debug": bool(getattr(words, "debug", False)),
        "git_version": getattr(words, "git_version", None),
        "architectures": guarded(lambda: torch.cuda.get_arch_list(), []),
    }


def devices(torch: Any) -> tuple[str, list[dict[str, Any]]]:
    """Each device of the first backend that has some: name, capability, memory in bytes."""
    for backend in ("cuda", "xpu"):
        module = getattr(torch, backend, None)
        if module is not None and guarded(module.is_available, False):
            found = range(guarded(module.device_count, 0))
            return backend, [guarded(partial(device, module, index), {"index": index}) for index in found]
    return "", []


def device(module: Any, index: int) -> dict[str, Any]:
    """One device as torch sees it."""
    properties = module.get_device_properties(index)
    major, minor = getattr(properties, "major", None), getattr(properties, "minor", None)
    architecture = getattr(properties, "gcnArchName", "") or (f"sm_{major}{minor}" if major is not None else "")
    return {
        "index": index,
        "name": properties.name,
        "architecture": architecture.split(":")[0],
        "memory_bytes": properties.total_memory,
    }


def guarded(ask: Callable[[], Any], otherwise: Any) -> Any:
    """An answer of torch, or the other value where asking raises."""
    try:
        return ask()
    except Exception:
        return otherwise


def main() -> None:
    """Print the document."""
    document: dict[str, Any] = {"schema": "diag/torch-env/1", "executable": sys.executable}
    start = time.perf_counter()
    try:
        import torch
    except Exception as error:
        document["error"] = f"{type(error).__name__}: {error}"
        print(json.dumps(document))
        return
    document["import_seconds"] = round(time.perf_counter() - start, 3)
    document["build"] = build(torch)
    document["available"] = bool(guarded(torch.cuda.is_available, False))
    document["backend"], document["devices"] = devices(torch)
    print(json.dumps(document))


if __name__ == "__main__":
    main()
