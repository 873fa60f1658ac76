"""Which vendors a text is about: an impostor is known by its own marks."""

import pytest
from told import examined, text_of

from diag.facts import Platform

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


def test_rules_about_another_vendor_do_not_apply():
    statuses = {one.check: one.status for one in examined(KUNLUN).results}
    assert statuses["nvidia/driver-behind-runtime"] == "not-applicable"
