"""Drafts of killed runs are swept, private files are their owner's alone, devices are refused."""

import fcntl
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from shoal.cli.main import status_of
from shoal.connectors import files
from shoal.connectors.files import atomic_write
from shoal.connectors.outputs import draft_beside
from shoal.connectors.release_drafts import ReleaseDraft, release_draft
from shoal.data.hierarchies.table import read_hierarchy
from shoal.errors import InputError

WRITER = """
import sys, time
from shoal.connectors.files import atomic_write
with atomic_write(sys.argv[1]) as draft:
    draft.write_text("half")
    print("ready", flush=True)
    time.sleep(60)
"""


def writer(target: Path) -> subprocess.Popen:
    """Another process in the middle of writing."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(target)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    return process


def drafts(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.endswith(".part"))


def test_the_next_write_sweeps_the_draft_of_a_killed_run(tmp_path):
    target = tmp_path / "out.csv"
    killed = writer(target)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert len(drafts(tmp_path)) == 1
    with atomic_write(str(target)) as draft:
        draft.write_text("whole")
        assert drafts(tmp_path) == [draft.name]
    assert drafts(tmp_path) == []
    assert target.read_text() == "whole"


def test_the_draft_of_a_living_run_stays(tmp_path):
    target = tmp_path / "out.csv"
    living = writer(target)
    try:
        (theirs,) = drafts(tmp_path)
        with atomic_write(str(target)) as draft:
            draft.write_text("ours")
        assert drafts(tmp_path) == [theirs]
    finally:
        living.kill()
        living.wait()


def test_what_is_not_a_draft_stays(tmp_path):
    strange = (".out.csv.part", ".out.csv.0123.part", ".other.csv." + "g" * 16 + ".part")
    for name in strange:
        (tmp_path / name).write_text("mine")
    with atomic_write(str(tmp_path / "out.csv")) as draft:
        draft.write_text("x")
    assert {path.name for path in tmp_path.iterdir()} == {"out.csv", *strange}


def test_a_link_in_the_place_of_a_draft_leads_nowhere(tmp_path):
    (tmp_path / "precious").write_text("mine")
    link = tmp_path / f".out.csv.{'0' * 16}.part"
    link.symlink_to(tmp_path / "precious")
    with atomic_write(str(tmp_path / "out.csv")) as draft:
        draft.write_text("x")
    assert (tmp_path / "precious").read_text() == "mine"


def test_a_draft_that_was_swept_before_its_lock_is_made_again(tmp_path, monkeypatch):
    opened = os.open
    swept = []

    def open_and_lose(path, flags, *mode):
        handle = opened(path, flags, *mode)
        if flags & os.O_CREAT and not swept:
            swept.append(path)
            Path(path).unlink()
        return handle

    monkeypatch.setattr(os, "open", open_and_lose)
    with atomic_write(str(tmp_path / "out.csv")) as draft:
        draft.write_text("x")
    assert swept
    assert (tmp_path / "out.csv").read_text() == "x"


def test_a_plan_is_its_owners_alone(tmp_path):
    sample = ["sample", "patients", "-n", "200", "-o", str(tmp_path / "p.csv"), "-q"]
    assert status_of(sample) == 0
    publish = ["publish", str(tmp_path / "p.csv"), "-p", str(tmp_path / "p.policy.yaml"), "-q"]
    publish += ["-o", str(tmp_path / "out.csv"), "--method", "datafly"]
    assert status_of([*publish, "--plan", str(tmp_path / "plan.json")]) == 0
    assert (tmp_path / "plan.json").stat().st_mode & 0o777 == 0o600


def test_devices_are_refused():
    expected = "hierarchy '/dev/zero': is not a regular file; name a file"
    with pytest.raises(InputError) as refused:
        read_hierarchy("/dev/zero")
    assert refused.value.args[0] == expected


@pytest.mark.parametrize(
    "arguments",
    [
        "publish x.csv -p /dev/zero -o y.csv",
        "verify /dev/zero",
        "audit x.csv -p y.yaml --original x.csv --trace /dev/zero",
    ],
)
def test_no_command_reads_a_device(arguments, folder):
    assert status_of(arguments.split()) == 2


def test_a_table_may_be_a_pipe_and_is_read_once(tmp_path):
    pipe = tmp_path / "table.csv"
    os.mkfifo(pipe)
    content = b"age,sex\n1,f\n2,m\n"
    feeder = threading.Thread(target=pipe.write_bytes, args=(content,))
    feeder.start()
    source = files.read(str(pipe))
    feeder.join()
    assert source.frame.rows() == [("1", "f"), ("2", "m")]
    (tmp_path / "plain.csv").write_bytes(content)
    assert source.sha256 == files.file_sha256(tmp_path / "plain.csv")


def test_a_table_that_is_a_device_is_refused(tmp_path):
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    with pytest.raises(InputError, match="is not a regular file; name a file"):
        files.read(str(tmp_path / "zero.csv"))


def stopped(output: str, before: Callable[[ReleaseDraft], object]) -> None:
    """A run that is stopped before its release takes its place."""
    with suppress(KeyboardInterrupt), release_draft(output) as draft:
        before(draft)
        raise KeyboardInterrupt


def test_a_run_that_is_stopped_leaves_what_another_has_certified_meanwhile(tmp_path):
    output = tmp_path / "out.csv"

    def other(_: ReleaseDraft) -> None:
        with release_draft(str(output)) as theirs:
            theirs.path.write_text("whole")
            theirs.certify("{}")

    stopped(str(output), other)
    assert output.read_text() == "whole"
    assert Path(f"{output}.certificate.json").read_text() == "{}"


def test_a_certificate_whose_release_has_not_come_is_removed(tmp_path):
    stopped(str(tmp_path / "out.csv"), lambda draft: draft.certify("{}"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("is_over", [False, True])
def test_of_two_runs_into_one_file_the_second_touches_nothing(tmp_path, is_over):
    """It replaced the first one's certificate, and then removed its own."""
    output, taken = tmp_path / "out.csv", pytest.raises(InputError, match="is there already")
    with taken, release_draft(str(output)) as second:
        with release_draft(str(output)) as first:
            first.path.write_text("first")
            first.certify("{}")
            if not is_over:
                with pytest.raises(InputError, match="another run writes it"):
                    second.certify('{"of": "the second"}')
        second.certify('{"of": "the second"}')
    assert output.read_text() == "first"
    assert Path(f"{output}.certificate.json").read_text() == "{}"
    assert len(list(tmp_path.iterdir())) == 2


def test_a_name_too_long_for_a_draft_is_said_by_its_output(tmp_path):
    long = str(tmp_path / f"{'x' * 240}.csv")
    with pytest.raises(InputError, match=r"output '.*': writing failed"), files.atomic_write(long):
        pass
    assert list(tmp_path.iterdir()) == []


# What killed runs left in a folder goes with the next draft there; what is at work, released or
# another's name stays.


ID = "0123456789abcdef"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with drafts of two outputs, a release, and files that only look alike."""
    (tmp_path / f".out.{ID}.part").mkdir()
    (tmp_path / f".out.{ID}.part" / "codes").write_text("personal")
    (tmp_path / f".one.csv.{ID}.part").write_text("personal")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "_shoal.json").write_text("{}")
    (tmp_path / f".out.{ID}.part.bak").write_text("")
    (tmp_path / f".out.{ID[1:]}.part").write_text("")
    (tmp_path / f"out.{ID}.part").write_text("")
    (tmp_path / f".link.{ID}.part").symlink_to(tmp_path / "out")
    return tmp_path


def names(place: Path) -> set[str]:
    return {path.name for path in place.iterdir()}


def test_the_drafts_of_every_output_in_the_folder_go_and_links_stay(place: Path) -> None:
    before = names(place)
    with draft_beside(place / "third.csv", "third.csv") as draft:
        swept = before - {f".out.{ID}.part", f".one.csv.{ID}.part"}
        assert names(place) == swept | {draft.name}
    assert names(place) == swept
    assert (place / "out" / "_shoal.json").exists()


def test_what_a_run_writes_stays(place: Path) -> None:
    lock = os.open(place / f".out.{ID}.part", os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with draft_beside(place / "third.csv", "third.csv"):
        assert f".out.{ID}.part" in names(place)
        assert f".one.csv.{ID}.part" not in names(place)
    os.close(lock)


def test_a_folder_that_is_swept_away_before_it_is_locked_is_made_anew(tmp_path, monkeypatch):
    make, made = Path.mkdir, []

    def make_and_sweep(folder: Path, **how) -> None:
        make(folder, **how)
        made.append(folder)
        if len(made) == 1:
            folder.rmdir()

    monkeypatch.setattr(Path, "mkdir", make_and_sweep)
    with draft_beside(tmp_path / "out", "out", is_folder=True) as draft:
        assert draft.is_dir()
        assert made[1:] == [draft]
    assert not names(tmp_path)
