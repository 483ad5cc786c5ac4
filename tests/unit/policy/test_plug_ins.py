"""Plug-ins that can't be used are refused in one line that names their package."""

import importlib
import sys

import pytest

import shoal
from shoal.errors import InputError
from shoal.policy import plug_ins, registry

CLASS = """
from dataclasses import dataclass
from typing import ClassVar

@dataclass(frozen=True)
class Thing:
    {key}: ClassVar[str] = "{name}"
"""


def metric(name, key="name", score="score"):
    return (
        CLASS.format(key=key, name=name)
        + f"""
    def {score}(self, release):
        return 1.0
"""
    )


def method(name, verb, field=""):
    return (
        CLASS.format(key="name", name=name)
        + f"""
    paper: ClassVar[str] = "none"
    verb: ClassVar[str] = "{verb}"
    {field}
"""
    )


FAILING = """
from dataclasses import dataclass
from typing import ClassVar
from shoal.extend import Partitioner

@dataclass(frozen=True)
class Thing(Partitioner):
    name: ClassVar[str] = "failing"
    paper: ClassVar[str] = "none"
"""
RAISES = """
    def partition(self, matrix, promises, rng):
        raise ValueError("a cell of the data")
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Puts a package with one entry point where Python finds it."""
    modules: list[str] = []

    def forget():
        for cached in (*vars(plug_ins).values(), *vars(registry).values()):
            if hasattr(cached, "cache_clear"):
                cached.cache_clear()
        for name in modules:
            sys.modules.pop(name, None)

    def add(group: str, code: str, package: str = "their-package", entry: str = "thing"):
        module = package.replace("-", "_")
        modules.append(module)
        (tmp_path / f"{module}.py").write_text(code)
        about = tmp_path / f"{module}-1.2.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n")
        (about / "entry_points.txt").write_text(f"[{group}]\n{entry} = {module}:Thing\n")
        importlib.invalidate_caches()
        forget()

    monkeypatch.syspath_prepend(tmp_path)
    yield add
    forget()


def test_a_metric_from_elsewhere_is_found(install):
    install("shoal.metrics", metric("theirs"))
    assert registry.metrics()["theirs"]().score(None) == 1.0


METRICS, METHODS = "shoal.metrics", "shoal.algorithms"


@pytest.mark.parametrize(
    ("group", "code", "reason"),
    [
        (METRICS, "import no_such_module", "can't be loaded (ModuleNotFoundError: No "),
        (METRICS, "raise SystemError('two\\nlines')", "(SystemError: two lines)"),
        (METRICS, "", "can't be loaded (AttributeError: "),
        (METRICS, "import sys; sys.exit(7)", "can't be loaded (SystemExit: 7)"),
        (METRICS, "class Thing: name = 'x'", "is not a dataclass"),
        (METRICS, "Thing = 1", "is not a dataclass"),
        (METRICS, metric(""), "has no text as its 'name'"),
        (METRICS, metric("gcp"), "takes the name 'gcp', which belongs to Shoal itself"),
        (METRICS, metric("x", score="scores"), "lacks score of Metric"),
        (METHODS, method("x", "burn"), "names no verb; it must be one of publish, stream"),
        (METHODS, method("x", "publish", "cut: str = 'fine'"), "lacks partition of Partitioner"),
        (METHODS, method("x", "stream", "start: int = 1"), "lacks snap, tick of StreamMethod"),
        (
            METHODS,
            method("mondrian", "publish", "partition: int = 1"),
            "takes the name 'mondrian', which belongs to Shoal itself",
        ),
        (
            METHODS,
            method("datafly", "publish", "partition: int = 1"),
            "takes the name 'datafly', which belongs to 'shoal-papers'",
        ),
        ("shoal.privacy", metric("x", key="model"), "lacks against, asked, attributes and "),
        ("shoal.hierarchies", metric("x", key="kind"), "lacks from_spec"),
        (METHODS, FAILING, "lacks partition of Partitioner"),  # which it only inherits
    ],
)
def test_a_broken_plug_in_is_refused_by_name(install, shoal, group, code, reason):
    install(group, code)
    with pytest.raises(InputError) as refused:
        registry.methods(), registry.models(), registry.metrics(), registry.makers()
    message = str(refused.value)
    assert message.startswith(f"plug-in 'thing' ({group}) of 'their-package 1.2': ")
    assert reason in message
    assert message.endswith("; update or uninstall 'their-package'")
    assert "\n" not in message
    if group == METHODS:
        assert shoal("methods", status=2).err == f"shoal: {message}\n"


def test_two_packages_that_want_one_name_are_told_of_each_other(install):
    install("shoal.metrics", metric("theirs"), "one-package")
    install("shoal.metrics", metric("theirs"), "other-package")
    with pytest.raises(
        InputError, match=r"belongs to 'one-package 1\.2'; update or uninstall 'oth"
    ):
        registry.metrics()


COMMAND = """
import typer

def Thing(count: int = typer.Option(1, "--count", help="How many.")) -> None:
    '''Count.'''
    typer.echo(f"counted {count}")
"""


def test_a_verb_from_elsewhere_is_run_and_in_the_help(install, shoal):
    install("shoal.commands", COMMAND, entry="count-them")
    assert shoal("count-them", "--count", "3").out == "counted 3\n"
    assert "count-them" in shoal("--help").out
    assert "no whole number" in shoal("count-them", "--count", "x").err.replace("not a", "no")


@pytest.mark.parametrize(
    ("entry", "code", "reason"),
    [
        ("count", "import no_such_module", "can't be loaded (ModuleNotFoundError: No "),
        ("count", "Thing = 1", "is not a function"),
        ("publish", COMMAND, "takes the name 'publish', which belongs to Shoal itself"),
        ("reproduce", COMMAND, "takes the name 'reproduce', which belongs to "),
    ],
)
def test_a_verb_that_can_not_be_used_is_refused_by_its_package(install, shoal, entry, code, reason):
    install("shoal.commands", code, entry=entry)
    for words in (("--help",), ("count",)):
        (line,) = shoal(*words, status=2).err.splitlines()
        assert line.startswith(f"shoal: plug-in '{entry}' (shoal.commands) of 'their-package 1.2'")
        assert reason in line
    assert shoal("publish", "--help").status == 0


def test_an_error_inside_a_plug_in_names_its_package_and_no_value(
    install, sample_table, sample_policy, monkeypatch
):
    monkeypatch.delenv("SHOAL_DEBUG", raising=False)
    install("shoal.algorithms", FAILING + RAISES)
    policy = shoal.Policy.from_dict(sample_policy).with_method("failing")
    with pytest.raises(InputError, match=r"method 'failing' of 'their-package 1\.2'") as refused:
        shoal.publish(sample_table, policy)
    assert "a cell of the data" not in str(refused.value)
