"""Verify and sign: what a reader with two files finds out, and what a forger can't hide."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest
from test_forged_certificates import setting

import shoal
from sample_policies import content_of
from shoal.auditor.description import policy_identity, policy_sha256
from shoal.auditor.signatures import Proof
from shoal.auditor.verify import verify_by
from shoal.cli.main import status_of
from shoal.errors import InputError
from shoal.policy.policy import Policy

OPENSSL = shutil.which("openssl")


@pytest.fixture(scope="module")
def released(tmp_path_factory) -> Path:
    """A folder with patients, their policy, a release and its certificate."""
    folder = tmp_path_factory.mktemp("released")
    assert status_of(["sample", "patients", "-n", "300", "-o", str(folder / "in.csv"), "-q"]) == 0
    assert _publish(folder, "out.csv") == 0
    return folder


def _publish(folder: Path, name: str, *more: str) -> int:
    arguments = ["publish", folder / "in.csv", "-p", folder / "in.policy.yaml"]
    arguments += ["-o", folder / name, "--method", "mondrian", "--replace", "-q", *more]
    arguments += ["--trace", folder / "trace.jsonl"]
    return status_of([str(argument) for argument in arguments])


@pytest.fixture
def folder(released, tmp_path) -> Path:
    """A copy of it, to be changed."""
    shutil.copytree(released, tmp_path / "copy")
    return tmp_path / "copy"


def by_name(checks: list[shoal.Check]) -> dict[str, bool | None]:
    return {check.name: check.ok for check in checks}


def everything(folder: Path) -> list[shoal.Check]:
    return shoal.verify(
        folder / "out.csv",
        policy=folder / "in.policy.yaml",
        original=folder / "in.csv",
        trace=folder / "trace.jsonl",
    )


def change_certificate(folder: Path, change) -> None:
    path = folder / "out.csv.certificate.json"
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


# What is true


def test_policy_and_original_let_it_check_more(released):
    found = by_name(everything(released))
    assert found["measured again"] is True
    assert found["input"] is True


def test_without_the_trace_people_are_left_uncounted_rather_than_wrong(folder):
    policy = folder / "in.policy.yaml"
    checks = shoal.verify(folder / "out.csv", policy=policy, original=folder / "in.csv")
    assert by_name(checks)["measured again"] is None
    assert by_name(checks)["input"]


def test_rows_in_another_order_than_the_certificate_states_are_found(folder):
    rows = (folder / "out.csv").read_bytes().splitlines(keepends=True)
    (folder / "out.csv").write_bytes(b"".join([rows[0], *rows[:0:-1]]))
    digest = hashlib.sha256((folder / "out.csv").read_bytes()).hexdigest()
    change_certificate(folder, lambda content: content["output"].update(sha256=digest))
    checks = shoal.verify(folder / "out.csv", policy=folder / "in.policy.yaml")
    (found,) = (check for check in checks if check.name == "measured again")
    assert found.ok is False
    assert found.text == "rows are not in the order that the certificate states"


def test_a_release_from_when_rows_kept_the_input_s_order_is_matched_by_it(folder):
    policy = folder / "in.policy.yaml"
    before = policy.read_text()
    pl.read_csv(folder / "in.csv").sort("age").write_csv(folder / "in.csv")
    policy.write_text(before + "render: {order: input}\n")
    assert _publish(folder, "out.csv") == 0
    policy.write_text(before)  # which was the default then

    def to_earlier(content):
        content["policy"] = policy_identity(Policy.load(policy), "publish")
        del content["output"]["dialect"]["order"]
        others = [one for one in content["warnings"] if one["code"] != "order-kept"]
        assert len(others) < len(content["warnings"])
        content["warnings"] = others

    change_certificate(folder, to_earlier)
    checks = shoal.verify(folder / "out.csv", policy=policy, original=folder / "in.csv")
    assert by_name(checks)["measured again"] is True


def test_a_certificate_that_calls_itself_a_stream_is_not_measured_against_the_original(folder):
    def to_stream(content):
        content |= {"verb": "stream", "stream": {}, "measured": "whole"}
        content["records"] |= dict.fromkeys(("held", "dropped", "rejected", "waiting"), 0)

    change_certificate(folder, to_stream)
    assert by_name(everything(folder))["measured again"] is False
    with open(folder / "out.csv", "ab") as file:
        file.write((folder / "out.csv").read_bytes().splitlines(keepends=True)[-1])
    (told,) = [check.text for check in shoal.verify(folder / "out.csv") if check.name == "file"]
    assert told.startswith("begins with the one certified, its first ")
    assert "the stream went on, and this certificate says nothing about the rest" in told


def test_limits_on_attacks_that_nobody_judged_are_found(folder):
    policy = folder / "in.policy.yaml"
    policy.write_text(policy.read_text() + "accept: {certain: 0.5}\n")
    checks = shoal.verify(folder / "out.csv", policy=policy, original=folder / "in.csv")
    assert by_name(checks)["promises"] is False


def test_a_certificate_that_names_a_key_twice_is_refused(folder):
    path = folder / "out.csv.certificate.json"
    path.write_text('{"subjects": 9,' + path.read_text().removeprefix("{"))
    with pytest.raises(InputError, match="not a certificate of Shoal"):
        shoal.verify(folder / "out.csv")


def test_without_the_original_people_are_not_taken_for_counted(released):
    checks = shoal.verify(released / "out.csv", policy=released / "in.policy.yaml")
    assert by_name(checks)["measured again"] is None


def test_a_certificate_may_lie_elsewhere(folder):
    elsewhere = (folder / "out.csv.certificate.json").rename(folder / "proof.json")
    assert by_name(shoal.verify(folder / "out.csv", elsewhere))["file"] is True


# What was changed


def test_every_kind_of_changed_byte_is_found(folder):
    whole = (folder / "out.csv").read_bytes()
    for at in (0, len(whole) // 2, len(whole) - 2):
        (folder / "out.csv").write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert by_name(shoal.verify(folder / "out.csv"))["file"] is False


def test_a_missing_row_is_found_even_with_a_new_hash(folder):
    rows = (folder / "out.csv").read_bytes().splitlines(keepends=True)
    (folder / "out.csv").write_bytes(b"".join(rows[:-1]))
    digest = hashlib.sha256((folder / "out.csv").read_bytes()).hexdigest()
    change_certificate(folder, lambda c: c["output"].update(sha256=digest))
    assert by_name(shoal.verify(folder / "out.csv"))["rows"] is False


@pytest.mark.parametrize(
    "change", [setting("promises", 0, "holds", False), setting("faults", "uncovered", 1)]
)
def test_a_promise_that_did_not_hold_and_faults_are_no_success(folder, change):
    change_certificate(folder, change)
    assert by_name(shoal.verify(folder / "out.csv"))["promises"] is False


def test_a_certificate_without_promises_or_hash_is_no_success(folder):
    def change(content):
        content |= {"promises": [], "output": None, "warnings": []}
        content["together"] |= {"asked": None, "below": None}

    change_certificate(folder, change)
    found = by_name(shoal.verify(folder / "out.csv"))
    assert found["promises"] is False
    assert found["file"] is False


def test_another_policy_is_found(folder):
    other = Policy.load(folder / "in.policy.yaml").with_k(7)
    checks = shoal.verify(folder / "out.csv", policy=other, original=folder / "in.csv")
    assert by_name(checks)["measured again"] is False


def test_another_original_is_found(folder):
    with open(folder / "in.csv", "a") as table:
        table.write((folder / "in.csv").read_text().splitlines()[1] + "\n")
    found = by_name(everything(folder))
    assert found["input"] is False
    assert found["measured again"] is False


def test_a_file_that_can_no_longer_be_parsed_fails_and_does_not_end_the_checks(folder):
    (folder / "out.csv").write_bytes(b'age,sex\n"open')
    found = by_name(everything(folder))
    assert [found[name] for name in ("file", "rows", "measured again")] == [False, False, False]
    assert found["input"] is True


# A certificate that says more


def test_columns_and_policy_are_checked(folder):
    asked = Policy.load(folder / "in.policy.yaml")
    effective = asked.with_method("mondrian")  # as the option of the command said
    found = by_name(shoal.verify(folder / "out.csv", policy=effective))
    assert found["columns"] is True
    assert found["policy"] is True
    for other in (asked, effective.with_k(7)):
        assert by_name(shoal.verify(folder / "out.csv", policy=other))["policy"] is False
    change_certificate(folder, lambda c: c["columns"].pop(0))
    assert by_name(everything(folder))["columns"] is False


FORGED_FIGURES = [
    setting("promises", 0, "measured", 2),
    setting("promises", 0, "measured", 99),
    setting("classes", "min", 60),
    setting("classes", "mean", 80.5),
    setting("classes", "count", 1),
    setting("risk", "prosecutor_max", 0.001),
    setting("risk", "marketer", None),
    setting("utility", "gcp", 0.01),
    setting("utility", "discernibility", 1),
    setting("utility", "gcp", None),
    setting("subjects", 299),
    setting("people", "assumed"),
    setting("together", "min", 50),
    setting("promises", 0, "classes", "min", 50),
    setting("promises", 0, "risk", "max", 0.01),
    setting("records", "withheld", 3),
    setting("records", "suppressed", 1),
    setting("starred", {"age": 1}),
    setting("columns", 0, "loss", 0.0),
    setting("columns", 0, "role", "plain"),
    setting("columns", 0, "technique", "as-is"),
    setting("columns", 0, "distinct_out", 72),
    setting("columns", 0, "distinct_in", 2),
    setting("columns", 0, "alone_in", 0.0),
]


@pytest.mark.parametrize("change", FORGED_FIGURES)
def test_every_figure_that_a_forger_changes_is_found_by_measuring_again(folder, change):
    change_certificate(folder, change)
    assert by_name(everything(folder))["measured again"] is False


def test_the_hash_of_a_policy_is_that_of_what_it_says_not_of_how_or_where(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "tree.csv").write_text("x;*\ny;*\n")
    (tmp_path / "b" / "other.csv").write_text("x;*\ny;*\n")

    def content(name):
        attributes = {"c": {"role": "quasi", "hierarchy": name}}
        promises = [{"model": "k-anonymity", "k": 2}]
        return {"version": 1, "attributes": attributes, "promises": promises}

    one = Policy.from_dict(content("tree.csv"), base=tmp_path / "a")
    reordered = dict(reversed(content("other.csv").items()))
    assert policy_sha256(one) == policy_sha256(Policy.from_dict(reordered, base=tmp_path / "b"))
    (tmp_path / "b" / "other.csv").write_text("x;*\nz;*\n")
    assert policy_sha256(one) != policy_sha256(Policy.from_dict(reordered, base=tmp_path / "b"))


@pytest.mark.parametrize("kind", ["table", "frequencies"])
def test_the_population_around_a_release_is_named_by_content(tmp_path, kind):
    """The attack: a certificate of a low risk, and another population beside the same policy."""
    for folder, people in (("a", "x\nx\n"), ("b", "x\nx\n"), ("c", "x\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{folder}.csv").write_text(f"c\n{people}")

    def identity(folder):
        more = {"column": "share", "people": 9} if kind == "frequencies" else {}
        content = content_of(
            {"c": {"role": "quasi"}}, 2, population={kind: f"{folder}.csv", **more}
        )
        return policy_identity(Policy.from_dict(content, base=tmp_path / folder), "publish")

    assert identity("a") == identity("b")
    assert identity("a")["sha256"] != identity("c")["sha256"]
    assert [file["kind"] for file in identity("a")["files"]] == ["population"]


# What can't be read


MISSING = [
    ("out.csv", "file '{}': is not there; check its name"),
    (
        "out.csv.certificate.json",
        "certificate '{}': is not there; fetch it with the release, or name it behind the release",
    ),
]


@pytest.mark.parametrize(("name", "told"), MISSING)
def test_a_missing_file_ends_with_2(folder, name, told, capsys):
    (folder / name).unlink()
    assert status_of(["verify", str(folder / "out.csv"), "-q"]) == 2
    assert capsys.readouterr().err == f"shoal: {told.format(folder / name)}\n"


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"schema": 1}',
        '{"schema": "shoal.plan/1"}',
        '{"schema": "shoal.certificate/99"}',
    ],
)
def test_what_is_not_a_certificate_of_a_schema_known_here_is_refused(folder, content):
    (folder / "out.csv.certificate.json").write_text(content)
    way_out = "use a newer version of Shoal" if "99" in content else "is not a certificate of Shoal"
    with pytest.raises(InputError, match=way_out):
        shoal.verify(folder / "out.csv")


@pytest.mark.parametrize("strange", [None, 1, "x", [], {}])
@pytest.mark.parametrize(
    "key", ["output", "records", "promises", "faults", "policy", "columns", "input", "counted"]
)
def test_a_certificate_of_strange_types_is_refused_or_fails(folder, key, strange):
    change_certificate(folder, lambda c: c.update({key: strange}))
    with suppress(InputError):
        found = by_name(everything(folder))
        assert False in found.values() or (key, strange) == ("input", None)


# The command


def test_grave_findings_come_first_and_the_last_line_names_them(folder, capsys):
    policy = folder / "in.policy.yaml"
    before = policy.read_text()
    policy.write_text(before.replace("name:      {role: identifier}", "name: {role: plain}"))
    assert policy.read_text() != before
    assert _publish(folder, "out.csv") == 0
    named = ["-p", str(policy), "--original", str(folder / "in.csv")]
    named += ["--trace", str(folder / "trace.jsonl")]
    capsys.readouterr()
    assert status_of(["verify", str(folder / "out.csv"), *named, "--method", "mondrian"]) == 0
    lines = capsys.readouterr().out.splitlines()
    count = len([line for line in lines if line.startswith("!    grave finding: ")])
    assert count > 1
    assert lines[0].startswith("!    grave finding: 'name' is not protected: it is published")
    stand = (
        f"Every promise holds; {count} grave findings in the certificate: 'name' is not protected"
    )
    assert lines[-1].startswith(stand)
    assert status_of(["verify", str(folder / "out.csv"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in found].count("grave finding") == count
    assert (found[0]["ok"], found[0]["name"]) == (None, "grave finding")
    assert status_of(["audit", str(folder / "out.csv"), *named]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("shoal: grave: ")
    assert lines[-1] == f"Every promise holds; {count} grave findings"


# Signatures


@pytest.fixture
def key(folder, monkeypatch) -> Path:
    monkeypatch.delenv("SHOAL_KEY_PASSPHRASE", raising=False)
    assert status_of(["sign", "--new-key", str(folder / "k"), "--unprotected"]) == 0
    return folder / "k.pem"


def signature(folder: Path, *trust: Path) -> str:
    return str(shoal.verify(folder / "out.csv", trust=trust)[-1])


def sign(folder: Path, key: Path, *certificate: Path) -> int:
    files = map(str, (folder / "out.csv", *certificate))
    return status_of(["sign", *files, "--key", str(key), "--replace"])


def test_a_signature_is_64_bytes_and_verifies(folder, key):
    assert sign(folder, key) == 0
    assert len((folder / "out.csv.certificate.json.sig").read_bytes()) == 64
    assert signature(folder, folder / "k.pub.pem").startswith("ok   signature: by the key in")
    assert signature(folder, folder).startswith("ok")
    assert signature(folder).startswith("--   signature: there is one, not checked: get the public")


def test_what_is_signed_is_what_was_read_whatever_lies_there_now(folder, key):
    """Somebody puts the signed certificate in the place of a forged one that was just read."""
    assert sign(folder, key) == 0
    path = folder / "out.csv.certificate.json"
    forged = Proof(path, path.read_bytes().replace(b'"seed"', b'"seed" ', 1))
    checks = verify_by(str(folder / "out.csv"), forged, trust=[folder / "k.pub.pem"])
    assert str(checks[-1]) == "FAIL signature: is by none of the keys that --trust names"


@pytest.mark.skipif(OPENSSL is None, reason="needs OpenSSL")
def test_openssl_accepts_our_signature_and_prints_our_fingerprint(folder, capsys, key):
    assert sign(folder, key) == 0
    printed = capsys.readouterr().out.strip()
    certificate = folder / "out.csv.certificate.json"
    command = [OPENSSL, "pkeyutl", "-verify", "-pubin", "-inkey", folder / "k.pub.pem", "-rawin"]
    command += ["-in", certificate, "-sigfile", f"{certificate}.sig"]
    assert subprocess.run(command, capture_output=True).returncode == 0
    certificate.write_bytes(certificate.read_bytes() + b" ")
    assert subprocess.run(command, capture_output=True).returncode != 0
    command = [OPENSSL, "pkey", "-pubin", "-in", folder / "k.pub.pem", "-outform", "DER"]
    der = subprocess.run(command, capture_output=True, check=True).stdout
    digest = base64.b64encode(hashlib.sha256(der).digest()).decode()
    assert printed == f"SHA256:{digest}"


@pytest.mark.skipif(OPENSSL is None, reason="needs OpenSSL")
def test_a_key_made_by_openssl_signs(folder):
    made = folder / "o.pem"
    subprocess.run([OPENSSL, "genpkey", "-algorithm", "ed25519", "-out", made], check=True)
    made.chmod(0o600)
    public = folder / "o.pub.pem"
    subprocess.run([OPENSSL, "pkey", "-in", made, "-pubout", "-out", public], check=True)
    assert sign(folder, made) == 0
    assert signature(folder, public).startswith("ok")


def test_a_changed_certificate_no_longer_verifies(folder, key):
    assert sign(folder, key) == 0
    change_certificate(folder, lambda c: c["promises"][0].update(measured=12))
    assert signature(folder, folder / "k.pub.pem").startswith("FAIL signature")


@pytest.mark.parametrize("damage", [b"", b"x" * 64, b"x" * 65])
def test_a_damaged_signature_does_not_verify(folder, key, damage):
    (folder / "out.csv.certificate.json.sig").write_bytes(damage)
    assert signature(folder, folder / "k.pub.pem").startswith("FAIL signature")


def test_trust_asks_for_a_signature(folder, key, capsys):
    command = ["verify", str(folder / "out.csv"), "--trust", str(folder / "k.pub.pem")]
    assert status_of(command) == 1
    assert "FAIL signature: --trust asks for one, there is none" in capsys.readouterr().out


def test_another_key_is_not_trusted(folder, key):
    assert status_of(["sign", "--new-key", str(folder / "other"), "--unprotected"]) == 0
    assert sign(folder, key) == 0
    assert signature(folder, folder / "other.pub.pem").startswith("FAIL signature")
    assert signature(folder, folder / "other.pub.pem", folder / "k.pub.pem").startswith("ok")


def test_what_is_signed_is_the_certificate_of_that_file(folder, key, capsys):
    with open(folder / "out.csv", "a") as file:
        file.write("\n")
    assert sign(folder, key) == 2
    assert "is not the one that its certificate names" in capsys.readouterr().err


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c["promises"][0].update(holds=False),
        lambda c: c["faults"].update(changed=2),
        lambda c: c.update(promises=[]),
    ],
)
def test_what_does_not_hold_is_not_signed(folder, key, change, capsys):
    change_certificate(folder, change)
    assert sign(folder, key) == 1
    told = capsys.readouterr().err
    assert len(told.splitlines()) == 1
    assert "nothing is signed" in told
    assert not (folder / "out.csv.certificate.json.sig").exists()


def test_an_audit_that_finds_a_broken_promise_is_not_signed(folder, key, capsys):
    command = ["audit", folder / "out.csv", "-p", folder / "in.policy.yaml", "--k", "500", "-q"]
    assert status_of([str(part) for part in [*command, "-o", folder / "a.json"]]) == 1
    assert sign(folder, key, folder / "a.json") == 1
    assert "nothing is signed" in capsys.readouterr().err
    assert not (folder / "a.json.sig").exists()


def test_a_new_release_in_the_same_place_takes_the_old_signature_away(folder, key):
    assert sign(folder, key) == 0
    stale = folder / "out.csv.certificate.json.sig"
    assert _publish(folder, "out.csv", "--k", "5000") == 3
    assert stale.exists()  # nothing was published, so it is still about what is there
    assert _publish(folder, "out.csv") == 0
    assert not stale.exists()
    command = ["audit", folder / "out.csv", "-p", folder / "in.policy.yaml", "-q"]
    command = [str(part) for part in [*command, "-o", folder / "a.json"]]
    assert status_of(command) == 0
    assert sign(folder, key, folder / "a.json") == 0
    assert (folder / "a.json.sig").exists()
    assert status_of([*command, "--replace"]) == 0
    assert not (folder / "a.json.sig").exists()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_key_that_others_can_read_is_refused(folder, key, mode, capsys):
    key.chmod(mode)
    assert sign(folder, key) == 2
    expected = f"can be read by others (mode {mode:04o}); run 'chmod 600 {key}'"
    assert expected in capsys.readouterr().err


def test_a_key_is_never_overwritten(folder, key, capsys):
    before = key.read_bytes()
    assert status_of(["sign", "--new-key", str(folder / "k"), "--unprotected"]) == 2
    key.unlink()
    assert status_of(["sign", "--new-key", str(folder / "k"), "--unprotected"]) == 2
    assert not key.exists()
    assert before
    assert "a key is never overwritten" in capsys.readouterr().err


def test_the_private_key_is_its_owners_alone(folder, key):
    assert key.stat().st_mode & 0o777 == 0o600


def test_what_is_not_a_private_key_is_refused(folder, key, capsys):
    for content in (b"", b"x"):
        key.write_bytes(content)
        assert sign(folder, key) == 2
        assert "is not an Ed25519 private key in PEM; make one with" in capsys.readouterr().err
    assert sign(folder, folder / "k.pub.pem") == 2
    assert "is a public key" in capsys.readouterr().err


@pytest.mark.skipif(OPENSSL is None, reason="needs OpenSSL")
def test_a_key_of_another_kind_is_refused(folder, capsys):
    made = folder / "ec.pem"
    command = [OPENSSL, "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]
    subprocess.run([*command, "-out", made], check=True, capture_output=True)
    made.chmod(0o600)
    assert sign(folder, made) == 2
    assert "is not an Ed25519 private key in PEM" in capsys.readouterr().err


def test_what_is_not_a_public_key_is_refused(folder, key, tmp_path, capsys):
    verify = ["verify", str(folder / "out.csv"), "--trust"]
    assert status_of([*verify, str(key)]) == 2
    assert "is not an Ed25519 public key in PEM" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert status_of([*verify, str(tmp_path / "empty")]) == 2
    assert "holds no *.pub.pem" in capsys.readouterr().err
    assert status_of([*verify, str(tmp_path / "none.pub.pem")]) == 2


def test_a_key_that_a_fixed_signature_suits_is_refused(folder, key, capsys):
    """The points of order 1, 2, 4 and 8, each with both signs of x and y also beyond the prime."""
    prime = 2**255 - 19
    eighth = int.from_bytes(
        bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"), "little"
    )
    of_small_order = (1, prime - 1, 0, eighth, prime - eighth, prime, prime + 1)
    identity = (1).to_bytes(32, "little") + bytes(32)
    (folder / "out.csv.certificate.json.sig").write_bytes(identity)
    for y, sign_of_x in itertools.product(of_small_order, (0, 1)):
        raw = (y | sign_of_x << 255).to_bytes(32, "little")
        der = bytes.fromhex("302a300506032b6570032100") + raw
        body = base64.b64encode(der).decode()
        (folder / "small.pub.pem").write_text(
            f"-----BEGIN PUBLIC KEY-----\n{body}\n-----END PUBLIC KEY-----\n"
        )
        for trusted in (folder / "small.pub.pem", folder):
            assert status_of(["verify", str(folder / "out.csv"), "--trust", str(trusted)]) == 2
            assert "accepts signatures that need no key" in capsys.readouterr().err


def test_a_passphrase_protects_the_key(folder, monkeypatch, capsys):
    monkeypatch.setenv("SHOAL_KEY_PASSPHRASE", "horse battery")
    assert status_of(["sign", "--new-key", str(folder / "safe")]) == 0
    assert b"ENCRYPTED" in (folder / "safe.pem").read_bytes()
    assert sign(folder, folder / "safe.pem") == 0
    assert "fewer than" not in capsys.readouterr().err
    monkeypatch.setenv("SHOAL_KEY_PASSPHRASE", "short")
    assert status_of(["sign", "--new-key", str(folder / "weak")]) == 0
    assert "the passphrase has fewer than 12 characters" in capsys.readouterr().err
    monkeypatch.setenv("SHOAL_KEY_PASSPHRASE", "wrong")
    assert sign(folder, folder / "safe.pem") == 2
    assert "the passphrase is wrong; correct SHOAL_KEY_PASSPHRASE" in capsys.readouterr().err
    for unfit in ("x" * 2000, "half a character \udcff"):
        monkeypatch.setenv("SHOAL_KEY_PASSPHRASE", unfit)
        assert status_of(["sign", "--new-key", str(folder / "unfit")]) == 2
        assert "take another" in capsys.readouterr().err
    for empty in ("", " " * 20):
        monkeypatch.setenv("SHOAL_KEY_PASSPHRASE", empty)
        assert status_of(["sign", "--new-key", str(folder / "empty")]) == 2
        assert not (folder / "empty.pem").exists()


def test_nobody_is_asked_where_there_is_no_terminal(folder, key, monkeypatch):
    environment = {k: v for k, v in os.environ.items() if k != "SHOAL_KEY_PASSPHRASE"}
    command = [sys.executable, "-m", "shoal", "sign", "--new-key", str(folder / "safe")]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment
    )
    assert done.returncode == 2
    assert "nobody can be asked for a passphrase" in done.stderr


def test_the_extra_is_named_where_it_is_missing(folder, key, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives", None)
    assert sign(folder, key) == 4
    assert status_of(["sign", "--new-key", str(folder / "new")]) == 4
    trusting = ["verify", str(folder / "out.csv"), "--trust", str(folder / "k.pub.pem")]
    assert status_of(trusting) == 4
    assert status_of(["verify", str(folder / "out.csv")]) == 0
    assert "[sign]" in capsys.readouterr().err


def test_the_certificate_of_an_audit_is_signed_where_it_is_named(folder, key):
    audit = ["audit", str(folder / "out.csv"), "-p", str(folder / "in.policy.yaml"), "-q"]
    proof = folder / "again.json"
    assert status_of([*audit, "-o", str(proof)]) == 0
    assert sign(folder, key, proof) == 0
    checks = shoal.verify(folder / "out.csv", proof, trust=[folder / "k.pub.pem"])
    assert by_name(checks)["signature"] is True


def test_a_signed_release_of_a_ledger_stays_part_of_it(folder, key):
    wearers, ledger = folder / "w.csv", folder / "ledger"
    for seed in ("1", "2"):
        sample = ["sample", "wearables", "-n", "100", "--seed", seed, "-o", str(wearers), "-q"]
        assert status_of([*sample, "--replace"]) == 0
        republish = ["republish", str(wearers), "-p", str(folder / "w.policy.yaml"), "-q"]
        assert status_of([*republish, "--ledger", str(ledger), "--sign", str(key)]) == 0
    for release in ("0001", "0002"):
        proof = ledger / release / "certificate.json"
        checks = shoal.verify(ledger / release / "data.csv", proof, trust=[folder / "k.pub.pem"])
        assert by_name(checks)["signature"] is True
    assert shoal.verify_ledger(ledger)[0] == 2
    (ledger / "0001" / "other.sig").write_bytes(b"x")
    with pytest.raises(shoal.LedgerError):
        shoal.verify_ledger(ledger)


def test_a_signature_that_was_interrupted_is_made_up_for(folder, key):
    assert status_of(["sample", "wearables", "-n", "100", "-o", str(folder / "w.csv"), "-q"]) == 0
    republish = ["republish", str(folder / "w.csv"), "-p", str(folder / "w.policy.yaml"), "-q"]
    republish += ["--ledger", str(folder / "ledger")]
    assert status_of(republish) == 0
    assert status_of([*republish, "--sign", str(key)]) == 0
    assert (folder / "ledger" / "0001" / "certificate.json.sig").exists()


# What a reader learns


def test_a_failed_check_gives_both_figures(folder):
    def forged(content):
        content["columns"][0]["loss"] = 0.5

    honest = json.loads((folder / "out.csv.certificate.json").read_text())
    change_certificate(folder, forged)
    found = {check.name: check for check in everything(folder)}["measured again"]
    name, loss = honest["columns"][0]["name"], honest["columns"][0]["loss"]
    assert found.ok is False
    assert f"column '{name}', loss: 0.5 stated, {loss:.6g} measured" in found.text


def test_a_risk_is_named_in_words_with_its_unit(folder):
    change_certificate(folder, lambda content: content["risk"].update(journalist_max=0.5))
    found = {check.name: check.text for check in everything(folder)}
    assert "the journalist's greatest chance (a share): 0.5 stated" in found["measured again"]
    assert "the journalist's greatest chance is not the prosecutor's" in found["figures"]
    assert "journalist_max" not in "".join(found.values())
