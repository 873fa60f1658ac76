"""`diag ops --hot-fix`: write out a kernel that takes the place of an operator's fallback, for servers to load."""

from __future__ import annotations

import sys
from pathlib import Path

from diag import plugins
from diag.errors import DiagError

NAME = "exponential_on_device"
SOURCE = Path("checks/operators") / f"_{NAME}.py"
ABOUT = f"Metadata-Version: 2.1\nName: {NAME}\nVersion: 1\n"
ENTRIES = f"[vllm.general_plugins]\n{NAME} = {NAME}:register\n\n[sglang.srt.plugins]\n{NAME} = {NAME}:register\n"
"""What lets vLLM's and SGLang's processes find it where the folder is on PYTHONPATH, without an installation."""
USE = """\
{folder}: exponential_ made of uniform_, log_, neg_ and clamp_min_, on the accelerator.
Test it:    python {folder}/{name}.py --device NAME --import PLUGIN
See it:     PYTHONPATH={folder} diag ops --import PLUGIN --import {name}
Serve:      PYTHONPATH={folder} vllm serve …, or SGLang where it has plug-ins (where VLLM_PLUGINS or SGLANG_PLUGINS
            is set, add {name})
"""


def run(folder: Path) -> int:
    """Write the folder, and say how it is used; what exists already is refused."""
    about = folder / f"{NAME}-1.dist-info"
    files = {
        folder / f"{NAME}.py": (plugins.bundled() / SOURCE).read_text("utf-8"),
        about / "METADATA": ABOUT,
        about / "entry_points.txt": ENTRIES,
    }
    if there := [path for path in files if path.exists()]:
        raise DiagError(f"{there[0]} is there already")
    try:
        about.mkdir(parents=True, exist_ok=True)
        for path, content in files.items():
            path.write_text(content, "utf-8")
    except OSError as error:
        raise DiagError(f"cannot write {folder}: {error.strerror or error}") from error
    sys.stdout.write(USE.format(folder=folder, name=NAME))
    return 0
