"""A slice of `make soak`: one trial of each room, and a soak that finds what it looks for."""

import shutil

import pytest

from soak import __main__ as soak
from soak import ledgers


@pytest.mark.parametrize("room", soak.ROOMS)
def test_a_trial_of_each_room_finds_nothing(room, capfd):
    assert soak.main(["--only", room, "--trials", "1", "--seed", "7"]) == 0, capfd.readouterr().out


def test_a_failure_is_said_with_the_command_that_repeats_it(monkeypatch, capsys):
    """A verification that overlooks everything does not get through."""
    monkeypatch.setattr(ledgers.Ledger, "verify", lambda self: [])
    assert soak.main(["--only", "ledgers", "--trials", "1", "--seed", "3", "--first", "5"]) == 1
    said = capsys.readouterr().out
    assert "python -m soak --only ledgers --seed 3 --first 5 --trials 1" in said
    assert "1 ledgers: FAILED" in said
    shutil.rmtree(said.split("see ")[1].split()[0])
