"""Who asks: `id`, and `groups` where somebody typed it.

`groups` prints names alone, so that its output is known only by the prompt above it, and whose groups they are it does
not say. What this cannot know: groups that were given after the shell was opened.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Capture, Fact, Recognise, User, expression, probe

ID = expression(
    r"\buid=(?P<uid>[0-9]{1,10})(?:\((?P<name>[^()\s]{1,64})\))? gid=[0-9]{1,10}(?:\([^()]{1,64}\))?"
    r"(?: (?:groups|组)=(?P<groups>\S{1,2000}))?"
)
GROUP = expression(r"([0-9]{1,10})(?:\(([^()]{1,64})\))?")
TYPED = expression(r"^\W{0,9}(?:\S{1,60}[:\s][^$#]{0,80})?[$#❯]\s{1,4}groups(?:\s{1,4}[\w.\-]{1,40})?\s*$")
LISTED = expression(
    r"^\s*(?:(?P<name>[a-z_][\w.\-]{0,31}) : )?(?P<groups>[a-z_0-9][\w.\-]{0,31}(?: [a-z_0-9][\w.\-]{0,31}){0,60})\s*$"
)


@probe(
    "user",
    tells=(User,),
    command=("id",),
    recognise=Recognise(("uid=", "groups"), rf"{ID.pattern}|{TYPED.pattern}", lines=1),
)
def user(capture: Capture) -> Iterator[Fact]:
    """The first line that tells the user, and the first list of groups that was asked for."""
    asked = False
    for line in capture.lines():
        if found := ID.search(line.text):
            groups = tuple(name or number for number, name in GROUP.findall(found["groups"] or ""))
            yield User(origin=capture.origin(line), name=found["name"] or "", uid=int(found["uid"]), groups=groups)
            return
        if asked and (found := LISTED.match(line.text)):
            yield User(origin=capture.origin(line), name=found["name"] or "", groups=tuple(found["groups"].split()))
            return
        asked = bool(TYPED.match(line.text))
