"""`diag explain` of a large log with everything loaded against `rg -F -f` with the same literals, in turns.

The log is an engine's start-up once, then its serving lines for as long as asked, with the texts of faults that rules
know every 50 MB. Exit code 0 where diag is at least as fast (medians) and its peak memory is below 200 MB, else 1.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from _measured import diag_program, load, peak_pss, timed

from diag import plugins
from diag.sections import literals

ROOT = Path(__file__).resolve().parents[1]
CAPTURES = ROOT / "tests" / "captures" / "vllm"
BETWEEN = 50 * 10**6
"""Bytes between two faults."""
MEMORY = 200 * 10**6
"""Bytes of peak memory (PSS)."""


def main() -> int:
    """Measure, print, and judge."""
    options = _options()
    rg = shutil.which("rg")
    if not rg:
        raise SystemExit("no rg on PATH: apt-get install ripgrep")
    loaded = plugins.load([plugins.bundled()])
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        log, wanted = Path(folder) / "server.log", Path(folder) / "literals"
        size = _write(log, options.megabytes * 10**6, [one for one in loaded.checks.values() if one.symptoms])
        entries = {one for check in loaded.checks.values() if check.symptoms for one in check.symptoms.literals}
        everything = entries | literals(loaded.probes.values())
        named = {"entries": entries, "everything": everything}[options.literals]
        wanted.write_text("\n".join(sorted(named)) + "\n")
        commands = {
            "diag": (diag_program(), "explain", str(log), "--quiet"),
            "rg": (rg, "-j1", "-F", "-f", str(wanted), str(log)),
        }
        taken = {name: [] for name in commands}
        for _ in range(options.rounds):
            for name, command in commands.items():
                taken[name].append(timed(command))
        memory = peak_pss(commands["diag"])
    walls = {name: median(one.wall_s for one in runs) for name, runs in taken.items()}
    told = {
        "bytes": size,
        "literals": {"entries": len(entries), "everything": len(everything), "given to rg": options.literals},
        "MB/s": {name: round(size / wall / 1e6, 1) for name, wall in walls.items()},
        "diag / rg": round(walls["rg"] / walls["diag"], 2),
        "exit codes": {name: sorted({one.exit_code for one in runs}) for name, runs in taken.items()},
        "peak memory, MB (PSS)": round(memory / 1e6, 1),
        "load": load(),
    }
    print(json.dumps(told, indent=1))
    return 0 if walls["diag"] <= walls["rg"] and memory < MEMORY else 1


def _write(log: Path, size: int, checks: list) -> int:
    """A log of so many bytes; how many it has."""
    lines = _serving()
    faults = [one.fires[0] for one in checks if "\n" in one.fires[0]]
    written = 0
    with log.open("w") as file:
        written += file.write((CAPTURES / "v0.23.1-gh200-tp4.txt").read_text() + "\n")
        for number in range(size // BETWEEN + 1):
            end = min(size, (number + 1) * BETWEEN)
            while written < end:
                written += file.write(next(lines) + "\n")
            written += file.write(faults[number * 7 % len(faults)] + "\n")
    return log.stat().st_size


def _serving() -> Iterator[str]:
    """What an engine prints while it serves: its state and its requests."""
    count = 0
    while True:
        count += 1
        time = f"{count // 3600 % 24:02d}:{count // 60 % 60:02d}:{count % 60:02d}"
        if count % 8 == 0:
            yield (
                f"(APIServer pid=1234) INFO 09-24 {time} [loggers.py:123] Engine 000: Avg prompt throughput: "
                f"{count % 9000}.1 tokens/s, Avg generation throughput: {count % 3000}.6 tokens/s, "
                f"Running: {count % 256} reqs, Waiting: 0 reqs, GPU KV cache usage: {count % 100}.2%, "
                f"Prefix cache hit rate: {count % 90}.8%"
            )
        else:
            client = f"127.0.0.1:{40000 + count % 9000}"
            yield f'(APIServer pid=1234) INFO:     {client} - "POST /v1/chat/completions HTTP/1.1" 200 OK'


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", help="where the log is written; it should be in the page cache")
    parser.add_argument("--literals", choices=("entries", "everything"), default="entries", help="those given to rg")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
