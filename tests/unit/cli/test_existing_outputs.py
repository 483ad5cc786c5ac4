"""A verb refuses an output that is there before it does any work, unless --replace is said."""

from __future__ import annotations

from pathlib import Path

import pytest

SAID = "shoal: output 'out{}': is there already; name a new file, or say --replace\n"


@pytest.fixture
def place(tmp_path, monkeypatch, shoal):
    monkeypatch.chdir(tmp_path)
    assert shoal("sample", "patients", "-n", "200", "--seed", "1", "-o", "in.csv", "-q").status == 0
    return tmp_path


# that the inputs are not there shows that nothing is read before
@pytest.mark.parametrize(
    ("words", "suffix"),
    [
        ("publish in.csv -p in.policy.yaml -o out.csv", ".csv"),
        ("publish in.csv -p in.policy.yaml -o new.csv --trace out.jsonl", ".jsonl"),
        ("audit missing.csv -p in.policy.yaml -o out.json", ".json"),
        ("audit --ledger missing -o out.json", ".json"),
        ("attack missing.csv -p in.policy.yaml --original in.csv -o out.json", ".json"),
        ("compare missing.csv -p in.policy.yaml -o out.json", ".json"),
        ("dossier missing.csv --context missing.yaml -o out.html", ".html"),
        ("dossier missing.csv --context missing.yaml -o out.html", ".json"),
        ("hierarchies edit missing.csv {remove:A} -o out.csv", ".csv"),
        ("ledger export missing -o out.csv", ".csv"),
        ("sample purchases -o out.csv", ".csv"),
        ("sign out --key missing.pem", ".certificate.json.sig"),
    ],
)
def test_an_output_that_is_there_is_refused_before_any_work(place, shoal, words, suffix):
    kept = place / f"out{suffix}"
    kept.write_text("mine")
    result = shoal(*words.split())
    assert (result.status, result.err) == (2, SAID.format(suffix))
    assert kept.read_text() == "mine"
    assert "is there already" not in shoal(*words.split(), "--replace").err


def test_a_fusion_refuses_a_release_that_is_there_before_any_party_starts(place, shoal):
    assert shoal("sample", "bank", "-n", "60", "-o", "bank", "-q").status == 0
    Path("out.csv").write_text("mine")
    for words in ("fuse bank/bank.parties.yaml",):
        result = shoal(*words.split(), "-o", "out.csv")
        assert (result.status, result.err) == (2, SAID.format(".csv"))
    assert Path("out.csv").read_text() == "mine"


def test_a_sample_is_written_again_with_replace_and_its_policy_stays(place, shoal):
    policy = Path("in.policy.yaml").read_text() + "# mine\n"
    Path("in.policy.yaml").write_text(policy)
    again = shoal("sample", "patients", "-n", "100", "-o", "in.csv", "--replace")
    assert again.status == 0
    assert len(Path("in.csv").read_text().splitlines()) == 101
    assert Path("in.policy.yaml").read_text() == policy
