"""Every rule proved by its own vectors: text in, the rule's verdict out, through the same engine as any paste."""

from __future__ import annotations

import re
from collections.abc import Iterator

from diag.capture import Held
from diag.check import Check, filled
from diag.engine import examine
from diag.finding import Finding, Result
from diag.plugins import Loaded
from diag.sources import Paste

FIELD = re.compile(r"\{[a-z_]+(?:\.[a-z]+)?\}")


def verdicts(check: Check, text: str, loaded: Loaded) -> list[Result]:
    """The results of one check on a text, one for each scope."""
    captures = Paste("vector", Held(text)).captures(())
    return list(examine(captures, loaded, [check]).results)


def proved(check: Check, loaded: Loaded) -> Iterator[str]:
    """What a rule's vectors fail to prove, a line each; nothing where all is as it must be."""
    if not check.fires or not check.silent:
        yield f"{check.id}: needs a vector that fires and one that stays silent"
    for number, text in enumerate(check.fires, 1):
        results = verdicts(check, text, loaded)
        if not any(result.status == "fail" for result in results):
            yield f"{check.id}: firing vector {number} does not fire ({_state(results)})"
        for field in sorted(
            {field for result in results for one in result.findings for field in _unfilled(check, one)}
        ):
            yield f"{check.id}: firing vector {number} leaves {field} unfilled"
    for number, text in enumerate(check.silent, 1):
        results = verdicts(check, text, loaded)
        allowed = ("pass", "not-applicable") if check.kind != "check" else ("pass",)
        if not results or any(result.status not in allowed for result in results):
            yield f"{check.id}: silent vector {number} is not judged silent ({_state(results)})"


def _unfilled(check: Check, finding: Finding) -> Iterator[str]:
    """The fields of the wording that the finding has no value for."""
    for language in check.words:
        said = [check.say(part, language, finding.values) for part in ("title", "summary", "cause")]
        for remedy in check.remedies_for(finding):
            lines = (remedy.title.get(language, ""), *remedy.commands, remedy.verify)
            said += [filled(line, finding.values) for line in lines]
        yield from (field for line in said for field in FIELD.findall(line))


def _state(results: list[Result]) -> str:
    return "; ".join(f"{result.status} {result.reason}".strip() for result in results)
