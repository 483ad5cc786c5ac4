"""A party with a wrong key, certificate or address ends at once, and says which file is wrong."""

import shutil
import socket

import pytest

from party_processes import bank_world
from shoal.connectors.party import tls
from shoal.fusion.request import Keys

STRANGE = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


def remade(world, name: str, named: str) -> None:
    """New keys of a party, for this name."""
    keys = Keys.of(name, world.folder)
    keys.key.unlink(), keys.certificate.unlink()
    keys.make(named)


def expired(world, monkeypatch, name: str) -> None:
    monkeypatch.setattr(tls, "_DAYS", -0.5)
    remade(world, name, name)


def other_key(world, monkeypatch) -> None:
    shutil.copy(world.folder / "office.key", world.folder / "bank.key")


def of_another_name(world, monkeypatch) -> None:
    keys = Keys.of("insurer", world.folder)
    keys.key.unlink(), keys.certificate.unlink()
    shutil.copy(world.folder / "office.crt", keys.certificate)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            lambda world, patch: (world.folder / "bank.key").write_text("no key\n"),
            "bank.key': is not a private key (PEM, without a password); take the one that",
        ),
        (other_key, "bank.key': is not the key of this party's certificate; take the one that"),
        (
            lambda world, patch: expired(world, patch, "bank"),
            "party 'bank', certificate 'bank.crt': expired on 20",
        ),
        (
            lambda world, patch: expired(world, patch, "office"),
            "party 'office', certificate 'office.crt': expired on 20",
        ),
        (
            of_another_name,
            "party 'insurer', certificate 'insurer.crt': is not made for this name; 'shoal party",
        ),
        (
            lambda world, patch: (world.folder / "office.crt").write_bytes(b"\xff\xfe"),
            "party 'office', certificate 'office.crt': is not a certificate (PEM); 'shoal party",
        ),
        (
            lambda world, patch: (world.folder / "office.crt").write_text(STRANGE),
            "party 'office', certificate 'office.crt': is not a certificate (PEM); 'shoal party",
        ),
    ],
    ids=[
        "garbage for a key",
        "another's key",
        "own certificate expired",
        "another's certificate expired",
        "a certificate for another name",
        "not a text for a certificate",
        "garbage for a certificate",
    ],
)
def test_what_is_wrong_with_a_key_or_certificate_is_said_at_once(
    tmp_path, monkeypatch, change, says
):
    world = bank_world(tmp_path, n=20)
    change(world, monkeypatch)
    world.start("bank", patience=60)
    assert world.statuses(30) == {"bank": 2}
    assert says in world.message("bank")
    assert len(world.message("bank").splitlines()) == 1
    assert not list(tmp_path.glob("bank.csv*"))


def test_all_certificates_that_are_wrong_are_named_at_once(tmp_path, monkeypatch):
    world = bank_world(tmp_path, n=20)
    for name in ("insurer", "office"):
        expired(world, monkeypatch, name)
    world.start("bank")
    assert world.statuses(30) == {"bank": 2}
    assert [line.count("expired on") for line in world.message("bank").splitlines()] == [1, 1]


def test_a_port_in_use_and_an_address_that_is_none_are_told_apart(tmp_path):
    world = bank_world(tmp_path, n=20)
    host, port = world.content["parties"][0]["address"].split(":")
    with socket.socket() as taken:
        taken.bind((host, int(port)))
        taken.listen()
        world.start("bank")
        assert world.statuses(30) == {"bank": 4}
    assert "can't be listened on (Address already in use); free it" in world.message("bank")
    shutil.rmtree(tmp_path / "bank.journal")
    world.content["parties"][0]["address"] = "127.0.0.1:port"
    world.start("bank")
    assert world.statuses(30) == {"bank": 4}
    assert "can't be listened on (it is not HOST:PORT)" in world.message("bank")


def test_who_is_not_reached_and_why(tmp_path):
    """The office does not run; the insurer runs with other keys than agreed."""
    world = bank_world(tmp_path, n=20)
    strange = tmp_path / "strange"
    strange.mkdir()
    stranger = bank_world(strange, n=20)
    for party, agreed in zip(stranger.content["parties"], world.content["parties"], strict=True):
        party["address"] = agreed["address"]
    stranger.start("insurer", patience=6)
    world.start("bank", patience=3)
    world.running["bank"].join(30)
    assert world.statuses(0) == {"bank": 4}
    insurer, office = (party["address"] for party in world.content["parties"][1:])
    assert (
        f"insurer (who listens at {insurer} does not have the agreed certificate"
        in world.message("bank")
    )
    assert f"office (nobody listens at {office})" in world.message("bank")
    assert stranger.statuses()["insurer"] == 4
