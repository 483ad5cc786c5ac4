"""Local suppression: strict k, a star is a value of its own, and few cells are starred."""

from collections import Counter, defaultdict

import numpy as np
import polars as pl
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from sample_policies import content_of
from shoal.reports.comparison_table import as_text
from shoal.reports.text import summary
from shoal.samples import survey


def policy(names, k=2, **attributes):
    quasi = {name: {"role": "quasi"} | attributes.get(name, {}) for name in names}
    return content_of(quasi, k, method={"name": "suppress-cells"}, render={"order": "input"})


def suppressed(frame, **more):
    return shoal.publish(frame, policy(frame.columns, **more)).data


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.integers(2, 4))
def test_every_cell_is_the_value_or_a_star_and_k_people_show_the_same(seed, k):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(k, 40))
    frame = pl.DataFrame({name: rng.integers(0, 4, n) for name in "abc"}).cast(pl.String)
    numbers = {"c": {"type": "number"}}
    shown = suppressed(frame, k=k, **numbers)
    for name in frame.columns:
        for own, cell in zip(frame[name], shown[name], strict=True):
            assert cell in (own, "*")
    behind = defaultdict(list)
    for cells, own in zip(shown.iter_rows(), frame.iter_rows(), strict=True):
        behind[cells].append(own)
    for cells, members in behind.items():
        assert len(members) >= k
        for cell, values in zip(cells, zip(*members, strict=True), strict=True):
            assert (cell == "*") == (len(set(values)) > 1)


def test_starred_cells_are_counted_by_column_and_printed():
    frame = pl.DataFrame({"a": [*"xxyy"], "b": [*"1234"]})
    release = shoal.publish(frame, policy(frame.columns))
    assert release.certificate["starred"] == {"b": 4}
    assert "single cells suppressed: b 4" in summary(release.certificate).splitlines()
    same = shoal.publish(frame, policy(["a"]) | {"other": "drop"})
    assert "starred" not in same.certificate


def stars(labels, codes):
    """Cells that are starred where members of a class differ."""
    found = 0
    for c in set(labels):
        members = codes[[i for i, label in enumerate(labels) if label == c]]
        found += len(members) * int((members.min(axis=0) < members.max(axis=0)).sum())
    return found


def partitions(n, k):
    """All ways to put n records into classes of k at least."""

    def placed(labels, used):
        if len(labels) == n:
            if min(Counter(labels).values()) >= k:
                yield labels
            return
        for c in range(used + 1):
            yield from placed([*labels, c], max(used, c + 1))

    yield from placed([], 0)


def test_nearly_as_few_cells_as_can_be_are_starred():
    found = least = 0
    every = [*partitions(7, 2)]
    for seed in range(12):
        codes = np.random.default_rng(seed).integers(0, 3, (7, 4))
        frame = pl.DataFrame(codes, schema=[*"abcd"]).cast(pl.String)
        found += int(sum((suppressed(frame)[name] == "*").sum() for name in "abcd"))
        least += min(stars(labels, codes) for labels in every)
    assert least <= found <= 1.1 * least


@pytest.mark.parametrize("important", ["a", "b"])
def test_a_column_of_a_larger_weight_is_starred_less(important):
    frame = pl.DataFrame({"a": [*"uuvv"], "b": [*"xyxy"]})
    shown = suppressed(frame, **{important: {"weight": 9}})
    assert shown[important].to_list() == frame[important].to_list()


def test_classes_that_are_repaired_still_show_stars():
    frame = pl.DataFrame({"a": [*"uuvv"], "ill": [*"ffgg"]})
    diverse = {"promises": [{"model": "l-diversity", "attribute": "ill", "l": 2}]}
    content = policy(["a", "ill"], ill={"role": "sensitive"}) | diverse
    assert set(shoal.publish(frame, content).data["a"]) == {"*"}


HOUSEHOLDS = {"model": "global-risk", "at_most": 0.1, "households": True}
EVERYBODY = {"model": "individual-risk", "at_most": 0.2}
SURVEY = survey.generate(600, 7)


def under(*promises: dict, **settings):
    """The release of a survey, the risk that it measures, and what the search says."""
    method = {"name": "suppress-cells"} | settings
    content = yaml.safe_load(survey.POLICY) | {"promises": [*promises], "method": method}
    release = shoal.publish(SURVEY, content)
    certificate = release.certificate
    risk = {each["model"]: each["measured"] for each in certificate["promises"]}
    return release, risk["global-risk"], certificate["method"]["search_statistics"]


@pytest.mark.parametrize("others", [[], [EVERYBODY]])
def test_under_a_bound_of_risk_classes_are_of_the_least_k_that_keeps_it(others):
    release, risk, found = under(HOUSEHOLDS, *others)
    k = found["k"]
    assert risk <= HOUSEHOLDS["at_most"]
    assert release.certificate["classes"]["min"] >= k > 2
    unbounded = HOUSEHOLDS | {"at_most": 1.0}
    asked, _, _ = under({"model": "k-anonymity", "k": k}, unbounded, *others)
    assert asked.data.equals(release.data)
    _, risk, _ = under({"model": "k-anonymity", "k": k - 1}, unbounded, *others)
    assert risk > HOUSEHOLDS["at_most"]


def test_a_thorough_search_under_a_bound_takes_its_steps_at_that_k_alone():
    _, risk, found = under(HOUSEHOLDS, refine="thorough", steps=3)
    assert risk <= HOUSEHOLDS["at_most"]
    assert (found["steps"], found["k"]) == (3, under(HOUSEHOLDS)[2]["k"])


def test_a_comparison_shows_the_k_that_was_found():
    content = yaml.safe_load(survey.POLICY)
    found = shoal.compare(SURVEY, content, ["suppress-cells", "full-domain"])
    rows = {row.method: row for row in found.rows}
    k = under(*content["promises"])[2]["k"]
    assert k > 1
    assert rows["suppress-cells"].k_text == f"1, found {k}"
    assert rows["full-domain"].k_text == "1"
    assert f"suppress-cells  1, found {k}" in as_text(found)


def test_a_k_that_is_asked_beside_a_bound_is_the_least_that_is_tried():
    release, _, found = under(HOUSEHOLDS | {"at_most": 0.9}, {"model": "k-anonymity", "k": 4})
    assert found["k"] == 4
    assert release.certificate["classes"]["min"] >= 4


@pytest.mark.parametrize(("cells", "weight"), [("uvwx", 500.0), (40 * "u", 2.0)])
def test_people_whom_weights_or_their_likes_hide_keep_every_cell(cells, weight):
    frame = pl.DataFrame({"a": [*cells], "w": len(cells) * [weight]})
    content = policy(["a", "w"], w={"role": "weight"})
    content["promises"] = [{"model": "global-risk", "at_most": 0.03}]
    release = shoal.publish(frame, content)
    assert release.data["a"].to_list() == [*cells]
    assert release.certificate["method"]["search_statistics"] == {"k": 1}
