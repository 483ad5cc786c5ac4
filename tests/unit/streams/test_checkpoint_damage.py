"""A damaged checkpoint is refused, whichever of its bytes is wrong."""

import os
import shutil
import zlib
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from sample_policies import PURCHASES
from shoal.connectors.feeds import feed_of
from shoal.errors import CheckpointError
from shoal.policy.policy import Policy
from shoal.samples import purchases
from shoal.streams.checkpoint import Checkpoint, packed, unpacked
from shoal.streams.options import StreamOptions
from shoal.streams.publishing import StreamRequest
from shoal.streams.run import Run
from stream_cases import stop_at

STREAM = "stream p.parquet -p policy.yaml -o out.csv --checkpoint state -q".split()


@pytest.fixture(autouse=True)
def shop(folder, monkeypatch):
    """A folder with a few purchases and their policy, and the shell standing in it."""
    monkeypatch.setattr("shoal.connectors.feeds.SLICE", 20)
    purchases.generate(60, 1).write_parquet("p.parquet")
    asked = PURCHASES.replace("delta: 1000", "delta: 15").replace("k: 10", "k: 3")
    Path("policy.yaml").write_text(asked)


@pytest.fixture
def stopped(tmp_path, monkeypatch, shoal) -> Path:
    """The folder once its stream was stopped in its third step."""
    stop_at(monkeypatch, 3)
    assert shoal(*STREAM, "--trace", "t.jsonl").status == 130
    return tmp_path


@pytest.fixture
def resume(stopped):
    """Puts what the snapshot has committed where it belongs, as the resume of a stream begins."""
    options = StreamOptions("p.parquet", "out.csv", checkpoint=Path("state"), trace="t.jsonl")
    feed = feed_of("p.parquet")
    checkpoint = Checkpoint(Path("state"), durable=False)
    run = Run(StreamRequest(options, Policy.load("policy.yaml")), feed, checkpoint, float)
    state = checkpoint.load()

    def put() -> None:
        run.outputs.restore(state)
        run.outputs.put_segment(state["step"], state)

    yield put
    feed.close()


def flips(path: Path):
    """Flips every byte of a file in turn, in its place, and puts it back."""
    whole = path.read_bytes()
    handle = os.open(path, os.O_WRONLY)
    for at, byte in enumerate(whole):
        os.pwrite(handle, bytes([byte ^ 0x10]), at)
        yield at
        os.pwrite(handle, bytes([byte]), at)
    os.close(handle)


def test_a_whole_checkpoint_is_resumed(resume):
    before = {path: path.read_bytes() for path in map(Path, ("out.csv", "state/people", "t.jsonl"))}
    resume()
    assert {path: path.read_bytes() for path in before} == before


def test_every_byte_of_the_segment_is_checked(resume):
    segment = Path("state/segment-2.put")
    assert segment.stat().st_size
    for _ in flips(segment):
        with pytest.raises(CheckpointError, match=f"its file '{segment.name}' is damaged"):
            resume()


@pytest.mark.long
def test_every_byte_of_the_snapshot_is_checked(stopped):
    for _ in flips(Path("state/CURRENT")):
        with pytest.raises(CheckpointError, match="is damaged"):
            Checkpoint(Path("state")).load()


@pytest.mark.parametrize("people", [10**30, np.array(["x"]), {}])
def test_a_snapshot_that_was_written_by_another_program_is_refused(stopped, shoal, people):
    current = stopped / "state" / "CURRENT"
    state = unpacked(current.read_bytes()) | {"core/publisher/buffer.people": people}
    current.write_bytes(packed(state))
    said = shoal(*STREAM, "--trace", "t.jsonl")
    assert (said.status, said.err.count("\n")) == (2, 1)
    assert "is damaged or of another version" in said.err


def test_a_copy_of_a_damaged_checkpoint_is_resumed_and_an_older_one_refused(
    stopped, shoal, monkeypatch
):
    monkeypatch.undo()
    monkeypatch.chdir(stopped)
    shutil.copytree("state", "older")
    stop_at(monkeypatch, 2)
    assert shoal(*STREAM, "--trace", "t.jsonl").status == 130
    shutil.copytree("state", "newest")
    Path("state/CURRENT").write_bytes(b"damaged")
    said = shoal(*STREAM, "--trace", "t.jsonl")
    assert "restore a copy made since its last commit, or begin a new stream" in said.err
    monkeypatch.undo()
    monkeypatch.chdir(stopped)
    for copy, status in (("older", 2), ("newest", 0)):
        shutil.rmtree("state")
        shutil.copytree(copy, "state")
        assert shoal(*STREAM, "--trace", "t.jsonl").status == status


def test_a_snapshot_whose_head_is_nested_too_deeply_is_refused(stopped):
    head = b"[" * 100_000
    content = f"{zlib.crc32(head)}\n".encode() + head + b"\n"
    (stopped / "state" / "CURRENT").write_bytes(content)
    with pytest.raises(CheckpointError, match="is damaged"):
        Checkpoint(stopped / "state").load()


@pytest.mark.parametrize(
    ("name", "output", "shown"),
    [
        ("state/people", "people", "its file 'people' is damaged; restore a copy made"),
        ("t.jsonl", "trace", "output 't.jsonl': was moved, shortened or changed"),
        ("out.csv", "sink", "output 'out.csv': was moved, shortened or changed"),
    ],
)
def test_every_committed_byte_of_an_output_is_checked(resume, name, output, shown):
    """What stands behind the committed bytes is the last step, which is put again."""
    path = Path(name)
    whole = path.read_bytes()
    committed = Checkpoint(Path("state")).load()["lengths"][output]
    assert 0 < committed < len(whole)
    for at in flips(path):
        if at < committed:
            with pytest.raises(CheckpointError, match=shown):
                resume()
        elif at % 50 == 0:
            resume()
            assert path.read_bytes() == whole


def test_a_private_file_that_is_shorter_or_gone_is_refused(resume):
    people = Path("state/people")
    for damage in (lambda: people.write_bytes(people.read_bytes()[:8]), people.unlink):
        damage()
        with pytest.raises(CheckpointError, match="its file 'people' is damaged"):
            resume()


@pytest.mark.parametrize("left", [0, 30])
def test_an_output_that_was_cut_after_its_first_step_is_missed(monkeypatch, shoal, left):
    purchases.generate(60, 1).write_csv("p.csv")
    command = [word.replace("p.parquet", "p.csv") for word in STREAM]
    monkeypatch.setattr("shoal.streams.run.time.sleep", Mock(side_effect=KeyboardInterrupt))
    assert shoal(*command, "--follow").status == 130
    rows = Path("out.csv").read_bytes()
    assert len(rows) > 30
    Path("out.csv").write_bytes(rows[:left])
    said = shoal(*command)
    assert (said.status, Path("out.csv").read_bytes()) == (2, rows[:left])
    assert "output 'out.csv': was moved, shortened or changed" in said.err
    Path("out.csv").write_bytes(rows)
    assert shoal(*command).status == 0


def test_an_output_that_was_moved_after_its_first_step_is_missed(monkeypatch, shoal):
    stop_at(monkeypatch, 2)
    assert shoal(*STREAM).status == 130
    rows = Path("out.csv").rename("rotated.csv").read_bytes()
    assert rows
    said = shoal(*STREAM)
    assert (said.status, Path("out.csv").exists()) == (2, False)
    assert "output 'out.csv': was moved, shortened or changed" in said.err
    Path("rotated.csv").rename("out.csv")
    assert shoal(*STREAM).status == 0
    assert Path("out.csv").read_bytes().startswith(rows)


def test_an_output_that_was_changed_while_the_stream_ran_is_not_certified(
    stopped, monkeypatch, shoal
):
    commit, so_far = Checkpoint.commit, Path("out.csv.certificate.json").read_bytes()

    def spoiling(self, state):
        whole = Path("out.csv").read_bytes()
        Path("out.csv").write_bytes(b"x" + whole[1:])
        commit(self, state)

    monkeypatch.setattr(Checkpoint, "commit", spoiling)
    said = shoal(*STREAM, "--trace", "t.jsonl", "--measure", "release")
    assert (said.status, said.err.count("\n")) == (2, 1)
    assert "output 'out.csv': was moved, shortened or changed" in said.err
    assert Path("out.csv.certificate.json").read_bytes() == so_far


def test_a_stream_that_was_stopped_and_resumed_checks_what_both_runs_wrote(monkeypatch, shoal):
    """The checksum runs on over a resume, or the second resume would refuse a whole file."""
    Path("policy.yaml").write_text(PURCHASES.replace("delta: 1000", "delta: 30"))
    purchases.generate(300, 1).write_parquet("p.parquet")
    stop_at(monkeypatch, 4, 9)
    assert [shoal(*STREAM).status for _ in range(3)] == [130, 130, 0]
    whole = Path("out.csv").read_bytes()
    shutil.rmtree("state")
    Path("out.csv").unlink()
    assert shoal(*STREAM).status == 0
    assert Path("out.csv").read_bytes() == whole
