"""Snapshots: whole or refused."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import CheckpointError
from shoal.streams.checkpoint import Checkpoint, packed, unpacked

STATE = {
    "step": 3,
    "place": {"offset": 10, "sha256": "ab"},
    "values": np.arange(6.0).reshape(2, 3),
    "nothing": np.zeros((0, 4), np.int32),
    "held": pl.DataFrame({"a": ["x", None], "b": [1, 2]}),
}


def test_what_comes_out_is_what_went_in():
    found = unpacked(packed(STATE))
    assert list(found) == list(STATE)
    assert found["place"] == STATE["place"]
    for name in ("values", "nothing"):
        assert np.array_equal(found[name], STATE[name])
        assert found[name].dtype == STATE[name].dtype
    assert found["held"].equals(STATE["held"])


@given(at=st.integers(0, len(packed(STATE)) - 1), flip=st.integers(1, 255))
def test_a_changed_byte_is_noticed(at, flip):
    content = bytearray(packed(STATE))
    content[at] ^= flip
    with pytest.raises((ValueError, KeyError)):
        unpacked(bytes(content))


@given(length=st.integers(0, len(packed(STATE)) - 1))
def test_a_file_that_ends_early_is_noticed(length):
    with pytest.raises((ValueError, KeyError)):
        unpacked(packed(STATE)[:length])


@pytest.mark.parametrize(
    "damage", [lambda it: it[:-1], lambda it: it + b"\n", lambda it: b"0" + it]
)
def test_a_damaged_checkpoint_is_refused_in_one_line(tmp_path, damage):
    checkpoint = Checkpoint(tmp_path)
    checkpoint.commit(STATE)
    content = (tmp_path / "CURRENT").read_bytes()
    (tmp_path / "CURRENT").write_bytes(damage(content))
    with pytest.raises(CheckpointError, match="is damaged"):
        checkpoint.load()


def test_two_processes_can_t_hold_one_checkpoint(tmp_path):
    with (
        Checkpoint(tmp_path).held(),
        pytest.raises(CheckpointError, match="another process"),
        Checkpoint(tmp_path).held(),
    ):
        pass


def test_putting_again_changes_nothing_and_cuts_off_what_was_not_committed(tmp_path):
    checkpoint, file = Checkpoint(tmp_path), tmp_path / "out"
    checkpoint.put(file, 0, b"abc")
    checkpoint.put(file, 3, b"def")
    file.write_bytes(file.read_bytes() + b"half a li")
    for _ in range(2):
        checkpoint.put(file, 3, b"def")
        assert file.read_bytes() == b"abcdef"


def test_a_lock_that_is_removed_meanwhile_holds_nobody(tmp_path, monkeypatch):
    monkeypatch.setattr("fcntl.flock", lambda *_: (tmp_path / "lock").unlink())
    with pytest.raises(CheckpointError, match="another process"), Checkpoint(tmp_path).held():
        pass
