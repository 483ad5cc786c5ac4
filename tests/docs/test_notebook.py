"""The notebook in the docs runs from top to bottom, and what its cells end with shows itself.

Its code cells are read from JSON and run in order in one namespace, as a kernel would; see
docs/decisions/libraries.md.
"""

import ast
import json
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
NOTEBOOKS = sorted(DOCS.glob("*.ipynb"))


def cells(path: Path) -> list[dict]:
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def run(source: str, where: str, names: dict) -> object:
    """Runs a cell; the value of its last line, as a notebook shows it."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, where, "exec"), names)
    if last is None:
        return None
    return eval(compile(ast.Expression(last.value), where, "eval"), names)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_every_cell_runs_in_order_and_shows_itself(path, folder, capsys):
    names: dict = {"__name__": "__main__"}
    shown = []
    for number, cell in enumerate(cells(path), 1):
        if cell["cell_type"] == "code":
            value = run("".join(cell["source"]), f"{path.name}, cell {number}", names)
            forms = [getattr(value, form, None) for form in ("_repr_html_", "_repr_svg_")]
            said = [form() for form in forms if form is not None]
            shown += [text for text in said if text is not None]  # a figure has no HTML
    assert len(shown) >= 8
    assert all(text.strip() for text in shown)
    made = {"report.html", "patients.policy.yaml", "release.parquet"}
    assert {each.name for each in folder.iterdir()} == made | {"release.parquet.certificate.json"}
    numbers = [int(word) for word in capsys.readouterr().out.split() if word.isdigit()]
    estimate, true = numbers[-2:]
    assert abs(estimate - true) < 0.1 * true


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_is_kept_without_outputs_and_its_links_lead_somewhere(path):
    content = json.loads(path.read_text(encoding="utf-8"))
    assert (content["nbformat"], content["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in content["cells"]]
    assert len(ids) == len(set(ids))
    for cell in content["cells"]:
        assert cell["metadata"] == {}
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None
        else:
            text = "".join(cell["source"])
            for target in (part.split(")")[0] for part in text.split("](")[1:]):
                assert (DOCS / target.partition("#")[0]).is_file(), target


def test_there_is_a_notebook_and_the_python_page_names_it():
    assert NOTEBOOKS
    page = (DOCS / "python.md").read_text(encoding="utf-8")
    assert all(f"]({path.name})" in page for path in NOTEBOOKS)
