"""Who chooses the clock of the CPUs: `cpupower frequency-info`, `cpufreq-info`, and lines of `grep . …/cpufreq/…`.

Of several CPUs each governor and each driver that occurs is told once. What this cannot know: a clock that firmware
holds down.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Capture, Fact, Recognise, Setting, expression, probe

DRIVERS = r"intel_pstate|intel_cpufreq|acpi-cpufreq|amd[-_]pstate(?:[-_]epp)?|cppc_cpufreq|pcc-cpufreq|powernv-cpufreq"
FILE = expression(r"^\W*sys/devices/system/cpu/\S{1,40}/(scaling_governor|scaling_driver):\s?([\w\-]{1,40})\s*$")
CHOSEN = expression(r"^\W*The governor \"(\w{1,40})\" may decide which speed")
DRIVEN = expression(rf"^\W*driver: ({DRIVERS})\s*$")
SHAPES = ((CHOSEN, "scaling_governor"), (DRIVEN, "scaling_driver"))


@probe(
    "cpupower",
    tells=(Setting,),
    recognise=Recognise(
        literals=(
            *("/scaling_governor:", "/scaling_driver:", 'The governor "', "driver: intel_", "driver: acpi-cpufreq"),
            *("driver: amd", "driver: cppc_cpufreq", "driver: pcc-cpufreq", "driver: powernv-cpufreq"),
        ),
        pattern="|".join((FILE.pattern, CHOSEN.pattern, DRIVEN.pattern)),
        each=True,
        lines=20,
    ),
)
def cpupower(capture: Capture) -> Iterator[Fact]:
    """Each governor and each driver once, where it first stands."""
    told: set[tuple[str, str]] = set()
    for line in capture.lines():
        found = FILE.match(line.text)
        named = [(name, match[1]) for shape, name in SHAPES if (match := shape.match(line.text))]
        for name, value in [(found[1], found[2])] if found else named:
            if (name, value) not in told:
                told.add((name, value))
                yield Setting(origin=capture.origin(line), kind="kernel", name=name, value=value)
