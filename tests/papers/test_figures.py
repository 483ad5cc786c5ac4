"""The papers' figures: few curves, one style each, nothing clipped."""

import html
import re
from pathlib import Path

import pytest
from matplotlib.textpath import TextPath

from shoal_papers.reproduce import fusion, papers
from shoal_papers.reproduce.committed import load
from shoal_papers.reproduce.drawing import MOST, STYLES
from shoal_papers.reproduce.verdict_report import judge

PAPERS = Path(__file__).parents[2] / "papers"
EVERY = pytest.mark.parametrize("name", papers())


@EVERY
def test_no_figure_draws_more_curves_than_can_be_told_apart(name):
    paper = papers()[name]
    main = judge(paper, load(PAPERS / name.replace("-", "_"))[1])[0].view
    for figure in paper.figures:
        drawn = list(figure.points(main))
        assert 0 < len(drawn) <= MOST, figure.name
        styles = [STYLES[figure.styles.get(curve, i)] for i, curve in enumerate(drawn)]
        assert len(set(styles)) == len(drawn), figure.name
        assert len({colour for colour, _, _ in styles}) == len(drawn), figure.name


def test_a_method_and_a_qid_have_one_colour_in_all_figures_of_fusion():
    found: dict[tuple[str, str], set[int]] = {}
    for name, style in fusion.STYLES.items():
        pair = re.match(r"(\S+) (QID\d|six pairs)", name)
        if pair:
            found.setdefault(pair.groups(), set()).add(style)
    assert all(len(styles) == 1 for styles in found.values())
    assert len(set.union(*found.values())) == len(found)
    drawn = {curve for figure in fusion.FIGURES for curve in figure.curves}
    assert drawn <= fusion.STYLES.keys()


@pytest.mark.long
@EVERY
def test_the_committed_figures_are_all_there_and_no_line_of_text_leaves_them(name):
    folder = PAPERS / name.replace("-", "_")
    drawn = {figure.name for figure in papers()[name].figures}
    assert {path.stem for path in folder.glob("*.svg")} == drawn
    for path in folder.glob("*.svg"):
        text = path.read_text()
        room = [float(side) for side in re.search(r'viewBox="0 0 (\S+) (\S+)"', text).groups()]
        for style, place, content in re.findall(
            r'<text style="([^"]*)"([^>]* x="[^>]*)>([^<]{15,})<', text
        ):
            assert all(0 <= end <= most for end, most in _ends(style, place, content, room)), (
                path.name,
                content,
            )


def _ends(style: str, place: str, content: str, room: list[float]) -> list[tuple[float, float]]:
    """Where a line of text begins and ends, each with how far its figure reaches that way."""
    x, y = (float(re.search(rf' {axis}="([^"]+)"', place).group(1)) for axis in "xy")
    size = float(re.search(r"([\d.]+)px", style).group(1))
    length = TextPath((0, 0), html.unescape(content), size).get_extents().width
    is_upright = "rotate(-90" in place
    before = {"start": 0.0, "middle": length / 2, "end": length}[
        re.search(r"text-anchor: (\w+)", style).group(1) if "text-anchor" in style else "start"
    ]
    begin = (y + before) if is_upright else (x - before)
    end = begin - length if is_upright else begin + length
    along = room[1] if is_upright else room[0]
    return [(begin, along), (end, along)]
