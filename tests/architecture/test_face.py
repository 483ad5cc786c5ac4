"""What people meet before the code: pages, workflows, image, wheel and manual page."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

import shoal

ROOT = Path(__file__).resolve().parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MANUAL = ROOT / "share" / "man" / "man1" / "shoal.1"
LOCKED = "build-requirements.txt"
WHEEL_SOURCES = ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "share", "src")


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def jobs_of(workflow: Path) -> dict:
    return yaml.safe_load(workflow.read_text())["jobs"]


def steps_of(workflow: Path) -> list[dict]:
    return [step for job in jobs_of(workflow).values() for step in job["steps"]]


# Pages


def test_every_version_is_the_same():
    citation = yaml.safe_load(text_of("CITATION.cff"))
    assert {PROJECT["version"], citation["version"]} == {shoal.__version__}


def test_security_says_how_to_report_and_what_never_to_send():
    page = text_of("SECURITY.md")
    assert "Report a vulnerability" in page
    assert "Never send real personal data" in page
    for section in (
        "How to report",
        "What counts as a vulnerability",
        "What happens then",
        "Supported versions",
    ):
        assert f"\n## {section}\n" in page


@pytest.mark.parametrize("page", ["SECURITY.md", "CODE_OF_CONDUCT.md"])
def test_a_page_is_linked_from_contributing_and_its_links_lead_somewhere(page):
    assert f"]({page})" in text_of("CONTRIBUTING.md")
    for target in re.findall(r"\]\(([^)#]+)", text_of(page)):
        assert (ROOT / target).is_file(), target


def test_every_make_target_that_is_named_exists():
    targets = set(re.findall(r"^([a-z-]+):", text_of("Makefile"), re.MULTILINE))
    pages = ["README.md", "CONTRIBUTING.md", "SECURITY.md", ".pre-commit-config.yaml", ".ci/run"]
    pages += [
        str(path.relative_to(ROOT)) for path in (*WORKFLOWS, GITHUB / "pull_request_template.md")
    ]
    for page in pages:
        # as code or as the first word of a line: "make sure" in a sentence is no target
        named = re.findall(r"(?:^|`|run: )\s*make ([a-z][a-z-]*)", text_of(page), re.MULTILINE)
        assert set(named) <= targets, page


def test_the_tests_that_must_notice_mutants_are_there():
    chosen = tomllib.loads(text_of("pyproject.toml"))["tool"]["mutmut"]
    named = chosen["pytest_add_cli_args_test_selection"]
    assert [n for n in named if not (ROOT / re.sub("^--deselect=|::.*", "", n)).is_file()] == []


# Workflows


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_read_only_and_names_the_commit_or_major_version_of_every_action(workflow):
    content = yaml.safe_load(workflow.read_text())
    assert content["permissions"] == {"contents": "read"}
    assert "pull_request_target" not in workflow.read_text()
    for step in steps_of(workflow):
        if "uses" in step:
            assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", step["uses"])
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


def test_the_tests_run_on_every_python_that_is_promised():
    promised = [
        name.rpartition(" ")[2] for name in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", name)
    ]
    test = jobs_of(GITHUB / "workflows" / "test.yml")
    assert test["test"]["strategy"]["matrix"]["python"] == promised
    assert set(test["minimal"]["strategy"]["matrix"]["python"]) <= set(promised)
    lowest = min(promised, key=lambda version: int(version.split(".")[1]))
    assert SpecifierSet(PROJECT["requires-python"]) == SpecifierSet(f">={lowest}")


def test_the_bare_wheel_is_tried_without_extras():
    steps = jobs_of(GITHUB / "workflows" / "test.yml")["minimal"]["steps"]
    script = "\n".join(step.get("run", "") for step in steps)
    assert "dist/*.whl\n" in script  # an extra would follow in brackets
    for command in ("import shoal", "shoal --help", "shoal publish"):
        assert command in script


def test_a_release_is_published_by_trust_and_attested():
    jobs = jobs_of(GITHUB / "workflows" / "release.yml")
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert jobs["publish"]["environment"] == "pypi"
    assert jobs["attest"]["permissions"] == {"id-token": "write", "attestations": "write"}
    assert "secrets." not in (GITHUB / "workflows" / "release.yml").read_text()


@pytest.mark.parametrize("form", ["bug", "idea"])
def test_an_issue_form_says_what_it_wants(form):
    content = yaml.safe_load((GITHUB / "ISSUE_TEMPLATE" / f"{form}.yml").read_text())
    assert {"name", "description", "body"} <= set(content)
    for field in content["body"]:
        assert field["type"] == "markdown" or field["attributes"]["label"]


def test_dependabot_looks_after_all_that_is_pinned():
    content = yaml.safe_load((GITHUB / "dependabot.yml").read_text())
    assert {update["package-ecosystem"] for update in content["updates"]} == {
        "github-actions",
        "pip",
        "docker",
    }


def test_hooks_before_a_commit_are_those_of_make_check():
    hooks = yaml.safe_load(text_of(".pre-commit-config.yaml"))["repos"][0]["hooks"]
    assert [hook["id"] for hook in hooks] == ["ruff", "ruff-format", "mypy"]
    for hook in hooks:
        assert hook["entry"].removeprefix(".venv/bin/").split()[0] in text_of("Makefile")


# Image


def test_the_image_runs_as_nobody_special_and_keeps_its_kernels():
    stage = text_of("Dockerfile").rpartition("\nFROM ")[2]
    assert re.search(r"^USER (?!0\b|root)\S+$", stage, re.MULTILINE)
    assert stage.index("\nUSER ") < stage.index('\nENTRYPOINT ["shoal"]')
    kernels = re.search(r"NUMBA_CACHE_DIR=(\S+)", stage)[1]
    assert f" {kernels}" in stage.partition("--mode 1777")[2].partition("\\")[0]


def test_the_image_is_made_of_one_base_by_its_digest():
    bases = re.findall(r"^FROM (\S+)", text_of("Dockerfile"), re.MULTILINE)
    assert len(set(bases)) == 1
    assert re.fullmatch(r"python:3\.\d+-slim@sha256:[0-9a-f]{64}", bases[0])


def test_the_image_is_warmed_up_by_whom_it_runs_as():
    stage = text_of("Dockerfile").rpartition("\nFROM ")[2]
    steps = stage.replace("\\\n", " ")
    warm = re.search(r"^RUN shoal warmup\b.*$", steps, re.MULTILINE)[0]
    assert stage.index("NUMBA_CACHE_DIR=") < stage.index("\nUSER ") < stage.index("shoal warmup")
    kernels = re.search(r"NUMBA_CACHE_DIR=(\S+)", stage)[1]
    # somebody else of --user writes beside them what another processor needs
    assert f"find {kernels} -type d -user shoal -exec chmod 0777" in warm


def test_continuous_integration_fetches_what_servers_it_can_and_runs_the_tests():
    assert "for tests in test test-services; do" in text_of(".ci/run")
    assert re.search(r"^make --keep-going -j 3 services \|\|", text_of(".ci/run"), re.MULTILINE)
    targets = re.search(r"^services: (.+?) ##", text_of("Makefile"), re.MULTILINE)[1].split()
    for name in targets:
        script = ROOT / "tests" / "services" / f"install-{name}"
        assert f"tests/services/{script.name}" in text_of("Makefile")
        assert script.stat().st_mode & 0o111


def test_what_the_image_copies_is_there_and_nothing_else_reaches_it():
    allowed = [
        line for line in text_of(".dockerignore").splitlines() if line and not line.startswith("#")
    ]
    assert allowed[0] == "*"
    copied = set()
    for line in re.findall(r"^COPY (?!--from)(.+)$", text_of("Dockerfile"), re.MULTILINE):
        copied |= set(line.split()[:-1])
    assert copied == {line[1:] for line in allowed if line.startswith("!")}
    assert copied == {"constraints.txt", "build-requirements.txt", *WHEEL_SOURCES}
    assert all((ROOT / name).exists() for name in copied)


# Manual page and completions


def test_the_manual_page_says_what_the_help_says():
    written = subprocess.run(
        [sys.executable, "-c", "import manual_page; print(manual_page.manual_page(), end='')"],
        cwd=ROOT / "docs" / "_ext",
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert MANUAL.read_text() == written, "run `make man`"


def test_every_command_is_in_the_manual_page():
    import typer.main

    from shoal.cli.main import VERBS, app

    page = MANUAL.read_text().replace("\\-", "-")
    commands = typer.main.get_command(app).commands
    for name, command in ((name, commands[name]) for name in VERBS):
        for path in [f"{name} {below}" for below in getattr(command, "commands", {})] or [name]:
            assert f"\n.SS shoal {path} [OPTIONS]" in page
    for status in (0, 1, 2, 3, 4, 70, 130):
        assert f"\n.B {status}\n" in page


@pytest.fixture
def program(tmp_path) -> Path:
    """The `shoal` command as a file, as an installation makes it."""
    path = tmp_path / "shoal"
    path.write_text(f"#!{sys.executable}\nfrom shoal.__main__ import run\nrun()\n")
    path.chmod(0o755)
    return path


def output_of(*command: object, **environment: str) -> list[str]:
    """The lines that a command prints."""
    done = subprocess.run(
        [str(word) for word in command],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stdout.splitlines()


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_a_command(program):
    script = (
        f"source '{ROOT}/share/bash-completion/completions/shoal'; COMP_WORDS=(shoal rep); "
        f"COMP_CWORD=1; _shoal_completion '{program}'; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    assert output_of("bash", "-c", script) == ["republish", "reproduce"]


def test_zsh_and_fish_get_an_answer_to_what_their_files_ask(program):
    asked = {"_TYPER_COMPLETE_ARGS": "shoal rep"}
    assert "_SHOAL_COMPLETE=complete_zsh" in text_of("share/zsh/site-functions/_shoal")
    assert "republish" in "\n".join(output_of(program, _SHOAL_COMPLETE="complete_zsh", **asked))
    asked |= {"_SHOAL_COMPLETE": "complete_fish", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    page = text_of("share/fish/vendor_completions.d/shoal.fish")
    assert all(f"{name}=" in page for name in asked)
    assert "republish" in "\n".join(output_of(program, **asked))


# Wheel


@pytest.fixture(scope="module")
def wheels(tmp_path_factory) -> list[Path]:
    """The wheel, built twice: in other places, with other times, permissions and hash seeds."""
    pytest.importorskip(
        "hatchling", reason="the wheel is built with hatchling: pip install '.[dev]'"
    )
    built = []
    for seed, umask in ((1, 0o022), (2, 0o077)):
        place = tmp_path_factory.mktemp(f"build-{seed}")
        for name in WHEEL_SOURCES:
            if (ROOT / name).is_dir():
                shutil.copytree(
                    ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__")
                )
            else:
                shutil.copy(ROOT / name, place / name)
        for path in place.rglob("*"):
            os.utime(path, (seed * 1e9, seed * 1e9))
            path.chmod((0o777 if path.is_dir() else 0o666) & ~umask)
        subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "dist"],
            cwd=place,
            env=os.environ | {"SOURCE_DATE_EPOCH": "1700000000", "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            check=True,
        )
        built += (place / "dist").glob("*.whl")
    return built


def test_what_a_release_is_built_with_is_pinned_by_hash_and_as_the_tests_have_it():
    pinned = dict(
        re.findall(r"^([\w-]+)==(\S+) --hash=sha256:[0-9a-f]{64}$", text_of(LOCKED), re.MULTILINE)
    )
    lines = [line for line in text_of(LOCKED).splitlines() if not line.startswith("#")]
    assert len(pinned) == len(lines)
    assert {f"{name}=={version}" for name, version in pinned.items()} <= {
        line.partition(" ")[0] for line in text_of("constraints.txt").splitlines()
    }
    needed, seen = [Requirement("hatchling")], set()
    while needed:
        name = canonicalize_name(needed.pop().name)
        if name not in seen:
            seen.add(name)
            asked = map(Requirement, metadata.requires(name) or [])
            needed += [
                one for one in asked if one.marker is None or one.marker.evaluate({"extra": ""})
            ]
    assert seen <= set(pinned)
    for place in ("Makefile", "Dockerfile"):
        assert "--require-hashes --only-binary :all: -" in text_of(place)


def test_the_same_source_gives_the_same_wheel(wheels):
    first, second = (hashlib.sha256(wheel.read_bytes()).hexdigest() for wheel in wheels)
    assert first == second


def test_the_wheel_honours_the_source_date(wheels):
    with zipfile.ZipFile(wheels[0]) as wheel:
        assert {member.date_time[:3] for member in wheel.infolist()} == {(2023, 11, 14)}


def test_the_wheel_holds_types_manual_page_completions_and_what_is_read(wheels):
    with zipfile.ZipFile(wheels[0]) as wheel:
        names = set(wheel.namelist())
    data = f"shoal-{PROJECT['version']}.data/data"
    shared = {
        f"{data}/{path.relative_to(ROOT)}" for path in (ROOT / "share").rglob("*") if path.is_file()
    }
    read = {
        str(path.relative_to(ROOT / "src"))
        for path in (ROOT / "src" / "shoal").rglob("*")
        if path.suffix in (".yaml", ".j2", ".css", ".js", ".svg")
    }
    assert shared | read | {"shoal/py.typed", "shoal/data/person/words.yaml"} <= names


def test_the_bill_of_materials_names_what_users_install_and_no_more(wheels):
    with zipfile.ZipFile(wheels[0]) as wheel:
        (name,) = (name for name in wheel.namelist() if ".dist-info/sboms/" in name)
        bill = json.loads(wheel.read(name))
    extras = PROJECT["optional-dependencies"]
    optional = [text for extra in extras if extra not in ("dev", "docs") for text in extras[extra]]
    asked = {
        canonicalize_name(Requirement(text).name) for text in (*PROJECT["dependencies"], *optional)
    }
    required = {canonicalize_name(Requirement(text).name) for text in PROJECT["dependencies"]}
    assert name.endswith("/shoal.cdx.json")
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert bill["metadata"]["component"]["version"] == PROJECT["version"]
    assert {part["name"] for part in bill["components"]} == asked
    assert {part["name"] for part in bill["components"] if part["scope"] == "required"} == required
    assert "timestamp" not in bill["metadata"]
