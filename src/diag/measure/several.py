"""Several short children in one process, which starts once: `several.py PROGRAM …` prints a line of JSON for each.

It tells what a program printed (`stdout`) and how it failed (`error`, empty where it did not), and it is out before the
next program starts: one that never ends, or takes the process with it, leaves the answers of those before it.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys


def ran(program: str) -> dict[str, str]:
    """What a program printed, run as a script of its own."""
    printed, error, path = io.StringIO(), "", list(sys.path)
    sys.argv, sys.path[:0] = [program], [os.path.dirname(program)]
    try:
        with open(program, encoding="utf-8") as file, contextlib.redirect_stdout(printed):
            exec(compile(file.read(), program, "exec"), {"__name__": "__main__", "__file__": program})
    except BaseException as problem:
        error = f"{type(problem).__name__}: {problem}"
    sys.path[:] = path
    return {"stdout": printed.getvalue(), "error": error}


if __name__ == "__main__":
    for program in sys.argv[1:]:
        print(json.dumps({"program": program, **ran(program)}), flush=True)
