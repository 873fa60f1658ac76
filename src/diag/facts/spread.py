"""Whether what is started here is spread over several hosts, by whatever tells it."""

from __future__ import annotations

from diag.facts.bag import Facts
from diag.facts.collective import CollectiveTrouble, CollectiveWorld
from diag.facts.engine import LaunchArguments

HERE = ("localhost", "127.", "::1", "0.0.0.0")
"""How addresses of this host alone begin."""
NODES = ("nnodes", "nodes")


def several_hosts(facts: Facts) -> bool:
    """Whether ranks are on several hosts: they meet elsewhere, were started so, or did not find each other."""
    master = facts.environment().get("MASTER_ADDR")
    away = master is not None and bool(master.value) and not master.value.startswith(HERE)
    launches = (value for one in facts.all(LaunchArguments) for name, value in one.flags if name in NODES)
    spread = any(value.isdecimal() and int(value) > 1 for value in launches)
    apart = any(one.kind == "unreachable" for one in facts.all(CollectiveTrouble))
    return away or spread or apart or any(one.nodes > 1 for one in facts.all(CollectiveWorld))
