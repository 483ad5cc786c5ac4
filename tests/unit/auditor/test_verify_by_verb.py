"""Releases of every verb verify with all that their owner has; no verb hides what was changed."""

import json
import random
from pathlib import Path

import polars as pl
import pytest

import shoal
from certified_cases import failed, with_new_hash
from sample_policies import content_of
from shoal.auditor.description import policy_identity
from shoal.auditor.signatures import new_key, open_key
from shoal.cli.main import status_of
from shoal.policy.policy import Policy

METHODS = {"publish": "mondrian", "stream": "fads", "republish": "crp"}
PARTS = ("stream", "republish")


def people(n: int = 60) -> pl.DataFrame:
    chance = random.Random(4)
    return pl.DataFrame(
        {
            "person": [f"p{i // 2 if i < 20 else i}" for i in range(n)],
            "age": [str(chance.randint(18, 90)) for _ in range(n)],
            "sex": [chance.choice("fm") for _ in range(n)],
            "disease": [chance.choice(["flu", "asthma", "ulcer"]) for _ in range(n)],
        }
    )


def policy(method: str | None, *, subject: bool = True) -> dict:
    attributes = {
        "person": "subject" if subject else "drop",
        "age": {"role": "quasi", "type": "number", "domain": [0, 100]},
        "sex": {"role": "quasi", "hierarchy": {"tree": {"any": ["f", "m"]}}},
        "disease": "sensitive",
    }
    content = content_of(attributes, 3, seed=3)
    if method is not None:
        content["method"] = {"name": method} | ({"delta": 30} if method == "fads" else {})
    return content


class Released:
    """A release of one verb, with all that its owner has."""

    def __init__(self, folder: Path, verb: str, asked: dict, frame: pl.DataFrame) -> None:
        folder.mkdir()
        self.folder, self.verb, self.policy = folder, verb, folder / "policy.json"
        self.source, self.out = folder / "in.csv", folder / "out.csv"
        self.proof = folder / "out.csv.certificate.json"
        frame.write_csv(self.source)
        self.policy.write_text(json.dumps(asked))
        if verb == "republish":
            self.out, self.proof = (
                folder / "ledger" / "0001" / name for name in ("data.csv", "certificate.json")
            )
        where = ["--ledger", folder / "ledger"] if verb == "republish" else ["-o", self.out]
        where += ["--checkpoint", folder / "state"] if verb == "stream" else []
        self.trace = folder / "trace.jsonl" if verb == "publish" else None
        where += ["--trace", self.trace] if self.trace else []
        command = [verb, self.source, "-p", self.policy, *where, "-q"]
        assert status_of([str(part) for part in command]) == 0

    def checked(self, asked: Policy | None = None, **more) -> dict[str, shoal.Check]:
        asked = asked or Policy.load(self.policy)
        given = {"original": self.source, "trace": self.trace} | more
        found = shoal.verify(self.out, self.proof, asked, **given)
        return {check.name: check for check in found}


@pytest.fixture(scope="module", params=METHODS)
def honest(request, tmp_path_factory) -> Released:
    asked = policy(METHODS[request.param])
    folder = tmp_path_factory.mktemp("verbs") / request.param
    frame = people().unique("person", maintain_order=True)
    return Released(folder, request.param, asked, people() if request.param == "publish" else frame)


def test_an_honest_release_of_every_verb_passes_beside_its_original(honest):
    checks = honest.checked()
    assert failed(checks) == []
    assert checks["input"].ok is True
    again = checks["measured again"]
    assert again.ok is (True if honest.verb == "publish" else None)
    way_out = {
        "stream": "'shoal audit RELEASED -p POLICY --original SOURCE --trace FILE'",
        "republish": "'shoal audit --ledger LEDGER'",
    }
    assert way_out.get(honest.verb, "") in again.text
    for kept in honest.folder.glob("ledger/policy.json"):
        found = shoal.verify(honest.out, honest.proof, policy=kept)
        assert [check for check in found if check.ok is False] == []


def test_the_certificate_of_an_audit_verifies_whatever_verb_ordered_the_rows(honest):
    found = honest.folder / "audited.json"
    command = ["audit", honest.out, "-p", honest.policy, "-o", found, "-q"]
    assert status_of([str(part) for part in command]) == 0
    order = json.loads(found.read_text())["output"]["dialect"]["order"]
    assert order == (None if honest.verb == "stream" else "content")
    checks = shoal.verify(honest.out, found, honest.policy)
    assert [check for check in checks if check.ok is False] == []


def test_an_honest_release_of_every_verb_gets_a_dossier(honest, capsys):
    context, page = honest.folder / "context.yaml", honest.folder / "dossier.html"
    context.write_text("version: 1\n")
    command = ["dossier", honest.out, honest.proof, "-p", honest.policy]
    command += ["--original", honest.source, "--context", context, "-o", page]
    assert status_of([str(part) for part in command]) == 0
    assert f"wrote {page} and {page.with_suffix('.json')}" in capsys.readouterr().err
    initial = json.loads(page.with_suffix(".json").read_text())["initial_risk"]
    assert 0 < initial["alone"] <= 1


BAD = {
    "a short line": ("csv", "p7,40\n"),
    "an open quote": ("csv", 'p7,40,f,"flu\n'),
    "broken JSON": ("jsonl", '{"person": "p7", \n'),
    "a list": ("jsonl", '{"person": "p7", "age": [1], "sex": "f", "disease": "flu"}\n'),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_source_with_records_that_its_stream_set_aside_fails_nothing(kind, tmp_path, shoal):
    suffix, line = BAD[kind]
    source, asked = tmp_path / f"in.{suffix}", tmp_path / "p.json"
    asked.write_text(json.dumps(policy("fads")))
    frame = people().unique("person", maintain_order=True)
    text = frame.write_csv() if suffix == "csv" else frame.write_ndjson()
    source.write_text(text + line)  # an open quote takes in all that follows it
    out, trace = tmp_path / "out.csv", tmp_path / "t.jsonl"
    run = (source, "-p", asked, "-o", out, "--checkpoint", tmp_path / "st", "--trace", trace)
    assert shoal("stream", *run, "-q").status == 0
    stated = json.loads((tmp_path / "out.csv.certificate.json").read_text())
    assert stated["records"]["rejected"] == 1
    beside = ("-p", asked, "--original", source, "--trace", trace)
    assert shoal("audit", out, *beside, "-q").status == 0
    verified = shoal("verify", out, *beside, status=0)
    assert "'shoal audit RELEASED -p POLICY --original SOURCE --trace FILE'" in verified.out
    # another source is still found out
    source.write_text(source.read_text().replace("p7", "p8"))
    assert shoal("verify", out, *beside, "-q").status == 1


# Where the policy names no method, nobody but the certificate says what made the release


@pytest.mark.parametrize("verb", PARTS)
def test_what_keeps_rows_unmatched_is_not_left_to_the_certificate(verb, tmp_path, capsys):
    frame = people().unique("person", maintain_order=True)
    release = Released(tmp_path / verb, verb, policy(None), frame)
    checks = release.checked()
    assert failed(checks) == ["measured again"]
    name = METHODS[verb]
    assert f"name its method, method='{name}'" in checks["measured again"].text
    command = ["verify", release.out, release.proof, "-p", release.policy, "-q"]
    command += ["--original", release.source, "--method"]
    assert [status_of([*map(str, command), way]) for way in (name, "mondrian")] == [0, 1]
    # a key that the reader trusts says it, too
    new_key(str(tmp_path / "k"), None)
    open_key(tmp_path / "k.pem", lambda _: "").sign(release.proof)
    assert failed(release.checked(trust=[tmp_path / "k.pub.pem"])) == []


# A forger changes the release and says that another verb made it


def _swapped(release: Released) -> bytes:
    """The release, with two people's diseases exchanged: no figure of the file alone changes but
    those that count values in a class.
    """
    lines = release.out.read_text().splitlines()
    rows = [line.rsplit(",", 1) for line in lines]
    first, second = next(
        (i, j)
        for i in range(1, len(rows))
        for j in range(i + 1, len(rows))
        if rows[i][0] == rows[j][0] and rows[i][1] != rows[j][1]
    )
    rows[first][1], rows[second][1] = rows[second][1], rows[first][1]
    return ("\n".join(",".join(row) for row in rows) + "\n").encode()


AUDIT = {"verb": "audit", "method": None, "seed": None}
STREAM = {"verb": "stream", "stream": {}}
MADE_UP = {
    "stream, as a whole": STREAM | {"measured": "whole"},
    "stream, by release": STREAM | {"measured": "release by release", "together": None},
    "republish": {
        "verb": "republish",
        "covers": "table",
        "guards": "cells",
        "history": {"holds": True, "allowed": False, "findings": []},
        "ledger": {"release": 1, "previous": "0" * 64},
    },
    "audit": AUDIT,
    "audit of rows": AUDIT | {"people": "unknown", "counted": "rows"},
    "fuse": {"verb": "fuse", "fusion": {}, "input": None},
}


@pytest.fixture(scope="module", params=["named", "unnamed", "assumed"])
def forged(request, tmp_path_factory) -> Released:
    asked = policy("mondrian" if request.param == "named" else None)
    if request.param == "assumed":
        asked = policy(None, subject=False)
    folder = tmp_path_factory.mktemp("forged") / request.param
    release = Released(folder, "publish", asked, people())
    assert failed(release.checked()) == []
    release.honest = json.loads(release.proof.read_text())
    release.out.write_bytes(_swapped(release))
    return release


@pytest.mark.parametrize("name", MADE_UP)
def test_no_verb_hides_that_cells_were_exchanged(forged, name):
    content = json.loads(json.dumps(forged.honest)) | MADE_UP[name]
    content["policy"] = policy_identity(Policy.load(forged.policy), content["verb"])
    if content["verb"] == "stream":
        content["records"] |= dict.fromkeys(("held", "dropped", "rejected", "waiting"), 0)
    if content["verb"] == "fuse":
        content["records"]["in"] = None
    if name in ("audit of rows", "fuse"):
        content["subjects"] = content["records"]["out"]
    forged.proof.write_text(json.dumps(content))
    with_new_hash(forged.out)
    checks = forged.checked()
    assert checks["file"].ok is True
    assert failed(checks), [str(check) for check in checks.values()]


def test_shares_of_values_by_rows_contradict_no_finding_about_people(folder):
    # the person of two rows weighs once where people are counted, and twice where rows are
    cells = ["x", None, "y", "y", None, "z"]
    table = pl.DataFrame({"age": [1] * 6, "d": cells, "who": ["a", "b", "c", "c", "d", "e"]})
    attributes = {"age": {"role": "quasi", "type": "number"}, "d": {"role": "sensitive"}}
    asked = {"model": "alpha-k-anonymity", "attribute": "d", "alpha": 0.7, "k": 3}
    policy = content_of(attributes | {"who": {"role": "subject"}}, 3, asked, missing="value")
    table.write_csv("t.csv")
    shoal.publish_file("t.csv", policy, "o.csv")
    checks = {check.name: check.ok for check in shoal.verify("o.csv", policy=policy)}
    assert checks["measured again"] is not False
