"""Tables that belong to the input are read as it is: populations, hierarchies, lists of people."""

import json
from pathlib import Path

import polars as pl
import pytest
import yaml

import shoal as library
from sample_policies import content_of
from shoal.connectors import files
from shoal.connectors.dialect import Reading
from shoal.data.hierarchies.table import read_hierarchy

PLAIN: dict = {}
LOCAL = {"encoding": "cp1252", "decimal": ",", "thousands": ".", "dates": "%d.%m.%Y"}
DIALECTS = {"plain": PLAIN, "local": LOCAL}


def written(name: str, frame: pl.DataFrame, how: dict, encoding: str | None = None) -> None:
    if how:
        frame = frame.with_columns(
            pl.col("größe").str.replace(".", ",", literal=True),
            pl.col("datum").str.to_date().dt.strftime("%d.%m.%Y"),
        )
    content = frame.write_csv(separator=";")
    Path(name).write_bytes(content.encode(encoding or how.get("encoding", "utf-8")))


def people(n: int) -> pl.DataFrame:
    """Of everybody there are two: every second row repeats the one before."""
    return pl.DataFrame(
        {
            "größe": [f"{150 + i // 2 * 1.5}" for i in range(n)],
            "datum": [f"2024-{1 + i // 20:02}-{1 + i // 2 % 10:02}" for i in range(n)],
            "ort": ["Köln", "Köln", "Bonn", "Bonn"] * (n // 4),
        }
    )


def policy(how: dict, **more) -> dict:
    return content_of(
        {
            "größe": {"role": "quasi", "type": "number", "domain": [0, 1000]},
            "datum": {"role": "quasi", "hierarchy": {"dates": ["day", "month", "year"]}},
            "ort": {"role": "quasi", "hierarchy": "ort.csv"},
        },
        2,
        {"model": "k-map", "k": 4, "population": "people.csv"},
        read=how,
        **more,
    )


@pytest.fixture
def publish(folder, shoal):
    """Publishes every other one of 24 people under a policy; gives the certificate."""

    def publish(how: dict, *options: str, beside: str | None = None, **more) -> dict:
        written("in.csv", people(24).gather_every(2), how)
        written("people.csv", people(24), how, beside)
        rows = "Köln;Rhein;*\nBonn;Rhein;*\n"
        Path("ort.csv").write_bytes(rows.encode(beside or how.get("encoding", "utf-8")))
        Path("p.yaml").write_text(yaml.safe_dump(policy(how, **more)))
        own = ("-p", "p.yaml", "-o", "out.csv", "--replace", "-q")
        shoal("publish", "in.csv", *own, *options, status=0)
        shoal("audit", "out.csv", "-p", "p.yaml", "--original", "in.csv", "-q", status=0)
        return json.loads(Path("out.csv.certificate.json").read_text())

    return publish


def measures(certificate: dict) -> list:
    return [certificate["promises"], certificate["utility"], certificate["classes"]]


def test_a_population_and_hierarchies_may_be_in_the_dialect_of_the_input_or_in_utf_8(publish):
    plain = measures(publish(PLAIN))
    assert plain == measures(publish(LOCAL)) == measures(publish(LOCAL, beside="utf-8"))


@pytest.mark.parametrize("how", DIALECTS)
def test_the_population_of_attacks_is_read_alike(publish, how):
    found = publish(DIALECTS[how], "--attack", "population", population={"table": "people.csv"})
    # everybody is there twice, and each class of two holds other people
    assert found["attacks"]["population"]["journalist_max"]["share"] <= 0.25


def test_frequencies_have_decimal_commas_where_the_input_has(publish):
    shares = {}
    for name, how in DIALECTS.items():
        table = people(24).gather_every(2).with_columns(anteil=pl.lit("0.25"))
        if how:
            table = table.with_columns(anteil=pl.lit("0,25"))
        written("freq.csv", table, how)
        around = {"frequencies": "freq.csv", "column": "anteil", "people": 1000}
        found = publish(how, "--attack", "population", population=around)
        shares[name] = found["attacks"]["population"]
    assert shares["plain"] == shares["local"]


def test_what_is_neither_is_refused_with_the_name_of_its_table(publish, shoal):
    publish(LOCAL)
    Path("people.csv").write_text("größe;datum;ort\n150.5;2024-01-01;Köln\n")
    done = shoal("publish", "in.csv", "-p", "p.yaml", "-o", "new.csv", "-q", status=2)
    assert "population 'people.csv': attribute 'größe': 1 cell is not a number with the" in done.err


def test_a_hierarchy_of_another_encoding_names_the_option(publish, shoal):
    publish(PLAIN)
    Path("ort.csv").write_bytes("Köln;Rhein;*\nBonn;Rhein;*\n".encode("cp1252"))
    done = shoal("publish", "in.csv", "-p", "p.yaml", "-o", "new.csv", "-q", status=2)
    assert "is not UTF-8 text; convert it, or say how the data and its hierarchies" in done.err
    assert "--read encoding=cp1252" in done.err
    again = ("publish", "in.csv", "-p", "p.yaml", "-o", "new.csv", "-q")
    assert shoal(*again, "--read", "encoding=cp1252").status == 2, "the data is UTF-8"


@pytest.mark.parametrize(
    ("written_in", "said"),
    [
        ("utf-8", None),
        ("utf-8-sig", "cp1252"),
        ("utf-16", None),
        ("cp1250", "cp1250"),
        ("utf-7", "utf-7"),  # ASCII alone
        ("utf-16-le", "utf-16-le"),
    ],
)
def test_hierarchies_by_their_marks_or_by_what_is_said(tmp_path, written_in, said):
    (tmp_path / "h.csv").write_bytes("Łódź;*\nKöln;*\n".encode(written_in))
    tree = read_hierarchy(tmp_path / "h.csv", "ort", said)
    assert {"Łódź", "Köln"} < {*tree.labels}
    (tmp_path / "t.csv").write_bytes("ort,größe\nŁódź,1\n".encode(written_in))
    reading = Reading(said, is_beside=True)
    frame = files.read(str(tmp_path / "t.csv"), reading=reading).frame
    assert frame.to_dicts() == [{"ort": "Łódź", "größe": "1"}]


def test_a_delimiter_of_the_input_is_not_forced_on_a_table_beside_it(folder):
    frame = pl.DataFrame({"at": ["a", "b"] * 2, "x": ["1"] * 4})
    promise = {"model": "k-map", "k": 2, "population": "people.csv"}
    content = content_of({"at": "quasi", "x": "quasi"}, read={"delimiter": "|"})
    policy = content | {"promises": [promise]}
    for separator in (",", "|"):
        frame.write_csv("people.csv", separator=separator)
        populations = library.Policy.from_dict(policy).tables.written_populations
        assert populations["people.csv"].names == ["at", "x"]
