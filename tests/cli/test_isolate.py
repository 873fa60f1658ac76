"""`diag comm --isolate` between four hosts that are network namespaces of this one, with faults put into them.

`make soak` asks how often the verdict is right, in many runs of each kind; without it one of each is to come to a
verdict with its threshold, for two cores that do other work at the same time can make a single one wrong.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="no torch in this environment"),
    pytest.mark.skipif(bool(os.getuid()) or not shutil.which("tc"), reason="namespaces and tc need root and iproute2"),
]
SOAK = "DIAG_EXAMPLES" in os.environ
RUNS = 10 if SOAK else 1
MOSTLY, ALWAYS = (0.9, 1.0) if SOAK else (0.0, 0.0)
PLUGINS = Path(__file__).with_name("plugins")
COMM = (sys.executable, "-c", "from diag.cli import main; main()", "comm", "--isolate", "--backend", "gloo")
BRIEF = (*COMM, "--sizes", "8KiB", "--budget", "1", "--format", "json")
NAMED = 'hostname "$0"; exec "$@"'
"""Gloo takes ranks whose hosts bear the same name for neighbours, and connects them by the loopback."""
RANKS = 4


def ip(line: str) -> bool:
    return subprocess.run(("ip", *line.split()), capture_output=True).returncode == 0


@pytest.fixture
def hosts() -> Iterator[list[str]]:
    """Four hosts on one switch."""
    names = [f"diag{os.getpid()}n{number}" for number in range(RANKS)]
    switch = f"diag{os.getpid()}s"
    made = [ip(f"netns add {name}") for name in (switch, *names)]
    made.append(ip(f"-n {switch} link add sw0 type bridge"))
    for number, name in enumerate(names):
        made.append(ip(f"link add veth0 netns {name} type veth peer name to{number} netns {switch}"))
        ip(f"-n {switch} link set to{number} master sw0 up")
        ip(f"-n {name} addr add 10.77.0.{number + 1}/24 dev veth0")
        ip(f"-n {name} link set lo up"), ip(f"-n {name} link set veth0 up")
    ip(f"-n {switch} link set sw0 up")
    if all(made):
        yield names
    for name in (switch, *names):
        ip(f"netns del {name}")
    if not all(made):
        pytest.skip("no network namespaces or bridges here")


def measured(hosts: list[str], *options: str, **environment: str) -> dict:
    world = {"WORLD_SIZE": str(RANKS), "LOCAL_RANK": "0", "MASTER_ADDR": "10.77.0.1", "MASTER_PORT": "23456"}
    world |= {"GLOO_SOCKET_IFNAME": "veth0", "PYTHONPATH": str(PLUGINS), **environment}
    steps = [
        subprocess.Popen(
            ("ip", "netns", "exec", host, "unshare", "--uts", "sh", "-c", NAMED, host, *BRIEF, *options),
            env={**os.environ, **world, "RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank, host in enumerate(hosts)
    ]
    told = [one.communicate(timeout=300) for one in steps]
    return json.loads(told[0][0])


def blamed(report: dict) -> list[tuple]:
    told = report["facts"]["CollectiveVerdict"]
    assert all(one["threshold"] > 0 for one in told)
    return [(one["kind"], one["ranks"], one["direction"]) for one in told]


def right(said: list[str], name: str, fits: Callable[[list[tuple]], bool], run: Callable[[], dict]) -> float:
    """The share of the runs that blame whom they must, and what they said."""
    told = [blamed(run()) for _ in range(RUNS)]
    good, wrong = sum(map(fits, told)), [one for one in told if not fits(one)]
    said.append(f"isolation  {name:44} right in {good} of {RUNS}{f', else {wrong}' if wrong else ''}")
    return good / RUNS


def innocent(told: list[tuple]) -> bool:
    return {kind for kind, *_ in told} <= {"healthy", "noise"}


def test_what_one_sends_is_slow(hosts, said):
    limit = "tc qdisc add dev veth0 root tbf rate 600mbit burst 32kb latency 100ms"
    subprocess.run(("ip", "netns", "exec", hosts[1], *limit.split()), check=True)
    told = right(said, "600 Mbit/s leave one of four", [("nic", [1], "out")].__eq__, lambda: measured(hosts))
    assert told >= MOSTLY


def test_one_starts_each_call_late(hosts, said):
    late = functools.partial(measured, hosts, "--import", "comes_late", DIAG_TEST_LATE="2")
    assert right(said, "one of four 30 % of a call late", [("late", [2], "")].__eq__, late) >= MOSTLY


def test_nobody_is_blamed_without_a_fault(hosts, said):
    assert right(said, "no fault", innocent, lambda: measured(hosts)) >= ALWAYS


@pytest.mark.skipif(not SOAK, reason="runs under make soak")
def test_nobody_is_blamed_beside_a_busy_process(hosts, said):
    with subprocess.Popen((sys.executable, "-c", "while True: pass")) as busy:
        told = right(said, "no fault, beside a busy process", innocent, lambda: measured(hosts))
        busy.kill()
    assert told >= ALWAYS
