"""A whole `config.json` of a model, whose every field counts: alone, or between other lines of a text.

What it cannot know: whether the model's own code reads it as its type does, and what stood above the first key that is
known. A config that is cut is none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from diag.api import Capture, Fact, ModelConfig, Recognise, probe

SIZES = ("hidden_size", "n_embd", "d_model")
OPENING = ('"architectures":', '"model_type":', '"hidden_size":', '"n_embd":', '"d_model":')
CAP = 2**20
"""Characters of a config."""


@probe("model/whole", tells=(ModelConfig,), recognise=Recognise(literals=OPENING, lines=3_000, first=True))
def whole(capture: Capture) -> Iterator[Fact]:
    """The JSON object that states a hidden size, by itself or in the part that is about text."""
    lines = list(capture.lines())
    text = "\n".join(line.text for line in lines).lstrip()
    # Of a longer text the line with the first key opens it, and the bracket may stand above.
    start = "{" + text if text.startswith('"') else text[max(text.find("{"), 0) :]
    try:
        document, _ = json.JSONDecoder().raw_decode(start[:CAP])
    except (ValueError, RecursionError):
        return
    if isinstance(document, dict) and _states(document):
        yield ModelConfig(origin=capture.origin(lines[0]), text=json.dumps(document, separators=(",", ":")))


def _states(document: dict[str, Any]) -> bool:
    """Whether it is a model's."""
    parts = [document, *(one for one in document.values() if isinstance(one, dict))]
    named = "model_type" in document or "architectures" in document
    return named and any(key in one for one in parts for key in SIZES)
