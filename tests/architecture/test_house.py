"""The rules that keep the shape of the house."""

import ast
import functools
import importlib.util
import inspect
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import shoal

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "shoal"


@functools.cache
def imports_of(path: Path) -> set[str]:
    """Every module that a file imports anywhere, by full name."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def test_import_contracts():
    from importlinter.cli import lint_imports

    assert lint_imports(config_filename=str(ROOT / "pyproject.toml")) == 0


def test_no_modules_import_each_other_in_a_circle():
    """Not inside functions either, where Python itself would let them."""
    modules = {
        ".".join(path.relative_to(ROOT / "src").with_suffix("").parts): path
        for path in SOURCE.rglob("*.py")
        if path.name != "__init__.py"
    }
    imported = {name: imports_of(path) & modules.keys() for name, path in modules.items()}
    TopologicalSorter(imported).prepare()  # raises what names the circle


def test_nothing_inside_imports_the_front_door():
    names = {f"shoal.{name}" for name in shoal.__all__}
    for path in SOURCE.rglob("*.py"):
        if path.name != "__init__.py":
            assert not imports_of(path) & names, path


def test_public_names_are_those_that_the_docs_list():
    page = (ROOT / "docs" / "python.md").read_text()
    listed = set(
        re.findall(r"`(\w+)`", page.partition("\n## Public names\n")[2].partition("\n## ")[0])
    )
    errors = {name for name in shoal.__all__ if name.endswith("Error")}
    assert listed == set(shoal.__all__) - errors
    assert all(f"`{name}`" in page or f"`shoal.{name}`" in page for name in errors)


def test_every_public_name_is_found_where_the_front_door_says():
    for name in shoal.__all__:
        assert getattr(shoal, name) is not None
    assert set(shoal.__all__) <= set(dir(shoal))


def test_type_checkers_see_the_public_names():
    tree = ast.parse((SOURCE / "__init__.py").read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    shown: dict[str, tuple[str, ...]] = {}
    for node in block.body:
        # `as`, or a type checker takes the name for a private one
        assert all(alias.asname == alias.name for alias in node.names)
        shown[node.module] = (*shown.get(node.module, ()), *(alias.name for alias in node.names))
    assert shown == shoal._PUBLIC


def test_public_functions_say_the_type_of_all_that_they_take():
    functions = {name: getattr(shoal, name) for name in shoal.__all__}
    for name, function in functions.items():
        if inspect.isfunction(function):
            for parameter in inspect.signature(function).parameters.values():
                known = str(parameter.annotation)
                assert known not in ("Any", "Any | None"), f"{name}: {parameter.name}"


def test_importing_shoal_imports_nothing_else():
    script = (
        "import sys; before = set(sys.modules); import shoal; print(*set(sys.modules) - before)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert set(done.stdout.split()) - {"__future__"} == {"shoal", "shoal.version"}


def test_help_needs_neither_numba_nor_polars():
    script = (
        "import sys; from shoal.cli.main import status_of; status_of(['--help']);"
        " status_of(['publish', '--help']); sys.exit(bool({'numba', 'polars', 'numpy',"
        " 'matplotlib'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True).returncode == 0


def test_publishing_and_reports_need_no_plots():
    """Only figures for notebooks are drawn by the plotting library."""
    users = [
        p.name
        for p in SOURCE.rglob("*.py")
        if any(n and n.split(".")[0] == "matplotlib" for n in imports_of(p))
    ]
    script = (
        "import sys; sys.modules['matplotlib'] = None; import shoal.tables.publish; "
        "from shoal.policy import registry; registry.methods(); "
        "from shoal.reports import comparison, dossier, history, release"
    )
    assert sorted(users) == ["comparison.py", "figures.py", "publication.py"]
    assert subprocess.run([sys.executable, "-c", script], capture_output=True).returncode == 0


SELDOM_NEEDED = (
    "shoal.search.refinement",
    "shoal.attacks.beside",
    "shoal.attacks.counts",
    "shoal.cli.republish",
    "shoal.connectors.database.tables",
    "shoal.connectors.feeds",
    "shoal.auditor.signatures",
    "shoal.connectors.coded_files",
    "shoal.connectors.workbooks",
    "shoal.data.attack_scene",
    "shoal.data.ledger_view",
    "shoal.data.stream",
    "shoal.advise",
    "shoal.attacks.run.attack",
    "shoal.auditor.audit",
    "shoal.auditor.dossier",
    "shoal.fusion",
    "shoal.tables.aligned",
    "shoal.policy.from_columns",
    "shoal.tables.past_memory",
    "shoal.tables.global_recoding",
    "shoal.ledgers",
    "shoal.streams",
    "shoal.auditor.ledger",
    "shoal.connectors.ledger",
    "shoal.privacy.t_closeness",
    "shoal.reports.release",
    "shoal.web",
    "tomllib",
)
"""What a plain publication does without: imports take most of the time of a small one."""


def test_a_plain_publication_imports_nothing_that_nobody_asked_for(tmp_path):
    (tmp_path / "people.csv").write_text("age,zip\n" + "31,1010\n32,1010\n47,8010\n48,8010\n" * 3)
    (tmp_path / "policy.json").write_text(
        '{"version": 1, "attributes": {"age": {"role": "quasi", "type": "number"}, "zip":'
        ' {"role": "quasi", "order": "frequency"}}, "promises": [{"model": "k-anonymity", "k": 2}]}'
    )
    script = (
        "import sys; from shoal.cli.main import status_of; assert status_of(['publish',"
        " 'people.csv', '-p', 'policy.json', '-o', 'out.csv']) == 0; print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    imported = done.stdout.split()
    assert "shoal.tables.publish" in imported
    needless = [n for n in imported if n.startswith(tuple(f"{s}." for s in SELDOM_NEEDED))]
    assert sorted({*needless, *(set(imported) & set(SELDOM_NEEDED))}) == []
    for name in SELDOM_NEEDED:  # so that none is a name of yesterday
        assert importlib.util.find_spec(name), name


def test_the_command_line_chooses_no_method_or_measure():
    products = "tables|streams|ledgers|fusion"
    inner = re.compile(rf"shoal\.(search|privacy|utility|({products})\.(methods|kernels))\b")
    for path in (SOURCE / "cli").glob("*.py"):
        assert not any(name and inner.match(name) for name in imports_of(path)), path


def test_every_module_and_public_class_says_what_it_is():
    silent = []
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text())
        classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
        speaking = [node for node in classes if not node.name.startswith("_")]
        if tree.body and path.name != "__init__.py":
            speaking.append(tree)
        silent += [(path.name, node) for node in speaking if not ast.get_docstring(node)]
    assert silent == []
