"""Variables of the environment beside the rows of reference that say what they do."""

from __future__ import annotations

import re
from collections.abc import Sequence

from diag.facts.bag import Facts
from diag.facts.device import Platform
from diag.facts.host import Setting
from diag.facts.reference import Variable


def switched(facts: Facts, rows: Sequence[Variable]) -> tuple[list[tuple[Variable, Setting]], bool]:
    """The rows whose variable is set to one of their values, and whether anything was told of any of them.

    What only matters with devices of a maker that this machine is known not to have is left out.
    """
    settings = facts.environment()
    absent = {name for one in facts.all(Platform) for name in one.absent if name not in one.poses_as}
    pairs = [(row, settings[row.name]) for row in rows if row.name in settings and row.vendor not in absent]
    found = [(row, setting) for row, setting in pairs if re.fullmatch(row.values, setting.value)]
    return found, facts.whole("environment") or any(row.name in settings for row in rows)
