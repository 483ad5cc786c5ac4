"""What somebody meets in the first hour: each refusal names what is wrong and the way out."""

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

DATES = {"role": "quasi", "hierarchy": {"dates": ["day", "month", "year"]}}
SIZES = {"role": "quasi", "type": "number"}
POLICY = content_of({"born": DATES, "size": SIZES, "ill": "sensitive"})
TABLE = {
    "born": ["2024-01-01", "2024-01-02", "2024-02-01", "2024-02-02"],
    "size": ["170", "171", "180", "181"],
    "ill": ["a", "b", "a", "b"],
}


PUBLISH = "publish in.csv -p policy.yaml -o out.csv -q"


@pytest.fixture
def said(folder, shoal):
    """What a command says that ends with this status, beside a release, a key and a context."""

    def of(command: str, status: int = 2) -> str:
        return shoal(*command.split(), status=status).err

    pl.DataFrame(TABLE).write_csv("in.csv")
    Path("policy.yaml").write_text(yaml.safe_dump(POLICY))
    Path("context.yaml").write_text("version: 1\n")
    of(PUBLISH, 0)
    of("sign --new-key k --unprotected", 0)
    return of


def test_what_is_not_measured_without_the_original_is_said_by_column(said):
    assert (
        "information loss (gcp) can't be measured on the release alone (born: how wide its cells"
        " are depends on values of the original; size: no 'domain' is declared); give --original"
    ) in said("audit out.csv -p policy.yaml", 0)


def test_local_dates_are_refused_with_the_option_that_reads_them(said):
    local = ["01.01.2024", "02.01.2024", "01.02.2024", "02.02.2024"]
    pl.DataFrame(TABLE | {"born": local}).write_csv("in.csv")
    way_out = "say how dates are written, such as --read dates=%d.%m.%Y"
    assert way_out in said("publish in.csv -p policy.yaml -o new.csv")


def test_one_cell_is_one_cell(said):
    head, first, *others = Path("out.csv").read_text().splitlines(keepends=True)
    Path("out.csv").write_text("".join([head, "x" + first[first.index(",") :], *others]))
    shown = said("audit out.csv -p policy.yaml --original in.csv")
    assert "attribute 'born': 1 published cell is neither a value" in shown


def test_a_key_is_named_without_its_suffix_and_only_a_certificate_is_signed(said):
    for name in ("x.pem", "x.pub.pem"):
        assert "write 'shoal sign --new-key x'" in said(f"sign --new-key {name} --unprotected")
    assert not [*Path().glob("x*")]
    Path("out.csv.certificate.json").unlink()
    shown = said("sign out.csv --key k.pem")
    assert "'out.csv': has no certificate beside it, 'out.csv.certificate.json'" in shown


def test_a_dossier_names_its_own_option_and_says_when_it_wrote_nothing(said):
    shown = said("dossier out.csv --context context.yaml -o dd.txt")
    assert shown.startswith("shoal: -o 'dd.txt': is a page of HTML; give it a name that ends")
    shown = said("dossier out.csv --context context.yaml", 0)
    assert "nothing was written: name a page with -o D.html" in shown


def test_an_audit_attacks_with_the_method_that_the_certificate_names(said):
    patients.generate(300, 7).write_csv("in.csv")
    content = yaml.safe_load(PATIENTS)
    content.pop("method", None)
    Path("policy.yaml").write_text(yaml.safe_dump(content))
    said(f"{PUBLISH} --replace", 0)
    attack = "attack out.csv -p policy.yaml --original in.csv -q --attack inference --replace"
    for kind in ("republished", "none"):
        said(f"{attack} -o found.json", 0)
        found = json.loads(Path("found.json").read_text())
        assert found["attacks"]["control"]["kind"] == kind
        Path("out.csv.certificate.json").unlink(missing_ok=True)


def test_a_certificate_of_another_file_or_with_a_plan_says_nothing_about_the_method(said):
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


def test_a_table_that_is_not_there_has_no_unknown_format_as_one_that_is(said):
    for command in (
        "profile gone",
        "profile gone.ods",
        "publish gone -p policy.yaml -o new.csv",
        "publish gone -p policy.yaml -o new.csv --memory 700MB",
        "stream gone -p policy.yaml -o new.csv",
        "audit gone -p policy.yaml",
        "audit out.csv -p policy.yaml --original gone",
        "attack out.csv -p policy.yaml --original in.csv --control gone",
    ):
        shown = said(command)
        assert shown.startswith("shoal: file 'gone")
        assert "': is not there; check its name" in shown
    with pytest.raises(library.InputError, match=r"^release 'no\.csv': is not there"):
        library.read_release("no.csv")
    Path("in.csv").rename("table")
    assert "file 'table': unknown format; use one of .csv" in said("profile table")


@pytest.mark.parametrize("release", ["out.csv", "out/"])
def test_a_certificate_in_place_of_its_release_names_the_release(release, said):
    if release == "out/":
        said(PUBLISH.replace("out.csv", "out/"), 0)
    certificate = "out/_shoal.json" if release == "out/" else "out.csv.certificate.json"
    for command in (
        "verify {}",
        "verify {} -p policy.yaml",
        "audit {} -p policy.yaml",
        "sign {} --key k.pem",
        "dossier {} --context context.yaml",
        "publish in.csv -p policy.yaml -o {}",
    ):
        shown = f"file '{certificate}': is the certificate of '{release}'; name that instead"
        assert said(command.format(certificate)) == f"shoal: {shown}\n"
