"""How the IOMMU treats devices: the types of its groups' domains, and the default that the kernel chose at boot.

Told are `/sys/kernel/iommu_groups/N/type` as `grep` prints it with its file, and the line of the kernel's log on the
default type of a domain, as the parameter that sets it (`iommu.passthrough`). That line stands in the log of every
machine, with or without an IOMMU: it is told only where the same text shows devices put into a group. Which device is
in which group the text does not tell.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Capture, Fact, Recognise, Setting, expression, probe

GROUP = expression(r"(?:^|[\s>])/sys/kernel/(?P<name>iommu_groups/\d{1,5}/type):(?P<type>[A-Za-z\-]{2,12})\s*$")
DEFAULT = expression(r"\biommu: Default domain type: (?P<type>Translated|Passthrough)\b")
JOINED = expression(r"\b[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]: Adding to iommu group \d")
VALUES = {"Translated": "0", "Passthrough": "1"}


@probe(
    "iommu-domains",
    tells=(Setting,),
    recognise=Recognise(
        literals=("/sys/kernel/iommu_groups/", "iommu: Default domain type", "Adding to iommu group"),
        pattern=r"/sys/kernel/iommu_groups/\d{1,5}/type:|\biommu: Default domain type: |: Adding to iommu group \d",
        each=True,
        lines=400,
    ),
)
def iommu_domains(capture: Capture) -> Iterator[Fact]:
    """The types of groups, and the default of a machine that has groups."""
    default, joined = None, False
    for line in capture.lines():
        if found := GROUP.search(line.text):
            yield Setting(origin=capture.origin(line), name=found["name"], value=found["type"], kind="kernel")
        elif found := DEFAULT.search(line.text):
            default = (line, VALUES[found["type"]])
        joined = joined or bool(JOINED.search(line.text))
    if default and joined:
        line, value = default
        yield Setting(origin=capture.origin(line), name="iommu.passthrough", value=value, kind="kernel")
