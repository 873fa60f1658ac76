"""Interpreters, torches and driver libraries that misbehave, examined by `--python`."""

from __future__ import annotations

from .fault import BOUND, CUT, KEY, STOPPED, Fault

PYTHON = """\
#!/bin/sh
PYTHONPATH=$BOX/torch${PYTHONPATH:+:$PYTHONPATH} LD_LIBRARY_PATH=$BOX/libraries exec $OWN "$@"
"""
EXAMINED = ("--python", "$BOX/bin/python")
BOUNDED = (*EXAMINED, *BOUND)
VERSION = "from . import version\n__version__ = version.__version__\n"
METADATA = "torch/torch-2.9.1.dist-info/METADATA"
SLEEP = "import time\ntime.sleep(600)"
SEGFAULT = "import os\nos.kill(os.getpid(), 11)"
HUNGRY = "held = []\nwhile True: held.append(b'x' * 2**24)"
DAEMON = """\
import os, time
if not os.fork():
    os.setsid()
    if not os.fork():
        time.sleep(30)
    os._exit(0)
raise ImportError("it left a daemon")
"""
SMALLER = ("-c", "from diag import spawn; spawn.MEMORY = 2**28; from diag.cli import main; main()")
NO_TORCH = "raise ModuleNotFoundError(\"No module named 'torch'\")"
NO_LIBRARY = '#!/bin/sh\nPYTHONHOME=$BOX/none/such exec $OWN "$@"\n'


def torch(name: str, body: str, reason: str, **more: object) -> Fault:
    """A fault of a torch that is installed, by the code that its import runs."""
    files = {
        "bin/python": PYTHON,
        "torch/torch/__init__.py": body,
        "torch/torch/version.py": "__version__ = '2.9.1+cu128'\ncuda = '12.8'\nhip = None\ndebug = False\n",
        METADATA: "Metadata-Version: 2.1\nName: torch\nVersion: 2.9.1\n",
    }
    usual = {"files": files, "options": EXAMINED, "unavailable": {"torch": reason}, "answered": ("packages",)}
    return Fault(f"torch {name}", **{**usual, "exit": 1, "finds": ("torch/import-fails",), **more})  # type: ignore[arg-type]


def endless(name: str, body: str, **more: object) -> Fault:
    """The same, of one whose import comes to no end."""
    return torch(name, body, STOPPED, options=BOUNDED, exit=4, finds=(), incomplete=CUT, **more)


def odd(name: str, made: str, *, soak: bool = False) -> Fault:
    """The same, of one whose metadata are spoiled while its import goes well, if not far."""
    bare = {"torch/devices": "AttributeError: module 'torch' has no attribute '_C'"}
    made = f"cd $BOX/torch/*info; {made}"
    return torch(name, VERSION, "", made=made, finds=("torch/devices-crash",), unavailable=bare, soak=soak)


def interpreter(name: str, text: str, reason: str, **more: object) -> Fault:
    """A fault of the interpreter itself."""
    asked = dict.fromkeys(("packages", "torch"), reason)
    usual = {"files": {"bin/python": text}, "options": EXAMINED, "unavailable": asked}
    return Fault(f"the interpreter {name}", **{**usual, "incomplete": "the interpreter did not answer", **more})  # type: ignore[arg-type]


def nvml(name: str, code: str, reason: str, **more: object) -> Fault:
    """A fault of NVIDIA's management library, compiled here and loaded by the real `pynvml`."""
    made = "cc -shared -fPIC -o $BOX/libraries/libnvidia-ml.so.1 $BOX/nvml.c"
    files = {
        "bin/python": PYTHON,
        "nvml.c": f"#include <signal.h>\n#include <unistd.h>\nint nvmlInitWithFlags(unsigned f) {{ {code} }}\n",
    }
    usual = {"files": files, "made": made, "options": EXAMINED, "needs": ("cc", "pynvml"), "answered": ("packages",)}
    return Fault(f"NVML {name}", **{**usual, "unavailable": {"nvml": reason}, **more})  # type: ignore[arg-type]


TORCHES = (
    torch("raises", "raise RuntimeError('spoiled')", "RuntimeError: spoiled", first=True),
    torch("misses a library", "raise ImportError('libcudart.so.12: cannot open')", "ImportError: libcudart.so.12"),
    torch("has an error of syntax", "def :", "SyntaxError"),
    torch("exits with 0", "import os\nos._exit(0)", "it ended without its document"),
    torch("exits with 3", "raise SystemExit(3)", "exit code 3", soak=True),
    torch("dies by SIGSEGV", SEGFAULT, "killed by SIGSEGV"),
    torch("dies by SIGABRT", "import os\nos.abort()", "killed by SIGABRT", soak=True),
    torch("recurses for ever", "def f(): f()\nf()", "RecursionError"),
    torch(
        "stops itself",
        "import os\nos.kill(os.getpid(), 19)",
        STOPPED,
        options=BOUNDED,
        exit=4,
        finds=(),
        incomplete=CUT,
        soak=True,
    ),
    torch("prints 100 MB and raises", "print('x' * 10**8)\nraise ImportError('loud')", "ImportError: loud"),
    torch("leaves a daemon and raises", DAEMON, "ImportError: it left a daemon", outlives="torch_env.py"),
    endless("hangs", SLEEP),
    endless("hangs and ignores SIGTERM", f"import signal\nsignal.signal(15, signal.SIG_IGN)\n{SLEEP}", soak=True),
    endless("computes for ever", "while True: pass", soak=True),
    endless("prints for ever", "while True: print('x' * 79)"),
    endless("starts processes for ever", "import os, time\nwhile os.fork() or time.sleep(1): time.sleep(0.01)"),
    torch(
        "allocates without end (the bound set to 256 MiB)",
        HUNGRY,
        "killed: it held more than 256 MiB of memory",
        program=SMALLER,
        mib=2000,
    ),
    torch(
        "allocates without end",
        HUNGRY,
        "killed: it held more than 4096 MiB of memory",
        soak=True,
        seconds=60,
        mib=6000,
    ),
    odd("has metadata that are no text", r"printf '\377\376' >METADATA"),
    odd("has metadata without a name", "echo >METADATA", soak=True),
    odd("has metadata that are a folder", "rm METADATA; mkdir METADATA"),
    odd("has no metadata", "rm METADATA", soak=True),
    Fault(
        "torch is for the CPU alone (the real one)",
        options=("--python", "$OWN"),
        needs=("torch",),
        answered=("torch",),
        seconds=30,
        mib=4000,
    ),
)

INTERPRETERS = (
    interpreter("hangs", "#!/bin/sh\nsleep 600\n", STOPPED, options=BOUNDED, incomplete=CUT),
    interpreter("prints for ever", "#!/bin/sh\nexec yes\n", STOPPED, options=BOUNDED, incomplete=CUT, soak=True),
    interpreter("is no Python", "#!/bin/sh\necho hello\n", "it ended without its document"),
    interpreter("prints JSON of its own", "#!/bin/sh\necho '{\"schema\": 1}'\n", "it ended without its document"),
    interpreter("fails", "#!/bin/sh\necho broken >&2\nexit 127\n", "exit code 127: broken"),
    interpreter("dies by SIGSEGV", "#!/bin/sh\nkill -SEGV $$\n", "killed by SIGSEGV", soak=True),
    interpreter("names an interpreter that is missing", "#!$BOX/none/such\n", "OSError: "),
    interpreter("has no standard library", NO_LIBRARY, "exit code 1: ModuleNotFoundError: No module named 'encodings'"),
    Fault(
        "the interpreter has a name that is no text",
        files={"bin/p\udcff": PYTHON, "torch/torch.py": NO_TORCH},
        options=("--python", "$BOX/bin/p\udcff"),
        answered=("packages",),
    ),
    Fault(
        "the interpreter has a name that is no text, and cannot be started",
        files={"bin/p\udcff": "#!$BOX/none/such\n"},
        options=("--python", "$BOX/bin/p\udcff"),
        unavailable={"packages": "OSError: "},
        incomplete="the interpreter did not answer",
    ),
    Fault(
        "the interpreter has a name that is no text, and a bundle is made",
        files={"bin/p\udcff": PYTHON, "torch/torch.py": NO_TORCH},
        command=("bundle", "-o", "b.tar.gz"),
        options=("--python", "$BOX/bin/p\udcff"),
        exit=0,
        document="",
        incomplete="",
        writes=("cwd/b.tar.gz", KEY),
    ),
    Fault(
        "the interpreter is missing", options=EXAMINED, exit=2, document="", incomplete="", stderr="--python", writes=()
    ),
)

LIBRARIES = (
    nvml("dies by SIGSEGV", "kill(getpid(), 11); return 0;", "killed by SIGSEGV"),
    nvml("hangs", "for (;;) sleep(600);", STOPPED, options=BOUNDED, incomplete=CUT),
    nvml("does not fit the driver", "return 18;", "RM has detected an NVML/RM version mismatch."),
    nvml("knows no error that it returns", "return 12345;", "NVML Error with code 12345", soak=True),
    nvml("starts and has no other function", "return 0;", "Function Not Found"),
    nvml("ends its process", "_exit(0);", "it ended without its document"),
)
