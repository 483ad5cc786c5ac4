"""Real processes, killed at any instant: what a stream publishes is what it would have
published.
"""

import contextlib
import gzip
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest

from failing_calls import Killed, dying
from real_commands import ended, running, until
from shoal.auditor.verify import verify
from shoal.connectors import files
from shoal.policy.policy import Policy
from shoal.streams import publishing
from shoal.streams import run as job
from shoal.streams.checkpoint import Checkpoint
from shoal.streams.options import StreamOptions
from shoal.streams.outputs import Outputs
from shoal.streams.run import Run, stream_file
from stream_processes import METHODS, in_small_pieces, killed_at_work, open_shop
from thorough import every, examples, long_but, long_where

FILES = ("out.csv", "t.jsonl")
FOLLOWED = "-p policy.yaml -o out.csv --checkpoint ck --follow -q".split()
KEPT = "-p policy.yaml -q -o out.csv --checkpoint ck --trace t.jsonl".split()
LITTLE_ROOM = (
    "import resource, signal, sys; sys.dont_write_bytecode = True;"
    " signal.signal(signal.SIGXFSZ, signal.SIG_IGN); room ="
    " int(sys.argv[1]); import shoal.connectors.feeds as f; f.PIECE = 20_000; from shoal.cli.main"
    " import status_of; import shoal.streams.run; resource.setrlimit(resource.RLIMIT_FSIZE,"
    " (room, room)); sys.exit(status_of(sys.argv[2:]))"
)


@pytest.fixture
def shop(folder, monkeypatch):
    open_shop(folder, 6000)
    monkeypatch.setattr("shoal.connectors.feeds.PIECE", 40_000)
    return folder


def order(folder, **more) -> StreamOptions:
    return StreamOptions(
        "p.csv", f"{folder}/out.csv", folder / "ck", trace=f"{folder}/t.jsonl", **more
    )


def finished(folder, **more) -> list[bytes]:
    folder.mkdir(exist_ok=True)
    stream_file(order(folder, **more), Policy.load("policy.yaml"), progress=lambda stage: None)
    return [(folder / name).read_bytes() for name in FILES]


@pytest.mark.parametrize(
    ("where", "name"),
    long_but(
        (Checkpoint, "commit"),
        [
            (Checkpoint, "write"),  # segment and snapshot written, or not yet
            (Checkpoint, "commit"),
            (Checkpoint, "put"),
            (Run, "_take_in"),
            (Run, "_write"),
            (Run, "_commit"),
        ],
    ),
)
@pytest.mark.parametrize("behind", [False, True], ids=["before", "behind"])
def test_a_crash_at_any_step_loses_and_repeats_nothing(shop, monkeypatch, where, name, behind):
    """Every 1st, 2nd, ... call of each step crashes in turn, until the stream ends."""
    expected = finished(shop / "whole")
    folder = shop / "crashed"
    folder.mkdir()
    real, crashes = getattr(where, name), 0
    for _ in range(200):
        # twice at each call
        monkeypatch.setattr(where, name, dying(real, crashes // 2 + 1, behind))
        try:
            found = finished(folder)
            break
        except Killed:
            crashes += 1
    assert crashes > 3
    assert found == expected


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_crash_while_a_step_is_put_once_more_takes_nothing_away(shop, monkeypatch, at):
    expected = finished(shop / "whole")
    folder, commit = shop / "crashed", Checkpoint.commit
    monkeypatch.setattr(Checkpoint, "commit", dying(commit, 4, behind=False))
    with pytest.raises(Killed):
        finished(folder)
    monkeypatch.setattr(Checkpoint, "commit", commit)
    opened = []

    def killed_within(handle, mode):
        """The file, of which one that grows is left as it is where it would be written."""
        file = open(handle, mode)  # noqa: SIM115
        opened.append(mode)
        if opened.count("r+b") == at:
            monkeypatch.setattr(file, "write", dying(file.write, 1, behind=False), raising=False)
        return file

    with monkeypatch.context() as patched:
        patched.setattr("shoal.streams.checkpoint.open", killed_within, raising=False)
        with pytest.raises(Killed):
            finished(folder)
    assert finished(folder) == expected


SETTINGS = {
    "castle": {"beta": 20, "tick": 40},
    "b-castle": {"tick": 7},
    "faanst": {"tick": 30},
    "fads": {"strict_release": True},
    "fads-tuple": {"tick": 50},
}
FEWER = {"zhou": 600}  # whose step takes long
FORMATS = [
    ("p.csv.gz", "out.jsonl"),
    ("p.parquet", "out.csv"),
    ("p.tsv", "out.parquet"),
    ("p.jsonl", "out.tsv"),
    ("p.csv", "out.csv.gz"),
    ("p.arrow", "out.arrow"),
]


@pytest.mark.parametrize(
    ("method", "source", "sink"),
    long_where(
        lambda case: case[0] != "fads",
        [(method, *FORMATS[at % len(FORMATS)]) for at, method in enumerate(METHODS)],
    ),
)
def test_every_method_goes_on_from_a_crash_in_every_format(shop, monkeypatch, method, source, sink):
    """Crashes before and behind each commit and each growth of an output, in turn."""
    monkeypatch.setattr("shoal.connectors.feeds.SLICE", 350)
    frame = files.read("p.csv").frame.head(FEWER.get(method, 1500))
    writers = {
        "p.csv": frame.write_csv,
        "p.tsv": lambda path: frame.write_csv(path, separator="\t"),
        "p.csv.gz": lambda path: Path(path).write_bytes(gzip.compress(frame.write_csv().encode())),
        "p.jsonl": frame.write_ndjson,
        "p.parquet": frame.write_parquet,
        "p.arrow": frame.write_ipc,
    }
    writers[source](source)
    policy = Policy.load("policy.yaml").with_method(
        method, {"delta": 150} | SETTINGS.get(method, {})
    )

    def finish(folder):
        folder.mkdir(exist_ok=True)
        asked = StreamOptions(source, f"{folder}/{sink}", folder / "ck", trace=f"{folder}/t.jsonl")
        stream_file(asked, policy, progress=lambda stage: None)
        return files.read(folder / sink).frame, (folder / "t.jsonl").read_bytes()

    rows, trace = finish(shop / "whole")
    real = {name: getattr(Checkpoint, name) for name in ("commit", "put")}
    crashes = 0
    steps = [(name, behind, at) for name in real for behind in (False, True) for at in (1, 3)]
    for name, behind, at in every(4, steps, first=METHODS.index(method)):
        folder = shop / f"{name}-{behind}-{at}"
        monkeypatch.setattr(Checkpoint, name, dying(real[name], at, behind))
        with contextlib.suppress(Killed):
            finish(folder)
        monkeypatch.setattr(Checkpoint, name, dying(real[name], at + 1, not behind))
        with contextlib.suppress(Killed):
            finish(folder)
            crashes -= 1
        crashes += 1
        monkeypatch.setattr(Checkpoint, name, real[name])
        found = finish(folder)
        assert found[0].equals(rows)
        assert found[1] == trace
    assert crashes >= 1


@pytest.mark.parametrize("method", long_but("fads", sorted({"fads", *every(3, METHODS, first=2)})))
def test_killed_again_and_again_the_output_is_the_same(shop, method):
    policy = (shop / "policy.yaml").read_text()
    (shop / "policy.yaml").write_text(policy.replace("name: fads", f"name: {method}"))
    assert Policy.load("policy.yaml").method_name == method
    expected = finished(shop / "whole")
    command = in_small_pieces("stream", "p.csv", *KEPT)
    killed_at_work(lambda: subprocess.Popen(command, cwd=shop), shop / "ck", times=examples(2, 6))
    assert [(shop / name).read_bytes() for name in FILES] == expected


@pytest.mark.parametrize("fed", ["a pipe", "a file"])
def test_standard_input_is_fed_again_from_its_beginning_and_goes_on(shop, fed):
    """Killed at some instants; what was consumed is compared and skipped, so that the output is the
    same.
    """
    expected = finished(shop / "whole")
    text = (shop / "p.csv").read_bytes()
    command = in_small_pieces("stream", "-", *KEPT)

    def start() -> subprocess.Popen:
        if fed == "a file":
            with open(shop / "p.csv", "rb") as source:
                return subprocess.Popen(command, cwd=shop, stdin=source)
        process = subprocess.Popen(command, cwd=shop, stdin=subprocess.PIPE)
        threading.Thread(target=pour, args=(process.stdin, text), daemon=True).start()
        return process

    killed_at_work(start, shop / "ck", times=3)
    assert [(shop / name).read_bytes() for name in FILES] == expected
    if fed == "a file":
        return
    for other, said in (
        (text[:2000], b"feed it again"),
        (text.replace(b"\nC", b"\nD", 40), b"feed it again"),
        (text.partition(b"\n")[2], b"does not begin with the columns"),
    ):
        shown = subprocess.run(command, cwd=shop, input=other, stderr=subprocess.PIPE)
        assert shown.returncode == 2
        assert said in shown.stderr
    assert (shop / "out.csv").read_bytes() == expected[0]


def pour(pipe, text) -> None:
    """Everything into the pipe, unless its reader is killed."""
    with contextlib.suppress(OSError), pipe:
        pipe.write(text)


@pytest.mark.parametrize("suffix", long_but(".csv", [".csv", ".tsv", ".jsonl"]))
def test_a_followed_file_is_published_as_it_grows_and_stops_cleanly(shop, suffix):
    frame = files.read(shop / "p.csv").frame
    frame.write_csv(shop / "all.tsv", separator="\t")
    frame.write_ndjson(shop / "all.jsonl")
    (shop / "p.csv").rename(shop / "all.csv")
    lines = (shop / f"all{suffix}").read_bytes().splitlines(keepends=True)
    (shop / f"growing{suffix}").write_bytes(b"".join(lines[:2001]) + lines[2001][:5])
    with running(shop, "stream", f"growing{suffix}", *FOLLOWED) as process:
        until(lambda: rows(shop) >= 1800, process)
        with open(shop / f"growing{suffix}", "ab") as file:
            file.write(lines[2001][5:] + b"".join(lines[2002:]))
        until(lambda: rows(shop) == 6000 or rows(shop) >= 5700, process)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "the same command resumes from there" in err
    assert (shop / "out.csv.certificate.json").exists()
    published = (shop / "out.csv").read_bytes()
    (shop / "all.csv").rename(shop / "p.csv")
    assert finished(shop / "whole")[0].startswith(published)


def test_a_second_stream_into_the_same_sink_is_refused_until_the_first_one_ends(shop):
    """With a checkpoint of its own it used to write into the same file."""

    stream = "stream p.csv -p policy.yaml -q -o out.csv --checkpoint".split()
    with running(shop, *stream, "one", "--follow") as first:
        until(lambda: (shop / ".out.csv.lock").exists(), first)
        for more in ([], ["--follow"]):
            second = ended(shop, *stream, "two", *more)
            assert second.returncode == 2
            assert "out.csv': another run writes it" in second.stderr
            assert second.stderr.count("\n") == 1
            assert not (shop / "two").exists()
        until(lambda: rows(shop) >= 5700, first)
    assert (shop / ".out.csv.lock").exists(), "a killed stream leaves its lock"
    assert ended(shop, *stream, "one").returncode == 0
    assert not (shop / ".out.csv.lock").exists()
    assert rows(shop) == 6000


def test_a_deadline_releases_records_of_a_quiet_stream(shop):
    deadline = "--set delta=100000 --deadline 0.5".split()
    with running(shop, "stream", "p.csv", *FOLLOWED, *deadline) as process:
        until(lambda: rows(shop) == 6000, process)


class Time:
    """A clock that sleeping alone moves, and that ends the run when its time has come."""

    monotonic, process_time = time.monotonic, time.process_time

    def __init__(self, now):
        self.now, self.ends = now, now

    def time(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds
        if self.now >= self.ends:
            raise KeyboardInterrupt


def test_a_deadline_goes_on_while_the_stream_is_stopped(shop, monkeypatch):
    """Stopped every 3 seconds and begun again at once, or later: after 10 seconds everything is
    out.
    """
    clock = Time(1000.0)
    monkeypatch.setattr(job, "time", clock)
    monkeypatch.setattr(publishing, "time", clock)
    policy = Policy.load("policy.yaml").with_method("fads", {"delta": 100_000})
    asked = order(shop, follow=True, deadline=10.0)

    def go_on(seconds, asked=asked):
        boot = clock.now - 77  # the other clock begins anew with every process
        clock.ends = clock.now + seconds
        with pytest.raises(KeyboardInterrupt):
            stream_file(asked, policy, progress=lambda stage: None, clock=lambda: clock.now - boot)
        return rows(shop)

    assert [go_on(3) for _ in range(3)] == [0, 0, 0]
    clock.now += 0.5
    assert go_on(0.3) == 0
    assert go_on(0.4) == 6000


def test_a_stop_while_kernels_are_compiled_leaves_nothing_or_everything(shop):
    stream = "stream p.csv -p policy.yaml -o out.csv -q --checkpoint ck".split()
    cache = shop / "cache"
    with running(shop, *stream, env=os.environ | {"NUMBA_CACHE_DIR": str(cache)}) as process:
        until(lambda: any(cache.rglob("*.nbi")), process)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert err.count("\n") == 1
    left = [(shop / name).exists() for name in ("out.csv", "out.csv.certificate.json", "ck")]
    assert left in ([False] * 3, [True] * 3)


@pytest.mark.parametrize("sink", long_but("out.csv", ["out.csv", "out.parquet"]))
@pytest.mark.parametrize("name", ["_take_in", "_write", "_commit", "_put", "_measured", "_certify"])
def test_a_certificate_of_a_stopped_stream_is_of_what_is_there(shop, monkeypatch, sink, name):
    """Stopped by Ctrl-C behind any step: the certificate counts the rows of the output, or neither
    is there.
    """
    asked = StreamOptions("p.csv", sink, shop / "ck")
    for at in (1, 3, 7):
        place = Outputs if name == "_put" else Run
        monkeypatch.setattr(place, name, dying(getattr(place, name), at, True, KeyboardInterrupt))
        with contextlib.suppress(KeyboardInterrupt):
            stream_file(asked, Policy.load("policy.yaml"), progress=lambda stage: None)
        monkeypatch.undo()
        monkeypatch.chdir(shop)
        monkeypatch.setattr("shoal.connectors.feeds.PIECE", 40_000)
        shown = shop / f"{sink}.certificate.json"
        assert shown.exists() == (shop / sink).exists()
        if shown.exists():
            shown = json.loads(shown.read_text())
            assert shown["records"]["out"] == files.read(sink).frame.height
            assert (
                shown["output"]["sha256"] == hashlib.sha256((shop / sink).read_bytes()).hexdigest()
            )
    stream_file(asked, Policy.load("policy.yaml"), progress=lambda stage: None)
    assert files.read(sink).frame.height == 6000


def moved(path):
    path.rename(path.with_name("rotated"))


def cut(path):
    os.truncate(path, 1000)


@pytest.mark.parametrize(
    ("change", "said"),
    [(cut, "has become shorter while it was followed"), (moved, "was moved away or replaced")],
)
def test_a_followed_file_that_shrinks_or_is_replaced_stops_the_stream(shop, change, said):
    with running(shop, "stream", "p.csv", *FOLLOWED) as process:
        until(lambda: rows(shop) >= 5000, process)
        change(shop / "p.csv")
        _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert said in err


def test_a_folder_that_rolls_holds_every_row_once_however_often_its_stream_is_killed(shop):
    options = "stream p.csv -p policy.yaml -o out/ --write roll=8KB --checkpoint ck -q".split()
    command = in_small_pieces(*options)

    def start():
        return subprocess.Popen(command, cwd=shop, stderr=subprocess.DEVNULL)

    killed_at_work(start, shop / "ck", times=8)
    manifest, *parts = sorted((shop / "out").iterdir())
    assert (manifest.name, len(parts) > 3) == ("_shoal.json", True)
    assert all(check.ok is not False for check in verify("out", policy="policy.yaml"))
    assert not [*(shop / "ck" / "rows").iterdir()]
    finished(shop / "one")
    rows = pl.concat(map(pl.read_parquet, parts))
    assert rows.equals(pl.read_csv("one/out.csv", infer_schema=False))
    parts[0].unlink()
    assert start().wait(timeout=60) == 2


def moved_and_made_anew(path):
    moved(path)
    path.touch()


def edited(path):
    content = path.read_bytes()
    moved(path)
    path.write_bytes(content.replace(b"5", b"6"))


def with_more(path):
    with open(path, "ab") as file:
        file.write(b"somebody's")


SPOILED = [moved, moved_and_made_anew, cut, edited, Path.unlink, with_more]


@pytest.mark.parametrize(
    ("name", "spoil"),
    long_but(("t.jsonl", moved), [*(("out.csv", spoil) for spoil in SPOILED), ("t.jsonl", moved)]),
)
def test_an_output_that_was_moved_or_shortened_stops_the_stream_until_it_is_back(shop, spoil, name):
    """It went on in a file that began with as many null characters, which the certificate named."""
    whole = (shop / "p.csv").read_bytes()
    ends = [at for at, sign in enumerate(whole) if sign == 10]
    places = [0, ends[1500] + 1, ends[3000] + 1, len(whole)]
    parts = [whole[first:end] for first, end in pairwise(places)]
    (shop / "p.csv").write_bytes(parts[0])
    stream = ("stream", "p.csv", *KEPT)
    with running(shop, *stream, "--follow") as process:
        for least, part in ((1200, parts[1]), (2700, parts[2])):
            until(lambda least=least: rows(shop) >= least, process)
            if part is parts[2]:
                time.sleep(0.3)
                left = (shop / name).read_bytes()
                spoil(shop / name)
            with open(shop / "p.csv", "ab") as file:
                file.write(part)
        _, err = process.communicate(timeout=60)
    said = f"output '{name}': was moved, shortened or changed since the stream wrote it, or"
    assert (process.returncode, said in err) == (2, True), err
    found = (shop / name).read_bytes() if (shop / name).exists() else b""
    assert b"\0" not in found
    if spoil is not edited:  # its length and its end are as they were
        again = ended(shop, *stream)
        assert (again.returncode, said in again.stderr) == (2, True), again.stderr
    (shop / name).write_bytes(left)
    assert ended(shop, *stream).returncode == 0
    (shop / "p.csv").write_bytes(whole)
    assert [(shop / one).read_bytes() for one in FILES] == finished(shop / "whole")


@pytest.mark.parametrize("sink", ["out.csv", "out.parquet"])
def test_a_sink_that_fills_up_is_reported_in_a_line_and_the_stream_goes_on_when_there_is_room(
    shop, sink
):
    """The system refuses to let any file grow beyond 60, 200, ... KB; nothing is lost or
    repeated.
    """
    whole = StreamOptions("p.csv", f"whole-{sink}", shop / "whole")
    stream_file(whole, Policy.load("policy.yaml"), progress=lambda stage: None)
    command = [
        sys.executable,
        "-c",
        LITTLE_ROOM,
        *f"ROOM stream p.csv -p policy.yaml -q -o {sink} --checkpoint ck".split(),
    ]
    refused = 0
    for room in (60, 200, 100_000):
        command[3] = str(room << 10)
        found = subprocess.run(command, cwd=shop, stderr=subprocess.PIPE)
        if found.returncode == 0:
            break
        refused += 1
        assert found.returncode == 2, found.stderr
        assert b"free some space" in found.stderr
        assert found.stderr.count(b"\n") == 1
    assert refused
    assert files.read(shop / sink).frame.equals(files.read(shop / f"whole-{sink}").frame)


def rows(folder) -> int:
    path = folder / "out.csv"
    return path.read_bytes().count(b"\n") - 1 if path.exists() else 0
