"""The line of the table of hosts that Debian and Ubuntu write: `127.0.1.1 NAME`, where NAME is the machine's own.

Other lines of a pasted table are not read, as they do not tell whose name they have. What a name server would answer it
cannot know; the table comes first nearly everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Capture, Fact, HostName, Recognise, expression, probe

DEBIAN = expression(r"^\W{0,9}(127\.0\.1\.1)\s{1,20}[A-Za-z0-9][\w.\-]{0,80}(?:\s|$)")


@probe("hostname", tells=(HostName,), recognise=Recognise(("127.0.1.1",), DEBIAN.pattern, each=True, lines=1))
def hostname(capture: Capture) -> Iterator[Fact]:
    """A line of `/etc/hosts`, or of what `getent hosts` answers."""
    for line in capture.lines():
        if found := DEBIAN.match(line.text):
            yield HostName(origin=capture.origin(line), leads="loopback", address=found[1])
