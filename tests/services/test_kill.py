"""Real processes, killed at any instant: an output is whole or it is not there."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
import yaml

import linked_cases
from failing_calls import Killed
from file_limits import limited
from real_commands import ended, running, started
from sample_policies import PATIENTS
from shoal.auditor.verify import verify
from shoal.connectors import files
from shoal.connectors.files import file_sha256
from shoal.connectors.location import Location
from shoal.data.recoding import OWN_METHODS, sensitive_path
from shoal.errors import InputError
from shoal.policy import registry
from shoal.policy.policy import Policy
from shoal.samples import patients
from shoal.tables.publish import publish_file
from shoal.tables.request import PublishRequest
from thorough import LONG, every, long_but, long_where

PUBLISH = "publish patients.csv -p policy.yaml -o out.csv -q".split()


@pytest.mark.parametrize("trial", long_where(lambda trial: trial > 0, range(6)))
def test_killed_publication_leaves_a_whole_release_or_none(tmp_path, trial):
    patients.generate(20_000, 1).write_csv(tmp_path / "patients.csv")
    (tmp_path / "policy.yaml").write_text(PATIENTS)
    with running(tmp_path, *PUBLISH):
        time.sleep(random.Random(trial).uniform(0.02, 0.8))
    release, certificate = tmp_path / "out.csv", tmp_path / "out.csv.certificate.json"
    if certificate.exists():
        claimed = json.loads(certificate.read_text())["output"]["sha256"]
        if release.exists():
            assert claimed == file_sha256(release)
    else:
        # the proof takes its place first: no release is ever seen without it
        assert not release.exists()


def dying_on_disk(monkeypatch, instant: int) -> list[int]:
    """Kills this process at its step number `instant` on disk: it does none after that, and what it
    would tidy up stays. How many steps there were.
    """
    calls = [0]

    def dies(call):
        def counted(*arguments, **options):
            calls[0] += 1
            if calls[0] <= instant:
                return call(*arguments, **options)
            if calls[0] > instant + 1 and call is unlink:
                return None  # so that its locks are let go, as a killed process does
            raise Killed

        return counted

    unlink = os.unlink
    for name in ("fsync", "rename", "replace", "link", "unlink", "chmod"):
        monkeypatch.setattr(os, name, dies(getattr(os, name)))
    return calls


def patients_for(method: str) -> tuple[pl.DataFrame, Policy]:
    """Some people and a policy that suits the method."""
    frame = patients.generate(80, 1).unique("patient", maintain_order=True)
    content = yaml.safe_load(PATIENTS)
    attributes = content["attributes"]
    attributes["age"]["hierarchy"] = {"bins": [0, 25, 50, 75, 101]}
    for name in ("patient", "education", "charge", "ward"):
        attributes[name] = {"role": "drop"}
    content |= {"promises": [{"model": "k-anonymity", "k": 5}], "label": "disease"}
    content["method"] = {"name": method}
    if method in OWN_METHODS:
        promise = {"model": "l-diversity", "attribute": "disease", "l": 3}
        content |= {"promises": [promise], "method": {"name": method, "l": 3}}
        del content["label"]
    return frame, Policy.from_dict(content)


SUFFIXES = (".csv", ".csv.gz", ".parquet", ".arrow", ".jsonl")
PUBLISHERS = sorted(m.name for m in registry.methods().values() if m.verb == "publish")


@pytest.mark.parametrize(
    "method",
    long_but("mondrian", sorted({"mondrian", *every(6, PUBLISHERS, first=2), *OWN_METHODS})),
)
def test_killed_between_any_two_steps_on_disk_a_release_is_whole_or_not_there(
    folder, monkeypatch, method
):
    """The first of two tables is not there without the second one, and none without its proof; and
    the next run publishes the same and sweeps what was left.
    """
    frame, policy = patients_for(method)
    frame.write_csv("patients.csv")
    second = [sensitive_path("out.csv")] * (method in OWN_METHODS)
    everything = ["out.csv", *second, Location("out.csv").certificate]
    publish_file("patients.csv", policy, "out.csv")
    expected = {name: file_sha256(name) for name in ("out.csv", *second)}
    step = 1 if LONG else 2 if second else 3
    for instant in range(PUBLISHERS.index(method) % step, 100, step):
        for name in everything:
            Path(name).unlink(missing_ok=True)
        with monkeypatch.context() as patched:
            calls = dying_on_disk(patched, instant)
            with contextlib.suppress(Killed):
                publish_file("patients.csv", policy, "out.csv")
        there = [Path(name).exists() for name in everything]
        assert there == sorted(there), f"{instant}: {there}"  # the proof, the second, the first
        if there[0]:
            assert {name: file_sha256(name) for name in expected} == expected
            assert all(check.ok is not False for check in verify("out.csv", policy=policy))
        publish_file("patients.csv", policy, "out.csv", PublishRequest(replace=True))
        assert {name: file_sha256(name) for name in expected} == expected
        assert sorted(path.name for path in Path().iterdir()) == sorted(
            ["patients.csv", *everything]
        )
        if calls[0] <= instant:
            assert instant > 3, "there were instants to die at"
            return
    raise AssertionError("a publication takes fewer steps than that")


def test_an_interrupted_search_publishes_the_best_so_far_and_says_how_to_repeat_it(tmp_path):
    patients.generate(60, 1).write_csv(tmp_path / "patients.csv")
    (tmp_path / "policy.yaml").write_text(PATIENTS)
    search = "--set refine=thorough --set steps=1000000".split()
    process = started(tmp_path, *PUBLISH[:-1], *search)
    for line in process.stderr:
        if "refining: step" in line:
            break
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert process.returncode == 0
    certificate = json.loads((tmp_path / "out.csv.certificate.json").read_text())
    assert all(promise["holds"] for promise in certificate["promises"])
    made = certificate["method"]["search_statistics"]
    assert 0 < made["stop"] < made["steps"] == 1_000_000
    stop = ["--set", f"stop={made['stop']}", "-o", "again.csv"]
    again = ended(tmp_path, *PUBLISH, *search, *stop)
    assert again.returncode == 0, again.stderr
    assert file_sha256(tmp_path / "again.csv") == file_sha256(tmp_path / "out.csv")


@pytest.mark.parametrize("kind", [".csv", ".tsv", ".parquet", ".arrow", ".jsonl"])
@pytest.mark.parametrize("compressed", [False, True])
def test_a_full_disk_is_reported_in_every_format(kind, compressed):
    """Writing to a device without space fails like a full disk does."""
    full = "/dev/full"
    try:
        open(full, "wb").close()
    except OSError:
        pytest.skip("this system has no /dev/full")
    with pytest.raises(InputError, match="writing failed"):
        files.write(patients.generate(50_000, 1), Path(full), kind, compressed)


@pytest.mark.parametrize(
    "output", long_but("out.csv", [*(f"out{suffix}" for suffix in SUFFIXES), "policy.yaml"])
)
def test_a_file_that_may_not_grow_is_reported_in_one_line_and_leaves_nothing(tmp_path, output):
    """A table in each format, and a text: a limit on the size of files is a disk that is full."""
    pytest.importorskip("resource")
    patients.generate(2_000, 1).write_csv(tmp_path / "patients.csv")
    order = ["sample", "patients", "-n", "2000", "-o", output]
    if output == "policy.yaml":
        order = [*"policy init patients.csv -q -o".split(), output]
    failed = subprocess.run(limited(100, *order), cwd=tmp_path, capture_output=True, text=True)
    assert failed.returncode == 2, failed.stderr
    assert "writing failed" in failed.stderr
    assert failed.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["patients.csv"]


@pytest.mark.parametrize("output", ["out", "out.xlsx", "out.sqlite"])
def test_linked_tables_that_find_no_room_are_refused_in_one_line_and_leave_nothing(
    tmp_path, output
):
    pytest.importorskip("resource")
    (tmp_path / "clinic").mkdir()
    for name, frame in linked_cases.world(300).items():
        frame.write_csv(tmp_path / "clinic" / f"{name}.csv")
    (tmp_path / "policy.json").write_text(json.dumps(linked_cases.policy()))
    order = ("publish", "clinic", "-p", "policy.json", "-o", output, "--trace", "trace", "-q")
    failed = subprocess.run(limited(3000, *order), cwd=tmp_path, capture_output=True, text=True)
    assert failed.returncode == 2, failed.stderr
    assert failed.stderr.count("\n") == 1
    assert "writing failed" in failed.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"clinic", "policy.json"}


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_publication_leaves_no_draft(tmp_path, stop):
    patients.generate(300_000, 1).write_csv(tmp_path / "patients.csv")
    (tmp_path / "policy.yaml").write_text(PATIENTS)
    process = started(tmp_path, *PUBLISH)
    while not list(tmp_path.glob(".out.csv.*")) and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(stop)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["patients.csv", "policy.yaml"]


def test_a_report_that_fails_leaves_the_release_and_says_that_it_is_published(tmp_path):
    patients.generate(600, 1).write_csv(tmp_path / "patients.csv")
    (tmp_path / "policy.yaml").write_text(PATIENTS)
    order = ("publish", "patients.csv", "-p", "policy.yaml", "-o", "out.csv", "-q")
    run = limited(42_000, *order, "--report", "report.html")
    failed = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True)
    assert failed.returncode == 2
    assert "shoal: 'out.csv' is published; " in failed.stderr.splitlines()[-1]
    certificate = json.loads((tmp_path / "out.csv.certificate.json").read_text())
    assert certificate["output"]["sha256"] == file_sha256(tmp_path / "out.csv")
    assert not [path.name for path in tmp_path.iterdir() if "report" in path.name]


STOPPED_AT_AN_IMPORT = """
import runpy, sys
class Stop:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Stop())
runpy.run_module("shoal", run_name="__main__")
"""


def test_ctrl_c_while_the_command_is_imported_is_one_line():
    stopped = subprocess.run(
        [sys.executable, "-c", STOPPED_AT_AN_IMPORT], capture_output=True, text=True
    )
    assert stopped.returncode == 130
    assert stopped.stderr == "shoal: interrupted; nothing was written\n"
