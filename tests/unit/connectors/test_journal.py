"""A party's journal is read back as it was written, or refused; only a torn end is dropped."""

import errno
import hashlib
import os
import struct
import zlib

import pytest

from shoal.connectors.party.journal import Journal
from shoal.errors import PartyError

HEAD, NAMES = 44, 21  # bytes of an entry before its body, and in its body before the content


@pytest.fixture(autouse=True)
def no_sync(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def path(tmp_path):
    """A small journal of four entries."""
    written = tmp_path / "journal"
    journal = Journal(written)
    journal.append(b"A", b"agreement")
    journal.append(b"K", bytes(range(8)))
    journal.append(b"R", b"", "bank")
    journal.append(b"R", b"second", "bank", 1)
    journal.close()
    return written


def entries(path) -> list[bytes | None]:
    journal = Journal(path)
    try:
        keys = [(b"A", "", 0), (b"K", "", 0), (b"R", "bank", 0), (b"R", "bank", 1)]
        return [journal.get(*key) for key in keys][: len(journal)]
    finally:
        journal.close()


ALL = [b"agreement", bytes(range(8)), b"", b"second"]
ENDS = [HEAD + NAMES + 9, 2 * (HEAD + NAMES) + 17, 3 * (HEAD + NAMES) + 17, 4 * (HEAD + NAMES) + 23]


def test_its_form_is_the_documented_one(path):
    written, chain, at = path.read_bytes(), bytes(32), 0
    for what, name, number, content in [
        (b"A", b"", 0, ALL[0]),
        (b"K", b"", 0, ALL[1]),
        (b"R", b"bank", 0, ALL[2]),
        (b"R", b"bank", 1, ALL[3]),
    ]:
        body = what + name.ljust(16, b"\0") + struct.pack("<I", number) + content
        chain = hashlib.sha256(chain + body).digest()
        head = b"SHJ2" + struct.pack("<I", len(body)) + chain
        expected = head + struct.pack("<I", zlib.crc32(head)) + body
        assert written[at : at + len(expected)] == expected
        at += len(expected)
    assert at == len(written) == ENDS[-1]


def test_whichever_bit_is_flipped_it_is_refused(path):
    written = path.read_bytes()
    for bit in range(8 * len(written)):
        changed = bytearray(written)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        with pytest.raises(PartyError, match="is damaged at byte"):
            Journal(path)
        assert path.read_bytes() == changed


def test_whichever_bit_is_flipped_before_a_torn_end_nothing_else_is_read(path):
    written = path.read_bytes()[:-3]
    for bit in range(8 * ENDS[1], 8 * len(written)):
        changed = bytearray(written)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        try:
            assert entries(path) == ALL[:3]  # what was torn is not read in any case
            assert bit // 8 >= ENDS[2] + HEAD
        except PartyError:
            assert bit // 8 < ENDS[2] + HEAD


def test_wherever_it_is_torn_the_whole_entries_stay_and_it_goes_on(path):
    written = path.read_bytes()
    for size in range(len(written)):
        path.write_bytes(written[:size])
        whole = sum(end <= size for end in ENDS)
        journal = Journal(path)
        assert journal.torn == size - ([0, *ENDS][whole])
        journal.append(b"S", b"new", "office")
        journal.close()
        again = Journal(path)
        assert (len(again), again.torn, again.get(b"S", "office")) == (whole + 1, 0, b"new")
        again.close()
        path.write_bytes(written[:size])
        assert entries(path) == ALL[:whole]


@pytest.mark.parametrize(
    "behind",
    [b"\0", b"garbage", bytes(100), b"SHJx", b"SHJ2" + bytes(60)],
    ids=["a zero", "text", "zeros", "no mark", "a mark alone"],
)
def test_what_is_no_entry_is_refused_behind_whole_ones(path, behind):
    with open(path, "ab") as file:
        file.write(behind)
    with pytest.raises(PartyError, match=f"is damaged at byte {ENDS[-1]}"):
        Journal(path)


def test_a_torn_entry_with_a_whole_one_behind_it_is_no_torn_end(path):
    written = path.read_bytes()
    third = written[ENDS[1] : ENDS[2]]
    long = struct.pack("<4sI32s", b"SHJ2", 500, bytes(32))
    path.write_bytes(written + long + struct.pack("<I", zlib.crc32(long)) + b"begun" + third)
    with pytest.raises(PartyError, match=f"is damaged at byte {ENDS[-1]}"):
        Journal(path)


def test_an_entry_that_finds_no_room_leaves_the_journal_without_it(path, monkeypatch):
    journal = Journal(path)
    write = os.pwrite

    def full(descriptor, content, at):
        if at > ENDS[-1]:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, content[:50], at)

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(PartyError, match=r"can't be written \(No space left on device\)"):
        journal.append(b"S", b"lost", "office")
    monkeypatch.setattr(os, "pwrite", write)
    assert journal.get(b"S", "office") is None
    journal.append(b"S", b"kept", "office")
    journal.close()
    again = Journal(path)
    assert (again.torn, again.get(b"S", "office")) == (0, b"kept")


def test_a_second_party_on_the_same_journal_is_refused(path):
    first = Journal(path)
    with pytest.raises(PartyError, match="is in use; the party runs already"):
        Journal(path)
    first.close()
    assert entries(path) == ALL
