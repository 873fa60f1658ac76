"""Write the catalogue of rules and probes from the rules themselves; `--check` compares it with the files.

For each language a page for each component, which is the first part of an id, and for each vendor a list of its rules.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from diag import plugins
from diag.check import Check
from diag.finding import LANGUAGES
from diag.probe import Probe

FOLDER = Path(__file__).parent / "catalogue"
VENDORS = ("nvidia", "amd", "hygon", "kunlun", "ascend", "intel", "metax", "mthreads")
MADE = {"en": "Made by `make docs` from the files themselves.", "zh": "由 `make docs` 根据规则文件生成。"}
COLUMNS = {
    "en": {
        "id": "id",
        "kind": "kind",
        "severity": "severity",
        "title": "what it finds",
        "fix": "Fix",
        "rules": "rules",
    },
    "zh": {"id": "编号", "kind": "类型", "severity": "级别", "title": "故障", "fix": "处理", "rules": "规则"},
}
SEVERITIES = {"error": "错误", "warning": "警告", "info": "提示"}
SAFETIES = {"safe": "安全", "disruptive": "会中断服务", "manual": "需人工判断"}


def pages() -> dict[Path, str]:
    """Every page of the catalogue as Markdown, by its path in the folder."""
    loaded = plugins.load([plugins.bundled()])
    rules = sorted(loaded.checks.values(), key=lambda one: one.id)
    components: dict[str, list[Check]] = {}
    for one in rules:
        components.setdefault(_component(one), []).append(one)
    of_vendor = {name: [one for one in rules if name in (one.about, _component(one))] for name in VENDORS}
    made = {Path("README.md"): _index(components, of_vendor, loaded.probes.values())}
    for language in LANGUAGES:
        for name, found in components.items():
            made[Path(language) / f"{name}.md"] = _page(name, found, language)
        for name, found in of_vendor.items():
            lines = [f"# {name}", "", MADE[language], "", *_table(found, language)]
            made[Path(language) / "vendors" / f"{name}.md"] = "\n".join(lines) + "\n"
    return made


def _component(rule: Check) -> str:
    return rule.id.partition("/")[0]


def _index(components: Mapping[str, list[Check]], of_vendor: Mapping[str, list[Check]], probes: Iterable[Probe]) -> str:
    lines = ["# The rules and the probes", "", MADE["en"]]
    for title, folder, groups in (("Component", "", components), ("Vendor", "vendors/", of_vendor)):
        lines += ["", f"| {title} | rules | English | 中文 |", "|---|---|---|---|"]
        for name, found in groups.items():
            links = (f"[{name}]({language}/{folder}{name}.md)" for language in LANGUAGES)
            lines.append(f"| {name} | {len(found)} | {' | '.join(links)} |")
    lines += ["", "## Probes", "", "| text | how it is taken | what it tells |", "|---|---|---|"]
    lines += [_probe(one) for one in sorted(probes, key=lambda one: one.key)]
    return "\n".join(lines) + "\n"


def _page(name: str, rules: Iterable[Check], language: str) -> str:
    lines = [f"# {name}", "", MADE[language], "", *_table(rules, language, here=True)]
    for rule in rules:
        lines += ["", *_rule(rule, language)]
    return "\n".join(lines) + "\n"


def _table(rules: Iterable[Check], language: str, *, here: bool = False) -> Iterator[str]:
    """A line for each rule; from the page of its component, `here`, or from a page one folder below."""
    columns = COLUMNS[language]
    yield f"| {columns['id']} | {columns['kind']} | {columns['severity']} | {columns['title']} |"
    yield "|---|---|---|---|"
    for one in rules:
        link = f"{'' if here else f'../{_component(one)}.md'}#{one.id.replace('/', '')}"
        severity = one.severity if language == "en" else SEVERITIES[one.severity]
        yield f"| [`{one.id}`]({link}) | {one.kind} | {severity} | {one.words[language]['title']} |"


def _rule(rule: Check, language: str) -> Iterator[str]:
    yield f"### {rule.id}"
    yield ""
    if language == "en":
        yield from (f"##{line}" if line.startswith("##") else line for line in rule.explanation.splitlines())
    else:
        yield f"{rule.words[language]['title']}。{rule.words[language]['cause']}"
    for remedy in rule.remedies:
        yield ""
        safety = remedy.safety if language == "en" else SAFETIES[remedy.safety]
        yield f"{COLUMNS[language]['fix']} ({safety}): {remedy.title[language]}"
        yield from (f"\n    {command}" for command in remedy.commands)
    yield ""
    yield from (f"* {source}" for source in rule.sources)


def _probe(probe: Probe) -> str:
    taken = (
        " ".join(probe.command)
        or probe.path
        or (f"measuring child `{Path(probe.measure).stem}`" if probe.measure else "")
    )
    pasted = "recognised in a paste" if probe.recognise else ""
    how = ", ".join(filter(None, (f"`{taken}`" if taken and "`" not in taken else taken, pasted))) or "asked for"
    return f"| {probe.key} | {how} | {', '.join(kind.__name__ for kind in probe.tells)} |"


def kept(made: str, place: Path) -> int:
    """Write a page, or with `--check` compare it with its file and say what to do: the exit code."""
    return all_kept({Path(place.name): made}, place.parent, [place])


def all_kept(made: Mapping[Path, str], folder: Path, there: Iterable[Path]) -> int:
    """The same for several pages; `there` are the files that may be there, and go where no page is made for them."""
    found = {path.relative_to(folder): path.read_text("utf-8") for path in there if path.is_file()}
    if "--check" not in sys.argv:
        for path, text in made.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
        for path in found.keys() - made.keys():
            (folder / path).unlink()
        return 0
    behind = sorted(str(path) for path in found.keys() | made.keys() if found.get(path) != made.get(path))
    if behind:
        print(f"{folder.name}/{behind[0]} is behind what it is made from ({len(behind)} files): run make docs")
    return 1 if behind else 0


if __name__ == "__main__":
    sys.exit(all_kept(pages(), FOLDER, FOLDER.rglob("*.md")))
