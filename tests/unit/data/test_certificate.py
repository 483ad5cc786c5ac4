"""Certificate 2: when, by what, under which policy, column by column; and that it verifies."""

import hashlib
import json
import time
from pathlib import Path

import polars as pl
import pytest
import yaml

import shoal
from sample_policies import content_of
from shoal.auditor.description import build, date, policy_identity, policy_sha256
from shoal.cli.main import status_of
from shoal.data.certificate import Certificate
from shoal.data.certificate_shape import _INTERVALS
from shoal.errors import InputError
from shoal.policy.agreement import Agreement
from shoal.policy.policy import Policy

HANDMADE = "name,age,job,note\na,20,x,p\nb,20,x,p\nc,30,y,q\nd,40,y,r\n"


AGE = {"role": "quasi", "type": "number", "domain": [0, 100]}
MONDRIAN = {"name": "mondrian"}


def run(*command: object) -> None:
    assert status_of([str(part) for part in (*command, "-q")]) == 0


@pytest.fixture
def handmade(tmp_path) -> Path:
    """Four people, two of them alike in age and job."""
    (tmp_path / "in.csv").write_text(HANDMADE)
    (tmp_path / "job.csv").write_text("x;*\ny;*\n")
    job = {"role": "quasi", "hierarchy": "job.csv"}
    columns = {"name": "identifier", "age": AGE, "job": job, "note": "plain"}
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(content_of(columns, 2, method=MONDRIAN)))
    return tmp_path


def publish(folder: Path, name: str = "out.csv") -> dict:
    source, policy, out = folder / "in.csv", folder / "p.yaml", folder / name
    run("publish", source, "-p", policy, "-o", out, "--replace")
    return json.loads((folder / f"{name}.certificate.json").read_text())


def audit(folder: Path, name: str = "out.csv") -> dict:
    """An audit without the original, from its file."""
    run("audit", folder / name, "-p", folder / "p.yaml", "-o", folder / "audit.json")
    return json.loads((folder / "audit.json").read_text())


def test_the_columns_are_counted_as_by_hand(handmade):
    """Ages 20, 20, 30 and 40: half of the records are alone; [30, 40] is 10 of 100 wide."""
    columns = {column["name"]: column for column in publish(handmade)["columns"]}
    assert list(columns) == ["age", "job", "note", "name"]
    assert columns["age"] == {
        "name": "age",
        "role": "quasi",
        "type": "number",
        "technique": "interval",
        "round": None,
        "distinct_in": 3,
        "distinct_out": 2,
        "loss": pytest.approx(0.05),
        "single_ends": 1.0,
        "alone_in": 0.5,
        "derived_from": None,
        "alone_if_known": None,
    }
    job = columns["job"]
    assert (job["technique"], job["loss"], job["alone_in"]) == ("node", 0.0, 0.0)
    note = columns["note"]
    assert (note["role"], note["type"], note["technique"]) == ("plain", None, "as-is")
    assert (note["distinct_in"], note["distinct_out"], note["alone_in"]) == (3, 3, 0.5)
    assert note["alone_if_known"] is not None
    assert columns["name"]["technique"] == "removed"
    assert columns["name"]["distinct_in"] is None


def test_an_audit_without_the_original_leaves_null_what_needs_it_and_verifies(handmade):
    publish(handmade)
    certificate = audit(handmade)
    age = certificate["columns"][0]
    assert (age["distinct_in"], age["alone_in"]) == (None, None)
    assert (age["distinct_out"], age["loss"]) == (2, pytest.approx(0.05))
    assert [c["name"] for c in certificate["columns"]] == ["age", "job", "note", "name"]
    found = assert_verifies(
        handmade / "out.csv", handmade / "audit.json", policy=handmade / "p.yaml"
    )
    assert found["measured again"] is True


def test_the_output_is_described_for_its_reader(handmade):
    output = publish(handmade)["output"]
    whole = (handmade / "out.csv").read_bytes()
    assert output == {
        "sha256": hashlib.sha256(whole).hexdigest(),
        "bytes": len(whole),
        "format": "csv",
        "dialect": {
            "delimiter": ",",
            "encoding": "utf-8",
            "newline": "\n",
            "bom": False,
            "decimal": ".",
            "dates": None,
            "intervals": "[{lo}, {hi}]",
            "mark": "*",
            "order": "content",
        },
    }
    for form, delimiter in (("tsv.gz", "\t"), ("parquet", None)):
        output = publish(handmade, f"out.{form}")["output"]
        assert (output["format"], output["dialect"]["delimiter"]) == (form, delimiter)


def test_a_file_of_another_program_is_described_as_it_is(handmade):
    (handmade / "other.csv").write_bytes(
        b"\xef\xbb\xbfage;job;note\r\n20;x;p\r\n20;x;p\r\n30;y;q\r\n30;y;q\r\n"
    )
    dialect = audit(handmade, "other.csv")["output"]["dialect"]
    assert (dialect["delimiter"], dialect["newline"], dialect["bom"]) == (";", "\r\n", True)


def test_the_policy_is_named_by_content_and_its_files_without_their_names(handmade):
    certificate = publish(handmade)
    policy = Policy.load(handmade / "p.yaml")
    whole = (handmade / "job.csv").read_bytes()
    file = {"sha256": hashlib.sha256(whole).hexdigest(), "bytes": len(whole)}
    file |= {"attribute": "job", "kind": "hierarchy"}
    assert certificate["policy"] == {"sha256": policy_sha256(policy), "files": [file]}
    assert str(handmade) not in json.dumps(certificate)
    assert "job.csv" not in json.dumps(certificate)


def test_a_verb_that_fills_in_a_method_names_the_same_policy(handmade):
    content = yaml.safe_load((handmade / "p.yaml").read_text())
    del content["method"]
    policy = Policy.from_dict(content, handmade)
    assert policy_sha256(policy, "stream") == policy_sha256(policy.with_method("fads"), "stream")
    assert policy_sha256(policy, "publish") != policy_sha256(policy.with_method("fads"))
    # the releases of a ledger may differ in method and seed, and have one policy
    one, other = policy.with_method("crp").with_seed(4), policy.with_shuffled_rows()
    assert policy_sha256(one, "republish") == policy_sha256(other, "republish")
    assert policy_identity(one, "republish")["sha256"] == policy_sha256(one, "republish")


def test_the_date_is_utc_and_an_agreed_one_wins():
    assert date({"SOURCE_DATE_EPOCH": "1763820185"}) == "2025-11-22T14:03:05Z"
    assert date({}).endswith("Z")
    for wrong in ("", "soon", "1e99", "9" * 30):
        with pytest.raises(InputError, match="SOURCE_DATE_EPOCH: is not a number of seconds"):
            date({"SOURCE_DATE_EPOCH": wrong})


def test_publishing_twice_gives_the_same_but_for_date_and_seconds(handmade):
    one, other = publish(handmade), publish(handmade)
    for certificate in (one, other):
        assert certificate["schema"] == "shoal.certificate/2"
        assert certificate.pop("date")
        certificate.pop("seconds")
    assert one == other
    assert one["build"] == build()
    assert set(one["build"]) == {"python", "numpy", "polars", "numba", "wheel_sha256"}


def test_repeated_rows_of_a_hierarchy_are_reported(handmade, capsys):
    (handmade / "job.csv").write_text("x;*\ny;*\nx;*\n")
    text = "attribute 'job': 1 repeated row of its hierarchy; each taken once"
    warnings = [one for one in publish(handmade)["warnings"] if one["code"].startswith("hier")]
    assert warnings == [{"code": "hierarchy-repeats", "severity": "open", "text": text}]
    assert f"shoal: {text}\n" in capsys.readouterr().err


NEW_KEYS = ("date", "build", "policy", "columns", "warnings")


def assert_verifies(path: Path, certificate: Path | None = None, **more) -> dict[str, bool | None]:
    checks = shoal.verify(path, certificate, **more)
    assert [str(check) for check in checks if check.ok is False] == []
    content = shoal.Certificate.load(certificate or f"{path}.certificate.json")
    assert all(content[key] is not None for key in NEW_KEYS)
    assert content["output"]["bytes"] == path.stat().st_size
    return {check.name: check.ok for check in checks}


@pytest.mark.usefixtures("forked_parties")
def test_a_fusion_is_signed_and_verifies_with_its_agreement(folder, capsys):
    pytest.importorskip("cryptography")
    run("sample", "bank", "-n", 200, "--seed", 3, "-o", "demo")
    assert status_of(["sign", "--new-key", "k", "--unprotected"]) == 0
    run("fuse", "demo/bank.parties.yaml", "-o", "out.csv", "--sign", "k.pem")
    path = folder / "out.csv"
    agreement = Agreement.load("demo/bank.parties.yaml")
    found = assert_verifies(path, policy=agreement.policy, trust=[folder / "k.pub.pem"])
    assert (found["policy"], found["measured again"], found["signature"]) == (True, True, True)
    Path("context.yaml").write_text("version: 1\n")
    run("dossier", "out.csv", "-p", "demo/bank.parties.yaml", "--context", "context.yaml")
    capsys.readouterr()
    assert status_of(["verify", "out.csv", "-p", "demo/bank.parties.yaml"]) == 0
    assert "ok   policy: is the one certified" in capsys.readouterr().out
    assert status_of(["verify", "out.csv", "-p", "demo/bank.policy.yaml"]) == 1
    shown = capsys.readouterr().out
    assert "of a fusion, name its agreement with --policy" in shown


def test_python_states_the_same_but_for_files():
    frame = pl.DataFrame({"age": ["20", "20", "30", "40"], "note": list("pqrs")})
    policy = content_of({"age": AGE, "note": "drop"}, 2, method=MONDRIAN)
    certificate = shoal.publish(frame, policy).certificate
    assert certificate["output"] is None
    assert [column["technique"] for column in certificate["columns"]] == ["interval", "removed"]


def test_printed_a_certificate_says_of_what_it_is_and_whether_it_is_kept(handmade):
    publish(handmade)
    certificate = shoal.Certificate.load(handmade / "out.csv.certificate.json")
    assert repr(certificate) == "<Certificate of publish by mondrian: holds>"
    promise = certificate["promises"][0] | {"holds": False}
    failing = repr(certificate.extended(promises=[promise], faults={"changed": 1}))
    assert failing.splitlines()[1:] == [
        "k-anonymity of all quasi-identifiers: asked 2, measured 2",
        "1 record shows another sensitive or plain value than the original",
    ]


@pytest.mark.parametrize(
    ("holds", "severities", "light"),
    [
        (True, [], "green"),
        (True, ["note", "open"], "green"),
        (True, ["open", "grave"], "amber"),
        (False, ["grave"], "red"),
    ],
)
def test_a_release_is_green_only_if_everything_holds_and_no_finding_is_grave(
    holds, severities, light
):
    warnings = [{"code": "x", "severity": one, "text": f"is {one}"} for one in severities]
    promise = {"model": "k-anonymity", "attributes": [], "asked": 2, "measured": 2, "holds": holds}
    found = Certificate({"verb": "audit", "promises": [promise], "warnings": warnings})
    assert found.light == light
    first, *grave = found.verdict
    assert first == ("Every promise holds" if holds else "Not everything holds")
    assert grave == ["Grave: is grave"] * severities.count("grave")
    assert all(f"<p>{line}.</p>" in found._repr_html_() for line in grave)


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        *(("[{lo}, {hi}]", True), ("{lo}\n{hi}", True), ("{hi}{lo}{lo}{hi}", True)),
        *(("{lo}{hi}", False), ("{hi} {lo}", False), ("{lo} hi", False), (3, False)),
        *(("{lo}" * 100_000, False), ("{lo}{hi}" * 50_000, True)),
    ],
)
def test_a_form_of_intervals_holds_both_ends_with_something_between(text, is_one):
    started = time.process_time()
    assert [*_INTERVALS(text, "intervals")] == (
        [] if is_one else ["'intervals' must be a text with {lo} and then {hi}"]
    )
    assert time.process_time() - started < 1
