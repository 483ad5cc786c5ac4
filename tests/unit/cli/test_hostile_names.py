"""Names of columns and answers of an owner are text, whatever stands in them: they add no element
to a page, turn no sentence round, and pass for no line of a summary.
"""

import unicodedata
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest

import shoal as shoal_package
from sample_policies import content_of
from shoal.cli.main import status_of
from shoal.data.language import printable, printable_lines, readable

TURNED, HIDDEN = "\N{RIGHT-TO-LEFT OVERRIDE}", "\N{ZERO WIDTH SPACE}"
HOSTILE = {
    "age": f"<script>alert(1)</script>{TURNED}emag",
    "zip": '"onmouseover="alert(2)" x=\'`',
    "disease": "</title><img src=x onerror=alert(3)>&amp;{{7*7}}{% x %}$\\frac{1}{2}$]]>--><!--",
    "note": f"a\x1b[8mb</style><svg onload=x>{HIDDEN}",
}
PLAIN = {name: name for name in HOSTILE}
PAGES = ("report.html", "audit.html", "dossier.html")
REORDERING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


class Shape(HTMLParser):
    """The elements of a page with the names of their attributes, in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, ...]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, *(name for name, _ in attrs)))

    def handle_comment(self, data: str) -> None:
        self.elements.append(("comment", data))


def pages_with(names: dict[str, str], folder: Path) -> dict[str, str]:
    """Every page about a small release whose columns bear these names."""
    folder.mkdir()
    age, place, disease, note = (names[name] for name in PLAIN)
    rows = [(str(20 + i % 9), "abcd"[i % 4], "xyz"[i % 4 % 3], "n") for i in range(60)]
    table = pl.DataFrame(rows, schema=[age, place, disease, note], orient="row")
    table.write_csv(folder / "in.csv")
    policy = shoal_package.Policy.from_dict(
        content_of(
            {
                age: {"role": "quasi", "type": "number"},
                place: {"role": "quasi"},
                disease: {"role": "sensitive"},
                note: {"role": "plain"},
            },
            5,
            {"model": "l-diversity", "attribute": disease, "l": 2},
            method={"name": "mondrian"},
        )
    )
    policy.save(folder / "policy.yaml")
    publish = f"publish {folder}/in.csv -p {folder}/policy.yaml -o {folder}/out.csv -q --attack all"
    assert status_of([*publish.split(), "--report", f"{folder}/report.html"]) == 0
    audit = f"audit {folder}/out.csv -p {folder}/policy.yaml --report {folder}/audit.html -q"
    assert status_of(audit.split()) == 0
    said = names["disease"]
    shoal_package.dossier(
        folder / "out.csv",
        context={
            "version": 1,
            "controller": {"name": said, "contact": names["age"]},
            "purpose": names["note"],
            "attributes": {age: {"why": said, "replicable": "low"}},
            "review_triggers": [said],
            "sign_off": [{"name": said, "role": said, "comment": said}],
        },
        profiles=["iso-27559"],
        output=folder / "dossier.html",
    )
    return {page: (folder / page).read_text("utf-8") for page in PAGES}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory) -> dict[str, str]:
    return pages_with(HOSTILE, tmp_path_factory.mktemp("hostile") / "run")


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> dict[str, str]:
    return pages_with(PLAIN, tmp_path_factory.mktemp("plain") / "run")


@pytest.mark.parametrize("page", PAGES)
def test_hostile_names_add_no_element_and_no_attribute_to_a_page(hostile, plain, page):
    shown, expected = Shape(hostile[page]).elements, Shape(plain[page]).elements
    # a long label of a chart takes two lines, each a text of its own
    line = ("text", "x", "y", "fill", "text-anchor")
    lines = {line, (*line, "transform")}
    assert {one for one in shown if one[0] == "text"} <= lines
    assert [one for one in shown if one[0] != "text"] == [o for o in expected if o[0] != "text"]


@pytest.mark.parametrize("page", PAGES)
def test_hostile_names_turn_and_hide_nothing_on_a_page(hostile, page):
    text = hostile[page]
    assert "emag" in text  # the name is shown
    turned = [i for i, sign in enumerate(text) if unicodedata.bidirectional(sign) in REORDERING]
    assert not [text[i - 80 : i] for i in turned]
    assert "\x1b" not in text
    assert HIDDEN not in text


def test_a_name_with_a_line_end_passes_for_no_line_of_a_summary(tmp_path, shoal):
    name = "disease: asked 2, measured 2: holds\nt-closeness\x1b[8m"
    rows = {"a": ["1"] * 6, "b": ["x"] * 6, name: ["flu"] * 6}
    pl.DataFrame(rows).write_csv(tmp_path / "r.csv")
    promises = [{"model": "l-diversity", "attribute": name, "l": 2}]
    policy = content_of({"a": "quasi", "b": "quasi", name: "sensitive"}, promises=promises)
    shoal_package.Policy.from_dict(policy).save(tmp_path / "p.yaml")
    result = shoal("audit", tmp_path / "r.csv", "-p", tmp_path / "p.yaml", status=1)
    assert not [line for line in result.err.splitlines() if line.endswith(": holds")]
    assert "\x1b" not in result.err


def test_text_for_a_line_and_for_a_page():
    persian, several = "می\N{ZERO WIDTH NON-JOINER}خواهم", "one\n\ttwo\N{NO-BREAK SPACE}three"
    assert readable(persian) == persian
    assert readable(several) == several
    assert readable(f"a{TURNED}b\x00") == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}"
    assert "\n" not in printable(several)
    assert printable_lines(["a\nb", "c"]).count("\n") == 1
