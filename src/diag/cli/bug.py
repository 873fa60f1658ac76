"""What diag says of its own bug: a block to paste into an issue, with nothing of the user's in it."""

from __future__ import annotations

import os
import platform
import sys
import traceback

from diag import __version__
from diag.redact import Known, Redactor
from diag.text import plain

TITLE = "diag met a bug of its own. Please report it with this block; names and addresses in it are replaced."


def block(error: BaseException) -> str:
    """The redacted Markdown block for an exception."""
    trace = "".join(traceback.format_exception(error))
    facts = f"diag {__version__}, Python {platform.python_version()}, {platform.platform()}"
    home = os.path.expanduser("~")
    known = Known(hosts=(platform.node(),), users=(os.environ.get("USER", ""),), homes=(home,))
    typed = " ".join(sys.argv[1:])
    text = f"{TITLE}\n\n```\n{facts}\ndiag {typed}\n\n{trace}```"
    try:
        return Redactor(os.urandom(16), known).text(plain(text).replace("\r", ""))
    except Exception:
        return f"{TITLE}\n\n```\n{facts}\n{type(error).__name__}, and the exit gate failed: nothing more is shown\n```"
