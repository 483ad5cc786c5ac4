"""Metadata in two forms: each fits its schema, says what the release is, and tells no value.

The schemas hold what the specifications require of the parts that we write.
"""

import hashlib
import json
from pathlib import Path

import jsonschema
import polars as pl
import pytest
import yaml

from sample_policies import content_of
from shoal.reports.metadata import FORMS, metadata_path

SCHEMAS = Path(__file__).parent / "schemas"
ALL = ",".join(FORMS)
POLICY = content_of(
    {
        "name": "identifier",
        "age-years": {"role": "quasi", "type": "number", "domain": [0, 120], "round": 5},
        "born": {"role": "quasi", "hierarchy": {"dates": ["day", "month", "year"]}},
        "pay": {"role": "sensitive", "type": "number"},
        "note": "plain",
    },
    2,
    read={"decimal": ",", "dates": "%d.%m.%Y"},
    write={"numbers": ["lo", "hi"]},
)
ROWS = {
    "name": ["Ann", "Bob", "Cleo", "Dan"],
    "age-years": ["21", "29", "51", "58"],
    "born": ["01.02.2024", "02.02.2024", "05.03.2024", "06.03.2024"],
    "pay": ["41,5", "7", "8", "9"],
    "note": ["x", "x", "y", "y"],
}
SECRET = ("Ann", "Cleo", "29", "58", "41,5", "41.5", "01.02.2024")


@pytest.fixture
def folder(folder) -> Path:
    pl.DataFrame(ROWS).write_csv(folder / "in put.csv", separator=";")
    (folder / "policy.yaml").write_text(yaml.safe_dump(POLICY))
    return folder


def published(shoal, output: str = "out.csv", kinds: str = ALL) -> dict[str, dict]:
    more = ("-p", "policy.yaml", "-o", output, "--replace")
    shoal("publish", "in put.csv", *more, status=0)
    shoal("dossier", output, "--metadata", kinds, status=0)
    return {
        kind: json.loads(Path(metadata_path(output, kind)).read_text("utf-8"))
        for kind in kinds.split(",")
    }


def schema_of(kind: str) -> dict:
    return json.loads((SCHEMAS / f"{kind}.json").read_text())


@pytest.mark.parametrize(
    "output", ["out.csv", "öffent lich.tsv", "out.parquet", "out.jsonl", "out.csv.gz"]
)
def test_every_form_fits_its_schema(folder, shoal, output):
    for kind, content in published(shoal, output).items():
        schema = schema_of(kind)
        jsonschema.Draft202012Validator.check_schema(schema)
        jsonschema.Draft202012Validator(schema).validate(content)


def test_metadata_of_an_earlier_release_is_named(folder, shoal):
    published(shoal, kinds="croissant")
    publish = ("publish", "in put.csv", "-p", "policy.yaml", "-o", "out.csv", "-q")
    said = shoal(*publish, "--replace").err
    assert "metadata 'out.csv.croissant.json': describes an earlier release" in said
    assert "datapackage" not in said


def test_the_schemas_refuse_what_lacks_something(folder, shoal):
    for kind, content in published(shoal).items():
        schema = schema_of(kind)
        for key in schema["required"]:
            less = {name: value for name, value in content.items() if name != key}
            with pytest.raises(jsonschema.ValidationError):
                jsonschema.Draft202012Validator(schema).validate(less)


def test_all_name_the_same_file_and_columns(folder, shoal):
    found = published(shoal)
    digest = hashlib.sha256((folder / "out.csv").read_bytes()).hexdigest()
    names = (folder / "out.csv").read_text("utf-8").splitlines()[0].split(";")
    assert "age-years_lo" in names
    resource = found["datapackage"]["resources"][0]
    assert resource["hash"] == f"sha256:{digest}"
    assert resource["bytes"] == (folder / "out.csv").stat().st_size
    assert resource["dialect"] == {"delimiter": ";", "lineTerminator": "\n"}
    assert [field["name"] for field in resource["schema"]["fields"]] == names
    croissant = found["croissant"]
    assert croissant["distribution"][0]["sha256"] == digest
    assert [field["name"] for field in croissant["recordSet"][0]["field"]] == names


def test_columns_have_the_types_of_their_cells(folder, shoal):
    found = published(shoal)
    fields = {f["name"]: f for f in found["datapackage"]["resources"][0]["schema"]["fields"]}
    assert fields["age-years"]["type"] == "string"
    assert "ends at multiples of 5" in fields["age-years"]["description"]
    assert (fields["pay"]["type"], fields["pay"]["decimalChar"]) == ("number", ",")
    assert (fields["born_lo"]["type"], fields["born_lo"]["format"]) == ("date", "%d.%m.%Y")
    assert fields["age-years_hi"]["shoal"]["derived_from"] == "age-years"


def test_no_value_of_the_original_and_no_name_of_it_is_reported(folder, shoal):
    for content in published(shoal).values():
        text = json.dumps(content, ensure_ascii=False)
        assert not [value for value in SECRET if f'"{value}"' in text or f" {value} " in text]
        assert "in put" not in text
        assert "120" not in text  # the domain


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("out.csv", "--metadata", "dcat,rdf"), "--metadata 'dcat': is unknown"),
        (("out/", "--metadata", "croissant"), "--metadata: describes a file"),
        (("out.csv", "forged.json", "--metadata", "croissant"), "no metadata was written"),
    ],
)
def test_what_cannot_be_described_is_refused(folder, shoal, words, says):
    for output in ("out.csv", "out/"):
        shoal("publish", "in put.csv", "-p", "policy.yaml", "-o", output, status=0)
    stated = json.loads(Path("out.csv.certificate.json").read_text())
    stated["records"]["out"] += 1
    Path("forged.json").write_text(json.dumps(stated))
    before = sorted(folder.iterdir())
    result = shoal("dossier", *words)
    assert result.status in (1, 2)
    assert says in result.err
    assert sorted(folder.iterdir()) == before
