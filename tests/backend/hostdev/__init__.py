"""A device for torch made of this host's memory and one worker thread; importing it is what loads a plug-in.

Each operator that a backend needs a kernel for has a switch with five places:

* `native`: runs in the queue, the launch returns before it is done;
* `fallback`: the vendor's boxed `at::native::cpu_fallback`, registered for this operator;
* `hidden_copy`: a kernel like any other to the dispatcher, which goes through `.cpu()` and `copy_`;
* `hidden_raw`: the same with copies that the dispatcher never sees;
* `missing`: no kernel, so the backend-wide fallback takes it if `everywhere` is on.

`truth` is counted inside the kernels. Variables of the environment, read when it is imported or used:

* HOSTDEV_NAME: the device's name (`hostdev`); HOSTDEV_DEVICES: how many there are (1);
* HOSTDEV_MEMORY: bytes of each (8 GiB), of which HOSTDEV_QUOTA can be had in all and HOSTDEV_PIECE at once (all);
* HOSTDEV_SHARED: a file in which processes count what they hold of the devices together (each is alone), and
  HOSTDEV_CONTEXT: what a process takes by using a device at all (0);
* HOSTDEV_LINK: bytes/s between host and device (4e9; 0: no cost);
* HOSTDEV_SWITCHES: JSON, operator to place; HOSTDEV_EVERYWHERE=1: the backend-wide fallback is on;
* HOSTDEV_TRUTH: a file that gets the truth as JSON when the process ends;
* HOSTDEV_REFUSE_GENERATOR=1: no kernel takes a generator;
* HOSTDEV_SEGFAULT, HOSTDEV_HANG, HOSTDEV_ALLOCATE, HOSTDEV_WRONG: operators, with commas between them, that die,
  never finish, take memory without end, or get one element wrong.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import json
import os
import sys
from pathlib import Path

import torch
from hostbuild import library

PLACES = ("native", "fallback", "hidden_copy", "hidden_raw", "missing")
NAME = os.environ.get("HOSTDEV_NAME") or "hostdev"

_device = ctypes.CDLL(str(library()))
_device.hostdev_memory.restype = ctypes.c_int64


def _text(function: str, *arguments: object) -> str:
    call = getattr(_device, f"hostdev_{function}")
    call.restype = ctypes.c_char_p
    said = call(*(one.encode() if isinstance(one, str) else one for one in arguments)).decode()
    if said.startswith("!"):
        raise RuntimeError(said[1:])
    return said


def turn(operator: str, place: str) -> None:
    """Put the switch of an operator (`aten::sort.values_stable`) into a place; composite ones get one with this."""
    _text("turn", operator, place)


def switches() -> dict[str, str]:
    """Each operator that has a switch, and the switch's place."""
    return dict(line.split() for line in _text("switches").splitlines())


def everywhere(on: bool) -> None:
    """Turn the backend-wide fallback on or off."""
    _text("everywhere", int(on))


def truth() -> dict[str, dict[str, int]]:
    """How often each operator was launched, was done by the device, and was done by the CPU."""
    rows = [line.split() for line in _text("truth").splitlines()]
    return {name: dict(zip(("launched", "native", "cpu"), map(int, counts), strict=True)) for name, *counts in rows}


def forget() -> None:
    """Count from zero."""
    _device.hostdev_forget()


def hold() -> None:
    """Let the queue do nothing until `go`: what waits for the device waits as long."""
    _device.hostdev_hold(1)


def go() -> None:
    """Let the queue work again."""
    _device.hostdev_hold(0)


def link(rate: int) -> None:
    """Set what the link carries, in bytes/s; 0 costs nothing."""
    _device.hostdev_link(ctypes.c_int64(rate))


def _index(device: object = None) -> int:
    given = torch.device(NAME, device) if isinstance(device, int) else torch.device(device or NAME)
    return current_device() if given.index is None else given.index


def is_available() -> bool:
    return device_count() > 0


def device_count() -> int:
    return int(_device.hostdev_devices())


def current_device() -> int:
    return int(_device.hostdev_device())


def set_device(device: object) -> None:
    _device.hostdev_set_device(_index(device))


def synchronize(device: object = None) -> None:
    _text("synchronize")


def mem_get_info(device: object = None) -> tuple[int, int]:
    return _device.hostdev_memory(_index(device), 1), _device.hostdev_memory(_index(device), 0)


def memory_allocated(device: object = None) -> int:
    free, total = mem_get_info(device)
    return total - free


def empty_cache() -> None: ...


def manual_seed_all(seed: int) -> None:
    _device.hostdev_seed(ctypes.c_int64(seed))


manual_seed = manual_seed_all


def is_initialized() -> bool:
    return True


def _is_in_bad_fork() -> bool:
    return False


def get_amp_supported_dtype() -> list[torch.dtype]:
    return [torch.float16, torch.bfloat16]


def _leave() -> None:
    go()
    # The worker must not be at work while the libraries that it calls are taken down.
    if "HOSTDEV_HANG" not in os.environ:
        with contextlib.suppress(RuntimeError):
            synchronize()
    if "HOSTDEV_TRUTH" in os.environ:
        Path(os.environ["HOSTDEV_TRUTH"]).write_text(json.dumps(truth()))


if NAME != "privateuseone":
    torch.utils.rename_privateuse1_backend(NAME)
torch._register_device_module(NAME, sys.modules[__name__])
torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
for _operator, _place in json.loads(os.environ.get("HOSTDEV_SWITCHES") or "{}").items():
    turn(_operator, _place)
everywhere(os.environ.get("HOSTDEV_EVERYWHERE") == "1")
atexit.register(_leave)
