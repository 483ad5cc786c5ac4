"""k-map and delta-presence: a release against a table of the population."""

import math
import re
from fractions import Fraction
from functools import partial

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import shoal
from sample_policies import content_of
from shoal.auditor.audit import audit_file
from shoal.auditor.verify import verify
from shoal.data.classes import Classes, Population
from shoal.privacy.population import DeltaPresence, KMap
from shoal.tables.publish import publish_file

TREE = {"tree": {"north": ["a", "b"], "south": ["c", "d"]}}
ATTRIBUTES = {
    "at": {"role": "quasi", "hierarchy": TREE},
    "sex": {"role": "quasi"},
    "age": {"role": "quasi", "type": "number"},
}


def policy(tmp_path, people, promise, **method):
    pl.DataFrame(people).write_csv(tmp_path / "people.csv")
    content = content_of(ATTRIBUTES, promises=[promise | {"population": "people.csv"}])
    return shoal.Policy.from_dict(content | ({"method": method} if method else {}), tmp_path)


PEOPLE = {"at": [*"aabbccdd"], "sex": [*"fmfmfmfm"], "age": [1, 1, 1, 1, 2, 2, 2, 3]}
FRAME = pl.DataFrame({"at": ["a", "b", "c"], "sex": ["f", "f", "m"], "age": [1, 1, 2]})


def test_a_population_in_which_somebody_has_several_records_is_refused(tmp_path):
    people = PEOPLE | {"who": ["p", "q", "P", " p", "p\u200b", "r", "s", "t"]}
    asked = policy(tmp_path, people, {"model": "k-map", "k": 2}, name="mondrian")
    content = asked.model.model_dump(exclude_unset=True)
    content["attributes"]["who"] = {"role": "subject"}
    asked = shoal.Policy.from_dict(content, tmp_path)
    content["promises"] = [{"model": "k-anonymity", "k": 2}]
    content["population"] = {"table": "people.csv"}
    attacked = shoal.Policy.from_dict(content, tmp_path)
    original = FRAME.with_columns(who=pl.Series(["p", "q", "r"]))
    for made in (
        partial(shoal.publish, original, asked),
        partial(shoal.audit, FRAME, asked, original),
        partial(shoal.attack, FRAME, attacked, original, "population"),
    ):
        with pytest.raises(shoal.InputError, match=r"'people\.csv': further records .*: 2;"):
            made()


def named_by(tmp_path, columns, **people):
    """A policy for k-map, k = 2, whose people these columns name."""
    asked = policy(tmp_path, PEOPLE | people, {"model": "k-map", "k": 2}, name="full-domain")
    content = asked.model.model_dump(exclude_unset=True)
    role = "subject" if len(columns) == 1 else "identifier"
    content["attributes"] |= {name: {"role": role} for name in columns}
    together = {"subject": columns} if len(columns) > 1 else {}
    return shoal.Policy.from_dict(content | together, tmp_path)


@pytest.mark.parametrize(
    ("people", "said"),
    [
        ({"h": [*"11111111"]}, "has no column 'm', which names people together"),
        ({"h": [*"12345678"], "m": [*"1111111*"]}, "records that name nobody: 1"),
        ({"h": ["", *"2345678"], "m": [*"1111111*"]}, "records that name nobody: 2"),
        ({"h": [*"11345678"], "m": ["1"] * 7 + [" "]}, "have one already: 1.*nobody: 1"),
    ],
)
def test_a_population_that_names_people_in_part_or_not_at_all_is_refused(tmp_path, people, said):
    asked = named_by(tmp_path, ["h", "m"], **people)
    original = FRAME.with_columns(h=pl.Series([*"123"]), m=pl.lit("1"))
    with pytest.raises(shoal.InputError) as refused:
        shoal.publish(original, asked)
    assert re.search(rf"population 'people\.csv': .*{said}", "; ".join(refused.value.said))


def test_the_people_of_a_population_may_be_its_rows_or_named_in_full(tmp_path):
    original = FRAME.with_columns(h=pl.Series([*"123"]), m=pl.lit("1"))
    for people in ({}, {"h": [*"12345678"], "m": [*"11111111"]}):
        assert shoal.publish(original, named_by(tmp_path, ["h", "m"], **people)).certificate.holds


@pytest.mark.parametrize(
    ("columns", "names", "said"),
    [
        (["who"], ["p1", "P1", "p01", "p001", *"abcd"], "attribute 'who': 2 of its values"),
        (["other"], ["P1"] * 8, "column 'who': 8 records carry 1"),
        ([], ["P1", "P2"] * 4, "column 'who': 8 records carry 2"),
    ],
)
def test_who_may_be_one_person_of_a_population_is_warned_of(folder, columns, names, said):
    column = "who" if columns == ["who"] else "patient"
    asked = named_by(folder, columns, **{column: names})
    original = FRAME.with_columns(pl.Series(name, [*"xyz"]) for name in columns)
    said = f"population 'people.csv': {said.replace('who', column)}"
    with pytest.warns(shoal.ReleaseWarning, match=re.escape(said)):
        released = shoal.publish(original, asked).data
    released.write_csv("released.csv")
    for audited in ("released.csv", released):
        found = shoal.audit(audited, asked).warnings
        assert any(said in one.text for one in found)


@pytest.mark.parametrize("method", ["rounded-partition", "mdav", "full-domain"])
def test_more_people_than_the_population_has_are_infeasible_and_the_nearest_is_named(
    tmp_path, method
):
    asked = policy(tmp_path, PEOPLE, {"model": "k-map", "k": 9}, name=method)
    said = "8 people in the population; the nearest that may hold is k = 8"
    with pytest.raises(shoal.InfeasibleError, match=said):
        shoal.publish(FRAME, asked)
    (found,) = shoal.check(asked, FRAME)
    assert "nearest that may hold is k = 8" in found.message


def test_full_domain_keeps_k_map_with_classes_of_one(tmp_path):
    asked = policy(tmp_path, PEOPLE, {"model": "k-map", "k": 2}, name="full-domain")
    published = shoal.publish(FRAME, asked)
    assert published.certificate.holds
    assert published.certificate["classes"]["min"] == 1


def test_delta_presence_bounds_the_chance_to_be_in_the_release(tmp_path):
    asked = policy(
        tmp_path, PEOPLE, {"model": "delta-presence", "delta_max": 0.5}, name="full-domain"
    )
    promise = shoal.publish(FRAME, asked).certificate["promises"][0]
    assert promise["holds"]
    assert promise["measured"] <= 0.5


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), min_size=1, max_size=6),
    st.sampled_from([(0.0, 0.5), (0.2, 0.6), (0.25, 0.75), (0.1, 1.0)]),
    st.integers(0, 1),
)
def test_chances_are_people_of_the_class_by_people_who_fit(pairs, bounds, outside):
    sizes, fits = zip(*((size, max(size, fit)) for size, fit in pairs), strict=True)
    labels = np.repeat(np.arange(len(sizes)), sizes).astype(np.int32)
    population = {"p": Population(np.array(fits), outside)}
    classes = Classes(labels, len(sizes), population=population)
    least, most = (Fraction(str(bound)) for bound in bounds)
    promise = DeltaPresence(bounds[1], "p", bounds[0])
    shares = [Fraction(size, fit) if size else None for size, fit in zip(sizes, fits, strict=True)]
    assert promise.holds(classes).tolist() == [
        share is not None and least <= share <= most and not (outside and least) for share in shares
    ]
    known = [float(share) for share in shares if share is not None]
    expected = [math.nan if share is None else float(share) for share in shares]
    assert promise.measure(classes) == pytest.approx(expected, nan_ok=True)
    if known:
        assert promise.report(classes)["measured_min"] == (0.0 if outside else min(known))
    for k in (2, 4):
        assert KMap(k, "p").holds(classes).tolist() == [
            size > 0 and fit >= k for size, fit in zip(sizes, fits, strict=True)
        ]
        assert KMap(k, "p").measure(classes).tolist() == list(fits)


def test_what_the_population_lacks_is_reported_all_at_once(tmp_path):
    asked = policy(tmp_path, {"at": ["a"], "age": [1]}, {"model": "k-map", "k": 2})
    with pytest.raises(shoal.InputError, match=r"'people.csv': has no column 'sex'"):
        shoal.publish(FRAME, asked)
    unknown = {"at": ["a"], "sex": ["f"], "age": ["old"]}
    with pytest.raises(shoal.InputError, match=r"population 'people.csv': attribute 'age'"):
        shoal.publish(FRAME, policy(tmp_path, unknown, {"model": "k-map", "k": 2}))


MADE = {
    "zip": ({"hierarchy": {"prefix": 3}}, ["121", "122", "125", "131", "", "12", "140"]),
    "age": ({"hierarchy": {"bins": [0, 20, 40]}}, ["7", "07", "19", "20", "39", ""]),
    "day": (
        {"hierarchy": {"dates": ["month", "year"]}},
        ["2013-01-01", "2013-01-30", "2013-02-01", "2014-01-01", ""],
    ),
}


@given(st.data())
def test_without_the_original_the_trees_of_rules_count_the_same_people(tmp_path_factory, data):
    """Labels of prefixes, bins and dates follow from each value alone."""
    folder = tmp_path_factory.mktemp("made")
    name = data.draw(st.sampled_from(sorted(MADE)))
    settings, values = MADE[name]
    cells = st.lists(st.sampled_from(values), min_size=2, max_size=9)
    people, own = data.draw(cells), data.draw(cells)
    assume(any(people + own))  # a population of empty rows is refused
    pl.DataFrame({name: people + own}).write_csv(folder / "people.csv")
    content = content_of(
        {name: {"role": "quasi", **settings}, "s": "sensitive"},
        promises=[{"model": "k-map", "k": 2, "population": "people.csv"}],
        method={"name": "full-domain"},
        missing=data.draw(st.sampled_from(["value", "suppress"])),
    )
    asked = shoal.Policy.from_dict(content, folder)
    source, out = str(folder / "table.csv"), str(folder / "out.csv")
    pl.DataFrame({name: own, "s": [f"x{i % 2}" for i in range(len(own))]}).write_csv(source)
    try:
        release = publish_file(source, asked, out)
    except (shoal.InfeasibleError, shoal.PromiseError):
        return
    alone = audit_file(out, asked).certificate
    stated = release.certificate["promises"][0]["measured"]
    assert alone["promises"][0]["measured"] == stated
    assert all(check.ok is not False for check in verify(out, policy=asked))


def test_an_order_that_follows_the_input_is_counted_with_the_original_alone(tmp_path):
    """And whoever verifies without it is told so."""
    attributes = {"g": {"role": "quasi", "type": "ordinal", "order": "frequency"}}
    pl.DataFrame({"g": [*"abcab"]}).write_csv(tmp_path / "people.csv")
    promises = [{"model": "k-map", "k": 2, "population": "people.csv"}]
    content = content_of(attributes, promises=promises, method={"name": "mdav"})
    asked = shoal.Policy.from_dict(content, tmp_path)
    source, out = str(tmp_path / "table.csv"), str(tmp_path / "out.csv")
    pl.DataFrame({"g": [*"aabb"]}).write_csv(source)
    publish_file(source, asked, out)
    with pytest.raises(shoal.InputError, match=r"give the original \(original=\)"):
        audit_file(out, asked)
    checks = {check.name: check for check in verify(out, policy=asked)}
    assert all(check.ok is not False for check in checks.values())
    assert "give the original" in checks["measured again"].text
    assert audit_file(out, asked, source).certificate.holds


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_counts_are_those_of_comparing_every_class_with_everybody(tmp_path, data):
    """Whatever is published, the auditor's count is that of plain loops over cells and people."""
    rows = st.tuples(st.sampled_from("abcd"), st.sampled_from("fm"), st.integers(0, 9))
    people = data.draw(st.lists(rows, min_size=3, max_size=15))
    table = data.draw(st.lists(st.sampled_from(people), min_size=2, max_size=8))
    frame = pl.DataFrame(table, schema=[*ATTRIBUTES], orient="row")
    method = data.draw(st.sampled_from(["mondrian", "full-domain"]))
    fit = {"model": "k-map", "k": 2, "population": "people.csv"}
    chance = {"model": "delta-presence", "delta_max": 0.5, "population": "people.csv"}
    pl.DataFrame(people, schema=[*ATTRIBUTES], orient="row").write_csv(tmp_path / "people.csv")
    content = content_of(ATTRIBUTES, 2, fit, method={"name": method})
    asked = shoal.Policy.from_dict(content, tmp_path)
    try:
        out = shoal.publish(frame, asked)
    except (shoal.InfeasibleError, shoal.PromiseError):
        return
    groups = {"north": "ab", "south": "cd", "*": "abcd"}

    def covers(cells, person):
        at, sex, age = cells
        ends = [int(end) for end in age.strip("[]").split(",")] if age != "*" else [0, 9]
        return (
            person[0] in groups.get(at, at)
            and sex in ("*", person[1])
            and ends[0] <= person[2] <= ends[-1]
        )

    shown = out.data.cast(pl.String).rows()
    fits = {cells: sum(covers(cells, person) for person in people) for cells in set(shown)}
    assert out.certificate["promises"][1]["measured"] == min(fits.values())
    presence = [shown.count(cells) / fits[cells] for cells in fits]
    nobody = any(not any(covers(cells, person) for cells in fits) for person in people)
    audited = shoal.audit(out.data, asked.with_promises([chance]), frame, trace=out.trace)
    (answer,) = audited["promises"]
    assert answer["measured"] == pytest.approx(max(presence))
    assert answer["measured_min"] == pytest.approx(0.0 if nobody else min(presence))


NARROW = {"type": "ordinal", "order": ["m", "f"]}


@pytest.mark.parametrize("absent", ["", "*"])
@pytest.mark.parametrize("kind", [{"hierarchy": {"tree": ["m", "f"]}}, {}, NARROW])
def test_people_without_a_value_that_the_table_never_lacks_fit_stars_alone(tmp_path, kind, absent):
    words = {"missing_values": ["", "*"], "method": {"name": "full-domain"}}
    content = content_of({"sex": {"role": "quasi", **kind}, "s": "plain"}, **words)
    (tmp_path / "people.csv").write_text(f"sex,s\nm,1\nm,2\n{absent},3\nf,4\n")
    frame = pl.DataFrame({"sex": ["m", "m"], "s": ["d", "e"]})
    for k, cell in ((2, "m"), (4, "*")):
        promise = {"model": "k-map", "k": k, "population": "people.csv"}
        asked = shoal.Policy.from_dict(content | {"promises": [promise]}, tmp_path)
        if k == 4 and kind is NARROW:  # its whole is an interval, which covers no missing value
            with pytest.raises(shoal.PromiseError):
                shoal.publish(frame, asked)
            continue
        release = shoal.publish(frame, asked)
        assert release.data["sex"].to_list() == [cell, cell]
        assert release.certificate["promises"][0]["measured"] == k


def test_people_without_a_value_are_no_value_of_a_tree_that_is_barely_used(tmp_path):
    (tmp_path / "people.csv").write_text("at,s\na,1\na,2\n,3\n,4\n,5\n")
    tree = {"tree": {"north": ["a", "b", "c", "d"], "south": ["e"]}}
    attributes = {"at": {"role": "quasi", "hierarchy": tree}, "s": "plain"}
    promises = [{"model": "k-map", "k": 3, "population": "people.csv"}]
    content = content_of(attributes, promises=promises, method={"name": "full-domain"})
    asked = shoal.Policy.from_dict(content, tmp_path)
    release = shoal.publish(pl.DataFrame({"at": ["a", "a"], "s": ["d", "e"]}), asked)
    # two people are of the north; those who lack the value fit the whole alone
    assert release.data["at"].to_list() == ["*", "*"]
    assert release.certificate["promises"][0]["measured"] == 5
