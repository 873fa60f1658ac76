"""The arguments that vLLM and SGLang print at their start: what they really run with.

vLLM prints `args: Namespace(…)` with every argument up to 0.8, and `non-default args: {…}` from 0.9 on; SGLang prints
`server_args=ServerArgs(…)` with every argument, those it settled itself included. An argument that is None or empty
was not given and is left out, and so is the last one of a line that is cut. Values are as printed, secrets `hidden`.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Capture, Engine, Fact, LaunchArguments, Line, Recognise, expression, probe

PRINTED = expression(r"(?:\.py(?::[0-9]{1,5})?\] |^\W*)(?:non-default args: \{|args: Namespace\()")
SETTLED = expression(r"\bserver_args=ServerArgs\(")
PARTS = expression(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\\.|([\[({])|([\])}])|(,)""")
PAIR = expression(r"""\s*(?:'(\w{1,80})':|(\w{1,80})=)\s?""")
MODEL = ("model", "model-path", "model-tag")
NOTHING = frozenset(("", "None", "''", '""'))
SECRET = frozenset(("api-key", "admin-api-key", "hf-token", "ssl-keyfile-password"))


@probe(
    "vllm/arguments",
    tells=(LaunchArguments,),
    recognise=Recognise(literals=("non-default args: {", "args: Namespace("), pattern=PRINTED.pattern, each=True),
)
def vllm_arguments(capture: Capture) -> Iterator[Fact]:
    """The line of vLLM's API server with its arguments."""
    for line in capture.lines():
        if found := PRINTED.search(line.text):
            yield from _arguments(capture, line, "vllm", found.end())


@probe(
    "sglang/arguments",
    tells=(Engine, LaunchArguments),
    recognise=Recognise(literals=("server_args=ServerArgs(",), pattern=SETTLED.pattern, each=True),
)
def sglang_arguments(capture: Capture) -> Iterator[Fact]:
    """SGLang's first line with its arguments; it does not print its version."""
    for line in capture.lines():
        if found := SETTLED.search(line.text):
            yield Engine(origin=capture.origin(line), name="sglang", role="running")
            yield from _arguments(capture, line, "sglang", found.end())


def _arguments(capture: Capture, line: Line, engine: str, start: int) -> Iterator[LaunchArguments]:
    flags = tuple(_flags(line.text, start))
    named = dict(flags)
    if flags:
        model = next((named[key] for key in MODEL if key in named), "")
        yield LaunchArguments(origin=capture.origin(line), engine=engine, model=model, flags=flags)


def _flags(text: str, start: int) -> Iterator[tuple[str, str]]:
    for piece in _pieces(text, start):
        found = PAIR.match(piece)
        value = piece[found.end() :].strip() if found else ""
        if found and value not in NOTHING and not value.startswith("<function "):
            key = (found[1] or found[2]).replace("_", "-")
            yield key, "hidden" if key in SECRET else _unquoted(value)


def _pieces(text: str, start: int) -> Iterator[str]:
    """What stands between commas outside of all quotes and brackets, up to the bracket that closes the whole."""
    depth, begin = 0, start
    for found in PARTS.finditer(text, start):
        opening, closing, comma = found.groups()
        if (comma and not depth) or (closing and not depth):
            yield text[begin : found.start()]
            begin = found.end()
            if closing:
                return
        depth += bool(opening) - bool(closing)


def _unquoted(value: str) -> str:
    whole = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
    return value[1:-1] if whole else value
