"""What somebody meets in the first hour: each refusal names what is wrong and the way out."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
import yaml

import shoal as library
from sample_policies import PATIENTS, content_of
from shoal.policy.policy import Policy
from shoal.samples import patients
from shoal.tables.attack import with_stated_method

POLICY = content_of(
    {
        "born": {"role": "quasi", "hierarchy": {"dates": ["day", "month", "year"]}},
        "size": {"role": "quasi", "type": "number"},
        "ill": {"role": "sensitive"},
    },
    2,
)
TABLE = {
    "born": ["2024-01-01", "2024-01-02", "2024-02-01", "2024-02-02"],
    "size": ["170", "171", "180", "181"],
    "ill": ["a", "b", "a", "b"],
}


@pytest.fixture
def folder(tmp_path, monkeypatch, shoal) -> Path:
    """A folder with a release whose cells follow from the data."""
    monkeypatch.chdir(tmp_path)
    pl.DataFrame(TABLE).write_csv("in.csv")
    Path("policy.yaml").write_text(yaml.safe_dump(POLICY))
    assert shoal("publish", "in.csv", "-p", "policy.yaml", "-o", "out.csv", "-q").status == 0
    return tmp_path


def test_what_is_not_measured_without_the_original_is_said_by_column(folder, shoal):
    said = shoal("audit", "out.csv", "-p", "policy.yaml").err
    assert (
        "information loss (gcp) can't be measured on the release alone (born: how wide its cells"
        " are depends on values of the original; size: no 'domain' is declared); give --original"
    ) in said


def test_local_dates_are_refused_with_the_option_that_reads_them(folder, shoal):
    local = pl.Series("born", ["01.01.2024", "02.01.2024", "01.02.2024", "02.02.2024"])
    pl.DataFrame(TABLE).with_columns(local).write_csv("in.csv")
    result = shoal("publish", "in.csv", "-p", "policy.yaml", "-o", "new.csv")
    assert result.status == 2
    assert "say how they are written, such as --read dates=%d.%m.%Y" in result.err


def test_one_cell_is_one_cell(folder, shoal):
    text = Path("out.csv").read_text().splitlines()
    cells = text[1].split(",")
    Path("out.csv").write_text("\n".join([text[0], ",".join(["x", *cells[1:]]), *text[2:]]) + "\n")
    result = shoal("audit", "out.csv", "-p", "policy.yaml", "--original", "in.csv")
    assert result.status == 2
    assert "attribute 'born': 1 published cell is neither a value" in result.err


def test_a_release_that_is_not_there_is_said_to_be_so(folder):
    with pytest.raises(library.InputError, match=r"^release 'no\.csv': is not there"):
        library.read_release("no.csv")


def test_a_key_is_named_without_its_suffix(folder, shoal):
    for name in ("x.pem", "x.pub.pem"):
        result = shoal("sign", "--new-key", name, "--unprotected")
        assert result.status == 2
        assert "write 'shoal sign --new-key x'" in result.err
    assert not list(folder.glob("x*"))


def test_only_a_certificate_is_signed(folder, shoal):
    assert shoal("sign", "--new-key", "k", "--unprotected").status == 0
    Path("out.csv.certificate.json").unlink()
    result = shoal("sign", "out.csv", "--key", "k.pem")
    assert result.status == 2
    assert "'out.csv': has no certificate beside it, 'out.csv.certificate.json'" in result.err


def test_a_dossier_names_its_own_option_and_says_when_it_wrote_nothing(folder, shoal):
    Path("context.yaml").write_text("version: 1\n")
    result = shoal("dossier", "out.csv", "--context", "context.yaml", "-o", "dd.txt")
    assert result.status == 2
    assert result.err.startswith("shoal: -o 'dd.txt': is a page of HTML; give it a name that ends")
    result = shoal("dossier", "out.csv", "--context", "context.yaml")
    assert result.status == 0, result.err
    assert "nothing was written: name a page with -o D.html" in result.err


def test_an_audit_attacks_with_the_method_that_the_certificate_names(tmp_path, monkeypatch, shoal):
    monkeypatch.chdir(tmp_path)
    patients.generate(300, 7).write_csv("in.csv")
    content = yaml.safe_load(PATIENTS)
    content.pop("method", None)
    Path("policy.yaml").write_text(yaml.safe_dump(content))
    assert shoal("publish", "in.csv", "-p", "policy.yaml", "-o", "out.csv", "-q").status == 0
    attack = ("attack", "out.csv", "-p", "policy.yaml", "--original", "in.csv", "-q")
    attack = (*attack, "--attack", "inference", "-o", "found.json", "--replace")
    assert shoal(*attack).status == 0
    control = json.loads(Path("found.json").read_text())["attacks"]["control"]
    assert control["kind"] == "republished"
    Path("out.csv.certificate.json").unlink()
    assert shoal(*attack).status == 0
    control = json.loads(Path("found.json").read_text())["attacks"]["control"]
    assert control["kind"] == "none"


def test_a_certificate_of_another_file_or_with_a_plan_says_nothing_about_the_method(folder):
    policy = Policy.from_dict(POLICY)
    stated = with_stated_method(policy, "out.csv")
    certificate = json.loads(Path("out.csv.certificate.json").read_text())
    assert stated.model.method["name"] == certificate["method"]["name"]
    own = policy.with_method("mondrian", {})
    assert with_stated_method(own, "out.csv") is own
    for change in (
        {"plan": {}},
        {"verb": "audit"},
        {"output": {"sha256": "0" * 64}},
        {"method": {"name": "nobody", "parameters": {}}},
        {"method": "mondrian"},
    ):
        Path("out.csv.certificate.json").write_text(json.dumps(certificate | change))
        assert with_stated_method(policy, "out.csv") is policy


@pytest.mark.parametrize(
    "command",
    [
        ("profile", "gone"),
        ("profile", "gone.ods"),
        ("publish", "gone", "-p", "policy.yaml", "-o", "new.csv"),
        ("publish", "gone", "-p", "policy.yaml", "-o", "new.csv", "--memory", "700MB"),
        ("stream", "gone", "-p", "policy.yaml", "-o", "new.csv"),
        ("audit", "gone", "-p", "policy.yaml"),
        ("audit", "out.csv", "-p", "policy.yaml", "--original", "gone"),
        (
            *("attack", "out.csv", "-p", "policy.yaml", "--original", "in.csv"),
            *("--control", "gone"),
        ),
    ],
)
def test_a_table_that_is_not_there_has_no_unknown_format(command, folder, shoal):
    result = shoal(*command)
    assert result.status == 2
    assert result.err.startswith("shoal: file 'gone")
    assert "': is not there; check its name" in result.err


def test_a_table_that_is_there_is_read_by_its_ending(folder, shoal):
    Path("in.csv").rename("table")
    assert "file 'table': unknown format; use one of .csv" in shoal("profile", "table").err


@pytest.mark.parametrize(
    "command",
    [
        ("verify", "{}"),
        ("verify", "{}", "-p", "policy.yaml"),
        ("audit", "{}", "-p", "policy.yaml"),
        ("sign", "{}", "--key", "k.pem"),
        ("dossier", "{}", "--context", "context.yaml"),
        ("publish", "in.csv", "-p", "policy.yaml", "-o", "{}"),
    ],
)
def test_a_certificate_in_place_of_its_release_names_the_release(command, folder, shoal):
    assert shoal("sign", "--new-key", "k", "--unprotected").status == 0
    Path("context.yaml").write_text("version: 1\n")
    certificate = "out.csv.certificate.json"
    result = shoal(*(part.format(certificate) for part in command))
    assert result.status == 2
    said = f"shoal: file '{certificate}': is the certificate of 'out.csv'; name that instead\n"
    assert result.err == said


def test_the_certificate_of_a_folder_names_the_folder(folder, shoal):
    assert shoal("publish", "in.csv", "-p", "policy.yaml", "-o", "out/", "-q").status == 0
    said = shoal("verify", "out/_shoal.json").err
    assert (
        said == "shoal: file 'out/_shoal.json': is the certificate of 'out/'; name that instead\n"
    )
