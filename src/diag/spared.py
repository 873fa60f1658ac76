"""Measurements that need not be started: the text of another probe shows already what would come of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from diag.capture import Capture

ALONE = ("torch sees no accelerator", "torch sees one accelerator: there is nobody to exchange with")
"""Why there is nothing to measure, by the number of devices."""


@dataclass(frozen=True)
class Spared:
    """Why a measurement is needless, by what the probe `by` told before it; empty where it is not."""

    by: str
    why: Callable[[Capture], str]


def by_torch(least: int) -> Spared:
    """Spared where torch does not come up, or sees fewer devices than this."""
    return Spared("torch", partial(_torch, least))


def _torch(least: int, capture: Capture) -> str:
    document = capture.document("diag/torch-env/1")
    if document is None:
        return capture.failed or "torch ended without a word"
    devices = document.get("devices", ())
    return document.get("error") or document.get("unseen") or (ALONE[len(devices)] if len(devices) < least else "")
