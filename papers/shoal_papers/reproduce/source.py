"""The hash of what made a paper's rows: of what the code does, not of how it is written.

It covers the modules that a paper names, and the algorithms and kernels that they import, directly
or not. What changes no figure is left out, so that a sentence made plainer does not call rows in
question: comments, docstrings, annotations, the words of errors, of progress and of help, and the
package that a module lies in. Encoding and recoding are left out, too: recorded releases
(`tests/golden`) keep their bytes.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import shoal

FOLLOWED = (
    "shoal.search.",
    "shoal.tables.methods.",
    "shoal.tables.kernels.",
    "shoal.streams.methods.",
    "shoal.streams.kernels.",
    "shoal.ledgers.methods.",
    "shoal.ledgers.kernels.",
    "shoal.fusion.",
    "shoal_papers.baselines.",
)
"""Rooms whose modules count, too, where a counted module imports them."""

WORDS = ("help", "paper")
"""Names under which modules keep words for readers."""

UNWRITTEN = ("ctx", "kind", "type_comment")
"""Fields of syntax trees that say nothing, or other things under other versions of Python."""

WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


PACKAGES = {"shoal": Path(shoal.__file__).parent, "shoal_papers": Path(__file__).parents[1]}
"""Where the modules of each package lie."""


def source_hash(names: Sequence[str]) -> str:
    """Hash of what these packages and modules do, the same under every version of Python."""
    digest = hashlib.sha256()
    for name, does in sorted((file.stem, _read(file)[0]) for file in _with_imports(names)):
        digest.update(f"{name}\0{does}".encode())
    return digest.hexdigest()[:16]


def essence(tree: ast.Module) -> str:
    """A module's syntax tree as text, without what only readers see; the tree loses it."""
    text: list[str] = []
    _write(_Silent().visit(tree), text)
    return "".join(text)


def _with_imports(names: Sequence[str]) -> set[Path]:
    """The files of these modules, and all that they import of the rooms that are followed."""
    found: set[Path] = set()
    waiting = [file for name in names for file in _files(name)]
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            waiting += _read(file)[1]
    return found


@cache
def _read(file: Path) -> tuple[str, list[Path]]:
    """What a module does, and the files that it imports of the rooms that are followed."""
    tree = ast.parse(file.read_text("utf-8"))
    imported = [
        _place(name).with_suffix(".py") for name in _imported(tree) if name.startswith(FOLLOWED)
    ]
    return essence(tree), [file for file in imported if file.exists()]


def _imported(tree: ast.Module) -> Iterator[str]:
    """All that may be a module among the names that a module imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)


def _files(name: str) -> list[Path]:
    """The file of a module, or those of a package; raises ModuleNotFoundError."""
    place = _place(name)
    files = [place.with_suffix(".py")] if not place.is_dir() else sorted(place.rglob("*.py"))
    if not all(file.exists() for file in files):
        raise ModuleNotFoundError(name)
    return files


def _place(name: str) -> Path:
    package, *parts = name.split(".")
    return PACKAGES[package].joinpath(*parts)


class _Silent(ast.NodeTransformer):
    """Takes away what only readers see."""

    def visit(self, node: ast.AST) -> Any:
        """The node without words and annotations, and so all that is below it."""
        if isinstance(node, WITH_DOCSTRING):
            node.body = [line for line in node.body if not _is_text(line)]
        return super().visit(node)

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        """Which error is raised stays, what it says does not."""
        if isinstance(node.exc, ast.Call):
            node.exc.args, node.exc.keywords = [], []
        return self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        """A parameter's help is for readers."""
        for i, key in enumerate(node.keys):
            if isinstance(key, ast.Constant) and key.value in WORDS:
                node.values[i] = ast.Constant("")
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """A field stays a field, whatever type it is said to have."""
        node.annotation = ast.Constant("")
        if isinstance(node.target, ast.Name) and node.target.id in WORDS:
            node.value = None
        return self.generic_visit(node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        """A module that moves to another package does what it did."""
        if (node.module or "").split(".")[0] in PACKAGES:
            node.module = None
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        """Nothing is checked against the types of arguments."""
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """What is returned says its own type."""
        node.returns = None
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Leaves out what is shown while somebody waits."""
        if isinstance(node.func, ast.Name) and node.func.id == "progress":
            node.args = []
        return self.generic_visit(node)


def _is_text(line: ast.stmt) -> bool:
    return (
        isinstance(line, ast.Expr)
        and isinstance(line.value, ast.Constant)
        and isinstance(line.value.value, str)
    )


def _write(node: Any, text: list[str]) -> None:
    """Appends the tree as text: names of nodes and their fields, empty ones left out.

    `ast.dump` writes other fields under other versions of Python.
    """
    if isinstance(node, ast.AST):
        text.append(type(node).__name__ + "(")
        for name, value in ast.iter_fields(node):
            if value is not None and value != [] and name not in UNWRITTEN:
                text.append(name + "=")
                _write(value, text)
        text.append(")")
    elif isinstance(node, list):
        text.append("[")
        for each in node:
            _write(each, text)
        text.append("]")
    else:
        text.append(f"{node!r},")
