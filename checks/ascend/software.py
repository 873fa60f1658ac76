"""What Huawei's packages wrote of themselves beside their files: the driver, its firmware, the toolkit (CANN).

Each is a text of `key=value` lines. The toolkit has lain in two places: `ascend-toolkit/latest`, since CANN 8.5 also
`cann`. What this cannot know: a toolkit installed elsewhere, and which of several a process will load.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Capture, Driver, Fact, Line, Reading, Recognise, Runtime, expression, probe

DRIVER = r"^\W*(?:Version=2[0-9]\.[\w.]{1,40}\s*$|ascendhal_version=)"
PACKAGE = r"^\W*package_name=Ascend-cann-toolkit\s*$"
CONFIGURED = expression(r"^\W*toolkit_running_version=\[[^\]:]{0,60}:([0-9][\w.-]{0,40})\]")
VERSION = expression(r"[0-9][\w.-]{0,40}")
OLD, NEW = "/usr/local/Ascend/ascend-toolkit/latest", "/usr/local/Ascend/cann"
INSTALLED = "ascend_toolkit_install.info"


@probe(
    "ascend/driver",
    tells=(Driver,),
    path="/usr/local/Ascend/driver/version.info",
    recognise=Recognise(literals=("Version=2", "ascendhal_version="), pattern=DRIVER, lines=14),
)
def driver(capture: Capture) -> Iterator[Fact]:
    """The driver's own file: the one that is installed, which is loaded unless the machine waits for a restart."""
    told = _told(capture)
    line, version = told.get("package_version") or told.get("Version") or (None, "")
    if "ascendhal_version" in told and VERSION.fullmatch(version):
        yield Driver(origin=capture.origin(line), vendor="ascend", version=version)


@probe("ascend/firmware", tells=(Reading,), path="/usr/local/Ascend/firmware/version.info")
def firmware(capture: Capture) -> Iterator[Fact]:
    """The firmware that was installed last, for all devices."""
    line, version = _told(capture).get("Version", (None, ""))
    if VERSION.fullmatch(version):
        yield Reading(origin=capture.origin(line), name="firmware", value=version, vendor="ascend")


def toolkit(capture: Capture) -> Iterator[Fact]:
    """What the installer of the toolkit wrote: its package and version."""
    told = _told(capture)
    line, version = told.get("version", (None, ""))
    if told.get("package_name", (None, ""))[1] == "Ascend-cann-toolkit" and VERSION.fullmatch(version):
        yield Runtime(origin=capture.origin(line), name="cann", version=version, kind="toolkit")


cann = probe(
    "ascend/cann",
    tells=(Runtime,),
    path=f"{OLD}/aarch64-linux/{INSTALLED}",
    recognise=Recognise(literals=("package_name=Ascend-cann-toolkit",), pattern=PACKAGE, lines=7),
)(toolkit)
cann_x86 = probe("ascend/cann/x86_64", tells=(Runtime,), path=f"{OLD}/x86_64-linux/{INSTALLED}")(toolkit)
cann_new = probe("ascend/cann/8.5", tells=(Runtime,), path=f"{NEW}/aarch64-linux/{INSTALLED}")(toolkit)
cann_new_x86 = probe("ascend/cann/8.5/x86_64", tells=(Runtime,), path=f"{NEW}/x86_64-linux/{INSTALLED}")(toolkit)


@probe(
    "ascend/cann/config",
    tells=(Runtime,),
    path=f"{OLD}/version.cfg",
    recognise=Recognise(literals=("toolkit_running_version=[",), pattern=CONFIGURED.pattern, lines=0),
)
def cann_config(capture: Capture) -> Iterator[Fact]:
    """The toolkit that is in use, of several that may be installed."""
    for line in capture.lines():
        if found := CONFIGURED.match(line.text):
            yield Runtime(origin=capture.origin(line), name="cann", version=found[1], kind="toolkit")
            return


def _told(capture: Capture) -> dict[str, tuple[Line, str]]:
    """The first line of each key, with its value."""
    told: dict[str, tuple[Line, str]] = {}
    for line in capture.lines():
        key, equals, value = line.text.strip(" \t\"'").partition("=")
        if equals:
            told.setdefault(key.strip(), (line, value.strip()))
    return told
