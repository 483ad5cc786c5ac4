"""`shoal party`: its sub-commands, and the short spelling that older scripts have."""

from pathlib import Path

import pytest
import yaml

AGREEMENT = "bank.parties.yaml"


@pytest.fixture
def runs(monkeypatch):
    """What `shoal party run` was asked for, without running it."""
    runs = []

    def take_part(asked, progress):
        runs.append((asked.name, asked.parties, asked.output, asked.keys, asked.patience))

    monkeypatch.setattr("shoal.fusion.party.take_part", take_part)
    return runs


@pytest.mark.parametrize(
    "command",
    [
        ("run", "bank", AGREEMENT, "-o", "out.csv", "--keys", "k", "--patience", "7"),
        ("bank", AGREEMENT, "-o", "out.csv", "--keys", "k", "--patience", "7"),
        ("-o", "out.csv", "--keys", "k", "--patience", "7", "bank", AGREEMENT),
        ("-o", "out.csv", "run", "bank", AGREEMENT, "--keys", "k", "--patience", "7"),
    ],
)
def test_a_party_runs_with_and_without_the_word_run(runs, shoal, command):
    assert shoal("party", *command).status == 0
    assert runs == [("bank", AGREEMENT, "out.csv", Path("k"), 7.0)]


@pytest.mark.parametrize("command", [("init", "bank", "--keys"), ("--keys",)])
def test_keys_are_made_wherever_the_options_stand(shoal, tmp_path, command):
    more = () if command[0] == "init" else ("init", "bank")
    assert shoal("party", *command, str(tmp_path), *more, "-q").status == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bank.crt", "bank.key"]


def test_the_hash_of_an_agreement_is_shown(shoal, folder):
    assert shoal("sample", "bank", "-n", "60", "-o", "bank", "-q").status == 0
    agreement = next(folder.rglob(AGREEMENT))
    assert shoal("party", "bank", str(agreement), "--check").out.startswith("sha256:")


def test_the_command_that_showed_the_hash_names_the_new_one(shoal):
    result = shoal("party", "show", "bank.parties.yaml", status=2)
    assert result.err == "shoal: party show: write 'shoal party NAME PARTIES.yaml --check'\n"


def test_an_agreement_whose_certificate_is_none_has_no_hash(shoal, folder):
    assert shoal("sample", "bank", "-n", "60", "-o", "bank", "-q").status == 0
    agreement = next(folder.rglob(AGREEMENT))
    (agreement.parent / "bank.crt").write_bytes(b"\xffgarbage")
    content = yaml.safe_load(agreement.read_text())
    content["parties"][0]["certificate"] = "bank.crt"
    agreement.write_text(yaml.safe_dump(content))
    shown = shoal("party", "bank", str(agreement), "--check", status=2)
    assert "certificate 'bank.crt': is not a certificate (PEM); take the .crt file" in shown.err


def test_without_arguments_the_commands_are_listed(shoal):
    shown = shoal("party").out
    assert all(word in shown for word in ("init", "run"))
