"""The torch in the image that a command starts: what the engine's release pins, in the build that the tag names.

Concluded where the image tells the engine's version and the text tells of no torch. What this cannot know: an image
that somebody built anew under the name of the release.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Fact, Facts, LaunchArguments, Release, TorchBuild, deduction, expression

TAG = expression(
    r":v?(?P<version>[0-9][0-9.a-z]*)(?:-cu(?P<major>\d{2})(?P<minor>\d))?(?:-(?:ubuntu|x86_64|aarch64)\w*)?$"
)


@deduction(needs=(LaunchArguments, Release), tells=(TorchBuild,))
def image_torch(facts: Facts) -> Iterator[Fact]:
    """One build, where the launches agree on it."""
    if facts.package("torch") or facts.first(TorchBuild):
        return
    rows = {(one.package, one.version): one for one in facts.all(Release)}
    builds: dict[str, TorchBuild] = {}
    for launch in facts.all(LaunchArguments):
        tag = TAG.search(launch.image)
        release = rows.get((launch.engine, launch.version)) if tag and tag["version"] == launch.version else None
        torch = rows.get(("torch", release.pinned("torch"))) if release else None
        named = f"{tag['major']}.{tag['minor']}" if tag and tag["major"] else ""
        if torch and torch.runtime and release:
            builds[torch.version] = TorchBuild(
                origin=launch.origin,
                version=torch.version,
                backend=torch.runtime,
                backend_version=named or release.image_version or torch.runtime_version,
                basis=f"as {launch.engine} {launch.version} pins it, in its image",
            )
    if len(builds) == 1:
        yield from builds.values()
