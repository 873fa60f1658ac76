"""Ranks as actors of a Ray cluster, one a device, wherever that is: each starts `collectives.py` as a process.

`ray_ranks.py REQUEST` prints what rank 0 printed, or had measured by then, with `states` of all ranks; `stalled` are
the seconds for which nothing moved, where that ended it. The programs travel with the actors: the other hosts need a
torch and nothing of diag.
"""

from __future__ import annotations

import ctypes
import json
import logging
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
from typing import Any

if __name__ == "__main__":
    sys.path.pop(0)

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAMS = ("measure/collectives.py", "measure/sweep.py", "measure/isolate.py", "estimate/isolation.py")
RECORD, COUNTERS, PHASE = "<qq", 16, 480
"""What a rank notes, as `collectives.py` writes it."""
BARE = 2
"""Ranks where the cluster has no accelerator."""
ROOM, ANSWER = 60.0, 30.0
"""Seconds that Ray has to find a place for the actors, and an actor to answer."""
START = 4.0
"""How many times longer nothing may move before the first round."""
LOOK = 0.5


class Hand:
    """The actor that starts one rank and looks after it."""

    def __init__(self, programs: dict[str, str]) -> None:
        self.folder = tempfile.TemporaryDirectory()
        for name, text in programs.items():
            os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
            with open(self.path(name), "w") as file:
                file.write(text)
        for name in ("progress", "partial", "stdout", "stderr"):
            with open(self.path(name), "wb") as note:
                note.truncate(COUNTERS + PHASE if name == "progress" else 0)

    def path(self, name: str) -> str:
        """A file of this rank's own."""
        return os.path.join(self.folder.name, name)

    def address(self) -> tuple[str, int]:
        """Where the others can meet this rank."""
        import socket

        import ray

        with socket.socket() as one:
            one.bind(("", 0))
            return ray.util.get_node_ip_address(), one.getsockname()[1]

    def start(self, request: dict[str, Any], environment: dict[str, str]) -> None:
        """Start the rank."""
        request = {**request, "progress": self.path("progress"), "partial": self.path("partial")}
        with open(self.path("stdout"), "wb") as out, open(self.path("stderr"), "wb") as error:
            self.process = subprocess.Popen(
                [sys.executable, self.path(PROGRAMS[0]), json.dumps(request)],
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=error,
            )

    def look(self) -> dict[str, Any]:
        """What is known of it from outside."""
        content = self.read("progress").ljust(COUNTERS + PHASE, b"\0")
        entered, finished = struct.unpack_from(RECORD, content)
        code = self.process.poll()
        ended = "" if code is None else f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}"
        return {
            "phase": content[COUNTERS:].rstrip(b"\0 ").decode(errors="replace"),
            "entered": entered,
            "finished": finished,
            "pid": self.process.pid,
            "state": state(self.process.pid),
            "ended": ended,
        }

    def told(self) -> str:
        """What it printed, else what it let others have."""
        lines = self.read("stdout").decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else self.read("partial").decode(errors="replace")

    def stop(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait()

    def read(self, name: str) -> bytes:
        """All of a file of this rank."""
        with open(self.path(name), "rb") as file:
            return file.read()


def state(pid: int) -> str:
    """The kernel's letter of what a process does, empty where it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


def main() -> None:
    """Place the ranks, wait for their end, and print the document."""
    request = json.loads(sys.argv[1])
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    import ray

    ray.init(address=request["ray"], log_to_driver=False, logging_level=logging.ERROR, configure_logging=False)
    hands = placed(ray, request)
    address, port = ray.get(hands[0].address.remote(), timeout=ANSWER)
    for rank, hand in enumerate(hands):
        environment = {"RANK": rank, "WORLD_SIZE": len(hands), "LOCAL_RANK": 0, "MASTER_ADDR": address}
        environment |= {"MASTER_PORT": port, "OMP_NUM_THREADS": 1}
        own = {**request, "patience": (START + 1) * request["patience"]}
        ray.get(hand.start.remote(own, {name: str(value) for name, value in environment.items()}), timeout=ANSWER)
    states, stalled = watched(ray, hands, request["patience"])
    told = answered(ray, hands[0].told.remote(), "")
    document = json.loads(told) if told else {}
    print(
        json.dumps(
            {**document, "schema": "diag/collectives/1", "size": len(hands), "states": states, "stalled": stalled}
        ),
        flush=True,
    )
    for hand in hands:
        answered(ray, hand.stop.remote(), None)
    ray.shutdown()


def placed(ray: Any, request: dict[str, Any]) -> list[Any]:
    """The actors, one a device of the kind that the cluster has, else one a processor."""
    cluster = ray.cluster_resources()
    kind = next((one for one in request["resources"] if cluster.get(one)), "CPU")
    count = request["ranks"] or (int(cluster[kind]) if kind != "CPU" else BARE)
    group = ray.util.placement_group([{kind: 1}] * count, strategy="PACK")
    ready, _ = ray.wait([group.ready()], timeout=ROOM)
    if not ready:
        raise RuntimeError(f"Ray found no place for {count} x {kind} within {ROOM:.0f} s")
    programs = {name: open(os.path.join(HERE, name)).read() for name in PROGRAMS}  # noqa: SIM115
    wants = {"CPU": {"num_cpus": 1}, "GPU": {"num_cpus": 0, "num_gpus": 1}}
    options = wants.get(kind, {"num_cpus": 0, "resources": {kind: 1}})
    actor = ray.remote(Hand).options(placement_group=group, **options)
    return [actor.remote(programs) for _ in range(count)]


def watched(ray: Any, hands: list[Any], patience: float) -> tuple[list[dict[str, Any]], float]:
    """The ranks when all had ended, one had ended badly, or nothing moved; and for how many seconds nothing had."""
    last: list[dict[str, Any]] = []
    since = time.monotonic()
    while True:
        looks = [answered(ray, hand.look.remote(), {"ended": "its actor does not answer"}) for hand in hands]
        states = [{"rank": rank, **one} for rank, one in enumerate(looks)]
        if states != last:
            since, last = time.monotonic(), states
        if all(one["ended"] for one in states) or any(one["ended"] not in ("", "exit code 0") for one in states):
            return states, 0.0
        begun = all(one["phase"].startswith(("round ", "parting")) for one in states)
        if time.monotonic() - since > (patience if begun else START * patience):
            return states, round(time.monotonic() - since, 1)
        time.sleep(LOOK)


def answered(ray: Any, question: Any, otherwise: Any) -> Any:
    """What an actor answers, or something else where it does not."""
    try:
        return ray.get(question, timeout=ANSWER)
    except Exception:
        return otherwise


if __name__ == "__main__":
    main()
