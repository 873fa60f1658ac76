"""Shapes of text that we know from the programs' own templates and found no text of that we may keep.

The lines are ours, laid out as `nvidia-smi` (its row templates of drivers 470 and 535), torch's `collect_env.py`, `pip`
and `conda` lay theirs out; real texts are in `tests/captures`.
"""

from __future__ import annotations

from typing import Any

import pytest
from told import examined, facts_of, told

from diag.facts import LaunchArguments, PackageList, TorchBuild
from diag.sources import Asked

HEAD = "| NVIDIA-SMI {0}       Driver Version: {0}       CUDA Version: {1}     |\n"
ROW = """\
|   {index}  {name}  {mode} | 00000000:{bus}:00.0 Off |                    0 |
| N/A   32C    P0    42W / 400W |      6MiB / 81920MiB |      0%      Default |
|                               |                      |             Disabled |
"""
BUILT = "PyTorch version: {}\nIs debug build: {}\nCUDA used to build PyTorch: {}\nROCM used to build PyTorch: {}\n"


def tell(text: str, *names: str) -> dict[str, Any]:
    found = examined(text)
    assert found.broken == ()
    return told(found.facts, names)


def table(*rows: str, head: str = HEAD.format("535.104.05", "12.2")) -> dict[str, Any]:
    return tell(head + "".join(rows))


def row(index: int, name: str = "NVIDIA H100 80GB HBM3", mode: str = "On ", bus: str = "1A") -> str:
    return ROW.format(index=index, name=name, mode=mode, bus=bus)


@pytest.mark.parametrize(
    ("head", "driver"),
    [
        (HEAD.format("418.87.00", "10.1"), "418.87.00 offers 10.1"),
        ("| NVIDIA-SMI 390.48                 Driver Version: 390.48                    |\n", "390.48"),
        (
            "| NVIDIA-SMI 610.43.02    KMD Version: 610.43.02     CUDA UMD Version: 13.3     |\n",
            "610.43.02 offers 13.3",
        ),
        ("| NVIDIA-SMI 575.64    Driver Version: 575.64      CUDA Version: N/A      |\n", "575.64"),
        ("| NVIDIA-SMI 545.36   Driver Version: 546.33       CUDA Version: 12.3     |\n", "546.33 offers 12.3"),
        ("| NVIDIA-SMI 540.4.0  Driver Version: N/A          CUDA Version: 12.6     |\n", "offers 12.6"),
    ],
    ids=["418", "390 without CUDA", "610", "no CUDA", "WSL", "no driver version"],
)
def test_generations_of_the_header(head: str, driver: str) -> None:
    found = table(row(0), head=head)
    assert (found["driver"], sum(found["devices"].values())) == ([f"nvidia {driver}"], 1)


@pytest.mark.parametrize("mode", ["On ", "Off", "N/A", "WDDM ", "TCC", "ERR!"])
def test_modes_of_a_row(mode: str) -> None:
    assert table(row(0, mode=mode))["devices"] == {
        "nvidia NVIDIA H100 80GB HBM3 0000:1a:00.0 81920 MiB tool": 1,
    }


@pytest.mark.parametrize("count", [1, 8, 16])
def test_many_devices(count: int) -> None:
    found = table(*(row(index, bus=f"{index + 1:02X}") for index in range(count)))
    assert sum(found["devices"].values()) == count


def test_names_that_are_cut_or_not_told() -> None:
    found = table(row(0, "NVIDIA A100-SXM..."), row(1, "ERR!    ", bus="2B"))
    assert list(found["devices"]) == [
        "nvidia NVIDIA A100-SXM... 0000:1a:00.0 81920 MiB tool",
        "nvidia 0000:2b:00.0 81920 MiB tool",
    ]


def test_half_a_table() -> None:
    assert table(row(0).split("\n")[0])["devices"] == {"nvidia NVIDIA H100 80GB HBM3 0000:1a:00.0 tool": 1}
    assert table(row(0), head="| GPU  Name        Persistence-M| Bus-Id        Disp.A |\n").keys() == {
        "devices",
        "readings",
    }


@pytest.mark.parametrize("memory", ["Not Supported", "N/A /  N/A", "ERR! / ERR!"])
def test_memory_that_is_not_told(memory: str) -> None:
    found = table(row(0).replace("6MiB / 81920MiB", memory))
    assert found["devices"] == {"nvidia NVIDIA H100 80GB HBM3 0000:1a:00.0 tool": 1}


def test_parts_of_a_device_are_none() -> None:
    parts = "| MIG devices: |\n|  0    3   0   0  |  14366MiB / 19968MiB | 28      0 |  2   0    1    0    0 |\n"
    processes = "|    0   N/A  N/A      1234      C   python                 4321MiB |\n"
    assert sum(table(row(0), parts, processes)["devices"].values()) == 1
    listed = "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-x)\n  MIG 1g.10gb     Device  0: (UUID: MIG-x)\n" * 2
    assert tell(f"$ nvidia-smi -L\n{listed}")["devices"] == {"nvidia NVIDIA A100-SXM4-80GB tool": 2}


def test_the_long_log() -> None:
    log = "==============NVSMI LOG==============\nDriver Version                  : 550.54.15\n"
    log += "CUDA Version                    : 12.4\nAttached GPUs                   : 1\nGPU 00000000:3B:00.0\n"
    log += "    Product Name                : NVIDIA L4\n    FB Memory Usage\n        Total     : 23034 MiB\n"
    log += "    BAR1 Memory Usage\n        Total     : 32768 MiB\n"
    found = tell(log)
    assert found["driver"] == ["nvidia 550.54.15 offers 12.4"]
    assert found["devices"] == {"nvidia NVIDIA L4 0000:3b:00.0 23034 MiB tool": 1}


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("Failed to initialize NVML: Driver/library version mismatch", ["nvidia-smi failed"]),
        ("No devices were found", ["nvidia-smi failed"]),
        ("adb: error: No devices found. Try again", None),
        ("INFO No devices were found by the scheduler", None),
    ],
)
def test_refusals(words: str, what: list[str] | None) -> None:
    assert tell(f"some words\n{words}\n").get("unavailable") == what


@pytest.mark.parametrize(
    ("version", "cuda", "rocm", "backend"),
    [
        ("2.4.0", "12.4", "N/A", {"backend": "cuda", "backend_version": "12.4"}),
        ("2.6.0", "N/A", "6.2.41133-dd7f95766", {"backend": "rocm", "backend_version": "6.2.41133-dd7f95766"}),
        ("2.1.0", "None", "N/A", {"backend": "cpu"}),
        ("2.1.0a0+git1c57644", "Could not collect", "N/A", {"backend": "cpu"}),
        ("2.5.1+cpu", "Could not collect", "N/A", {"backend": "cpu"}),
        ("2.8.0+xpu", "None", "N/A", {"backend": "xpu"}),
        ("2.4.1+rocm6.1", "N/A", "N/A", {"backend": "rocm", "backend_version": "6.1"}),
        ("2.4.1+cu121", "N/A", "N/A", {"backend": "cuda", "backend_version": "12.1"}),
        ("2.5.1+das.opt1", "None", "N/A", {}),
        ("2.5.1", "N/A", "N/A", {}),
        ("N/A", "N/A", "N/A", None),
    ],
)
def test_what_torch_was_built_for(version: str, cuda: str, rocm: str, backend: dict[str, str] | None) -> None:
    builds = tell(BUILT.format(version, "False", cuda, rocm)).get("torch")
    assert builds == (None if backend is None else [{"version": version, **backend, "debug": False}])


@pytest.mark.parametrize(("answer", "available"), [("Yes", True), ("True", True), ("No", False), ("N/A", None)])
def test_answers(answer: str, available: bool | None) -> None:
    found = examined(BUILT.format("1.5.0", answer, "10.2", "N/A") + f"Is CUDA available: {answer}\n")
    assert [(one.available, one.debug) for one in found.facts.all(TorchBuild)] == [(available, available)]


def test_xpu_is_asked_whether_it_is_available() -> None:
    report = BUILT.format("2.8.0+xpu", "False", "None", "N/A") + "Is CUDA available: False\nIs XPU available: True\n"
    assert tell(report)["torch"][0]["available"] is True


@pytest.mark.parametrize(
    ("listed", "devices"),
    [
        ("\nGPU 0: NVIDIA A10\nGPU 11: NVIDIA A10\n", {"nvidia NVIDIA A10 tool": 2}),
        (" GPU 0\uff1a Tesla T4", {"nvidia Tesla T4 tool": 1}),
        (
            "\nGPU 0: NVIDIA A100\n  MIG 1g.10gb     Device  0:\n  MIG 1g.10gb     Device  1:\n",
            {"nvidia NVIDIA A100 tool": 1},
        ),
        (" AMD Instinct MI300X (gfx942:sramecc+:xnack-)", {"amd AMD Instinct MI300X gfx942 torch": 1}),
        ("  (gfx1201)", {"amd gfx1201 torch": 1}),
        (" AMD Instinct MI100NoGCNArchNameOnOldPyTorch", {"amd AMD Instinct MI100 torch": 1}),
        (" GeForce GTX 1080", {"nvidia GeForce GTX 1080 torch": 1}),
        ("\nGPU 0: NVIDIA A10\n\nNVIDIA H100 is better\nGPU 1: NVIDIA H100\n", {"nvidia NVIDIA A10 tool": 1}),
        (" Could not collect", {}),
    ],
)
def test_devices_of_a_report(listed: str, devices: dict[str, int]) -> None:
    text = f"{BUILT.format('2.4.0', 'False', '12.4', 'N/A')}GPU models and configuration:{listed}\n"
    assert tell(text).get("devices", {}) == devices


def test_a_package_of_pip_and_conda_is_one() -> None:
    rows = "[pip3] numpy==1.26.4\n[pip3] torch==2.4.0\n[conda] numpy 1.26.4 py310_0 conda-forge\n"
    rows += "[conda] pytorch 2.4.0 py3.10_cuda12.1_cudnn9.1.0_0 pytorch\n[conda] triton 3.0.0 pypi_0 pypi\n"
    found = tell(f"PyTorch version: 2.4.0\n{rows}", "torch", "numpy")
    assert found["packages"] == {"count": 3, "torch": "2.4.0", "numpy": "1.26.4"}


def test_packages_of_conda() -> None:
    rows = "# Name           Version       Build  Channel\n_libgcc_mutex    0.1    conda_forge  conda-forge\n"
    rows += "pytorch                   2.4.0           py3.10_cuda12.1_0    pytorch\nvllm      0.6.3   pypi_0    pypi\n"
    found = tell(f"# packages in environment at /opt/conda:\n#\n{rows}\nnumpy 1 2 3\n", "torch")
    assert (found["packages"], found["engine"]) == ({"count": 3, "torch": "2.4.0"}, ["vllm 0.6.3"])


@pytest.mark.parametrize(
    "text",
    [
        "RUN pip install \\\n    torch==2.4.0 \\\n    numpy==1.26 \\\n",
        "torch==2.4.0 \\\n    --hash=sha256:00\nnumpy==1.26.4 \\\n    --hash=sha256:00\n",
        "vllm[audio]==0.10\ntorch==2.4.0 ; python_version > '3.8'\n",
        "if x == 1\nassert y == 2\nmode==train\nstate==done\n",
    ],
)
def test_what_is_wanted_is_not_installed(text: str) -> None:
    assert tell(text) == {}


def test_a_list_with_something_left_out_is_not_whole() -> None:
    rows = "".join(f"yarl{number} 1.{number}\n" for number in range(30))
    whole = [
        examined(f"Package Version\n------- ---\n{rows}{end}").facts.first(PackageList) for end in ("", "...\n", "\nx")
    ]
    assert [bool(one) for one in whole] == [True, False, True]
    frozen = "".join(f"yarl{number}==1.{number}\n" for number in range(30))
    for more in ("-e git+https://example.org/vllm.git@0a1b2c#egg=vllm\n", "numpy @ file:///croot/numpy_1/work\n"):
        assert examined(frozen + more).facts.first(PackageList) is None
    assert examined(frozen).facts.first(PackageList)


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("ModuleNotFoundError: No module named 'torch'", True),
        ("[rank0]: ModuleNotFoundError: No module named 'torch'", True),
        ("      ModuleNotFoundError: No module named 'torch'", False),
        ("ModuleNotFoundError: No module named 'torch_npu'", False),
    ],
    ids=["traceback", "rank", "build of a package", "other module"],
)
def test_torch_that_is_not_there(text: str, missing: bool) -> None:
    assert tell(text).get("unavailable", []) == (["torch missing"] if missing else [])


def test_rows_of_df() -> None:
    wrapped = "Filesystem Size Used Avail Use% Mounted on\n/dev/mapper/long\n     1.8T  1.1T  620G  64% /data\n"
    assert tell(f"{wrapped}shm              64M     0   64M   0% /dev/shm  <-- small\n\n/a b 1 1 1 1% /x\n")[
        "mounts"
    ] == {
        "/data": [1887436, 634880],
        "/dev/shm": [64, 64],
    }


def test_a_launch_line_is_read_where_its_command_stands() -> None:
    facts = facts_of(Asked({"launch": "cd /opt/vllm && vllm serve a/b \\\r\n  --tp 2"}).captures(()))
    assert [one.says() for one in facts.all(LaunchArguments)] == [
        "LaunchArguments engine=vllm, model=a/b, flags=('tensor-parallel-size', '2'), subcommand=serve"
    ]
