"""Texts in which one fault shows in several ways: its cause stands first, and nothing tells it twice."""

import pytest
from told import LOADED, examined, text_of

from diag.facts import HardwareEvent
from diag.report import ranked


def answers(text: str) -> list[str]:
    return [one.check for one in ranked(examined(text).results, LOADED.checks)]


NOT_IN_GROUP = """\
ROCk module is loaded
Unable to open /dev/kfd read-write: Permission denied
root is not member of "video" group, the default DRM access group. Users must be a member of the "video" group or \
another DRM access group in order for ROCm applications to run successfully.
hsa api call failure at: /src/rocminfo/rocminfo.cc:1142
Call returned HSA_STATUS_ERROR_OUT_OF_RESOURCES: The runtime failed to allocate the necessary resources.
"""


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (text_of("amd/rocminfo-kfd-denied.txt"), "host/device-refused"),
        (text_of("amd/rocminfo-kfd-invalid.txt"), "amd/kfd-refused"),
        (NOT_IN_GROUP, "host/device-refused"),
        (NOT_IN_GROUP.replace("Unable to open /dev/kfd read-write: Permission denied\n", ""), "host/device-refused"),
        (text_of("health/dcgmi-diag-heat.txt"), "device/throttled"),
        (text_of("kernel/xid-154-talos.txt"), "nvidia/gsp-timeout"),
        (text_of("kernel/xid-13-109-dmesg-T.txt"), "nvidia/xid-application"),
    ],
)
def test_the_cause_stands_before_what_follows_from_it(text: str, cause: str) -> None:
    found = answers(text)
    assert found[0] == cause
    assert set(found[1:]) <= set(LOADED.checks[cause].explains)


def test_a_context_switch_that_times_out_much_later_is_a_fault_of_its_own() -> None:
    later = text_of("kernel/xid-13-109-dmesg-T.txt").replace("Aug 30 11:43:14", "Aug 30 12:43:14")
    assert answers(later) == ["nvidia/xid-fatal", "nvidia/xid-application"]


def test_nor_does_it_follow_from_the_fault_of_another_device() -> None:
    other = text_of("kernel/xid-13-109-dmesg-T.txt").replace("cb:00): 109", "cc:00): 109")
    assert answers(other) == ["nvidia/xid-fatal", "nvidia/xid-application"]


@pytest.mark.parametrize("line", text_of("kernel/amdgpu-mi300x-detail-lines.txt").splitlines()[:3])
def test_each_line_of_a_page_fault_tells_it_of_its_device(line: str) -> None:
    assert answers(line) == ["amd/page-fault"]


def test_the_parts_of_a_fault_that_is_told_add_nothing() -> None:
    whole = text_of("kernel/amdgpu-mi300x-retry-fault.txt")
    told = examined(whole * 2).facts.all(HardwareEvent)
    assert [(one.code, one.process) for one in told] == [("mmhub", "python3.12[6071]")] * 2


MONITORED = {
    "XID 149.0 (err status 0x00000000) NVLINK_NETIR_ERROR NVLINK: NETIR Error detected on GPU PCI:0019:01:00": (
        "149 0019:01:00.0"
    ),
    '"message":"Detected XID 145 for GPU 0 Please consult the documentation for details of this XID."': "145 ",
    '"message":"GPU had an uncontained error (XID 95) Drain the GPU and reset it or reboot the node.",'
    '"entitiesImpacted":[{"entityType":"PCI","entityValue":"0002:00:00.0"}]': "95 0002:00:00.0",
    '"message":"NVRM: Xid (PCI:0000:b9:00): 71, NVLink: fatal error detected on link 6"': "71 0000:b9:00.0",
    'DCGM_FI_DEV_XID_ERRORS_ACTIVE{gpu="0",device="nvidia0",window_size_in_ms="300000",xid="42"} 1': "42 ",
}
"""Lines of gpud, NVSentinel (twice), HyperPod and DCGM's exporter, and the Xids that they tell."""


@pytest.mark.parametrize(("line", "xid"), MONITORED.items())
def test_monitors_tell_xids(line: str, xid: str) -> None:
    told = [one for one in examined(line).facts.all(HardwareEvent) if one.kind == "xid"]
    assert [f"{one.code} {one.address}" for one in told] == [xid]


def test_an_xid_of_the_kernels_log_is_not_told_again_by_a_monitor() -> None:
    whole = text_of("kernel/xid-43-31-pid-alone.txt") + text_of("health/xid-gke-condition.txt")
    told = [one for one in examined(whole).facts.all(HardwareEvent) if (one.kind, one.code) == ("xid", "31")]
    assert len(told) == 2
