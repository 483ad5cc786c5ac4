"""Streams in shards: the rows of as many local runs, whatever becomes of tasks and drivers.

Here tasks run in this process, in any order, and each attempt but the last is lost.
`tests/services/test_spark.py` has them run by Spark.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import shoal
from services.killed_shards import BATCH_BYTES, PLACES, SHARDS
from shard_cases import contents, local_runs, published, source, write
from shoal.auditor.audit import audit_file
from shoal.auditor.verify import verify
from shoal.cli.main import app
from shoal.connectors import engines
from shoal.connectors.engines import Engine
from shoal.connectors.location import MANIFEST
from shoal.data.certificate import Certificate
from shoal.errors import CheckpointError, InputError, PromiseError
from shoal.policy.binding import past_memory
from shoal.policy.policy import Policy
from shoal.streams import shard_files, sharded
from shoal.streams.gate import Gate, Passed
from shoal.streams.options import StreamOptions
from shoal.streams.run import stream_file
from shoal.streams.shard import shard_folder
from shoal.streams.shard_files import Sharding
from shoal.streams.stream_status import stream_status
from stream_cases import policy_of, stream_of
from thorough import long_but, long_where
from unit.connectors.test_spread import Careless

KILLED = Path(__file__).parents[2] / "services" / "killed_shards.py"
SEVERAL = policy_of("fads", k=4, delta=60).model.model_dump(exclude_unset=True)
SEVERAL["attributes"] |= {"who": {"role": "identifier"}, "ill": {"role": "identifier"}}
METHODS = {
    "several names": Policy.from_dict({**SEVERAL, "subject": ["who", "ill"]}),
    "castle": policy_of("castle", k=4, delta=60, beta=5),
    "faanst": policy_of("faanst", k=4, delta=60),
    "no subject": policy_of("fads", k=4, delta=60, subject=False, seed=9),
    "sky": policy_of("sky", k=4, delta=60),
    "ticks": policy_of("fads-tuple", k=4, delta=60, tick=20),
    "fads": policy_of("fads", k=4, delta=60),
    "diverse": policy_of(
        "fads", k=4, delta=60, more=[{"model": "l-diversity", "l": 2, "attribute": "ill"}]
    ),
}


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharded, "BATCH_BYTES", BATCH_BYTES)


def options(folder: Path, **more: Any) -> StreamOptions:
    asked = StreamOptions(f"{folder}/in", f"{folder}/out/", folder / "state")
    return replace(asked, **more)


def streamed(
    folder: Path,
    policy: Policy,
    progress: Callable[[str], Any] = print,
    shards: int | None = SHARDS,
    **more: Any,
) -> Certificate:
    with engines.using(Engine("spark", lambda ending: Careless(), shards=shards)):
        return stream_file(options(folder, **more), policy, progress=progress)[0]


def assert_refused(
    error: type[Exception], said: str, folder: Path, policy: Policy, **more: Any
) -> None:
    with pytest.raises(error, match=said):
        streamed(folder, policy, **more)


@pytest.mark.parametrize("name", long_where(lambda name: name != "fads", METHODS))
def test_each_shard_publishes_what_a_local_run_of_its_records_does(tmp_path, name):
    frame, policy = stream_of(900, seed=4, people=400, missing=0.02), METHODS[name]
    form = ".parquet" if name == "castle" else ".csv"
    source(tmp_path / "in", frame, form=form)
    certificate = streamed(tmp_path, policy)
    for shard, rows in enumerate(local_runs(policy, frame, SHARDS)):
        assert published(tmp_path / "out", shard).equals(rows)
    assert certificate.holds
    assert certificate["records"]["in"] == frame.height
    assert sum(one["in"] for one in certificate["stream"]["shards"]) == frame.height
    assert certificate.to_json() == (tmp_path / "out" / MANIFEST).read_text() or (
        Certificate.load(tmp_path / "out" / MANIFEST)["output"] == certificate["output"]
    )
    assert {path.name for path in tmp_path.iterdir()} == {"in", "out", "state"}


def test_the_release_can_be_audited_and_verified(tmp_path):
    policy = METHODS["fads"]
    source(tmp_path / "in", stream_of(600, people=300))
    streamed(tmp_path, policy)
    audited = audit_file(f"{tmp_path}/out", policy, None).certificate
    assert audited.holds
    assert all(check.ok is not False for check in verify(f"{tmp_path}/out"))
    status = stream_status(tmp_path / "state")
    assert status.holds
    each = Certificate.load(tmp_path / "state" / "shard-0001" / "certificate.json")
    assert each.holds
    assert each["seed"] != policy.model.seed


def test_nobody_is_in_two_shards_however_the_name_is_written():
    names = ["p7", " p7", "p7 ", "ｐ7", "p\u200b7"]
    frame = pl.DataFrame({"who": names})
    assert len(set(Sharding("who", 50, 0).of(frame).tolist())) == 1
    spread = Sharding("who", 4, 0).of(pl.DataFrame({"who": [f"p{n}" for n in range(4000)]}))
    assert np.bincount(spread).min() > 900


def test_without_a_subject_equal_records_share_a_shard():
    frame = stream_of(300, people=300)
    sharding = Sharding(None, 4, 0)
    twice = sharding.of(
        pl.concat([frame, frame.select(reversed(frame.columns)).select(frame.columns)])
    )
    assert twice[:300].tolist() == twice[300:].tolist()
    assert len(set(twice.tolist())) == 4


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stream that nobody killed, as `killed_shards.py` publishes it."""
    folder = tmp_path_factory.mktemp("shards")
    begun(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sharded, "BATCH_BYTES", BATCH_BYTES)
        streamed(folder, METHODS["fads"])
    return folder


def begun(folder: Path) -> None:
    source(folder / "in", stream_of(700, seed=2, people=300), files=6)
    content = METHODS["fads"].model.model_dump_json(exclude_unset=True)
    (folder / "policy.json").write_text(content)


def kill(folder: Path, place: str, call: int) -> None:
    done = subprocess.run(
        [sys.executable, str(KILLED), str(folder), place, str(call), "here"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == -9, done.stderr


@pytest.mark.parametrize("place", long_but("tasks done", PLACES))
def test_killed_anywhere_and_resumed_it_writes_the_same_bytes(place, tmp_path, undisturbed):
    begun(tmp_path)
    kill(tmp_path, place, 5 if place == "rows put" else 2)
    if place == "rows put":
        with pytest.raises(InputError, match="never audited"):
            audit_file(f"{tmp_path}/out", METHODS["fads"], None)
    left = [one.name for one in tmp_path.iterdir() if one.name.endswith(".part")]
    assert left
    before = contents(tmp_path / "out") if (tmp_path / "out").exists() else {}
    whole = contents(undisturbed / "out")
    assert before.items() <= whole.items()
    streamed(tmp_path, METHODS["fads"])
    assert not [one.name for one in tmp_path.iterdir() if one.name.endswith(".part")]
    assert contents(tmp_path / "out") == whole
    assert _stated(tmp_path) == _stated(undisturbed)
    names = {one.name for one in (tmp_path / "state").glob("shard-*/*")}
    assert not [name for name in names if name.startswith("rows-") or name.endswith(".tmp")]
    assert len([name for name in names if name.startswith("snapshot-")]) == SHARDS


def _stated(folder: Path) -> dict[str, Any]:
    content = json.loads((folder / "out" / MANIFEST).read_text())
    return {name: value for name, value in content.items() if name not in ("date", "seconds")}


def interrupted(folder: Path, policy: Policy, records: pl.DataFrame) -> None:
    """Follows a folder of three files, and stops by Ctrl-C once all their records are committed."""
    source(folder / "in", records, files=3)

    def stop(line: str) -> None:
        if f"{records.height} records" in line:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        streamed(folder, policy, progress=stop, follow=True)


@pytest.mark.long
def test_a_followed_folder_is_resumed_with_the_files_that_came_meanwhile(tmp_path):
    frame, policy = stream_of(900, seed=4, people=400), METHODS["fads"]
    interrupted(tmp_path, policy, frame[:500])
    assert not Certificate.load(tmp_path / "out" / MANIFEST)["stream"]["closed"]
    assert (tmp_path / "state" / "shard-0000" / "certificate.json").exists()
    write(frame[500:], tmp_path / "in" / "003.csv")
    certificate = streamed(tmp_path, policy, shards=None)
    assert certificate["stream"]["closed"]
    for shard, rows in enumerate(local_runs(policy, frame, SHARDS)):
        assert published(tmp_path / "out", shard).equals(rows)
    again = streamed(tmp_path, policy)
    assert again["output"] == certificate["output"]
    write(frame[:3], tmp_path / "in" / "004.csv")
    assert_refused(CheckpointError, "has ended", tmp_path, policy)
    assert stream_status(tmp_path / "state")["state"] == "ended"


def test_an_older_copy_of_the_checkpoint_publishes_nobody_twice(tmp_path):
    frame, policy = stream_of(900, seed=4, people=400), METHODS["fads"]
    interrupted(tmp_path, policy, frame[:500])
    shutil.copytree(tmp_path / "state", tmp_path / "older")
    write(frame[500:], tmp_path / "in" / "005.csv")
    streamed(tmp_path, policy)
    before = {one.name: one.read_bytes() for one in (tmp_path / "out").iterdir()}
    shutil.rmtree(tmp_path / "state")
    (tmp_path / "older").rename(tmp_path / "state")
    write(frame[500:600], tmp_path / "in" / "004.csv")
    assert_refused(CheckpointError, "is an older copy", tmp_path, policy)
    assert {one.name: one.read_bytes() for one in (tmp_path / "out").iterdir()} == before


def test_a_file_that_was_read_is_refused_under_another_name(tmp_path):
    frame, policy = stream_of(500, seed=4, people=400), METHODS["fads"]
    interrupted(tmp_path, policy, frame)
    read, renamed = tmp_path / "in" / "001.csv", tmp_path / "in" / "archived.csv"
    read.rename(renamed)
    write(frame[:0], tmp_path / "in" / "empty.csv")
    assert_refused(CheckpointError, "has the content of a file that was read", tmp_path, policy)
    renamed.unlink()  # a file that was read may be deleted
    write(frame[:0], tmp_path / "in" / "nothing.csv")
    assert streamed(tmp_path, policy)["records"]["in"] == 500


@pytest.mark.long
@pytest.mark.parametrize("is_open", [False, True], ids=["before", "meanwhile"])
def test_a_file_that_grows_while_it_is_read_is_refused_and_read_once_it_is_whole(
    tmp_path, monkeypatch, is_open
):
    """Else its new records were read, but the checkpoint knew the file by its former size."""
    frame, policy = stream_of(500, seed=4, people=400), METHODS["fads"]
    source(tmp_path / "in", frame[:490], files=3)
    feed_of = shard_files.feed_of
    more = [frame[490:].write_csv(include_header=False)]

    def growing(path: str, **others: Any) -> Any:
        found = feed_of(path, **others) if is_open else None
        if path.endswith("002.csv") and more:
            with open(path, "a") as file:
                file.write(more.pop())
        return found or feed_of(path, **others)

    monkeypatch.setattr(shard_files, "feed_of", growing)
    assert_refused(InputError, r"'002.csv': changed while it was read", tmp_path, policy)
    assert streamed(tmp_path, policy)["records"]["in"] == 500


def test_a_file_whose_name_is_not_utf8_is_refused_before_anything_is_read(tmp_path):
    source(tmp_path / "in", stream_of(300), files=3)
    name = os.fsencode(tmp_path / "in") + b"/\xff.csv"
    try:
        shutil.copy(tmp_path / "in" / "000.csv", os.fsdecode(name))
    except OSError:
        pytest.skip("this file system takes no such names")
    assert_refused(InputError, "its name is not UTF-8", tmp_path, METHODS["fads"])
    os.unlink(name)
    assert streamed(tmp_path, METHODS["fads"])["records"]["in"] == 300


def test_another_stream_is_not_resumed(tmp_path):
    frame, policy = stream_of(300), METHODS["fads"]
    source(tmp_path / "in", frame, files=3)
    streamed(tmp_path, policy)
    assert_refused(CheckpointError, "people would move", tmp_path, policy, shards=4)
    assert_refused(CheckpointError, "another policy", tmp_path, policy.with_k(5))
    with pytest.raises(CheckpointError, match="another source or output"):
        streamed(tmp_path, policy, sink=f"{tmp_path}/other/")
    with pytest.raises(CheckpointError, match="the checkpoint is new"):
        streamed(tmp_path, policy, checkpoint=tmp_path / "new")
    of_a_file = StreamOptions(f"{tmp_path}/in/000.csv", f"{tmp_path}/o.csv", tmp_path / "state")
    with pytest.raises(CheckpointError, match="another kind of stream"):
        stream_file(of_a_file, policy, progress=print)
    write(frame[:5], tmp_path / "in" / "001.csv")
    assert_refused(CheckpointError, "1 of its files changed", tmp_path, policy)
    (tmp_path / "in" / "001.csv").unlink()
    next((tmp_path / "out").glob("*.parquet")).unlink()
    assert_refused(CheckpointError, "1 of its files changed or went", tmp_path, policy)


@pytest.mark.long
def test_files_that_differ_are_refused_and_nothing_of_them_is_committed(tmp_path):
    frame, policy = stream_of(300), METHODS["fads"]
    source(tmp_path / "in", frame, files=3)
    write(frame.drop("note"), tmp_path / "in" / "zz.csv")
    assert_refused(InputError, r"'zz.csv': has other columns", tmp_path, policy)
    assert {path.name for path in tmp_path.iterdir()} == {"in", "out", "state"}
    (tmp_path / "in" / "zz.csv").unlink()
    certificate = streamed(tmp_path, policy)
    assert certificate["records"]["in"] == 300
    other = tmp_path / "other"
    other.mkdir()
    source(other / "in", frame, files=3, form=".parquet")
    write(frame.with_columns(pl.col("age").cast(pl.Int64)), other / "in" / "zz.parquet")
    assert_refused(InputError, r"'zz.parquet': has columns of other types", other, policy)
    write(frame, other / "in" / "zz.csv")
    assert_refused(InputError, "of 2 formats", other, policy)


def test_bad_records_are_listed_by_their_number_in_the_stream(tmp_path):
    frame = stream_of(300).with_columns(
        who=pl.when(pl.int_range(300) == 250).then(None).otherwise(pl.col("who"))
    )
    source(tmp_path / "in", frame, files=3)
    with open(tmp_path / "in" / "001.csv", "a") as file:
        file.write("too,few\n")
    assert_refused(InputError, "has 2 cells", tmp_path, METHODS["fads"], dead_letters="stop")
    certificate = streamed(tmp_path, METHODS["fads"])
    assert certificate["records"]["rejected"] == 2
    lines = (tmp_path / "out.dead-letters.jsonl").read_text().splitlines()
    assert sorted(json.loads(line)["record"] for line in lines) == [133, 251]


def test_a_broken_promise_withholds_the_batch(tmp_path, monkeypatch):
    source(tmp_path / "in", stream_of(400), files=4)
    usual = Gate.measure

    def broken(gate: Gate, *given: Any) -> Passed:
        if gate.known:  # a batch was published
            raise PromiseError("a promise does not hold")
        return usual(gate, *given)

    monkeypatch.setattr(Gate, "measure", broken)
    with pytest.raises(PromiseError):
        streamed(tmp_path, METHODS["fads"])
    before = contents(tmp_path / "out")
    assert not stream_status(tmp_path / "state").holds
    assert all(check.ok is not False for check in verify(f"{tmp_path}/out"))
    monkeypatch.undo()
    monkeypatch.setattr(sharded, "BATCH_BYTES", BATCH_BYTES)
    streamed(tmp_path, METHODS["fads"])
    assert before.items() <= contents(tmp_path / "out").items()


def test_a_release_without_rows_still_names_its_columns(tmp_path):
    (tmp_path / "in").mkdir()
    write(stream_of(3)[:0], tmp_path / "in" / "a.csv")
    certificate = streamed(tmp_path, METHODS["fads"])
    assert certificate["records"]["out"] == 0
    assert pl.read_parquet(tmp_path / "out" / "*.parquet").columns[-1] == "note"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"checkpoint": None}, "checkpoint: is missing"),
        ({"shards": None}, "say in how many shards"),
        ({"trace": "t.jsonl"}, "trace: is not for"),
        ({"deadline": 3.0}, "deadline: is not for"),
        ({"sink": "out.csv"}, "is not a folder"),
        ({"sink": "kafka://localhost:1/a"}, "is not a folder"),
        ({"source": "kafka://localhost:1/a"}, "is not a folder"),
        ({"source": "-"}, "is not a folder"),
        ({"sink": "{folder}/in/out/"}, "one lies in another"),
        ({"checkpoint": Path("{folder}/in")}, "one lies in another"),
        ({"sink": "{folder}/none/out/"}, "does not exist"),
    ],
)
def test_what_an_engine_cannot_do_is_refused(more, message, tmp_path):
    source(tmp_path / "in", stream_of(30), files=1)
    placed = {
        name: type(value)(str(value).format(folder=tmp_path))
        if isinstance(value, str | Path)
        else value
        for name, value in more.items()
    }
    with pytest.raises(InputError) as refused:
        streamed(tmp_path, METHODS["fads"], **placed)
    assert message in str(refused.value)
    assert {path.name for path in tmp_path.iterdir()} == {"in"}


CLOSE = [{"model": "t-closeness", "t": 0.4, "attributes": ["ill"]}]


@pytest.mark.long
def test_closeness_needs_a_table_that_all_shards_compare_with(tmp_path):
    frame = stream_of(400)
    source(tmp_path / "in", frame, files=2)
    policy = policy_of("fads", k=4, delta=60, more=CLOSE)
    assert_refused(InputError, r"t-closeness.*reference", tmp_path, policy)
    write(frame, tmp_path / "reference.csv")
    named = policy._with(reference=str(tmp_path / "reference.csv"))
    streamed(tmp_path, named)
    for shard, rows in enumerate(local_runs(named, frame, SHARDS)):
        assert published(tmp_path / "out", shard).equals(rows)


@pytest.mark.parametrize("shards", ["", "0", "4097", "-1", "two", "10000"])
def test_what_is_no_number_of_shards_is_refused(shards):
    with pytest.raises(InputError, match="a number of shards from 1 to 4096"):
        engines.using(f"spark:{shards}").__enter__()


def test_an_engine_rolls_no_files_and_divides_no_table(tmp_path):
    source(tmp_path / "in", stream_of(30), files=1)
    with pytest.raises(InputError, match="without engine="):
        streamed(tmp_path, METHODS["fads"].with_files({}, {"roll": "day"}))
    with engines.using("spark:2"), pytest.raises(InputError, match="divides streams alone"):
        past_memory.is_past_memory(tmp_path / "in")


def command(place, policy, output: str, more: str) -> None:
    """Streams by the command from `in` to the output."""
    (place / "policy.json").write_text(policy.model.model_dump_json(exclude_unset=True))
    words = f"stream {place}/in -p {place}/policy.json -o {place}/{output} {more}"
    words = f"{words} --engine spark:{SHARDS}"
    done = CliRunner().invoke(app, words.split(), catch_exceptions=False)
    assert done.exit_code == 0, done.output


@pytest.mark.long
def test_a_program_streams_as_the_command_does(tmp_path, monkeypatch):
    frame, policy = stream_of(500, people=200), METHODS["fads"]
    source(tmp_path / "in", frame)
    monkeypatch.setattr(engines, "_start_spark", lambda ending: Careless())
    named = {"checkpoint": tmp_path / "state", "engine": f"spark:{SHARDS}"}
    certificate = shoal.stream_file(tmp_path / "in", policy, f"{tmp_path}/out/", **named)
    assert certificate["records"]["out"] == 500
    command(tmp_path, policy, "again/", f"--checkpoint {tmp_path}/other")
    assert contents(tmp_path / "again") == contents(tmp_path / "out")
    frame[:200].write_csv(tmp_path / "one.csv")
    local = shoal.stream_file(tmp_path / "one.csv", policy, tmp_path / "one.out.csv")
    assert local["records"]["out"] == 200


def test_workers_who_do_not_see_the_checkpoint_commit_nothing(tmp_path, monkeypatch):
    source(tmp_path / "in", stream_of(300), files=3)
    elsewhere = tmp_path / "elsewhere"
    for shard in range(SHARDS):
        shard_folder(elsewhere, shard).mkdir(parents=True)
    usual = sharded.Advance

    def misled(asked, *more):
        return usual(replace(asked, options=replace(asked.options, checkpoint=elsewhere)), *more)

    monkeypatch.setattr(sharded, "Advance", misled)
    assert_refused(CheckpointError, "not the same folder", tmp_path, METHODS["fads"])
    assert {path.name for path in tmp_path.iterdir()} == {"in", "elsewhere"}
    monkeypatch.setattr(sharded, "Advance", usual)
    assert streamed(tmp_path, METHODS["fads"])["records"]["out"] == 300


def test_a_report_is_drawn_of_all_shards(tmp_path, monkeypatch):
    frame, policy = stream_of(400, people=150), METHODS["fads"]
    source(tmp_path / "in", frame, files=3, form=".parquet")
    monkeypatch.setattr(engines, "_start_spark", lambda ending: Careless())
    more = f"--checkpoint {tmp_path}/state --report {tmp_path}/r.html --json"
    command(tmp_path, policy, "out/", more)
    assert (tmp_path / "r.html").stat().st_size > 10_000
    checks = verify(f"{tmp_path}/out", policy=policy, original=f"{tmp_path}/in")
    assert all(check.ok is not False for check in checks)
    assert {check.name: check.ok for check in checks}["input"]
