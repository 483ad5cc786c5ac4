"""The status of a stream: right after every commit, a kill and a resume; counts and times only."""

import errno
import json
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import Mock

import polars as pl
import pytest

from sample_policies import content_of
from shoal.cli.main import status_of
from shoal.errors import ANOTHER_STREAM, CheckpointError, PartyError, PromiseError
from shoal.policy.policy import Policy
from shoal.reports.advice_in_words import status_lines
from shoal.streams import run as running
from shoal.streams import stream_status as stream_statuses
from shoal.streams.options import StreamOptions
from shoal.streams.outputs import Outputs
from shoal.streams.stream_status import NAME, StreamLog, stream_status

POLICY = content_of(
    {
        "who": {"role": "subject"},
        "age": {"role": "quasi", "type": "number", "domain": [0, 100]},
        "city": {"role": "quasi", "hierarchy": {"tree": {"all": ["canary", "b", "c"]}}},
        "good": {"role": "sensitive"},
    },
    3,
    method={"name": "fads", "delta": 20},
    seed=1,
)


@pytest.fixture
def place(folder):
    Path("p.json").write_text(json.dumps(POLICY))
    records(80).write_csv("in.csv")
    return folder


def records(n: int, bad: int = 0) -> pl.DataFrame:
    age = [str(20 + (7 * i) % 60) for i in range(n - bad)] + ["canary"] * bad
    who, city = [f"w{i}" for i in range(n)], ["canary", "b", "c", "b"] * (n // 4)
    return pl.DataFrame({"who": who, "age": age, "city": city, "good": ["canary"] * n})


def stream(*more: str) -> int:
    return status_of(
        ["stream", "in.csv", "-p", "p.json", "-o", "out.csv", "--checkpoint", "st", "-q", *more]
    )


@contextmanager
def behind_each_commit(happens: Callable[[], object]) -> Iterator[None]:
    """Runs after each of whose commits something happens."""
    commit = running.Run._commit

    def committed(run):
        commit(run)
        happens()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running.Run, "_commit", committed)
        yield


def test_it_says_what_the_certificate_says_and_no_value(place):
    records(80, bad=3).write_csv("in.csv")
    assert stream() == 0
    for name in ("CURRENT", "lock"):  # it needs neither the snapshot nor the lock
        Path("st", name).unlink()
    status = stream_status("st")
    certificate = json.loads(Path("out.csv.certificate.json").read_text())
    assert status.holds
    assert status["state"] == "ended"
    assert status["records"]["came"] == 80
    assert status["records"]["published"] == certificate["records"]["out"] == 77
    assert status["records"]["set_aside"] == certificate["records"]["rejected"] == 3
    assert status["records"]["waiting"] == 0
    assert status["wait"]["allowed"] == 20
    assert status["wait"]["longest"] == certificate["stream"]["delay"]["max"]
    assert status["verdict"]["releases"] == certificate["stream"]["releases"]
    assert status["loss"] == pytest.approx(certificate["utility"]["gcp"])
    assert [event["kind"] for event in status["log"]["events"]] == ["begun", "set aside", "ended"]
    assert status.alarms == ()
    assert [status_of(["stream-status", "st", *more]) for more in ([], ["--strict"])] == [0, 0]
    written = Path("st", NAME).read_text()
    assert "canary" not in written
    assert os.stat(Path("st", NAME)).st_mode & 0o777 == 0o600


def test_a_run_that_is_stopped_says_so_and_the_next_one_goes_on(place):
    mask = os.umask(0o077)
    with behind_each_commit(Mock(side_effect=KeyboardInterrupt)):
        assert stream("--metrics", "s.prom") == 130
    os.umask(mask)
    assert Path("s.prom").stat().st_mode & 0o777 == 0o644, "its exporter is another user"
    stopped = stream_status("st")
    assert stopped["state"] == "stopped"
    assert status_of(["stream-status", "st", "--strict"]) == 1
    assert 'shoal_run_success{run="s"} 1.0' in Path("s.prom").read_text()
    started = stopped["log"]["started"]
    assert stream() == 0
    resumed = stream_status("st")
    kinds = [event["kind"] for event in resumed["log"]["events"]]
    assert kinds[0] == "begun"
    assert "stopped" in kinds
    assert resumed["log"]["started"] == started
    assert resumed["records"]["published"] == 80


@pytest.mark.parametrize(
    ("n", "leftovers", "said"),
    [
        (3, "hold", "3 held, never published"),
        (3, "drop", "3 dropped, never published"),
        (80, "hold", None),
    ],
)
def test_records_that_are_never_published_are_counted_wherever_it_is_said_how_a_stream_did(
    place, shoal, n, leftovers, said
):
    records(80)[:n].write_csv("in.csv")
    words = ["in.csv", "-p", "p.json", "--k", "10", "--set", f"leftovers={leftovers}"]
    done = shoal("stream", *words, "-o", "out.csv", "--checkpoint", "st", status=0)
    quiet = shoal("stream", *words, "-o", "quiet.csv", "-q", status=0)
    summed = next(line for line in done.err.splitlines() if "suppressed" in line and "rec" in line)
    told = (quiet.err, done.err, shoal("stream-status", "st").out)
    assert all(("never published" in text) == bool(said) for text in (*told, summed))
    assert all((said or "") in text for text in (*told, summed))
    nothing = "information loss (gcp) can't be measured: no row was published"
    assert (nothing in done.err) == bool(said)
    assert "give --original" not in done.err


def test_a_run_that_failed_says_why_and_keeps_the_time_of_its_last_commit(place, capsys):
    committed = []

    def fail():
        committed.append(stream_status("st")["at"])
        time.sleep(0.01)
        raise CheckpointError("output 'out.csv': was moved; put it back")

    with behind_each_commit(fail):
        assert stream("--metrics", "s.prom") == 2
    status = stream_status("st")
    assert (status["state"], status["at"]) == ("failed", committed[0])
    assert f'shoal_stream_last_commit_timestamp_seconds{{run="s"}} {committed[0]}\n' in (
        Path("s.prom").read_text()
    )
    failed = status.alarms[0]
    assert failed.kind == "failed"
    assert failed.since > committed[0]
    assert failed.text == "output 'out.csv': was moved; put it back"
    assert status_of(["stream-status", "st"]) == 0
    assert status_of(["stream-status", "st", "--strict"]) == 1
    assert "run the same command again" not in capsys.readouterr().out
    Path("in.csv").write_bytes(Path("in.csv").read_bytes()[:-1])
    assert stream() == 2
    assert stream_status("st")["at"] == committed[0]


def test_a_run_without_room_on_its_disk_says_so_in_its_status(place):
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with behind_each_commit(Mock(side_effect=full)):
        assert stream() == 2
    said = "No space left on device; run the same command again"
    assert stream_status("st").alarms[0].text == said


def test_a_stream_that_waits_for_records_gives_signs_of_life(place, monkeypatch):
    monkeypatch.setattr(stream_statuses, "BEAT", 0.0)
    waited = []

    def stopped(seconds):
        waited.append(stream_status("st")["alive"])
        if len(waited) > 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(running.time, "sleep", stopped)
    assert stream("--follow") == 130
    status = stream_status("st")
    assert status["at"] < waited[0] < waited[2] <= status["alive"]


@pytest.mark.parametrize("left", [None, "{", '{"schema": "shoal.stream-status/1", "log": 7}'])
def test_a_status_that_a_kill_left_behind_or_damaged_is_put_right_by_the_next_run(place, left):
    assert stream() == 0
    right = stream_status("st").content
    if left is None:
        Path("st", NAME).unlink()
    else:
        Path("st", NAME).write_text(left)
        with pytest.raises(CheckpointError, match="status"):
            stream_status("st")
    assert stream() == 0
    again = stream_status("st").content
    for key in ("state", "commits", "verdict", "records", "loss", "wait", "reuse", "clusters"):
        assert again[key] == right[key]


def test_a_broken_promise_is_the_first_alarm_and_ends_with_1(place, capsys):
    broken = PromiseError("a promise does not hold; the release is withheld")
    with behind_each_commit(Mock(side_effect=broken)):
        assert stream() == 1
    status = stream_status("st")
    assert not status.holds
    assert status["state"] == "broken"
    assert status.alarms[0].kind == "broken promise"
    capsys.readouterr()
    assert status_of(["stream-status", "st"]) == 1
    assert "a release broke a promise" in capsys.readouterr().out
    assert status_of(["stream-status", "st", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["alarms"][0]["kind"] == "broken promise"
    assert status_of(["stream-status", "nowhere"]) == CheckpointError.exit_status


def test_a_stream_of_which_no_row_shows_anything_is_not_said_to_keep_its_promises(place, shoal):
    records(8).head(2).write_csv("in.csv")
    assert stream("--metrics", "m.prom") == 1
    assert stream_status("st")["state"] == "ended"
    assert "shoal_stream_holds" in Path("m.prom").read_text()
    assert not re.search(r"shoal_stream_holds\S* 1", Path("m.prom").read_text())
    found = shoal("stream-status", "st", "--strict", status=1)
    assert "the whole of what was published breaks a promise: 1 release\n" in found.out
    assert stream() == 1  # begun again, it says the same
    assert not stream_status("st").holds


def content(**more: object) -> dict:
    return {
        "schema": "shoal.stream-status/1",
        "at": 1000.0,
        "state": "running",
        "usual_gap": 4.0,
        "recent": {"loss": 0.2},
        "loss": 0.2,
        "log": {"events": []},
        "verdict": {"holds": True, "releases": 3},
        "records": dict.fromkeys(("came", "published", "waiting", "suppressed", "set_aside"), 0),
        "wait": {"longest": 0, "allowed": None},
        "reuse": None,
        **more,
    }


ASIDE = {"events": [{"at": 990.0, "kind": "set aside", "count": 3}]}


@pytest.mark.parametrize(
    ("more", "now", "kinds"),
    [
        ({}, 1011, []),
        ({}, 1013, ["silent"]),
        ({"usual_gap": None}, 1004, []),
        ({"usual_gap": None}, 1006, ["silent"]),
        ({"alive": 1010.0}, 1013, []),
        ({"state": "ended"}, 9999, []),
        ({"log": ASIDE}, 1000, ["bad records"]),
        ({"log": ASIDE, "state": "ended"}, 1000, []),
        ({"recent": {"loss": 0.26}}, 1000, ["rising loss"]),
        ({"state": "failed", "recent": {"loss": 0.5}}, 1000, ["failed", "rising loss"]),
    ],
)
def test_alarms_come_in_the_order_of_what_matters(tmp_path, more, now, kinds):
    (tmp_path / NAME).write_text(json.dumps(content(**more)))
    status = stream_status(tmp_path, now=now)
    assert [alarm.kind for alarm in status.alarms] == kinds
    first = next(status_lines(status))
    assert first.startswith("silent since 1970-01-01 00:16:40") == (kinds == ["silent"])


def test_minutes_add_up_and_the_log_stays_short():
    log = StreamLog(0.0)
    done = {"came": 5.0, "published": 4.0, "decided": 4.0, "reused": 2.0, "loss": 1.0}
    for second in range(0, 100 * 60, 20):
        log.commit(float(second), done, longest=second % 7)
        log.note("set aside", float(second), 1)
    assert len(log.minutes) == 60
    assert log.minutes[-1]["came"] == 15
    assert log.usual_gap == 20
    assert len(log.events) <= 50
    assert log.events[-1]["count"] == 3
    recent = log.recent(100 * 60.0)
    assert (recent["loss"], recent["reuse"], recent["longest_wait"]) == (0.25, 0.5, 6)
    assert recent["rate"] == pytest.approx(30 / 120)


def test_no_checkpoint_no_status(place):
    assert status_of(["stream", "in.csv", "-p", "p.json", "-o", "out.csv", "-q"]) == 0
    assert not list(place.glob(f"**/{NAME}"))


def test_the_command_ends_with_2_where_there_is_no_status_and_its_help_says_so(place, shoal):
    Path("empty").mkdir()
    for folder in ("nope", "empty"):
        assert f"'{folder}': has no {NAME}" in shoal("stream-status", folder, status=2).err
    assert "2 where there is no status" in " ".join(shoal("stream-status", "--help").out.split())


def test_before_its_first_commit_a_stream_is_said_to_run(place, monkeypatch):
    commit, said = running.Run._commit, []

    def asked_before(self):
        if not said:
            with pytest.raises(CheckpointError) as refused:
                stream_status("st")
            said.append(str(refused.value))
        commit(self)

    monkeypatch.setattr(running.Run, "_commit", asked_before)
    assert stream() == 0
    assert "its stream runs and has committed nothing, or was killed before" in said[0]
    Path("st", NAME).unlink()  # as if killed between the first commit and its status
    with pytest.raises(CheckpointError, match=r"killed before it wrote one; .* same command again"):
        stream_status("st")
    assert stream() == 0
    assert stream_status("st")["state"] == "ended"


def test_a_stream_that_failed_before_its_first_commit_is_said_to_have_a_message(place, shoal):
    records(80, bad=3).write_csv("in.csv")
    assert stream("--dead-letters", "stop") == 2
    said = shoal("stream-status", "st", status=2).err
    assert "if the stream failed before its first commit, its message says why" in said


def test_a_new_field_is_named_and_dropped_or_set_aside_with_its_cure(place, shoal, monkeypatch):
    frame = records(80).with_columns(visit=pl.lit("canary"))
    first, *rest = frame.write_ndjson().splitlines()
    rest[30] = rest[30][:-1] + ', "no\x1bte": "canary"}'.replace("\x1b", "\\u001b")
    Path("in.jsonl").write_text("\n".join([first, *rest]))
    Path("p.json").write_text(json.dumps(POLICY | {"other": "drop"}))
    run = ("stream", "in.jsonl", "-p", "p.json", "-o", "out.csv", "-q")
    found = shoal(*run, "--checkpoint", "st", "--metrics", "m.prom", status=0)
    assert 'shoal_stream_new_fields{run="m"} 1\n' in Path("m.prom").read_text()
    said = "dropped 'no\N{REPLACEMENT CHARACTER}te', which the first record lacks"
    assert f"to publish them, name them in the policy, and {ANOTHER_STREAM}" in found.err
    assert found.err.count(said) == 1
    assert "visit" not in found.err
    assert [alarm.kind for alarm in stream_status("st").alarms] == ["new fields"]
    assert shoal("stream-status", "st").out.count(said) == 1
    assert "canary" not in Path("st", NAME).read_text()
    monkeypatch.setattr(running.time, "sleep", Mock(side_effect=KeyboardInterrupt))
    stopped = shoal(*run[:-2], "c.csv", "-q", "--checkpoint", "c", "--follow")
    assert (stopped.status, stopped.err.count(said)) == (130, 1), "its end may be far"
    Path("p.json").write_text(json.dumps(POLICY | {"other": "plain"}))
    assert shoal(*run[:-2], "b.csv", "-q").status == 0
    aside = json.loads(Path("b.csv.dead-letters.jsonl").read_text())
    assert aside["record"] == 31
    assert "other: drop" not in aside["reason"], "the policy has another 'other'"
    assert "publish these records by a new stream" in aside["reason"]


def test_most_records_set_aside_are_said_once_with_file_field_and_cure(place, shoal):
    first, *rest = records(80).write_ndjson().splitlines()
    text = "\n".join([first, *(line[:-1] + ', "note": "canary"}' for line in rest)])
    Path("in.jsonl").write_text(text)
    shoal("stream", "in.jsonl", "-p", "p.json", "-o", "out.csv", "-q", "--checkpoint", "st")
    said = shoal("stream-status", "st").out
    assert said.count("79 of the last 80 records were set aside") == 1
    assert "out.csv.dead-letters.jsonl', the last with: has 'note'" in said
    assert "add 'other: drop' to the policy" in said
    assert "canary" not in said + Path("out.csv.certificate.json").read_text()


def test_a_followed_stream_warns_once_where_most_records_are_set_aside(place, shoal, monkeypatch):
    naps = Mock(side_effect=[None, None, KeyboardInterrupt])
    monkeypatch.setattr(running.time, "sleep", naps)
    records(80, bad=60).write_csv("in.csv")
    run = ("stream", "in.csv", "-p", "p.json", "-o", "out.csv", "--checkpoint", "st", "-q")
    more = ("--follow", "--log", "json", "--metrics", "m.prom")
    stopped = shoal(*run, *more, status=1)  # as without --follow
    assert 'shoal_run_success{run="m"} 0.0' in Path("m.prom").read_text()
    assert shoal("stream-status", "st", "--strict", status=1).out.startswith("the source may have")
    warned = [json.loads(line) for line in stopped.err.splitlines()]
    warned = [one["message"] for one in warned if one["level"] == "warning"]
    assert [said.partition(";")[0].partition(":")[0] for said in warned] == [
        "60 of the last 80 records were set aside",
        "60 bad records were set aside",
    ]


def test_a_resumed_stream_without_anything_new_says_that_it_waits(place, monkeypatch):
    monkeypatch.setattr(running.time, "sleep", Mock(side_effect=KeyboardInterrupt))
    assert stream("--follow") == 130
    said: list[str] = []
    options = StreamOptions("in.csv", "out.csv", Path("st"), follow=True)
    with pytest.raises(KeyboardInterrupt):
        running.stream_file(options, Policy.load("p.json"), progress=said.append)
    assert said == ["waiting for records"]


def test_a_stream_without_its_server_says_so_before_its_first_commit(place, shoal, monkeypatch):
    with monkeypatch.context() as down:
        down.setattr(Outputs, "connect", Mock(side_effect=PartyError("no server answers")))
        assert stream() == 4
    found = shoal("stream-status", "st", "--strict", status=1)
    assert found.out.startswith("failed, nothing committed yet\n")
    assert re.search("look at this: failed, .*: no server answers", found.out)
    assert stream() == 0
    assert stream_status("st")["state"] == "ended"


@pytest.mark.parametrize("refused", [("--k", "5"), ("--read", "record_lines=3")])
def test_a_restart_that_is_refused_shows_in_status_and_metrics(place, shoal, monkeypatch, refused):
    monkeypatch.setattr(running.time, "sleep", Mock(side_effect=KeyboardInterrupt))
    run = ("stream", "in.csv", "-p", "p.json", "-o", "out.csv", "-q", "--checkpoint", "st")
    assert shoal(*run, "--follow").status == 130
    shoal(*run, *refused, status=2)
    status = json.loads(Path("st", NAME).read_text())
    assert status["state"] == "stopped", "what is refused changes nothing"
    status |= {"state": "running", "at": 1000.0}  # as a kill leaves it
    Path("st", NAME).write_text(json.dumps(status))
    began = time.time()
    assert "was made under another" in shoal(*run, "--metrics", "m.prom", *refused, status=2).err
    failed = stream_status("st").alarms[0]
    assert (failed.kind, failed.since >= began) == ("failed", True)
    assert "was made under another" in shoal("stream-status", "st").out
    assert re.search('shoal_stream_state.*state="failed".* 1', Path("m.prom").read_text())


def test_a_quiet_stream_says_that_records_were_set_aside(place, shoal):
    records(80, bad=3).write_csv("in.csv")
    run = ("stream", "in.csv", "-p", "p.json", "-o", "out.csv", "-q")
    aside = "out.csv.dead-letters.jsonl"
    said = f"shoal: 3 bad records were set aside; {aside} says which and why\n"
    assert shoal(*run).err.endswith(said)
    records(80).write_csv("in.csv")
    assert "set aside" not in shoal(*run).err
