"""The figures of a memory plan, as the wording of rules takes them."""

from __future__ import annotations

from diag.facts.memory import MemoryPlan
from diag.shell import Shell

GIB = 2**30
WORDS = {"high": "高", "medium": "中", "low": "低"}


def planned_values(one: MemoryPlan) -> dict[str, str | int | float]:
    """Figures in GiB by name; `flags` is the cheapest change that helps."""
    told = {term.name: term.bytes for term in one.terms}
    inside = sum(term.bytes for term in one.terms if term.inside)
    outside = sum(term.bytes for term in one.terms if not term.inside)
    flags = one.advice[0].flags if one.advice else ()
    figures = {
        "weights": told.get("weights", 0.0),
        "work": inside - told.get("weights", 0.0),
        "asked": one.asked,
        "total": one.total,
        "room": one.room,
        "spare": one.spare,
        "outside": outside,
        "over": -one.spare,
        "off": sum(term.off for term in one.terms),
        "free": one.free,
    }
    return {
        **{name: f"{value / GIB:.2f}" for name, value in figures.items()},
        "model": one.model or one.engine,
        "engine": one.engine,
        "fraction": f"{one.fraction:.3g}",
        "tokens": one.tokens,
        "length": one.length,
        "longest": one.longest or 0,
        "places": one.places or 0,
        "requests": one.requests,
        "confidence": one.confidence,
        "flags": Shell(" ".join(f"--{name} {value}".rstrip() for name, value in flags)),
    }


def planned_change(one: MemoryPlan) -> str:
    """The key of the remedy that fits: a change that is known to help, or more."""
    return "change" if one.advice else "more"
