"""Who chooses the clock of the CPUs, and between which: `cpupower frequency-info`, `cpufreq-info`, `tlp-stat -p`, and
lines of `grep . …/cpufreq/…`.

Frequencies are told in kHz under the kernel's own names, as its files have them. Of several CPUs each value that occurs
is told once. What this cannot know: a clock that firmware holds down.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Capture, Fact, Recognise, Setting, expression, probe

DRIVERS = r"intel_pstate|intel_cpufreq|acpi-cpufreq|amd[-_]pstate(?:[-_]epp)?|cppc_cpufreq|pcc-cpufreq|powernv-cpufreq"
FILE = expression(
    r"^\W*sys/devices/system/cpu/\S{1,40}/(scaling_governor|scaling_driver|scaling_min_freq|cpuinfo_max_freq)"
    r"\s{0,8}[:=]\s{0,8}([\w\-]{1,40})(?: \[kHz\])?\s*$"
)
CHOSEN = expression(r"^\W*The governor \"(\w{1,40})\" may decide which speed")
DRIVEN = expression(rf"^\W*driver: ({DRIVERS})\s*$")
LIMITS = expression(r"^\W*hardware limits: [0-9.]{1,6} [MG]Hz - ([0-9.]{1,6} [MG]Hz)\s*$")
POLICY = expression(r"^\W*current policy: frequency should be within ([0-9.]{1,6} [MG]Hz) and ")
SHAPES = (
    *((CHOSEN, "scaling_governor"), (DRIVEN, "scaling_driver")),
    *((LIMITS, "cpuinfo_max_freq"), (POLICY, "scaling_min_freq")),
)
KILOHERTZ = {"MHz": 1_000, "GHz": 1_000_000}


@probe(
    "cpupower",
    tells=(Setting,),
    recognise=Recognise(
        literals=(
            *("/scaling_governor", "/scaling_driver", 'The governor "', "driver: intel_", "driver: acpi-cpufreq"),
            *("driver: amd", "driver: cppc_cpufreq", "driver: pcc-cpufreq", "driver: powernv-cpufreq"),
            *("/scaling_min_freq", "/cpuinfo_max_freq", "hardware limits: ", "current policy: frequency"),
        ),
        pattern="|".join(shape.pattern for shape in (FILE, CHOSEN, DRIVEN, LIMITS, POLICY)),
        each=True,
        lines=20,
    ),
)
def cpupower(capture: Capture) -> Iterator[Fact]:
    """Each value once, where it first stands."""
    told: set[tuple[str, str]] = set()
    for line in capture.lines():
        found = FILE.match(line.text)
        named = [(name, match[1]) for shape, name in SHAPES if (match := shape.match(line.text))]
        for name, value in [(found[1], found[2])] if found else named:
            value = _kilohertz(value) if name.endswith("_freq") else value
            if value and (name, value) not in told:
                told.add((name, value))
                yield Setting(origin=capture.origin(line), kind="kernel", name=name, value=value)


def _kilohertz(text: str) -> str:
    """A frequency as the kernel's files have it, empty where the text is none."""
    number, _, unit = text.partition(" ")
    if not unit:
        return text if text.isdecimal() else ""
    try:
        return str(round(float(number) * KILOHERTZ[unit]))
    except ValueError:
        return ""
