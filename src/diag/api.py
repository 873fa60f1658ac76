"""The names that checks, probes and third-party roots import; everything else in `diag` may change."""

from __future__ import annotations

from msgspec.structs import replace

from diag import facts
from diag.capture import Capture
from diag.check import Answer, Check, Words, check
from diag.estimate.advice import Change, advice
from diag.estimate.blame import Verdict, judged, pairs_of
from diag.estimate.curve import Curve
from diag.estimate.decode import FEW, RIVALS, Decoder, Step, dense_weights, share, step
from diag.estimate.isolation import Known, bases, inside
from diag.estimate.isolation import measured as measured_pairs
from diag.estimate.memory import Case, Device, Division, Launch, Term
from diag.estimate.model import Model as ModelLayers
from diag.estimate.plan import Demand, Plan, plan, safest
from diag.estimate.pool import Shares
from diag.estimate.profiled import Profiled
from diag.estimate.reserved import Reserved
from diag.estimate.weights import weights
from diag.facts import *  # noqa: F403
from diag.facts.parts import Part, asked_words, parts_named
from diag.facts.placement import bounding, governing, listed, titles, unaccelerated
from diag.facts.words import WORD
from diag.finding import Evidence, Finding, Fits, Remedy, Undecided
from diag.probe import Deduction, Probe, Recognise, Request, deduction, probe, program
from diag.shell import Shell, spelled
from diag.spared import ALONE, Spared, by_torch
from diag.text import Line, cut, expression
from diag.versions import at_least, canonical, count, local, minor, numbers, public, same, satisfies, within

__all__ = [
    "ALONE",
    "FEW",
    "RIVALS",
    "WORD",
    "Answer",
    "Capture",
    "Case",
    "Change",
    "Check",
    "Curve",
    "Decoder",
    "Deduction",
    "Demand",
    "Device",
    "Division",
    "Evidence",
    "Finding",
    "Fits",
    "Known",
    "Launch",
    "Line",
    "ModelLayers",
    "Part",
    "Plan",
    "Probe",
    "Profiled",
    "Recognise",
    "Remedy",
    "Request",
    "Reserved",
    "Shares",
    "Shell",
    "Spared",
    "Step",
    "Term",
    "Undecided",
    "Verdict",
    "Words",
    "advice",
    "asked_words",
    "at_least",
    "bases",
    "bounding",
    "by_torch",
    "canonical",
    "check",
    "count",
    "cut",
    "deduction",
    "dense_weights",
    "expression",
    "governing",
    "inside",
    "judged",
    "listed",
    "local",
    "measured_pairs",
    "minor",
    "numbers",
    "pairs_of",
    "parts_named",
    "plan",
    "probe",
    "program",
    "public",
    "replace",
    "safest",
    "same",
    "satisfies",
    "share",
    "spelled",
    "step",
    "titles",
    "unaccelerated",
    "weights",
    "within",
]
__all__ += facts.__all__
