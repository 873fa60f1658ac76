"""The command line as a shell sees it: real processes, exit codes, what goes to stdout and to stderr."""

import contextlib
import json
import os
import re
import signal
import stat
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import psutil
import pytest

DIAG = (sys.executable, "-c", "from diag.cli import main; main()")
FAULTY = """\
Collecting environment information...
PyTorch version: 2.4.0+cu121
CUDA used to build PyTorch: 12.1
Is CUDA available: False
GPU models and configuration: GPU 0: NVIDIA A100-SXM4-80GB
"""
HEALTHY = FAULTY.replace("False", "True")


def diag(*arguments, stdin: str | bytes = "", **environment) -> subprocess.CompletedProcess:
    raw = stdin.encode() if isinstance(stdin, str) else stdin
    done = subprocess.run(
        (*DIAG, *map(str, arguments)), input=raw, capture_output=True, env={**os.environ, **environment}, timeout=60
    )
    done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
    return done


@pytest.mark.parametrize(
    ("text", "options", "code"),
    [
        (HEALTHY, (), 0),
        (FAULTY, (), 1),
        (FAULTY, ("--fail-on", "never"), 0),
        ("a poem about machines", (), 4),
        ("", (), 4),
        (FAULTY, ("--select", "host/open-files-few"), 4),
        (FAULTY, ("--select", "torch/device-unavailable"), 1),
    ],
)
def test_exit_codes(text, options, code):
    done = diag("env-check", "-", *options, stdin=text)
    assert (done.returncode, done.stderr) == (code, "")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("env-check", "/no/such/file"), "cannot read /no/such/file: No such file or directory"),
        (("env-check", "/"), "cannot read /: Is a directory"),
        (("env-check", sys.executable), "is neither a text nor a bundle"),
        (("env-check", "--format", "pdf"), "no format 'pdf'; there are terminal, json, nccl-tests, markdown"),
        (("env-check", "--report", "x.pdf"), "x.pdf: the extension of a report says its format"),
        (("env-check", "--report", "/no/such/folder/x.json"), "/no/such/folder is not a folder"),
        (("env-check", "--select", "nvdia/"), "no check begins with 'nvdia/'"),
        (("env-check", "--python", "/no/python"), "--python /no/python: no such program"),
        (("env-check", "--root", "/no/root"), "root /no/root is not a folder"),
        (("env-check", "--timeout", "0"), "'--timeout'"),
        (("env-check", "--timeout", "nan"), "'--timeout'"),
        (("env-check", "--root", ""), "'--root': it is empty"),
        (("env-check", "--select", ""), "'--select': it is empty"),
        (("env-check", "--python", ""), "'--python': it is empty"),
        (("env-check", ""), "it is empty"),
        (("env-check", "/etc/hostname", "/etc/hostname"), "/etc/hostname is named twice"),
        (("env-check", "/etc/hostname", "--quick"), "are about this host"),
        (("env-check", "--report", "/tmp/x.md", "--report", "/tmp/x.md"), "it is named twice"),
        (("env-check", "--launch", "ls -l"), "--launch: no engine is started in it"),
        (("env-check", "--launch", "vllm serve 'half"), "no engine is started in it"),
        (("env-check", "--quick", "--deep"), "--quick and --deep exclude each other"),
        (("env-check", "--lang", "fr"), "'--lang'"),
        (("env-check", "--no-such-option"), "--no-such-option"),
        (("no-such-command",), "no-such-command"),
        (("render", "/etc/hostname"), "/etc/hostname is not a report"),
        (("bundle", "-o", "x.rar"), "x.rar: a bundle is a .tar.gz"),
        (("bundle", "-o", "/no/such/folder/x.tar.gz"), "/no/such/folder is not a folder"),
        (("checks", "show", "no/such"), "no check 'no/such'"),
        (("schema", "nothing"), "no document 'nothing'"),
    ],
)
def test_what_the_user_can_put_right_is_one_line_and_exit_2(arguments, says):
    done = diag(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_document_and_the_files_say_the_same(tmp_path):
    report, page = tmp_path / "r.json", tmp_path / "r.md"
    done = diag("env-check", "-", "--format", "json", "--report", report, "--report", page, stdin=FAULTY)
    assert json.loads(done.stdout) == json.loads(report.read_text())
    assert "torch/device-unavailable" in page.read_text()
    assert stat.S_IMODE(report.stat().st_mode) == 0o644


def test_quiet_leaves_the_exit_code_alone(tmp_path):
    done = diag("env-check", "-", "--quiet", "--report", tmp_path / "r.json", stdin=FAULTY)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")
    assert json.loads((tmp_path / "r.json").read_text())["verdict"] == "fail"


def test_a_report_takes_another_form_and_keeps_its_exit_code(tmp_path):
    diag("env-check", "-", "--quiet", "--report", tmp_path / "r.json", stdin=FAULTY)
    done = diag("render", tmp_path / "r.json", "--format", "markdown")
    assert done.returncode == 1
    assert done.stdout.startswith("# diag: fail")


def test_chinese_is_spoken():
    done = diag("env-check", "-", "--lang", "zh", stdin=FAULTY)
    assert "机器有设备，但 torch 看不到" not in done.stdout  # the title; the summary is what is shown
    assert "报告没有可用设备" in done.stdout


@pytest.mark.parametrize("form", ["terminal", "json", "markdown"])
def test_output_that_cannot_encode_is_still_a_document(form):
    done = diag("env-check", "-", "--lang", "zh", "--format", form, stdin=FAULTY, PYTHONIOENCODING="ascii")
    assert done.returncode == 1
    assert form != "json" or json.loads(done.stdout)["language"] == "zh"


def test_names_and_addresses_are_replaced_unless_asked_not_to():
    prompts = (f"[root@node-{number} ~]# nvidia-smi\nbash: nvidia-smi: command not found\n" for number in (16, 17))
    text = "".join(prompts) + FAULTY
    closed = diag("env-check", "-", "--format", "json", stdin=text)
    opened = diag("env-check", "-", "--format", "json", "--no-redact", stdin=text)
    assert "node-17" not in closed.stdout
    assert "node-17" in opened.stdout


def test_several_files_of_two_machines_are_told_apart(tmp_path):
    (tmp_path / "a.txt").write_text(FAULTY)
    (tmp_path / "b.txt").write_text(HEALTHY.replace("2.4.0", "2.5.1"))
    done = diag("env-check", tmp_path / "a.txt", tmp_path / "b.txt", "--format", "json")
    assert [one["scope"] for one in json.loads(done.stdout)["findings"]] == ["a.txt"]


def test_a_closed_pipe_is_no_traceback():
    done = subprocess.run(
        f"{sys.executable} -c 'from diag.cli import main; main()' checks list | head -1",
        shell=True,
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""


def test_a_full_disk_is_one_line_and_the_document_is_out():
    done = diag("env-check", "-", "--format", "json", "--report", "/dev/full", stdin=FAULTY)
    assert done.returncode == 2 or "extension" in done.stderr
    assert "Traceback" not in done.stderr


def test_stdout_on_a_full_disk_is_one_line():
    with open("/dev/full", "w") as full:
        done = subprocess.run((*DIAG, "env-check", "-"), input=b"x", stdout=full, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)


@pytest.fixture
def hanging_tool(tmp_path) -> Path:
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\ntrap '' TERM\nsleep 600\n")
    tool.chmod(0o755)
    return tmp_path


def alive(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def asleep(pid: int) -> list[psutil.Process]:
    """All that a process has started, as soon as one of them sleeps."""
    while True:
        started = psutil.Process(pid).children(recursive=True)
        # One that ends while it is asked is not the one that is waited for.
        with contextlib.suppress(psutil.NoSuchProcess):
            if any("sleep" in one.name() for one in started):
                return started
        time.sleep(0.05)


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_leaves_no_process(hanging_tool, sent, code):
    path = f"{hanging_tool}:{os.environ['PATH']}"
    running = subprocess.Popen(
        (*DIAG, "env-check", "--quick"), env={**os.environ, "PATH": path}, stdout=subprocess.DEVNULL
    )
    started = asleep(running.pid)
    running.send_signal(sent)
    try:
        assert running.wait(20) == code
    finally:
        running.kill()
        running.wait()
    assert not [one for one in started if alive(one)]


def test_the_time_bound_holds_and_makes_the_run_incomplete(hanging_tool):
    start = time.monotonic()
    done = diag(
        *("env-check", "--quick", "--timeout", "1", "--format", "json", "--fail-on", "never"),
        PATH=f"{hanging_tool}:{os.environ['PATH']}",
    )
    assert time.monotonic() - start < 10
    assert done.returncode == 4
    assert "nvidia-smi" in json.loads(done.stdout)["incomplete"][0]


def test_a_bundle_of_this_host_is_judged_like_the_host(tmp_path):
    path = tmp_path / "b.tar.gz"
    made = diag("bundle", "-o", path, "--quick")
    assert made.returncode == 0
    live, opened = (json.loads(diag("env-check", *one, "--format", "json").stdout) for one in (("--quick",), (path,)))
    assert {(one["id"], one["status"]) for one in live["results"]} == {
        (one["id"], one["status"]) for one in opened["results"]
    }
    assert live["verdict"] == opened["verdict"]
    assert tarfile.is_tarfile(path)


def test_nothing_is_written_but_the_cache(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    done = diag("env-check", "--quick", "--fail-on", "never", HOME=str(home), XDG_CACHE_HOME="", XDG_CONFIG_HOME="")
    assert done.returncode == 4
    written = sorted(str(one.relative_to(home)) for one in home.rglob("*") if one.is_file())
    assert [re.sub("[0-9a-f]{16}", "ROOTS", one) for one in written] == [
        ".cache/diag/kb-ROOTS.cache",
        ".cache/diag/redact.key",
        ".cache/diag/scan-ROOTS.cache",
    ]


def test_no_home_no_environment():
    done = subprocess.run((*DIAG, "env-check", "--quick", "--fail-on", "never"), env={}, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (4, "")


def test_a_bug_is_a_block_to_paste_and_exit_3(tmp_path):
    spoiled = "import diag.report; diag.report.assemble = None; from diag.cli import main; main()"
    done = subprocess.run((sys.executable, "-c", spoiled, "env-check", "-"), input="x", capture_output=True, text=True)
    assert done.returncode == 3
    assert done.stderr.startswith("diag met a bug of its own")
    assert "```" in done.stderr


def test_help_names_every_command_and_imports_nothing_heavy():
    done = subprocess.run(
        (sys.executable, "-X", "importtime", *DIAG[1:], "--help"), capture_output=True, text=True, check=True
    )
    assert all(name in done.stdout for name in ("env-check", "bundle", "render", "selftest", "schema", "checks"))
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert imported.isdisjoint({"rich", "yaml", "jinja2", "torch"})


def test_a_report_never_takes_the_place_of_what_was_read(tmp_path):
    (tmp_path / "paste.md").write_text(FAULTY)
    done = diag("env-check", tmp_path / "paste.md", "--report", tmp_path / "paste.md")
    assert done.returncode == 2
    assert (tmp_path / "paste.md").read_text() == FAULTY


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "r.json").write_text("old")
    (tmp_path / "link.json").symlink_to(tmp_path / "r.json")
    diag("env-check", "-", "--quiet", "--report", tmp_path / "link.json", stdin=FAULTY)
    assert (tmp_path / "link.json").is_symlink()
    assert json.loads((tmp_path / "r.json").read_text())["verdict"] == "fail"


def test_a_report_of_diag_is_no_paste(tmp_path):
    diag("env-check", "-", "--quiet", "--report", tmp_path / "r.json", stdin=FAULTY)
    done = diag("env-check", tmp_path / "r.json")
    assert (done.returncode, "diag render" in done.stderr) == (2, True)


def test_what_can_be_read_but_once_is_read():
    command = f"{sys.executable} -c 'from diag.cli import main; main()'"
    line = f"{command} env-check <(printf '%s' \"$T\")"
    done = subprocess.run(("bash", "-c", line), env={**os.environ, "T": FAULTY}, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize("kind", ["source", "check", "module"])
def test_the_time_bound_holds_for_what_never_ends(tmp_path, kind):
    if kind == "source":
        os.mkfifo(tmp_path / "fifo")
        arguments = ("env-check", tmp_path / "fifo")
    else:
        (tmp_path / "checks" / "site").mkdir(parents=True)
        body = "while True: pass" if kind == "module" else LOOPING
        (tmp_path / "checks" / "site" / "looping.py").write_text(body)
        arguments = ("env-check", "-", "--root", tmp_path)
    start = time.monotonic()
    done = diag(*arguments, "--timeout", "1", "--format", "json", stdin=HEALTHY)
    assert time.monotonic() - start < 10
    assert (done.returncode, json.loads(done.stdout)["verdict"]) == (4, "incomplete")


LOOPING = """
from diag.api import check
words = {"title": "t", "summary": "s", "cause": "c"}
@check("site/looping", severity="info", about="host", needs=(), words={"en": words, "zh": words})
def looping(facts):
    while True:
        pass
"""


@pytest.mark.parametrize("body", ["print('noise')", "import sys; sys.exit(7)", "class B(BaseException): pass\nraise B"])
def test_foreign_code_spoils_neither_the_document_nor_the_exit_code(tmp_path, body):
    (tmp_path / "checks").mkdir()
    (tmp_path / "checks" / "noisy.py").write_text(body)
    done = diag("env-check", "-", "--root", tmp_path, "--format", "json", stdin=FAULTY)
    assert done.returncode == 1
    assert json.loads(done.stdout)["verdict"] == "fail"


def test_an_unreadable_part_of_a_root_is_named(tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root reads everything")
    (tmp_path / "checks").mkdir(mode=0o000)
    assert "PermissionError" in diag("checks", "list", "--root", tmp_path).stdout


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
def test_closed_streams_are_no_bug(closed):
    command = f"{sys.executable} -c 'from diag.cli import main; main()' env-check /no/such/file {closed}"
    done = subprocess.run(("bash", "-c", command), capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")


def test_a_name_that_is_no_text_is_written_all_the_same(tmp_path):
    path = os.fsencode(tmp_path) + b"/p\xff\n\x1b[31m.txt"
    with open(path, "w") as file:
        file.write(FAULTY)
    done = subprocess.run((*DIAG, "env-check", path, "--format", "json"), capture_output=True)
    assert (done.returncode, done.stderr) == (1, b"")
    assert json.loads(done.stdout)["source"]["name"] == "p\\xff .txt"


def test_a_damaged_bundle_is_incomplete(tmp_path):
    path = tmp_path / "b.tar.gz"
    diag("bundle", "-o", path, "--quick")
    path.write_bytes(path.read_bytes()[:-200])
    assert diag("env-check", path, "--fail-on", "never").returncode in (2, 4)


@pytest.mark.skipif(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN, reason="SIGHUP is ignored, as under nohup")
def test_a_closed_terminal_leaves_no_process(hanging_tool):
    path = f"{hanging_tool}:{os.environ['PATH']}"
    running = subprocess.Popen((*DIAG, "env-check", "--quick"), env={**os.environ, "PATH": path})
    started = asleep(running.pid)
    running.send_signal(signal.SIGHUP)
    assert running.wait(20) == 129
    assert not [one for one in started if alive(one)]
