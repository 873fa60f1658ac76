"""Launch commands: the shapes in which people type and paste them, and what their flags mean.

The commands are ours; real ones are in `tests/captures/launch`.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import pytest
from told import LOADED, examined, facts_of

from diag.facts import Container, Engine, EngineFlag, Facts, LaunchArguments, LaunchCommand
from diag.sources import Asked

TWO = {"model": "a/b", "flags": (("tensor-parallel-size", "2"),)}


def arguments(facts: Facts, *names: str) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in one.told().items() if name in (names or ("model", "flags"))}
        for one in facts.all(LaunchArguments)
    ]


def pasted(text: str, *names: str) -> list[dict[str, Any]]:
    found = examined(text)
    assert found.broken == ()
    return arguments(found.facts, *names)


def asked(text: str) -> Facts:
    return facts_of(Asked({"launch": text}).captures(()))


SHAPES = {
    "plain": "vllm serve a/b --tensor-parallel-size 2",
    "equals": "vllm serve a/b --tensor-parallel-size=2",
    "underscores": "vllm serve a/b --tensor_parallel_size 2",
    "alias": "vllm serve a/b -tp 2",
    "abbreviated": "vllm serve a/b --tensor-par 2",
    "model behind the flags": "vllm serve --tensor-parallel-size 2 a/b",
    "path of the program": "/opt/venv/bin/vllm serve a/b -tp 2",
    "prompt": "$ vllm serve a/b -tp 2",
    "prompt of root": "# vllm serve a/b -tp 2",
    "prompt with host": "root@node:/workspace# vllm serve a/b -tp 2",
    "prompt with brackets": "[user@node ~]$ vllm serve a/b -tp 2",
    "environment in the prompt": "(venv) (base) user@node:~/x$ vllm serve a/b -tp 2",
    "PowerShell": "PS C:\\x> vllm serve a/b `\n  -tp 2",
    "caret": "C:\\x> vllm serve a/b ^\n  -tp 2",
    "trace of a shell": "+ vllm serve a/b -tp 2",
    "continued": "vllm serve a/b \\\n    -tp 2",
    "continued on the last blank": "vllm serve a/b \\ \n    --tensor-parallel-size 2",
    "continuation lost": "vllm serve a/b\n    --tensor-parallel-size 2\n\nthen it hangs",
    "continuation in one line": "vllm serve a/b \\ --tensor-parallel-size 2",
    "comment between": "vllm serve a/b \\\n  # --enforce-eager \\\n  --tensor-parallel-size 2",
    "smart quotes and dashes": "vllm serve \u201ca/b\u201d \u2014tensor-parallel-size 2",
    "blanks that do not break": "vllm\u00a0serve a/b\u00a0--tensor-parallel-size\u00a02",
    "bullet": "- vllm serve a/b -tp 2",
    "number": "1. vllm serve a/b -tp 2",
    "label": "Launch command: vllm serve a/b -tp 2",
    "Chinese label": "\u542f\u52a8\u547d\u4ee4\uff1avllm serve a/b -tp 2",
    "unit of systemd": "ExecStart=/usr/bin/vllm serve a/b -tp 2",
    "backticks": "I start it with `vllm serve a/b -tp 2` and it hangs",
    "fence": "```bash\nvllm serve a/b -tp 2\n```",
    "fence in one line": "it fails ```bash vllm serve a/b -tp 2 ``` so",
    "redirected": "nohup vllm serve a/b -tp 2 > log.txt 2>&1 &",
    "redirected, both": "vllm serve a/b -tp 2 &> log.txt",
    "piped": "vllm serve a/b -tp 2 2>&1 | tee log",
    "chained": "cd /x && source y/bin/activate && vllm serve a/b -tp 2; echo done",
    "wrapped": "sudo -E numactl --cpunodebind=0 -m 0 vllm serve a/b -tp 2",
    "uv": "uv run --with vllm vllm serve a/b -tp 2",
    "script in a shell": "bash -lc 'source x; exec vllm serve a/b -tp 2 | tee y'",
    "in a pod": "kubectl exec -it pod -- vllm serve a/b -tp 2",
    "in a container": 'docker exec -it name bash -c "vllm serve a/b -tp 2"',
    "variables": "MODEL=a/b\nexport TP=2\nvllm serve $MODEL -tp ${TP} --enforce-eager".replace(" --enforce-eager", ""),
    "last line alone": "vllm serve \\\n  -tp 2 \\\n  Qwen/b".replace("Qwen/b", "Qwen/b"),
}


@pytest.mark.parametrize("shape", [one for one in SHAPES if one not in ("variables", "last line alone")])
def test_a_command_is_read_in_each_shape(shape: str) -> None:
    assert pasted(SHAPES[shape]) == [TWO]
    assert arguments(asked(SHAPES[shape])) == [TWO]


def test_a_paste_that_ends_with_the_model() -> None:
    assert pasted(SHAPES["last line alone"]) == [{**TWO, "model": "Qwen/b"}]


def test_variables_stand_for_their_values() -> None:
    assert arguments(asked(SHAPES["variables"])) == [TWO]
    assert pasted("export A=1\nexport B=$A$A\nvllm serve m/$B") == [{"model": "m/11"}]


@pytest.mark.parametrize(
    ("command", "subcommand", "model"),
    [
        ("vllm serve a/b", "serve", "a/b"),
        ("python -m vllm.entrypoints.openai.api_server --model a/b", "serve", "a/b"),
        ("python3.11 -u -m vllm.entrypoints.api_server --model=a/b", "api_server", "a/b"),
        ("vllm bench serve --model a/b", "bench serve", "a/b"),
        ("vllm bench throughput --model a/b", "bench throughput", "a/b"),
        ("vllm bench latency --model a/b", "bench latency", "a/b"),
        ("python3 -m sglang.launch_server --model-path a/b", "serve", "a/b"),
        ("python3 -m sglang.launch_server --model a/b", "serve", "a/b"),
        ("sglang serve --model-path a/b", "serve", "a/b"),
        ("python -m sglang.bench_serving --backend sglang --model a/b", "bench_serving", "a/b"),
        ("python -m sglang_router.launch_router --worker-urls http://a http://b", "router", ""),
        ("python -m sglang_router.launch_server --model-path a/b --router-policy random", "router", "a/b"),
        ("torchrun --nproc-per-node 8 -m vllm.entrypoints.openai.api_server --model a/b", "serve", "a/b"),
    ],
)
def test_what_is_started(command: str, subcommand: str, model: str) -> None:
    (found,) = examined(command).facts.all(LaunchArguments)
    assert (found.engine, found.subcommand, found.model) == (
        "sglang" if "sglang" in command else "vllm",
        subcommand,
        model,
    )
    assert found.unknown == ()


@pytest.mark.parametrize(
    ("words", "flags", "unknown"),
    [
        (
            "--enforce-eager --max-model-length 8",
            (("enforce-eager", ""), ("max-model-length", "8")),
            ("max-model-length",),
        ),
        ("--no-enable-prefix-caching", (("enable-prefix-caching", "false"),), ()),
        ("--enable-chunked-prefill False", (("enable-chunked-prefill", "False"),), ()),
        ("--served-model-name a b --port 1", (("served-model-name", "a b"), ("port", "1")), ()),
        ("--allowed-origins '[\"*\"]'", (("allowed-origins", '["*"]'),), ()),
        ("--middleware a --middleware b", (("middleware", "a"), ("middleware", "b")), ()),
        ("-O3", (("optimization-level", "3"),), ()),
        ("-O 1", (("optimization-level", "1"),), ()),
        ("-O.level=3", (("compilation-config.level", "3"),), ()),
        ("-cc.mode 0", (("compilation-config.mode", "0"),), ()),
        ("--hf_overrides.a_b c", (("hf-overrides.a_b", "c"),), ()),
        ("--max-num-seqs -1", (("max-num-seqs", "-1"),), ()),
        (
            '--speculative-config \'{"method": "mtp",\n  "n": 1}\'',
            (("speculative-config", '{"method": "mtp", "n": 1}'),),
            (),
        ),
        ("--api-key sk-1 --hf-token=x", (("api-key", "***"), ("hf-token", "***")), ()),
        ("--config x.yaml", (("config", "x.yaml"),), ()),
        ("--port", (("port", ""),), ()),
        ('--speculative-config \'{"method": "mt', (("speculative-config", ""),), ()),
    ],
)
def test_what_flags_mean(words: str, flags: tuple[tuple[str, str], ...], unknown: tuple[str, ...]) -> None:
    (found,) = examined(f"vllm serve a/b {words}").facts.all(LaunchArguments)
    assert (found.model, found.flags, found.unknown) == ("a/b", flags, unknown)


def test_flags_of_sglang() -> None:
    words = (
        "--tp 8 --dp-size 2 --mem-fraction 0.8 --cuda-graph-bs 1 2 4 --speculative-algo EAGLE --enable-prefix-caching"
    )
    (found,) = examined(f"sglang serve --model a/b {words}").facts.all(LaunchArguments)
    assert dict(found.flags) == {
        "model-path": "a/b",
        "tp-size": "8",
        "dp-size": "2",
        "mem-fraction-static": "0.8",
        "cuda-graph-bs": "1 2 4",
        "speculative-algorithm": "EAGLE",
        "enable-prefix-caching": "",
    }
    assert found.unknown == ("enable-prefix-caching",)


def test_a_level_was_a_field_before_it_was_a_flag() -> None:
    started = "docker run vllm/vllm-openai:v0.8.5 --model a/b -O3"
    assert pasted(started, "version", "flags") == [
        {"version": "0.8.5", "flags": (("model", "a/b"), ("compilation-config", "3"))}
    ]


def test_variables_come_from_all_sides_and_hide_secrets() -> None:
    text = "export CUDA_VISIBLE_DEVICES=0,1\nset -e\nexport HF_TOKEN=hf_x\nA=1 env B='2 3' vllm serve a/b\n"
    assert pasted(text, "environment") == [
        {"environment": (("CUDA_VISIBLE_DEVICES", "0,1"), ("HF_TOKEN", "***"), ("A", "1"), ("B", "2 3"))}
    ]
    assert pasted('$env:A = "1"\nvllm serve a/b\n', "environment") == [{"environment": (("A", "1"),)}]


RUN = "--gpus '\"device=0,1\"' --shm-size=16g --ipc=host --privileged -itd -p8000:8000 -v /a:/b"
RUN += " --device=/dev/kfd -e A=1 -e B"


@pytest.mark.parametrize(
    ("runtime", "image", "words"),
    [
        ("docker", "vllm/vllm-openai:v0.8.5", "--model a/b -tp 2"),
        ("docker", "vllm/vllm-openai:v0.8.5", "a/b -tp 2"),
        ("podman", "docker.io/vllm/vllm-openai:v0.8.5", "serve a/b -tp 2"),
        ("nerdctl", "x.org:5000/y/vllm:0.8.5-ubuntu22.04", "vllm serve a/b -tp 2"),
        ("docker", "rocm/vllm:rocm6.3.1_vllm_0.8.5_20250521", "bash -c 'A=1 vllm serve a/b -tp 2'"),
    ],
)
def test_containers(runtime: str, image: str, words: str) -> None:
    facts = examined(f"$ sudo {runtime} run {RUN} \\\n   {image} \\\n   {words}\n").facts
    (found,), (box,) = facts.all(LaunchArguments), facts.all(Container)
    assert (found.model, dict(found.flags)["tensor-parallel-size"], found.version) == ("a/b", "2", "0.8.5")
    assert (dict(found.environment)["A"], found.image, box.image) == ("1", image, image)
    assert (box.runtime, box.inside, box.ipc, box.shm_bytes, box.privileged) == (runtime, False, "host", 2**34, True)
    assert (box.gpus, box.devices) == ("0,1", ("/dev/kfd",))


def test_kubectl_run() -> None:
    facts = examined("kubectl run x --image=vllm/vllm-openai:v0.8.5 --env=A=1 -- --model a/b\n").facts
    assert [one.runtime for one in facts.all(Container)] == ["kubernetes"]
    assert arguments(facts, "model", "environment") == [{"model": "a/b", "environment": (("A", "1"),)}]


@pytest.mark.parametrize(
    "command",
    [
        "command: --model a/b -tp 2",
        "command: [--model, a/b, '-tp', \"2\"]",
        'command:\n      - "--model"\n      - a/b\n      # - --enforce-eager\n      - "--tensor-parallel-size=2"',
        "command: >\n      --model a/b\n      --tensor-parallel-size 2",
        "entrypoint: [vllm]\n    command: serve a/b -tp 2",
        'command: ["bash", "-c", "vllm serve a/b -tp 2"]',
        "command:\n    - bash\n    - -c\n    - |\n      vllm serve a/b \\\n        -tp 2",
    ],
)
@pytest.mark.parametrize("variables", ["- A=1\n      - B", "A: '1'\n      C:"])
def test_compose(command: str, variables: str) -> None:
    text = f"""services:
  vllm:
    image: vllm/vllm-openai:v0.8.5
    container_name: box
    shm_size: 16gb
    ipc: host
    environment:
      {variables}
    {command}
    deploy:
      resources:
        reservations:
          devices:
            - driver: nvidia
              device_ids: ['0', '1']
"""
    facts = examined(text).facts
    (found,), (box,) = facts.all(LaunchArguments), facts.all(Container)
    assert (found.model, dict(found.flags)["tensor-parallel-size"], found.version) == ("a/b", "2", "0.8.5")
    assert dict(found.environment)["A"] == "1"
    assert (box.runtime, box.name, box.ipc, box.shm_bytes, box.gpus) == ("docker", "box", "host", 2**34, "0,1")


def test_kubernetes() -> None:
    text = """spec:
  containers:
  - name: server
    image: vllm/vllm-openai:v0.8.5
    command: ["vllm", "serve"]
    args:
    - a/b
    - --tensor-parallel-size
    - "2"
    env:
    - name: A
      value: "1"
    - name: HF_TOKEN
      valueFrom: {secretKeyRef: {name: x, key: y}}
    resources:
      limits:
        nvidia.com/gpu: "2"
"""
    facts = examined(text).facts
    assert arguments(facts, "model", "flags", "environment") == [{**TWO, "environment": (("A", "1"),)}]
    assert [(one.runtime, one.name, one.gpus) for one in facts.all(Container)] == [("kubernetes", "server", "2")]


def test_a_file_that_builds_an_image() -> None:
    assert pasted('FROM x\nCMD ["vllm", "serve", "a/b", "-tp", "2"]\n') == [TWO]


@pytest.mark.parametrize(
    "listed",
    [
        "root      4242  105  2.1 41234567 8912345 ?    Sl   09:12   3:45 python3 /usr/local/bin/vllm serve a/b -tp 2",
        "root        4242    4100 99 09:12 ?        00:03:45 /usr/bin/python3 /usr/local/bin/vllm serve a/b -tp 2",
    ],
)
def test_a_process_that_runs(listed: str) -> None:
    facts = examined(f"{listed}\nroot 1 1 0 09:13 pts/0 00:00:00 grep vllm serve\n").facts
    assert (arguments(facts), [one.role for one in facts.all(Engine)]) == ([TWO], ["running"])


@pytest.mark.parametrize(
    "text",
    [
        "I use vllm serve with two cards and it hangs",
        "vllm serve is slow on my machine",
        "vllm serve fails",
        "`vllm serve` hangs",
        "usage: vllm serve [model_tag] [options]",
        "vllm serve: error: unrecognized arguments: --x 1",
        "vllm serve --help=ModelConfig",
        "pip install vllm --upgrade --extra-index-url https://x",
        '  File "/x/vllm/entrypoints/openai/api_server.py", line 1, in <module>',
        "(APIServer pid=1) INFO 09-03 16:28:10 [api_server.py:1882] vLLM API server version 0.10.2",
        "docker run --gpus all nvidia/cuda:12.4 nvidia-smi",
        "docker pull vllm/vllm-openai:latest",
        "python -m sglang.check_env\npython -m vllm.collect_env\nvllm --version",
        'pkill -f "vllm serve a/b"',
        "export A=1\nexport B=2\n",
        "image: nginx\ncommand: [nginx, --x]\n",
    ],
)
def test_what_starts_nothing(text: str) -> None:
    facts = examined(text).facts
    assert (facts.all(LaunchCommand), facts.all(Container)) == ((), ())


@pytest.mark.parametrize(
    "text", ["hello", "", "ls -l", "vllm serve 'half", 'vllm serve "half', "vllm", "vllm serve --help"]
)
def test_nonsense_that_is_asked_about_is_no_command(text: str) -> None:
    assert asked(text).all(LaunchCommand) == ()


def test_a_comment_stands_beside_commands() -> None:
    assert pasted("# vllm serve old/x -tp 8\nvllm serve a/b -tp 2\n") == [TWO]


def test_several_commands_each_on_its_line() -> None:
    text = "first\nvllm serve a/b \\\n  -tp 2\n\nvllm serve c/d &\nvllm serve a/b -tp 2\n"
    found = examined(text).facts.all(LaunchCommand)
    assert [(one.origin.line, one.origin.quote) for one in found] == [(2, "vllm serve a/b \\"), (5, "vllm serve c/d &")]


def test_rows_name_each_flag_once() -> None:
    rows = [one for later in LOADED.later for one in later.rows() if isinstance(one, EngineFlag)]
    names = Counter((one.engine, one.command, name) for one in rows for name in (one.name, *one.aliases))
    assert len(rows) > 1000
    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize(
    "text",
    [
        "vllm serve a/b " + "--x y " * 17_000,
        "vllm serve a/b --x '" + "y " * 50_000,
        "docker run " + "-e A=1 " * 14_000,
        "A=$A$A\n" * 500 + "vllm serve $A",
        "vllm serve a/b \\\n" * 5_000,
        "command:\n" + "".join(" " * depth + f"k{depth}:\n" for depth in range(1, 3_000)),
        "vllm serve a/b --x " + "$(" * 50_000,
        "vllm serve a/b --x {" + "{ " * 50_000,
    ],
    ids=["flags", "open quote", "options", "doubling", "continued", "deep", "substitutions", "braces"],
)
def test_long_texts_take_no_time(text: str) -> None:
    start = time.process_time()
    examined(text)
    asked(text)
    assert time.process_time() - start < 3
