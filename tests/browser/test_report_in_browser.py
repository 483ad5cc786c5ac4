"""The reports in a real browser: they fit the window, wide and narrow, and ask for nothing else."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from sample_policies import PATIENTS
from shoal.advise.compare import compare
from shoal.policy.policy import Policy
from shoal.reports.comparison import write_comparison
from shoal.reports.release import write_report
from shoal.samples import patients
from shoal.tables.publish import publish_file

BROWSER = next(
    (
        found
        for name in ("chromium", "chromium-browser", "google-chrome")
        if (found := shutil.which(name))
    ),
    None,
)
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        BROWSER is None, reason="no chromium on PATH: install it to look at the page in it"
    ),
]

FLAGS = [
    *"--headless --no-sandbox --disable-gpu --disable-quic --no-first-run".split(),
    *"--disable-sync --disable-background-networking --disable-component-update".split(),
]

# the page in frames of two widths; the outer page writes down what it finds in them
PROBE = """<!DOCTYPE html><body>
<iframe width="400" height="900"></iframe><iframe width="1100" height="900"></iframe>
<pre id="found"></pre>
<script>
const page = %s;
let left = 2;
document.querySelectorAll("iframe").forEach(frame => {
  frame.onload = () => {
    const inside = frame.contentDocument, root = inside.documentElement;
    const height = element => element.getBoundingClientRect().height;
    const letters = [...inside.querySelectorAll("svg text")].map(height);
    const isOut = text => {
      const own = text.getBoundingClientRect(), chart = text.closest("svg").getBoundingClientRect();
      return own.left < chart.left - 1 || own.right > chart.right + 1
        || own.top < chart.top - 1 || own.bottom > chart.bottom + 1;
    };
    const line = {
      width: frame.width, reaches: root.scrollWidth,
      sections: inside.querySelectorAll("section").length,
      charts: [...inside.querySelectorAll("svg")].filter(s => height(s) > 60).length,
      letters: Math.min(...letters),
      cut: [...inside.querySelectorAll("svg text")].filter(isOut).length,
      hidden: [...inside.querySelectorAll(".scroll")]
        .filter(box => box.scrollWidth > box.clientWidth).length,
      loaded: frame.contentWindow.performance.getEntriesByType("resource").length,
    };
    const text = Object.entries(line).map(e => e.join("=")).join(" ") + "\\n";
    document.getElementById("found").textContent += text;
    if (--left === 0) document.title = "done";
  };
  frame.srcdoc = page;
});
</script></body>"""


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> dict[int, dict[str, float]]:
    """What the browser sees of a report, by width of the window."""
    folder = tmp_path_factory.mktemp("browser")
    patients.generate(1000, 1).write_csv(folder / "input.csv")
    policy = Policy.from_dict(yaml.safe_load(PATIENTS)).with_method("mondrian", {})
    outcome = publish_file(str(folder / "input.csv"), policy, str(folder / "output.csv"))
    write_report(outcome, policy, folder / "report.html")
    return _seen(folder / "report.html")


@pytest.fixture(scope="module")
def compared(tmp_path_factory) -> dict[int, dict[str, float]]:
    """What it sees of a comparison of more methods than are drawn, one with a long name."""
    folder = tmp_path_factory.mktemp("compared")
    methods = ["mondrian:cut=nearest:trees=children", "mondrian", "mondrian-relaxed", "mdav"]
    methods += ["lattice-peeling", "rounded-partition", "top-down-greedy", "datafly"]
    table, policy = patients.generate(300, 1), yaml.safe_load(PATIENTS)
    write_comparison(compare(table, policy, methods, [5, 10]), folder / "report.html")
    return _seen(folder / "report.html")


def _seen(report: Path) -> dict[int, dict[str, float]]:
    page = json.dumps(report.read_text("utf-8")).replace("</", "<\\/")
    probe = report.with_name("probe.html")
    probe.write_text(PROBE % page, "utf-8")
    dumped = _dom_of(probe, report.with_name("profile"))
    lines = re.search(r'<pre id="found">(.*?)</pre>', dumped, re.DOTALL)
    assert lines, "the browser drew nothing"
    rows = [
        {k: float(v) for k, v in (e.split("=") for e in line.split())}
        for line in lines[1].strip().split("\n")
    ]
    return {int(row["width"]): row for row in rows}


def _dom_of(page: Path, profile: Path) -> str:
    command = [
        BROWSER,
        *FLAGS,
        f"--user-data-dir={profile}",
        "--virtual-time-budget=8000",
        "--dump-dom",
        page.as_uri(),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=120).stdout


@pytest.mark.parametrize("width", [400, 1100])
def test_it_fits_the_window_and_shows_everything(found, width):
    assert found[width]["reaches"] <= width
    assert found[width]["sections"] == 9
    assert found[width]["charts"] == 6


@pytest.mark.parametrize("width", [400, 1100])
def test_letters_in_charts_can_be_read(found, width):
    assert found[width]["letters"] >= 8
    assert found[width]["cut"] == 0


def test_it_loads_nothing(found):
    assert all(row["loaded"] == 0 for row in found.values())


@pytest.mark.parametrize("width", [400, 1100])
def test_a_comparison_fits_the_window_and_its_table_too(compared, width):
    assert compared[width]["reaches"] <= width
    assert compared[width]["charts"] == 4
    if width > 1000:
        assert compared[width]["hidden"] == 0  # no table has to be scrolled


@pytest.mark.parametrize("width", [400, 1100])
def test_letters_in_curves_can_be_read(compared, width):
    assert compared[width]["letters"] >= 8
    assert compared[width]["cut"] == 0
    assert compared[width]["loaded"] == 0
