"""What a publication holds, whatever method made it."""

import gzip
import json
import pickle
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import yaml

import shoal as library
from sample_policies import content_of
from shoal.data.partition import Partition
from shoal.recoding import recode

PUBLISH = ("publish", "patients.csv", "-p", "policy.yaml", "-o", "out.csv")


def test_classes_are_the_rows_with_equal_quasi_identifiers(sample_table, sample_policy):
    published = library.publish(sample_table, sample_policy)
    frame = published.data.with_columns(pl.Series("class", published.classes))
    quasi = ["age", "sex", "zip", "education"]
    assert frame.group_by(quasi).agg(pl.col("class").n_unique())["class"].max() == 1
    assert frame.group_by("class").agg(pl.struct(quasi).n_unique()).get_column("age").max() == 1


def test_k_counts_people_not_visits():
    visits = [("a", 30, "x")] * 5 + [("b", 31, "x"), ("c", 60, "y"), ("d", 61, "x")]
    frame = pl.DataFrame(visits, schema=["who", "age", "ill"], orient="row")
    asked = {"who": "subject", "age": {"role": "quasi", "type": "number"}, "ill": "sensitive"}
    published = library.publish(frame, content_of(asked))
    assert published.certificate["classes"]["min"] >= 2
    assert published.certificate["subjects"] == 4
    assert "30" not in set(published.data["age"])  # five visits of one person are not a class


def test_index_labels_change_nothing(sample_table, sample_policy):
    frame = sample_table.to_pandas()
    shuffled = frame.set_index(pd.Index(range(5000, 5000 - len(frame), -1)))
    one, other = (library.publish(f, sample_policy).data for f in (frame, shuffled))
    assert one.to_numpy().tolist() == other.to_numpy().tolist()


def test_quotes_breaks_and_leading_zeros_survive_in_cells_and_names(workplace, shoal):
    rows = ['"who, ""id""",zip,note'] + [
        f'"p, {i}",0{i % 3}001,"say ""hi"", {i % 2}"' for i in range(40)
    ]
    (workplace / "t.csv").write_text("\n".join(rows) + "\n")
    asked = content_of({'who, "id"': "plain", "zip": "quasi", "note": "plain"}, 5)
    (workplace / "p.yaml").write_text(yaml.safe_dump(asked))
    assert shoal("publish", "t.csv", "-p", "p.yaml", "-o", "o.csv").status == 0
    out = pl.read_csv("o.csv", infer_schema=False)
    assert (workplace / "o.csv").read_text().startswith('"who, ""id""",zip,note\n')
    assert set(out["zip"]) - {"*"} == {"00001", "01001", "02001"}
    assert set(out["note"]) == {'say "hi", 0', 'say "hi", 1'}
    assert set(out[:, 0]) == {f"p, {i}" for i in range(40)}


def test_compressed_output_is_the_same_bytes_twice(workplace, shoal):
    for name in ("one.csv.gz", "two.csv.gz"):
        shoal("publish", "patients.csv", "-p", "policy.yaml", "-o", name)
    assert (workplace / "one.csv.gz").read_bytes() == (workplace / "two.csv.gz").read_bytes()
    assert gzip.decompress((workplace / "one.csv.gz").read_bytes()).startswith(b"age,")


def test_no_cell_value_in_certificate_or_messages(workplace, shoal):
    result = shoal(*PUBLISH)
    text = (workplace / "out.csv.certificate.json").read_text() + result.err
    frame = pl.read_csv("patients.csv", infer_schema=False)
    for column in ("name", "patient", "zip", "disease", "education", "ward"):
        for value in frame[column].unique():
            assert not re.search(rf"\b{re.escape(value)}\b", text), column


def test_a_release_holds_the_same_records_whatever_their_order(sample_table, sample_policy):
    kept, content, shuffled = (
        library.publish(sample_table, sample_policy | {"render": {"order": order}})
        for order in ("input", "content", "shuffled")
    )
    assert not kept.data.equals(content.data)
    assert kept.data[content.trace].equals(content.data)
    assert shuffled.data.equals(content.data)
    assert kept.trace.tolist() == list(range(len(sample_table)))
    assert content.certificate["faults"] == {"uncovered": 0, "changed": 0}
    assert pickle.loads(pickle.dumps(content)).trace is None  # it stays with its owner


def test_a_hospital_s_list_by_date_gives_nobody_away():
    """Who knows the day of admission looks near its place: the input's order finds many so."""
    rng, n, k = np.random.default_rng(3), 2000, 10
    day = np.sort(rng.integers(0, 366, n))
    columns = {"age": rng.integers(18, 95, n), "sex": rng.choice(["f", "m"], n), "admitted": day}
    frame = pl.DataFrame(columns | {"ill": rng.integers(0, 1000, n).astype(str)})
    age = {"role": "quasi", "type": "number", "domain": [0, 120]}
    roles = {"admitted": "drop", "age": age, "sex": "quasi", "ill": "sensitive"}
    content = content_of(roles, k)
    found = {}
    for order in ("input", "content"):
        asked = content | {"render": {"order": order}}
        release = library.publish(frame, asked, attack=["order"])
        attack = release.certificate["attacks"]["order"]
        tried = {name: attack[name]["share"] for name in ("found", "others", "chance")}
        assert tried["others"] <= 2 * tried["chance"]
        assert attack["column"] == "admitted" or order == "content"
        assert tried["found"] > 0.5 if order == "input" else tried["found"] <= 1 / k
        place = np.argsort(release.trace)
        cells = np.array([hash(row) for row in release.data.select("age", "sex").rows()])
        rows = np.array([hash(row) for row in release.data.rows()])
        looked = (day + 0.5) / 366 * n
        right = 0.0
        for person in range(n):
            alike = np.flatnonzero(cells == cells[place[person]])
            near = np.abs(alike - looked[person])
            # equal rows are interchangeable: either may be the person's
            equal = rows[alike] == rows[place[person]]
            right += equal[near.argmin()] / equal.sum() / n
        found[order] = right
        warned = [one for one in release.warnings if one.code == "order-kept"]
        assert len(warned) == (order == "input")
        for one in warned:
            assert (one.column, one.severity) == ("admitted", "grave")
            count = int(re.search(r"finds (\d+) of 2000 people", one.text)[1])
            assert count / n > right  # by the place of the day, not by the calendar alone
    assert found["input"] > 0.5
    assert found["content"] <= 1 / k + 0.02


@pytest.mark.parametrize(
    ("columns", "render", "shown"),
    [
        (
            {"x": [*"112"], "town": [*"xyy"]},
            {"intervals": "{lo}..{hi}", "suppressed": "#"},
            [("1..2", "#")] * 3,
        ),
        (
            {"x": ["-5", "-3", "2", "4"]},
            {"intervals": "{lo}-{hi}"},
            [("-5--3",), ("-5--3",), ("2-4",), ("2-4",)],
        ),
    ],
    ids=["two dots", "a dash between negative numbers"],
)
def test_intervals_and_mark_are_as_the_policy_writes_them_and_audited_so(columns, render, shown):
    frame, number = pl.DataFrame(columns), {"role": "quasi", "type": "number"}
    content = content_of(dict.fromkeys(columns, "quasi") | {"x": number}, render=render)
    published = library.publish(frame, content)
    assert published.data.rows() == shown
    assert library.audit(published.data, content, frame).holds


def test_a_release_that_breaks_a_promise_is_withheld(workplace, shoal, monkeypatch):
    """A method that lies about its classes: the auditor measures, and nothing is written."""

    def one_alone(matrix, partition, promises):
        labels = partition.labels.copy()
        labels[0] = partition.count
        return Partition(labels.astype(np.int32), partition.count + 1)

    monkeypatch.setattr(recode, "repair", one_alone)
    before = sorted(p.name for p in workplace.iterdir())
    result = shoal(*PUBLISH, status=1)
    assert "k-anonymity" in result.err
    assert "withheld" in result.err
    assert sorted(p.name for p in workplace.iterdir()) == before


def test_an_older_release_stays_when_the_new_one_is_withheld(workplace, shoal):
    assert shoal(*PUBLISH).status == 0
    written = [workplace / name for name in ("out.csv", "out.csv.certificate.json")]
    before = [path.read_bytes() for path in written]
    for more, status in (((), 2), (("--replace", "--k", "5000"), 3)):
        again = shoal(*PUBLISH, *more, status=status)
        assert ("output 'out.csv': is there already" in again.err) == (status == 2)
        assert [path.read_bytes() for path in written] == before


def test_a_report_that_can_not_be_written_is_refused_before_anything_is_published(workplace, shoal):
    for report in ("nowhere/r.html", "patients.csv", "out.csv", "policy.yaml", "r.pdf"):
        shoal(*PUBLISH, "--report", report, status=2)
        assert not (workplace / "out.csv").exists()


def test_a_policy_may_be_given_as_dicts_or_by_its_path(workplace, sample_table, sample_policy):
    one = library.publish(sample_table, sample_policy).data
    assert one.equals(library.publish(sample_table, "policy.yaml").data)
    with pytest.raises(library.InputError, match="policy: is not a policy"):
        library.publish(sample_table, 7)


def test_postcodes_that_lost_their_zeros_are_refused():
    frame = pl.DataFrame({"zip": [1067, 10115]})
    content = content_of({"zip": {"role": "quasi", "hierarchy": {"prefix": 5}}})
    with pytest.raises(library.InputError, match="leading zeros"):
        library.publish(frame, content)


# Rows of empty cells, as a spreadsheet saves rows that were cleared, are nobody

ROWS = [f"3{i % 3},{'MF'[i % 2]},{'abc'[i % 3]}" for i in range(24)]
NUMBER = {"role": "quasi", "type": "number", "domain": [0, 120]}
EMPTY = content_of({"age": NUMBER, "sex": "quasi", "d": "sensitive"}, 4, seed=7)


@pytest.mark.parametrize(
    ("more", "codes"),
    [
        ([",,", " ,,"], ["empty-rows"]),
        ([",,", "99,,"], ["empty-rows", "rows-apart"]),
        (["99,,"], []),
    ],
)
def test_rows_without_any_value_are_nobody(folder, shoal, more, codes):
    Path("p.yaml").write_text(json.dumps(EMPTY))
    Path("t.csv").write_text("\n".join(["age,sex,d", *ROWS, *more]) + "\n")
    done = shoal("publish", "t.csv", "-p", "p.yaml", "-o", "o.csv", "--report", "r.html", status=0)
    certificate = json.loads(Path("o.csv.certificate.json").read_text())
    people = len(ROWS) + sum("9" in row for row in more)
    assert certificate["records"]["in"] == certificate["subjects"] == people
    stated = [one for one in certificate["warnings"] if one["code"] in ("empty-rows", "rows-apart")]
    assert [one["code"] for one in stated] == codes
    for one in stated:
        assert one["text"] in done.err
        assert one["text"] in Path("r.html").read_text()
    assert shoal("verify", "o.csv", "-p", "p.yaml", "--original", "t.csv").status == 0
    frame = pl.read_csv("t.csv", infer_schema=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        release = library.publish(frame, EMPTY)
    assert release.data.height == people
    assert {*codes} <= {getattr(one.message, "code", "") for one in caught}
