"""`diag comm` between gloo ranks of this machine: what it measures, who starts the ranks, and what cannot hang it."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="no torch in this environment")
COMM = (sys.executable, "-c", "from diag.cli import main; main()", "comm")
BRIEF = ("--sizes", "1KiB,64KiB", "--budget", "2", "--backend", "gloo", "--format", "json")
LONG = (*BRIEF[:2], "--budget", "120", *BRIEF[4:], "--patience", "4")
PLUGINS = Path(__file__).with_name("plugins")
SHAPE = Path(__file__).parents[1] / "captures/model/qwen3-8b.txt"
MARK = "DIAG_TEST_MARK"
SHARED = Path("/dev/shm")


def measured(*options: str, launcher: tuple[str, ...] = (), **environment: str) -> tuple[dict, int]:
    done = subprocess.run(
        (*launcher, *COMM, *options), env=alone(environment), capture_output=True, text=True, timeout=240
    )
    assert "Traceback" not in done.stderr
    return json.loads(done.stdout), done.returncode


def alone(environment: dict[str, str]) -> dict[str, str]:
    launchers = ("RANK", "WORLD_SIZE", "SLURM_", "OMPI_", "PMI", "RAY_ADDRESS", "MASTER_")
    return {name: value for name, value in os.environ.items() if not name.startswith(launchers)} | environment


def results(report: dict) -> list[dict]:
    return report["facts"].get("Collective", [])


def trouble(report: dict) -> dict:
    (told,) = report["facts"]["CollectiveTrouble"]
    return told


@pytest.fixture
def begun() -> Iterator:
    """Starts a long measurement; afterwards nothing of it may be there."""
    mark = uuid.uuid4().hex
    started: list[subprocess.Popen] = []
    before = set(SHARED.iterdir())

    def begin(*options: str) -> tuple[subprocess.Popen, list[psutil.Process]]:
        environment = alone({MARK: mark})
        started.append(subprocess.Popen((*COMM, *options), env=environment, stdout=-1, stderr=-1, text=True))
        return started[-1], ranks_of(mark, 3)

    yield begin
    for one in started:
        one.kill()
        one.communicate()
    end = time.monotonic() + 5
    while (left := marked(mark)) and time.monotonic() < end:
        time.sleep(0.05)
    assert left == []
    assert set(SHARED.iterdir()) - before == set()


def marked(mark: str) -> list[psutil.Process]:
    found = []
    for one in psutil.process_iter():
        try:
            if one.environ().get(MARK) == mark and one.status() != psutil.STATUS_ZOMBIE:
                found.append(one)
        except psutil.Error:
            continue
    return found


def ranks_of(mark: str, count: int) -> list[psutil.Process]:
    """The ranks once they measure, in order."""
    end = time.monotonic() + 90
    while time.monotonic() < end:
        found = [one for one in marked(mark) if '"progress":"/proc' in line_of(one)]
        if len(found) == count and all(len(one.threads()) > 2 for one in found):
            time.sleep(2)
            return sorted(found, key=lambda one: int(one.environ()["RANK"]))
        time.sleep(0.1)
    raise TimeoutError("the ranks never measured")


def line_of(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


@pytest.mark.parametrize("ranks", [2, 4])
def test_ranks_of_this_machine_are_measured_and_verified(ranks):
    report, code = measured("--ranks", str(ranks), "--op", "all_reduce", "--op", "all_to_all", *BRIEF)
    assert (code, report["incomplete"]) == (0, [])
    told = {(one["op"], one["mode"], one["bytes"]) for one in results(report)}
    modes = ("free-running", "synchronised")
    assert told == {(op, mode, size) for op in ("all_reduce", "all_to_all") for mode in modes for size in (1024, 65536)}
    for one in results(report):
        assert (one["ranks"], one["correct"], one["backend"]) == (ranks, True, "gloo")
        seconds = one["latency_us"]["median"] / 1e6
        assert one["algbw_gbps"] == pytest.approx(one["bytes"] / seconds / 1e9, rel=1e-4)
        factor = (2 if one["op"] == "all_reduce" else 1) * (ranks - 1) / ranks
        assert one["busbw_gbps"] == pytest.approx(one["algbw_gbps"] * factor, rel=1e-4)


def test_the_table_of_nccl_tests_is_read_back(tmp_path):
    done = subprocess.run(
        (*COMM, *BRIEF[:-1], "nccl-tests"), env=alone({}), capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0
    (tmp_path / "table.txt").write_text(done.stdout)
    again, _ = measured("--compare", str(tmp_path / "table.txt"), *BRIEF)
    earlier = {one["bytes"] for one in again["facts"]["CollectiveEarlier"]}
    assert earlier == {1024, 65536}
    assert not [one for one in again["incomplete"] if "alike" in one]


def test_sizes_are_those_of_a_model(tmp_path):
    shape = {"architectures": ["LlamaForCausalLM"], "hidden_size": 5120, "num_hidden_layers": 64, "vocab_size": 152064}
    (tmp_path / "config.json").write_text(json.dumps(shape))
    report, _ = measured("--model", str(tmp_path), "--batch", "1", "--step", "256:900ms", *BRIEF[2:])
    assert {one["bytes"] for one in results(report)} == {10240, 2621440}
    steps = {one["batch"]: one for one in report["facts"]["DecodeStep"]}
    assert {(one["calls"], one["basis"]) for one in steps.values()} == {(129, "measured")}
    assert steps[256]["measured_share"] == pytest.approx(steps[256]["comm_ms"] / 900, rel=1e-4)


def test_a_backend_that_adds_wrong_is_caught_at_every_size():
    report, code = measured(
        *("--sizes", "1KiB:1MiB:4", *BRIEF[2:4], "--backend", "adds_wrong", "--import", "adds_wrong"),
        *("--format", "json"),
        PYTHONPATH=str(PLUGINS),
    )
    assert [one["correct"] for one in results(report)] == [False] * 12
    assert code == 1
    assert report["findings"][0]["id"] == "collectives/wrong-result"


def test_torchrun_makes_one_document():
    report, code = measured(*BRIEF, launcher=(sys.executable, "-m", "torch.distributed.run", *TORCHRUN))
    assert (code, report["facts"]["CollectiveWorld"][0]["launcher"]) == (0, "torchrun")
    assert {one["ranks"] for one in results(report)} == {4}


TORCHRUN = ("--nproc-per-node", "4", "--standalone", "--no-python")


@pytest.mark.skipif(not shutil.which("mpirun"), reason="no mpirun here")
def test_mpirun_makes_one_document():
    root = ("--allow-run-as-root",) if os.getuid() == 0 else ()
    report, code = measured(*BRIEF, launcher=("mpirun", *root, "--oversubscribe", "-np", "4"))
    assert (code, report["facts"]["CollectiveWorld"][0]["launcher"]) == (0, "Open MPI")
    assert {one["ranks"] for one in results(report)} == {4}


def test_srun_makes_one_document():
    with socket.socket() as one:
        one.bind(("", 0))
        job = {"SLURM_STEP_NUM_TASKS": "4", "SLURM_STEP_NODELIST": "127.0.0.1", "SLURM_JOB_ID": uuid.uuid4().hex}
    steps = [
        subprocess.Popen(
            (*COMM, *BRIEF),
            env=alone(job | {"SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank)}),
            stdout=-1,
            stderr=-1,
            text=True,
        )
        for rank in range(4)
    ]
    told = [one.communicate(timeout=240) for one in steps]
    assert [bool(stdout) for stdout, _ in told] == [True, False, False, False]
    assert [one.returncode for one in steps] == [0] * 4
    assert {one["ranks"] for one in results(json.loads(told[0][0]))} == {4}


@pytest.fixture
def ray_address(tmp_path) -> Iterator[str]:
    ray = Path(sys.executable).with_name("ray")
    if not importlib.util.find_spec("ray") or not ray.exists():
        pytest.skip("no Ray in this environment")
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    start = (ray, "start", "--head", f"--port={port}", "--num-cpus=4", "--include-dashboard=false")
    environment = alone({"RAY_TMPDIR": f"/tmp/r{port}"})
    subprocess.run((*start, "--disable-usage-stats"), env=environment, check=True, capture_output=True, timeout=120)
    yield f"127.0.0.1:{port}"
    for one in psutil.process_iter():
        if f"/tmp/r{port}" in line_of(one) and one.pid != os.getpid():
            one.kill()
    shutil.rmtree(f"/tmp/r{port}", ignore_errors=True)


def test_ray_places_ranks_for_one_document(ray_address):
    report, code = measured("--ray", ray_address, "--ranks", "3", "--isolate", *BRIEF)
    assert (code, report["facts"]["CollectiveWorld"][0]["launcher"]) == (0, "Ray")
    assert {one["ranks"] for one in results(report)} == {3}
    assert len(report["facts"]["RankTiming"]) == 3


def test_a_frozen_rank_is_named(begun):
    diag, ranks = begun("--ranks", "3", *LONG)
    ranks[1].send_signal(signal.SIGSTOP)
    report = json.loads(diag.communicate(timeout=30)[0])
    assert (trouble(report)["kind"], trouble(report)["suspects"]) == ("stalled", [1])
    assert report["facts"]["CollectiveRank"][1]["state"] == "T"
    assert (diag.returncode, report["findings"][0]["id"]) == (1, "collectives/rank-silent")
    assert results(report)


def test_a_rank_that_dies_is_named(begun):
    diag, ranks = begun("--ranks", "3", *LONG)
    ranks[2].kill()
    report = json.loads(diag.communicate(timeout=30)[0])
    assert (trouble(report)["kind"], trouble(report)["suspects"]) == ("died", [2])
    assert (diag.returncode, report["findings"][0]["id"]) == (1, "collectives/rank-died")
    assert results(report)


def test_an_interface_that_is_not_there_is_named():
    report, code = measured("--ranks", "2", *BRIEF, GLOO_SOCKET_IFNAME="nowhere0")
    assert (code, trouble(report)["kind"]) == (1, "unreachable")
    assert "nowhere0" in trouble(report)["reason"]


@pytest.fixture
def apart() -> Iterator[tuple[str, str]]:
    """Two hosts, as far as the network goes: `veth0` leads to the other, `ca` leads nowhere."""
    if os.getuid() or not shutil.which("ip"):
        pytest.skip("network namespaces need root and iproute2")
    one, two = (f"diag{os.getpid()}{letter}" for letter in "ab")

    def ip(line: str) -> bool:
        return subprocess.run(("ip", *line.split()), capture_output=True).returncode == 0

    made = [
        ip(f"netns add {one}"),
        ip(f"netns add {two}"),
        ip(f"link add veth0 netns {one} type veth peer name veth0 netns {two}"),
    ]
    if not all(made):
        ip(f"netns del {one}"), ip(f"netns del {two}")
        pytest.skip("no network namespaces here")
    for number, name in enumerate((one, two), 1):
        ip(f"link add veth1 netns {name} type veth peer name d netns {name}")
        ip(f"-n {name} addr add 10.77.0.{number}/24 dev veth0")
        ip(f"-n {name} addr add 10.88.{number}.1/24 dev veth1")
        for link in ("lo", "veth0", "veth1", "d"):
            ip(f"-n {name} link set {link} up")
    yield one, two
    ip(f"netns del {one}"), ip(f"netns del {two}")


NAMED = 'hostname "$0"; exec "$@"'
"""Gloo takes ranks whose hosts bear the same name for neighbours, and connects them by the loopback."""


@pytest.mark.parametrize(("interface", "kind"), [("veth0", None), ("veth1", "unreachable")])
def test_ranks_of_two_hosts_that_can_and_cannot_reach_each_other(apart, interface, kind):
    world = {"WORLD_SIZE": "2", "LOCAL_RANK": "0", "MASTER_ADDR": "10.77.0.1", "MASTER_PORT": "23456"}
    steps = [
        subprocess.Popen(
            (
                "ip",
                "netns",
                "exec",
                host,
                "unshare",
                "--uts",
                "sh",
                "-c",
                NAMED,
                host,
                *COMM,
                *BRIEF,
                "--patience",
                "5",
            ),
            env=alone(world | {"RANK": str(rank), "GLOO_SOCKET_IFNAME": interface}),
            stdout=-1,
            stderr=-1,
            text=True,
        )
        for rank, host in enumerate(apart)
    ]
    (told, _), (nothing, said) = (one.communicate(timeout=100) for one in steps)
    report = json.loads(told)
    if kind:
        assert (trouble(report)["kind"], trouble(report)["suspects"]) == (kind, [1])
        assert "rank 1: joining the group" in said
    else:
        assert {one["correct"] for one in results(report)} == {True}
    assert nothing == ""


@pytest.mark.parametrize("after", [0.3, 1.5, 4.0])
def test_killed_at_any_point_it_leaves_nothing(begun, after):
    mark, before = uuid.uuid4().hex, set(SHARED.iterdir())
    diag = subprocess.Popen((*COMM, "--ranks", "3", *LONG), env=alone({MARK: mark}), stdout=-1, stderr=-1)
    time.sleep(after)
    diag.kill()
    diag.communicate()
    end = time.monotonic() + 5
    while marked(mark) and time.monotonic() < end:
        time.sleep(0.05)
    assert marked(mark) == []
    assert set(SHARED.iterdir()) - before == set()


def test_processes_of_a_host_without_an_accelerator_are_no_answer_unless_asked_for():
    report, code = measured("--sizes", "1KiB", "--budget", "1", "--format", "json")
    assert code == 4
    assert "no accelerator was seen" in report["incomplete"][0]
    assert {one["backend"] for one in results(report)} == {"gloo"}


def test_where_no_ray_cluster_answers_it_is_said_at_once():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        report, code = measured("--ray", f"127.0.0.1:{one.getsockname()[1]}", *BRIEF)
    assert code == 4
    assert "no Ray cluster answers" in report["incomplete"][0]


def test_one_rank_alone_is_not_measured():
    report, code = measured("--ranks", "1", *BRIEF)
    assert (code, results(report)) == (4, [])
    assert "one rank alone" in report["incomplete"][0]


def test_graphs_that_a_device_does_not_have_are_no_fault_of_it():
    report, code = measured("--mode", "graph", "--device", "cpu", *BRIEF)
    assert (code, results(report), report["findings"]) == (4, [], [])
    assert "cpu has no graphs to capture calls in" in report["incomplete"][0]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--sizes", "foo"), "it is not a size"),
        (("--sizes", "4KiB:1KiB"), "smaller than"),
        (("--sizes", "1KiB:2KiB:1"), "FROM:TO"),
        (("--batch", "0", "--model", "/"), "/config.json"),
        (("--compare", os.devnull), "not a file"),
        (("--compare", __file__), "no measurement"),
        (("--step", "256:52.8"), "--model FILE"),
        (("--batch", "1,8"), "--model FILE"),
        (("--model", str(SHAPE), "--sizes", "1KiB"), "--batch"),
        (("--weights-bytes", "31e9"), "--model FILE"),
        (("--model", str(SHAPE), "--step", "256"), "TOKENS:MS"),
        (("--ranks", "0"), "0 is not in the range"),
        (("--ray", ""), "it is empty"),
        (("--model", str(SHAPE), "--weights-bytes", "nan"), "nan is no number"),
        (("--sizes", "\u0661\u0662"), "it is not a size"),
    ],
)
def test_bad_input_is_one_line(options, says):
    done = subprocess.run((*COMM, *options), env=alone({}), capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert says in done.stderr.splitlines()[-1]


def test_a_launcher_of_another_size_is_refused():
    world = {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
    done = subprocess.run((*COMM, "--ranks", "4"), env=alone(world), capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (2, "diag: --ranks 4: torchrun started 2\n")
