"""A disk that is full ends a command with status 2, whichever of its files finds no room."""

import errno
import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from file_limits import limited
from sample_policies import content_of
from shoal.cli import main
from shoal.connectors.release_drafts import FileDraft
from shoal.errors import is_full, system_error

POLARS = "No space left on device (os error 28)"


@pytest.mark.parametrize("output", ["o.csv.gz", "o.parquet", "o.jsonl.gz"])
def test_a_trace_without_room_ends_the_publication_with_status_2(tmp_path, output):
    rows = [f"p{row},{row % 3},x" for row in range(5000)]
    (tmp_path / "d.csv").write_text("\n".join(["a,age,s", *rows, ""]))
    age = {"role": "quasi", "type": "number"}
    policy = content_of({"a": "subject", "age": age, "s": "sensitive"})
    (tmp_path / "p.json").write_text(json.dumps(policy))
    words = f"publish d.csv -p p.json -o {output} --trace trace.jsonl"
    done = subprocess.run(
        limited(40_000, *words.split()), cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, "writing failed (File too large)" in done.stderr) == (2, True)
    assert {path.name for path in tmp_path.iterdir()} == {"d.csv", "p.json"}


def test_a_publication_without_room_leaves_the_trace_of_the_one_before(workplace, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOSPC, "no room")

    publish = ["publish", "patients.csv", "-p", "policy.yaml", "-o", "out.csv", "--trace", "trace"]
    assert main.status_of(publish) == 0
    before = {name: Path(name).read_bytes() for name in ("out.csv", "trace")}
    monkeypatch.setattr(FileDraft, "certify", fail)
    assert main.status_of([*publish, "--seed", "5", "--replace"]) == 2
    assert {name: Path(name).read_bytes() for name in before} == before


@pytest.mark.parametrize(
    "failed",
    [
        OSError(errno.ENOSPC, "no room"),
        OSError(errno.EDQUOT, "no room"),
        OSError(POLARS),
        pl.exceptions.ComputeError(POLARS),
    ],
)
def test_whoever_says_that_a_disk_is_full_the_command_says_it_too(monkeypatch, capsys, failed):
    assert is_full(failed)

    def fail(*_, **__):
        raise failed

    monkeypatch.setattr(main, "app", fail)
    assert main.status_of(["methods"]) == 2
    assert "free some space or name another place" in capsys.readouterr().err


def test_other_failures_are_no_full_disk():
    assert system_error(OSError("Permission denied (os error 13)")) == errno.EACCES
    for other in (OSError("odd"), OSError(errno.EACCES, "no"), ValueError(POLARS)):
        assert not is_full(other)


@pytest.mark.parametrize("failed", [OSError(errno.ENOSPC, "no room"), BrokenPipeError()])
def test_messages_that_find_no_room_change_no_status(workplace, monkeypatch, failed):
    class Refusing:
        def write(self, text):
            raise failed

    monkeypatch.setattr(sys, "stderr", Refusing())
    publish = ["publish", "patients.csv", "-p", "policy.yaml", "-o", "out.csv"]
    assert main.status_of(publish) == 0
    assert main.status_of(["audit", "out.csv", "-p", "policy.yaml"]) == 0
    assert main.status_of(publish) == 2  # the file is there
    assert Path("out.csv.certificate.json").exists()


def test_a_process_whose_messages_find_no_room_ends_with_its_status(tmp_path):
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    audit = [sys.executable, "-m", "shoal", "audit", "no.csv", "-p", "no.yaml"]
    with open("/dev/full", "wb") as full:
        assert subprocess.run(audit, stderr=full, cwd=tmp_path, timeout=300).returncode == 2
