"""What a notebook shows of results: escaped, self-contained, nothing beyond what is published."""

import pickle
import re
import sys
from types import SimpleNamespace

import polars as pl
import pytest
from matplotlib.figure import Figure

import shoal
from page_text import Page
from shoal.data.notebook import MOST_LETTERS, MOST_ROWS
from shoal.errors import InputError

ODD = '<b onclick="x()">&amp;</b><script>alert(1)</script>'


@pytest.fixture(scope="module")
def release():
    table = shoal.sample("patients", n=300, seed=3)
    return shoal.publish(
        table,
        quasi=["age", "sex", "education"],
        sensitive="disease",
        subject="patient",
        other="drop",
        k=5,
        l=2,
    )


def shown(thing: object) -> str:
    html = thing._repr_html_()
    page = Page(html)
    assert not {"script", "style", "link", "img", "iframe", "b"} & set(page.tags)
    assert not page.loaded
    assert not re.search(r"<[^>]*(\son\w+=|href|src)|javascript:|https?://", html)
    return html


def test_a_publication_shows_its_verdict_and_at_most_ten_published_rows(release):
    html = shown(release)
    assert "Every promise holds." in html
    assert "The first 10 of 300 rows, 4 columns." in html
    assert html.count("<tr>") == 1 + 2 + 1 + 4 + 1 + MOST_ROWS
    published = {str(cell) for row in release.data.head(10).rows() for cell in row}
    assert {"P001", "Ivo"}.isdisjoint(Page(html).text.split())
    cells = re.findall(r"<td>(.*?)</td>", html.rpartition("<table>")[2])
    assert set(cells) <= published


def test_a_policy_a_risk_and_prices_are_printed_in_lines(release):
    table = shoal.sample("patients", n=300, seed=3)
    said = str(release.policy).splitlines()
    assert "age         quasi      number" in said
    assert "l-diversity  attribute: disease, l: 2" in "\n".join(said)
    said = str(shoal.risk(table, release.policy)).splitlines()
    assert re.fullmatch(r"\d+ of \d+ people are alone\.", said[0])
    assert [line.split()[0] for line in said[1:]] == ["column", "age", "sex", "education"]
    said = str(shoal.marginal(table, release.policy, release=release)).splitlines()
    assert said[1].split()[:2] == ["rounded-partition", "5"]
    assert {line.split()[0] for line in said[3:6]} == {"age", "sex", "education"}
    assert "why" not in said[2]
    assert re.fullmatch(r"rounded-partition +5 +\d+\.\d % +\d+\.\d %", said[1])
    said = str(shoal.profile(table)).splitlines()
    assert said[0].split() == ["column", "kind", "values", "missing"]


def test_a_publication_of_any_kind_of_frame_shows_the_same(release):
    table = shoal.sample("patients", n=300, seed=3)
    for frame in (table.to_pandas(), table.to_arrow()):
        assert shoal.publish(frame, release.policy)._repr_html_() != ""
        again = shoal.publish(frame, release.policy)
        assert again._repr_html_() == shoal.publish(table, release.policy)._repr_html_()


def test_names_and_cells_are_escaped():
    frame = pl.DataFrame({ODD: [ODD] * 4, "ill": ["x", "y", "x", "y"]})
    release = shoal.publish(frame, quasi=ODD, sensitive="ill", k=2)
    assert "&lt;script&gt;" in shown(release)
    assert "&lt;script&gt;" in shown(release.policy)
    shown(release.certificate)
    shown(shoal.compare(frame, release.policy, ["mondrian"], [2]))


def test_a_long_cell_is_cut():
    frame = pl.DataFrame({"a": ["x" * 500] * 4})
    html = shown(shoal.publish(frame, quasi="a", k=2))
    assert "x" * (MOST_LETTERS - 1) + "…" in html
    assert "x" * MOST_LETTERS not in html


def test_a_policy_shows_roles_and_promises_and_no_label(sample_policy):
    tree = {"tree": {"all": ["Xanthippe", "Yggdrasil"]}}
    attributes = sample_policy["attributes"] | {"town": {"role": "quasi", "hierarchy": tree}}
    html = shown(shoal.Policy.from_dict(sample_policy | {"attributes": attributes}))
    assert "made by tree" in html
    assert "Xanthippe" not in html
    assert "k-anonymity" in html


def test_a_policy_shows_the_method_that_it_names_and_no_other(release):
    named = release.policy.with_method("mdav")
    for policy, says in ((release.policy, "method open"), (named, "mdav")):
        assert repr(policy).endswith(f"; {says}>")
        assert f"<p>{says}.</p>" in shown(policy)


def test_a_broken_certificate_says_so_and_what_is_wrong(release):
    audited = shoal.audit(release.data, quasi=["age", "sex", "education"], k=50)
    html = shown(audited)
    assert "<strong>Not everything holds; 1 grave finding.</strong>" in html
    assert "<td>NO</td>" in html


@pytest.mark.parametrize("to", ["polars", "pandas", "pyarrow"])
@pytest.mark.parametrize("numbers", ["published", "interval", "mid", "mean"])
def test_a_release_that_was_read_shows_itself_whatever_its_cells_are(
    tmp_path, release, numbers, to
):
    release.save(tmp_path / "release.csv")
    found = shoal.read_release(tmp_path / "release.csv", numbers=numbers, to=to)
    assert repr(found) == "<ReleaseFrame rows=300, columns=4>"
    assert "The first 10 of 300 rows, 4 columns." in shown(found)


def test_a_publication_whose_frame_was_changed_shows_itself():
    frame = shoal.sample("patients", n=50, seed=3).to_pandas()
    release = shoal.publish(frame, quasi="age", other="drop", k=5)
    release.data["more"] = [[1]] * 50
    release.data.index = [7] * 50
    assert "50 rows, 2 columns" in repr(release)
    assert "50 rows, 2 columns" in shown(release)


@pytest.fixture(scope="module")
def results(release, tmp_path_factory):
    """Every kind of result that a public function returns, by its name."""
    folder = tmp_path_factory.mktemp("results")
    table, policy = shoal.sample("patients", n=300, seed=3), release.policy
    (folder / "sex.csv").write_text("female;*\nmale;*\ndiverse;*\n")
    release.save(folder / "release.csv")
    return {
        "Publication": release,
        "Certificate": release.certificate,
        "Policy": policy,
        "ReleaseFrame": shoal.read_release(folder / "release.csv"),
        "Check": shoal.verify(folder / "release.csv")[0],
        "Comparison": shoal.compare(table, policy, ["mondrian"], [5]),
        "Risk": shoal.risk(table, policy),
        "Profile": shoal.profile(table),
        "Proposal": shoal.propose_policy(table, k=5),
        "Marginal": shoal.marginal(table, policy, release=release),
        "AttackerView": shoal.attacker_view(release, policy, table, 1),
        "HierarchyMatch": shoal.match_hierarchies(table, folder)[0],
        "Stream": shoal.stream(policy, method="fads", delta=10),
        "LatticeWalk": shoal.lattice_walk(table, policy.with_method("full-domain")),
        "Republication": shoal.Republication(1, release.certificate, 3, reasons=["few"]),
        "Prospect": shoal.Prospect("crp", None, told=["few"]),
        "Rehearsal": shoal.Rehearsal("any", 2, None, 10, 8, 0.5, None),
        "LedgerAudit": shoal.LedgerAudit([]),
        "StreamStatus": shoal.StreamStatus({"state": "ended", "verdict": {"holds": True}}, ()),
    }


def test_every_result_shows_itself_in_a_line_and_in_a_notebook(results):
    for name, result in results.items():
        assert type(result).__name__ == name
        assert repr(result), name
        assert shown(result), name


def test_a_line_shows_figures_and_no_lengths_of_collections(results):
    risk = results["Risk"]
    assert repr(risk).startswith(f"<Risk lone={risk.lone}, rows=300, people={risk.people}, ")
    for name, fields in (("Risk", "alone without"), ("AttackerView", "known learnt")):
        assert not any(f" {field}=" in repr(results[name]) for field in fields.split())
    assert " fits=" not in repr(results["HierarchyMatch"])


# Pages and figures


def test_the_report_is_the_page_of_the_command(tmp_path, release):
    release.report(tmp_path / "r.html")
    text = Page((tmp_path / "r.html").read_text()).text
    assert "Every promise holds" in text
    assert "shoal publish INPUT" in text
    with pytest.raises(InputError, match=r"ends in \.html"):
        release.report(tmp_path / "r.pdf")
    with pytest.raises(InputError, match="exists; name another file, or say overwrite=True"):
        release.report(tmp_path / "r.html")
    release.report(tmp_path / "r.html", overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["r.html"]


class Shell:
    """A notebook's, as far as a figure asks it."""

    kernel = True

    def __init__(self, monkeypatch):
        self.events, self.callbacks, self.displayed = self, [], []
        shown = SimpleNamespace(display=self.displayed.append)
        known = SimpleNamespace(get_ipython=lambda: self, display=shown, version_info=(9, 0))
        monkeypatch.setitem(sys.modules, "IPython", known)
        monkeypatch.setitem(sys.modules, "IPython.display", shown)

    def register(self, event, call):
        assert event == "post_execute"
        self.callbacks.append(call)

    def unregister(self, event, call):
        self.callbacks.remove(call)

    def ends_cell(self):
        """The figures that were displayed since the cell before."""
        for call in [*self.callbacks]:
            call()
        displayed, self.displayed[:] = [*self.displayed], []
        return displayed


def test_a_figure_is_shown_once_by_the_cell_that_made_it_though_it_ends_in_a_semicolon(
    release, monkeypatch
):
    shell = Shell(monkeypatch)
    hidden = release.plot("loss")
    assert shell.ends_cell() == [hidden]
    returned = release.plot("sizes")
    returned._repr_svg_()
    assert shell.ends_cell() == []
    assert not shell.callbacks
    shell.kernel = None  # a terminal
    release.plot("loss")
    assert shell.ends_cell() == []


WRONG = {
    "numbers": (lambda release: release.numbers("middle"), r"numbers 'middle': is unknown; .*mid"),
    "numbers of no text": (lambda release: release.numbers(["mid"]), "numbers: is of type list; c"),
    "data for numbers": (lambda release: release.numbers(release.data), "numbers: is of type Data"),
    "plot": (lambda release: release.plot("Loss"), "plot 'Loss': is unknown; did you mean 'loss'"),
    "data for plot": (lambda release: release.plot(release.data), "plot: is of type DataFrame; ch"),
    "trace for overwrite": (
        lambda release: release.save("o.csv", "t.jsonl"),
        "overwrite: is of type str; say True or False, and other arguments by their names",
    ),
}


@pytest.mark.parametrize(("call", "said"), WRONG.values(), ids=WRONG)
def test_an_argument_of_a_wrong_kind_is_refused_with_what_to_say(release, folder, call, said):
    with pytest.raises(InputError, match=f"^{said}"):
        call(release)
    assert not [*folder.iterdir()]


def test_a_comparison_without_a_release_says_that_nothing_can_be_drawn():
    frame = pl.DataFrame({"age": range(20)})
    found = shoal.compare(frame, quasi=["age"], k=30, methods=["mondrian"])
    with pytest.raises(InputError, match="plot: no method has a release to draw"):
        found.plot()


def test_every_plot_is_a_figure_that_draws_itself(release, tmp_path):
    axes = {"sizes": 1, "loss": 1, "columns": 4}  # three columns, in rows of two
    for what, count in axes.items():
        figure = release.plot(what)
        assert isinstance(figure, Figure)
        assert len(figure.axes) == count
        assert figure._repr_svg_().rstrip().endswith("</svg>")
        figure.savefig(tmp_path / f"{what}.png")
    caption = release.plot("columns").get_supxlabel()
    assert "evenly over all values it covers" in caption
    assert "at least 5 people each, rounded to multiples of 5 records" in caption
    assert not release.plot("loss").get_supxlabel()
    for each in release.plot("columns").axes[:3]:
        each.figure.draw_without_rendering()
        title, legend = each._left_title.get_window_extent(), each.get_legend().get_window_extent()
        assert title.y0 >= legend.y1
    (bars,) = release.plot("loss").axes[0].collections
    losses = [column["loss"] for column in release.certificate["columns"]]
    assert [bar.vertices[:, 0].max() / 100 for bar in bars.get_paths()] == pytest.approx(
        [loss for loss in losses if loss is not None]
    )
    with pytest.raises(InputError, match="choose one of sizes, columns, loss"):
        release.plot("size")


def test_a_pickled_publication_holds_nothing_of_the_original_that_is_not_published(release):
    stored = pickle.dumps(release)
    names = shoal.sample("patients", n=300, seed=3)["name"].to_list()
    assert not any(name.encode() in stored for name in names)
    assert b"P001" not in stored
    again = pickle.loads(stored)
    assert again.data.equals(release.data)
    assert again.certificate == release.certificate
    assert again._repr_html_() == release._repr_html_()
    with pytest.raises(InputError, match="stored without its original"):
        again.plot("sizes")


def test_a_plot_leaves_the_users_settings_alone(release):
    import matplotlib as mpl

    with mpl.rc_context({"font.size": 23}):
        release.plot("sizes")
        assert mpl.rcParams["font.size"] == 23
