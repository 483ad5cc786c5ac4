"""A release in a folder of Parquet files: whole or not there, and read by its manifest alone."""

import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import shoal as library
from shoal.connectors import files, release_drafts
from shoal.connectors.release_drafts import write_parts
from shoal.errors import InputError

DRAFT = """
import sys, time
from shoal.connectors.release_drafts import release_draft
with release_draft(sys.argv[1]) as draft:
    (draft.path / "part-00000.parquet").write_bytes(b"half")
    print("ready", flush=True)
    time.sleep(60)
"""


def publish(shoal, *more: str, output: str = "out/") -> int:
    return shoal("publish", "patients.csv", "-p", "policy.yaml", "-o", output, "-q", *more).status


def test_a_folder_holds_what_a_file_would_and_its_manifest_names_every_part(
    workplace, shoal, monkeypatch
):
    monkeypatch.setattr(release_drafts, "RECORDS", 250)
    assert publish(shoal) == publish(shoal, output="one.parquet") == 0
    names = [f"part-{number:05d}.parquet" for number in range(3)]
    assert sorted(path.name for path in Path("out").iterdir()) == ["_shoal.json", *names]
    assert files.read("out").frame.equals(pl.read_parquet("one.parquet"))
    manifest = json.loads(Path("out/_shoal.json").read_text())
    assert manifest["output"]["files"] == [
        {
            "name": name,
            "records": records,
            "bytes": Path("out", name).stat().st_size,
            "sha256": hashlib.sha256(Path("out", name).read_bytes()).hexdigest(),
        }
        for name, records in zip(names, (250, 250, 100), strict=True)
    ]
    assert not [path for path in workplace.iterdir() if path.name.endswith(".part")]
    assert Path("out").stat().st_mode & 0o777 == 0o777 & ~files.umask()


def test_audit_verify_and_read_release_take_a_folder(workplace, shoal):
    assert publish(shoal) == 0
    whole = ["-p", "policy.yaml", "--original", "patients.csv"]
    assert shoal("audit", "out/", *whole, "-q").status == 0
    verified = shoal("verify", "out/", *whole, status=0)
    assert "FAIL" not in verified.out
    assert "(format" not in verified.out
    assert library.read_release("out").data.height == 600


ADDED, OTHER = "1 file is not in its", pl.DataFrame({"a": [1]})
DAMAGE = {
    "missing": (lambda out: files_in(out)[0].unlink(), "1 file is missing that its"),
    "orphan": (lambda out: (out / "orphan.parquet").write_bytes(b""), ADDED),
    "stranger": (lambda out: (out / "notes.txt").write_text("x"), ADDED),
    "subfolder": (lambda out: (out / "year=1").mkdir(), ADDED),
    # no part of a table, but handed on with its folder
    "engine's": (lambda out: (out / "_x.parquet").write_bytes(b""), ADDED),
    "hidden": (lambda out: (out / ".original.csv").write_text("x"), ADDED),
    "changed": (lambda out: OTHER.write_parquet(files_in(out)[0]), "is not as its"),
    "no manifest": (lambda out: (out / "_shoal.json").unlink(), "has no _shoal.json"),
    "bad manifest": (lambda out: (out / "_shoal.json").write_text("{"), "is not a certificate"),
}


@pytest.mark.parametrize(("damage", "shown"), DAMAGE.values(), ids=DAMAGE)
def test_a_folder_that_is_not_what_was_audited_is_refused(workplace, shoal, damage, shown):
    assert publish(shoal) == 0
    damage(Path("out"))
    if not files_in(Path("out")):  # a folder without any file says so
        shown = "holds no .parquet file"
    audited = shoal("audit", "out", "-p", "policy.yaml", status=2)
    assert shown in audited.err
    assert len(audited.err.splitlines()) == 1
    assert shoal("verify", "out", "-p", "policy.yaml").status in (1, 2)
    with pytest.raises(InputError):
        library.read_release("out")
    # nor does anything of it go into another release
    if Path("out/_shoal.json").is_file():
        with pytest.raises(InputError):
            files.read("out")


def files_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("part-*.parquet"))


def test_a_forged_list_of_files_is_found(workplace, shoal):
    assert publish(shoal) == 0
    stated = json.loads(Path("out/_shoal.json").read_text())
    stated["output"]["files"][0]["records"] += 1
    Path("forged.json").write_text(json.dumps(stated))
    verified = shoal("verify", "out", "forged.json", status=1)
    assert "'files': not what the certificate says" in verified.out


def test_a_release_gives_way_only_when_asked_and_nothing_else_ever_does(workplace, shoal):
    assert publish(shoal) == 0
    again = ("publish", "patients.csv", "-p", "policy.yaml", "-o", "out")
    for more in ((), ("--k", "100000")):  # before the work is tried
        assert "--replace" in shoal(*again, *more, status=2).err
    assert publish(shoal, "--k", "20", "--replace") == 0
    assert library.read_release("out").certificate["promises"][0]["asked"] == 20
    Path("out/stranger.txt").write_text("mine")
    assert publish(shoal, "--replace") == 2  # it would be deleted with the release
    assert Path("out/stranger.txt").read_text() == "mine"
    Path("mine").mkdir()
    Path("mine/a.txt").touch()
    assert publish(shoal, "--replace", output="mine/") == 2
    assert sorted(path.name for path in Path("mine").iterdir()) == ["a.txt"]


def test_a_folder_is_kept_where_the_system_can_not_exchange_two(workplace, shoal, monkeypatch):
    assert publish(shoal) == 0
    before = {path.name: path.read_bytes() for path in Path("out").iterdir()}
    monkeypatch.setattr(release_drafts.ctypes, "CDLL", lambda *_, **__: object())
    order = ("publish", "patients.csv", "-p", "policy.yaml", "-o", "out", "--replace")
    assert "exchange folders" in shoal(*order, status=2).err
    assert {path.name: path.read_bytes() for path in Path("out").iterdir()} == before


def test_a_broken_promise_leaves_no_folder(workplace, shoal, monkeypatch):
    monkeypatch.setattr(
        "shoal.connectors.release_drafts.write_parts",
        lambda frame, draft, metadata: write_parts(
            frame.with_columns(age=pl.Series(range(frame.height)).cast(pl.String)), draft, metadata
        ),
    )
    assert publish(shoal) == 1
    assert sorted(path.name for path in workplace.iterdir()) == ["patients.csv", "policy.yaml"]


def test_nothing_that_is_read_lies_in_the_folder_that_is_replaced(workplace, shoal):
    assert publish(shoal) == 0
    part = str(files_in(Path("out"))[0])
    refused = shoal("publish", part, "-p", "policy.yaml", "-o", "out", "--replace")
    assert (refused.status, "the folder of the input" in refused.err) == (2, True)


def test_the_next_run_sweeps_what_a_killed_one_left_and_no_living_ones(workplace, shoal):
    runs = [
        subprocess.Popen([sys.executable, "-c", DRAFT, "out/"], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    try:
        assert [run.stdout.readline() for run in runs if run.stdout] == ["ready\n"] * 2
        runs[0].send_signal(signal.SIGKILL)
        runs[0].wait()
        drafts = [path for path in workplace.iterdir() if path.name.endswith(".part")]
        assert [path.stat().st_mode & 0o777 for path in drafts] == [0o700] * 2
        assert publish(shoal) == 0
        assert len([p for p in os.listdir() if p.endswith(".part")]) == 1
    finally:
        runs[1].kill()
        runs[1].wait()


def test_only_publish_writes_folders(workplace, shoal):
    shoal("sample", "patients", "-n", "50", "-o", "there/", "-q", status=2)
    assert not Path("there").exists()
