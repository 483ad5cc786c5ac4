"""Tables and streams by real Spark workers: the bytes of one process, whatever becomes of tasks and
drivers.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from real_commands import HOW_TO, how_to, running, until
from services import killed_shards
from shard_cases import local_runs, published, source
from shoal.auditor.audit import audit_file
from shoal.auditor.verify import verify
from shoal.connectors import engines
from shoal.connectors.engines import Engine
from shoal.connectors.outputs import sweep
from shoal.errors import InputError
from shoal.streams.run import stream_file
from shoal.tables.publish import publish_file
from stream_cases import policy_of, stream_of
from thorough import LONG
from unit.connectors.test_spread import contents, folder
from unit.tables.test_past_memory import METHODS, certified, rows

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java 17, not found"),
]
pyspark = pytest.importorskip(
    "pyspark", reason="Spark is not installed: 'make spark' fetches it (needs Java 17)"
)
spark = pytest.importorskip("shoal.connectors.spark")
usual = spark._running
of_its_own = pytest.mark.skipif(not LONG, reason="sessions of their own: make test-all")
RECORDS, MOST = 200_000, 20_000


@contextmanager
def session() -> Iterator[Any]:
    """Two executors' cores, which start a lost task again."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2,4]").appName("tests")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    for key, value in {**spark.SILENT, "spark.driver.bindAddress": "127.0.0.1"}.items():
        builder = builder.config(key, value)
    started = builder.config("spark.driver.host", "127.0.0.1").getOrCreate()
    try:
        yield spark.SparkWorkers(started)
    finally:
        started.stop()


@pytest.fixture(scope="module")
def workers() -> Iterator[Any]:
    """Of one session for all tests here: to start it takes longest."""
    with session() as started:
        yield started


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """People in files of random sizes, one of them empty."""
    few = rows(RECORDS // 40).with_columns(pl.col("age").str.strip_chars_start("0"))
    return folder(tmp_path_factory.mktemp("spark") / "in", pl.concat([few] * 40), files=6)


def test_spark_does_what_one_process_does_and_fails_in_one_line(
    table: Path, tmp_path: Path, workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_spark = partial(Engine, "spark", lambda ending: workers, MOST)
    published_alike(table, tmp_path / "global", "full-domain", by_spark)
    jobs, place = count(), tmp_path / "local"
    monkeypatch.setattr(spark, "_running", lambda job: (usual if next(jobs) % 5 else losing)(job))
    one = published_alike(table, place, "rounded", by_spark)
    with engines.using(by_spark()):
        audited = audit_file(f"{place}/many", METHODS["rounded"], str(table)).certificate
    assert audited["promises"] == one["promises"]
    # what needs the trace is not measured
    known = {name: found for name, found in audited["utility"].items() if found is not None}
    assert known.items() <= one["utility"].items()
    assert {*one["utility"]} - {*known} <= {
        "squared_error",
        "squared_error_normalised",
        "information_loss_percent",
    }
    assert all(check.ok is not False for check in verify(f"{place}/many"))
    monkeypatch.setattr(spark, "_running", failing)
    fails = pytest.raises(InputError, match="engine 'spark': a task failed")
    with fails as refused, engines.using(by_spark()):
        publish_file(str(table), METHODS["rounded"], f"{place}/failed/")
    assert "mumps" not in str(refused.value)
    assert {path.name for path in place.iterdir()} == {"one", "many"}


@pytest.mark.parametrize("place", killed_shards.PLACES if LONG else ["after the commit"])
def test_a_stream_is_as_many_local_runs_though_driver_and_tasks_are_killed(
    place: str, tmp_path: Path, workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver that is killed has a session of its own; ours resumes, and loses tasks."""
    frame, policy = stream_of(700, seed=2, people=300), policy_of("fads", k=4, delta=60)
    source(tmp_path / "in", frame, files=5)
    (tmp_path / "policy.json").write_text(policy.model.model_dump_json(exclude_unset=True))
    environment = {
        **os.environ,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_SUBMIT_ARGS": "--master local[2] pyspark-shell",
    }
    driver = subprocess.Popen(
        [sys.executable, killed_shards.__file__, str(tmp_path), place, "2", "spark"],
        env=environment,
        start_new_session=True,
    )
    try:
        assert driver.wait(timeout=240) == -signal.SIGKILL
    finally:
        with suppress(ProcessLookupError):
            os.killpg(driver.pid, signal.SIGKILL)
    jobs = count()
    monkeypatch.setattr(spark, "_running", lambda job: (losing if next(jobs) == 1 else usual)(job))
    with engines.using(Engine("spark", lambda ending: workers, shards=killed_shards.SHARDS)):
        certificate, _ = stream_file(killed_shards.options(tmp_path), policy, progress=print)
    assert certificate.holds
    for shard, expected in enumerate(local_runs(policy, frame, killed_shards.SHARDS)):
        assert published(tmp_path / "out", shard).equals(expected)
    assert all(check.ok is not False for check in verify(f"{tmp_path}/out"))
    assert {path.name for path in tmp_path.iterdir()} == {"in", "out", "state", "policy.json"}


def published_alike(table: Path, place: Path, name: str, by_spark: Callable[[], Engine]) -> Any:
    """The certificate of one process, whose files and figures are those of Spark."""
    asked = METHODS[name]
    place.mkdir()
    one = publish_file(str(table), asked, f"{place}/one/").certificate
    with engines.using(by_spark()):
        many = publish_file(str(table), asked, f"{place}/many/").certificate
    assert certified(one) == certified(many)
    assert contents(place / "one") == contents(place / "many")
    assert {path.name for path in place.iterdir()} == {"one", "many"}
    return one


def losing(job: str) -> Any:
    """As in `connectors.spark`, but at first what the first task found is lost with its process."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow
        from pyspark import TaskContext

        from shoal.data.room import run_task

        for batch in batches:
            numbers = batch.column(0).to_pylist()
            names = [run_task(job, number) for number in numbers]
            if 0 in numbers and TaskContext.get().attemptNumber() == 0:
                os._exit(9)
            found = [pyarrow.array(numbers, pyarrow.int64()), pyarrow.array(names)]
            yield pyarrow.RecordBatch.from_arrays(found, names=["number", "name"])

    return run


def failing(job: str) -> Any:
    def run(batches: Iterable[Any]) -> Iterator[Any]:
        raise ValueError("mumps")
        yield

    return run


@of_its_own
def test_a_killed_command_leaves_nothing_that_is_listed_and_the_next_sweeps(
    table: Path, tmp_path: Path
) -> None:
    content = METHODS["rounded"].model.model_dump_json(exclude_unset=True)
    (tmp_path / "policy.json").write_text(content)
    command = ["publish", str(table), *"-p policy.json -o out/ --engine spark -q".split()]
    more = {"env": os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"}, "start_new_session": True}
    with running(tmp_path, *command, **more) as process:
        try:
            until(lambda: [*tmp_path.glob(".out.*")], process, seconds=240)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
    left = {path.name for path in tmp_path.iterdir()} - {"policy.json"}
    assert left
    assert all(name.startswith(".out.") for name in left)
    sweep(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"policy.json"}


@of_its_own
@pytest.mark.parametrize("script", ["spark.sh", "spark-streams.sh", "spark-source.sh"])
def test_the_how_to_does_what_its_page_says(script: str, tmp_path: Path) -> None:
    shutil.copy(HOW_TO / "spark_source.py", tmp_path)
    done = how_to(script, tmp_path, SPARK_LOCAL_IP="127.0.0.1")
    assert "asked 10, measured" in done.stderr
    assert (tmp_path / "published" / "_shoal.json").exists()
