"""Whose machine a text is about: recorded machines, impostors by their own marks, and hardware without any tool."""

from functools import cache

import pytest
import yaml
from told import CAPTURES, SOURCES, examined, facts_of, text_of

from diag.capture import Held
from diag.facts import Platform, Vendor
from diag.sources import Paste

KUNLUN = "torch==2.5.1+cu118\ntorch_xmlir==1.0\n"
HYGON = """\
PyTorch version: 2.7.1+das.opt1.dtk2604
ROCM used to build PyTorch: 6.3
GPU models and configuration: AMD K100 (gfx928)
"""
ASCEND = "torch==2.9.0\ntorch_npu==2.9.0\n"


@pytest.mark.parametrize(
    ("text", "present"),
    [
        (KUNLUN, ("kunlun",)),
        (HYGON, ("hygon",)),
        (ASCEND, ("ascend",)),
        (text_of("neg-env-4070-wsl.txt"), ("nvidia",)),
        ("torch==2.9.0\nnumpy==2.2.6\n", None),
    ],
)
def test_a_platform_is_told_by_its_own_marks(text, present):
    told = examined(text).facts.first(Platform)
    assert (told.present if told else None) == present


@cache
def platform(text: str) -> Platform | None:
    """The platform that a text tells: no rule need be asked."""
    return facts_of(Paste("text", Held(text)).captures(())).first(Platform)


LISTED = yaml.safe_load((CAPTURES / "machines.yaml").read_text("utf-8"))
MACHINES = {name: vendor for vendor, names in LISTED.items() for name in names}
NAMES = [saved["file"] for saved in SOURCES]
VENDORS = {one.vendor for one in examined("").facts.all(Vendor)}


def whose(name: str) -> str:
    """The vendor that a text is about: its folder's, or as `machines.yaml` has it."""
    folder = name.partition("/")[0]
    return folder if folder in VENDORS else MACHINES.get(name, "")


@pytest.mark.parametrize("name", NAMES)
def test_no_recorded_machine_is_taken_for_anothers(name):
    told = platform(text_of(name))
    present = told.present if told else ()
    if whose(name) != name.partition("/")[0]:
        assert present == ((whose(name),) if whose(name) else ())
    else:
        assert set(present) <= {whose(name)}


def test_machines_of_every_vendor_are_recorded():
    told = [whose(name) for name in NAMES if (found := platform(text_of(name))) and found.present]
    assert len(told) >= 60
    assert set(told) == VENDORS


LS = "$ ls -l /dev/{0}\ncrw-rw-rw- 1 root root 243, 0 Dec 15 14:12 /dev/{0}\n"
BUS = "65:00.0 {1}: {2} Device [{0}] (rev 01)\n"


@pytest.mark.parametrize(
    ("text", "present", "poses_as"),
    [
        (LS.format("nvidia0"), "nvidia", ()),
        (LS.format("kfd"), "amd", ()),
        (LS.format("kfd") + LS.format("mkfd"), "hygon", ("amd",)),
        (LS.format("xpu0"), "kunlun", ("nvidia",)),
        (LS.format("davinci0"), "ascend", ()),
        (LS.format("mxcd"), "metax", ("nvidia",)),
        (LS.format("mtgpu.0"), "mthreads", ()),
        (BUS.format("10de:2330", "3D controller [0302]", "NVIDIA Corporation"), "nvidia", ()),
        (BUS.format("1002:74a1", "Processing accelerators [1200]", "AMD"), "amd", ()),
        (BUS.format("1d94:6210", "Co-processor [0b40]", "Hygon"), "hygon", ("amd",)),
        (BUS.format("1d22:3685", "Processing accelerators [1200]", "Baidu"), "kunlun", ("nvidia",)),
        (BUS.format("19e5:d802", "Processing accelerators [1200]", "Huawei"), "ascend", ()),
        (BUS.format("8086:0bd5", "Display controller [0380]", "Intel Corporation"), "intel", ()),
    ],
)
def test_hardware_is_known_without_any_tool(text, present, poses_as):
    told = examined(text).facts.first(Platform)
    assert (told.present, told.poses_as) == ((present,), poses_as)


def test_a_driver_that_an_impostor_shows_is_no_other_vendors():
    told = examined(KUNLUN + "NVRM version: NVIDIA UNIX x86_64 Kernel Module  515.58  Thu\n").facts.first(Platform)
    assert (told.present, told.poses_as) == (("kunlun",), ("nvidia",))
    assert "nvidia" in told.absent


def test_two_vendors_tools_in_one_text_are_two_vendors():
    text = text_of("metax/mx-smi-2.2.4-c550-8.txt") + text_of("nvidia/smi-590-h100.txt")
    assert examined(text).facts.first(Platform).present == ("metax", "nvidia")


def test_a_heading_alone_makes_no_impostor():
    text = text_of("amd/rocm-smi-6.0-mi300x-named.txt").replace("ROCm System", "System")
    assert examined(text).facts.first(Platform).present == ("amd",)


def test_an_impostors_package_on_anothers_bus_is_software_alone():
    told = examined(KUNLUN + BUS.format("10de:2330", "3D controller [0302]", "NVIDIA Corporation")).facts.first(
        Platform
    )
    assert (told.present, told.poses_as) == (("nvidia",), ())
    assert "kunlun" not in told.absent


def test_rules_about_another_vendor_do_not_apply():
    statuses = {one.check: one.status for one in examined(KUNLUN).results}
    assert statuses["nvidia/driver-behind-runtime"] == "not-applicable"
