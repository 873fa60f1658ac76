"""The one error a user can act on."""

from __future__ import annotations


class DiagError(Exception):
    """Something the user can put right: said in one line, exit code 2. Every other exception is a bug in diag."""
