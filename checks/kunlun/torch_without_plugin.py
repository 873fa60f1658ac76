"""On a Kunlun machine nothing in torch's environment brings the device to torch.

## What it finds
A device of Kunlunxin, torch, and a whole list of packages that holds none of the vendor's: neither its layer under
torch (`torch-xmlir`, `torch-xray`) nor its operators or its plug-in for vLLM.

## Why it matters
The vendor's layer presents the device as CUDA. Without it torch looks for one of NVIDIA and finds none.

## What it cannot know
An installer of the vendor may have left files without a record; where torch says that a device is available this is
silent. Which version of the layer is needed it does not judge.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Accelerator,
    Answer,
    Evidence,
    Facts,
    Finding,
    Package,
    PackageList,
    Remedy,
    TorchBuild,
    Undecided,
    check,
)

LAYERS = ("torch-xmlir", "torch-xray", "torch-plugin", "xpytorch", "xtorch-ops")
BESIDE = ("kunlun-ops", "vllm-kunlun", "sglang-kunlun", "xspeedgate-ops", "cocopod")

SMI = """\
+-----------------------------------------------------------------------------+
| XPU-SMI               Driver Version: 5.0.21.26    XPU-RT Version: 5.0.21   |
|-------------------------------+----------------------+----------------------+
| XPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | XPU-Util  Compute M. |
|                               |             L3-Usage |            SR-IOV M. |
|===============================+======================+======================|
|   0  P800 OAM           N/A   | 00000000:03:00.0 N/A |                    0 |
| N/A   37C  N/A     85W / 400W |      0MiB / 98304MiB |      0%      Default |
|                               |      0MiB /    96MiB |             Disabled |
"""
UPSTREAM = """\
Using Python 3.11.7 environment at: e_list
Package           Version    Editable project location
----------------- ---------- -------------------------
edit-able-pkg     0.1.dev3   /srv/src/proj
filelock          4.3.1
fsspec            2026.9.0
jinja2            3.1.6
markupsafe        3.0.4
mpmath            1.3.0
networkx          3.6.1
packaging         26.4
pip               23.2.1
setuptools        84.2.1
sympy             1.14.0
torch             2.13.0+cpu
typing-extensions 4.12.2
wheel             0.48.0
"""
VENDORS = """\
$ uv pip list | grep -i -e torch -e vllm
Using Python 3.10.19 environment at: /opt/vllm_kunlun
torch                             2.5.1+cu118
torch-plugin                      0.1.0
torch-xray                        2.0.3
torchaudio                        2.5.1+cu118
torchvision                       0.20.1+cu118
vllm                              0.15.1
vllm-kunlun                       0.15.1.dev0
"""


@check(
    "kunlun/torch-without-plugin",
    severity="error",
    about="kunlun",
    verdict="known-bad",
    checked="2026-11-30",
    needs=(Accelerator, Package),
    uses=(PackageList, TorchBuild),
    words={
        "en": {
            "title": "torch has no layer for the Kunlun device",
            "summary": "torch {torch} on {device}, and none of the vendor's packages ({layers})",
            "cause": "torch was installed from the public index, without the vendor's customised build.",
        },
        "zh": {
            "title": "torch 缺少昆仑芯适配层",
            "summary": "{device} 上的 torch 为 {torch}，且未安装任何厂商适配包（{layers}）",
            "cause": "torch 来自公共索引，没有安装昆仑芯定制的 XPyTorch。",
        },
    },
    remedies=(
        Remedy(
            key="install",
            title={
                "en": "Start from the vendor's image, or install its customised torch (xpytorch) and operators as its "
                "guide has it",
                "zh": "使用厂商镜像，或按安装文档安装定制的 xpytorch 与算子库",
            },
            safety="manual",
            verify="python -m torch_xmlir --doctor",
            source="https://github.com/baidu/vLLM-Kunlun/blob/main/docs/source/installation.md",
        ),
    ),
    sources=(
        "https://github.com/baidu/vLLM-Kunlun/blob/main/docs/source/installation.md",
        "https://github.com/baidu/vLLM-Kunlun/issues/337",
        "https://github.com/baidu/vLLM-Kunlun/issues/301",
    ),
    explains=("torch/device-unavailable", "torch/cpu-build-beside-accelerator"),
    fires=(SMI + UPSTREAM,),
    silent=(SMI + VENDORS,),
)
def torch_without_plugin(facts: Facts) -> Iterator[Answer]:
    """Look for the vendor's packages beside torch."""
    device = next((one for one in facts.all(Accelerator) if one.vendor == "kunlun"), None)
    torch = facts.package("torch")
    if device is None or torch is None:
        yield Undecided(reason="a device of Kunlunxin and the packages beside torch are not both told")
    elif any(map(facts.package, LAYERS)) or any(one.available for one in facts.all(TorchBuild)):
        return
    elif any(map(facts.package, BESIDE)) or not facts.first(PackageList):
        yield Undecided(reason="the packages are not all told, or the vendor's are there without the layer's record")
    else:
        yield Finding(
            values={"torch": torch.version, "device": device.name or "Kunlun", "layers": ", ".join(LAYERS[:2])},
            confidence="medium",
            evidence=(Evidence.of(torch), Evidence.of(device)),
        )
