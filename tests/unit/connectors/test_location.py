"""A name says what kind of place it means, before anything is opened there."""

import pytest

from shoal.connectors.location import Location
from shoal.errors import InputError


@pytest.mark.parametrize(
    ("name", "kind", "is_packed"),
    [
        ("a.csv", ".csv", False),
        ("a.CSV.gz", ".csv", True),
        ("a.jsonl.gz", ".jsonl", True),
        ("out/", ".parquet", False),
        ("-", ".csv", False),
        ("sqlite:///a.db?table=t", ".sqlite", False),
    ],
)
def test_a_name_says_its_format(name, kind, is_packed):
    assert (Location(name).kind, Location(name).is_packed) == (kind, is_packed)


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("-", "is_standard"),
        ("sqlite:///a.db?table=t", "is_table"),
        ("kafka://host:1/topic", "is_topic"),
        ("a.csv", "is_path"),
        ("out/", "is_path"),
    ],
)
def test_a_name_means_one_kind_of_place(name, what):
    kinds = ("is_standard", "is_table", "is_topic", "is_path")
    assert [one for one in kinds if getattr(Location(name), one)] == [what]


def test_standard_input_is_no_folder_though_one_has_its_name(folder):
    (folder / "-").mkdir()
    assert not Location("-").is_many


def test_a_certificate_lies_beside_a_file_and_in_a_folder_or_database():
    assert Location("a.csv").certificate == "a.csv.certificate.json"
    assert Location("out/").certificate == "out/_shoal.json"
    assert "shoal_certificates" in Location("sqlite:///a.db?table=t").certificate


@pytest.mark.parametrize("name", ["a.sqlite?table=t", "/tmp/a.DB?table=t", "a.sqlite3?table=t/"])
def test_a_database_with_a_query_is_no_path(name):
    with pytest.raises(InputError, match=r"name the table as 'sqlite:///") as refused:
        Location(name)
    assert name.partition("?")[2] in str(refused.value)


@pytest.mark.parametrize("name", ["a?.csv", "a.db", "year=2020/a.csv", "a.sqlite?"])
def test_a_pattern_and_a_bare_database_are_paths(name):
    assert Location(name).is_path
