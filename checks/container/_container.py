"""Marks that runtimes leave in their containers: prints `diag/container/1`. Reads no more than whether they are."""

from __future__ import annotations

import json
import os
import sys

FILES = {"/.dockerenv": "docker", "/run/.containerenv": "podman", "/.singularity.d": "apptainer"}
VARIABLES = {
    "KUBERNETES_SERVICE_HOST": "kubernetes",
    "APPTAINER_CONTAINER": "apptainer",
    "SINGULARITY_CONTAINER": "apptainer",
}
RUNTIMES = ("podman", "docker", "lxc", "systemd-nspawn", "oci", "wsl")
"""What the variable `container` may say."""


def marks() -> list[dict[str, str]]:
    """Each mark that is there, and the runtime it is of."""
    found = [{"mark": path, "runtime": runtime} for path, runtime in FILES.items() if os.path.exists(path)]
    found += [{"mark": name, "runtime": runtime} for name, runtime in VARIABLES.items() if os.environ.get(name)]
    named = os.environ.get("container", "")  # noqa: SIM112
    return found + ([{"mark": "container", "runtime": named}] if named in RUNTIMES else [])


def main() -> None:
    """Print the document."""
    sys.stdout.write(json.dumps({"schema": "diag/container/1", "marks": marks()}) + "\n")


if __name__ == "__main__":
    main()
