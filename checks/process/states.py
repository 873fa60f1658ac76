"""What the processes of a quiet command do: their states in the kernel, as `diag run` lists them, and their stacks.

The list is of one second: a process that waits for a disk in it may have done so for no longer. The stacks of Python
programs are py-spy's.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Capture, Fact, ProcessState, PythonStack, Recognise, expression, probe

NAME = r"\((?P<name>.{0,32}?)\)"
STATE = r"state (?P<state>[A-Z])"
CPU = r"cpu (?P<cpu>[0-9]{1,6}) %"
PROCESS = expression(
    rf"^\W*process (?P<pid>[0-9]{{1,9}}) {NAME}, parent [0-9]{{1,9}}, {STATE}, "
    rf"threads (?P<threads>[0-9]{{1,6}}), {CPU}(?: \([0-9]{{1,6}} % in the kernel\))?: (?P<command>.{{0,400}})"
)
THREAD = expression(
    rf"^\W*thread (?P<thread>[0-9]{{1,9}}) {NAME}, {STATE}, {CPU}(?:, waits in (?P<waits>[\w.]{{1,80}}))?"
)
STACK_OF = expression(r"^\W*Process (?P<pid>[0-9]{1,9}): ")
STACK = expression(
    r"^\W{0,40}Thread (?P<id>(?:0x)?[0-9A-Fa-f]{1,18}) \((?P<does>[\w+]{1,40})\)(?:: \"(?P<name>[^\"]{1,80})\")?"
)
FRAME = expression(r"^\s{0,40}(?P<frame>\S.{0,120} \([^()]{1,200}:[0-9]{1,7}\))\s*$")
FRAMES = 40
ACTIVE = "active"


@probe("run/processes", tells=(ProcessState,), recognise=Recognise((", parent ",), PROCESS.pattern, lines=2_000))
def processes(capture: Capture) -> Iterator[Fact]:
    """Each process, and those of its threads that were listed."""
    pid = 0
    for line in capture.lines():
        found = PROCESS.match(line.text) or THREAD.match(line.text)
        if not found:
            continue
        told = found.groupdict()
        pid = int(told.get("pid") or pid)
        yield ProcessState(
            origin=capture.origin(line),
            pid=pid,
            name=told["name"],
            state=told["state"],
            thread=int(told["thread"]) if told.get("thread") else None,
            threads=int(told["threads"]) if told.get("threads") else None,
            cpu=float(told["cpu"]),
            waits_in=told.get("waits") or "",
            command=(told.get("command") or "").strip(),
        )


@probe("py-spy", tells=(PythonStack,), recognise=Recognise(("Process ",), rf"{STACK_OF.pattern}\S", lines=2_000))
def stacks(capture: Capture) -> Iterator[Fact]:
    """The stack of each thread, as `py-spy dump` prints them."""
    pid, held = 0, None
    for line in capture.lines():
        if found := STACK_OF.match(line.text):
            pid = int(found["pid"])
        elif found := STACK.match(line.text):
            if held:
                yield held
            thread, active = found["name"] or found["id"], found["does"].startswith(ACTIVE)
            held = PythonStack(origin=capture.origin(line), pid=pid, thread=thread, active=active, frames=())
        elif held and (found := FRAME.match(line.text)) and len(held.frames) < FRAMES:
            origin = held.origin if held.frames else capture.origin(line)
            frames = (*held.frames, found["frame"])
            held = PythonStack(origin=origin, pid=pid, thread=held.thread, active=held.active, frames=frames)
    if held:
        yield held
