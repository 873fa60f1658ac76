"""A proxy is set, and nothing exempts this machine from it.

## What it finds
`http_proxy` or `all_proxy` (in either case) in an environment whose `no_proxy` names neither `localhost` nor
`127.0.0.1`.

## Why it matters
Requests to the engine on this machine go to the proxy, which does not know the address: health checks, benchmarks and
test requests get 502, 503 or 504 while the server is well; clients and clusters on gRPC cannot connect.

## What it cannot know
Which clients follow the variables: curl, requests, httpx and gRPC do, Ray's own connections do not by default.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, Remedy, Setting, Unavailable, Undecided, check

CATCHING = ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")
EXEMPTING = ("no_proxy", "NO_PROXY")
LOOPBACK = frozenset(("localhost", "127.0.0.1", "127.0.0.0/8", "*"))
CAUGHT = (
    '{"schema": "diag/environment/1", "variables": {"http_proxy": "***", "https_proxy": "***", "no_proxy": "***"}}\n'
)
NO_LIST = '{"schema": "diag/environment/1", "variables": {"HTTP_PROXY": "***", "NCCL_DEBUG": "WARN"}}\n'
EXEMPT = """\
{"schema": "diag/environment/1", "variables": {"http_proxy": "***", "https_proxy": "***", "no_proxy": \
"localhost,127.0.0.1"}}
"""
PASTED = "http_proxy=http://proxy.example:3128\nno_proxy=localhost,127.0.0.1,10.0.0.0/8\n"
ONLY_HTTPS = '{"schema": "diag/environment/1", "variables": {"https_proxy": "***", "NCCL_DEBUG": "WARN"}}\n'


@check(
    "environment/proxy-catches-loopback",
    severity="warning",
    about="network",
    needs=(),
    uses=(Setting, Unavailable),
    words={
        "en": {
            "title": "Requests to this machine go to the proxy",
            "summary": "{name} is set and no_proxy does not exempt localhost: requests to it go to the proxy",
            "cause": "The proxy was set for downloads, without an exemption for addresses of this machine.",
        },
        "zh": {
            "title": "发往本机的请求会被送到代理",
            "summary": "设置了 {name}，而 no_proxy 没有排除 localhost：发往本机的请求会经过代理",
            "cause": "为下载设置了代理，但没有把本机地址排除在外。",
        },
    },
    remedies=(
        Remedy(
            key="exempt",
            title={
                "en": "Exempt this machine (and, for several hosts, their addresses) from the proxy",
                "zh": "将本机（多机部署时还包括各主机地址）排除在代理之外",
            },
            commands=(
                "export no_proxy=\"localhost,127.0.0.1,::1,$(hostname -i | tr ' ' ,)${no_proxy:+,$no_proxy}\" "
                'NO_PROXY="localhost,127.0.0.1,::1${NO_PROXY:+,$NO_PROXY}"',
            ),
            safety="safe",
            verify="curl -sS http://127.0.0.1:8000/health && echo reached",
            source="https://github.com/bentoml/OpenLLM/issues/79",
        ),
    ),
    sources=(
        "https://github.com/bentoml/OpenLLM/issues/79",
        "https://github.com/microsoft/VibeVoice/issues/248",
        "https://github.com/unslothai/unsloth/pull/6752",
        "https://github.com/ray-project/ray/pull/6744",
    ),
    fires=(CAUGHT, NO_LIST),
    silent=(EXEMPT, PASTED, ONLY_HTTPS),
)
def proxy_catches_loopback(facts: Facts) -> Iterator[Answer]:
    """Look for a proxy, and for this machine among what is exempt from it."""
    settings = {one.name: one for one in facts.all(Setting) if one.kind == "environment" and one.value}
    proxy = next((settings[name] for name in CATCHING if name in settings), None)
    lists = [settings[name] for name in EXEMPTING if name in settings]
    if any(LOOPBACK.intersection(one.value.split(",")) for one in lists):
        return
    if proxy and (lists or facts.whole("environment")):
        yield Finding(values={"name": proxy.name}, evidence=tuple(map(Evidence.of, (proxy, *lists))))
    elif not facts.whole("environment"):
        yield Undecided(reason="no whole environment was told, nor a proxy beside what is exempt from it")
