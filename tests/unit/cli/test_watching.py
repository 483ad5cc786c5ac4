"""What whoever watches runs is given: metrics, messages and errors as JSON, statuses."""

import errno
import json
import re
from pathlib import Path
from unittest.mock import Mock

import polars as pl
import pytest

from republish_cases import POLICY, wearers
from stream_processes import open_shop

STREAM = "stream p.csv -p policy.yaml -o out.csv".split()
REPUBLISH = "republish i.csv -p p.json --ledger L".split()


@pytest.fixture(autouse=True)
def shop(folder):
    open_shop(folder, 1000)
    (folder / "p.json").write_text(json.dumps(POLICY))
    wearers(43, 1).write_csv(folder / "i.csv")


def metrics(name: str) -> dict[str, float]:
    """The figures of a file as Prometheus reads it, each described once, before it."""
    lines = Path(name).read_text().splitlines()
    described = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(set(described)) == len(described)
    found = {}
    for line in lines:
        if not line.startswith("#"):
            metric, labels, value = re.fullmatch(r"(\w+)\{(.*)\} (\S+)", line).groups()
            assert metric in described
            assert f'run="{Path(name).stem}"' in labels
            state = re.search(r'state="(.*)"', labels)
            found[metric if state is None else f"{metric} {state[1]}"] = float(value)
    return found


@pytest.mark.parametrize("more", [(), ("--checkpoint", "ck")])
def test_a_stream_writes_metrics_at_each_commit_and_at_its_end(shoal, more):
    assert shoal(*STREAM, *more, "-q", "--metrics", "s.prom").status == 0
    found = metrics("s.prom")
    assert found["shoal_stream_records_total came"] == 1000
    assert found["shoal_stream_records_total published"] == 1000
    assert "suppressed is part of published" in Path("s.prom").read_text()
    assert found["shoal_stream_waiting_records"] == 0
    assert found["shoal_stream_state ended"] == found["shoal_stream_holds"] == 1
    assert found["shoal_run_success"] == 1
    started, ended = (found[f"shoal_run_{when}_timestamp_seconds"] for when in ("started", "ended"))
    assert ended >= started


def test_a_run_that_fails_says_so_in_its_metrics(shoal):
    assert shoal(*STREAM, "-q", "--metrics", "s.prom", "--k", "5000").status != 0
    assert metrics("s.prom")["shoal_run_success"] == 0
    assert shoal("party", "run", "a", "none.yaml", "--metrics", "party.prom").status == 2
    assert metrics("party.prom")["shoal_run_success"] == 0
    assert "end its name with it" in shoal(*STREAM, "--metrics", "metrics.txt", status=2).err
    assert not Path("metrics.txt").exists()


@pytest.mark.parametrize(
    ("words", "job"),
    [(REPUBLISH, "ledgers.republish.republish_file"), (STREAM, "streams.run.stream_file")],
)
def test_no_success_of_the_run_before_stands_for_a_run_that_is_killed(
    shoal, monkeypatch, words, job
):
    left = []

    def killed(*_, **__):
        left.append(metrics("s.prom"))
        raise KeyboardInterrupt

    assert shoal(*words, "-q", "--metrics", "s.prom").status == 0
    first = metrics("s.prom")
    monkeypatch.setattr(f"shoal.{job}", killed)
    assert shoal(*words, "-q", "--metrics", "s.prom").status == 130
    (found,) = left
    assert found.keys() == first.keys() - {"shoal_run_success"}
    begun = found["shoal_run_started_timestamp_seconds"]
    assert begun > found["shoal_run_ended_timestamp_seconds"]


def test_a_ledger_says_what_it_holds_in_metrics_and_as_json(shoal):
    assert shoal(*REPUBLISH, "-q", "--metrics", "r.prom").status == 0
    found = metrics("r.prom")
    assert (found["shoal_ledger_releases"], found["shoal_run_success"]) == (1, 1)
    assert "shoal_ledger_waiting_records" in found
    verified = shoal("ledger", "verify", "L", "--json")
    said = json.loads(verified.out)
    assert (verified.status, said["releases"], said["notes"]) == (0, 1, [])
    assert shoal("ledger", "verify", "L", "--noted", said["head"], "-q").status == 0
    Path("i.csv").write_text("")
    assert shoal(*REPUBLISH, "-q", "--metrics", "r.prom").status == 2
    failed = metrics("r.prom")
    assert (failed["shoal_ledger_releases"], failed["shoal_run_success"]) == (1, 0)
    damaged = Path("L/0001/data.csv")
    damaged.write_bytes(damaged.read_bytes()[:-5])
    error = json.loads(shoal("ledger", "verify", "L", "--json").out)["error"]
    assert (error["status"], "release 0001" in error["message"]) == (1, True)


@pytest.mark.parametrize("more", [(), ("--log", "json")])
def test_metrics_that_find_no_room_are_said_once_and_no_stale_file_stays(shoal, monkeypatch, more):
    run = (*REPUBLISH, "-q", "--metrics", "r.prom", *more)
    assert shoal(*run).status == 0
    full = OSError(errno.ENOSPC, "No space left on device")
    Path("i.csv").write_text("")
    monkeypatch.setattr(Path, "write_text", Mock(side_effect=full))
    found = shoal(*run, status=2)
    said = "metrics 'r.prom': can't be written (No space left on device), so the file is removed"
    assert found.err.count(said) == 1
    assert [line[0] for line in found.err.splitlines()] == (["{"] if more else ["s"]) * 2
    assert not [*Path().glob("*r.prom*")]


def test_messages_are_json_where_that_is_asked(shoal):
    for command, status in ((STREAM, 0), (REPUBLISH, 0), ((*STREAM, "--k", "x"), 2)):
        done = shoal(*command, "--log", "json", status=status)
        said = [json.loads(line) for line in done.err.splitlines()]
        assert {"time", "level", "message"} == set().union(*said)
        assert said[-1]["level"] == ("error" if status else "info")
        assert not any(one["message"].startswith("shoal: ") for one in said)
    assert shoal(*STREAM, "--k", "x").err.startswith("shoal: "), "said plainly again"


def test_what_fails_under_json_prints_an_error_object(shoal):
    for command in (
        "publish p.csv -p policy.yaml -o none/out.csv --json",
        "publish p.csv -p policy.yaml --json",
        "audit p.csv -p none.yaml --json",
        "stream-status ck --json",
    ):
        done = shoal(*command.split())
        error = json.loads(done.out)["error"]
        assert error["status"] == done.status == 2
        said = [line.removeprefix("shoal: ") for line in done.err.splitlines()]
        assert [error["message"], *error["findings"]] == said
        assert len(error["rows"]) == len(said)


TOO_OLD = wearers(40, 2).with_columns(age=pl.int_range(80, 120))


@pytest.mark.parametrize(
    ("frame", "method", "rows"),
    [
        (TOO_OLD, "crp", [[*range(22, 41)]]),
        (pl.concat([wearers(9, 3), wearers(43, 1)[:30]]), "crp", [[*range(10, 40)]]),
        (wearers(9, 3)[[0, 1, 0]], "sticky", [[3]]),
        (wearers(40, 3)[[*range(40), 0]], "m-invariance", [[1, 41]]),
    ],
)
def test_the_error_of_a_ledger_that_exists_has_the_rows_of_its_findings(shoal, frame, method, rows):
    policy = json.loads(json.dumps(POLICY)) | {"method": {"name": method}}
    policy["attributes"]["beat"] = {"role": "drop"}
    Path("p.json").write_text(json.dumps(policy))
    assert shoal(*REPUBLISH, "-q").status == 0
    frame.write_csv("i.csv")
    refused = json.loads(shoal(*REPUBLISH, "-q", "--json").out)["error"]
    assert refused["rows"] == rows


def test_a_silent_stream_is_a_failure_only_where_that_is_asked(shoal):
    assert shoal(*STREAM, "-q", "--checkpoint", "ck").status == 0
    assert shoal("stream-status", "ck", "--strict").status == 0, "it has ended"
    status = json.loads(Path("ck/status.json").read_text())
    running = status | {"state": "running", "at": status["at"] - 3600}
    Path("ck/status.json").write_text(json.dumps(running))
    assert shoal("stream-status", "ck", "--strict").status == 0, "its source is quiet"
    Path("ck/status.json").write_text(json.dumps(running | {"alive": running["at"]}))
    assert shoal("stream-status", "ck").status == 0
    assert shoal("stream-status", "ck", "--strict").status == 1
