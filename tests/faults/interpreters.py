"""Interpreters, torches and driver libraries that misbehave, examined by `--python`."""

from __future__ import annotations

from .fault import BOUND, CUT, STOPPED, Fault

PYTHON = "#!/bin/sh\nPYTHONPATH=$BOX/torch:$PYTHONPATH LD_LIBRARY_PATH=$BOX/libraries exec $PYTHON \"$@\"\n"
EXAMINED = ("--python", "$BOX/bin/python")
IMPORT_FAILS = ("torch/import-fails",)
SEGFAULT = "import ctypes\nctypes.string_at(0)"
HUNGRY = "held = []\nwhile True: held.append(b'x' * 2**26)"
DAEMON = """\
import os, time
if not os.fork():
    os.setsid()
    if not os.fork():
        time.sleep(30)
    os._exit(0)
raise ImportError("it left a daemon")
"""


def torch(name: str, body: str, reason: str, **more: object) -> Fault:
    """A fault of a torch that is installed, by the code that its import runs."""
    files = {
        "bin/python": PYTHON,
        "torch/torch/__init__.py": body,
        "torch/torch/version.py": "__version__ = '2.9.1+cu128'\ncuda = '12.8'\nhip = None\ndebug = False\n",
        "torch/torch-2.9.1.dist-info/METADATA": "Metadata-Version: 2.1\nName: torch\nVersion: 2.9.1\n",
    }
    usual = {"files": files, "options": EXAMINED, "unavailable": {"torch": reason}, "exit": 1, "finds": IMPORT_FAILS}
    return Fault(f"torch {name}", **{**usual, **more})  # type: ignore[arg-type]


def endless(name: str, body: str, **more: object) -> Fault:
    """The same, of one whose import comes to no end."""
    return torch(name, body, STOPPED, options=(*EXAMINED, *BOUND), exit=4, finds=(), incomplete=CUT, **more)


def interpreter(name: str, text: str, reason: str, **more: object) -> Fault:
    """A fault of the interpreter itself."""
    asked = dict.fromkeys(("packages", "torch"), reason)
    usual = {"files": {"bin/python": text}, "options": EXAMINED, "unavailable": asked}
    return Fault(f"the interpreter {name}", **{**usual, "incomplete": "the interpreter did not answer", **more})  # type: ignore[arg-type]


def nvml(name: str, code: str, reason: str, **more: object) -> Fault:
    """A fault of NVIDIA's management library, compiled here and loaded by the real `pynvml`."""
    made = "cc -shared -fPIC -o $BOX/libraries/libnvidia-ml.so.1 $BOX/nvml.c"
    files = {"bin/python": PYTHON, "nvml.c": f"#include <unistd.h>\nint nvmlInitWithFlags(unsigned f) {{ {code} }}\n"}
    usual = {"files": files, "made": made, "options": EXAMINED, "needs": ("cc", "pynvml")}
    return Fault(f"NVML {name}", **{**usual, "unavailable": {"nvml": reason}, **more})  # type: ignore[arg-type]


TORCHES = (
    torch("raises", "raise RuntimeError('spoiled')", "RuntimeError: spoiled"),
    torch("misses a library", "raise ImportError('libcudart.so.12: cannot open')", "ImportError: libcudart.so.12"),
    torch("has an error of syntax", "def :", "SyntaxError"),
    torch("exits with 0", "import os\nos._exit(0)", "it ended without its document"),
    torch("exits with 3", "raise SystemExit(3)", "exit code 3"),
    torch("dies by SIGSEGV", SEGFAULT, "killed by SIGSEGV"),
    torch("dies by SIGABRT", "import os\nos.abort()", "killed by SIGABRT"),
    torch("recurses for ever", "def f(): f()\nf()", "RecursionError"),
    torch("allocates without end", HUNGRY, "killed: it held more than 4 GiB of memory", needs=("memory",)),
    torch("prints 100 MB and raises", "print('x' * 10**8)\nraise ImportError('loud')", "ImportError: loud"),
    torch("leaves a daemon and raises", DAEMON, "ImportError: it left a daemon", outlives="_env.py"),
    torch("prints 100 MB", "print('x' * 10**8)", "AttributeError", exit=4, finds=()),
    endless("hangs", "import time\ntime.sleep(600)"),
    endless("hangs and ignores SIGTERM", "import signal, time\nsignal.signal(15, signal.SIG_IGN)\ntime.sleep(600)"),
    endless("computes for ever", "while True: pass"),
    endless("prints for ever", "while True: print('x' * 79)"),
    torch("has metadata that are no text", "", "AttributeError", made=r"printf '\377\376' >$BOX/torch/torch-2.9.1.dist-info/METADATA"),
    torch("has metadata without a name", "", "", made="echo >$BOX/torch/torch-2.9.1.dist-info/METADATA"),
    torch("has metadata that are a folder", "", "", made="cd $BOX/torch/*info; rm METADATA; mkdir METADATA"),
)

INTERPRETERS = (
    interpreter("hangs", "#!/bin/sh\nsleep 600\n", STOPPED, options=(*EXAMINED, *BOUND), incomplete=CUT),
    interpreter("is no Python", "#!/bin/sh\necho hello\n", "it ended without its document"),
    interpreter("fails", "#!/bin/sh\necho broken >&2\nexit 127\n", "exit code 127: broken"),
    interpreter("dies by SIGSEGV", "#!/bin/sh\nkill -SEGV $$\n", "killed by SIGSEGV"),
    interpreter("prints for ever", "#!/bin/sh\nexec yes\n", STOPPED, options=(*EXAMINED, *BOUND), incomplete=CUT),
    interpreter("names an interpreter that is missing", "#!/no/such\n", "OSError: "),
    interpreter("has no standard library", "#!/bin/sh\nPYTHONHOME=/no/such exec $PYTHON \"$@\"\n", "exit code 1"),
    Fault("the interpreter is missing", options=EXAMINED, exit=2, document="", stderr="--python", writes=()),
)

LIBRARIES = (
    nvml("dies by SIGSEGV", "*(volatile int *)0 = 1; return 0;", "killed by SIGSEGV"),
    nvml("hangs", "for (;;) sleep(600);", STOPPED, options=(*EXAMINED, *BOUND), incomplete=CUT),
    nvml("does not fit the driver", "return 18;", "mismatch"),
    nvml("knows no error that it returns", "return 12345;", "Unknown Error"),
    nvml("starts and has no other function", "return 0;", "Function Not Found"),
    nvml("ends its process", "_exit(0);", "it ended without its document"),
)
