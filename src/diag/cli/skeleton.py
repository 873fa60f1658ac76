"""`diag checks new`: the skeleton of a check, one file in a root."""

from __future__ import annotations

import keyword
import re
from pathlib import Path

from diag.cli.emit import write as say
from diag.cli.opening import load
from diag.cli.options import Bounds
from diag.cli.place import config_folder
from diag.errors import DiagError
from diag.output import written

ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*(/[a-z0-9]+(-[a-z0-9]+)*)+")
SKELETON = '''\
"""(The fault in one sentence, in the present tense.)

## What it finds
…

## Why it matters
…

## What it cannot know
…
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, Host, Remedy, Undecided, check


@check(
    "{id}",
    severity="warning",
    about="{about}",
    needs=(Host,),
    words={{
        "en": {{"title": "…", "summary": "… {{value}} …", "cause": "…"}},
        "zh": {{"title": "…", "summary": "… {{value}} …", "cause": "…"}},
    }},
    remedies=(Remedy(title={{"en": "…", "zh": "…"}}, commands=("…",), safety="safe", verify="…"),),
    sources=("https://…",),
    # Texts as somebody would paste them: at least one that fires, and a near miss that is judged and stays silent.
    fires=(),
    silent=(),
)
def {function}(facts: Facts) -> Iterator[Answer]:
    """(What is asked of the facts.)"""
    for one in facts.all(Host):
        faulty: bool | None = None
        if faulty is None:
            yield Undecided(reason="what is asked is not told")
        elif faulty:
            yield Finding(values={{"value": "…"}}, evidence=(Evidence.of(one),))
'''


def write(id: str, root: Path | None) -> int:
    """Write `checks/<id>.py`; a file that is there stays."""
    path = place_of(id, root, "checks", ".py")
    subject, _, fault = id.rpartition("/")
    if keyword.iskeyword(fault) or fault[0].isdigit():
        raise DiagError(f"{fault!r} can be no function's name; name the fault otherwise")
    path.parent.mkdir(parents=True, exist_ok=True)
    with written(path) as file:
        skeleton = SKELETON.format(id=id, about=subject.partition("/")[0], function=fault.replace("-", "_"))
        file.write(skeleton.encode())
    named = f" --root {root}" if root else ""
    say(f"{path}\nnext: fill it in, give it vectors, then: diag selftest{named}\n")
    return 0


def place_of(id: str, root: Path | None, part: str, suffix: str) -> Path:
    """The file of a new rule in a part of a root; without one it is the user's own."""
    if not ID.fullmatch(id):
        raise DiagError(f"{id!r} is no id: it is SUBJECT/FAULT in lower case with dashes, such as site/fan-stopped")
    folder = root or config_folder()
    if folder is None:
        raise DiagError("there is no config folder here; name a root with --root DIR")
    path = folder / part / f"{id.replace('-', '_') if suffix == '.py' else id}{suffix}"
    if path.exists():
        raise DiagError(f"{path} is there already")
    if id in load(Bounds()).checks:
        raise DiagError(f"{id} is a rule already (diag checks show {id}): name the new one otherwise")
    return path
