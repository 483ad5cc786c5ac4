"""A party with a torn journal says what it drops; one with a damaged journal ends."""

import pytest

from party_processes import bank_world
from real_commands import ended
from shoal.connectors.party.journal import Journal
from shoal.policy.agreement import Agreement

DROPPED = "the journal's last entry was not written to its end, and is dropped"


@pytest.fixture
def stopped(tmp_path):
    """A folder with the journal of a party that was stopped, and the command that goes on."""
    world = bank_world(tmp_path, n=20)
    (tmp_path / "bank.journal").mkdir()
    journal = Journal(tmp_path / "bank.journal" / "journal")
    journal.append(b"A", Agreement.load(world.agreement).hash)
    journal.append(b"K", bytes(32))
    journal.close()
    command = ["party", "run", "bank", str(world.agreement)]
    command += ["--keys", str(tmp_path), "--folder", str(tmp_path / "bank.journal")]
    return tmp_path, [*command, "-o", str(tmp_path / "bank.csv"), "--patience", "1"]


def test_the_command_says_that_a_torn_entry_is_dropped(stopped):
    folder, command = stopped
    path = folder / "bank.journal" / "journal"
    path.write_bytes(path.read_bytes()[:-3])
    first = ended(folder, *command)
    assert first.returncode == 4
    assert DROPPED in first.stderr
    assert "not reached within 1 s" in first.stderr  # it went on with what was left
    assert DROPPED not in ended(folder, *command).stderr


def test_the_command_refuses_a_journal_whose_length_was_changed(stopped):
    folder, command = stopped
    path = folder / "bank.journal" / "journal"
    changed = bytearray(path.read_bytes())
    changed[5] ^= 1  # of the first entry: all behind it used to be cut in silence
    path.write_bytes(changed)
    refused = ended(folder, *command)
    assert refused.returncode == 4
    assert "is damaged at byte 0, and the run can't go on without it; make a new" in refused.stderr
    assert "agreement and begin again" in refused.stderr
    assert path.read_bytes() == changed
    assert not (folder / "bank.csv").exists()
