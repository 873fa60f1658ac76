"""A variable switches off a fast path: the way of data between devices, a DMA engine, a kernel.

## What it finds
Variables of `kb/reference/variables.yaml` whose value makes a library take a slower way, in the environment, in NCCL's
configuration files or in a launch command.

## Why it matters
They are set to get round a fault and stay when it is gone. Nothing in the engine's log says that they are there.

## What it cannot know
Whether the fault that they get round is still there, and whether this launch would have taken the fast path at all.
With one device, devices that have no peer-to-peer path, or no adapter for RDMA in sight, the finding counts for little.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from diag.api import (
    Accelerator,
    Answer,
    Evidence,
    Facts,
    Finding,
    LaunchArguments,
    NetworkPort,
    Platform,
    Remedy,
    Setting,
    Unavailable,
    Undecided,
    Variable,
    check,
    devices,
    expression,
    switched,
)

P2P = "export NCCL_P2P_DISABLE=1\nexport NCCL_SOCKET_IFNAME=eth0\n"
ON = "NVIDIA_DRIVER_CAPABILITIES=compute,utility\nNCCL_P2P_DISABLE=0\nCUDA_HOME=/usr/local/cuda\nNCCL_CUMEM_ENABLE=0\n"
CONF = """\
{"schema": "diag/environment/1", "variables": {"NCCL_DEBUG": "WARN"}, "files": {"/etc/nccl.conf": {"NCCL_IB_DISABLE": \
"1", "NCCL_SOCKET_IFNAME": "=ens1f0"}}}
"""
OUTDONE = """\
{"schema": "diag/environment/1", "variables": {"NCCL_IB_DISABLE": "0"}, "files": {"/etc/nccl.conf": \
{"NCCL_IB_DISABLE": "1", "NCCL_SOCKET_IFNAME": "=ens1f0"}}}
"""
FORCED = 'export XACC_ENABLE=1\nexport XMLIR_D_FORCE_FALLBACK_STR="aten::_index_put_impl_,aten::index.Tensor"\n'
NOT_FORCED = 'export XMLIR_D_FORCE_FALLBACK_STR=""\nexport VLLM_XPU_USE_SAMPLER_KERNEL=1\nexport UR_L0_SERIALIZE=0\n'
COMMAND = "$ NCCL_NVLS_ENABLE=0 vllm serve Qwen/Qwen3-8B --tensor-parallel-size 8\n"
NETWORK = ("NCCL_IB_DISABLE", "NCCL_NET", "NCCL_NET_GDR_LEVEL")
NO_PEERS = expression(r"GeForce RTX [45]0")


@check(
    "environment/fast-path-disabled",
    severity="warning",
    about="host",
    needs=(Variable,),
    uses=(Accelerator, LaunchArguments, NetworkPort, Platform, Setting, Unavailable),
    words={
        "en": {
            "title": "A variable switches a fast path off",
            "summary": "{name}={value}: {effect.en}",
            "cause": "Somebody set it to get round a fault, or to find one, and it stayed. The vendor's documentation "
            "keeps it for experiments and temporary workarounds.",
        },
        "zh": {
            "title": "有环境变量关闭了快速路径",
            "summary": "已设置 {name}={value}：{effect.zh}",
            "cause": "有人为规避或定位故障而设置了它，之后没有取消。厂商文档说明它只用于试验和临时规避。",
        },
    },
    remedies=(
        Remedy(
            key="unset",
            title={
                "en": "Take it out where it is set (shell, service file, nccl.conf, `docker run -e`, compose file, "
                "manifest: `unset` works in a shell alone) and restart the engine",
                "zh": "在设置它的地方删除（shell、服务文件、nccl.conf、`docker run -e`、compose 文件或 manifest；"
                "`unset` 只对 shell 有效），然后重启推理引擎",
            },
            commands=("unset {name}",),
            safety="disruptive",
            verify="env | grep '^{name}=' || echo unset",
            source="https://docs.nvidia.com/deeplearning/nccl/archives/nccl_2234/user-guide/docs/env.html",
        ),
    ),
    sources=(
        "https://github.com/NVIDIA/nccl-tests/issues/117",
        "https://docs.nvidia.com/deeplearning/nccl/archives/nccl_2234/user-guide/docs/env.html",
        "https://github.com/NVIDIA/nccl/blob/master/src/misc/param.cc",
        "https://docs.vllm.ai/en/latest/usage/troubleshooting.html",
        "https://rocm.docs.amd.com/projects/ROCR-Runtime/en/docs-6.2.1/api-reference/environment_variables.html",
        "https://github.com/intel/torch-xpu-ops/blob/ab84f925a234/src/ATen/native/xpu/XPUFallback.cpp",
    ),
    explains=("collectives/below-baseline", "collectives/below-typical"),
    fires=(P2P, CONF, COMMAND, FORCED),
    silent=(ON, OUTDONE, NOT_FORCED),
)
def fast_path_disabled(facts: Facts) -> Iterator[Answer]:
    """Compare each variable with the values that switch something off."""
    rows = [one for one in facts.all(Variable) if one.purpose == "fallback"]
    found, told = switched(facts, rows)
    for row, setting in found:
        yield _finding(row, setting, sure=not _moot(facts, row))
    if not told:
        yield Undecided(reason="none of these variables was told, nor a whole environment")


def _finding(row: Variable, setting: Setting, sure: bool) -> Finding:
    values = {"name": row.name, "value": setting.value, "effect.en": row.effect["en"], "effect.zh": row.effect["zh"]}
    confidence: Literal["high", "low"] = "high" if sure else "low"
    return Finding(subject=row.name, values={**values}, confidence=confidence, evidence=(Evidence.of(setting),))


def _moot(facts: Facts, row: Variable) -> bool:
    """Whether nothing shows a path to lose: one device, devices without peers, no adapter that can do RDMA."""
    if row.name in NETWORK and not facts.first(NetworkPort):
        return True
    names = [one.name for one in devices(facts)]
    without = row.name.startswith("NCCL_P2P") and all(NO_PEERS.search(name) for name in names)
    return row.name.startswith("NCCL_") and bool(names) and (len(names) == 1 or without)
