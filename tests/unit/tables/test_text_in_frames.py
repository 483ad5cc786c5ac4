"""Numbers and dates are read alike: as texts, and as numbers beside texts with a comma."""

import ast
import re
import sqlite3
from datetime import date, timedelta
from itertools import product

import pandas as pd
import polars as pl
import pytest
from python_calamine import CalamineWorkbook

import shoal
from sample_policies import content_of
from shoal.errors import InputError
from thorough import every

ROWS = 120
OUTPUTS = "o.csv o.tsv.gz o.jsonl o.xlsx o.parquet o.arrow sqlite:///o.db?table=t".split()
DAYS = [date(2024, 1, 20) + timedelta(days=row % 12) for row in range(ROWS)]
KINDS = {
    "decimal comma": [f"{50 + row % 12},5" for row in range(ROWS)],
    "points in groups": [f"{1 + row % 12}.050,25" for row in range(ROWS)],
    "apostrophes": [f"{1 + row % 12}'050" for row in range(ROWS)],
    "percent": [f"{row % 12},5 %" for row in range(ROWS)],
    "German days": [f"{day:%d.%m.%Y}" for day in DAYS],
    "ISO days": [f"{day}" for day in DAYS],
    "leading zeros": [f"0{1050 + row % 12}" for row in range(ROWS)],
    "one value a class": ["50,5", "80,5", "100,5", "60,5"] * (ROWS // 4),
}
SALARIES = [20_000.25 + row * 1.5 for row in range(ROWS)]
WORDS = {"quasi": ["text"], "sensitive": "salary", "plain": ["whole", "share"], "k": 5}


both = pytest.mark.parametrize(
    ("make", "kind"), every(3, product([pd.DataFrame, pl.DataFrame], KINDS))
)


pytestmark = pytest.mark.usefixtures("folder")


def table(make, kind):
    whole, share = range(ROWS), [row / 8 for row in range(ROWS)]
    return make({"text": KINDS[kind], "salary": SALARIES, "whole": whole, "share": share})


def outputs_of(make):
    """Every other format, so that both kinds of frames meet all of them."""
    return every(2, OUTPUTS, first=make is pl.DataFrame)


def shown(cells):
    """Numbers as they are, and each day in ISO, whether a text or a date."""
    return [
        cell
        if isinstance(cell, float)
        else re.sub(r"^(\d\d)\.(\d\d)\.(\d{4})$", r"\3-\2-\1", str(cell))
        for cell in cells
    ]


@both
def test_a_release_is_saved_in_every_format_and_holds_there(make, kind):
    release = shoal.publish(table(make, kind), **WORDS)
    for output in outputs_of(make):
        release.save(output)
        read = shoal.read_release(output)
        for name in ("salary", "whole", "share"):
            assert read.data[name].dtype.is_numeric(), output
            assert read.data[name].cast(float).to_list() == [*release.data[name]], output
        numbers = shoal.read_release(output, numbers="mid").data["text"]
        assert shown(numbers) == shown(release.numbers()["text"]), output
        assert shoal.audit(output, release.policy).holds, output


@both
def test_a_text_alone_is_saved_in_every_format(make, kind):
    frame = make({"text": KINDS[kind]})
    release = shoal.publish(frame, quasi=["text"], k=5)
    for output in outputs_of(make):
        release.save(output)
        assert shoal.audit(output, release.policy, frame).holds, output


@both
def test_a_release_is_published_from_a_typed_file_into_every_format(make, kind):
    frame = table(make, kind)
    policy = shoal.Policy.from_columns(frame, **WORDS)
    pl.DataFrame({name: list(frame[name]) for name in frame.columns}).write_parquet("in.parquet")
    for output in outputs_of(make):
        assert shoal.publish_file("in.parquet", policy, output).holds, output
        assert shoal.audit(output, policy, "in.parquet").holds, output


@both
def test_a_frame_is_checked_audited_and_attacked_as_it_is_published(make, kind):
    frame = table(make, kind)
    release = shoal.publish(frame, **WORDS)
    assert [one for one in shoal.check(release.policy, frame) if one.code != "remark"] == []
    assert shoal.audit(release.data, release.policy, frame).holds
    assert shoal.attack(release, original=frame, attacks=["inference"])["attacks"]


@both
def test_a_frame_is_compared_as_it_is_published(make, kind):
    frame = table(make, kind)
    release = shoal.publish(frame, **WORDS, method="mondrian")
    by_words = shoal.compare(frame, **WORDS, methods=["mondrian"])
    by_policy = shoal.compare(frame, release.policy, methods=["mondrian"], ks=[5])
    for compared in (by_words, by_policy):
        (row,) = compared.rows
        assert row.certificate["promises"] == release.certificate["promises"]
        assert row.certificate["utility"] == release.certificate["utility"]


@both
def test_a_transformer_shows_what_is_published(make, kind):
    sklearn = pytest.importorskip("shoal.sklearn")
    frame = table(make, kind)
    made = sklearn.Anonymizer(**WORDS, suppression=0.1).fit(frame)
    shown = made.transform(frame)
    release = shoal.publish(frame, made.policy_)
    assert list(shown.columns) == list(made.get_feature_names_out()) == list(release.data.columns)
    for name in shown.columns:
        published = dict(zip(release.trace, release.data[name], strict=True))
        assert [*shown[name]] == [published[row] for row in range(ROWS)], name


@pytest.mark.parametrize("verb", [shoal.publish, shoal.compare])
def test_digits_in_groups_are_advised_by_a_keyword(verb):
    frame = pd.DataFrame({"text": KINDS["apostrophes"]})
    policy = content_of({"text": {"role": "quasi", "type": "number"}}, 5)
    with pytest.raises(InputError, match=r"say read=(\{'thousands': \"'\"\}) \(in a") as refused:
        verb(frame, policy)
    advised = ast.literal_eval(
        re.search(r"read=(.*) \(in a policy under 'read'\)$", str(refused.value))[1]
    )
    assert verb(frame, {**policy, "read": advised})


PEOPLE = {
    "text": KINDS["decimal comma"],
    "real": [row % 12 / 4 for row in range(ROWS)],
    "salary": SALARIES,
    "undeclared": [row / 8 for row in range(ROWS)],
    "whole": list(range(ROWS)),
}
SOURCES = ["pandas", "polars", "pyarrow", "in.parquet", "in.jsonl", "sqlite:///in.db?table=t"]


def beside(mark, method="mondrian"):
    """A policy of people whose numbers are written with this decimal mark, where they are text."""
    of_text = "quasi" if mark == "," else "drop"
    declared = {"text": of_text, "real": "quasi", "salary": "sensitive"}
    return shoal.Policy.from_dict(
        content_of(
            {name: {"role": role, "type": "number"} for name, role in declared.items()},
            5,
            read={"decimal": mark},
            other="plain",
            method={"name": method},
        )
    )


def given(source):
    """The people as a frame of a library, or the name of where they lie."""
    frame = pl.DataFrame(PEOPLE)
    if "." not in source:
        return getattr(frame, f"to_{source.replace('pyarrow', 'arrow')}", frame.clone)()
    if source.endswith("parquet"):
        frame.write_parquet(source)
    elif source.endswith("jsonl"):
        frame.write_ndjson(source)
    else:
        with sqlite3.connect("in.db") as database:
            database.execute(
                "CREATE TABLE t (text text, real real, salary double, undeclared float, whole int)"
            )
            database.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", frame.rows())
    return source


@pytest.mark.parametrize("source", every(2, SOURCES))
def test_numbers_beside_a_decimal_comma_are_published_alike_from_everywhere(source):
    people, policy = given(source), beside(",")
    for output in OUTPUTS:
        if isinstance(people, str):
            shoal.publish_file(people, policy, output)
            checks = shoal.verify(output, policy=policy, original=people)
            assert [check.text for check in checks if check.ok is False] == [], output
        else:
            shoal.publish(people, policy).save(output)
        assert shoal.audit(output, policy, people).holds, output
        shown = shoal.read_release(output, numbers="mid").data
        expected = shoal.publish(pl.DataFrame(PEOPLE), policy).numbers()
        for name in ("text", "real", "salary"):
            assert shown[name].to_list() == expected[name].to_list(), (output, name)


@pytest.mark.parametrize("source", SOURCES)
def test_numbers_beside_a_decimal_comma_are_compared_as_they_are_published(source):
    (row,) = shoal.compare(given(source), beside(","), methods=["mondrian"], ks=[5]).rows
    published = shoal.publish(pl.DataFrame(PEOPLE), beside(",")).certificate
    assert row.certificate["utility"] == published["utility"]


@pytest.mark.parametrize("mark", [",", "."])
@pytest.mark.parametrize("source", ["polars", "in.parquet"])
def test_numbers_that_nobody_declared_are_numbers_in_a_workbook(source, mark):
    people, policy = given(source), beside(mark)
    if isinstance(people, str):
        shoal.publish_file(people, policy, "o.xlsx")
    else:
        shoal.publish(people, policy).save("o.xlsx")
    sheet = CalamineWorkbook.from_path("o.xlsx").get_sheet_by_index(0).to_python()
    place = sheet[0].index("undeclared")
    assert sorted(row[place] for row in sheet[1:]) == PEOPLE["undeclared"]
    assert shoal.audit("o.xlsx", policy, people).holds


@pytest.mark.parametrize("source", SOURCES[:3])
def test_a_transformer_reads_numbers_beside_a_decimal_comma(source):
    sklearn = pytest.importorskip("shoal.sklearn")
    people, policy = given(source), beside(",", "full-domain")
    made = sklearn.Anonymizer(policy, suppression=0.1).fit(people)
    shown = pl.DataFrame(made.transform(people))
    release = shoal.publish(people, made.policy_)
    published = pl.DataFrame(release.data)
    for name in published.columns:
        by_row = dict(zip(release.trace, published[name], strict=True))
        assert [*shown[name]] == [by_row[row] for row in range(ROWS)], name
