"""Texts in which one fault shows in several ways: its cause stands first, and nothing tells it twice."""

import pytest
from told import LOADED, examined, text_of

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
    ],
)
def test_the_cause_stands_before_what_follows_from_it(text: str, cause: str) -> None:
    found = answers(text)
    assert found[0] == cause
    assert set(found[1:]) <= set(LOADED.checks[cause].explains)
