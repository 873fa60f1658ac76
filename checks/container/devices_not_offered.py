"""A node of a Kubernetes cluster offers fewer devices than it has.

## What it finds
A node's description (`kubectl describe node`, or its YAML) whose `allocatable` counts fewer devices of a kind than its
`capacity`.

## Why it matters
The kubelet leaves out what the device plugin calls unhealthy. NVIDIA's plugin does not take a device back by itself, so
that pods wait for one that may long be in order.

## What it cannot know
Why the plugin did so: its own log, and the kernel's, tell. Which device it is.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Answer,
    Capture,
    Evidence,
    Fact,
    Facts,
    Finding,
    Line,
    Recognise,
    Remedy,
    Text,
    check,
    expression,
    probe,
)

PARTS = ("capacity", "allocatable")
ALL, FEWER = "node-devices-all", "node-devices-fewer"
HEAD = expression(r"^[\s>]*(?P<part>[Cc]apacity|[Aa]llocatable):\s*$")
DEVICES = expression(
    r"^[\s>]*(?P<kind>[a-z0-9.\-]{3,40}/(?:gpu|npu|dcu|xpu|mig-[\w.\-]{3,24}|Ascend\w{1,12})):"
    r" {1,60}\"?(?P<count>[0-9]{1,4})\b"
)
LEFT_OUT = "https://github.com/NVIDIA/k8s-device-plugin/issues/58"
RESTART = "https://github.com/NVIDIA/k8s-device-plugin/issues/111"

SEVEN = """\
Capacity:
  cpu:                        128
  ephemeral-storage:          7441183616Ki
  hugepages-1Gi:              0
  hugepages-2Mi:              8448Mi
  memory:                     2113276288Ki
  nvidia.com/gpu:             8
  pods:                       110
Allocatable:
  cpu:                        128
  ephemeral-storage:          6857794809152
  hugepages-1Gi:              0
  hugepages-2Mi:              8448Mi
  memory:                     2062682496Ki
  nvidia.com/gpu:             7       <=========== here
  pods:                       110
"""
NONE_LEFT = """\
      allocatable:
        cpu: "48"
        ephemeral-storage: "9391196145"
        nvidia.com/gpu: "0"
        pods: "110"
      capacity:
        cpu: "48"
        ephemeral-storage: 10190100Ki
        nvidia.com/gpu: "16"
        pods: "110"
"""
EQUAL = """\
status:
  allocatable:
    nvidia.com/gpu: "1"
  capacity:
    nvidia.com/gpu: "1"
"""


@probe(
    "kubernetes/node-devices",
    tells=(Text,),
    recognise=Recognise(
        literals=("apacity:", "llocatable:", ".com/", ".cn/"),
        pattern=f"{HEAD.pattern}|{DEVICES.pattern}",
        each=True,
        lines=24,
        at_least=4,
    ),
)
def node_devices(capture: Capture) -> Iterator[Fact]:
    """Each kind of device that a node has and offers, at the line that counts what it offers."""
    part = ""
    counted: dict[str, dict[str, tuple[Line, int]]] = {}
    for line in capture.lines():
        if head := HEAD.match(line.text):
            part = head["part"].lower()
        elif part and (found := DEVICES.match(line.text)):
            counts = counted.setdefault(found["kind"], {})
            counts[part] = line, int(found["count"])
            if len(counts) == len(PARTS):
                (_, has), (offers, count) = (counts.pop(one) for one in PARTS)
                yield Text(origin=capture.origin(offers), kinds=(FEWER if count < has else ALL,))


def unread(facts: Facts) -> str:
    """Why the question does not arise: no node of a cluster was described."""
    return "" if any({ALL, FEWER} & set(one.kinds) for one in facts.all(Text)) else "no description of a node here"


@check(
    "container/devices-not-offered",
    severity="error",
    about="container",
    needs=(),
    uses=(Text,),
    applies=unread,
    words={
        "en": {
            "title": "A node of the cluster offers fewer devices than it has",
            "summary": "The node has more devices than it offers to pods",
            "cause": "The kubelet offers what the device plugin calls healthy. The plugin marked a device as unhealthy "
            "(an Xid, a double-bit error), or it no longer runs; NVIDIA's does not take a device back by itself, not "
            "even after the error has passed or the device was reset.",
        },
        "zh": {
            "title": "集群节点可分配的设备少于实际拥有的设备",
            "summary": "节点拥有的设备多于可分配给 Pod 的设备",
            "cause": "kubelet 只提供设备插件认为健康的设备。插件已将某个设备标记为不健康（Xid、双比特错误），或插件已不"
            "再运行；NVIDIA 的插件不会自行恢复，即使错误已消失或设备已复位。",
        },
    },
    remedies=(
        Remedy(
            key="why",
            title={
                "en": "See what the plugin and the kernel said of the device, and cure it (reset, reboot) where it "
                "counts errors",
                "zh": "查看插件与内核对该设备的记录；若设备有错误计数则先处理（复位、重启）",
            },
            commands=(
                "kubectl logs -A -l name=nvidia-device-plugin-ds --tail=-1 | grep -iE 'xid|unhealthy'",
                "sudo dmesg -T | grep -i xid",
                "nvidia-smi --query-gpu=index,ecc.errors.uncorrected.volatile.total --format=csv",
            ),
            safety="safe",
            source=LEFT_OUT,
        ),
        Remedy(
            key="restart",
            title={
                "en": "Then start the device plugin anew, so that it offers the device again",
                "zh": "随后重启设备插件，使其重新提供该设备",
            },
            commands=("kubectl rollout restart ds -n gpu-operator nvidia-device-plugin-daemonset",),
            safety="disruptive",
            verify="kubectl describe node NODE | grep nvidia.com/gpu",
            source=RESTART,
        ),
    ),
    sources=(LEFT_OUT, RESTART, "https://github.com/NVIDIA/gpu-operator/issues/1065"),
    explains=("container/kubernetes-no-device-free",),
    fires=(SEVEN, NONE_LEFT),
    silent=(EQUAL,),
)
def devices_not_offered(facts: Facts) -> Iterator[Answer]:
    """The counts that are below what the node has."""
    fewer = [one for one in facts.all(Text) if FEWER in one.kinds]
    if fewer:
        yield Finding(evidence=tuple(map(Evidence.of, fewer)))
