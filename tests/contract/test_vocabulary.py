"""Names inside facts come from one list each, so that a check finds the same thing of every vendor and engine."""

from __future__ import annotations

from diag import engine
from diag.facts import READINGS, STATES, EngineState, Reading

from .loaded import LOADED, SAVED, VECTORS, paste

TEXTS = {*SAVED, *(vector.text for vector in VECTORS)}


def test_readings_and_states_bear_the_listed_names() -> None:
    told = [fact for text in TEXTS for fact in engine.examine(paste(text), LOADED, []).facts]
    strange = {fact.name for fact in told if isinstance(fact, Reading)} - set(READINGS)
    assert strange | {fact.name for fact in told if isinstance(fact, EngineState)} - set(STATES) == set()
