"""What a device is called: the tool's number, its address, and the number that a process has for it."""

import pytest

from diag.facts import Accelerator, Facts, Origin, Setting, Vendor, device_name

HERE = Origin(capture="x")
ROW = Vendor(origin=HERE, source="s", checked="c", vendor="acme", called="npu", visible=("STRONG", "WEAK"))
FIRST, SECOND = (
    Accelerator(origin=HERE, vendor="acme", index=n, address=f"0000:0{n}:00.0", seen_by="tool") for n in (0, 1)
)


def named(*variables: tuple[str, str], **known) -> str:
    settings = (Setting(origin=HERE, name=name, value=value) for name, value in variables)
    return device_name(Facts((ROW, FIRST, SECOND, *settings)), **known)


@pytest.mark.parametrize(
    ("known", "name"),
    [
        ({"index": 1}, "npu1 (0000:01:00.0)"),
        ({"address": "0000:01:00.0"}, "npu1 (0000:01:00.0)"),
        ({"index": 7, "vendor": "acme"}, "npu7"),
        ({"address": "0000:0f:00.0", "vendor": "acme"}, "npu 0000:0f:00.0"),
        ({"index": 0, "vendor": "other"}, "gpu0"),
        ({}, ""),
    ],
)
def test_what_is_not_given_is_looked_up(known, name):
    assert named(**known) == name


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        ((("WEAK", "1,0"),), "npu1 (0000:01:00.0, 0 in WEAK)"),
        ((("WEAK", "0,1"),), "npu1 (0000:01:00.0)"),
        ((("WEAK", "0"),), "npu1 (0000:01:00.0, hidden by WEAK)"),
        ((("WEAK", "0,-1,1"),), "npu1 (0000:01:00.0, hidden by WEAK)"),
        ((("WEAK", "1"), ("STRONG", "0,1")), "npu1 (0000:01:00.0)"),
        ((("WEAK", "GPU-8c5e"),), "npu1 (0000:01:00.0)"),
        ((("WEAK", ""),), "npu1 (0000:01:00.0)"),
    ],
)
def test_variables_renumber_and_hide(variables, name):
    assert named(*variables, index=1) == name
