"""Where a fusion writes: what is in the way is said before any party begins."""

import json
import os
import signal
from functools import partial
from pathlib import Path

import pytest
import yaml

from left_by_kills import left_by_kills, put_back
from shoal.connectors.outputs import sole_writer, sweep
from shoal.errors import InputError
from shoal.fusion.conversation import read_messages
from shoal.fusion.fuse import _prepared, _tables_of
from shoal.policy.agreement import Agreement


@pytest.fixture
def bank(shoal, folder) -> Path:
    """A folder with the agreement and the tables of the bundled sample; the shell stands in it."""
    assert shoal("sample", "bank", "-n", "60", "-o", "demo", "-q").status == 0
    return folder


@pytest.fixture
def fuse(shoal, bank, monkeypatch):
    """Runs `shoal fuse` on the sample; no party may begin."""

    def begun(*_):
        raise AssertionError("a party began")

    monkeypatch.setattr("shoal.fusion.fuse.run_to_end", begun)
    return partial(shoal, "fuse", "demo/bank.parties.yaml")


def test_a_transcript_that_is_a_file_is_refused(fuse, bank):
    (bank / "t").write_text("x")
    refused = fuse("-o", "out.csv", "--transcript", "t", status=2)
    assert "transcript 't': is not a folder" in refused.err
    assert not (bank / ".out.csv.fuse").exists()


def test_a_folder_in_place_of_the_certificate_is_refused(fuse, bank):
    (bank / "out.csv.certificate.json").mkdir()
    said = "output 'out.csv.certificate.json': can't be written"
    assert said in fuse("-o", "out.csv", status=2).err


@pytest.mark.parametrize("obstacle", ["file", "link", "folder"])
def test_what_is_no_fusions_folder_is_neither_used_nor_deleted(fuse, bank, obstacle):
    place = bank / ".out.csv.fuse"
    if obstacle == "file":
        place.write_text("mine")
    elif obstacle == "link":
        place.symlink_to("elsewhere")
    else:
        place.mkdir()
        (place / "mine.txt").write_text("mine")
    assert "is in the way of this fusion's journals" in fuse("-o", "out.csv", status=2).err
    assert os.path.lexists(place)


def test_a_damaged_mark_means_a_fresh_beginning(bank):
    agreement = Agreement.of("demo/bank.parties.yaml")
    folder = bank / ".out.csv.fuse"
    local = _prepared(agreement, folder, _tables_of(agreement))
    assert _prepared(agreement, folder, _tables_of(agreement)) == local
    before = local.read_bytes()
    (folder / "asked.json").write_bytes(b"\xff\xfe")
    _prepared(agreement, folder, _tables_of(agreement))
    assert json.loads((folder / "asked.json").read_text())
    assert local.read_bytes() != before  # other keys and ports


def test_a_run_that_was_killed_before_its_keys_were_made_is_begun_anew(bank):
    folder = bank / ".out.csv.fuse"
    folder.mkdir()
    agreement = Agreement.of("demo/bank.parties.yaml")
    assert _prepared(agreement, folder, _tables_of(agreement)).exists()


def test_a_folder_that_a_kill_left_half_removed_is_no_obstacle(bank):
    """Its mark may be gone by then, and what is left be taken for somebody else's."""
    folder = bank / ".out.csv.fuse"
    agreement = Agreement.of("demo/bank.parties.yaml")
    prepared = partial(_prepared, agreement, folder, _tables_of(agreement))
    prepared()
    (folder / "asked.json").write_bytes(b"of another fusion")
    states = left_by_kills(bank, prepared)
    assert len(states) > 10
    for left in states:
        put_back(bank, left)
        assert prepared().exists()
        sweep(bank)
        assert [path.name for path in bank.glob(".*")] == [folder.name]


def test_a_second_fusion_into_the_same_file_is_refused(fuse, bank):
    with sole_writer([Path("out.csv")]):
        assert "output 'out.csv'" in fuse("-o", "out.csv", status=2).err


def test_a_seed_that_a_certificate_can_not_hold_is_refused_at_once(fuse, bank, shoal):
    path = bank / "demo" / "bank.parties.yaml"
    content = yaml.safe_load(path.read_text()) | {"seed": 2**63}
    path.write_text(yaml.safe_dump(content))
    assert fuse("-o", "out.csv").status == 2
    assert shoal("sample", "patients", "-n", "60", "-o", "p.csv", "-q").status == 0
    asked = ("publish", "p.csv", "-p", "p.policy.yaml", "-o", "r.csv", "--k", "3", "-q")
    assert shoal(*asked, "--seed", str(2**63)).status == 2
    assert shoal(*asked, "--seed", str(2**63 - 1)).status == 0
    verify = ("verify", "r.csv", "-p", "p.policy.yaml", "--k", "3", "--seed", str(2**63 - 1))
    assert shoal(*verify).status == 0


def test_a_party_neither_waits_for_ever_nor_in_a_file(shoal, bank):
    assert shoal("party", "init", "zed", "--keys", "demo/bank.parties.yaml").status == 2
    endless = shoal("party", "run", "bank", "demo/bank.parties.yaml", "--patience", "inf", status=2)
    assert "no party waits for ever" in endless.err


def test_messages_that_never_end_are_not_read(bank):
    os.mkfifo(bank / "bank.messages")
    agreement = Agreement.load(bank / "demo" / "bank.parties.yaml")
    with pytest.raises(InputError, match="is not a regular file"):
        read_messages(bank, "bank", agreement)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no device that never ends")
def test_a_certificate_that_never_ends_is_not_read(bank):
    signal.alarm(20)
    try:
        content = yaml.safe_load((bank / "demo" / "bank.parties.yaml").read_text())
        for party in content["parties"]:
            party |= {"address": "127.0.0.1:1", "certificate": "/dev/zero"}
        agreement = Agreement.from_dict(content, bank / "demo")
        with pytest.raises(InputError, match=r"certificate .*: is not a regular file"):
            agreement.peer("bank")
    finally:
        signal.alarm(0)
