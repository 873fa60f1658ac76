"""The words that name parts of a set: `NAME==VERSION` for a distribution, `NAME=VALUE` for any other part."""

from __future__ import annotations

import re

WORD = re.compile(
    r"(?P<name>[A-Za-z][\w.-]{0,80})(?P<sign>===?|=)(?P<version>[\w][^\s=<>]{0,120}(?: [\w()\[\]/.+@-]{1,30}){0,11})"
)
MOST = 200
"""Words of one set."""
