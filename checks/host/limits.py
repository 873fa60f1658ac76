"""What a process may take: `ulimit -a` of three shells, and `/proc/self/limits`.

Values are the soft limits, in the unit the text has: `ulimit` counts memory in KiB, `/proc/self/limits` in bytes. Of
open files the hard limit is told as well where the text has it (`hard nofile`): engines raise the soft one up to it. A
limit is of the shell or process that was asked; that of an engine started elsewhere can differ. The CPUs a process may
run on are told as `cpus_allowed`, as the kernel lists them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from diag.api import Capture, Fact, Recognise, Setting, expression, probe

BY_LETTER = {
    "c": "core",
    "d": "data",
    "f": "fsize",
    "i": "sigpending",
    "l": "memlock",
    "m": "rss",
    "n": "nofile",
    "q": "msgqueue",
    "r": "rtprio",
    "s": "stack",
    "t": "cpu",
    "u": "nproc",
    "v": "as",
    "x": "locks",
}
"""PAM's names of what `ulimit` has letters for."""
BY_WORDS = {
    "locked memory": "memlock",
    "nofiles": "nofile",
    "process": "nproc",
    "stack": "stack",
    "memory": "rss",
    "vmemory": "as",
}
"""What dash calls them."""
BY_TITLE = {
    "Max locked memory": "memlock",
    "Max open files": "nofile",
    "Max processes": "nproc",
    "Max stack size": "stack",
    "Max address space": "as",
    "Max resident set": "rss",
    "Max data size": "data",
    "Max file size": "fsize",
    "Max core file size": "core",
    "Max cpu time": "cpu",
    "Max file locks": "locks",
    "Max pending signals": "sigpending",
    "Max msgqueue size": "msgqueue",
    "Max realtime priority": "rtprio",
}
VALUE = r"(unlimited|[0-9]{1,20})"
BASH = expression(rf"^\W*[a-zA-Z][a-zA-Z \-/]{{3,40}}\((?:[a-z0-9 \-]{{1,20}}, )?-([a-zA-Z])\)\s{{1,40}}{VALUE}\s*$")
ZSH = expression(rf"^\W*-([a-z]): [a-z][a-zA-Z \-()/]{{3,60}}?\s{{1,40}}{VALUE}\s*$")
DASH = expression(
    rf"^\W*(locked memory|nofiles|process|stack|memory|vmemory)(?:\((?:kbytes|blocks)\))?\s{{1,20}}{VALUE}\s*$"
)
TITLED = expression(rf"^\W*(Max [a-z][a-z ]{{3,20}}?)\s{{2,24}}{VALUE}\s")


@probe(
    "ulimit",
    tells=(Setting,),
    recognise=Recognise(
        literals=(
            *(
                " -l) ",
                " -n) ",
                "(-n) ",
                " -s) ",
                "(-u) ",
                " -v) ",
                "(-x) ",
                "(-i) ",
                " -q) ",
                "(-r) ",
                " -c) ",
                " -d) ",
            ),
            *("-l: ", "-n: ", "-u: ", "-s: ", "-v: ", "locked memory(kbytes)", "nofiles  ", "stack(kbytes)"),
        ),
        pattern=f"{BASH.pattern}|{ZSH.pattern}|{DASH.pattern}",
        each=True,
        lines=12,
    ),
)
def ulimit(capture: Capture) -> Iterator[Fact]:
    """A limit a line, as bash, zsh or dash print them."""
    for line in capture.lines():
        found = BASH.match(line.text) or ZSH.match(line.text)
        worded = None if found else DASH.match(line.text)
        name = BY_LETTER.get(found[1], "") if found else BY_WORDS[worded[1]] if worded else ""
        if (match := found or worded) and name:
            unit = _unit(line.text[: match.start(2)])
            yield Setting(origin=capture.origin(line), kind="limit", name=name, value=match[2], unit=unit)


def _unit(title: str) -> Literal["", "KiB", "B"]:
    """The unit that the title of a line names; blocks are of no size that is told."""
    if "kbytes" in title:
        return "KiB"
    return "B" if "(bytes" in title else ""


@probe(
    "proc/limits",
    tells=(Setting,),
    path="/proc/self/limits",
    recognise=Recognise(tuple(f"{title}  " for title in BY_TITLE), TITLED.pattern, each=True, lines=20),
)
def proc_limits(capture: Capture) -> Iterator[Fact]:
    """A limit a line, the soft one first."""
    for line in capture.lines():
        if (found := TITLED.match(line.text)) and found[1] in BY_TITLE:
            name, origin = BY_TITLE[found[1]], capture.origin(line)
            hard, unit, *_ = (*line.text[found.end() :].split(), "", "")
            counted: Literal["", "B"] = "B" if unit == "bytes" else ""
            yield Setting(origin=origin, kind="limit", name=name, value=found[2], unit=counted)
            if name == "nofile" and re.fullmatch(VALUE, hard):
                yield Setting(origin=origin, kind="limit", name="hard nofile", value=hard)


LIST = r"([0-9]{1,5}(?:-[0-9]{1,5})?(?:,[0-9]{1,5}(?:-[0-9]{1,5})?){0,400})"
ALLOWED = expression(
    r"^\W*(?:[0-9]{1,5}:\s{1,4})?(?:Cpus_allowed_list:\s{1,16}|pid [0-9]{1,9}'s current affinity list: )"
    rf"{LIST}\s*$"
)


@probe(
    "proc/status",
    tells=(Setting,),
    path="/proc/self/status",
    recognise=Recognise(("Cpus_allowed_list:", "'s current affinity list: "), ALLOWED.pattern, each=True, lines=3),
)
def allowed(capture: Capture) -> Iterator[Fact]:
    """The CPUs that a process may run on, as `/proc/self/status` and `taskset -pc` list them."""
    for line in capture.lines():
        if found := ALLOWED.match(line.text):
            yield Setting(origin=capture.origin(line), kind="limit", name="cpus_allowed", value=found[1])


REFUSED = expression(r"^.{0,120}\bFound ulimit of ([0-9]{1,12}) and failed to automatically increase with error ")


@probe(
    "engine/open-files",
    tells=(Setting,),
    recognise=Recognise(("and failed to automatically increase with error",), REFUSED.pattern, each=True, lines=0),
)
def refused(capture: Capture) -> Iterator[Fact]:
    """The limit of open files that an engine started with and could not raise: to it as good as a hard one."""
    for line in capture.lines():
        if found := REFUSED.match(line.text):
            yield Setting(origin=capture.origin(line), kind="limit", name="hard nofile", value=found[1])
            return
