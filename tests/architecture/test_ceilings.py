"""How much there is to understand: figures of the source that may only fall.

Lower a ceiling when you have lowered its figure. A ceiling rises only in a change that says why.
Those of lines and imports stand a little above, so that a repair and its test fit below.
"""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "shoal"

CEILINGS = {
    "lines": 116_500,
    "logical lines": 74_305,
    "modules of more than 3 lines": 379,
    "lines of imports": 6_570,
    "percent of the biggest package": 12,
    "files that name a format or scheme": 19,
    "parameters annotated with Policy": 80,
    "dict[str, Any] and dict[str, object]": 107,
    "functions of 8 or more parameters": 11,
    "files above 500 lines": 6,
    "docstrings that begin 'The same' or 'As `x`'": 0,
    "'so many' and 'so much'": 0,
    "files of changes": 20,
    "words of docs": 60_000,
    "lines of tests": 84_900,
}

PLACE = re.compile(r"\.(csv|tsv|parquet|arrow|jsonl|xlsx)\b|\b(sqlite|postgresql|kafka)://")
KIND_OF_PLACE = {
    *("is_address", "is_topic", "is_folder", "is_many", "DELIMITED", "TYPED", "STANDARD"),
    *("format_of", "is_typed"),
}
"""Names by which code asks what kind of place a file or table is."""


@cache
def texts() -> dict[Path, str]:
    return {path: path.read_text("utf-8") for path in sorted(SOURCE.rglob("*.py"))}


@cache
def nodes_of() -> dict[Path, list[ast.AST]]:
    """Those of each file."""
    return {path: list(ast.walk(ast.parse(text))) for path, text in texts().items()}


def nodes(*kinds: type[ast.AST]) -> list[tuple[Path, ast.AST]]:
    return [
        (path, node)
        for path, found in nodes_of().items()
        for node in found
        if isinstance(node, kinds)
    ]


def occurrences(pattern: str) -> int:
    return sum(len(re.findall(pattern, text)) for text in texts().values())


def lines_of(path: Path) -> int:
    return texts()[path].count("\n")


def logical_lines() -> int:
    """Statements, with the lines that open another block of them; tokens say it, but slower."""
    count = 0
    for _, node in nodes(ast.stmt, ast.ExceptHandler, ast.match_case):
        is_stub = isinstance(node, ast.Expr) and getattr(node.value, "value", None) is ...
        count += not is_stub  # which stands in the line of its head
        count += len(getattr(node, "decorator_list", [])) + bool(getattr(node, "finalbody", []))
        otherwise = getattr(node, "orelse", None)
        if otherwise:
            is_elif = isinstance(otherwise[0], ast.If) and isinstance(node, ast.If)
            count += not (is_elif and otherwise[0].col_offset == node.col_offset)
    return count


def parameters() -> list[tuple[Path, list[ast.arg]]]:
    """Those of every function."""
    found = []
    for path, node in nodes(ast.FunctionDef, ast.AsyncFunctionDef):
        given = node.args
        found.append((path, [*given.posonlyargs, *given.args, *given.kwonlyargs]))
    return found


def docstrings() -> list[str]:
    documented = nodes(ast.FunctionDef, ast.ClassDef, ast.Module)
    return [text for _, node in documented if (text := ast.get_docstring(node))]


def names_a_place(found: list[ast.AST]) -> bool:
    documented = (ast.FunctionDef, ast.ClassDef, ast.Module)
    docs = {
        id(node.body[0].value)
        for node in found
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in found:
        text = getattr(node, "value", None) if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and id(node) not in docs and PLACE.search(text):
            return True
        if {getattr(node, "id", None), getattr(node, "attr", None)} & KIND_OF_PLACE:
            return True
    return False


def measured() -> dict[str, int]:
    sizes = {path: lines_of(path) for path in texts()}
    share: Counter[str] = Counter()
    for path, size in sizes.items():
        share[path.relative_to(SOURCE).parts[0]] += size
    statements = nodes(ast.Import, ast.ImportFrom)
    annotated = [p for _, given in parameters() for p in given if p.annotation is not None]
    loops = re.compile(r"numba|kernels\.compile|search\.compile")
    taken = [
        len([p for p in given if p.arg not in ("self", "cls")])
        for path, given in parameters()
        if not loops.search(texts()[path])
    ]
    elsewhere = [
        found
        for path, found in nodes_of().items()
        if path.relative_to(SOURCE).parts[0] not in ("connectors", "reports")
    ]
    pages = [page for page in (ROOT / "docs").rglob("*.md") if "_build" not in page.parts]
    tests = [path.read_text("utf-8") for path in (ROOT / "tests").rglob("*.py")]
    return {
        "lines": sum(sizes.values()),
        "logical lines": logical_lines(),
        "modules of more than 3 lines": sum(size > 3 for size in sizes.values()),
        "lines of imports": sum(node.end_lineno - node.lineno + 1 for _, node in statements),
        "percent of the biggest package": round(100 * max(share.values()) / sum(sizes.values())),
        "files that name a format or scheme": sum(map(names_a_place, elsewhere)),
        "parameters annotated with Policy": sum(
            bool(re.search(r"\bPolicy\b", ast.unparse(p.annotation))) for p in annotated
        ),
        "dict[str, Any] and dict[str, object]": occurrences(r"(?i)dict\[str, (?:Any|object)\]"),
        "functions of 8 or more parameters": sum(number >= 8 for number in taken),
        "files above 500 lines": sum(size > 500 for size in sizes.values()),
        "docstrings that begin 'The same' or 'As `x`'": sum(
            bool(re.match(r"The same\b|As `", text)) for text in docstrings()
        ),
        "'so many' and 'so much'": occurrences(r"\bso (many|much)\b"),
        "files of changes": len(list((ROOT / "changes").glob("*.md"))),
        "words of docs": sum(len(page.read_text("utf-8").split()) for page in pages),
        "lines of tests": sum(text.count("\n") for text in tests),
    }


def test_no_figure_is_above_its_ceiling():
    found = measured()
    assert found.keys() == CEILINGS.keys()
    assert [f"{name}: {n}" for name, n in found.items() if n > CEILINGS[name]] == []
