"""Which library finds all literals in a log fastest: Hyperscan, an Aho-Corasick library, RE2, Python's own search; rg.

Each searches the same blocks for the literals of all entries and tells where they end (RE2's set: which there are).
What is not installed is left out. The log is that of scan.py; docs/decisions.md says what was chosen.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import scan
from _measured import load

from diag import plugins

BLOCK = 2**18


def hyperscan(literals: list[bytes]) -> Callable[[bytes], int]:
    """Hyperscan, pure literals, block mode."""
    import hyperscan as library

    database = library.Database(mode=library.HS_MODE_BLOCK)
    database.compile(
        expressions=literals, ids=list(range(len(literals))), elements=len(literals), flags=0, literal=True
    )
    found: list[int] = []

    def search(block: bytes) -> int:
        found.clear()
        database.scan(block, lambda id, start, end, flags, context: found.append(end))
        return len(found)

    return search


def aho_corasick(literals: list[bytes]) -> Callable[[bytes], int]:
    """The crate that ripgrep uses, too."""
    from ahocorasick_rs import BytesAhoCorasick

    automaton = BytesAhoCorasick(literals)
    return lambda block: len(automaton.find_matches_as_indexes(block, overlapping=True))


def re2_set(literals: list[bytes]) -> Callable[[bytes], int]:
    """RE2's set: which literals there are, not where."""
    import re2

    options = re2.Options()
    options.max_mem = 2**28
    options.never_capture = True
    options.encoding = re2.Options.Encoding.LATIN1
    wanted = re2.Set.SearchSet(options)
    for one in literals:
        wanted.Add(re2.escape(one))
    wanted.Compile()
    return lambda block: len(wanted.Match(block) or ())


def python(literals: list[bytes]) -> Callable[[bytes], int]:
    """One `in` after the other."""
    return lambda block: sum(one in block for one in literals)


LIBRARIES = {"hyperscan": hyperscan, "ahocorasick_rs": aho_corasick, "re2.Set": re2_set, "bytes in": python}


def main() -> int:
    """Measure in turns, and print."""
    options = _options()
    checks = [one for one in plugins.load([plugins.bundled()]).checks.values() if one.symptoms]
    literals = sorted({one for check in checks for one in check.symptoms.literals})
    with tempfile.TemporaryDirectory() as folder:
        log, wanted = Path(folder) / "server.log", Path(folder) / "literals"
        scan._write(log, options.megabytes * 10**6, checks)
        wanted.write_text("\n".join(literals) + "\n")
        raw = log.read_bytes()
        blocks = [raw[at : at + BLOCK] for at in range(0, len(raw), BLOCK)]
        searches = dict(_made([one.encode() for one in literals]))
        taken: dict[str, list[float]] = {name: [] for name in (*searches, "rg")}
        for _ in range(options.rounds):
            for name, search in searches.items():
                start = time.perf_counter()
                for block in blocks:
                    search(block)
                taken[name].append(time.perf_counter() - start)
            start = time.perf_counter()
            subprocess.run(
                (shutil.which("rg") or "rg", "-j1", "-F", "-f", wanted, log), stdout=subprocess.DEVNULL, check=True
            )
            taken["rg"].append(time.perf_counter() - start)
    speed = {name: round(len(raw) / 1e6 / median(runs)) for name, runs in taken.items()}
    ratio = {name: round(one / speed["rg"], 2) for name, one in speed.items()}
    print(json.dumps({"literals": len(literals), "MB/s": speed, "of rg": ratio, "load": load()}, indent=1))
    return 0


def _made(literals: list[bytes]):
    for name, make in LIBRARIES.items():
        try:
            yield name, make(literals)
        except ImportError as error:
            print(f"{name}: {error}", file=sys.stderr)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
