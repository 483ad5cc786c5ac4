"""Verify and sign: what a reader with two files finds out, and what a forger can't hide."""

import base64
import hashlib
import itertools
import json
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest

import shoal as library
from certified_cases import (
    PUBLISH,
    alone,
    checked,
    content_of,
    failed,
    forge,
    people,
    publish,
    run,
    setting,
    with_new_hash,
)
from sample_policies import content_of as policy_content
from shoal.auditor.description import policy_identity, policy_sha256
from shoal.auditor.signatures import Proof
from shoal.auditor.verify import verify_by
from shoal.cli.main import status_of
from shoal.errors import InputError
from shoal.policy import registry
from shoal.policy.policy import Policy

OPENSSL = shutil.which("openssl")
needs_openssl = pytest.mark.skipif(OPENSSL is None, reason="needs OpenSSL")
SIGNATURE = "out.csv.certificate.json.sig"


# What is true


def test_people_whom_nothing_names_are_left_uncounted_rather_than_wrong(certified):
    without_trace = checked(certified, trace=False)
    assert without_trace["measured again"].ok is None
    assert without_trace["input"].ok is True
    assert checked(certified, original=False)["measured again"].ok is None


def test_rows_in_another_order_than_the_certificate_states_are_found(copied):
    rows = (copied / "out.csv").read_bytes().splitlines(keepends=True)
    (copied / "out.csv").write_bytes(b"".join([rows[0], *rows[:0:-1]]))
    with_new_hash(copied / "out.csv")
    found = checked(copied, original=False)["measured again"]
    assert found.ok is False
    assert found.text == "rows are not in the order that the certificate states"


def test_a_release_from_when_rows_kept_the_input_s_order_is_matched_by_it(copied):
    policy = copied / "policy.yaml"
    before = policy.read_text()
    pl.read_csv(copied / "in.csv").sort("age").write_csv(copied / "in.csv")
    policy.write_text(before + "render: {order: input}\n")
    assert run(copied, PUBLISH) == 0
    policy.write_text(before)  # which was the default then

    def to_earlier(content):
        content["policy"] = policy_identity(Policy.load(policy), "publish")
        del content["output"]["dialect"]["order"]
        others = [one for one in content["warnings"] if one["code"] != "order-kept"]
        assert len(others) < len(content["warnings"])
        content["warnings"] = others

    forge(copied, to_earlier)
    assert checked(copied, trace=False)["measured again"].ok is True


def test_a_generalized_loss_is_measured_again_and_one_of_earlier_builds_is_known(copied):
    known = {"age": {"role": "quasi", "type": "number"}, "sex": {"role": "quasi"}}
    frame = people().select("age", "sex").with_columns(pl.col("age").replace("50", ""))
    publish(copied, frame, policy_content(known, 4, method={"name": "mondrian"}))
    made = content_of(copied)["utility"]
    alone = library.audit_file(copied / "out.csv", copied / "policy.yaml")["utility"]
    assert alone["generalized_loss"] == made["generalized_loss"] > made["gcp"]
    for loss, is_so in ((made["gcp"], True), (made["gcp"] / 2, False), (0.99, False)):
        forge(copied, setting("utility", "generalized_loss", loss))
        assert (failed(checked(copied)) == []) is is_so, loss


def test_a_certificate_of_a_stream_that_went_on_says_so(copied):
    def to_stream(content):
        content |= {"verb": "stream", "stream": {}, "measured": "whole"}
        content["records"] |= dict.fromkeys(("held", "dropped", "rejected", "waiting"), 0)

    forge(copied, to_stream)
    with open(copied / "out.csv", "ab") as file:
        file.write((copied / "out.csv").read_bytes().splitlines(keepends=True)[-1])
    said = alone(copied)["file"]
    assert said.ok is False
    assert said.text.startswith("begins with the one certified, its first ")
    assert "the stream went on, and this certificate says nothing about the rest" in said.text


def test_limits_on_attacks_that_nobody_judged_are_found(copied):
    policy = copied / "policy.yaml"
    policy.write_text(policy.read_text() + "accept: {certain: 0.5}\n")
    assert "promises" in failed(checked(copied, trace=False))


def test_a_certificate_may_lie_elsewhere(copied):
    elsewhere = (copied / "out.csv.certificate.json").rename(copied / "proof.json")
    assert alone(copied, certificate=elsewhere)["file"].ok is True


# What was changed


def test_changed_bytes_are_found_and_a_missing_row_even_with_a_new_hash(copied):
    whole = (copied / "out.csv").read_bytes()
    for at in (0, len(whole) // 2, len(whole) - 2):
        (copied / "out.csv").write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert "file" in failed(alone(copied))
    (copied / "out.csv").write_bytes(b"".join(whole.splitlines(keepends=True)[:-1]))
    with_new_hash(copied / "out.csv")
    assert "rows" in failed(alone(copied))


def without_promises(content):
    content |= {"promises": [], "output": None, "warnings": []}
    content["together"] |= {"asked": None, "below": None}


@pytest.mark.parametrize(
    ("change", "fails"),
    [
        (setting("promises", 0, "holds", False), ["promises"]),
        (setting("faults", "uncovered", 1), ["promises"]),
        (without_promises, ["promises", "file"]),
    ],
    ids=["broken promise", "faults", "neither promises nor a hash"],
)
def test_a_certificate_that_does_not_state_success_is_none(copied, change, fails):
    forge(copied, change)
    assert {*fails} <= {*failed(alone(copied))}


def test_another_policy_and_another_original_are_found(copied):
    asked = Policy.load(copied / "policy.yaml")
    assert not {"columns", "policy"} & {*failed(checked(copied, original=False))}
    for other in (asked.with_method("rounded-partition"), asked.with_k(7)):
        assert "policy" in failed(checked(copied, policy=other, original=False))
    assert "measured again" in failed(checked(copied, policy=asked.with_k(7)))
    with open(copied / "in.csv", "a") as table:
        table.write((copied / "in.csv").read_text().splitlines()[1] + "\n")
    assert {"input", "measured again"} <= {*failed(checked(copied))}
    forge(copied, lambda content: content["columns"].pop(0))
    assert "columns" in failed(checked(copied))


def test_a_release_by_a_method_that_is_not_installed_here_is_verified(folder, shoal, monkeypatch):
    """With the option that verifying itself says was left out."""
    shoal("sample", "patients", "-n", "300", "-o", "in.csv", "-q", status=0)
    by = ("--method", "mdav")
    words = ("in.csv", "-p", "in.policy.yaml", "-o", "out.csv", "-q")
    assert shoal("publish", *words, *by, status=0)
    monkeypatch.setattr(registry, "verb_of", lambda name: None)
    assert "such as --method mdav" in shoal("verify", "out.csv", "-p", "in.policy.yaml").out
    shoal("verify", "out.csv", "-p", "in.policy.yaml", *by, status=0)


def test_a_file_that_can_no_longer_be_parsed_fails_and_does_not_end_the_checks(copied):
    (copied / "out.csv").write_bytes(b'age,sex\n"open')
    found = checked(copied)
    assert {"file", "rows", "measured again"} <= {*failed(found)}
    assert found["input"].ok is True


def test_the_hash_of_a_policy_is_that_of_what_it_says_not_of_how_or_where(tmp_path):
    def hashed(folder, name, leaves, turn=list):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / name).write_text("".join(f"{leaf};*\n" for leaf in leaves))
        content = policy_content({"c": {"role": "quasi", "hierarchy": name}})
        return policy_sha256(Policy.from_dict(dict(turn(content.items())), tmp_path / folder))

    one = hashed("a", "tree.csv", "xy")
    assert one == hashed("b", "other.csv", "xy", lambda items: reversed([*items]))
    assert one != hashed("b", "other.csv", "xz")


@pytest.mark.parametrize("kind", ["table", "frequencies"])
def test_the_population_around_a_release_is_named_by_content(tmp_path, kind):
    """The attack: a certificate of a low risk, and another population beside the same policy."""

    def identity(folder, people):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{folder}.csv").write_text(f"c\n{people}")
        more = {"column": "share", "people": 9} if kind == "frequencies" else {}
        around = {kind: f"{folder}.csv", **more}
        content = policy_content({"c": "quasi"}, 2, population=around)
        return policy_identity(Policy.from_dict(content, base=tmp_path / folder), "publish")

    one = identity("a", "x\nx\n")
    assert one == identity("b", "x\nx\n")
    assert one["sha256"] != identity("c", "x\n")["sha256"]
    assert [file["kind"] for file in one["files"]] == ["population"]


# What can't be read


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"schema": 1}',
        '{"schema": "shoal.plan/1"}',
        '{"schema": "shoal.certificate/99"}',
        lambda honest: '{"subjects": 9,' + honest.removeprefix("{"),
        lambda honest: honest.replace('"seed": 3', '"seed": NaN'),
    ],
    ids=["empty", "list", "no keys", "a number", "a plan", "a later schema", "a key twice", "NaN"],
)
def test_what_is_not_a_certificate_of_a_schema_known_here_is_refused(copied, content):
    path = copied / "out.csv.certificate.json"
    path.write_text(content if isinstance(content, str) else content(path.read_text()))
    is_later = isinstance(content, str) and "99" in content
    way_out = "use a newer version of Shoal" if is_later else "is not a certificate of Shoal"
    with pytest.raises(InputError, match=way_out):
        library.verify(copied / "out.csv")


def test_a_certificate_of_strange_types_is_refused_or_fails(copied):
    honest = (copied / "out.csv.certificate.json").read_text()
    keys = "output records promises faults policy columns input counted".split()
    passed = []
    for key, strange in itertools.product(keys, (None, 1, "x", [], {})):
        (copied / "out.csv.certificate.json").write_text(honest)
        forge(copied, setting(key, strange))
        with suppress(InputError):
            passed += [] if failed(checked(copied)) else [(key, strange)]
    assert passed == [("faults", {}), ("input", None)]  # which state nothing that is wrong


# The command


def test_a_report_is_not_what_is_verified(copied):
    (copied / "r.html").write_text("<html>")
    with pytest.raises(InputError, match="a page is for people; name the released file, which is"):
        library.verify(copied / "r.html")


def test_grave_findings_come_first_and_the_last_line_names_them(copied, capsys):
    policy = copied / "policy.yaml"
    before = policy.read_text()
    policy.write_text(before.replace("name:\n    role: identifier", "name:\n    role: plain"))
    assert policy.read_text() != before
    assert run(copied, PUBLISH) == 0
    named = "-p policy.yaml --original in.csv --trace t.jsonl"
    capsys.readouterr()
    assert run(copied, f"verify out.csv {named}") == 0
    lines = capsys.readouterr().out.splitlines()
    count = len([line for line in lines if line.startswith("!    grave finding: ")])
    assert count > 1
    assert lines[0].startswith("!    grave finding: 'name' is not protected: it is published")
    said = f"Every promise holds; {count} grave findings in the certificate: 'name' is not"
    assert lines[-1].startswith(said)
    assert run(copied, "verify out.csv --json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in found].count("grave finding") == count
    assert (found[0]["ok"], found[0]["name"]) == (None, "grave finding")
    assert run(copied, f"audit out.csv {named}") == 0
    lines = capsys.readouterr().err.splitlines()
    lines = [line for line in lines if not line.endswith(" s)")]  # how far a slow machine is
    assert lines[0].startswith("shoal: grave: ")
    assert lines[-1] == f"Every promise holds; {count} grave findings"


# Signatures


@pytest.fixture
def key(copied, monkeypatch) -> Path:
    monkeypatch.delenv("SHOAL_KEY_PASSPHRASE", raising=False)
    assert new_key(copied, "k") == 0
    return copied / "k.pem"


def new_key(folder: Path, name: str, option: str = "--unprotected") -> int:
    return run(folder, f"sign --new-key {folder / name} {option}")


def signature(folder: Path, *trust: str) -> str:
    return str(alone(folder, trust=[folder / name for name in trust])["signature"])


def sign(folder: Path, key: str = "k.pem", certificate: str = "") -> int:
    return run(folder, f"sign out.csv {certificate} --key {key} --replace")


def audited(folder: Path, *more: str) -> int:
    return run(folder, f"audit out.csv -p policy.yaml -q -o again.json {' '.join(more)}")


def test_a_signature_is_64_bytes_and_verifies_by_a_key_that_is_trusted(copied, key):
    assert new_key(copied, "other") == 0
    for _ in range(2):  # an older signature, of these bytes or of others, gives way if asked to
        assert sign(copied) == 0
        (copied / SIGNATURE).write_bytes(b"x")
    assert sign(copied) == 0
    assert len((copied / SIGNATURE).read_bytes()) == 64
    assert signature(copied, "k.pub.pem").startswith("ok   signature: by the key in")
    assert signature(copied, ".").startswith("ok")
    assert signature(copied).startswith("--   signature: there is one, not checked: get the public")
    assert signature(copied, "other.pub.pem").startswith("FAIL signature")
    assert signature(copied, "other.pub.pem", "k.pub.pem").startswith("ok")
    forge(copied, lambda content: content["promises"][0].update(measured=12))
    assert signature(copied, "k.pub.pem").startswith("FAIL signature")


def test_what_is_signed_is_what_was_read_whatever_lies_there_now(copied, key):
    """Somebody puts the signed certificate in the place of a forged one that was just read."""
    assert sign(copied) == 0
    path = copied / "out.csv.certificate.json"
    forged = Proof(path, path.read_bytes().replace(b'"seed"', b'"seed" ', 1))
    checks = verify_by(str(copied / "out.csv"), forged, trust=[copied / "k.pub.pem"])
    assert str(checks[-1]) == "FAIL signature: is by none of the keys that trust= names"


def openssl(*words: object, **more) -> subprocess.CompletedProcess:
    return subprocess.run([str(OPENSSL), *map(str, words)], capture_output=True, **more)


@needs_openssl
def test_openssl_accepts_our_signature_and_prints_our_fingerprint(copied, capsys, key):
    assert sign(copied) == 0
    printed = capsys.readouterr().out.strip()
    certificate, public = copied / "out.csv.certificate.json", copied / "k.pub.pem"
    verify = ["pkeyutl", "-verify", "-pubin", "-inkey", public, "-rawin", "-in", certificate]
    verify += ["-sigfile", copied / SIGNATURE]
    assert openssl(*verify).returncode == 0
    certificate.write_bytes(certificate.read_bytes() + b" ")
    assert openssl(*verify).returncode != 0
    der = openssl("pkey", "-pubin", "-in", public, "-outform", "DER", check=True).stdout
    digest = base64.b64encode(hashlib.sha256(der).digest()).decode()
    assert printed == f"SHA256:{digest}"


@needs_openssl
def test_a_key_made_by_openssl_signs_and_one_of_another_kind_is_refused(copied, capsys):
    made = copied / "o.pem"
    openssl("genpkey", "-algorithm", "ed25519", "-out", made, check=True)
    made.chmod(0o600)
    openssl("pkey", "-in", made, "-pubout", "-out", copied / "o.pub.pem", check=True)
    assert sign(copied, "o.pem") == 0
    assert signature(copied, "o.pub.pem").startswith("ok")
    curve = ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]
    openssl("genpkey", *curve, "-out", made, check=True)
    assert sign(copied, "o.pem") == 2
    assert "is not an Ed25519 private key in PEM" in capsys.readouterr().err


@pytest.mark.parametrize("length", [0, 10, 64, 65])
def test_a_damaged_signature_does_not_verify(copied, key, length):
    (copied / SIGNATURE).write_bytes(b"x" * length)
    assert signature(copied, "k.pub.pem").startswith("FAIL signature")
    if length != 64:
        said = f"has {length} bytes, a signature has 64; fetch it again"
        assert alone(copied)["signature"].text == said


def test_what_is_signed_is_the_certificate_of_that_file(copied, key, capsys):
    with open(copied / "out.csv", "a") as file:
        file.write("\n")
    assert sign(copied) == 2
    assert "is not the one that its certificate names" in capsys.readouterr().err


STATED = {
    "a broken promise": setting("promises", 0, "holds", False),
    "faults": setting("faults", "changed", 2),
    "no promises": setting("promises", []),
}
FORGED = {
    "a forged class": setting("classes", "min", 60),
    "a forged risk": setting("risk", "prosecutor_max", 0.01),
}


@pytest.mark.parametrize("name", [*STATED, *FORGED])
def test_what_does_not_hold_or_is_forged_is_not_signed(copied, key, name, capsys):
    forge(copied, (STATED | FORGED)[name])
    assert sign(copied) == 1
    first, *more = capsys.readouterr().err.splitlines()
    assert "nothing is signed" in first
    assert more == [] or name in FORGED
    assert not (copied / SIGNATURE).exists()


def test_the_certificate_of_an_audit_is_signed_where_it_is_named_and_holds(copied, key, capsys):
    assert audited(copied, "--k 500") == 1
    assert sign(copied, certificate="again.json") == 1
    assert "nothing is signed" in capsys.readouterr().err
    assert not (copied / "again.json.sig").exists()
    assert audited(copied, "--replace") == 0
    assert sign(copied, certificate="again.json") == 0
    trusted = {"certificate": copied / "again.json", "trust": [copied / "k.pub.pem"]}
    assert alone(copied, **trusted)["signature"].ok is True
    assert audited(copied, "--replace") == 0
    assert not (copied / "again.json.sig").exists()


def test_a_new_release_in_the_same_place_takes_the_old_signature_away(copied, key):
    assert sign(copied) == 0
    assert run(copied, f"{PUBLISH} --k 5000") == 3
    assert (copied / SIGNATURE).exists()  # nothing was published: it is still about what is there
    assert run(copied, PUBLISH) == 0
    assert not (copied / SIGNATURE).exists()


def test_a_key_is_its_owner_s_alone_and_refused_where_others_can_read_it(copied, key, capsys):
    assert key.stat().st_mode & 0o777 == 0o600
    for mode in (0o640, 0o604, 0o666):
        key.chmod(mode)
        assert sign(copied) == 2
        expected = f"can be read by others (mode {mode:04o}); run 'chmod 600 {key}'"
        assert expected in capsys.readouterr().err


def test_a_key_is_never_overwritten(copied, key, capsys):
    before = key.read_bytes()
    assert new_key(copied, "k") == 2
    assert key.read_bytes() == before
    key.unlink()
    assert new_key(copied, "k") == 2
    assert not key.exists()
    assert "a key is never overwritten" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["", "keys/"])
def test_a_key_without_a_name_is_not_made(capsys, name):
    assert status_of(["sign", "--new-key", name, "--unprotected"]) == 2
    assert "has no name; write 'shoal sign --new-key NAME'" in capsys.readouterr().err


def test_what_is_not_a_key_is_refused(copied, key, capsys):
    def refused(status, said):
        assert status == 2
        assert said in capsys.readouterr().err

    refused(run(copied, "verify out.csv --trust k.pem"), "is not an Ed25519 public key in PEM")
    (copied / "empty.d").mkdir()
    refused(run(copied, "verify out.csv --trust empty.d"), "holds no *.pub.pem")
    refused(run(copied, "verify out.csv --trust none.pub.pem"), "none.pub.pem")
    refused(sign(copied, "k.pub.pem"), "is a public key")
    for content in (b"", b"x"):
        key.write_bytes(content)
        refused(sign(copied), "is not an Ed25519 private key in PEM; make one with")


def test_a_key_that_a_fixed_signature_suits_is_refused(copied, key, capsys):
    """The points of order 1, 2, 4 and 8, each with both signs of x and y also beyond the prime."""
    prime = 2**255 - 19
    eighth = int.from_bytes(
        bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"), "little"
    )
    of_small_order = (1, prime - 1, 0, eighth, prime - eighth, prime, prime + 1)
    (copied / SIGNATURE).write_bytes((1).to_bytes(32, "little") + bytes(32))
    for y, sign_of_x in itertools.product(of_small_order, (0, 1)):
        raw = (y | sign_of_x << 255).to_bytes(32, "little")
        body = base64.b64encode(bytes.fromhex("302a300506032b6570032100") + raw).decode()
        pem = f"-----BEGIN PUBLIC KEY-----\n{body}\n-----END PUBLIC KEY-----\n"
        (copied / "small.pub.pem").write_text(pem)
        for trusted in ("small.pub.pem", "."):
            assert run(copied, f"verify out.csv --trust {trusted}") == 2
            assert "accepts signatures that need no key" in capsys.readouterr().err


def test_a_passphrase_protects_the_key(copied, monkeypatch, capsys):
    def with_passphrase(text, name):
        monkeypatch.setenv("SHOAL_KEY_PASSPHRASE", text)
        return new_key(copied, name, "")

    assert with_passphrase("horse battery", "safe") == 0
    assert b"ENCRYPTED" in (copied / "safe.pem").read_bytes()
    assert sign(copied, "safe.pem") == 0
    assert "fewer than" not in capsys.readouterr().err
    assert with_passphrase("short", "weak") == 0
    assert "the passphrase has fewer than 12 characters" in capsys.readouterr().err
    assert sign(copied, "safe.pem") == 2
    assert "the passphrase is wrong; correct SHOAL_KEY_PASSPHRASE" in capsys.readouterr().err
    for unfit in ("x" * 2000, "half a character \udcff"):
        assert with_passphrase(unfit, "unfit") == 2
        assert "take another" in capsys.readouterr().err
    for empty in ("", " " * 20):
        assert with_passphrase(empty, "empty") == 2
        assert not (copied / "empty.pem").exists()


def test_nobody_is_asked_where_there_is_no_terminal(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("SHOAL_KEY_PASSPHRASE", raising=False)
    assert new_key(tmp_path, "safe", "") == 2
    assert "nobody can be asked for a passphrase" in capsys.readouterr().err


def test_the_extra_is_named_where_it_is_missing(copied, key, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives", None)
    assert sign(copied) == 4
    assert new_key(copied, "new") == 4
    assert run(copied, "verify out.csv --trust k.pub.pem") == 4
    assert run(copied, "verify out.csv") == 0
    assert "[sign]" in capsys.readouterr().err


def test_a_signed_release_of_a_ledger_stays_part_of_it(copied, key, capsys):
    republish = "republish w.csv -p w.policy.yaml -q --ledger L.d"
    ledger = copied / "L.d"
    for seed, signed in (("1", ""), ("1", "--sign k.pem"), ("2", "--sign k.pem")):
        assert run(copied, f"sample wearables -n 100 --seed {seed} -o w.csv -q --replace") == 0
        assert run(copied, f"{republish} {signed}") == 0  # one that was interrupted is made up for
    assert run(copied, f"{republish.replace('-q', '')} --sign k.pem") == 0
    assert "is release 0002 already; its signature was written" in capsys.readouterr().err
    for release in ("0001", "0002"):
        proof = ledger / release / "certificate.json"
        checks = library.verify(ledger / release / "data.csv", proof, trust=[copied / "k.pub.pem"])
        assert next(check.ok for check in checks if check.name == "signature") is True
    assert library.verify_ledger(ledger)[0] == 2
    (ledger / "0001" / "other.sig").write_bytes(b"x")
    with pytest.raises(library.LedgerError):
        library.verify_ledger(ledger)


# What a reader learns


def test_a_failed_check_gives_both_figures_in_words_with_their_unit(copied):
    column = content_of(copied)["columns"][0]
    forge(copied, setting("columns", 0, "loss", 0.5))
    forge(copied, setting("risk", "journalist_max", 0.5))
    found = {name: check.text for name, check in checked(copied).items()}
    again = found["measured again"]
    assert f"column '{column['name']}', loss: 0.5 stated, {column['loss']:.6g} measured" in again
    assert "the journalist's greatest chance (a share): 0.5 stated" in again
    assert "the journalist's greatest chance is not the prosecutor's" in found["figures"]
    assert "journalist_max" not in "".join(found.values())


def test_whoever_verifies_what_came_from_a_frame_is_led_to_audit(tmp_path):
    frame = pl.DataFrame({"age": [n % 5 for n in range(40)]})
    release = library.publish(frame, quasi="age", k=3)
    release.save(tmp_path / "out.csv")
    with pytest.raises(InputError, match=r"of type DataFrame; 'shoal\.audit'"):
        library.verify(tmp_path / "out.csv", policy=release.policy, original=frame)
    checks = library.verify(tmp_path / "out.csv", policy=release.policy)
    (named,) = [check for check in checks if check.name == "input"]
    said = "the certificate names none, as of a frame; 'audit' compares the release with it"
    assert named.text == said
