"""What the docs show is run, what they name exists, and what exists is named."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
import typer
import yaml
from pages import Block, anchors, blocks, commands, links

from shoal.attacks.beside.others import Others
from shoal.auditor.dossier.context import read_context
from shoal.cli.main import app, status_of
from shoal.connectors.traces import traced_rows
from shoal.data.option import build
from shoal.policy import registry
from shoal.policy.agreement import Agreement
from shoal.policy.consistency import build_promise
from shoal.policy.model import AttributePolicy, PolicyModel, ReadOptions, RenderPolicy, WriteOptions
from shoal.policy.policy import Policy
from shoal.samples import patients
from thorough import long_where

SHOWN = 3  # records of the table in the README
ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
DATA = Path(os.environ.get("SHOAL_DATA") or ROOT.parent / "shared" / "data")

SITE = sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts)
LOOSE = [
    ROOT / name
    for name in (
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "benchmarks/README.md",
        "changes/README.md",
    )
]
PAGES = [*LOOSE, *SITE]
LENGTHY = ("docs/tutorial.md", "docs/python.md", "docs/using-a-release.md")  # above 5 s
SHELL = set("|<>&;$`*")
RENEW = os.environ.get("SHOAL_RENEW_DOCS") == "1"
FIGURES = re.compile(r"\d[\d.,]*\d|\d")
VARIES = re.compile(r"\bCPU\b|\d ?s\b|\d{4}-\d\d-\d\d")  # times differ from run to run


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def with_blocks(*languages: str) -> list[Path]:
    return [page for page in PAGES if any(block.language in languages for block in blocks(page))]


# Every command, every Python block


@pytest.mark.usefixtures("forked_parties")
@pytest.mark.parametrize(
    "page",
    long_where(lambda p: name_of(p) in LENGTHY, with_blocks("console", "bash", "python")),
    ids=name_of,
)
def test_every_command_of_a_page_runs_in_order(page, folder, monkeypatch, capfd):
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("SHOAL_PSEUDONYM_KEY", raising=False)
    names: dict = {"__name__": "docs"}
    for block in blocks(page):
        where = f"{name_of(page)}:{block.line}"
        if block.mark == "needs":
            take(block.argument)
        elif block.mark == "file":
            Path(block.argument).parent.mkdir(parents=True, exist_ok=True)
            Path(block.argument).write_text(block.text)
        elif block.mark in ("skip", "fragment"):
            assert block.argument or block.mark == "fragment", f"{where}: say why it is skipped"
        elif block.language in ("console", "bash"):
            for shown, printed in run_all(block, where, capfd):
                renew(page, shown, printed)
        elif block.language == "python":
            exec(compile(block.text, where, "exec"), names)


def take(name: str) -> None:
    """Puts a script of the docs or a real data file where the reader would have it; skips the rest
    of the page where it is absent.
    """
    places = (DOCS / name, DATA / Path(name).stem / name)
    source = next((place for place in places if place.is_file()), None)
    if source is None:
        pytest.skip(f"the rest of the page needs {name}: set SHOAL_DATA (looked in {DATA})")
    shutil.copy(source, name)


def run_all(block: Block, where: str, capfd) -> list[tuple[str, str]]:
    """Runs the block's commands; the lines it shows beside those that were printed."""
    pairs = []
    listed = commands(block)
    assert listed, f"{where}: a block without a command"
    for command in listed:
        capfd.readouterr()
        status = run(command.text)
        captured = capfd.readouterr()
        wanted = int(block.argument) if block.mark == "exit" and command is listed[-1] else 0
        assert status == wanted, (
            f"{where}: `{command.text}` ended with {status}\n{captured.out}{captured.err}"
        )
        pairs += matched(command.shown, captured.err + captured.out, f"{where}: `{command.text}`")
    return pairs


def run(text: str) -> int:
    """One command; Shoal's own in this process, which saves its start."""
    if text.startswith("shoal ") and not SHELL & set(text):
        return status_of(shlex.split(text)[1:])
    return subprocess.run(["bash", "-c", text]).returncode


def matched(shown: tuple[str, ...], printed: str, where: str) -> list[tuple[str, str]]:
    """Every shown line with the one printed, in order; `...` stands for anything.

    Figures may differ in lines of times, which no two runs share, and anywhere while they are
    renewed.
    """
    pairs, lines = [], printed.splitlines()
    for line in shown:
        if line.strip() == "...":
            continue
        place = _place(line, lines, same_figures=True)
        if place is None and (RENEW or VARIES.search(line)):
            place = _place(line, lines, same_figures=False)
        assert place is not None, f"{where}: does not print\n{line}\nbut\n{printed}"
        pairs.append((line, lines[place]))
        lines = lines[place + 1 :]
    return pairs


def _place(shown: str, printed: list[str], *, same_figures: bool) -> int | None:
    """Where the first printed line is that a shown one stands for."""
    read = str.rstrip if same_figures else wordwise
    wanted = re.compile(".*".join(map(re.escape, read(shown).split("..."))) + "$")
    return next((i for i, line in enumerate(printed) if wanted.match(read(line))), None)


def renew(page: Path, shown: str, printed: str) -> None:
    """With SHOAL_RENEW_DOCS=1, puts the figures of today in the place of those shown."""
    if RENEW and "..." not in shown and shown != printed.rstrip():
        page.write_text(page.read_text().replace(f"{shown}\n", f"{printed.rstrip()}\n", 1))


def wordwise(line: str) -> str:
    return FIGURES.sub("#", line).rstrip()


def test_the_readme_shows_the_table_that_the_sample_gives(folder):
    """Before and after: the first records of the release, and of the sample the same people's."""
    assert status_of(shlex.split("sample patients -n 1000 --seed 7 -o patients.csv -q")) == 0
    command = "publish patients.csv -p patients.policy.yaml -o published.csv --trace t.jsonl -q"
    assert status_of(shlex.split(command)) == 0
    seq = traced_rows("t.jsonl")
    shown = list(range(0, len(seq), len(seq) // SHOWN + 1))
    for name, rows in (("patients.csv", seq[shown]), ("published.csv", shown)):
        header, *records = lines_of(name)
        records = [records[row] for row in rows]
        made = (
            "\n".join(
                [markdown_row(header), "|---" * len(header) + "|", *map(markdown_row, records)]
            )
            + "\n"
        )
        text = (ROOT / "README.md").read_text()
        if RENEW:
            table = re.compile(rf"^{re.escape(markdown_row(header))}\n(\|.*\n)+", re.MULTILINE)
            text = table.sub(lambda _, new=made: new, text)
            (ROOT / "README.md").write_text(text)
        assert made in text, (
            "README: run the tests once with SHOAL_RENEW_DOCS=1 to put this table in\n" + made
        )


def lines_of(name: str) -> list[list[str]]:
    import csv

    with open(name, newline="") as file:
        return [*csv.reader(file)]


def markdown_row(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("*", "\\*") for cell in cells) + " |"


# Every policy and piece of a policy


def test_every_policy_shown_is_one():
    for page in PAGES:
        for block in blocks(page):
            if block.language == "json" and block.mark != "fragment":
                json.loads(block.text)
            if block.language == "yaml" and block.mark != "fragment":
                assert_fits(yaml.safe_load(block.text), f"{name_of(page)}:{block.line}")


def assert_fits(content: object, where: str) -> None:
    """A whole policy, a list of promises, or some of a policy's keys."""
    if isinstance(content, list):
        assert all(build_promise(promise) for promise in content), where
        return
    assert isinstance(content, dict), where
    if "parties" in content:
        Agreement.from_dict(content)
        return
    if "controller" in content:
        read_context(content)
        return
    if "releases" in content:
        Others.of(content)
        return
    if "version" in content:
        Policy.from_dict(content)
        return
    for key, value in content.items():
        if key == "promises" or key == "attributes":
            assert_fits(value, where)
        elif key == "render":
            RenderPolicy.model_validate(value)
        elif key == "method":
            method = registry.method(value["name"], "publish")
            build(method.implementation, where, {k: v for k, v in value.items() if k != "name"})
        elif key not in PolicyModel.model_fields:
            AttributePolicy.model_validate(value)


def test_every_key_of_a_policy_is_explained():
    page = (DOCS / "policies.md").read_text()
    keys = [*PolicyModel.model_fields, *AttributePolicy.model_fields, *RenderPolicy.model_fields]
    assert [key for key in keys if f"`{key}`" not in page and f"`{key}:" not in page] == []


def test_every_key_of_read_and_write_is_explained():
    page = (DOCS / "files.md").read_text()
    keys = [*ReadOptions.model_fields, *WriteOptions.model_fields]
    assert [key for key in keys if f"\n| `{key}` |" not in page] == []


# Every link, command, option, method, promise and measure


def test_links_lead_somewhere():
    lost = []
    for page in PAGES:
        for target in links(page):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            there = (page.parent / path).resolve() if path else page
            if not there.exists() or (anchor and anchor not in anchors(there)):
                lost.append((name_of(page), target))
    assert lost == []


def test_every_page_is_in_a_table_of_contents():
    listed = set()
    for page in SITE:
        for block in blocks(page):
            if block.language == "{toctree}":
                names = [
                    line.strip()
                    for line in block.text.splitlines()
                    if line.strip() and not line.startswith(":")
                ]
                listed |= {(page.parent / f"{name}.md").resolve() for name in names}
    assert [
        name_of(page) for page in SITE if page not in listed and page != DOCS / "index.md"
    ] == []


def leaves(command: object, path: tuple[str, ...]) -> list[tuple[tuple[str, ...], object]]:
    children = getattr(command, "commands", None)
    if not children:
        return [(path, command)]
    return [leaf for name, child in children.items() for leaf in leaves(child, (*path, name))]


def test_every_command_and_option_has_help_and_its_place_in_the_docs():
    for path, command in leaves(typer.main.get_command(app), ("shoal",)):
        name = " ".join(path)
        section = section_of(DOCS / "commands.md", name)
        silent = [p.name for p in (command, *command.params) if p.name != "help" and not p.help]
        assert silent == [], f"{name} has no help for them"
        assert f"```{{command-table}} {' '.join(path[1:])}\n" in section


def section_of(page: Path, heading: str, level: str = "##", mark: str = "`") -> str:
    found = re.search(
        rf"^{level} {mark}{re.escape(heading)}{mark}$(.*?)(?=^##|\Z)",
        page.read_text(),
        re.MULTILINE | re.DOTALL,
    )
    assert found, f"{name_of(page)}: no heading `{heading}`"
    return found[1]


COMPARATORS = [m.name for m in registry.methods().values() if m.is_comparator]
ON_THE_PAGE_OF_A_METHOD = (
    "## What it promises",
    "## How it works",
    "## Parameters",
    "## Complexity",
    "## When to choose it",
)
ON_THE_PAGE_OF_A_PROMISE = (
    "## Exactly",
    "## How subjects count",
    "## What it stops",
    "## What it does not stop",
    "## In a policy",
)


def test_every_comparator_stands_on_their_page():
    for method in COMPARATORS:
        section = section_of(DOCS / "methods" / "comparators.md", method, level="###", mark="")
        said, table, _ = section.partition(f"```{{method-table}} {method}\n")
        assert table, f"the table of the parameters of {method}"
        assert len(said.split()) > 30, method


def test_every_method_and_every_promise_has_its_page():
    methods = registry.methods().keys() - COMPARATORS
    lacking = missing_from("methods", "method-table", methods, ON_THE_PAGE_OF_A_METHOD)
    lacking += missing_from(
        "promises", "promise-table", registry.models(), ON_THE_PAGE_OF_A_PROMISE
    )
    assert lacking == []


def missing_from(folder: str, table: str, names: Iterable[str], headings: tuple[str, ...]) -> list:
    """Of the page of each name, the headings that it lacks, and the table of its parameters."""
    return [
        (name, wanted)
        for name in names
        for wanted in (f"```{{{table}}} {name}\n", *headings)
        if wanted not in (DOCS / folder / f"{name}.md").read_text()
    ]


def test_every_measure_is_defined():
    page = (DOCS / "measures.md").read_text()
    assert [metric for metric in registry.metrics() if f"`{metric}`" not in page] == []


def test_every_hierarchy_maker_is_explained():
    page = (DOCS / "hierarchies.md").read_text()
    assert [kind for kind in registry.makers() if f"`{kind}`" not in page] == []


def test_the_policy_of_the_sample_is_the_one_that_the_docs_speak_of():
    assert Policy.from_dict(yaml.safe_load(patients.POLICY)).subject == "patient"


def test_pages_name_no_place_that_a_stranger_lacks():
    for page in PAGES:
        assert not re.search(r"""(^|[\s`"'(=])/[a-z]+/\w""", page.read_text(), re.MULTILINE), (
            name_of(page)
        )


def test_pages_use_no_directive_but_those_we_know():
    """A name of ours that Sphinx has, too, would be drawn as something else without a warning."""
    known = {"{toctree}", "{include}", "{literalinclude}"}
    known |= {"{method-table}", "{promise-table}", "{command-table}"}
    used = {
        block.language for page in SITE for block in blocks(page) if block.language.startswith("{")
    }
    assert used == known
