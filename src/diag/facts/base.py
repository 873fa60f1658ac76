"""A fact: something known, and the place it was read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from diag.text import cut

if TYPE_CHECKING:
    from typing_extensions import Self


class Origin(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a fact was read: capture, line (from 1; 0 = the capture as a whole), the line itself, and its scope."""

    capture: str
    line: int = 0
    quote: str = ""
    scope: str = ""


class Fact(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something known, and where from."""

    origin: Origin

    @property
    def inferred(self) -> bool:
        """Whether it was concluded from what was read, not read itself."""
        return False

    def identity(self) -> tuple[str, str] | None:
        """What one machine has once, as (name, value): texts that differ in it are about different machines."""
        return None

    def told(self) -> dict[str, Any]:
        """The fields that were told, without the origin."""
        return {
            name: value
            for name, value in asdict(self).items()
            if value is not None and value != "" and value != () and not isinstance(value, Origin)
        }

    def lasting(self) -> dict[str, Any]:
        """What of it stays on one machine: a report that is printed again and differs in that is another machine's."""
        return self.told()

    def of(self, scope: str) -> Self:
        """The fact as one about this machine."""
        origins = {name: value for name, value in asdict(self).items() if isinstance(value, Origin)}
        return replace(self, **{name: replace(origin, scope=scope) for name, origin in origins.items()})

    def says(self) -> str:
        """The fact in one line for evidence: its kind and the fields told."""
        fields = ", ".join(f"{name}={_short(value)}" for name, value in self.told().items())
        return f"{type(self).__name__} {fields}"


class Passing(Fact, frozen=True, kw_only=True):
    """Something that was so at one moment, or of which a machine may have several: nothing of it lasts."""

    def lasting(self) -> dict[str, Any]:
        """Nothing."""
        return {}


def _short(value: object) -> str:
    text = " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return cut(text, 78)
