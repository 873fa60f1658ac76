"""`diag explain` as a support engineer types it, on a laptop that has no torch and may be no Linux."""

import bz2
import gzip
import io
import json
import lzma
import os
import subprocess
import sys
import tarfile
import time
import zipfile
from itertools import cycle
from pathlib import Path

import pytest

REPORTS = Path(__file__).resolve().parents[1] / "reports"
DIAG = (sys.executable, "-c", "from diag.cli import main; main()")
SEGMENT = REPORTS / "nccl-shm-extend-k8s.txt"
KNOWN = SEGMENT.read_text()
UNKNOWN = "INFO all is well\nERROR 09-24 20:59:58 [core.py:79] frobnicator exploded on 10.20.30.40: code 77\n"
WRAPPER = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n"
LAPTOP = """
import importlib.abc, os, sys
class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in ('torch', 'psutil', 'pynvml', 'spwd', 'nis', 'ossaudiodev'):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
for name in ('sched_getaffinity', 'memfd_create', 'eventfd', 'pidfd_open', 'posix_fadvise', 'splice'):
    if hasattr(os, name): delattr(os, name)
sys.platform = 'darwin'
real = open
import builtins
def refused(file, *arguments, **named):
    if str(file).startswith(('/proc/', '/sys/')): raise FileNotFoundError(file)
    return real(file, *arguments, **named)
builtins.open = refused
from diag.cli import main
main()
"""


def explain(
    *arguments: object, stdin: str | bytes = "", program: tuple[str, ...] = DIAG
) -> subprocess.CompletedProcess:
    return subprocess.run(
        (*program, "explain", *map(str, arguments)),
        input=stdin.encode() if isinstance(stdin, str) else stdin,
        capture_output=True,
        timeout=120,
        env={**os.environ, "COLUMNS": "200"},
    )


def document(*arguments: object, stdin: str = "", program: tuple[str, ...] = DIAG) -> dict:
    return json.loads(explain(*arguments, "--format", "json", stdin=stdin, program=program).stdout)


def test_a_known_fault_is_named_with_its_line_and_its_fix():
    report = document("-", stdin=KNOWN)
    first = report["findings"][0]
    assert (report["command"], first["id"], first["severity"]) == ("explain", "host/nccl-segment-no-space", "error")
    assert "failed to extend /dev/shm" in first["evidence"][0]["quote"]
    assert any("shm" in command for remedy in first["remedies"] for command in remedy["commands"])
    assert report["unexplained"] is None


@pytest.mark.parametrize(
    ("text", "options", "code"),
    [
        (KNOWN, (), 0),
        (KNOWN, ("--fail-on", "error"), 1),
        (UNKNOWN, (), 4),
        (WRAPPER, (), 4),
        ("", (), 4),
        ("a poem about machines", (), 4),
        ((REPORTS / "negatives" / "neg-vllm-start-tp2-qwen.txt").read_text(), (), 0),
    ],
)
def test_exit_codes(text, options, code):
    done = explain("-", *options, stdin=text)
    assert (done.returncode, done.stderr) == (code, b"")


def test_no_answer_is_said_to_be_none_with_what_there_is():
    report = document("-", stdin="INFO step 1 done\nINFO step 2 done\n" * 50 + UNKNOWN)
    assert report["findings"] == []
    assert report["verdict"] == "incomplete"
    assert [(one["line"], "frobnicator" in one["quote"]) for one in report["unexplained"]["errors"]] == [(102, True)]
    assert {"quote": "step <*> done", "times": 100, "capture": "stdin", "line": 1} in report["unexplained"]["templates"]
    assert "10.20.30.40" not in json.dumps(report)


def test_a_wrapper_alone_is_no_cause():
    report = document("-", stdin=WRAPPER)
    assert report["findings"][0]["id"] == "engine/core-did-not-start"
    assert "no rule names why" in report["incomplete"][0]


@pytest.mark.parametrize("text", [UNKNOWN, KNOWN])
def test_a_block_to_paste_into_an_issue(text):
    issue = explain("-", "--format", "issue", stdin=text).stdout.decode()
    assert issue.startswith("### What happened")
    assert issue.count("```") % 2 == 0
    assert "10.20.30.40" not in issue


def test_archives_and_several_files(tmp_path):
    packed = tmp_path / "node1.log.gz"
    packed.write_bytes(gzip.compress(KNOWN.encode()))
    plain = tmp_path / "node2.log"
    plain.write_text((REPORTS / "sampler-warmup-llmd-095.txt").read_text())
    report = document(packed, plain)
    assert {(one["evidence"][0]["capture"], one["id"]) for one in report["findings"]} >= {
        ("node1.log", "host/nccl-segment-no-space"),
        ("node2.log", "memory/sampler-warm-up-exhausted"),
    }


def tarred(**members: bytes) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as file:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            file.addfile(member, io.BytesIO(content))
    return raw.getvalue()


def zipped(**members: bytes) -> bytes:
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)
    return raw.getvalue()


KEPT, ZIPPED = (pack(**{"node1.log": KNOWN.encode()}) for pack in (tarred, zipped))


@pytest.mark.parametrize(
    "raw", [KEPT, gzip.compress(KEPT), bz2.compress(KEPT), lzma.compress(KEPT), gzip.compress(KNOWN.encode()), ZIPPED]
)
def test_an_archive_is_one_whatever_it_is_called_and_whoever_hands_it_over(raw, tmp_path):
    (tmp_path / "logs").write_bytes(raw)
    for done in (explain(tmp_path / "logs"), explain("-", stdin=raw)):
        assert b"host/nccl-segment-no-space" in done.stdout
        assert (done.returncode, done.stderr) == (0, b"")


def test_a_log_archive_with_a_manifest_of_its_own_is_no_bundle(tmp_path):
    (tmp_path / "x.tar").write_bytes(tarred(**{"manifest.json": b'{"name": "app"}', "a.log": KNOWN.encode()}))
    assert document(tmp_path / "x.tar")["findings"][0]["evidence"][0]["capture"] == "a.log"


def test_what_could_not_be_read_of_an_archive_is_told(tmp_path):
    (tmp_path / "x.tar").write_bytes(tarred(**{"a.log": KNOWN.encode(), "b.gz": gzip.compress(b"x")}))
    done = explain(tmp_path / "x.tar")
    assert done.returncode == 4
    assert b"b.gz: it is an archive itself" in done.stdout


def test_of_a_stream_without_end_the_findings_are_told_in_time():
    endless = subprocess.Popen(("sh", "-c", 'cat "$0"; yes', str(SEGMENT)), stdout=subprocess.PIPE)
    done = subprocess.run(
        (*DIAG, "explain", "-", "--timeout", "3"), stdin=endless.stdout, capture_output=True, timeout=60
    )
    endless.stdout.close()
    endless.wait()
    assert (done.returncode, done.stderr) == (4, b"")
    assert b"host/nccl-segment-no-space" in done.stdout
    assert b"before all of stdin was read" in done.stdout


@pytest.mark.parametrize("command", [("explain", str(SEGMENT)), ("checks", "list"), ("--help",)])
def test_a_reader_that_has_gone_ends_it_quietly(command):
    end, start = os.pipe()
    os.close(end)
    with open(start, "wb") as gone:
        done = subprocess.run((*DIAG, *command), stdout=gone, stderr=subprocess.PIPE, timeout=60)
    assert (done.returncode, done.stderr) == (141, b"")


def thousand(path: Path) -> Path:
    logs = [one.read_bytes() for one in sorted(REPORTS.glob("*.txt"))]
    path.write_bytes(gzip.compress(tarred(**{f"{n}.log": logs[n % len(logs)] + b"\n%d" % n for n in range(1000)})))
    return path


def endless(path: Path) -> Path:
    path.write_text("".join(f"RuntimeError: CUDA error: an illegal memory access {n} x " for n in range(4_000_000)))
    return path


def messages(path: Path) -> Path:
    lines = [line for one in sorted(REPORTS.glob("*.txt")) for line in one.read_text().splitlines() if "rror" in line]
    path.write_text("".join(f"{line} {n}\n" for n, line in zip(range(600_000), cycle(lines))))
    return path


LONG = {"a thousand logs": thousand, "a line without end": endless, "known messages alone": messages}
PEAK = """
import atexit, re, sys
atexit.register(lambda: sys.stderr.write(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]))
from diag.cli import main
main()
"""


@pytest.mark.skipif("DIAG_EXAMPLES" not in os.environ, reason="make soak")
@pytest.mark.parametrize("name", ["a thousand logs", "a line without end", "known messages alone"])
def test_memory_and_time_do_not_grow_with_the_text(name, tmp_path):
    path = LONG[name](tmp_path / "text")
    start = time.monotonic()
    done = explain(path, program=(sys.executable, "-c", PEAK))
    assert time.monotonic() - start < 100
    assert int(done.stderr) < 300 * 1024


@pytest.mark.parametrize(("arguments", "says"), [((), "Missing argument"), (("/no/such",), "cannot read /no/such")])
def test_bad_input_is_one_line(arguments, says):
    done = explain(*arguments)
    assert done.returncode == 2
    assert says in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1


def test_the_answers_are_the_same_on_a_laptop():
    laptop = (sys.executable, "-c", LAPTOP)
    for name in ("nccl-shm-extend-k8s", "sm120-5090-legged", "xid79-nvsentinel", "mamba-blocks-h100-qwen36"):
        text = (REPORTS / f"{name}.txt").read_text()
        own, theirs = (document("-", stdin=text, program=program)["findings"] for program in (DIAG, laptop))
        assert own == theirs
        assert own


def test_colours_and_the_marks_of_docker_are_seen_through():
    line = KNOWN.splitlines()[0]
    docker = json.dumps({"log": f"\x1b[31m{line}\x1b[0m\n", "stream": "stderr", "time": "2026-04-22T21:34:20Z"})
    for text in (docker, f"> > {line}", f"web-1  | {line}", f"\x1b[36m(Worker pid=1)\x1b[0m {line}"):
        assert document("-", stdin=text)["findings"][0]["id"] == "host/nccl-segment-no-space"


def run(*arguments: object) -> subprocess.CompletedProcess:
    return subprocess.run((*DIAG, "kb", *map(str, arguments)), capture_output=True, text=True, timeout=120)


def test_entries_are_listed_searched_and_shown():
    assert "nccl/device-shared-by-ranks" in run("list", "nccl").stdout
    assert run("search", "warming up", "sampler").stdout.startswith("memory/sampler-warm-up-exhausted")
    assert "采样器" in run("show", "memory/sampler-warm-up-exhausted", "--lang", "zh").stdout
    for arguments in (
        ("list", "no-such"),
        ("search", "no-such-word"),
        ("show", "no/such"),
        ("show", "nvidia/xid-fatal"),
    ):
        done = run(*arguments)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_a_new_entry_is_written_once_and_linted(tmp_path):
    made = run("new", "site/fan-stops", "--root", tmp_path)
    path = tmp_path / "kb/entries/site/fan-stops.yaml"
    assert (made.returncode, made.stdout.splitlines()[0]) == (0, str(path))
    assert run("new", "site/fan-stops", "--root", tmp_path).returncode == 2
    assert run("lint", path).returncode == 1
    text = path.read_text().replace("'…'", "'fan \\d stopped'").replace("      en: (", "      en: x (")
    text = text.replace("(a real text, as somebody would paste it)", "fan 3 stopped")
    path.write_text(text)
    done = run("lint", path)
    assert (done.returncode, done.stdout) == (0, "1 entries, 0 complaints\n")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("new", "host/nccl-segment-no-space"), "host/nccl-segment-no-space is a rule already"),
        (("show", "nope"), "no entry 'nope' (diag kb list)"),
        (("lint", "absent.yaml"), "absent.yaml is no entry"),
    ],
)
def test_a_mistake_is_one_line(arguments, says, tmp_path):
    done = run(*arguments)
    assert (done.returncode, done.stderr.count("\n"), done.stdout) == (2, 1, "")
    assert says in done.stderr


@pytest.mark.parametrize(("form", "language"), [("terminal", "en"), ("markdown", "zh")])
def test_a_consequence_is_told_to_be_one(form, language):
    said = {"en": "a consequence of finding 1", "zh": "是第 1 项的后果"}[language]
    shown = explain(REPORTS / "sampler-warmup-llmd-095.txt", "--format", form, "--lang", language).stdout.decode()
    assert shown.count(said) == 1
    assert shown.index("memory/sampler-warm-up-exhausted") < shown.index(said)
