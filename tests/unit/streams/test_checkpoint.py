"""Snapshots: whole or refused."""

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
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


WHOLE = packed(STATE)


def flipped(at: int, bits: int) -> bytes:
    return WHOLE[:at] + bytes([WHOLE[at] ^ bits]) + WHOLE[at + 1 :]


AT = st.integers(0, len(WHOLE) - 1)
DAMAGED = st.builds(flipped, AT, st.integers(1, 255)) | st.builds(lambda at: WHOLE[:at], AT)


@given(DAMAGED)
@example(WHOLE[:-1])
@example(WHOLE + b"\n")
@example(b"0" + WHOLE)
def test_a_damaged_checkpoint_is_refused(tmp_path_factory, content):
    folder = tmp_path_factory.mktemp("damaged")
    (folder / "CURRENT").write_bytes(content)
    with pytest.raises(CheckpointError, match="is damaged"):
        Checkpoint(folder).load()


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
